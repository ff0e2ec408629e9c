"""Claude Code: how it is started, and what its tools are called."""

import os

import install

name = "claude"
product = "claude-code"
package = install.CLAUDE


def prepare(room, port):
    """Sets it up, and returns the variables it needs."""
    quiet = (
        "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER", "DISABLE_ERROR_REPORTING", "DISABLE_BUG_COMMAND",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "IS_SANDBOX",  # It refuses to skip permissions as root otherwise.
    )
    return {
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{port}", "ANTHROPIC_API_KEY": "dummy",
        **{variable: "1" for variable in quiet},
    }


def settings(room):
    """The file that holds our hooks."""
    return os.path.join(room.home, ".claude/settings.json")


def command(prompt, more=None):
    # It asks nobody itself: whatever is stopped, is stopped by us.
    return [package.program, "-p", prompt, "--output-format", "stream-json", "--verbose",
            "--dangerously-skip-permissions", *(more or [])]


def shell(line):
    return {"tool": "Bash", "input": {"command": line, "description": "a step of the task"}}


def write(path, content):
    return [[{"tool": "Write", "input": {"file_path": path, "content": content}}]]


def edit(path, old, new):
    """It wants a file to be read before it is edited."""
    return [
        [{"tool": "Read", "input": {"file_path": path}}],
        [{"tool": "Edit", "input": {"file_path": path, "old_string": old, "new_string": new}}],
    ]
