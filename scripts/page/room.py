"""A project with an agent at work in it, a store, and the page over both. All of it is thrown away."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

MAIN = 'fn main() {\n    println!("hello");\n}\n'


class Room:
    def __init__(self, binary, server):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="safepoint-page-")
        self.root = Path(self.folder.name)
        self.project = self.root / "project"
        self.home = self.root / "home"
        self.environment = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.root / "user"),
            "SAFEPOINT_HOME": str(self.home),
            "LANG": "C.UTF-8",
        }
        (self.root / "user").mkdir()
        self.project.mkdir()
        self.fill()
        self.server = subprocess.Popen(
            [server, binary, str(self.project), str(self.home)], stdout=subprocess.PIPE, text=True
        )
        self.address = self.server.stdout.readline().strip()

    def fill(self):
        """A repository with a first commit, an operator, a checkpoint, two actions."""
        self.shell("git init -q -b main . && git config user.email a@example.com && git config user.name a")
        (self.project / "src").mkdir()
        (self.project / "src/main.rs").write_text(MAIN)
        (self.project / "notes.txt").write_text("one\ntwo\nthree\n")
        self.shell("git add -A && git commit -qm first && git init -q --bare ../origin.git && git remote add origin ../origin.git")
        self.safepoint("operator", "add", "ada")
        self.safepoint("checkpoint", "--reason", "before the release")
        self.agent("sed", "-i", "s/two/TWO/", "notes.txt", objective="tidy up the notes")
        self.agent("sh", "-c", "echo fresh > extra.txt", objective="tidy up the notes")

    def shell(self, line):
        subprocess.run(["sh", "-c", line], cwd=self.project, env=self.environment, check=True, stdout=subprocess.DEVNULL)

    def safepoint(self, *words, fails=False):
        """Runs a command; the document it prints."""
        run = subprocess.run(
            [self.binary, "--json", *words], cwd=self.project, env=self.environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True,
        )
        check(fails or run.returncode == 0, f"{words}: {run.stdout} {run.stderr}")
        return json.loads(run.stdout)

    def agent(self, *words, objective=None):
        """What an agent does."""
        flags = ["--objective", objective] if objective else []
        return self.safepoint("exec", "--no-tui", *flags, "--", *words, fails=True)

    def client_writes(self, path, content):
        """A tool of an agent's client, held; its hold."""
        event = {"session_id": "c1", "cwd": str(self.project), "hook_event_name": "PreToolUse", "tool_name": "Write",
                 "tool_use_id": "t1", "tool_input": {"file_path": str(path), "content": content}}
        subprocess.run([self.binary, "hook", "claude-code"], input=json.dumps(event), cwd=self.project,
                       env=self.environment, capture_output=True, text=True)
        return self.safepoint("hold", "list")["holds"][-1]["hold_id"]

    def push(self, branch="main", objective="publish the release"):
        """An action that waits; its hold."""
        return self.agent("git", "push", "origin", f"HEAD:{branch}", objective=objective)["denial"]["hold_id"]

    def state(self, hold):
        return self.safepoint("hold", "show", hold)["state"]

    def key_file(self):
        return str(self.home / "data/operators/ada.key")

    def revoke(self, token):
        (self.root / "revoked").write_text(token + "\n")

    def run_of_workspaces(self):
        """A run of five workspaces, laid out as `workspace list` and `workspace log` print it."""
        chains = []

        def workspace(name, parent, role, directive, state, records):
            end = records[-1] if records else (None, None, None)
            about = {
                "workspace_id": name, "run": "wsp_lead", "parent": parent, "role": role, "directive": directive,
                "state": state, "former": None, "created": "2026-11-16T03:00:00.000000Z", "length": len(records),
                "head": f"rec_{name}_{len(records)}" if records else None, "status": end[1], "confidence": end[2],
            }
            checkpoints = [{
                "id": f"rec_{name}_{place}", "workspace": name, "type": "artifact", "intent": intent, "parent": None,
                "payload": {"files_changed": ["src/main.rs"], "content": "", "artifacts": []}, "status": status,
                "confidence": confidence, "timestamp": f"2026-11-16T03:{10 + place:02}:00.000000Z",
            } for place, (intent, status, confidence) in enumerate(records)]
            chains.append({"workspace": about, "checkpoints": checkpoints})

        workspace("wsp_lead", None, "coordinator", "Ship the release", "active", [])
        workspace("wsp_parser", "wsp_lead", "builder", "Write the parser", "closed", [
            ("a first grammar", "provisional", "low"), ("errors with places", "provisional", "medium"), ("all of it, with tests", "final", "high")])
        workspace("wsp_docs", "wsp_lead", "writer", "Describe it", "active", [("an outline", "provisional", "medium")])
        workspace("wsp_review", "wsp_parser", "reviewer", "Read the parser", "conflicted", [("two remarks", "final", "medium")])
        workspace("wsp_bench", "wsp_lead", "measurer", "Measure it", "blocked", [("half of it", "provisional", "low")] * 3)
        answers = self.root / "answers"
        answers.mkdir(exist_ok=True)
        listed = {"workspaces": [chain["workspace"] for chain in chains]}
        (answers / "workspace-list.json").write_text(json.dumps(listed))
        whole = {"workspace_id": "wsp_lead", "checkpoints": [], "workspaces": chains}
        (answers / "workspace-log.json").write_text(json.dumps(whole))

    def close(self):
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()


def check(holds, message):
    if not holds:
        raise AssertionError(message)
