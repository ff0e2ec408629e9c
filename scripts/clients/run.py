"""Runs one client in a room, against a model that says what a story wants."""

import contextlib
import json
import os
import signal
import subprocess

from model import Model
from room import PATIENCE, check

PROMPT = "Do the task."


class Run:
    """What came of it."""

    def __init__(self, model, code):
        self.code = code
        self.told = model.main.told
        self.branches = {when: script.told for when, script in model.branches.items()}

    @property
    def results(self):
        """What tools returned to the model, the oldest first."""
        return self.told.results


def run(client, room, turns, branches=(), install=(), more=None):
    """Runs a client until it ends by itself. Every turn must have been wanted.

    `install` holds arguments for `safepoint install`, or is None where nothing is installed;
    `more` holds arguments for the client, in the place of those it has by itself.
    """
    with Model([*turns, [{"text": "All done."}]], branches) as model:
        room.variables.update(client.prepare(room, model.port))
        if install is not None:
            room.safepoint("install", client.product, *install)
        if room.wrapper:
            call_wrapper(client, room)
        code = start(client, room, more)
    keep(room, model)
    if model.errors:
        raise model.errors[0]
    said, told = len(model.main.said), model.main.told
    check(told is not None, f"the client never asked the model, and ended with {code}")
    check(model.main.is_finished, f"the client ended early, with {code}, after {said} answers: {told.results}")
    check(code == 0, f"the client ended with {code}")
    return Run(model, code)


def keep(room, model):
    """Writes down what the model was told, for whoever looks at a failure."""
    scripts = {"main": model.main, **model.branches}
    told = {name: script.told.body for name, script in scripts.items() if script.told}
    with open(os.path.join(room.root, "told.json"), "w") as file:
        json.dump(told, file, indent=1, ensure_ascii=False)


def wrap(room, *lines):
    """Puts a script in the place of `safepoint`: its lines come first, `$input` is the event."""
    path = os.path.join(room.bin, "wrapper")
    head = [
        "#!/bin/bash",
        "input=$(cat)",
        # Whether a tool is about to be used.
        """before() { [[ $input == *'"PreToolUse"'* || $input == *'"BeforeTool"'* ]]; }""",
    ]
    tail = [f'exec {room.binary} "$@" <<<"$input"', ""]
    with open(path, "w") as file:
        file.write("\n".join([*head, *lines, *tail]))
    os.chmod(path, 0o755)
    room.wrapper = path


def call_wrapper(client, room):
    """Has the client call the wrapper in the place of `safepoint`."""
    path = client.settings(room)
    with open(path) as file:
        text = file.read()
    check(room.binary in text, f"{path} does not name {room.binary}")
    with open(path, "w") as file:
        file.write(text.replace(f"{room.binary} hook", f"{room.wrapper} hook"))


def start(client, room, more):
    """Runs it, with what it prints kept in the run's folder, and returns how it ended."""
    def output(name):
        return open(os.path.join(room.root, name), "w")

    with output("client.out") as out, output("client.err") as err:
        process = subprocess.Popen(
            client.command(PROMPT, more), cwd=room.workspace, env=room.environment(),
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        )
        try:
            return process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return f"nothing within {PATIENCE} s"
        finally:
            end_group(process)


def end_group(process):
    """Clients start others of their own: none of them outlives the run."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
