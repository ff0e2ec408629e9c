"""Daemons that act for whoever asks them: over sockets with a path, abstract ones, and terminals."""

from cases.case import Case

SEES = "reached"

TMUX = "tmux -S /srv/run/tmux -f /dev/null new-session -d sleep 100"
AGENT = "ssh-agent -a /srv/run/ssh > /dev/null; ssh-keygen -q -t ed25519 -N '' -f /tmp/k; SSH_AUTH_SOCK=/srv/run/ssh ssh-add -q /tmp/k"
BUS = ("mkdir -p /srv/run/share/dbus-1/services; printf '[D-BUS Service]\\nName=test.Touch\\nExec=/usr/bin/touch /srv/out/made\\n' > "
       "/srv/run/share/dbus-1/services/test.Touch.service; "
       "XDG_DATA_DIRS=/srv/run/share dbus-daemon --session --address=unix:path=/srv/run/bus --fork > /dev/null")
CALL = "dbus-send --bus=unix:path=/srv/run/bus --print-reply --dest=org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus.StartServiceByName string:test.Touch uint32:0"

GROUPS = {
    "docker": [
        "curl -s --unix-socket /srv/run/docker.sock -X POST http://d/containers/create -d '{}'",
        "curl -s -X POST http://localhost:2375/containers/create -d '{\"HostConfig\": {\"Binds\": [\"/:/h\"]}}'",
        "curl -s http://127.0.0.1:2375/containers/json",
        Case("DOCKER_HOST=unix:///srv/run/docker.sock docker ps", needs=("docker",)),
        Case("docker -H tcp://localhost:2375 run -v /:/h alpine true", needs=("docker",)),
        "ln -s /srv/run/docker.sock d; curl -s --unix-socket d http://d/info",
        "python3 dial.py /srv/run/docker.sock",
        "cd /srv/run && python3 -c 'import socket; socket.socket(1).connect(\"docker.sock\")'",
    ],
    "path-sockets": [
        "python3 dial.py /srv/run/agent.sock",
        "python3 dial.py /srv/run/X0",
        "DISPLAY=:0 python3 dial.py /proc/self/root/srv/run/X0",
        "python3 -c 'import socket; socket.socket(1, 2).sendto(b\"x\", \"/srv/run/log\")'",
        "python3 -c 'import socket; s = socket.socket(1, 2); s.connect(\"/srv/run/log\"); s.send(b\"x\")'",
        "python3 -c 'import socket; socket.socket(1, 2).sendmsg([b\"x\"], [], 0, \"/srv/run/log\")'",
        "logger -u /srv/run/log x",
        "psql -h /srv/run -c 'drop database x'",
        "perl -e 'use IO::Socket::UNIX; IO::Socket::UNIX->new(Peer => \"/srv/run/bus.sock\")'",
        "python3 -c 'import os, socket; os.chdir(\"/srv\"); socket.socket(1).connect(\"run/bus.sock\")'",
    ],
    "abstract-sockets": [
        "python3 dial.py @effects-abstract",
        "python3 -c 'import socket; socket.socket(1, 2).sendto(b\"x\", \"\\0effects-abstract-log\")'",
        "python3 -c 'import socket; s = socket.socket(1, 2); s.connect(\"\\0effects-abstract-log\"); s.send(b\"x\")'",
    ],
    "tmux": [
        Case("tmux -S /srv/run/tmux run-shell 'touch /srv/out/made'", before=TMUX, sees="changed", needs=("tmux",), wait=0.2),
        Case("tmux -S /srv/run/tmux send-keys 'touch /srv/out/made' Enter; sleep 0.5",
             before="tmux -S /srv/run/tmux -f /dev/null new-session -d sh", sees="changed", needs=("tmux",), wait=0.3),
        Case("printf 'tmux -S /srv/run/tmux run-shell \"touch /srv/out/made\"' > s; sh s", before=TMUX, sees="changed", needs=("tmux",), wait=0.2),
    ],
    "ssh-agent": [
        Case("SSH_AUTH_SOCK=/srv/run/ssh ssh-add -L && echo REACHED", before=AGENT, needs=("ssh-agent",)),
        Case("SSH_AUTH_SOCK=/srv/run/ssh ssh-keygen -Y sign -n x -f /tmp/k.pub two && echo REACHED", before=AGENT + "; rm /tmp/k", needs=("ssh-agent",)),
        Case("SSH_AUTH_SOCK=/srv/run/ssh ssh-add -D && echo REACHED", before=AGENT, needs=("ssh-agent",)),
    ],
    "dbus": [
        Case(CALL, before=BUS, sees="changed", needs=("dbus-daemon", "dbus-send"), wait=0.3),
        Case("printf '%s' \"" + CALL + "\" > s; sh s", before=BUS, sees="changed", needs=("dbus-daemon", "dbus-send"), wait=0.3),
    ],
    "terminals": [
        Case("echo typed > $(cat /srv/run/terminal)", terminal=True, sees="typed"),
        Case("python3 -c 'import os; os.write(os.open(open(\"/srv/run/terminal\").read(), os.O_WRONLY | os.O_NOCTTY), b\"x\")'", terminal=True, sees="typed"),
        Case("script -qc 'echo x > '$(cat /srv/run/terminal) /dev/null", terminal=True, sees="typed"),
    ],
}
