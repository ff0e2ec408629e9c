"""Forty lines of an ordinary session end with us as they do without us, in each client.

What the fence refuses is not among them: for that there are the stories in `reach`.
"""

import hashlib
import http.server
import io
import json
import os
import re
import subprocess
import tarfile
import threading

from room import Room, check
from run import run
from stories import story

PROFILE = """\
greet() { echo "hello $1"; }
export KEPT=yes
alias shout='echo LOUD'
"""

SERVE = """\
import http.server, sys, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/README.md") as reply:
    print(reply.status, reply.read().decode().strip())
"""


def lines(registry, port):
    return [
        "pwd; ls",
        "cd src && pwd",
        "pwd",
        "cd .. && ls README.md src/../README.md",
        "export LATER=1; echo $LATER",
        'echo "[$LATER] [$KEPT]"',
        "greet you",
        "shout",
        "echo one; echo two >&2; echo three",
        "exit 3",
        "(exit 9); echo $?",
        "cat <<'END' > notes.txt\n$HOME `date` 'quoted' \"twice\"\nEND\ncat notes.txt",
        "X=1 sh -c 'echo $X'; echo \"[$X]\"",
        "for i in 1 2 3; do echo $i; done | tac",
        "set -o pipefail; false | true; echo $?",
        "sed -i s/old/new/ src/util.py && grep NAME src/util.py",
        "printf 'import app\\nassert app.add(3, 2) == 1\\nprint(\"passed\")\\n' > src/check.py && python3 src/check.py",
        "cat > serve.py <<'END'\n" + SERVE + "END\npython3 serve.py 2>/dev/null",
        f"timeout 15 python3 -m http.server --bind 127.0.0.1 {port} > /dev/null 2>&1 & sleep 1; "
        f"timeout 5 curl -s http://127.0.0.1:{port}/README.md",
        f"curl -s http://127.0.0.1:{port}/README.md | wc -c",
        "git status --short | sort",
        "git add --all && git -c user.name=N -c user.email=n@example.invalid commit -qm two && git log --format=%s",
        "git checkout -q -b side && git branch --format='%(refname:short)'",
        "git stash list | wc -l; git diff --stat HEAD~1 | tail -n 1",
        "echo '{\"name\": \"project\", \"private\": true}' > package.json; ls package.json",
        f"npm install --registry {registry} --no-audit --no-fund --no-update-notifier --loglevel=error left > /dev/null; echo $?",
        "cat node_modules/left/index.js",
        "(sleep 0.2; echo late > late.txt) > /dev/null 2>&1 & echo started",
        "sleep 1; cat late.txt",
        "timeout --signal=INT 1 sleep 5; echo $?",
        "timeout --signal=HUP 1 sleep 5; echo $?",
        "git tag one && git tag --list && git tag -d one | wc -l",
        "trap 'echo bye' EXIT; echo hi",
        "mkdir -p build/deep && tar cf build/all.tar src && tar tf build/all.tar | sort && rm -r build",
        "mkdir -p /tmp/ordinary && echo x > /tmp/ordinary/a && cat /tmp/ordinary/a",
        "test -t 0 || echo no terminal",
        "nope-no-such-program",
        "umask; ulimit -c; echo $((6 * 7)) {a,b}",
        "find . -name '*.py' -not -path './.git/*' | xargs wc -l | sort | tail -n 1",
        "exec echo replaced",
    ]


# What is put before a person: nobody can tell what it does, or it cannot be undone.
HELD = [
    "sh -c 'kill -TERM $$'; echo $?",
    "D=$(mktemp -d) && echo x > $D/a && rm -r $D",
    "python3 -c 'print(6 * 7)'",
]


class Registry(http.server.BaseHTTPRequestHandler):
    """A registry of one package, which nobody behind the fence has started."""

    def do_GET(self):
        tarball = self.server.tarball
        if self.path.endswith(".tgz"):
            body, kind = tarball, "application/octet-stream"
        else:
            address = f"http://127.0.0.1:{self.server.server_port}/left/-/left-1.0.0.tgz"
            dist = {"tarball": address, "shasum": hashlib.sha1(tarball).hexdigest()}
            version = {"name": "left", "version": "1.0.0", "main": "index.js", "dist": dist}
            document = {"name": "left", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            body, kind = json.dumps(document).encode(), "application/json"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def packed():
    content = {
        "package/package.json": b'{"name": "left", "version": "1.0.0", "main": "index.js"}',
        "package/index.js": b'module.exports = "left"\n',
    }
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, data in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def plain(room, text):
    """What a client tells of a line, without what differs from one run to the next."""
    text = text.replace(room.root, "ROOM").replace("ROOM/without", "ROOM")
    for pattern in (
        r"Chunk ID: \w+\n", r"Wall time: [\d.]+ seconds\n", r"Original token count: \d+\n",
        r"Process Group PGID: \d+\n?", r"Background PIDs: [\d, ]+\n?", r"^bash: line \d+: ", r"^bash: ", r"\[\d+\] \d+\n",
        r"[\w/.-]*bash: (line \d+: )?", r"\[System\] Tool input parameters were modified by a hook before execution\.",
    ):
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    # Standard output and errors come to some clients over two pipes.
    return sorted(text.strip().splitlines())


def lived(client, room, registry, port, install):
    for name in (".bashrc", ".bash_profile"):
        with open(os.path.join(room.home, name), "w") as file:
            file.write(PROFILE + f"PATH={room.bin}:$PATH\n")
    wanted = lines(registry, port)
    outcome = run(client, room, [[client.shell(line)] for line in wanted], install=install)
    check(len(outcome.results) == len(wanted), f"{len(outcome.results)} of {len(wanted)} lines were answered")
    return [plain(room, result) for result in outcome.results]


def open_registry(room, registry):
    """Nobody has named the registry: the first program that wants it is refused, and an operator opens it."""
    room.safepoint("operator", "add", "somebody")
    wants = [room.binary, "exec", "--no-tui", "--", "npm", "ping", "--registry", registry, "--fetch-retries=0"]
    subprocess.run(wants, cwd=room.workspace, env=room.environment(), capture_output=True)
    waiting = {one["canonical_request_summary"]: one["hold_id"] for one in room.safepoint("hold", "list")["holds"]}
    hold = waiting.get(f"net.connect {registry.removeprefix('http://')}")
    check(hold, f"nobody is asked about the registry: {waiting}")
    shown = room.safepoint("hold", "show", hold)
    word = ["--confirm", shown["confirm"]] if shown["confirm"] else []
    room.safepoint("hold", "approve", hold, "--for", "project", "--fingerprint", shown["fingerprint"], *word)


@story("ordinary")
def ordinary(client, room):
    """Editing, testing with a server of its own, committing, installing, jobs, signals."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry) as server:
        server.tarball = packed()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        registry = f"http://127.0.0.1:{server.server_port}"
        without = lived(client, Room(room.make("without"), room.binary), registry, 8731, None)
        open_registry(room, registry)
        # The server of the first session may still be there.
        inside = lived(client, room, registry, 8732, ())
        server.shutdown()
    differing = [
        f"`{line}`\n  without: {before!r}\n  with: {after!r}"
        for line, before, after in zip(lines(registry, 8732), without, inside, strict=True)
        if before != after
    ]
    check(not differing, "\n".join(differing))
    outcome = run(client, room, [[client.shell(line)] for line in HELD])
    for line, result in zip(HELD, outcome.results, strict=True):
        check("did not let this through" in result, f"`{line}` is not put before a person: {result}")
