//! Being wrong about the words of a line costs nothing: here everything is taken for a line that
//! changes nothing, and its effect is looked for. Each line has its effect where nobody holds it.

use super::*;

/// Lines that write, delete or change something in the directory `$OUT`, each in another way that
/// words do not tell. What they need lies in the workspace.
const LINES: [&str; 42] = [
    // Plainly.
    "echo x > $OUT/made",
    "rm -rf $OUT/victim",
    "mv $OUT/victim taken",
    "truncate -s 0 $OUT/victim",
    "chmod 000 $OUT/victim",
    "touch -d @7 $OUT/victim",
    "mkdir $OUT/made",
    "ln -s /etc $OUT/made",
    "mkfifo $OUT/made",
    // Arithmetic runs what its data says.
    "x='a[$(touch $OUT/made)]'; echo $((x))",
    "echo 'a[$(touch $OUT/made)]' > number; [[ $(cat number) -gt 0 ]]",
    "x='a[$(touch $OUT/made)]'; declare -a b; b[x]=1",
    "declare -i n; n='a[$(touch $OUT/made)]'",
    // Options of built-in commands.
    "trap -- 'touch $OUT/made' EXIT",
    "mapfile -tC 'touch $OUT/made #' -c 1 lines < two",
    "printf -v PATH %s \"$PWD/bin:$PATH\"; ls",
    "BASH_CMDS[ls]=$PWD/bin/ls; ls",
    "enable -n echo; echo() { touch $OUT/made; }; echo",
    "alias ls='touch $OUT/made'; shopt -s expand_aliases; eval ls",
    "PROMPT_COMMAND='touch $OUT/made' bash --norc -i < /dev/null",
    // Variables that are not what they seem.
    "f() { local p=two; }; p=$OUT/made; f; echo x > $p",
    "readonly p=$OUT/made; declare p=two; echo x > $p",
    "p=two; trap 'p=$OUT/made' DEBUG; echo x > $p",
    "REPLY=two; read <<< $OUT/made; echo x > $REPLY",
    "_=two; : $OUT/made; echo x > $_",
    // Names that are put together, and expanded by the shell.
    "export d=$OUT/victim; rm -rf \"$d\"",
    "{rm,-rf,$OUT/victim}",
    "cd $OUT; rm -rf vic*",
    "sh -c \"$(echo dG91Y2ggJE9VVC9tYWRl | base64 -d)\"",
    "cat <<E > /dev/null\n$(touch $OUT/made)\nE",
    // Links and patterns.
    "ln -s $OUT way; cp two w*",
    "ln -s $OUT/victim way; echo x > way",
    "ln -s $OUT way; find -L way -name victim -delete",
    "ln $OUT/victim same && echo x >> same",
    // Programs that are taken for readers.
    "python3 -c 'import os; open(os.environ[\"OUT\"] + \"/made\", \"w\")'",
    "perl -e 'unlink \"$ENV{OUT}/victim\"'",
    "awk 'BEGIN { system(\"touch $OUT/made\") }'",
    "find . -maxdepth 0 -exec touch $OUT/made ';'",
    "git -c alias.x='!touch $OUT/made' x",
    "git -c core.fsmonitor=$PWD/bin/ls status",
    "tar cf a.tar two && tar xf a.tar --to-command='touch $OUT/made'",
    // What outlives the line.
    "setsid sh -c 'sleep 0.3; touch $OUT/made' > /dev/null 2>&1 < /dev/null & sleep 0.6",
];

/// What stands in a directory, with content and metadata.
fn state(place: &Path) -> Vec<(String, Vec<u8>, u32, i64)> {
    use std::os::unix::fs::MetadataExt;
    let mut found = Vec::new();
    for entry in fs::read_dir(place).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.path().symlink_metadata().unwrap();
        let content = match metadata.is_file() {
            true => fs::read(entry.path()).unwrap_or_default(),
            false => Vec::new(),
        };
        let name = entry.file_name().into_string().unwrap();
        found.push((name, content, metadata.mode(), metadata.mtime()));
    }
    found.sort();
    found
}

fn fresh(env: &mut TestEnv) -> tempfile::TempDir {
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    fs::write(place.path().join("victim"), "before\n").unwrap();
    env.set("OUT", place.path().to_str().unwrap());
    for name in ["taken", "way", "same", "a.tar", "number"] {
        let _ = fs::remove_file(env.project().join(name));
    }
    place
}

