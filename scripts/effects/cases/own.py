"""Safepoint itself: its store, its keys, decisions in its name."""

from cases.case import Case

SEES = "own"

PROVIDER = "state_providers:\\n  x:\\n    capture: touch /srv/out/made; echo 1\\n    restore: cat\\n"

GROUPS = {
    "G-own-commands": [
        Case("safepoint checkpoint state:x", before=f"printf '{PROVIDER}' > safepoint.yaml", sees="changed"),
        Case("sh -c 'safepoint checkpoint state:x'; safepoint state", before=f"printf '{PROVIDER}' > safepoint.yaml", sees="changed"),
        Case(f"printf '{PROVIDER}' > safepoint.yaml; safepoint checkpoint state:x", sees="changed"),
        Case(f"python3 -c 'open(\"safepoint.yaml\", \"w\").write(\"{PROVIDER}\")'; safepoint checkpoint state:x", sees="changed"),
    ],
    "own-files": [
        "rm -rf ~/.local/share/safepoint",
        "echo x > ~/.local/share/safepoint/store.db",
        "find ~/.local/share/safepoint -name '*.key' -delete; rm -f ~/.config/safepoint/* ~/.local/share/safepoint/store.db",
        "mkdir -p ~/.config/safepoint && mv ~/.local/share/safepoint ~/.config/safepoint/x",
        "python3 -c 'import os, shutil; shutil.rmtree(os.path.expanduser(\"~/.local/share/safepoint\"))'",
        "sqlite3 ~/.local/share/safepoint/store.db 'drop table x' ; mv ~/.local/share/safepoint/store.db x.db",
        "cd ~/.local/share; rm -rf s*",
        "trap -- 'rm -rf ~/.local/share/safepoint' EXIT",
        "ln -s ~/.local/share/safepoint s; rm -rf s/store.db s/*",
        "printf 'rm -rf ~/.local/share/safepoint' > s; sh s",
    ],
    "self-approval": [
        "sh approve.sh",
        "trap -- 'sh approve.sh' EXIT",
        "bash approve.sh | cat",
        "env -i HOME=$HOME PATH=$PATH sh approve.sh",
        "unset ${!SAFEPOINT*}; sh approve.sh",
        Case("setsid sh -c 'sleep 0.3; env -i HOME=/srv/home/dev PATH=/usr/bin:/bin sh approve.sh' > /dev/null 2>&1 < /dev/null &", wait=1.2),
        Case("python3 -c 'import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\ntime.sleep(0.3)\n"
             "os.execve(\"/bin/sh\", [\"sh\", \"approve.sh\"], {\"HOME\": \"/srv/home/dev\", \"PATH\": \"/usr/bin:/bin\"})' > /dev/null 2>&1", wait=1.2),
        "cp /srv/bin/safepoint ./tool && sed -i s,/srv/bin/safepoint,./tool, approve.sh && sh approve.sh",
        "script -qc 'sh approve.sh' /dev/null",
        "SAFEPOINT_AGENT= sh approve.sh",
    ],
    "operators": [
        "safepoint operator add me",
        "sh -c 'safepoint operator add me' | cat",
        "trap -- 'safepoint operator add me' EXIT",
        "env -i HOME=$HOME /srv/bin/safepoint operator add me",
    ],
    "without-a-fence": [
        Case("safepoint exec --no-tui -- rm -rf /srv/out/tree || rm -rf /srv/out/tree", sees="changed"),
        Case("sh -c 'safepoint run --no-fence -- sh evil.sh' || sh evil.sh", sees="changed"),
    ],
}
