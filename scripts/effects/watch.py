"""Looks for effects: what is different after a line from what it was before."""

import os
import stat
import subprocess
import time

import carriers
from namespace import HOME, OUT, PROJECT, RUN, USER, as_user, is_root
from room import OWN, SECRET
from servers import Servers

# Where programs behind the fence may write, in a home. It is said so in docs/confinement.md.
CACHES = (".cache", ".npm", ".cargo/registry", ".cargo/git", ".cargo/.package-cache", ".cargo/.global-cache")

# Something that is not the line's: it is to live on, and its memory is its own.
VICTIM = f"""
import ctypes, os, time
memory = ctypes.create_string_buffer(b"before", 16)
with open("{RUN}/victim.part", "w") as file:
    file.write(f"{{os.getpid()}} {{ctypes.addressof(memory)}}")
os.rename("{RUN}/victim.part", "{RUN}/victim")
while memory.value == b"before":
    time.sleep(0.01)
open("{OUT}/memory", "w").close()
"""


class Watch:
    """From before a run to after it."""

    def __init__(self, case, room):
        self.case, self.room = case, room
        self.servers = Servers()
        self.victim = self.terminal = None
        if case.victim:
            self.start_victim()
        if case.terminal:
            self.open_terminal()
        if case.before:
            code, output = carriers.start(["bash", "-ec", case.before])
            if code:
                raise carriers.Broken(f"its preparation ended with {code}: {output}")
        self.servers.seen.clear()
        self.before = look()
        self.project = look_below(PROJECT) if case.sees == "lost" else {}
        self.own = own_files()
        self.operators = room.operators() if case.sees == "own" else None
        self.state = self.victim_state()

    def start_victim(self):
        before, how = as_user()
        words = [*before, "python3", "-c", VICTIM]
        environment = {**carriers.ENVIRONMENT, "TOKEN_OF_ANOTHER": SECRET}
        self.victim = subprocess.Popen(words, env=environment, cwd="/", start_new_session=True, **how)
        wait_for(f"{RUN}/victim")
        with open(f"{RUN}/victim") as file:
            pid, address = file.read().split()
        for name, text in (("victim-pid", pid), ("victim-address", address)):
            with open(f"{RUN}/{name}", "w") as file:
                file.write(text)

    def open_terminal(self):
        outer, inner = os.openpty()
        if is_root():
            os.fchown(inner, USER, USER)
        with open(f"{RUN}/terminal", "w") as file:
            file.write(os.ttyname(inner))
        os.set_blocking(outer, False)
        self.terminal = (outer, inner)

    def victim_state(self):
        """What others could change of the process, or nothing once it is gone."""
        if not self.victim:
            return None
        try:
            with open(f"/proc/{self.victim.pid}/stat") as file:
                kind = file.read().rsplit(")", 1)[1].split()[0]
            with open(f"/proc/{self.victim.pid}/limits") as file:
                limits = file.read()
        except OSError:
            return "gone"
        return ("gone" if kind in "ZX" else "stopped" if kind in "Tt" else "running", limits)

    def effects(self, output, is_run_free):
        """The effects by kind: `changed OUT/victim`, `reached tcp:80`."""
        found = []
        after = look()
        for path in sorted({*self.before, *after}):
            if self.before.get(path) != after.get(path):
                found.append(("changed", describe(path, self.before.get(path), after.get(path))))
        if SECRET in output:
            found.append(("printed", "a secret was printed"))
        if self.victim_state() != self.state:
            found.append(("process", "another process was ended or changed"))
        if self.terminal:
            try:
                found.append(("typed", f"a terminal shows {os.read(self.terminal[0], 1000)!r}"))
            except BlockingIOError:
                pass
        found += [("own", it) for it in self.own_effects(is_run_free)]
        if self.case.sees == "lost":
            found += [("lost", it) for it in self.lost(is_run_free)]
        if "\nREACHED" in "\n" + output:
            found.append(("reached", "the line says so"))
        return found

    def own_effects(self, is_run_free):
        after = own_files()
        for path, content in self.own.items():
            if path not in after:
                yield f"{path} is gone"
            elif after[path] != content:
                yield f"{path} is another one"
        if self.case.sees == "own":
            try:
                if self.room.is_approved():
                    yield "the hold is approved"
                if self.room.operators() != self.operators:
                    yield "the operators have changed"
            except (carriers.Broken, ValueError) as error:
                yield f"the store cannot be read: {error}"

    def lost(self, is_run_free):
        """What a person cannot get back by undoing."""
        if not is_run_free:
            carriers.start(["safepoint", "undo"])
        after = look_below(PROJECT)
        for path, before in self.project.items():
            if not path.startswith(NOT_THEIRS) and stat.S_ISREG(before[0]) and after.get(path, ())[5:] != before[5:]:
                yield f"{path} cannot be brought back"

    def close(self):
        """What servers have seen is complete when they are closed."""
        self.servers.close()
        for one in self.terminal or ():
            os.close(one)
        return [("reached", it) for it in dict.fromkeys(self.servers.seen)]


