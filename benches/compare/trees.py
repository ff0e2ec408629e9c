"""The trees that are checkpointed: made once, the same every time.

A comparison is worth something only when the text in the trees compresses and
repeats like text that people write. So real source is preferred (a tar file of
a kernel, or directories of source), and what is missing is written by a seeded
generator which looks like C.

Some things are left out or made even, so that every peer is asked for the same
bytes: no `.git`, no `.gitignore` and `.gitattributes` (the git peer would
silently skip files), no empty directories, modes 644 and 755 only.
"""

import json
import os
import random
import re
import shutil
import stat
import tarfile
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path

RECIPE_VERSION = 1
SKIPPED_DIRECTORIES = {".git", ".hg", ".jj", "target", "node_modules"}
SKIPPED_NAMES = {".gitignore", ".gitattributes", ".gitmodules"}
SECRET_NAME = re.compile(r"^(\.env.*|id_(rsa|dsa|ecdsa|ed25519).*|.*\.(pem|key|p12|pfx|kdbx)|.*(credential|secret|password).*)$", re.I)
EPOCH = 1_700_000_000  # files are dated from here, so that a tree is the same on every machine
GIB = 1 << 30


@dataclass(frozen=True)
class Recipe:
    """How big a tree is, and which parts of a kernel are nearest to that size."""

    files: int
    size: int
    kernel_parts: tuple[str, ...] = ()


RECIPES = {
    "thousand": Recipe(1_000, 24_000_000, ("net/",)),
    "medium": Recipe(26_000, 320_000_000, ("arch/", "drivers/net/", "drivers/scsi/", "net/", "sound/")),
    "large": Recipe(80_000, 1_400_000_000),
}
NAMES = ("thousand", "medium", "large", "huge")


@dataclass
class Tree:
    """A finished tree. Never worked in: each peer gets a copy."""

    name: str
    path: str
    files: int
    size: int
    origin: str
    version: int = RECIPE_VERSION


@dataclass
class Entry:
    """One file or symbolic link to be written: its data, or where it points."""

    path: str
    executable: bool
    data: bytes = b""
    target: str | None = None


class Generated:
    """Text like C source, when there is nothing real to take."""

    name = "generated text"

    def entries(self, recipe, seed):
        """Endless; the builder stops when the tree is full."""
        average = recipe.size / recipe.files
        rng = random.Random(f"{seed}-{recipe.files}")
        words = identifiers(random.Random("words"))
        number = 0
        while True:
            length = int(min(rng.lognormvariate(0, 1.1) * average * 0.55, average * 30))
            path = f"generated/part{number // 400:03}/unit{number // 20 % 20:02}/{rng.choice(words)}_{number}.{rng.choice('ccch')}"
            yield Entry(path, rng.random() < 0.01, source_text(rng, words, length))
            number += 1


class Tar:
    """A tar file of source, such as the one of Debian's linux-source."""

    def __init__(self, path):
        self.path = path
        self.name = os.path.basename(path)

    def entries(self, recipe, _seed):
        """In the order of the file, without its first directory."""
        with tarfile.open(self.path, "r|*") as tar:
            for member in tar:
                path = member.name.split("/", 1)[-1]
                wanted = not recipe.kernel_parts or path.startswith(recipe.kernel_parts)
                if not wanted or not acceptable(path):
                    continue
                if member.isreg():
                    yield Entry(path, bool(member.mode & 0o100), tar.extractfile(member).read())
                elif member.issym() and not member.linkname.startswith("/"):
                    yield Entry(path, False, target=member.linkname)


class Corpus:
    """Directories of real text; files in sorted order, without the few that would fill the tree alone."""

    def __init__(self, directories):
        self.directories = directories
        self.name = "text found in " + ", ".join(os.path.basename(os.path.normpath(d)) for d in directories)

    def entries(self, recipe, _seed):
        largest = 20 * recipe.size // recipe.files
        for number, top in enumerate(self.directories):
            for directory, names, files in os.walk(top):
                names[:] = sorted(n for n in names if n not in SKIPPED_DIRECTORIES)
                for name in sorted(files):
                    entry = self.entry(number, top, os.path.join(directory, name), largest)
                    if entry:
                        yield entry

    @staticmethod
    def entry(number, top, path, largest):
        """Nothing for what is not a readable plain file: a corpus may hold anything."""
        relative = os.path.relpath(path, top)
        try:
            status = os.lstat(path)
            if not stat.S_ISREG(status.st_mode) or status.st_size > largest or not acceptable(relative):
                return None
            return Entry(f"corpus{number}/{relative}", bool(status.st_mode & 0o100), Path(path).read_bytes())
        except OSError:
            return None


def acceptable(path):
    """Whether a path of the source may be in a tree at all."""
    parts = path.split("/")
    name = parts[-1]
    return not (
        any(part in SKIPPED_DIRECTORIES for part in parts[:-1])
        or name in SKIPPED_NAMES
        or SECRET_NAME.match(name)
        or not name
    )


