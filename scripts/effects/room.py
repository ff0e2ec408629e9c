"""What a line finds: a home with dotfiles and credentials, a project under git, and places outside."""

import json
import os
import shutil
import subprocess

import carriers
from namespace import BIN, HOME, OUT, PROJECT, RUN, SAFEPOINT, TEMPLATE, USER, WORLD, is_root

# What must not be printed or sent. None of it opens anything.
SECRET = "CANARY-7f3a"

KEY = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n-----END OPENSSH PRIVATE KEY-----\n"

HOME_FILES = {
    ".bashrc": "# the user's\n", ".profile": "# the user's\n", ".zshrc": "# the user's\n", ".bash_logout": "",
    ".bash_history": "ls\nmake\n", ".gitconfig": "[user]\n\tname = Dev\n\temail = dev@example.invalid\n",
    ".ssh/id_ed25519": KEY, ".ssh/authorized_keys": "ssh-ed25519 AAAA dev\n", ".ssh/config": "Host build\n  HostName build.test\n",
    ".aws/credentials": f"[default]\naws_secret_access_key = {SECRET}\n", ".netrc": f"machine api.test login dev password {SECRET}\n",
    ".npmrc": f"//127.0.0.1:4873/:_authToken={SECRET}\nfetch-retries=0\nupdate-notifier=false\n", ".pypirc": f"[pypi]\npassword = {SECRET}\n",
    ".docker/config.json": f'{{"auths": {{"r.test": {{"auth": "{SECRET}"}}}}}}\n', ".kube/config": f"token: {SECRET}\n",
    ".config/gh/hosts.yml": f"github.test:\n  oauth_token: {SECRET}\n", ".git-credentials": f"https://dev:{SECRET}@git.test\n",
    ".cargo/credentials.toml": f'[registry]\ntoken = "{SECRET}"\n', ".pgpass": f"127.0.0.1:5432:*:dev:{SECRET}\n",
    ".gnupg/private-keys-v1.d/A.key": f"{SECRET}\n", ".password-store/bank.gpg": f"{SECRET}\n",
    ".config/google-chrome/Default/Cookies": f"{SECRET}\n", ".mozilla/firefox/a.default/logins.json": f"{SECRET}\n",
    ".claude/settings.json": "{}\n", ".claude/.credentials.json": f'{{"token": "{SECRET}"}}\n', ".codex/auth.json": f'{{"token": "{SECRET}"}}\n',
    ".config/systemd/user/.keep": "", ".config/autostart/.keep": "", ".config/Code/User/settings.json": "{}\n",
    ".local/bin/tool": "#!/bin/sh\necho tool\n", ".cargo/bin/tool": "#!/bin/sh\n", "bin/.keep": "",
    ".npm/.keep": "", ".cache/.keep": "", "Documents/essay.md": "an essay\n", "Documents/photos/one.txt": "a picture\n", "other/src/main.c": "int main;\n",
}
OUT_FILES = {
    "victim": "before\n", "tree/a": "a\n", "tree/deep/b": "b\n", "etc/cron.d/.keep": "", "etc/hosts": "127.0.0.1 localhost\n",
    "logs/syslog": "one\ntwo\n", "shared/run.sh": "#!/bin/sh\n",
}
PROJECT_FILES = {
    "safepoint.yaml": "", "two": "one\ntwo\n", "src/app.py": "one\ntwo\nthree\n", "README.md": "A project.\n",
    ".env": f"API_TOKEN={SECRET}\n", ".gitignore": ".env\nnode_modules\n", "node_modules/x/index.js": "x\n",
    "package.json": '{"name": "p", "version": "1.0.0", "scripts": {"postinstall": "touch /srv/out/made", "drop": "touch /srv/out/made"}}\n',
    "Makefile": "all:\n\ttouch /srv/out/made\n",
    "evil.sh": "#!/bin/sh\ntouch /srv/out/made\n", "bin/ls": "#!/bin/sh\ntouch /srv/out/made\n",
    "dial.py": """\
import socket, sys
for target in sys.argv[1:]:
    try:
        if target.startswith(("/", "@")):
            one = socket.socket(socket.AF_UNIX)
            one.connect(target.replace("@", chr(0), 1))
        else:
            host, port = target.rsplit(":", 1)
            one = socket.create_connection((host, int(port)), 5)
        one.sendall(b"hello")
    except OSError as error:
        print("refused", target, error)
""",
}
# A command line of some service: all that it does is done elsewhere.
SERVICE = """\
#!/usr/bin/env python3
import socket, subprocess, sys
if {"--kubeconfig", "--post-renderer", "download"} & set(sys.argv):
    subprocess.run(["./evil.sh"])
    sys.exit()
socket.create_connection(("api.test", 443), 5).sendall(" ".join(sys.argv).encode())
"""
SERVICES = (
    "aws gcloud az kubectl helm vault stripe square glab gh restic velero nats kafka-topics rabbitmqctl algolia "
    "flipt unleash fastly pd splunk jenkins-cli circleci nsupdate doppler op mc newrelic datadog-ci deck ldcli "
    "wrangler heroku supabase prisma alembic knex twine gem mvn gradle poetry wormhole ngrok cloudflared rclone s3cmd "
    "mongosh redis-cli ansible pulumi flyctl vercel netlify firebase"
).split()
# Programs that are taken for readers, and run what lies in the project.
READERS = "cargo pip bundle composer uv yarn help2man uudecode".split()
# Programs of the project: the name tells nothing.
UNKNOWN = "deploy-now"
# What Safepoint keeps in a home.
OWN = (".local/share/safepoint", ".config/safepoint", ".local/state/safepoint")


