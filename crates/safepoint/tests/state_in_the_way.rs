//! What a program leaves where Safepoint has files of its own, or where it reads: nobody waits for
//! a pipe, and nobody is kept from going back.

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
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use support::bare;
use testkit::TestEnv;

fn repository() -> TestEnv {
    let env = bare();
    env.write("project/a", "before\n");
    for arguments in [
        &["init", "--quiet"][..],
        &["add", "a"],
        &["commit", "--quiet", "--message=one"],
    ] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=t", "-c", "user.email=t@t"]);
        git.args(arguments).current_dir(env.project());
        assert!(git.status().unwrap().success());
    }
    env
}

fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

/// Runs a command that must come to its end. One that waits for a minute waits for ever.
#[track_caller]
fn ends(env: &TestEnv, arguments: &[&str]) {
    let plain = env.command(arguments);
    let mut command = Command::new("timeout");
    command.arg("60").arg(plain.get_program());
    command.args(plain.get_args()).current_dir(env.project());
    for (name, value) in plain.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

#[test]
fn st_13_a_pipe_in_the_place_of_gits_lock_keeps_nobody_from_going_back() {
    let env = repository();
    let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
    let id = id.as_str().unwrap();
    let lock = env.project().join(".git/index.lock");
    for round in 0..2 {
        env.write("project/a", "damage\n");
        env.write("project/.git/refs/heads/other", &"0".repeat(40));
        fs::remove_file(env.project().join(".git/refs/heads/other")).unwrap();
        fs::write(env.project().join(".git/description"), format!("{round}")).unwrap();
        pipe(&lock);
        ends(&env, &["rollback", id]);
        let content = fs::read(env.project().join("a")).unwrap();
        assert_eq!(content, b"before\n");
        assert!(lock.symlink_metadata().is_err(), "git goes on");
    }
    // Nothing of it is lost, and what comes next has no need of a person either.
    let aside = env.project().join(".git/index.set-aside-1.lock");
    assert!(aside.symlink_metadata().unwrap().file_type().is_fifo());
    ends(&env, &["checkpoint"]);
    ends(&env, &["undo"]);
}

#[test]
fn st_13_what_has_the_name_of_our_directory_keeps_nobody_from_going_back() {
    let makes: [fn(&Path); 3] = [
        |place| pipe(place),
        |place| fs::write(place, "theirs").unwrap(),
        |place| symlink("/nowhere", place).unwrap(),
    ];
    for (number, make) in makes.into_iter().enumerate() {
        let env = repository();
        let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
        let id = id.as_str().unwrap();
        let place = env.project().join(".checkpoints");
        let (aside, content) = (
            env.project().join(".checkpoints.set-aside-1"),
            env.project().join("a"),
        );
        let block = || {
            fs::remove_dir_all(&place).unwrap();
            make(&place);
        };
        env.write("project/a", "damage\n");
        block();
        ends(&env, &["rollback", id, "a"]);
        assert_eq!(fs::read(&content).unwrap(), b"before\n", "{number}");
        assert!(aside.symlink_metadata().is_ok(), "{number}");
        // It is moved for whoever moves names, and for nobody else.
        block();
        let made = env.run(&["--json", "checkpoint"]);
        assert_eq!(made.code, 0, "{made:?}");
        assert!(made.stdout.contains("manifest"), "{made:?}");
        assert!(!place.is_dir(), "{number}");
        ends(&env, &["undo"]);
        assert_eq!(fs::read(&content).unwrap(), b"damage\n", "{number}");
    }
}

#[test]
fn st_13_what_has_the_name_of_our_staging_place_keeps_nobody_from_going_back() {
    let env = repository();
    let id = env.json(&["checkpoint"])["checkpoint_id"].clone();
    let place = env.project().join(".checkpoints/.staging");
    let content = env.project().join("a");
    let makes: [fn(&Path); 3] = [
        |place| pipe(place),
        |place| fs::write(place, "theirs").unwrap(),
        |place| symlink("/nowhere", place).unwrap(),
    ];
    for make in makes {
        env.write("project/a", "damage\n");
        make(&place);
        ends(&env, &["rollback", id.as_str().unwrap(), "a"]);
        assert_eq!(fs::read(&content).unwrap(), b"before\n");
    }
}
