"""Where the measuring happens: which file system, and one made for it.

An ext4 that is mounted with `discard` waits for the device at every removed
file, which hides everything else; a loop-mounted image with a journal and
without discard behaves like an ordinary disk.
"""

import contextlib
import os
import subprocess
import tempfile

TRAP = "mounted with `discard`: each removed file waits for the device, so removing and replacing is dear (use --loop)"


def mount_of(path):
    """(type, options) of the file system that holds `path`."""
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = ("unknown", [])
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            before, after = line.rstrip("\n").split(" - ", 1)
            fields = before.split()
            if fields[2] == wanted:
                kind, _, super_options = after.split(" ", 2)
                found = (kind, fields[5].split(",") + super_options.split(","))
    return found


def describe(path):
    """A line for the report."""
    kind, options = mount_of(path)
    return f"{kind}, {TRAP}" if "discard" in options else f"{kind}, no discard"


def refuse_temporary(path):
    """A temporary directory may be memory, or may be swept while we work."""
    temporary = os.path.realpath(tempfile.gettempdir())
    if os.path.commonpath([temporary, os.path.realpath(path)]) == temporary:
        raise SystemExit(f"error: `{path}` is below {temporary}; give another directory with --work")


@contextlib.contextmanager
def loop_mounted(directory, gibibytes):
    """A fresh ext4 in a sparse file below `directory`; gone afterwards, whatever happens."""
    image = os.path.join(directory, "loop.ext4")
    point = os.path.join(directory, "loop")
    os.makedirs(point, exist_ok=True)
    if os.path.ismount(point):
        raise SystemExit(f"error: {point} is mounted already: `umount {point}` first")
    with open(image, "wb") as file:
        file.truncate(gibibytes << 30)
    try:
        run("mkfs.ext4", "-q", "-F", "-E", "nodiscard", image)
        run("mount", "-o", "loop,nodiscard", image, point)
        try:
            yield point
        finally:
            run("umount", point)
    finally:
        os.unlink(image)


def run(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"error: `{' '.join(argv)}` failed: {done.stderr.strip()} (--loop needs root)")


def settle(path):
    """Writes back what earlier steps left dirty, so that nobody pays for another's writes."""
    subprocess.run(["sync", "-f", path], check=False)
