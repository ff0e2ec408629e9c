"""The clients that are tested, each in one version, and how they come here.

They are installed without their install scripts: what a package brings is enough.
"""

import json
import os
import subprocess

HOME = os.environ.get("AGENT_CLIENTS") or os.path.expanduser("~/agent-clients")


class Package:
    """An npm package in a folder of its own."""

    def __init__(self, folder, name, version, program):
        self.folder = os.path.join(HOME, folder)
        self.name, self.version = name, version
        self.program = os.path.join(self.folder, "node_modules", program)
        self.description = os.path.join(self.folder, "node_modules", name, "package.json")

    def installed_version(self):
        try:
            with open(self.description) as file:
                return json.load(file)["version"]
        except FileNotFoundError:
            return None

    def ensure(self):
        """Installs it, unless exactly this version is here."""
        if self.installed_version() == self.version and os.access(self.program, os.X_OK):
            return
        print(f"installing {self.name} {self.version}", flush=True)
        os.makedirs(self.folder, exist_ok=True)
        manifest = os.path.join(self.folder, "package.json")
        if not os.path.exists(manifest):
            with open(manifest, "w") as file:
                file.write('{"private": true}\n')
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]
        command = ["npm", "install", *options, f"{self.name}@{self.version}"]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)


# The wrapper packages of the first two choose a binary for the machine; we call it directly.
CLAUDE = Package(
    "cc-latest", "@anthropic-ai/claude-code-linux-x64", "2.1.325",
    "@anthropic-ai/claude-code-linux-x64/claude",
)
CODEX = Package(
    "codex", "@openai/codex", "0.166.0",
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
)
GEMINI = Package("gemini", "@google/gemini-cli", "0.61.0", ".bin/gemini")
