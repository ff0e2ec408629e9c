"""A world of a worker's own: no network but loopback, no files that outlive it, an ordinary user."""

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys

# Where everything lies that a line is to reach or not.
WORLD = "/srv"
OUT = f"{WORLD}/out"
HOME = f"{WORLD}/home/dev"
PROJECT = f"{HOME}/project"
BIN = f"{WORLD}/bin"
RUN = f"{WORLD}/run"
TEMPLATE = f"{WORLD}/template"
SAFEPOINT = f"{BIN}/safepoint"

PATH = "/usr/local/bin:/usr/bin:/bin"
USER = 4242
# Addresses that stand for others: a public host, a private one, and a metadata service.
PUBLIC, PRIVATE, METADATA = "203.0.113.7", "10.4.4.4", "169.254.169.254"

SET_FLAGS, SET_ADDRESS, SET_MASK = 0x8914, 0x8916, 0x891C  # SIOCSIF…
UP_AND_RUNNING = 0x49
IS_ROOT = "EFFECTS_CAMPAIGN_ROOT"


def interpreter():
    """One that is not in anybody's home, since homes are covered."""
    return shutil.which("python3", path=PATH) or sys.executable


def command(more):
    """Starts this program with more arguments in namespaces of its own."""
    become_root = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [
        "env", f"{IS_ROOT}={int(os.geteuid() == 0)}", "unshare", *become_root, "--mount", "--net", "--ipc", "--uts",
        "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private",
        "--", interpreter(), os.path.abspath(sys.argv[0]), *more,
    ]


def is_root():
    """Whether root of the machine has started this; otherwise only one user is known here."""
    return os.environ.get(IS_ROOT) == "1"


def as_user():
    """How a process is started as the ordinary user: words before its own, and arguments of `Popen`."""
    if is_root():
        return [], {"user": USER, "group": USER, "extra_groups": []}
    return ["unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", "--"], {}


def enclose(binary):
    """Mounts what is to be thrown away, and copies the binary there."""
    if os.getpid() != 1:
        raise RuntimeError("this is no world of its own")
    with open(binary, "rb") as program:
        for place in (WORLD, "/tmp", "/var/tmp", "/dev/shm"):
            mount("tmpfs", place, "mode=1777" if place != WORLD else "mode=755")
        home = os.path.realpath(os.path.expanduser("~"))
        if not is_root() and os.path.isdir(home):
            # Whatever a control does: the files of who has started this are not there.
            mount("tmpfs", home, "mode=755")
        os.makedirs(BIN)
        with open(SAFEPOINT, "wb") as copy:
            shutil.copyfileobj(program, copy)
    os.chmod(SAFEPOINT, 0o755)
    os.makedirs(f"{WORLD}/etc")
    cover("/etc/passwd", f"root:x:0:0:root:/root:/bin/sh\ndev:x:{USER}:{USER}::{HOME}:/bin/bash\n")
    cover("/etc/group", f"root:x:0:\ndev:x:{USER}:\n")
    cover("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
    raise_loopback()


def mount(kind, place, options):
    subprocess.run(["mount", "-t", kind, "-o", options, "none", place], check=True)


def cover(path, content):
    own = f"{WORLD}{path}"
    with open(own, "w") as file:
        file.write(content)
    subprocess.run(["mount", "--bind", own, os.path.realpath(path)], check=True)


def raise_loopback():
    def name(index):
        return b"lo" if index is None else b"lo:%d" % index

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh", name(None), UP_AND_RUNNING))
        for index, address in enumerate((PUBLIC, PRIVATE, METADATA)):
            for request, value in ((SET_ADDRESS, address), (SET_MASK, "255.255.255.255")):
                place = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(any_socket, request, struct.pack("16s16s", name(index), place))
    try:
        with open("/proc/sys/net/ipv4/ping_group_range", "w") as file:
            file.write("0 2147483647" if is_root() else "0 0")
    except OSError:
        pass  # The case that needs it has no effect without, and its control says so.



def end_all():
    """Ends every process of this world but this one, which is its first."""
    if os.getpid() != 1:
        raise RuntimeError("this is no world of its own")
    try:
        os.kill(-1, 9)
    except ProcessLookupError:
        pass
    while True:
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return
