"""What must hold in every client, told once."""

import re

from room import changed, check
from run import run

STORIES = []

# Deletions are asked about: the agent itself answers.
GATE = """\
atlas_version: "1.0"
atlas_id: "com.example.clients"
version: "1.0.0"
name: "Deletions are confirmed"
capabilities:
  - capability_id: "work"
    name: "Work"
    actions: ["file.*", "process.*", "shell.*", "git.*", "agent.*", "safepoint.*"]
checkpoints:
  - checkpoint_id: "delete-confirm"
    name: "Delete confirmation"
    trigger: { type: action_pre, patterns: ["file.delete"] }
    mode: blocking
    questions:
      - question_id: "confirm"
        question: "Do you understand what will be gone?"
        response_type: acknowledgment
"""

# Nothing may be done before the agent has agreed to the terms.
TERMS = """\
atlas_version: "1.0"
atlas_id: "com.example.terms"
version: "1.0.0"
name: "Terms first"
capabilities:
  - capability_id: "work"
    name: "Work"
    actions: ["file.*", "process.*", "shell.*", "git.*", "agent.*", "safepoint.*"]
checkpoints:
  - checkpoint_id: "terms"
    name: "Terms"
    trigger: { type: session_start }
    mode: blocking
    questions:
      - question_id: "agree"
        question: "Will you keep to the terms?"
        response_type: boolean
    unlock_capabilities: ["work"]
"""

# Codex refuses `rm -rf` itself, and then nothing would be shown about us.
DELETION = "find src -delete"


def story(name, only=None, clients=None):
    """A function of a client and a room that raises when something does not hold."""

    def keep(function):
        for client in clients or [only]:
            STORIES.append((name, client, function))
        return function

    return keep


@story("without-hooks")
def without_hooks(client, room):
    """The others mean nothing unless a deletion goes ahead when nobody stops it."""
    run(client, room, [[client.shell(DELETION)]], install=None)
    check(not room.exists("src"), "the deletion did not go ahead")


@story("harmless")
def harmless(client, room):
    outcome = run(client, room, [[client.shell("ls src")]])
    check("util.py" in outcome.results[0], f"the output did not reach the model: {outcome.results}")
    check("ses_" in outcome.told.everything, "the model was not told of its session")


@story("reversible")
def reversible(client, room):
    """Under the built-in rules a deletion that can be undone passes, and is undone exactly.

    So it is not the rules that stop it where something is broken.
    """
    before = room.tree()
    outcome = run(client, room, [[client.shell(DELETION)]])
    check(not room.exists("src"), f"the deletion did not go ahead: {outcome.results}")
    room.safepoint("undo", room.action_that_changed("src/app.py")["action_id"])
    check(room.tree() == before, f"not the same tree: {differences(before, room.tree())}")


@story("files")
def files(client, room):
    turns = client.write(room.path("src/new.py"), "print('new')\n")
    turns += client.edit(room.path("src/app.py"), "    return a - b", "    return a + b")
    run(client, room, turns)
    check(room.read("src/new.py") == "print('new')\n", "the new file is not as written")
    check("a + b" in room.read("src/app.py"), "the edit is not there")
    made, edited = room.action_that_changed("src/new.py"), room.action_that_changed("src/app.py")
    check(changed(made) == {"src/new.py"}, f"the write has changed {changed(made)}")
    check(changed(edited) == {"src/app.py"}, f"the edit has changed {changed(edited)}")
    check(made["action_id"] != edited["action_id"], "two calls have one action id")
    check(made["session_id"] == edited["session_id"], "one session has two ids")


@story("gate")
def gate(client, room):
    room.use_atlas(GATE)
    seen = {}

    def answer(told):
        seen["denial"], seen["there"] = told.last, room.exists("src/app.py")
        found = re.search(r"safepoint session answer ses_\S+ delete-confirm --answers '[^'\n]*'", told.last)
        check(found, f"the model was not told how to go on: {told.last}")
        return [client.shell(re.sub(r"--answers '.*'", """--answers '{"confirm": "understood"}'""", found[0]))]

    outcome = run(client, room, [[client.shell(DELETION)], answer, [client.shell(DELETION)]])
    check(seen["there"], "the deletion was not stopped")
    check("Do you understand what will be gone" in seen["denial"], f"the model was not told why: {seen['denial']}")
    check(not room.exists("src"), f"the deletion did not pass after the answer: {outcome.results}")


