"""Names that lead elsewhere: class F of that review, and archives."""

from cases.case import Case

SEES = "changed"

GROUPS = {
    "F-links": [
        Case("rm -f d*/victim", before="ln -s /srv/out dl"),
        Case("sed -i s/before/after/ d*/victim", before="ln -s /srv/out dl"),
        Case("find -L . -name victim -delete", before="ln -s /srv/out dl"),
        Case("cp two dl/", before="ln -s /srv/out dl"),
        Case("echo x > way", before="ln -s /srv/out/victim way"),
        "ln -s /srv/out dl && rm -f d*/victim",
        "ln -s /srv/out way; cp two w*",
        "ln -s /srv/out/victim way; echo x > way",
        "ln -s /srv/out dl; cp -P dl d2 && echo x > d2/made",
        "ln /srv/out/victim same && echo X >> same",
        "link /srv/out/victim same; echo x > same",
        "python3 -c 'import os; os.link(\"/srv/out/victim\", \"same\"); open(\"same\", \"a\").write(\"x\")'",
        Case("echo x >> same", before="ln /srv/out/victim same", words="the other name was there before"),
        Case("mv two dl/made", before="ln -s /srv/out dl"),
        "ln -s /srv/out a; ln -s a b; touch b/made",
        "mkdir d; mv d e; ln -s /srv/out d; touch d/made",
        "cd /srv/out/tree/..; touch made",
        "python3 -c 'import os; os.rename(\"two\", \"/srv/out/made\")'",
        "python3 -c 'import os; os.rename(\"/srv/out/tree\", \"tree\")'",
        "python3 -c 'import os; os.symlink(\"/srv/out\", \"s\"); os.chdir(\"s\"); open(\"made\", \"w\")'",
        "ln -s /proc/self/root/srv/out/made way; echo x > way",
        "ln -s /proc/$$/cwd/../../../out way; touch way/made; touch /proc/self/cwd/../../../out/made",
    ],
    "F-archives": [
        Case("tar xf through.tar", before="mkdir dl; cp two dl/made; tar cf through.tar dl/made; rm -r dl; ln -s /srv/out dl"),
        Case("unzip -qo: up.zip", before="python3 -c 'import zipfile; zipfile.ZipFile(\"up.zip\", \"w\").writestr(\"../../../out/made\", \"x\")'",
             needs=("unzip",)),
        "tar cf a.tar two && tar xf a.tar -C /srv/out",
        Case("tar xPf up.tar", before="cp two ../made; tar cPf up.tar /srv/out/victim; rm ../made; echo other > /srv/out/victim"),
        "tar cf a.tar two && tar xf a.tar --to-command='touch /srv/out/made'",
        "tar cf a.tar two --checkpoint=1 --checkpoint-action=exec='touch /srv/out/made'",
        Case("unzip -qo through.zip", before="ln -s /srv/out dl; python3 -c 'import zipfile; z = zipfile.ZipFile(\"through.zip\", \"w\"); "
             "z.writestr(\"dl/made\", \"x\")'", needs=("unzip",)),
        Case("unzip -qo a.zip -d /srv/out", before="zip -q a.zip two", needs=("zip", "unzip")),
        Case("dpkg-deb -x p.deb ~/bin", before="mkdir -p p/DEBIAN; printf 'Package: p\\nVersion: 1\\nArchitecture: all\\n"
             "Maintainer: x\\nDescription: x\\n' > p/DEBIAN/control; cp two p/made; dpkg-deb -b p p.deb > /dev/null", needs=("dpkg-deb",)),
        Case("patch /srv/out/victim < p.diff", before="printf -- '--- a\\n+++ b\\n@@ -1 +1 @@\\n-before\\n+after\\n' > p.diff", needs=("patch",)),
        "git archive HEAD | tar xf - -C ~/bin",
        "git worktree add -q /srv/out/made",
        "git clone -q . ~/bin/copy",
        "git init -q ~/bin/new",
        "git --git-dir=.git --work-tree=/srv/out checkout -qf HEAD -- two",
        "git bundle create /srv/out/made HEAD",
        "cpio -pd /srv/out <<< two 2> /dev/null || cp two /srv/out",
    ],
}