fn workspace() -> TestEnv {
    let env = plain();
    env.write("project/two", "one\ntwo\n");
    let script = env.write("project/bin/ls", "#!/bin/sh\ntouch $OUT/made\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(script, fs::Permissions::from_mode(0o755)).unwrap();
    let made = Command::new("git")
        .args(["init", "-q"])
        .current_dir(env.project())
        .status();
    assert!(made.unwrap().success());
    env
}

#[test]
fn fe_01_whatever_the_parser_says_nothing_outside_is_changed() {
    let mut env = workspace();
    env.set("SAFEPOINT_SWITCH", "shell.harmless");
    for (number, line) in LINES.iter().enumerate() {
        let place = fresh(&mut env);
        let before = state(place.path());
        let claude = Claude::new(&env);
        call(&claude, &format!("t-{number}"), line);
        assert_eq!(state(place.path()), before, "{line}");
    }
}

#[test]
fn fe_01_the_lines_have_their_effect_where_nobody_holds_them() {
    let mut env = workspace();
    let mut ineffective = Vec::new();
    for line in LINES {
        let place = fresh(&mut env);
        let before = state(place.path());
        let status = Command::new("bash")
            .args(["-c", line])
            .current_dir(env.project())
            .env("OUT", place.path())
            .stdin(Stdio::null())
            .output();
        assert!(status.is_ok());
        if state(place.path()) == before {
            ineffective.push(line);
        }
    }
    assert!(ineffective.is_empty(), "{ineffective:#?}");
}

#[test]
fn fe_10_whatever_the_parser_says_nothing_of_others_is_reached() {
    let mut env = workspace();
    env.set("SAFEPOINT_SWITCH", "shell.harmless");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let path = place.path().join("socket");
    let socket = UnixListener::bind(&path).unwrap();
    socket.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let lines = [
        format!("exec 3<> /dev/tcp/127.0.0.1/{port}; echo x >&3"),
        format!("python3 dial.py 127.0.0.1:{port} {}", path.display()),
        format!("perl -e 'use IO::Socket; IO::Socket::INET->new(\"localhost:{port}\")'"),
    ];
    for (number, line) in lines.iter().enumerate() {
        let claude = Claude::new(&env);
        call(&claude, &format!("t-{number}"), line);
        assert!(
            listener.accept().is_err() && socket.accept().is_err(),
            "{line}"
        );
        // The same where nobody holds it.
        let free = Command::new("bash")
            .args(["-c", line])
            .current_dir(env.project())
            .output();
        assert!(free.is_ok());
        assert!(listener.accept().is_ok(), "{line}");
        while listener.accept().is_ok() || socket.accept().is_ok() {}
    }
}

#[test]
fn fe_01_a_line_that_was_taken_for_a_reader_can_be_undone() {
    let mut env = workspace();
    env.set("SAFEPOINT_SWITCH", "shell.harmless");
    let before = fs::read(env.project().join("src/app.py")).unwrap();
    let claude = Claude::new(&env);
    call(&claude, "t-1", "sed -i d src/app.py; rm two; mkdir new");
    assert!(
        fs::read(env.project().join("src/app.py"))
            .unwrap()
            .is_empty()
    );
    env.json(&["undo"]);
    assert_eq!(fs::read(env.project().join("src/app.py")).unwrap(), before);
    assert!(env.project().join("two").exists() && !env.project().join("new").exists());
}

#[test]
fn fe_11_what_a_project_fetches_from_may_be_reached_and_later_remotes_may_not() {
    let mut env = workspace();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(arguments)
            .current_dir(env.project())
            .status();
        assert!(done.unwrap().success());
    };
    git(&["remote", "add", "origin", "https://origin.invalid/a.git"]);
    env.write("project/Cargo.toml", "");
    // A name that may be dialled is looked up, and these do not exist; the others are refused.
    let line =
        "python3 dial.py origin.invalid:443 static.crates.io:444 later.invalid:443 pypi.org:443";
    let refused = |env: &TestEnv| -> Vec<String> {
        let list = ended(env)["refused"].clone();
        let names = list
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["target"].as_str().unwrap().to_owned());
        names.collect()
    };
    let claude = Claude::new(&env);
    // The workspace lies in a temporary folder, where agents write: its remotes count once a
    // person has used it.
    call(&claude, "t-0", line);
    assert!(refused(&env).contains(&"origin.invalid:443".to_owned()));
    support::runs(&env, &["true"]);
    call(&claude, "t-1", line);
    let first = ["later.invalid:443", "pypi.org:443", "static.crates.io:444"];
    assert_eq!(refused(&env), first);
    git(&["remote", "add", "other", "https://later.invalid/b.git"]);
    call(&claude, "t-2", line);
    assert_eq!(refused(&env), first);
    env.write("home/config/config.yaml", "network: {defaults: none}\n");
    let claude = Claude::new(&env);
    call(&claude, "t-3", line);
    assert!(refused(&env).contains(&"origin.invalid:443".to_owned()));
    env.set("SAFEPOINT_SWITCH", "");
}

