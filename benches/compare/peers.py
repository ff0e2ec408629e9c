"""How each peer is driven: one class each, commands only.

A peer checkpoints the whole tree, and rolls back to its last checkpoint. What
learns the id of a checkpoint, or makes a repository ready, is not timed.
"""

import json
import os
import shutil
import subprocess


class Peer:
    """What all have in common. `tree` is worked in, `store` belongs to the peer alone."""

    name = ""
    program = ""
    own_names: tuple[str, ...] = ()  # names at the top of the tree that are the peer's, not the user's
    exact_times = False  # whether roll back promises modification times

    def __init__(self, tree, store):
        self.tree = tree
        self.store = store
        self.number = 0
        os.makedirs(os.path.join(store, "tmp"))

    @classmethod
    def missing(cls):
        """Why the peer cannot run here, or nothing."""
        return "" if shutil.which(cls.program) else f"`{cls.program}` is not installed"

    @classmethod
    def version(cls):
        answer = subprocess.run([cls.program, cls.version_word()], capture_output=True, text=True, check=False).stdout
        return (answer.splitlines() or ["?"])[0]

    @classmethod
    def version_word(cls):
        return "--version"

    def environment(self):
        """Nothing of the person who runs this: no settings, no caches, no /tmp."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": os.path.join(self.store, "tmp"),
            "TMPDIR": os.path.join(self.store, "tmp"),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
        }

    def kept(self):
        """All places whose size counts as storage: repository, index and caches alike."""
        return [self.store]

    def prepare(self):
        """Commands that make a repository; not timed."""
        return []

    def checkpoint(self):
        raise NotImplementedError

    def roll_back(self):
        raise NotImplementedError

    def learn(self, output):
        """Called after each checkpoint with what the last command has printed."""

    def tidy(self):
        """Called after storage was counted; removes what would fill the disk."""

    def in_store(self, *parts):
        return os.path.join(self.store, *parts)


class Git(Peer):
    """A shadow repository: the usual way of coding agents, and the yardstick."""

    name = "git"
    program = "git"

    def environment(self):
        person = {f"GIT_{role}_{what}": "bench@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        return super().environment() | person | {
            "GIT_DIR": self.in_store("repository"),
            "GIT_WORK_TREE": self.tree,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
        }

    def prepare(self):
        # Without these, a collection or its forerunner runs on in the background, uncounted.
        settings = (("gc.auto", "0"), ("maintenance.auto", "false"))
        return [["git", "init", "-q"], *(["git", "config", *setting] for setting in settings)]

    def checkpoint(self):
        return [["git", "add", "-A"], ["git", "commit", "--allow-empty", "-q", "-m", "x"]]

    def roll_back(self):
        return [["git", "restore", "--source", "HEAD", "--", "."], ["git", "clean", "-f", "-d", "-q"]]


class Jj(Peer):
    """Its repository is in the tree; the limit for new files is lifted."""

    name = "jj"
    program = "jj"
    own_names = (".jj",)
    command = ("jj", "--quiet", "--config", "snapshot.max-new-file-size=0")

    def environment(self):
        return super().environment() | {"JJ_USER": "bench", "JJ_EMAIL": "bench@localhost", "JJ_CONFIG": os.devnull}

    def kept(self):
        return [os.path.join(self.tree, ".jj")]

    def prepare(self):
        # Ignoring the tree here leaves all of the work to the first checkpoint.
        return [[*self.command, "--ignore-working-copy", "git", "init", "--no-colocate", "."]]

    def checkpoint(self):
        return [[*self.command, "util", "snapshot"]]

    def learn(self, _output):
        argv = ["jj", "--ignore-working-copy", "op", "log", "--no-graph", "-n", "1", "-T", "id"]
        self.operation = subprocess.run(
            argv, cwd=self.tree, env=self.environment(), capture_output=True, text=True, check=False
        ).stdout.strip()

    def roll_back(self):
        return [[*self.command, "op", "restore", self.operation]]


class Restic(Peer):
    name = "restic"
    program = "restic"

    @classmethod
    def version_word(cls):
        return "version"

    def environment(self):
        return super().environment() | {
            "RESTIC_REPOSITORY": self.in_store("repository"),
            "RESTIC_CACHE_DIR": self.in_store("cache"),
            "RESTIC_PASSWORD": "bench",
        }

    def prepare(self):
        return [["restic", "-q", "init"]]

    def checkpoint(self):
        return [["restic", "-q", "backup", "."]]

    def roll_back(self):
        # A backup of `.` has the tree at its top: any other target would be written over.
        return [["restic", "-q", "restore", "latest", "--target", self.tree]]


class Borg(Peer):
    name = "borg"
    program = "borg"

    def environment(self):
        return super().environment() | {
            "BORG_REPO": self.in_store("repository"),
            "BORG_BASE_DIR": self.in_store("base"),
            "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK": "yes",
        }

    def prepare(self):
        return [["borg", "init", "-e", "none"]]

    def checkpoint(self):
        self.number += 1
        return [["borg", "create", f"::n{self.number}", "."]]

    def roll_back(self):
        return [["borg", "extract", f"::n{self.number}"]]


class Cp(Peer):
    """A full copy each time. Only the newest is kept, for the disk's sake."""

    name = "cp -a"
    program = "cp"

    def checkpoint(self):
        self.number += 1
        return [["cp", "-a", ".", self.in_store(str(self.number))]]

    def roll_back(self):
        copy = self.in_store(str(self.number))
        return [["find", ".", "-mindepth", "1", "-delete"], ["cp", "-a", copy + "/.", "."]]

    def tidy(self):
        shutil.rmtree(self.in_store(str(self.number - 1)), ignore_errors=True)


class Rsync(Peer):
    """Hard links to the copy before. Times are compared to the nanosecond, or same-second edits are missed."""

    name = "rsync"
    program = "rsync"
    options = ("rsync", "-aHAX", "--delete", "--modify-window=-1")

    def checkpoint(self):
        self.number += 1
        link = [f"--link-dest={self.in_store(str(self.number - 1))}"] if self.number > 1 else []
        return [[*self.options, *link, "./", self.in_store(str(self.number)) + "/"]]

    def roll_back(self):
        return [[*self.options, self.in_store(str(self.number)) + "/", "./"]]


class Safepoint(Peer):
    name = "safepoint"
    program = "target/release/safepoint"  # replaced by --safepoint
    own_names = (".checkpoints", ".audit")
    exact_times = True

    @classmethod
    def missing(cls):
        return "" if os.access(cls.program, os.X_OK) else f"no binary at {cls.program}"

    def environment(self):
        return super().environment() | {"SAFEPOINT_HOME": self.in_store("home")}

    def kept(self):
        return [self.in_store("home"), *(os.path.join(self.tree, name) for name in self.own_names)]

    def command(self, *words):
        return [self.program, "-C", self.tree, *words]

    def checkpoint(self):
        return [self.command("checkpoint", "--json")]

    def learn(self, output):
        try:
            self.checkpoint_id = json.loads(output)["checkpoint"]["id"]
        except (ValueError, KeyError, TypeError):
            self.checkpoint_id = "no-id-was-printed"

    def roll_back(self):
        return [self.command("rollback", self.checkpoint_id, "--json")]


ALL = (Git, Safepoint, Jj, Restic, Borg, Cp, Rsync)
BY_NAME = {peer.name.split()[0]: peer for peer in ALL}
