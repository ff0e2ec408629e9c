"""Codex: how it is started, and what its tools are called."""

import json
import os
import re
import subprocess

import install
from room import PATIENCE, Failed, check

name = "codex"
product = "codex"
package = install.CODEX

CONFIGURATION = """\
model = "gpt-5.5"
model_provider = "scripted"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"
[features]
plugins = false
[analytics]
enabled = false
[feedback]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "SCRIPTED_KEY"
request_max_retries = 0
stream_max_retries = 0
[projects."{project}"]
trust_level = "trusted"
"""


def prepare(room, port):
    """Sets it up, and returns the variables it needs."""
    home = os.path.join(room.home, ".codex")
    path = os.path.join(home, "config.toml")
    os.makedirs(home, exist_ok=True)
    text = CONFIGURATION.format(port=port, project=room.workspace)
    if os.path.exists(path):  # Codex may have written into it: which hooks are trusted, for one.
        with open(path) as file:
            text = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", file.read())
    with open(path, "w") as file:
        file.write(text)
    return {"CODEX_HOME": home, "SCRIPTED_KEY": "dummy", "RUST_LOG": "error"}


def settings(room):
    """The file that holds our hooks."""
    return os.path.join(room.home, ".codex/hooks.json")


def command(prompt, more=None):
    # A person would look at the hooks and trust them; in most stories nobody does.
    more = ["--dangerously-bypass-hook-trust"] if more is None else more
    return [package.program, "exec", "--json", "--color", "never", *more, prompt]


def trust(room):
    """Records that the hooks of the user were reviewed, as Codex does when a person says so."""
    server = subprocess.Popen(
        [package.program, "app-server"], cwd=room.workspace, env=room.environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )

    def call(number, method, given):
        request = {"id": number, "method": method, "params": given}
        print(json.dumps(request), file=server.stdin, flush=True)
        for line in server.stdout:
            said = json.loads(line)
            if said.get("id") == number and "method" not in said:
                check("result" in said, f"codex answers `{method}` with {line}")
                return said["result"]
        raise Failed(f"codex ended in the middle of `{method}`")

    about = {"name": "test", "title": "test", "version": "0"}
    call(1, "initialize", {"clientInfo": about, "capabilities": {"experimentalApi": True}})
    print(json.dumps({"method": "initialized"}), file=server.stdin, flush=True)
    folders = call(2, "hooks/list", {"cwds": [room.workspace]})["data"]
    hashes = {hook["key"]: {"trusted_hash": hook["currentHash"]} for one in folders for hook in one["hooks"]}
    check(hashes, "codex sees no hooks")
    edit = {"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": hashes}
    call(3, "config/batchWrite", {"edits": [edit], "reloadUserConfig": True})
    server.stdin.close()
    server.wait(PATIENCE)


def shell(line):
    return {"tool": "exec_command", "input": {"cmd": line}}


def patch(*lines):
    text = "\n".join(["*** Begin Patch", *lines, "*** End Patch", ""])
    return {"tool": "apply_patch", "raw": text}


def write(path, content):
    added = [f"+{line}" for line in content.splitlines()]
    return [[patch(f"*** Add File: {path}", *added)]]


def edit(path, old, new):
    return [[patch(f"*** Update File: {path}", "@@", f"-{old}", f"+{new}")]]
