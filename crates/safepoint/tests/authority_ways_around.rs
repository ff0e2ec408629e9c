//! Ways around the passage that were open once: each is closed, and what it resembles still works.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/passage.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use support::{
    HELD, OPEN, approve, bare, exec_command, hold_of, is_denied, lines, permitted, program,
    project, reply_of, run, runs, show, text, waiting,
};
use testkit::TestEnv;

/// A repository under the atlas that is built in.
fn repository() -> TestEnv {
    let env = bare();
    env.write("project/a", "content of a\n");
    env.write("project/.env", "PASSWORD=hunter2\n");
    support::add(&env, "ann");
    git(&env.project(), &["init", "-q", "-b", "main"]);
    env
}

fn git(place: &Path, words: &[&str]) {
    let status = Command::new("git")
        .args(words)
        .current_dir(place)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .status();
    assert!(status.unwrap().success(), "{words:?}");
}

/// Waits for a person, as this action; nothing of it stays behind.
#[track_caller]
fn is_held(env: &TestEnv, words: &[&str], action: &str) -> Value {
    let hold = hold_of(env, words);
    let shown = show(env, &hold);
    let actions = shown["canonical_form"]["actions"].as_array().unwrap();
    assert!(
        actions.iter().any(|it| it == action),
        "{words:?}: {shown:#}"
    );
    assert_eq!(run(env, &["hold", "deny", &hold]).0, 0);
    shown
}

/// A folder with rules of its own, made by whoever works around it, does not choose the rules.
#[test]
fn au_27_a_folder_inside_does_not_bring_its_own_rules() {
    for (outer, known) in [(HELD, true), (HELD, false)] {
        let env = project(outer);
        if known {
            runs(&env, &["cat", "a"]);
        }
        env.write("project/inner/atlas.yaml", OPEN);
        env.write("project/inner/safepoint.yaml", "atlases: [atlas.yaml]\n");
        env.write("project/inner/a", "inner\n");
        let inner = env.project().join("inner");
        let there = |words: &[&str]| {
            let mut command = exec_command(&env, &[], words);
            command.current_dir(&inner);
            reply_of(&mut command)
        };
        // Under the rules of the folder nobody would be asked.
        let (exit, reply) = there(&["cp", "a", "b"]);
        let denial = is_denied(exit, &reply, "APPROVAL_REQUIRED");
        let hold = text(&denial["hold_id"]);
        assert_eq!(show(&env, &hold)["checkpoint_type"], "policy_boundary");
        assert!(!inner.join("b").exists());
        // Nor does it write into the folder around it.
        let (exit, reply) = there(&["cp", "a", "../a"]);
        is_denied(exit, &reply, "APPROVAL_REQUIRED");
        // The control: a person may say that these are the rules there.
        approve(&env, &hold);
        let (exit, reply) = there(&["cp", "a", "b"]);
        assert_eq!(exit, 0, "{reply:#}");
    }
    // The control: a folder beside it brings its own.
    let env = project(OPEN);
    runs(&env, &["cp", "a", "b"]);
    assert!(waiting(&env).is_empty());
}

/// A repository inside a project without rules of its own stays under those around it.
#[test]
fn au_27_a_repository_inside_is_judged_by_the_rules_around_it() {
    let env = project(HELD);
    let inner = env.project().join("inner");
    env.write("project/inner/a", "inner\n");
    git(&inner, &["init", "-q"]);
    let there = |words: &[&str]| {
        let mut command = exec_command(&env, &[], words);
        command.current_dir(&inner);
        reply_of(&mut command)
    };
    let (exit, reply) = there(&["cp", "a", "b"]);
    is_denied(exit, &reply, "APPROVAL_REQUIRED");
    assert!(!inner.join("b").exists());
}

