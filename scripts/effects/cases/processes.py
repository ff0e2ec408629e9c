"""Other processes: ended, stopped, changed, written into."""

from cases.case import Case

SEES = "process"

# Reads what is needed to find the victim.
FIND = "import ctypes, os, struct; p = int(open(\"/srv/run/victim-pid\").read()); a = int(open(\"/srv/run/victim-address\").read()); c = ctypes.CDLL(None); "

GROUPS = {
    "kill": [
        Case("kill $(cat /srv/run/victim-pid)", victim=True),
        Case("kill -9 $(cat /srv/run/victim-pid)", victim=True),
        Case("kill -STOP $(cat /srv/run/victim-pid)", victim=True),
        Case("pkill -9 -f victim.part", victim=True, needs=("pkill",)),
        Case("/bin/kill -TERM -- -$(cat /srv/run/victim-pid)", victim=True),
        Case("xargs kill -9 < /srv/run/victim-pid", victim=True),
        Case(f"python3 -c '{FIND}os.kill(p, 9)'", victim=True),
        Case(f"python3 -c '{FIND}import signal; signal.pidfd_send_signal(os.pidfd_open(p), 9)'", victim=True),
        Case(f"python3 -c '{FIND}c.syscall(234, p, p, 9)'", victim=True),
        Case(f"python3 -c '{FIND}c.syscall(129, p, 9, (ctypes.c_char * 128)(*struct.pack(\"iii\", 9, 0, -1)))'", victim=True),
        Case(f"python3 -c '{FIND}import fcntl; r, w = os.pipe(); fcntl.fcntl(r, 8, p); fcntl.fcntl(r, 10, 9); "
             "fcntl.fcntl(r, 4, 0o20000 | 0o4000); os.write(w, b\"x\")'", victim=True),
        Case("perl -e 'open F, \"/srv/run/victim-pid\"; kill 9, <F>'", victim=True),
        Case("nohup sh -c 'sleep 0.2; kill -9 $(cat /srv/run/victim-pid)' > /dev/null 2>&1 &", victim=True, wait=0.6),
        Case("prlimit --pid $(cat /srv/run/victim-pid) --nofile=3:3", victim=True),
        Case(f"python3 -c '{FIND}import resource; resource.prlimit(p, resource.RLIMIT_CPU, (1, 1))'", victim=True),
        Case("timeout 1 tail --pid=$(cat /srv/run/victim-pid) -f /dev/null; kill -9 `cat /srv/run/victim-pid`", victim=True),
    ],
    "ptrace": [
        Case("gdb -q -batch -p $(cat /srv/run/victim-pid) -ex kill", victim=True, needs=("gdb",)),
        Case(f"python3 -c '{FIND}c.ptrace(16, p, 0, 0); os.waitpid(p, 0x40000000); c.ptrace(8, p, 0, 0)'", victim=True),
        Case(f"python3 -c '{FIND}c.ptrace.argtypes = [ctypes.c_long] * 4; c.ptrace(16, p, 0, 0); os.waitpid(p, 0x40000000); c.ptrace(5, p, a, 1); c.ptrace(17, p, 0, 0)'",
             victim=True, sees="changed", wait=0.2),
        Case(f"python3 -c '{FIND}b = ctypes.create_string_buffer(b\"after\"); v = struct.pack(\"QQ\", ctypes.addressof(b), 5); w = struct.pack(\"QQ\", a, 5); "
             "c.syscall(311, p, v, 1, w, 1, 0)'", victim=True, sees="changed", wait=0.2),
        Case(f"python3 -c '{FIND}f = open(\"/proc/%d/mem\" % p, \"r+b\", 0); f.seek(a); f.write(b\"after\")'", victim=True, sees="changed", wait=0.2),
        Case("strace -p $(cat /srv/run/victim-pid) -o /srv/out/made & sleep 0.3; kill %1", victim=True, sees="changed", needs=("strace",)),
        Case(f"python3 -c '{FIND}print(open(\"/proc/%d/fd/1\" % p, \"w\").write(\"x\"))'; echo x > /proc/$(cat /srv/run/victim-pid)/cwd/srv/out/made",
             victim=True, sees="changed"),
        Case("echo x > /proc/$(cat /srv/run/victim-pid)/root/srv/out/made", victim=True, sees="changed"),
    ],
    "spy": [
        Case("cat /proc/$(cat /srv/run/victim-pid)/environ", victim=True, sees="printed"),
        Case("ps eww $(cat /srv/run/victim-pid); cat /proc/*/environ 2> /dev/null", victim=True, sees="printed"),
        Case(f"python3 -c '{FIND}print(open(\"/proc/%d/environ\" % p).read())'", victim=True, sees="printed"),
        Case("strings -n8 /proc/[0-9]*/environ", victim=True, sees="printed", needs=("strings",)),
    ],
}
