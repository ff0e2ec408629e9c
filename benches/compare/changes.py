"""What happens to a tree between checkpoints, and how a tree is looked at.

The listing shares no code with any peer: it is what decides whether a roll back
brought everything back.
"""

import hashlib
import os
import random
import stat

EDITABLE = range(1 << 10, 64 << 10)  # a person edits files of such sizes
BLOCK = 1 << 20


def regular_files(tree, own):
    """(path, size) of all plain files in sorted order, without a peer's `own` top-level names."""
    found = []
    for directory, names, files in os.walk(tree):
        if directory == tree:
            names[:] = [n for n in names if n not in own]
        names.sort()
        for name in sorted(files):
            path = os.path.join(directory, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                found.append((path, status.st_size))
    return found


def editable(tree, own, count, rng):
    """A choice of files of ordinary size; of any size where a tree has too few."""
    files = regular_files(tree, own)
    usual = [path for path, size in files if size in EDITABLE]
    return rng.sample(usual if len(usual) >= count else [path for path, _ in files], count)


def edit(path, text):
    """Puts a line into the middle, as an editor would write it: the whole file, in place."""
    with open(path, "rb") as file:
        data = file.read()
    middle = data.find(b"\n", len(data) // 2) + 1
    with open(path, "wb") as file:
        file.write(data[:middle] + text.encode() + b"\n" + data[middle:])


def edit_ten(tree, own, seed):
    rng = random.Random(seed)
    for path in editable(tree, own, 10, rng):
        edit(path, f"/* edited {seed} {rng.getrandbits(64):x} */")


def touch_thousand(tree, own, seed):
    """New times, same content: what a build or a checkout of the same branch leaves."""
    files = regular_files(tree, own)
    for path, _ in random.Random(seed).sample(files, min(1000, len(files) // 2)):
        os.utime(path)


def damage_twenty(tree, own, seed):
    """Ten changed, five deleted, five new: an agent's bad quarter of an hour."""
    rng = random.Random(seed)
    chosen = editable(tree, own, 15, rng)
    for path in chosen[:10]:
        edit(path, f"/* damaged {seed} */")
    for number, path in enumerate(chosen[10:]):
        with open(os.path.join(os.path.dirname(path), f"new-{number}.c"), "w", encoding="ascii") as file:
            file.write(f"/* unwanted {seed} {rng.getrandbits(64):x} */\n" * 50)
        os.unlink(path)


def remove_half(tree, own):
    """The second half of all files, and the directories which that leaves empty."""
    files = regular_files(tree, own)
    for path, _ in files[len(files) // 2 :]:
        os.unlink(path)
    for directory, _, _ in os.walk(tree, topdown=False):
        if directory != tree and not os.listdir(directory):
            os.rmdir(directory)


def rewrite_middle(tree, seed):
    """One MiB of new bytes in the middle of a big file, in place."""
    path = os.path.join(tree, "model1.bin")
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        file.write(random.Random(seed).randbytes(BLOCK))


def listing(tree, own):
    """{path: (kind, mode, digest or link target, mtime in ns)} of everything in the tree."""
    found = {}
    for directory, names, files in os.walk(tree):
        if directory == tree:
            names[:] = [n for n in names if n not in own]
        for name in names + files:
            path = os.path.join(directory, name)
            found[os.path.relpath(path, tree)] = describe(path)
    return found


def describe(path):
    status = os.lstat(path)
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return ("link", 0, os.readlink(path), 0)
    if stat.S_ISDIR(status.st_mode):
        return ("directory", mode, "", 0)
    if stat.S_ISREG(status.st_mode):
        with open(path, "rb", buffering=0) as file:
            return ("file", mode, hashlib.file_digest(file, "sha256").hexdigest(), status.st_mtime_ns)
    return ("other", mode, "", 0)


def difference(before, after, with_times):
    """What a roll back failed to bring back, in a few words; empty when all is well."""
    relevant = 4 if with_times else 3
    missing = sorted(before.keys() - after.keys())
    extra = sorted(after.keys() - before.keys())
    changed = sorted(p for p in before.keys() & after.keys() if before[p][:relevant] != after[p][:relevant])
    kinds = (("missing", missing), ("extra", extra), ("wrong", changed))
    return ", ".join(f"{len(paths)} {kind} ({paths[0]})" for kind, paths in kinds if paths)


def read_all(tree):
    """Makes the page cache warm in the same way for every peer."""
    buffer = bytearray(BLOCK)
    for directory, _, files in os.walk(tree):
        for name in files:
            path = os.path.join(directory, name)
            if os.path.islink(path):
                continue
            with open(path, "rb", buffering=0) as file:
                while file.readinto(buffer):
                    pass


def allocated(*places):
    """Bytes of allocated blocks as `du` counts them: each inode once."""
    seen, total = set(), 0
    for place in places:
        if not os.path.lexists(place):
            continue
        for path in walk_everything(place):
            status = os.lstat(path)
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                total += status.st_blocks * 512
    return total


def walk_everything(place):
    yield place
    for directory, names, files in os.walk(place):
        for name in names + files:
            yield os.path.join(directory, name)
