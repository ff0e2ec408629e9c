"""Whatever goes wrong with us, nothing is let through."""

import contextlib
import glob
import os
import sqlite3
import subprocess

from room import check
from run import run, wrap
from stories import DELETION, story


def denied(client, room, because, break_it=lambda: None):
    """A deletion is denied when `break_it` has run, between the prompt and the call."""

    def delete(_):
        break_it()
        return [client.shell(DELETION)]

    outcome = run(client, room, [delete])
    check(room.exists("src/app.py"), f"the deletion went ahead: {outcome.results}")
    check(because in outcome.results[0], f"the model was not told why: {outcome.results}")


def store_files(room):
    found = [path for path in glob.glob(f"{room.store}/data/**", recursive=True) if os.path.isfile(path)]
    check(any(path.endswith("store.db") for path in found), f"no store in {found}")
    return found


@story("garbage-store")
def garbage_store(client, room):
    def break_it():
        for path in store_files(room):
            with open(path, "wb") as file:
                file.write(b"this is no store\n" * 512)

    denied(client, room, "is not a Safepoint store", break_it)


@story("store-deleted")
def store_deleted(client, room):
    """No new store takes the place of one that is gone."""

    def break_it():
        for path in store_files(room):
            if os.path.basename(path).startswith("store.db"):
                os.remove(path)

    denied(client, room, "is empty, but the trail", break_it)


@story("store-gone")
def store_gone(client, room):
    """A file stands where the store's folder was: that holds for root too."""

    def break_it():
        os.rename(room.store, f"{room.store}-elsewhere")
        with open(room.store, "w"):
            pass

    denied(client, room, "cannot create the directory", break_it)


@story("full-disk")
def full_disk(client, room):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "none", room.store], check=True)
    try:
        denied(client, room, "no space is left", lambda: fill(room.store))
    finally:
        subprocess.run(["umount", "--lazy", room.store], check=True)


def fill(directory):
    """Writes until nothing more fits."""
    with open(os.path.join(directory, "ballast"), "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"\0" * 4096):
            pass


@story("garbage-input")
def garbage_input(client, room):
    wrap(room, f'before && exec {room.binary} "$@" < <(head -c 300 /dev/urandom)')
    denied(client, room, "is not understood")


@story("cut-input")
def cut_input(client, room):
    wrap(room, f'before && exec {room.binary} "$@" <<<"${{input:0:60}}"')
    denied(client, room, "is not understood")


@story("hang")
def hang(client, room):
    """The client's event never comes to an end. This takes as long as a hook may: a minute."""
    pipe = os.path.join(room.bin, "pipe")
    os.mkfifo(pipe)
    # Whoever reads it holds its other end open as well, and so waits for ever.
    wrap(room, f'before && exec {room.binary} "$@" 0<>{pipe}')
    denied(client, room, "taken too long")


@story("locked-store")
def locked_store(client, room):
    """Another process holds the store and never lets go."""
    room.variables["SAFEPOINT_LOCK_TIMEOUT"] = "3s"
    holders = []

    def break_it():
        holder = sqlite3.connect(f"{room.store}/data/store.db", isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN EXCLUSIVE")
        holders.append(holder)

    try:
        denied(client, room, "is locked by another process", break_it)
    finally:
        for holder in holders:
            holder.close()