/// Variables that bring code into a program that is known are not handed on.
#[test]
fn au_25_no_variable_of_the_caller_brings_code_along() {
    let env = project(OPEN);
    program(&env, "evil.sh", b"echo evil >> ran\n");
    program(&env, "tool.sh", b"#!/bin/bash\nenv > seen\n");
    git(&env.project(), &["init", "-q", "-b", "main"]);
    let evil = env.project().join("evil.sh").display().to_string();
    let here = env.project().display().to_string();
    let kept = ["PYTHONPATH", "GIT_AUTHOR_NAME", "LANG", "PAGER"];
    let set = |command: &mut Command| {
        for (name, value) in [
            ("LD_PRELOAD", "/nowhere/evil.so"),
            ("LD_AUDIT", "/nowhere/evil.so"),
            ("LD_LIBRARY_PATH", here.as_str()),
            ("BASH_ENV", &evil),
            ("ENV", &evil),
            ("BASH_FUNC_env%%", "() { echo evil >> ran; }"),
            ("GIT_EXTERNAL_DIFF", &evil),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_KEY_0", "core.fsmonitor"),
            ("GIT_CONFIG_VALUE_0", &evil),
            ("GIT_EXEC_PATH", &here),
            ("GIT_PAGER", &evil),
            ("PERL5OPT", "-Mevil"),
            ("PYTHONSTARTUP", &evil),
            ("PYTHONPATH", "src"),
            ("GIT_AUTHOR_NAME", "Ann"),
            ("LANG", "C"),
            ("PAGER", "less"),
        ] {
            command.env(name, value);
        }
    };
    // The control: without Safepoint the code runs.
    let mut direct = Command::new("/bin/bash");
    direct.args(["-c", "true"]).current_dir(env.project());
    set(&mut direct);
    assert!(direct.status().unwrap().success());
    assert_eq!(lines(&env, "ran"), 1);
    let mut direct = Command::new("git");
    direct.args(["status", "-s"]).current_dir(env.project());
    set(direct.stdout(std::process::Stdio::null()));
    // With that git would not find itself.
    direct.env_remove("GIT_EXEC_PATH");
    assert!(direct.status().unwrap().success());
    assert!(lines(&env, "ran") > 1);

    fs::remove_file(env.project().join("ran")).unwrap();
    for words in [
        &["./tool.sh"][..],
        &["bash", "-c", "true"],
        &["git", "status"],
    ] {
        let mut command = exec_command(&env, &[], words);
        set(&mut command);
        let (exit, reply) = reply_of(&mut command);
        assert_eq!(exit, 0, "{reply:#}");
    }
    assert_eq!(lines(&env, "ran"), 0);
    let seen = fs::read_to_string(env.project().join("seen")).unwrap();
    let names: Vec<&str> = seen.lines().filter_map(|it| it.split('=').next()).collect();
    for gone in [
        "LD_",
        "BASH_ENV",
        "BASH_FUNC",
        "GIT_E",
        "GIT_C",
        "GIT_P",
        "PERL5",
        "PYTHONS",
    ] {
        assert!(!names.iter().any(|name| name.starts_with(gone)), "{seen}");
    }
    for name in kept {
        assert!(names.contains(&name), "{name}: {seen}");
    }
}

/// The same in the line itself: it can be seen there, so a person is asked.
#[test]
fn au_04_no_variable_in_a_line_brings_code_along() {
    let env = repository();
    for line in [
        "LD_PRELOAD=./evil.so cat a",
        "BASH_ENV=./evil.sh bash -c true",
        "GIT_EXTERNAL_DIFF=./evil.sh git diff",
        "export GIT_SSH_COMMAND=./evil.sh; git status",
        "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=./x git status",
        "PAGER=./evil.sh git log",
        "env LD_PRELOAD=./evil.so cat a",
    ] {
        is_held(&env, &["sh", "-c", line], "shell.opaque");
    }
    // Where modules are looked for chooses code too: that is a program of the project's own.
    let reply = runs(&env, &["sh", "-c", "PYTHONPATH=src cat a"]);
    assert!(
        reply["actions"].to_string().contains("process.exec"),
        "{reply:#}"
    );
    assert!(reply["checkpoint_id"].is_string(), "{reply:#}");
    // The control.
    for line in ["NODE_ENV=test cat a", "GIT_AUTHOR_NAME=Ann git status"] {
        runs(&env, &["sh", "-c", line]);
    }
}

/// A second name of a file leads to it as well as the first.
#[test]
fn au_10_a_hard_link_is_no_way_around() {
    let env = project(OPEN);
    let key = env.home().join("data/operators/ann.key");
    fs::hard_link(&key, env.project().join("key")).unwrap();
    for flags in [&[][..], &["--no-fence"]] {
        let (exit, reply) = support::exec_with(&env, flags, &["cat", "key"]);
        is_denied(exit, &reply, "CONTROL_FORBIDDEN");
    }
    // What lies outside is not written by its name inside.
    let env = project(OPEN);
    let outside = env.write("outside", "untouched\n");
    fs::hard_link(&outside, env.project().join("inside")).unwrap();
    let hold = hold_of(&env, &["sh", "-c", "echo evil > inside"]);
    assert_eq!(show(&env, &hold)["checkpoint_type"], "path_scope");
    assert_eq!(fs::read_to_string(&outside).unwrap(), "untouched\n");
    assert_eq!(run(&env, &["hold", "deny", &hold]).0, 0);
    // The control: it can be read, it can be taken away, and a file with one name is written.
    runs(&env, &["cat", "inside"]);
    runs(&env, &["rm", "inside"]);
    runs(&env, &["sh", "-c", "echo good > a"]);
    assert_eq!(fs::read_to_string(outside).unwrap(), "untouched\n");
}