@story("terms")
def terms(client, room):
    """The answer that unlocks everything is not locked itself."""
    room.use_atlas(TERMS)
    seen = {}

    def agree(told):
        seen["denial"] = told.last
        found = re.search(r"safepoint session answer ses_\w+ terms", told.last)
        check(found, f"the model was not told how to go on: {told.last}")
        return [client.shell(f"""{found[0]} --answers '{{"agree": true}}'""")]

    outcome = run(client, room, [[client.shell("ls src")], agree, [client.shell("ls src")]])
    check("util.py" not in seen["denial"], "it ran before the terms were agreed to")
    check("util.py" in outcome.results[2], f"it did not pass after the answer: {outcome.results}")


@story("undo")
def undo(client, room):
    before = room.read("src/util.py")
    turns = [[client.shell("sed -i s/old/new/ src/util.py")]]
    turns += client.edit(room.path("src/app.py"), "    return a - b", "    return a + b")
    run(client, room, turns)
    check("new" in room.read("src/util.py"), "sed did not run")
    action = room.action_that_changed("src/util.py")
    check(changed(action) == {"src/util.py"}, f"sed has changed {changed(action)}")
    room.safepoint("undo", action["action_id"])
    check(room.read("src/util.py") == before, "the file is not back")
    check("a + b" in room.read("src/app.py"), "the later edit is gone")


@story("session")
def session(client, room):
    """Everything a session did is taken back, to the state before it."""
    room.write("notes.txt", "nobody else has this\n", mode=0o640)
    room.write("tool.sh", "#!/bin/sh\n", mode=0o755)
    tree, status = room.tree(), room.git("status", "--porcelain")
    turns = client.write(room.path("deep/er/new.py"), "print('new')\n")
    turns += client.edit(room.path("src/app.py"), "    return a - b", "    return a + b")
    turns += [
        [client.shell("sed -i s/old/new/ src/util.py")],
        [client.shell("rm notes.txt")],
        [client.shell("mkdir -p other/empty && chmod 644 tool.sh && ln -s src link")],
    ]
    outcome = run(client, room, turns)
    check(not room.exists("notes.txt") and room.exists("link"), f"not everything was done: {outcome.results}")
    told = re.search(r"checkpoint (chk_\w+) before it", outcome.told.everything)
    check(told, "the model was not told of the checkpoint before the session")
    room.safepoint("rollback", told[1], "--yes")
    check(room.tree() == tree, f"not the same tree: {differences(tree, room.tree())}")
    check(room.git("status", "--porcelain") == status, "git sees another state")


def differences(before, after):
    names = sorted(set(before) | set(after))
    return {name: (before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)}


@story("approval")
def approval(client, room):
    """A push is put before a person, who approves it elsewhere."""
    remote = room.make("remote.git")
    room.git("init", "--quiet", "--bare", "--initial-branch=main", remote)
    room.git("remote", "add", "origin", remote)
    room.safepoint("operator", "add", "somebody")
    seen = {}

    def approve(told):
        seen["denial"] = told.last
        found = re.search(r"hld_\w+", told.last)
        check(found, f"the model was not told of the hold: {told.last}")
        seen["pushed"] = room.git("ls-remote", remote)
        shown = room.safepoint("hold", "show", found[0])
        word = ["--confirm", shown["confirm"]] if shown.get("confirm") else []
        room.safepoint("hold", "approve", found[0], "--fingerprint", shown["fingerprint"], *word)
        return [client.shell("git push origin main")]

    outcome = run(client, room, [[client.shell("git push origin main")], approve])
    check(seen["pushed"] == "", "it was pushed before anybody approved it")
    check("APPROVAL_REQUIRED" in seen["denial"], f"the model was not told why: {seen['denial']}")
    check("refs/heads/main" in room.git("ls-remote", remote), f"the approved push did not pass: {outcome.results}")
