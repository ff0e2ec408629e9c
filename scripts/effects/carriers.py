"""The ways in which a line reaches the machine: without Safepoint, and through it.

A carrier says whether the line was held, and what was printed where it ran.
"""

import json
import os
import subprocess

from namespace import HOME, PATH, PROJECT, SAFEPOINT, as_user

# `blind` is `claude` with the parser's verdict switched to harmless.
NAMES = ["claude", "replaced", "exec", "blind"]
# How a denial of `safepoint exec` begins.
DENIED = "denied "
# What it says of a line that failed.
ENDED = "safepoint: the command "
# So long a line may take.
PATIENCE = 60

ENVIRONMENT = {
    "PATH": f"{HOME}/.local/bin:{PATH}", "HOME": HOME, "USER": "dev", "LOGNAME": "dev", "SHELL": "/bin/bash",
    "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1",
}


class Broken(Exception):
    """Something went wrong that no effect explains."""


class Ran:
    """How a line ended: held, or run with this output."""

    def __init__(self, held, output):
        self.held, self.output = held, output


def start(words, environment=None, given=None):
    """Runs a program as the ordinary user, and returns how it ended."""
    before, how = as_user()
    process = subprocess.Popen(
        [*before, *words], cwd=PROJECT, env=environment or ENVIRONMENT, start_new_session=True,
        stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **how,
    )
    try:
        output, _ = process.communicate(given, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        # Whoever holds the pipe in the background is ended with everything else.
        os.killpg(process.pid, 9)
        try:
            output, _ = process.communicate(timeout=2)
        except subprocess.TimeoutExpired:
            output = ""
        output += "\n(ended by the campaign: it took too long)"
    return process.returncode, output


def quoted(text):
    return "'" + text.replace("'", "'\"'\"'") + "'"


def carry(name, line, number):
    """Runs the line by the carrier of this name."""
    if name == "control":
        return Ran(False, start(["bash", "-c", line])[1])
    if name == "exec":
        return through_exec(line)
    if name == "replaced":
        # Both clients in turn.
        return replaced("gemini" if number % 2 else "codex", line)
    return prefixed(line, {"SAFEPOINT_SWITCH": "shell.harmless"} if name == "blind" else {})


def through_exec(line):
    code, output = start([SAFEPOINT, "exec", "--no-tui", "--", "bash", "-c", line])
    # What is held ends with 2 and says so; a line may end with 2 as well.
    held = code == 2 and output.startswith(DENIED)
    if code and not held and ENDED not in output:
        raise Broken(f"`exec` ended with {code}: {output}")
    return Ran(held, output)


def is_next_held(name):
    """Whether what the line has left is put before a person with the next action."""
    return carry("exec" if name == "exec" else "claude", "echo next > next", 0).held


class Client:
    """A client's hooks: what it says before a line and after it."""

    def __init__(self, product, before, after, tool, variables):
        self.product, self.before, self.after, self.tool = product, before, after, tool
        self.environment = {**ENVIRONMENT, **variables}

    def say(self, event, line, **more):
        said = {
            "session_id": "s-1", "transcript_path": "/dev/null", "cwd": PROJECT, "permission_mode": "default",
            "hook_event_name": event, "tool_name": self.tool, "tool_input": {"command": line},
            "tool_use_id": f"t-{event}-{len(line)}", **more,
        }
        code, output = start([SAFEPOINT, "hook", self.product], self.environment, json.dumps(said))
        if code not in (0, 2):
            raise Broken(f"the hook ended with {code}: {output}")
        return code, output

    def ask(self, line):
        """Whether the line is held; what is to be run instead, or nothing; and what was said."""
        code, output = self.say(self.before, line, tool_use_id="t-1")
        if code == 2:
            return True, None, output
        answer = json.loads(output) if output.strip() else {}
        specific = answer.get("hookSpecificOutput", {})
        if "deny" in (answer.get("decision"), specific.get("permissionDecision")):
            return True, None, output
        instead = specific.get("updatedInput") or specific.get("tool_input") or {}
        return False, instead.get("command"), output

    def tell(self, line, output):
        self.say(self.after, line, tool_use_id="t-1", tool_response={"stdout": output[:1000]})


def prefixed(line, variables):
    """As Claude Code does it: asked about as it was written, and its shell started through us."""
    prefix = f"{os.path.dirname(SAFEPOINT)}/./{os.path.basename(SAFEPOINT)}"
    client = Client("claude-code", "PreToolUse", "PostToolUse", "Bash", {
        "CLAUDE_CODE_SHELL_PREFIX": prefix, "CLAUDE_CODE_SESSION_ID": "s-1", "CLAUDECODE": "1", **variables,
    })
    held, instead, said = client.ask(line)
    if held:
        return Ran(True, said)
    if instead:
        raise Broken("the line was replaced, though its shell is started through us")
    text = f"shopt -u extglob 2>/dev/null || true && eval {quoted(line)} < /dev/null && pwd -P >| /dev/null"
    _, output = start(["bash", "-c", f"{quoted(prefix)} {quoted(text)}"], client.environment)
    client.tell(line, output)
    return Ran(False, output)


def replaced(product, line):
    """As others do it: another line is run in the place of the one that was asked about."""
    form = ("BeforeTool", "AfterTool", "run_shell_command") if product == "gemini" else ("PreToolUse", "PostToolUse", "Bash")
    client = Client(product, *form, {})
    held, instead, said = client.ask(line)
    if held:
        return Ran(True, said)
    _, output = start(["bash", "-c", instead or line], client.environment)
    client.tell(line, output)
    return Ran(False, output)


def check(name):
    """Refuses to go on with a carrier that holds everything: its silence would say nothing."""
    ran = carry(name, "echo fine-$((1 + 1)) > /tmp/fine; cat /tmp/fine", 0)
    if ran.held or "fine-2" not in ran.output:
        raise Broken(f"`{name}` does not carry a harmless line: {ran.output}")


def has_switch():
    """Whether this binary was built with the switch, which a line that is held otherwise shows."""
    line = "rm -rf /srv/out/tree"
    return prefixed(line, {}).held and not prefixed(line, {"SAFEPOINT_SWITCH": "shell.harmless"}).held
