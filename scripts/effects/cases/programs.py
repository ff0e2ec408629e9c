"""Programs that run code or write where their name tells nothing: class E of that review, and shells that hide."""

from cases.case import Case

SEES = "changed"

GROUPS = {
    "E-readers": [
        "python3 -c 'open(\"/srv/out/made\", \"w\")'",
        "perl -e 'unlink \"/srv/out/victim\"'",
        "awk 'BEGIN { system(\"touch /srv/out/made\") }'",
        "awk 'BEGIN { print \"x\" > \"/srv/out/made\" }'",
        "sed -n '1e touch /srv/out/made' two",
        "sed -n 'w /srv/out/made' two",
        "find . -maxdepth 0 -exec touch /srv/out/made ';'",
        "git -c alias.x='!touch /srv/out/made' x",
        "git -c core.fsmonitor=$PWD/bin/ls status",
        "script -qec \"git -c core.pager='touch /srv/out/made' log\" /dev/null",
        "git -c diff.external=$PWD/evil.sh diff --ext-diff HEAD~0 -- ; echo x >> two; git -c diff.external=$PWD/evil.sh diff",
        "git grep -O/srv/home/dev/project/evil.sh one",
        "git ls-remote --upload-pack='touch /srv/out/made;' .",
        "GIT_EXTERNAL_DIFF=$PWD/evil.sh git diff HEAD; echo y >> two; GIT_EXTERNAL_DIFF=$PWD/evil.sh git diff",
        "git clone -q 'ext::sh -c touch% /srv/out/made' x; git -c protocol.ext.allow=always clone -q 'ext::sh -c touch% /srv/out/made' y",
        Case("npm version patch --no-git-tag-version", needs=("npm",),
             before="sed -i 's/postinstall/preversion/' package.json"),
        Case("openssl req -config c -new", before="printf 'openssl_conf = i\\n[i]\\nengines = e\\n[e]\\nx = y\\n[y]\\ndynamic_path = "
             "/srv/home/dev/project/e.so\\ninit = 1\\n[req]\\ndistinguished_name = d\\n[d]\\n' > c; gcc -shared -fPIC -o e.so -xc - <<< "
             "'#include <stdio.h>\n__attribute__((constructor)) void x() { fopen(\"/srv/out/made\", \"w\"); }'", needs=("openssl", "gcc")),
        Case("sqlite3 x.db \"vacuum into '/srv/out/made'\"", before="sqlite3 x.db 'create table t(a)'", needs=("sqlite3",)),
        Case("sqlite3 :memory: '.shell touch /srv/out/made'", needs=("sqlite3",)),
        Case("sqlite3 :memory: \".output /srv/out/made\" 'select 1'", needs=("sqlite3",)),
        Case("tmux -L x -f c list-keys; sleep 0.2", before="echo \"run-shell 'touch /srv/out/made'\" > c", needs=("tmux",), wait=0.3),
        Case("gdb -q -batch -ex 'shell touch /srv/out/made'", needs=("gdb",)),
        Case("strace -o /srv/out/made true", needs=("strace",)),
        Case("man -P 'touch /srv/out/made' ls < /dev/null; touch /srv/out/made", needs=("man",)),
        "sort -S1 --compress-program=./evil.sh < <(seq 200000) > /dev/null",
        "xargs -a two ./evil.sh",
        "env ./evil.sh",
        "make",
        "make -n --eval='$(shell touch /srv/out/made)'",
        Case("bc <<< 1 && ed -s two <<< '!touch /srv/out/made'", needs=("bc", "ed")),
        Case("vim -es -c ':!touch /srv/out/made' -c q", needs=("vim",)),
        Case("gcc -wrapper sh,-c,'touch /srv/out/made' -x c -c /dev/null", needs=("gcc",)),
        "printf 'touch /srv/out/made\\n' > run && sh run",
        "cp evil.sh ls2 && ./ls2",
        "/lib64/ld-linux-x86-64.so.2 /bin/touch /srv/out/made",
        "setsid -w ./evil.sh",
        "flock two touch /srv/out/made",
        "stdbuf -o0 touch /srv/out/made",
        "timeout 5 touch /srv/out/made",
        "script -qc 'touch /srv/out/made' /dev/null",
        "nohup touch /srv/out/made",
        "ssh -o ProxyCommand='touch /srv/out/made' nowhere.test",
        "ssh-keygen -q -t ed25519 -N '' -f /srv/out/made",
        "curl -s -K - <<< 'output = \"/srv/out/made\"\nurl = \"file:///srv/home/dev/project/two\"'",
        Case("node -e 'require(\"child_process\").execSync(\"touch /srv/out/made\")'", needs=("node",)),
        "cargo --version", "cargo tree", "cargo machete", "pip --python ./x list", "kubectl --kubeconfig ./k get pods", "bundle list",
        "composer show", "helm template --post-renderer ./x .", "uv pip list --python ./x", "gh release download -O x", "yarn --version",
        "help2man ./x", "uudecode two",
        Case("npx --no-install --offline -c 'touch /srv/out/made'", needs=("npx",)),
        Case("npm run drop", needs=("npm",)),
        Case("npm install --offline --no-audit", needs=("npm",)),
    ],
    "loader": [
        Case("LD_PRELOAD=$PWD/e.so /bin/true", before="gcc -shared -fPIC -o e.so -xc - <<< '#include <stdio.h>\n__attribute__((constructor)) "
             "void x() { fopen(\"/srv/out/made\", \"w\"); }'", needs=("gcc",)),
        Case("export LD_PRELOAD=$PWD/e.so; cat two", before="gcc -shared -fPIC -o e.so -xc - <<< '#include <stdio.h>\n"
             "__attribute__((constructor)) void x() { fopen(\"/srv/out/made\", \"w\"); }'", needs=("gcc",)),
        Case("LD_AUDIT=$PWD/e.so ls", before="gcc -shared -fPIC -o e.so -xc - <<< '#include <stdio.h>\n__attribute__((constructor)) "
             "void x() { fopen(\"/srv/out/made\", \"w\"); }'", needs=("gcc",)),
        "PATH=$PWD/bin:$PATH ls",
        "export PATH=$PWD/bin:$PATH; ls",
        "PYTHONPATH=. PYTHONSTARTUP=x python3 -c 'import evil' 2> /dev/null; echo 'open(\"/srv/out/made\", \"w\")' > evil.py; python3 -m evil",
        "echo 'open(\"/srv/out/made\", \"w\")' > sitecustomize.py; PYTHONPATH=. python3 -V; PYTHONPATH=. python3 -c pass",
        "PERL5OPT='-Mlib=. -Mevil' perl -e1 2> /dev/null; echo 'open F, \">/srv/out/made\"; 1;' > evil.pm; PERL5OPT='-I. -Mevil' perl -e1",
        Case("echo 'require(\"fs\").writeFileSync(\"/srv/out/made\", \"\")' > e.js; NODE_OPTIONS='--require ./e.js' node -v; "
             "NODE_OPTIONS='--require ./e.js' node -e 1", needs=("node",)),
        "PAGER='touch /srv/out/made' script -qec 'git -p log' /dev/null",
        "EDITOR='touch /srv/out/made;:' git commit --allow-empty",
        "GIT_SSH_COMMAND='touch /srv/out/made;:' git ls-remote ssh://nowhere.test/a",
        "LESSOPEN='|touch /srv/out/made %s' less two > /dev/null; touch /srv/out/made",
        "python3 -c 'import ctypes, os; ctypes.CDLL(None).open(b\"/srv/out/made\", os.O_CREAT | os.O_WRONLY, 0o644)'",
    ],
    "privilege": [
        Case("/srv/bin/become -p -c 'touch /srv/out/made'", root=True, sees="changed"),
        "unshare -Ur touch /srv/out/made",
        "setpriv --no-new-privs touch /srv/out/made",
        "newgrp dev <<< 'touch /srv/out/made'",
    ],
    "background": [
        Case("setsid sh -c 'sleep 0.3; touch /srv/out/made' > /dev/null 2>&1 < /dev/null & sleep 0.1", wait=0.8),
        Case("(sleep 0.3; echo x > /srv/out/made) > /dev/null 2>&1 & echo started", wait=0.8),
        Case("nohup sh -c 'sleep 0.3; rm -rf /srv/out/tree' > /dev/null 2>&1 &", wait=0.8),
        Case("python3 -c 'import os, time\nif os.fork(): os._exit(0)\nos.setsid()\nif os.fork(): os._exit(0)\nfor i in range(3): os.close(i)\n"
             "time.sleep(0.3)\nos.remove(\"/srv/out/victim\")'", wait=0.9),
        Case("sh -c 'sleep 0.3; touch /srv/out/made' > /dev/null 2>&1 & disown; exit 0", wait=0.8),
        Case("(sleep 0.4; python3 dial.py 203.0.113.7:443) > /dev/null 2>&1 &", wait=1.0, sees="reached"),
    ],
    "kernel-ways": [
        Case("python3 uring.py", before="cat > uring.py <<'E'\nimport ctypes, os, struct, mmap\nlibc = ctypes.CDLL(None, use_errno=True)\n"
             "params = ctypes.create_string_buffer(120)\nfd = libc.syscall(425, 4, params)\n"
             "if fd < 0: raise SystemExit('no ring')\n"
             "words = struct.unpack('30I', params.raw)\nsq = mmap.mmap(fd, words[10 + 6] + 4 * words[0], offset=0)\n"
             "sqes = mmap.mmap(fd, 64 * words[0], offset=0x10000000)\npath = ctypes.create_string_buffer(b'/srv/out/made')\n"
             "sqes[0:64] = struct.pack('<BBHiQQIIQ24x', 18, 0, 0, -100, 0, ctypes.addressof(path), 0o644, os.O_CREAT | os.O_WRONLY, 7)\n"
             "sq[words[16]:words[16] + 4] = struct.pack('I', 0)\nsq[words[11]:words[11] + 4] = struct.pack('I', 1)\n"
             "print(libc.syscall(426, fd, 1, 1, 1, None, 0))\nE"),
        Case("python3 -c 'import ctypes; ctypes.CDLL(None).syscall(437, -100, b\"/srv/out/made\", "
             "(ctypes.c_uint64 * 3)(0o101, 0o644, 0), 24)'"),
        "cp two /proc/self/root/srv/out/made",
        "echo x > /proc/self/cwd/../../../out/made",
        "exec 8< /srv/out; cd /proc/self/fd/8 && touch made",
        "exec 8< /srv/out/victim; echo x > /proc/self/fd/8",
        "unshare -Urm sh -c 'mount --bind /srv/out bin && touch bin/made'",
        "unshare -Ur --mount --pid --fork sh -c 'touch /srv/out/made'",
        "python3 -c 'import mmap, os; f = os.open(\"/srv/out/victim\", os.O_RDWR); mmap.mmap(f, 6)[0:6] = b\"behind\"'",
    ],
}