def origin_from(source, corpus):
    """What was asked for, else an installed kernel source, else the generator."""
    if source:
        return Tar(source)
    if corpus:
        return Corpus(corpus)
    installed = sorted(glob("/usr/src/linux-source-*.tar.*"))
    return Tar(installed[-1]) if installed else Generated()


def ensure(name, masters, origin):
    """The tree called `name` below the directory `masters`, made if it is not there."""
    os.makedirs(masters, exist_ok=True)
    path = os.path.join(masters, name)
    label = path + ".json"
    origin_name = "seeded random bytes" if name == "huge" else origin.name
    if os.path.isdir(path) and os.path.exists(label):
        tree = Tree(**json.loads(Path(label).read_text()))
        if (tree.origin, tree.version) == (origin_name, RECIPE_VERSION):
            tree.path = path
            return tree
    shutil.rmtree(path, ignore_errors=True)
    partial = path + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    os.makedirs(partial)
    files, size = make_huge(partial) if name == "huge" else fill(partial, RECIPES[name], origin, name)
    os.rename(partial, path)
    tree = Tree(name, path, files, size, origin_name)
    Path(label).write_text(json.dumps(asdict(tree), indent=1) + "\n")
    return tree


def fill(directory, recipe, origin, seed):
    """Writes entries until there are enough files or bytes; the generator tops up."""
    files = size = 0
    sources = [origin] if isinstance(origin, Generated) else [origin, Generated()]
    for source in sources:
        if source is not origin and (files > 0.9 * recipe.files or size > 0.9 * recipe.size):
            break  # near enough: rather a few files less than a mixture
        for entry in source.entries(recipe, seed):
            if files >= recipe.files or size >= recipe.size:
                break
            write(directory, entry, EPOCH + files)
            files += 1
            size += len(entry.data)
    return files, size


def write(directory, entry, seconds):
    path = os.path.join(directory, entry.path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if entry.target is not None:
        os.symlink(entry.target, path)
        return
    with open(path, "wb") as file:
        file.write(entry.data)
    os.chmod(path, 0o755 if entry.executable else 0o644)
    os.utime(path, (seconds, seconds))


def make_huge(directory):
    """Three files that no peer can compress: what counts is how little is read and kept again."""
    block = 16 << 20
    for number in range(3):
        rng = random.Random(f"huge-{number}")
        with open(os.path.join(directory, f"model{number}.bin"), "wb") as file:
            for _ in range(GIB // block):
                file.write(rng.randbytes(block))
    Path(directory, "README").write_text("three files of random bytes\n")
    return 4, 3 * GIB


def identifiers(rng):
    """Words that return with the uneven frequency of names in a program."""
    stems = (
        "dev reg buf len ctx mask flag init probe read write irq clk phy page lock list node queue ring skb port link "
        "addr base size count index state event timer work task data info desc cfg mode rate freq chan dma map table "
        "entry hash key ops priv core bus slot host ctrl cmd resp err ret val tmp old new next prev head tail free alloc"
    ).split()
    joined = ["_".join(rng.choice(stems) for _ in range(rng.choice((1, 2, 2, 3)))) for _ in range(4000)]
    return stems + joined


def source_text(rng, words, length):
    """Functions of plausible lines, with the local repetition that real source has."""
    lines = ["// SPDX-License-Identifier: MIT", "#include <linux/module.h>", "#include <linux/kernel.h>", ""]
    total = sum(map(len, lines))
    local = rng.sample(words, 40)
    while total < length:
        block = function(rng, local)
        lines += block
        total += sum(map(len, block)) + len(block)
        local[rng.randrange(40)] = rng.choice(words)
    return ("\n".join(lines) + "\n").encode()[: max(length, 60)]


def function(rng, local):
    """One function; its shape is fixed, its names and numbers are not."""

    def name():
        return local[min(int(rng.expovariate(0.12)), 39)]

    shapes = (
        lambda: f"\tif ({name()}->{name()} & {rng.choice(('BIT', 'GENMASK', 'mask'))}({rng.randrange(32)}))\n"
        + f"\t\treturn -E{rng.choice(('INVAL', 'NOMEM', 'IO', 'BUSY'))};",
        lambda: f"\t{name()}->{name()} = {name()}_{name()}({name()}, 0x{rng.getrandbits(rng.choice((8, 16, 32))):x});",
        lambda: f"\t{name()} = {name()} + {rng.randrange(4096)};",
        lambda: f"\tdev_{rng.choice(('err', 'dbg', 'info'))}({name()}, \"{name()} {name()} failed: %d\\n\", {name()});",
        lambda: f"\t/* the {name()} of {name()} must be {name()} before {name()} is {rng.choice(('set', 'read', 'freed', 'used'))} */",
        lambda: f"#define {name().upper()}_{name().upper()}\t0x{rng.getrandbits(16):04x}",
    )
    body = [rng.choice(shapes)() for _ in range(rng.randrange(4, 22))]
    return [f"static int {name()}_{name()}(struct {name()} *{name()})", "{", *body, "\treturn 0;", "}", ""]
