"""An agent follows each installed skill step by step: checkpoint, mutate, verify, rollback.

The commands are read from the skill as it was installed, so that a skill that teaches one that
does not work here fails its story.
"""

import json
import os
import re
import shutil
import tempfile

from room import check
from run import run
from stories import story

SKILLS = ("safepoint-checkpoint", "safepoint-mutate", "safepoint-verify", "safepoint-rollback")
WHERE = {"claude": ".claude/skills", "codex": ".codex/skills", "gemini": ".gemini/skills"}
OPERATION = ('[{"old": "a", "new": "b"}]', '[{"old": "old", "new": "new"}]')


class Follower:
    """An agent, as far as it reads skills."""

    def __init__(self, client, room):
        self.client, self.room = client, room

    def text(self, skill):
        """The skill, as it was installed."""
        with open(os.path.join(self.room.home, WHERE[self.client.name], skill, "SKILL.md")) as file:
            return file.read()

    def load(self, skill):
        """The client's own way to a skill."""
        if self.client.name == "claude":
            return [{"tool": "Skill", "input": {"skill": skill}}]
        if self.client.name == "gemini":
            return [{"tool": "activate_skill", "input": {"name": skill}}]
        path = os.path.join(self.room.home, WHERE[self.client.name], skill, "SKILL.md")
        return [self.client.shell(f"cat {path}")]

    def commands(self, skill):
        """What it teaches, in its order."""
        program = re.escape(self.room.binary)
        found = re.findall(rf"(?<![\w/])({program} [^\n`]+)", self.text(skill))
        check(found, f"{skill} teaches nothing")
        return [line.strip() for line in found]


def fill(line, checkpoint, action):
    line = line.replace("CHECKPOINT", checkpoint).replace("ACTION", action).replace("TARGET", "src/util.py")
    return line.replace(*OPERATION).replace("src/parser.py", "src/util.py")


def follow(client, room, **how):
    """Loads and follows all four, and returns what came of it."""
    room.write("tests/test.txt", "a test\n")
    room.write("b.txt", "two\n")
    room.write("operation.json", '[{"target": "README.md", "type": "append", "content": "More.\\n"}]\n')
    room.write("Makefile", "test:\n\tgrep -q new src/util.py\n")
    room.commit("what the skills work on")
    before = room.tree()
    room.safepoint("install", client.product)
    agent = Follower(client, room)
    state = {}
    turns = []

    def shell(line, key=None):
        """One step; what it tells is kept under a name."""

        def say(told):
            if state.get("waits"):
                state[state.pop("waits")] = told.last
            if key:
                state["waits"] = key
            return [client.shell(line() if callable(line) else line)]

        turns.append(say)

    def identity(key, kind):
        found = re.search(kind, state[key])
        check(found, f"there is no {kind} in what {key} told: {state[key]}")
        return found.group(0)

    def chk(key):
        return identity(key, r"chk_[0-9]+_[0-9]+_[0-9a-z]+")

    def act(key):
        found = re.search(r'\\?"action_id\\?": ?\\?"(act_[0-9a-z]+)', state[key])
        check(found, f"there is no action in what {key} told: {state[key]}")
        return found.group(1)

    def load(skill):
        def say(told):
            if state.get("waits"):
                state[state.pop("waits")] = told.last
            state["waits"] = f"load {skill}"
            return agent.load(skill)

        turns.append(say)

    # Checkpoint: two ways to make one, and whether it can be restored.
    load("safepoint-checkpoint")
    whole, scoped, sound = agent.commands("safepoint-checkpoint")
    shell(whole, "whole")
    shell(scoped, "scoped")
    shell(lambda: fill(sound, chk("whole"), ""), "sound")
    # Mutate: one edit with a check, a batch, and one from standard input.
    load("safepoint-mutate")
    edit, batch, piped = agent.commands("safepoint-mutate")
    shell(lambda: fill(edit, chk("scoped"), ""), "edit")
    shell(whole, "second")
    shell(lambda: fill(batch, chk("second"), ""), "batch")
    shell(whole, "third")
    shell(lambda: fill(piped, chk("third"), ""), "piped")
    # Verify: the change, what is different, the checkpoint, the record.
    load("safepoint-verify")
    verifying = agent.commands("safepoint-verify")
    for number, line in enumerate(verifying):
        shell(lambda line=line: fill(line, chk("whole"), act("edit")), f"verify {number}")
    # Rollback: looked at first, then one action, a path, everything; and forth again.
    load("safepoint-rollback")
    taking = agent.commands("safepoint-rollback")
    for number, line in enumerate(taking):
        shell(lambda line=line: fill(line, chk("whole"), act("edit")), f"rollback {number}")
    shell(lambda: f"{room.binary} rollback {chk('whole')} --json", "last")
    shell("true", "end")
    outcome = run(client, room, turns, install=None, **how)
    told = {key: text for key, text in state.items() if key != "waits"}
    with open(os.path.join(room.root, "skills.json"), "w") as file:
        json.dump(told, file, indent=1)
    for skill in SKILLS:
        check(skill in outcome.told.everything, f"the client does not know {skill}")
        heading = re.search(r"^# (.+)$", agent.text(skill), re.MULTILINE).group(1)
        check(f"# {heading}\\n" in outcome.told.everything, f"{skill} was not loaded: {told[f'load {skill}']}")
    for key, text in told.items():
        check("cannot be reached" not in text and "not for agents" not in text, f"{key}: {text}")
    for key in ("edit", "batch", "piped"):
        check(re.search(r'\\?"success\\?": ?true', told[key]), f"{key}: {told[key]}")
    for key in ("sound", "verify 0"):
        check(re.search(r'\\?"valid\\?": ?true', told[key]), f"{key}: {told[key]}")
    check(re.search(r'\\?"rolled_back\\?": ?true', told["last"]), f"last: {told['last']}")
    rolled = [text for key, text in told.items() if key.startswith("rollback ") and '"rolled_back' in text.replace("\\", "")]
    check(len(rolled) >= 3, f"undo and roll back were not all done: {told}")
    check(all(re.search(r'\\?"rolled_back\\?": ?true', text) for text in rolled), f"{rolled}")
    check(room.tree() == before, "what was there before did not come back")
    return outcome


@story("skills")
def skills(client, room):
    """Under hooks."""
    follow(client, room)


class Inside:
    """A client that `safepoint run` starts."""

    def __init__(self, client, room):
        self.client, self.room = client, room

    def __getattr__(self, name):
        return getattr(self.client, name)

    def command(self, prompt, more=None):
        inner = self.client.command(prompt, more)
        return [self.room.binary, "run", "--no-tui", "--objective", "follow the skills", "--", *inner]


@story("skills-in-run")
def skills_in_run(client, room):
    """Behind the fence of `run`. A client writes in its home, which the fence lets it only here."""
    home = os.path.join(tempfile.mkdtemp(), "home")
    shutil.move(room.home, home)
    room.home = home
    follow(Inside(client, room), room)
