//! What no checkpoint holds, such as files with secrets: it is not lost without a person's
//! yes, whichever program would take it away, and a dry run says so too.

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
use std::os::unix::fs::symlink;

use serde_json::Value;
use support::{bare, denied, exec, exec_with, program, project, runs};
use testkit::TestEnv;
use testkit::tree::git;

const SECRET: &str = "TOKEN=hunter2hunter2\n";

/// A repository in which git keeps `.env`, and a branch `other`.
fn repository() -> TestEnv {
    let env = bare();
    let root = env.project();
    git(&root, &["init", "-q", "-b", "main"]);
    env.write("project/a", "a\n");
    env.write("project/sub/b", "b\n");
    env.write("project/.env", "TOKEN=one\n");
    git(&root, &["add", "-f", "."]);
    git(&root, &["commit", "-qm", "first"]);
    git(&root, &["branch", "other"]);
    env
}

#[track_caller]
fn rehearsed(env: &TestEnv, words: &[&str]) -> (i32, Value) {
    exec_with(env, &["--dry-run"], words)
}

#[track_caller]
fn would_run(env: &TestEnv, words: &[&str]) {
    let (code, reply) = rehearsed(env, words);
    assert_eq!(code, 0, "{words:?}: {reply:#}");
}

/// A dry run and the real one say the same: that a person is asked, and why.
#[track_caller]
fn is_asked(env: &TestEnv, words: &[&str], names: &str) {
    let (code, foretold) = rehearsed(env, words);
    assert_eq!(code, 4, "{words:?}: {foretold:#}");
    let denial = denied(env, words, "APPROVAL_REQUIRED");
    for said in ["code", "reason", "policy_basis"] {
        assert_eq!(foretold["denial"][said], denial[said], "{words:?}");
    }
    let form = &foretold["canonical_form"];
    assert_ne!(form["reversibility"], "reversible", "{words:?}");
    let remainder = form["remainder"].to_string();
    assert!(remainder.contains(names), "{words:?}: {remainder}");
}

#[test]
fn au_03_git_does_not_overwrite_what_no_checkpoint_holds() {
    let env = repository();
    env.write("project/.env", SECRET);
    for words in [
        &["git", "reset", "--hard"][..],
        &["git", "checkout", "--", "."],
        &["git", "checkout", ".env"],
        &["git", "checkout", "-f", "other"],
        &["git", "restore", "."],
        &["git", "restore", "--source", "other", ".env"],
        &["git", "switch", "--discard-changes", "other"],
        &["git", "read-tree", "-u", "--reset", "HEAD"],
        &["git", "checkout-index", "-fa"],
        &["git", "stash"],
        &["git", "stash", "-u"],
        &["git", "-C", "sub", "checkout", "--", "../.env"],
        &["sh", "-c", "cd sub && git stash push -- ../.env"],
    ] {
        is_asked(&env, words, ".env");
        let kept = fs::read_to_string(env.project().join(".env")).unwrap();
        assert_eq!(kept, SECRET, "{words:?}");
    }
    // What is said to be left alone does not stand in the way.
    for words in [
        &["git", "checkout", "--", "a"][..],
        &["git", "restore", "sub"],
        &["git", "restore", "--staged", "."],
        &["git", "reset"],
        &["git", "checkout", "other"],
        &["git", "switch", "-c", "new"],
        &["git", "stash", "push", "--", "a"],
    ] {
        would_run(&env, words);
    }
}

#[test]
fn au_03_what_git_has_as_it_is_is_not_lost() {
    let env = repository();
    env.write("project/a", "changed\n");
    for words in [
        &["git", "reset", "--hard"][..],
        &["git", "stash"],
        &["git", "checkout", "-f", "other"],
    ] {
        would_run(&env, words);
    }
    let reply = runs(&env, &["git", "checkout", "--", "."]);
    assert_eq!(reply["reversibility"], "reversible", "{reply:#}");
}

