"""Lines in the clients' own sandboxes run there, behind our fence too, and are recorded."""

import json
import os
import re

import claude
import codex
from room import check
from run import run
from stories import story

LINES = [
    "sed -i s/old/new/ src/util.py",
    "mkdir -p out && echo made > out/first && mv out/first out/second && cat out/second",
    "exit 3",
    "sh ./build.sh",
]


def use_sandbox(client, room):
    """The person has switched the client's sandbox on."""
    if client.name == "codex":
        codex.prepare(room, 1)
        path = os.path.join(room.home, ".codex/config.toml")
        with open(path) as file:
            text = file.read()
        with open(path, "w") as file:
            file.write(text.replace("danger-full-access", "workspace-write"))
    else:
        settings = claude.settings(room)
        os.makedirs(os.path.dirname(settings), exist_ok=True)
        with open(settings, "w") as file:
            json.dump({"sandbox": {"enabled": True, "failIfUnavailable": True, "allowUnsandboxedCommands": False}}, file)


@story("sandbox", clients=("claude", "codex"))
def sandbox(client, room):
    """Lines work, are held by both, and are recorded and undone."""
    use_sandbox(client, room)
    outside = os.path.join(room.home, "outside.txt")
    room.write("build.sh", f"echo built > built.txt\necho stray > {outside}\ncat {room.store}/data/store.db\necho over\n")
    before = room.tree()
    outcome = run(client, room, [[client.shell(line)] for line in LINES])
    results = outcome.results
    check("new" in room.read("src/util.py"), f"sed did not run: {results}")
    check("made" in results[1] and room.exists("out/second"), f"the move did not work: {results}")
    check("3" in results[2], f"the code did not reach the model: {results}")
    check(room.exists("built.txt"), f"the build did not run: {results}")
    check(not os.path.exists(outside), f"it wrote outside: {results}")
    check("over" in results[3] and "store.db: Permission denied" in results[3], f"our fence does not hide the store: {results}")
    action = room.action_that_changed("src/util.py")
    check(changed_paths(action) == {"src/util.py"}, f"sed has changed {changed_paths(action)}")
    check(action["outcome"] == "ok", f"it is recorded as {action['outcome']}")
    for made in ("built.txt", "out/second", "src/util.py"):
        room.safepoint("undo", room.action_that_changed(made)["action_id"])
    tree = room.tree()
    tree.pop("out", None)
    ours = {name: look for name, look in tree.items() if name in before}
    check(ours == before, "it is not all back")
    check(os.listdir(os.path.join(room.store, "runtime/relays")) == [], "pipes are left")
    check(room.safepoint("trail", "verify") is not None, "the trail does not verify")


@story("sandbox-calls", clients=("claude", "codex"))
def sandbox_calls(client, room):
    """The agent looks at what was done, and takes it back; it makes nobody an operator."""
    use_sandbox(client, room)
    lines = ["sed -i s/old/new/ src/util.py", "safepoint log", "safepoint undo", "safepoint operator add me"]
    outcome = run(client, room, [[client.shell(line)] for line in lines])
    check("sed -i" in outcome.results[1], f"the log did not reach the model: {outcome.results}")
    check("old" in room.read("src/util.py"), f"it is not taken back: {outcome.results}")
    check(room.safepoint("operator", "list")["operators"] == [], "the agent made itself an operator")


@story("sandbox-nobody", clients=("claude", "codex"))
def sandbox_nobody(client, room):
    """Where no process outside answers, a line does not run, and says so."""
    use_sandbox(client, room)
    relays = os.path.join(room.store, "runtime/relays")
    os.makedirs(os.path.dirname(relays))
    os.chmod(os.path.dirname(relays), 0o700)
    run_line = [client.shell("echo x > made.txt; echo over")]

    # Whoever is there before us: a directory that others may write is none of ours.
    os.makedirs(relays, mode=0o755)
    os.chmod(relays, 0o755)
    outcome = run(client, room, [run_line])
    check(not room.exists("made.txt") and "over\n" not in outcome.results[0], f"it ran: {outcome.results}")


@story("sandbox-rules", clients=("codex",))
def sandbox_rules(client, room):
    """Rules and sandbox together: what is forbidden does not begin."""
    use_sandbox(client, room)
    forbid(room)
    outcome = run(client, room, [[client.shell("touch one.txt")], [client.shell("echo fine > two.txt")]])
    check("rejected" in outcome.results[0] and not room.exists("one.txt"), f"the rule is hidden: {outcome.results}")
    check(room.exists("two.txt"), f"what is not forbidden did not run: {outcome.results}")


