"""A project with an agent at work in it, a store, and the page over both. All of it is thrown away."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

MAIN = 'fn main() {\n    println!("hello");\n}\n'


class Room:
    def __init__(self, binary):
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
        self.tokens = {
            "operator": self.token("ada", "--role", "operator"),
            "auditor": self.token("reads", "--role", "auditor"),
            "agent": self.token("works", "--role", "agent"),
        }
        self.server = subprocess.Popen(
            [binary, "--json", "serve", "--listen", "127.0.0.1:0", "--grace", "1s"], cwd=self.project,
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.address = json.loads(self.server.stdout.readline())["url"]

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

    def token(self, name, *flags):
        return self.safepoint("token", "create", name, *flags)["token"]

    def revoke(self, name):
        self.safepoint("token", "revoke", name)

    def run_of_workspaces(self):
        """A run of five workspaces: one at work, one taken over, one that does not fit, one that waits."""
        taxonomy = self.root / "taxonomy.json"
        taxonomy.write_text(json.dumps({
            "id": "page.run", "version": "1", "protocol_version": "0.1",
            "roles": [{"name": name, "extends": "worker"} for name in ["builder", "writer", "reviewer", "measurer"]],
        }))
        lead = self.workspace(None, "coordinator", "Ship the release", "--taxonomy", str(taxonomy))
        parser = self.workspace(lead, "builder", "Write the parser")
        docs = self.workspace(lead, "writer", "Describe it")
        review = self.workspace(lead, "reviewer", "Read the parser")
        bench = self.workspace(lead, "measurer", "Measure it")
        self.record(parser, ("a first grammar", "provisional", "low"), ("errors with places", "provisional", "medium"),
                    ("all of it, with tests", "final", "high"))
        self.record(docs, ("an outline", "provisional", "medium"))
        self.record(review, ("two remarks", "final", "medium"))
        self.record(bench, *[("half of it", "provisional", "low")] * 3)
        self.tell(bench, "blocked", "--reason", "no machine is free")
        for done in [parser, review]:
            self.tell(done, "complete")
        self.safepoint("workspace", "integrate", "--no-tui", parser["workspace_id"])
        # What a mind has found, a mind has to decide.
        self.safepoint("workspace", "integrate", "--no-tui", "--strategy", "evaluated", "--finding",
                       "semantic_contradiction=the remarks contradict each other", review["workspace_id"], fails=True)
        return lead["workspace_id"], parser["workspace_id"]

    def workspace(self, parent, role, directive, *flags):
        below = ["--parent", parent["workspace_id"]] if parent else []
        return self.safepoint("workspace", "create", "--role", role, "--directive", directive, *below, *flags)

    def record(self, workspace, *records):
        """Adds to the chain of a workspace, as its agent."""
        parent = None
        for intent, status, confidence in records:
            body = {"type": "artifact", "intent": intent, "parent": parent, "status": status, "confidence": confidence,
                    "payload": {"files_changed": ["src/main.rs"], "content": "", "artifacts": []}}
            made = self.safepoint("workspace", "checkpoint", workspace["workspace_id"], "--token", workspace["token"],
                                  "--body", json.dumps(body))
            parent = made["checkpoint"]["id"]

    def tell(self, workspace, what, *flags):
        """What an agent says to whoever is above it."""
        self.safepoint("workspace", "signal", workspace["workspace_id"], what, "--token", workspace["token"], *flags)

    def close(self):
        self.server.terminate()
        self.server.wait()
        self.folder.cleanup()


def check(holds, message):
    if not holds:
        raise AssertionError(message)