#[test]
fn au_03_what_git_does_not_keep_is_in_its_way_only_where_it_is_told_so() {
    let env = repository();
    let root = env.project();
    git(&root, &["rm", "-q", "--cached", ".env"]);
    git(&root, &["commit", "-qm", "without secrets"]);
    env.write("project/.env", SECRET);
    for words in [
        &["git", "reset", "--hard"][..],
        &["git", "checkout", "--", "."],
        &["git", "stash"],
        &["git", "restore", "."],
    ] {
        would_run(&env, words);
    }
    is_asked(&env, &["git", "stash", "-u"], ".env");
    env.write("project/.gitignore", ".env\n");
    would_run(&env, &["git", "stash", "-u"]);
    is_asked(&env, &["git", "stash", "--all"], ".env");
    // The other branch has one, which git puts in the place of what it ignores.
    is_asked(&env, &["git", "checkout", "other"], ".env");
    is_asked(&env, &["git", "reset", "--hard", "other"], ".env");
}

#[test]
fn au_44_a_dry_run_knows_what_a_checkpoint_leaves_out() {
    let env = bare();
    git(&env.project(), &["init", "-q"]);
    env.write("project/a", "a\n");
    env.write("project/cfg/.env", SECRET);
    for words in [
        &["rm", "-rf", "cfg"][..],
        &["mv", "cfg", "cfg2"],
        &["git", "clean", "-fdx"],
        &["find", "cfg", "-delete"],
        &["sed", "-i", "s/a/b/", "cfg/.env"],
        &["sh", "-c", "rm -rf *"],
    ] {
        is_asked(&env, words, "cfg/.env");
    }
    would_run(&env, &["rm", "a"]);
    assert!(env.project().join("cfg/.env").exists());
}

#[test]
fn ga_44_the_atlases_we_ship_ask_before_what_cannot_be_undone() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in ["atlases/starter.yaml", "../../examples/undo.yaml"] {
        let env = project(&fs::read_to_string(root.join(file)).unwrap());
        env.write("project/.env", SECRET);
        program(&env, "build", b"#!/bin/sh\necho made > made\n");
        denied(&env, &["rm", ".env"], "APPROVAL_REQUIRED");
        denied(&env, &["cp", "a", ".env"], "APPROVAL_REQUIRED");
        assert_eq!(
            fs::read_to_string(env.project().join(".env")).unwrap(),
            SECRET
        );
        runs(&env, &["cp", "a", "b"]);
        runs(&env, &["rm", "b"]);
        runs(&env, &["./build"]);
    }
}

#[test]
fn au_10_the_log_of_operations_is_not_an_agents() {
    let env = bare();
    env.write("project/a", "a\n");
    env.json(&["checkpoint", "--reason", "why"]);
    let log = ".audit/checkpoint-operations.log";
    symlink(".audit", env.project().join("elsewhere")).unwrap();
    let (code, reply) = exec(&env, &["cat", log]);
    assert_eq!(code, 0, "reading is free: {reply:#}");
    for words in [
        &["rm", "-rf", ".audit"][..],
        &["rm", log],
        &["cp", "a", log],
        &["mv", ".audit", "old"],
        &[
            "sh",
            "-c",
            "echo forged >> .audit/checkpoint-operations.log",
        ],
        &["rm", "elsewhere/checkpoint-operations.log"],
    ] {
        denied(&env, words, "CONTROL_FORBIDDEN");
    }
    assert!(env.project().join(log).exists());
}

#[test]
fn au_12_what_cannot_be_taken_back_is_told_to_people_too() {
    let env = bare();
    env.write("project/.env", SECRET);
    program(&env, "tidy", b"#!/bin/sh\nrm .env\n");
    let run = env.run(&["exec", "--no-tui", "--", "./tidy"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.is_empty(), "{run:?}");
    assert!(
        run.stderr.contains("`.env` is not in the checkpoint"),
        "{run:?}"
    );
}

#[test]
fn au_44_a_command_that_took_too_long_is_told_of() {
    let env = bare();
    env.write("project/a", "a\n");
    let words = ["tail", "-f", "a"];
    let (code, reply) = exec_with(&env, &["--timeout", "1ms"], &words);
    assert_eq!((code, &reply["ended"]), (3, &Value::from("timed_out")));
    let run = env.run(&["exec", "--timeout", "1ms", "--", "tail", "-f", "a"]);
    assert_eq!(run.code, 3);
    assert!(run.stderr.contains("took longer than 1ms"), "{run:?}");
    assert_eq!(runs(&env, &["cat", "a"])["ended"], "by_itself");
}