/// What is written there, git runs at the next harmless look.
#[test]
fn au_04_what_git_would_run_is_not_written_unseen() {
    let env = repository();
    fs::create_dir_all(env.project().join("evil")).unwrap();
    for words in [
        &["sh", "-c", "echo '[core]' >> .git/config"][..],
        &["sh", "-c", "echo evil > .git/hooks/pre-commit"],
        &["sh", "-c", "cd .git && echo evil > hooks/post-commit"],
        &["cp", "a", ".git/hooks/pre-commit"],
        &["tee", ".git/config"],
        &["mv", "evil", ".git/hooks"],
        &["cp", "-r", "evil", ".git"],
        &["ln", "-s", "../evil", ".git/hooks"],
        &["git", "config", "core.hooksPath", "evil"],
        &["git", "config", "core.fsmonitor", "./evil.sh"],
        &["git", "config", "alias.x", "!evil"],
        &["git", "-c", "core.hooksPath=evil", "commit", "-m", "x"],
    ] {
        is_held(&env, words, "shell.opaque");
    }
    assert!(!env.project().join(".git/hooks/pre-commit").exists());
    // A change under a checkpoint is no other way there.
    let change = |target: &str| {
        let operation = r#"{"type": "write", "content": "[core]\n"}"#;
        run(
            &env,
            &[
                "mutate",
                "--auto-checkpoint",
                "--operation",
                operation,
                target,
            ],
        )
    };
    let before = fs::read_to_string(env.project().join(".git/config")).unwrap();
    let (exit, reply) = change(".git/config");
    assert_ne!(exit, 0, "{reply:#}");
    let after = fs::read_to_string(env.project().join(".git/config")).unwrap();
    assert_eq!(before, after);
    let (exit, reply) = change("config");
    assert_eq!(exit, 0, "{reply:#}");
    // The control.
    runs(&env, &["git", "config", "user.name", "Ann"]);
    runs(&env, &["git", "config", "user.email", "ann@example.org"]);
    runs(&env, &["sh", "-c", "echo x > .gitignore"]);
    runs(&env, &["git", "add", "a"]);
    runs(&env, &["git", "commit", "-q", "-m", "one"]);
}

/// An option before a name takes nothing away from it.
#[test]
fn au_04_an_option_does_not_swallow_the_name_of_a_secret() {
    let env = repository();
    for words in [
        &["cat", "-n", ".env"][..],
        &["cat", "-A", "--", ".env"],
        &["head", "-n", "1", ".env"],
        &["tail", "-c", "9", ".env"],
        &["grep", "-n", "PASS", ".env"],
        &["sh", "-c", "cat -n .env | head -1"],
        &["sort", "-r", ".env"],
    ] {
        is_held(&env, words, "secret.read");
    }
    // The control.
    for words in [
        &["cat", "-n", "a"][..],
        &["head", "-n", "1", "a"],
        &["grep", "-n", "content", "a"],
    ] {
        runs(&env, words);
    }
}

/// A person approved a form, and not what somebody feeds it later: it is given nothing.
#[test]
fn au_25_what_is_piped_in_does_not_reach_what_was_approved() {
    let env = project(HELD);
    let words = ["exec", "--no-tui", "--", "sh", "-c", "cat > got"];
    // Asked with one text on its input, approved, and run with another one.
    let asked = env.run_with(&words, b"first\n");
    assert_eq!(asked.code, 2, "{asked:?}");
    let hold = text(&waiting(&env).first().unwrap()["hold_id"]);
    let shown = show(&env, &hold);
    let input = &shown["canonical_form"]["input"];
    assert!(input["inherited"].is_object(), "{input}");
    approve(&env, &hold);
    let ran = env.run_with(&words, b"second\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(env.project().join("got")).unwrap(), "");
    // Somebody who promised no input at all has approved another form.
    permitted(&env, &["sh", "-c", "cat > got"]);
    let ran = env.run_with(&words, b"third\n");
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("INPUT_CHANGED"), "{ran:?}");
    // The control: what needs nobody's yes reads what it is fed.
    let env = project(OPEN);
    let ran = env.run_with(&words, b"fed\n");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        fs::read_to_string(env.project().join("got")).unwrap(),
        "fed\n"
    );
}