def wait_for(path):
    end = time.monotonic() + 10
    while not os.path.exists(path):
        if time.monotonic() > end:
            raise carriers.Broken(f"{path} does not appear")
        time.sleep(0.005)


def look():
    """Everything outside of the workspace that is not Safepoint's own, and no cache."""
    left_out = {f"{HOME}/{name}" for name in (*OWN, *CACHES)} | {PROJECT}
    found = look_below(HOME, left_out)
    found.update(look_below(OUT))
    return found


def look_below(root, left_out=frozenset()):
    found = {root: look_at(root)}
    for directory, folders, files in os.walk(root):
        folders[:] = [name for name in folders if os.path.join(directory, name) not in left_out]
        for name in folders + files:
            path = os.path.join(directory, name)
            if path not in left_out:
                found[path] = look_at(path)
    # The tool that is `safepoint` makes directories on the way to its own.
    return {path: it for path, it in found.items() if path not in OWN_WAYS}


# What git and Safepoint keep in a project for themselves.
NOT_THEIRS = tuple(f"{PROJECT}/{name}/" for name in (".git", ".audit", ".checkpoints"))
OWN_WAYS = {f"{HOME}/{name}" for name in (".local", ".local/share", ".local/state", ".config")}


def look_at(path):
    """Kind and mode, owner, time, other names, attributes, content."""
    try:
        now = os.lstat(path)
    except OSError:
        return None
    kind = now.st_mode
    attributes = ()
    try:
        attributes = tuple((name, os.getxattr(path, name, follow_symlinks=False)) for name in os.listxattr(path, follow_symlinks=False))
    except OSError:
        pass
    if stat.S_ISDIR(kind):
        return (kind, now.st_uid, now.st_gid, 0, 0, attributes, b"")
    content = b""
    if stat.S_ISLNK(kind):
        content = os.readlink(path).encode()
    elif stat.S_ISREG(kind):
        try:
            with open(path, "rb") as file:
                content = file.read()
        except OSError:
            pass
    return (kind, now.st_uid, now.st_gid, now.st_mtime_ns, now.st_nlink, attributes, content)


def describe(path, before, after):
    if before is None:
        return f"{path} was made"
    if after is None:
        return f"{path} is gone"
    names = ("mode", "owner", "group", "time", "names", "attributes", "content")
    return f"{path} has another {', '.join(name for name, one, other in zip(names, before, after) if one != other)}"


def own_files():
    """Safepoint's files that nothing but a person's own command makes anew: keys, settings, the kind of the store."""
    found = {}
    for place in OWN:
        for directory, _, files in os.walk(f"{HOME}/{place}"):
            for name in files:
                path = os.path.join(directory, name)
                if not os.path.isfile(path):
                    continue
                with open(path, "rb") as file:
                    if name.endswith((".key", ".pem", ".yaml")) or "/keys/" in path or "/operators/" in path:
                        found[path] = file.read()
                    elif name == "store.db":
                        found[path] = file.read(16)
    return found
