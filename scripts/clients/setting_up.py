"""Hooks are put into a client's settings and taken out again, and `doctor` tells the truth."""

import os
import re

import codex
from room import check
from run import call_wrapper, run
from stories import DELETION, GATE, story

STOPPED = "QUESTIONS_PENDING"


def is_live(room, client):
    """What `doctor` says about a client's hooks."""
    told = room.safepoint("doctor", code=None)
    return next(one["live"] for one in told["clients"] if one["client"] == client.product)


def read(path):
    """The content of a file, or nothing where there is none."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def prepare(client, room):
    """Sets a client up before it is run, for a model that does not listen yet."""
    room.variables.update(client.prepare(room, 1))


@story("project-hooks")
def project_hooks(client, room):
    """Hooks in the settings of the project stop as well as those of the user."""
    room.use_atlas(GATE)
    outcome = run(client, room, [[client.shell(DELETION)]], install=["--project"])
    check(room.exists("src/app.py"), "the deletion went ahead")
    check(STOPPED in outcome.results[0], f"the model was not told why: {outcome.results}")


@story("uninstall")
def uninstall(client, room):
    """What was there before is there again, and nothing of ours is called any more."""
    prepare(client, room)
    before = read(client.settings(room))
    room.safepoint("install", client.product)
    installed = read(client.settings(room))
    check(installed != before, "nothing was installed")
    again = room.safepoint("install", client.product)
    check(not again["changed"] and read(client.settings(room)) == installed, "a second time changes it again")
    room.safepoint("uninstall", client.product)
    check(read(client.settings(room)) == before, "the settings are not what they were")
    room.use_atlas(GATE)
    run(client, room, [[client.shell(DELETION)]], install=None)
    check(not room.exists("src"), "something still stops it")


@story("doctor")
def doctor(client, room):
    """Its word is what the client does: not live without hooks, live with them."""
    room.use_atlas(GATE)
    prepare(client, room)
    check(not is_live(room, client), "it says that hooks are live which are not installed")
    room.safepoint("install", client.product)
    if client is codex:
        check(not is_live(room, client), "it says that hooks are live which nobody has reviewed")
        codex.trust(room)
    check(is_live(room, client), f"it says that the hooks are not live: {room.safepoint('doctor', code=None)}")
    # As after an upgrade that lies in another place.
    room.wrapper = os.path.join(room.bin, "gone")
    call_wrapper(client, room)
    check(not is_live(room, client), "it says that hooks are live whose program is gone")


@story("untrusted", only="codex")
def untrusted(client, room):
    """Codex skips hooks that nobody has reviewed; `doctor` has said so above."""
    room.use_atlas(GATE)
    run(client, room, [[client.shell(DELETION)]], more=[])
    check(not room.exists("src"), "Codex has changed: it runs hooks that nobody has reviewed")


@story("trusted", only="codex")
def trusted(client, room):
    """Once reviewed they stop, without the flag that the other stories use."""
    room.use_atlas(GATE)
    prepare(client, room)
    room.safepoint("install", client.product)
    codex.trust(room)
    outcome = run(client, room, [[client.shell(DELETION)]], install=None, more=[])
    check(room.exists("src/app.py"), "the deletion went ahead")
    check(STOPPED in outcome.results[0], f"the model was not told why: {outcome.results}")


@story("review-outdated", only="codex")
def review_outdated(client, room):
    """A hook that has changed since it was reviewed is skipped again, and `doctor` knows."""
    room.use_atlas(GATE)
    prepare(client, room)
    room.safepoint("install", client.product)
    codex.trust(room)
    change_timeouts(client.settings(room))
    check(not is_live(room, client), "it says that hooks are live which Codex skips")
    run(client, room, [[client.shell(DELETION)]], install=None, more=[])
    check(not room.exists("src"), "Codex has changed: it runs hooks that nobody has reviewed")


def change_timeouts(path):
    with open(path) as file:
        text = file.read()
    with open(path, "w") as file:
        file.write(re.sub(r'"timeout": (\d+)', r'"timeout": 1\1', text))
