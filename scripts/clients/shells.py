"""Lines behind the fence end as they do without us, and the client's own rules see them as they are."""

import json
import os

from room import Room, check
from run import run
from stories import story

# What a shell of the user defines, and the client takes into every line.
PROFILE = """\
greet() { echo "hello $1"; }
export KEPT=yes
alias shout='echo LOUD'
"""

LINES = [
    "cd src && pwd",
    "pwd; ls",
    "cd .. && pwd",
    'greet "$KEPT" | cat',
    "shout",
    "echo one; echo two >&2; echo three",
    "exit 3",
    "false",
    "sh -c 'exit 9'; echo $?",
    "cat <<'END'\n$HOME `date` 'quoted' \"twice\"\nEND",
    "printf '%s\\n' \"it's\" 'a \"b\"' 'c\\d' '!e'",
    "X=1 sh -c 'echo $X'; echo \"[$X]\"",
    "for i in 1 2 3; do echo $i; done | tac",
    "set -o pipefail; false | true; echo $?",
    "diff <(echo a) <(echo b)",
    "sed -i s/old/new/ src/util.py && cat src/util.py",
    "(sleep 0.2; echo late > late.txt) > /dev/null 2>&1 & echo started",
    "sleep 1; cat late.txt",
    "git add --all && git -c user.name=N -c user.email=n@example.invalid commit -qm two && git log --format=%s",
    "timeout 1 python3 -m http.server --bind 127.0.0.1 8731 > /dev/null 2>&1; echo $?",
    "echo done > done.txt; exit 7",
    "cat done.txt",
    "test -t 0 || echo no terminal",
    "nope-no-such-program",
    "echo $((6 * 7)) ${KEPT^^} {a,b}",
    "trap 'echo bye' EXIT; echo hi",
    "exec echo replaced",
    "cd /tmp && cd - > /dev/null && pwd",
    "true",
]


def lived(client, room, install):
    """What the model is told of each line, without what differs from room to room."""
    with open(os.path.join(room.home, ".bashrc"), "w") as file:
        file.write(PROFILE)
    outcome = run(client, room, [[client.shell(line)] for line in LINES], install=install)
    check(len(outcome.results) == len(LINES), f"{len(outcome.results)} of {len(LINES)} lines were answered")
    return [result.replace(room.root, "ROOM").strip() for result in outcome.results], outcome


@story("shell", only="claude")
def shell(client, room):
    """A session says the same with us as without."""
    without, _ = lived(client, Room(room.make("without"), room.binary), None)
    room.safepoint("operator", "add", "somebody")
    inside, outcome = lived(client, room, ())
    inside = [result.replace("ROOM/without", "ROOM") for result in inside]
    without = [result.replace("ROOM/without", "ROOM") for result in without]
    differing = [
        f"`{line}`\n  without: {before!r}\n  with: {after!r}"
        for line, before, after in zip(LINES, without, inside, strict=True)
        if before != after
    ]
    check(not differing, "\n".join(differing))
    check("safepoint perform" not in outcome.told.everything, "the model sees another line than its own")
    for line in LINES:
        check(json.dumps(line, ensure_ascii=False)[1:-1] in outcome.told.everything, f"`{line}` is not in the transcript")


@story("rules", only="claude")
def rules(client, room):
    """What the user has forbidden the client stays forbidden, also where we let it through."""
    settings = client.settings(room)
    os.makedirs(os.path.dirname(settings), exist_ok=True)
    denied = ["Bash(git commit:*)", "Bash(touch *)"]
    with open(settings, "w") as file:
        json.dump({"permissions": {"deny": denied, "ask": ["Bash(sed:*)"]}}, file)
    lines = [
        "git commit --allow-empty -m two",
        "echo x > made.txt && touch one.txt",
        "sed -i s/old/new/ src/util.py",
        "echo allowed > allowed.txt",
    ]
    command = [client.package.program, "-p", "Do the task.", "--output-format", "stream-json", "--verbose",
               "--permission-mode", "acceptEdits", "--allowedTools", "Bash(echo *)"]
    outcome = run(_With(client, command), room, [[client.shell(line)] for line in lines])
    check("denied" in outcome.results[0], f"the first rule is switched off: {outcome.results}")
    check(not room.exists("one.txt") and not room.exists("made.txt"), f"the second rule is switched off: {outcome.results}")
    check("old" in room.read("src/util.py"), f"what is to be asked about ran unasked: {outcome.results}")
    check(room.exists("allowed.txt"), f"what is allowed did not run: {outcome.results}")
    check(room.git("log", "--format=%s").split() == ["start"], "it was committed")


class _With:
    """A client that is started in another way."""

    def __init__(self, client, command):
        self.client, self.words = client, command

    def __getattr__(self, name):
        return getattr(self.client, name)

    def command(self, prompt, more=None):
        return self.words


@story("unasked", only="claude")
def unasked(client, room):
    """Where the hooks are switched off, no line changes anything."""
    settings = client.settings(room)

    room.variables.update(client.prepare(room, 1))
    room.safepoint("install", client.product)
    with open(settings) as file:
        content = json.load(file)
    del content["hooks"]
    with open(settings, "w") as file:
        json.dump(content, file)
    outcome = run(client, room, [[client.shell("cat README.md")], [client.shell("echo x > made.txt")]], install=None)
    check("A small project" in outcome.results[0], f"it cannot even read: {outcome.results}")
    check(not room.exists("made.txt"), f"it was written unasked: {outcome.results}")
    check("not asked about this line" in outcome.results[1], f"the model was not told why: {outcome.results}")


@story("own-commands", only="claude")
def own_commands(client, room):
    """The agent looks at what was done, in a line with other programs, and takes it back."""
    lines = ["sed -i s/old/new/ src/util.py", "safepoint log | head -n 5", "safepoint undo 2>&1 | cat", "safepoint operator add me"]
    outcome = run(client, room, [[client.shell(line)] for line in lines])
    check("sed -i" in outcome.results[1], f"the log did not reach the model: {outcome.results}")
    check("old" in room.read("src/util.py"), f"it is not taken back: {outcome.results}")
    check(room.safepoint("operator", "list")["operators"] == [], "the agent made itself an operator")
