"""What an agent must not reach, whichever client it works in."""

import os

from room import check
from run import run
from stories import story


@story("outside")
def outside(client, room):
    """A program that looks harmless writes outside of the project: the fence stops it."""
    target = os.path.join(room.home, "outside.txt")
    room.write("build.sh", f"echo built >built.txt\necho stray >{target}\n", mode=0o755)
    outcome = run(client, room, [[client.shell("bash ./build.sh")]])
    check(not os.path.exists(target), f"it wrote outside of the project: {outcome.results}")
    check(room.exists("built.txt"), f"it was not run at all: {outcome.results}")
    room.action_that_changed("built.txt")


@story("itself")
def itself(client, room):
    """Our store, our hooks and an operator's word are out of reach."""
    room.safepoint("operator", "add", "somebody")
    settings = client.settings(room)
    attempts = [
        f"rm -rf {room.store}",
        f"sed -i s/hook/nothing/ {settings}",
        "safepoint trust grant path:. --level elevated",
        "safepoint operator add agent",
    ]
    seen = {}

    def look(told):
        with open(settings) as file:
            seen["settings"] = file.read()
        return [client.shell(attempts[0])]

    outcome = run(client, room, [look, *[[client.shell(line)] for line in attempts[1:]]])
    for line, result in zip(attempts, outcome.results, strict=True):
        check("did not let this through" in result, f"`{line}` passed: {result}")
    with open(settings) as file:
        check(file.read() == seen["settings"], "the hooks are not what they were")
    operators = [one["name"] for one in room.safepoint("operator", "list")["operators"]]
    check(operators == ["somebody"], f"these decide now: {operators}")


@story("failure")
def failure(client, room):
    """A command that fails is recorded as one that failed, with what it had changed by then."""
    line = "sed -i s/old/new/ src/util.py; echo half-way; exit 3"
    outcome = run(client, room, [[client.shell(line)]])
    check("half-way" in outcome.results[0], f"the output did not reach the model: {outcome.results}")
    action = room.action_that_changed("src/util.py")
    # Codex does not tell its hooks how a command ended.
    check(action["outcome"] in ("error", "unknown"), f"it is recorded as {action['outcome']}")