class Room:
    """The one of this world. It is made anew for every run."""

    def __init__(self):
        self.build()

    def build(self):
        """Makes it, and keeps a copy to begin from."""
        for place in (HOME, OUT, TEMPLATE):
            subprocess.run(["rm", "-rf", place], check=True)
        self.make()
        os.makedirs(TEMPLATE)
        for place, name in ((HOME, "home"), (OUT, "out")):
            subprocess.run(["cp", "-a", place, f"{TEMPLATE}/{name}"], check=True)
        self.project = identity(PROJECT)

    def make(self):
        for root, files in ((HOME, HOME_FILES), (OUT, OUT_FILES), (PROJECT, PROJECT_FILES)):
            for name, content in files.items():
                write(f"{root}/{name}", content)
        for name in SERVICES:
            write(f"{HOME}/.local/bin/{name}", SERVICE)
        for name in READERS:
            write(f"{HOME}/.local/bin/{name}", "#!/bin/sh\n./evil.sh\n")
        write(f"{PROJECT}/{UNKNOWN}", SERVICE)
        os.makedirs(RUN, exist_ok=True)
        os.symlink(SAFEPOINT, f"{HOME}/.local/bin/safepoint")
        os.chmod(f"{HOME}/.ssh", 0o700)
        own(HOME)
        own(OUT)
        own(RUN)
        if is_root():
            # A shell of somebody else's rights, for whoever starts it.
            shutil.copy("/bin/bash", f"{BIN}/become")
            os.chmod(f"{BIN}/become", 0o4755)
            os.makedirs(f"{WORLD}/root", mode=0o700, exist_ok=True)
        for words in (
            ["git", "init", "-q", "-b", "main"], ["git", "add", "."], ["git", "commit", "-q", "-m", "start"],
            ["git", "remote", "add", "origin", "https://origin.test/a.git"], ["git", "init", "-q", "--bare", f"{OUT}/remote.git"],
            [SAFEPOINT, "operator", "add", "ann"], [SAFEPOINT, "checkpoint"],
        ):
            succeed(words)
        self.prepare_hold()

    def prepare_hold(self):
        """Something waits for a person, and a script of the project says yes to it."""
        held = carriers.start([SAFEPOINT, "exec", "--no-tui", "--json", "--", "rm", "-rf", f"{OUT}/tree"])[1]
        hold = json.loads(held)["denial"]["hold_id"]
        shown = json.loads(succeed([SAFEPOINT, "hold", "show", hold, "--json"]))
        words = [SAFEPOINT, "hold", "approve", hold, "--fingerprint", shown["fingerprint"]]
        if shown.get("confirm"):
            words += ["--confirm", shown["confirm"]]
        self.hold = hold
        write(f"{PROJECT}/approve.sh", " ".join(words) + "\n")
        own(f"{PROJECT}/approve.sh")

    def renew(self):
        """As it was in the beginning. Nobody may be at work in it."""
        for place in (RUN, "/tmp", "/var/tmp", "/dev/shm"):
            empty(place)
        # A project is known by the directory it is, not by its path alone.
        if identity(PROJECT) != self.project:
            self.build()
            return
        empty(PROJECT)
        empty(HOME, but=os.path.basename(PROJECT))
        empty(OUT)
        for place, name in ((HOME, "home"), (OUT, "out")):
            subprocess.run(["cp", "-a", f"{TEMPLATE}/{name}/.", place], check=True)

    def is_approved(self):
        shown = json.loads(succeed([SAFEPOINT, "hold", "show", self.hold, "--json"]))
        return "approved" in json.dumps(shown.get("state", shown))

    def operators(self):
        return len(json.loads(succeed([SAFEPOINT, "operator", "list", "--json"]))["operators"])


def empty(place, but=None):
    names = [f"{place}/{name}" for name in os.listdir(place) if name != but]
    if names:
        subprocess.run(["rm", "-rf", *names], check=True)


def identity(path):
    """Which directory is there."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def write(path, content):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(content)
    os.chmod(path, 0o755 if content.startswith("#!") else 0o644)


def own(place):
    if not is_root():
        return
    os.lchown(place, USER, USER)
    for directory, folders, files in os.walk(place):
        for name in folders + files:
            os.lchown(os.path.join(directory, name), USER, USER)


def succeed(words):
    code, output = carriers.start(words)
    if code:
        raise carriers.Broken(f"{words} ended with {code}: {output}")
    return output
