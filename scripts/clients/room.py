"""One run's own world: a home, a project under git, and a store of Safepoint."""

import hashlib
import json
import os
import shutil
import stat
import subprocess

PATH = "/usr/local/bin:/usr/bin:/bin"
# So long a client may take before it is ended; a hook of ours takes less than a minute.
PATIENCE = 150
# What Safepoint and git keep in a project for themselves.
NOT_THE_PROJECT = {".git", ".checkpoints", ".audit"}

FILES = {
    "README.md": "A small project.\n",
    "src/app.py": "def add(a, b):\n    return a - b\n",
    "src/util.py": "SCALE = 1\nNAME = 'old'\n",
}


class Failed(Exception):
    """Something is not as a story says it must be."""


def check(holds, what):
    if not holds:
        raise Failed(what)


class Room:
    """The folders of one run, and `safepoint` as an operator outside of the client calls it."""

    def __init__(self, root, binary):
        self.root, self.binary = root, binary
        self.home = self.make("home")
        self.workspace = self.make("project")
        self.store = self.make("safepoint")
        self.bin = self.make("bin")
        self.variables = {}
        self.wrapper = None  # A program that clients call in the place of `safepoint`.
        # What a model is told to run is `safepoint …`.
        os.symlink(binary, os.path.join(self.bin, "safepoint"))
        # A login shell forgets the path it was given; Codex starts one for each command.
        with open(os.path.join(self.home, ".profile"), "w") as file:
            file.write(f"PATH={self.bin}:$PATH\n")
        for name, content in FILES.items():
            self.write(name, content)
        self.git("init", "--quiet", "--initial-branch=main")
        self.commit("start")

    def make(self, name):
        path = os.path.join(self.root, name)
        os.makedirs(path)
        return path

    def environment(self):
        """The only variables that anything here is started with."""
        node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
        return {
            "PATH": f"{self.bin}:{PATH}:{node}", "HOME": self.home, "SHELL": "/bin/bash",
            "LANG": "C.UTF-8", "TERM": "dumb", "NO_COLOR": "1", "SAFEPOINT_HOME": self.store,
            **self.variables,
        }

    def path(self, name):
        return os.path.join(self.workspace, name)

    def exists(self, name):
        return os.path.lexists(self.path(name))

    def read(self, name):
        with open(self.path(name)) as file:
            return file.read()

    def write(self, name, content, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as file:
            file.write(content)
        os.chmod(self.path(name), mode)

    def git(self, *arguments):
        who = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.invalid"]
        command = ["git", *who, "-C", self.workspace, *arguments]
        return subprocess.run(command, env=self.environment(), check=True, capture_output=True, text=True).stdout

    def commit(self, message):
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)

    def use_atlas(self, text):
        """The project is judged under this atlas."""
        self.write("atlas.yaml", text)
        self.write("safepoint.yaml", "atlases: [atlas.yaml]\n")
        self.commit("an atlas")

    def safepoint(self, *arguments, code=0):
        """Runs it, and returns the JSON it prints. It ends with this code, or any where that is None."""
        command = [self.binary, *arguments, "--json"]
        ended = subprocess.run(
            command, cwd=self.workspace, env=self.environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=PATIENCE,
        )
        told = f"`safepoint {' '.join(arguments)}` ended with {ended.returncode}: {ended.stdout}{ended.stderr}"
        check(code in (None, ended.returncode), told)
        return json.loads(ended.stdout or "null")

    def actions(self):
        """What was done, the oldest first."""
        return list(reversed(self.safepoint("log")["actions"]))

    def action_that_changed(self, name):
        """The only action that changed a file."""
        found = [action for action in self.actions() if name in changed(action)]
        check(len(found) == 1, f"{len(found)} actions have changed {name}, not one: {self.actions()}")
        return found[0]

    def tree(self):
        """Everything in the project: kind, mode and content by name."""
        seen = {}
        for directory, folders, files in os.walk(self.workspace):
            if directory == self.workspace:
                folders[:] = [name for name in folders if name not in NOT_THE_PROJECT]
            for name in folders + files:
                path = os.path.join(directory, name)
                seen[os.path.relpath(path, self.workspace)] = look(path)
        return seen


def look(path):
    """Kind, mode and content of one thing."""
    found = os.lstat(path)
    kind = stat.filemode(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return kind, os.readlink(path)
    if not stat.S_ISREG(found.st_mode):
        return kind, ""
    with open(path, "rb") as file:
        return kind, hashlib.sha256(file.read()).hexdigest()


def changed(action):
    return {change["path"] for change in action["changes"] or []}
