"""Gemini CLI: how it is started, and what its tools are called."""

import json
import os

import install

name = "gemini"
product = "gemini"
package = install.GEMINI

SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "model": {"name": "gemini-2.5-flash"},
}


def prepare(room, port):
    """Sets it up, and returns the variables it needs."""
    os.makedirs(os.path.dirname(settings(room)), exist_ok=True)
    with open(settings(room), "w") as file:
        json.dump(SETTINGS, file)
    return {
        "GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": f"http://127.0.0.1:{port}",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def settings(room):
    """The file that holds our hooks."""
    return os.path.join(room.home, ".gemini/settings.json")


def command(prompt, more=None):
    # It asks nobody itself: whatever is stopped, is stopped by us.
    return [package.program, "-p", prompt, "--output-format", "stream-json", "--approval-mode", "yolo", *(more or [])]


def shell(line):
    return {"tool": "run_shell_command", "input": {"command": line, "description": "a step of the task"}}


def write(path, content):
    return [[{"tool": "write_file", "input": {"file_path": path, "content": content}}]]


def edit(path, old, new):
    change = {"file_path": path, "instruction": "a step of the task", "old_string": old, "new_string": new}
    return [[{"tool": "replace", "input": change}]]