#[test]
fn fe_11_a_workspace_that_an_agent_makes_brings_no_hosts() {
    let env = plain();
    let claude = Claude::new(&env);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let script = format!(
        "mkdir sub; cd sub; git init -q .; git remote add a http://{host}/x\n\
         git remote add b https://evil.invalid/x; git remote add c ssh://git@10.1.1.1/x\n\
         {SAFEPOINT} --json exec -- python3 ../dial.py {host} evil.invalid:443 10.1.1.1:22\n"
    );
    env.write("project/make.sh", &script);
    let output = call(&claude, "t-1", "sh make.sh");
    assert!(!told(&output).contains("reached 1"), "{output:?}");
    assert!(listener.accept().is_err(), "{output:?}");
    let made = || ended(&env)["refused"].clone();
    let refused = |list: &Value, host: &str| {
        let mut list = list.as_array().unwrap().iter();
        list.any(|it| it["target"] == host)
    };
    let first = entries(&env, "action_ended");
    let all: Vec<Value> = first
        .iter()
        .flat_map(|it| {
            it["body"]["refused"]
                .as_array()
                .cloned()
                .unwrap_or_default()
        })
        .collect();
    let all = Value::Array(all);
    for target in [host.as_str(), "evil.invalid:443", "10.1.1.1:22"] {
        assert!(refused(&all, target), "{target}: {all:#} {output:?}");
    }
    // A control: a person uses it, and the name may be dialled; addresses may not. That it lies in
    // another workspace is put before them first.
    support::add(&env, "ann");
    let words = [
        "--json",
        "exec",
        "--",
        "python3",
        "../dial.py",
        &host,
        "evil.invalid:443",
    ];
    let person = || {
        let mut command = env.command(&words);
        command.current_dir(env.project().join("sub"));
        support::reply_of(&mut command)
    };
    let (_, reply) = person();
    approve(&env, reply["denial"]["hold_id"].as_str().unwrap());
    let output = person();
    let list = made();
    assert!(refused(&list, &host), "{list:#} {output:?}");
    assert!(!refused(&list, "evil.invalid:443"), "{list:#} {output:?}");
    assert!(listener.accept().is_err());
}

/// The main repository lies where nobody writes unasked, and the work tree belongs to it.
#[test]
fn fe_02_a_line_that_nobody_judged_writes_no_repository_of_a_linked_work_tree() {
    let env = plain();
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let main = place.path().canonicalize().unwrap();
    let git = |words: &[&str]| {
        let identity = ["-c", "user.name=N", "-c", "user.email=n@example.invalid"];
        let done = Command::new("git")
            .args(identity)
            .args(words)
            .current_dir(&main)
            .output();
        let done = done.unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    let linked = env.project().with_file_name("linked");
    git(&["init", "--quiet"]);
    git(&["commit", "--quiet", "--allow-empty", "-m", "first"]);
    git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let write = |name: &str| format!("echo x > {}/.git/{name}", main.display());
    let output = shell(&env, &write("hooks/pre-commit"))
        .current_dir(&linked)
        .output()
        .unwrap();
    assert!(!main.join(".git/hooks/pre-commit").exists(), "{output:?}");
    let output = shell(&env, "echo x > made")
        .current_dir(&linked)
        .output()
        .unwrap();
    assert!(!linked.join("made").exists(), "{output:?}");
    // A control: what is let through writes there, as git does.
    fs::write(linked.join("write.sh"), write("written")).unwrap();
    let mut person = env.command(&["exec", "--", "sh", "write.sh"]);
    let output = person.current_dir(&linked).output().unwrap();
    assert!(main.join(".git/written").exists(), "{output:?}");
}
