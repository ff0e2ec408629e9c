//! A push is approved as what it is: these commits, to this address, with these hooks.

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

use support::{approve, bare, exec, hold_of, permitted, program, runs, show};
use testkit::TestEnv;

/// What git says, run as a person would.
#[track_caller]
fn git(place: &Path, words: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.org"])
        .args(words)
        .current_dir(place)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("HOME", place)
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit, and two empty ones it could be pushed to.
fn repository() -> TestEnv {
    let env = bare();
    support::add(&env, "ann");
    for remote in ["remote.git", "other.git"] {
        git(env.root(), &["init", "-q", "--bare", remote]);
    }
    let place = env.project();
    git(&place, &["init", "-q", "-b", "main"]);
    git(
        &place,
        &["remote", "add", "origin", &address(&env, "remote.git")],
    );
    git(&place, &["config", "push.default", "current"]);
    commit(&env, "one");
    env
}

fn address(env: &TestEnv, name: &str) -> String {
    env.root().join(name).display().to_string()
}

fn commit(env: &TestEnv, text: &str) {
    env.write("project/a", text);
    git(&env.project(), &["add", "a"]);
    git(&env.project(), &["commit", "-q", "-m", text]);
}

/// What a remote has got.
fn received(env: &TestEnv, name: &str) -> String {
    git(
        &env.root().join(name),
        &["for-each-ref", "--format=%(objectname)"],
    )
}

#[test]
fn au_25_a_push_is_bound_to_address_commits_and_hooks() {
    type Swap = fn(&TestEnv);
    let swaps: [(&str, Swap); 7] = [
        ("the address", |env| {
            let other = address(env, "other.git");
            git(&env.project(), &["remote", "set-url", "origin", &other]);
        }),
        ("an address for pushes only", |env| {
            let other = address(env, "other.git");
            git(
                &env.project(),
                &["remote", "set-url", "--push", "origin", &other],
            );
        }),
        ("a rule that rewrites it", |env| {
            let name = format!("url.{}.pushInsteadOf", address(env, "other.git"));
            git(
                &env.project(),
                &["config", &name, &address(env, "remote.git")],
            );
        }),
        ("another commit", |env| commit(env, "two")),
        ("another commit in place of this one", |env| {
            git(&env.project(), &["commit", "-q", "--amend", "-m", "evil"]);
        }),
        ("a hook", |env| {
            program(env, ".git/hooks/pre-push", b"#!/bin/sh\ntouch ran\n");
        }),
        ("a folder of hooks", |env| {
            program(env, "hooks/pre-push", b"#!/bin/sh\ntouch ran\n");
            git(&env.project(), &["config", "core.hooksPath", "hooks"]);
        }),
    ];
    let ways: [&[&str]; 3] = [
        &["git", "push", "origin", "main"],
        &["git", "push", "origin"],
        &["sh", "-c", "git push -q origin HEAD:main"],
    ];
    for (number, (what, swap)) in swaps.into_iter().enumerate() {
        let env = repository();
        let words = ways.get(number % ways.len()).unwrap();
        permitted(&env, words);
        swap(&env);
        let (exit, reply) = exec(&env, words);
        let code = reply["denial"]["code"].as_str().unwrap_or_default();
        assert!(
            // A hook is a script: its interpreter is bound, too.
            matches!(
                code,
                "TARGET_CHANGED" | "PATH_IDENTITY_CHANGED" | "EXECUTABLE_CHANGED"
            ),
            "{what}: {reply:#}"
        );
        assert_eq!(exit, 2, "{what}: {reply:#}");
        for remote in ["remote.git", "other.git"] {
            assert_eq!(received(&env, remote), "", "{what}");
        }
        assert!(!env.project().join("ran").exists(), "{what}");
    }
    // The control: nothing has changed that matters.
    for words in ways {
        let env = repository();
        permitted(&env, words);
        git(&env.project(), &["config", "user.nickname", "a"]);
        git(&env.project(), &["branch", "beside"]);
        runs(&env, words);
        let head = git(&env.project(), &["rev-parse", "HEAD"]);
        assert_eq!(received(&env, "remote.git"), head);
    }
}

#[test]
fn au_01_whoever_approves_a_push_sees_what_goes_where() {
    let env = repository();
    let place = env.project();
    let secret = "https://ann:hunter2-9f8e7d6c@example.org:8443/site.git";
    git(&place, &["remote", "set-url", "origin", secret]);
    let hold = hold_of(&env, &["git", "push", "origin", "main"]);
    let shown = show(&env, &hold);
    let form = &shown["canonical_form"];
    let head = git(&place, &["rev-parse", "HEAD"]);
    assert_eq!(form["hosts"].to_string(), "[\"example.org:8443\"]");
    let paths = form["paths"].to_string();
    assert!(
        paths.contains(&head) && paths.contains("pre-push"),
        "{form:#}"
    );
    assert!(paths.contains("example.org:8443/site.git"), "{form:#}");
    assert!(!shown.to_string().contains("hunter2"), "{form:#}");
    let page = env.run(&["hold", "show", &hold]).stdout;
    assert!(page.contains(&format!("leads to {head}")), "{page}");
    // Another secret is another address.
    approve(&env, &hold);
    let other = secret.replace("hunter2", "hunter3");
    git(&place, &["remote", "set-url", "origin", &other]);
    let (exit, reply) = exec(&env, &["git", "push", "origin", "main"]);
    assert_eq!(exit, 2, "{reply:#}");
    assert!(fs::metadata(place.join(".git/refs/remotes")).is_err());
}