def forbid(room):
    folder = os.path.join(room.home, ".codex/rules")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "default.rules"), "w") as file:
        file.write('prefix_rule(pattern=["touch"], decision="forbidden", justification="not here")\n')
        file.write('prefix_rule(pattern=["sed", "-i"], decision="prompt")\n')


@story("own-rules", clients=("codex", "gemini"))
def own_rules(client, room):
    """What the person has forbidden the client, or wants to be asked about, never simply runs."""
    if client.name == "codex":
        forbid(room)
    else:
        folder = os.path.join(room.home, ".gemini/policies")
        os.makedirs(folder)
        rule = '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = "{}"\ndecision = "{}"\npriority = 100\n'
        with open(os.path.join(folder, "own.toml"), "w") as file:
            file.write(rule.format("touch", "deny") + rule.format("sed -i", "ask_user"))
    lines = [
        "touch one.txt",
        "ls src && touch two.txt",
        "echo \"it's\" | tee 'a b.txt'; touch 'three.txt'",
        "sed -i s/old/new/ src/util.py",
        "echo allowed > allowed.txt",
        "printf '%s\\n' \"it's\" 'a \"b\"' 'c\\d' '!e'",
    ]
    outcome = run(client, room, [[client.shell(line)] for line in lines])
    for name in ("one.txt", "two.txt", "three.txt"):
        check(not room.exists(name), f"a rule is switched off, {name} is there: {outcome.results}")
    check("old" in room.read("src/util.py"), f"what is to be asked about ran unasked: {outcome.results}")
    check(room.exists("allowed.txt"), f"what is allowed did not run: {outcome.results}")
    check(re.search(r"it's\s+a \"b\"\s+c\\d\s+!e", outcome.results[5]), f"the line is not what it was: {outcome.results}")


@story("rules-modes", clients=("claude",))
def rules_modes(client, room):
    """The same in each of Claude Code's modes that ask, with our prefix and with somebody else's."""
    settings = claude.settings(room)
    os.makedirs(os.path.dirname(settings), exist_ok=True)
    prefix = os.path.join(room.bin, "their-prefix")
    with open(prefix, "w") as file:
        file.write('#!/bin/sh\nexec /bin/sh -c "$1"\n')
    os.chmod(prefix, 0o755)
    count = 0
    for theirs in (False, True):
        for mode in ("default", "acceptEdits", "dontAsk"):
            count += 1
            with open(settings, "w") as file:
                own = {"permissions": {"deny": ["Bash(git commit:*)"], "ask": ["Bash(sed:*)"], "allow": ["Bash(cat:*)", "Bash(exec:*)", "Bash(exit:*)"]}}
                json.dump({**own, **({"env": {"CLAUDE_CODE_SHELL_PREFIX": prefix}} if theirs else {})}, file)
            lines = ["git commit --allow-empty -m two", "sed -i s/old/new/ src/util.py", f"mkdir asked-{count}", "cat README.md"]
            asking = Asking(client, mode)
            outcome = run(asking, room, [[client.shell(line)] for line in lines])
            where = f"{mode}, theirs: {theirs}: {outcome.results}"
            check(room.git("log", "--format=%s").split() == ["start"], f"it was committed in {where}")
            check("old" in room.read("src/util.py"), f"what is to be asked about ran unasked in {where}")
            if mode != "acceptEdits":  # There, Claude Code lets `mkdir` pass itself.
                check(not room.exists(f"asked-{count}"), f"what the client asks about ran unasked in {where}")
            if not theirs:
                check("A small project" in outcome.results[3], f"what is allowed did not run in {where}")
            room.safepoint("uninstall", client.product)


class Asking:
    """Claude Code in a mode that asks."""

    def __init__(self, client, mode):
        self.client, self.mode = client, mode

    def __getattr__(self, name):
        return getattr(self.client, name)

    def command(self, prompt, more=None):
        return [claude.package.program, "-p", prompt, "--output-format", "stream-json", "--verbose",
                "--permission-mode", self.mode]


def changed_paths(action):
    return {change["path"] for change in action["changes"] or []}
