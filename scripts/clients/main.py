"""Runs stories in clients, and tells how each went."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import traceback

import claude
import codex
import gemini
import namespace
import stories
import faults  # noqa: F401  It adds its stories, and so do the next ones.
import guidance  # noqa: F401
import ordinary  # noqa: F401
import reach  # noqa: F401
import sandboxes  # noqa: F401
import setting_up  # noqa: F401
import shells  # noqa: F401
import skills  # noqa: F401
import special  # noqa: F401
from room import Room, check

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LONGEST = 1200  # So much of a failure is shown; told.json has what the model was told.
CLIENTS = {client.name: client for client in (claude, codex, gemini)}


def arguments():
    parser = argparse.ArgumentParser(
        prog="test-clients", description="Runs real agent clients offline against a scripted model, with our hooks."
    )
    names = sorted({name for name, _, _ in stories.STORIES})
    parser.add_argument("--only", choices=CLIENTS, action="append", metavar="CLIENT", help=", ".join(CLIENTS))
    parser.add_argument("--story", choices=names, action="append", metavar="NAME", help=", ".join(names))
    parser.add_argument("--keep", action="store_true", help="keep the folders of all runs, not only of failed ones")
    parser.add_argument("--safepoint", metavar="PATH", help="the binary to test; built where none is given")
    return parser.parse_args()


def build():
    """The binary of this tree."""
    subprocess.run(["cargo", "build", "--quiet", "--locked", "--package", "safepoint"], cwd=ROOT, check=True)
    return os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"), "debug/safepoint")


def chosen(given):
    """Each story with each client it is for."""
    for name, only, function in stories.STORIES:
        if given.story and name not in given.story:
            continue
        for client in CLIENTS.values():
            if (only is None or client.name == only) and (not given.only or client.name in given.only):
                yield name, client, function


def tell(name, client, function, folder, binary):
    """Runs one story, prints its line, and says whether it holds."""
    print(f"{client.name:<7} {name:<16}", end=" ", flush=True)
    began = time.monotonic()
    problem = None
    try:
        function(client, Room(folder, binary))
    except Exception as error:
        problem = str(error) if type(error).__name__ == "Failed" else traceback.format_exc()
    print(f"{'ok' if problem is None else 'FAILED':<6} {time.monotonic() - began:6.1f} s", flush=True)
    if problem is not None:
        short = problem if len(problem) < LONGEST else f"{problem[:LONGEST]} …"
        print(textwrap.indent(short.strip(), "    "), f"    kept in {folder}", sep="\n", flush=True)
    return problem is None


def main():
    given = arguments()
    wanted = list(chosen(given))
    if namespace.is_inside():
        return run_stories(wanted, os.path.realpath(given.safepoint), given.keep)
    # Only this needs the network, or the tools of whoever builds.
    for client in {client.name: client for _, client, _ in wanted}.values():
        client.package.ensure()
    binary = given.safepoint or build()
    code = namespace.start_again("--safepoint", binary)
    further = os.path.join(ROOT, "scripts", "test-mcp")
    if os.path.exists(further) and not given.only and not given.story:
        code = subprocess.run([further, os.path.realpath(binary)]).returncode or code
    return code


def make_place():
    """A folder for this run. Not a temporary one: there, everybody may write through our fence."""
    above = os.path.join(ROOT, "target")
    if namespace.is_temporary(above):
        above = os.path.expanduser("~/.cache/safepoint-clients")
    os.makedirs(above, exist_ok=True)
    return tempfile.mkdtemp(prefix="clients-", dir=above)


def take_along(binary, place):
    """The binary under a name of its own, so that a build meanwhile does not change it."""
    own = os.path.join(place, "safepoint")
    try:
        os.link(binary, own)
    except OSError:  # It lies on another disk.
        shutil.copy2(binary, own)
    return own


def run_stories(wanted, binary, keep):
    """All of them, one after the other: clients are slow when they share a machine."""
    namespace.raise_loopback()
    check(namespace.only_loopback(), "there is a network beside loopback")
    place = make_place()
    binary = take_along(binary, place)
    namespace.hide_temporary([place, sys.executable, *[client.package.program for _, client, _ in wanted]])
    began, failed = time.monotonic(), 0
    for name, client, function in wanted:
        folder = os.path.join(place, f"{client.name}-{name}")
        os.makedirs(folder)
        holds = tell(name, client, function, folder, binary)
        failed += not holds
        if holds and not keep:
            shutil.rmtree(folder)
    print(f"{len(wanted)} stories, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    os.remove(binary)
    if not os.listdir(place):
        os.rmdir(place)
    return 1 if failed else 0
