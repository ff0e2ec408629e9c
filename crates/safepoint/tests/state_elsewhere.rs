//! Checkpoints with the record in PostgreSQL, and with a watcher at work.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests do what the product may not"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use testkit::{Database, Room, TestEnv};

fn env() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/src/deep/a.txt", "one\n");
    env.write("project/b.txt", "two\n");
    env
}

fn id(reply: &serde_json::Value) -> String {
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

#[test]
fn st_41_the_same_on_postgresql() {
    let room = Room::new(Database::Postgres);
    let mut env = env();
    env.set("SAFEPOINT_STORE", &room.address());
    let first = id(&env.json(&["checkpoint", "--reason", "first"]));
    env.write("project/b.txt", "agent\n");
    env.json(&["checkpoint", "--expiry", "7d"]);
    let log = env.json(&["log"]);
    let action = log["actions"][0]["action_id"].as_str().unwrap();
    env.write("project/c.txt", "later\n");
    assert_eq!(env.json(&["undo", action])["verification"]["match"], true);
    assert_eq!(
        std::fs::read(env.project().join("b.txt")).unwrap(),
        b"two\n"
    );
    assert!(
        env.project().join("c.txt").exists(),
        "what came later stays"
    );
    assert_eq!(env.json(&["rollback", &first])["restored_to"], *first);
    assert!(!env.project().join("c.txt").exists());
    env.json(&["redo"]);
    assert!(env.project().join("c.txt").exists());
    env.json(&["pin", &first]);
    assert_eq!(
        env.json(&["list"])["checkpoints"].as_array().unwrap().len(),
        2
    );
    assert_eq!(env.json(&["gc"])["deleted"].as_array().unwrap().len(), 0);
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
    assert!(!env.home().join("data/store.db").exists());
}

/// A watcher that ends with the test.
struct Watching(Child);

impl Watching {
    fn begin(env: &TestEnv) -> Self {
        let mut child = env
            .command(&["watch", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert!(line.contains("\"running\":true"), "{line}");
        Self(child)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn st_17_with_a_watcher_a_checkpoint_finds_the_same_as_without() {
    let env = env();
    testkit::tree::git(&env.project(), &["init", "-q"]);
    let watching = Watching::begin(&env);
    assert_eq!(env.json(&["watch", "--status"])["running"], true);
    id(&env.json(&["checkpoint"]));
    for round in 0..4 {
        env.write("project/src/deep/a.txt", &format!("round {round}\n"));
        env.write(&format!("project/new{round}/x/y.txt"), "y");
        env.write("project/.env", "SECRET=1\n");
        let (from, to) = (format!("new{round}/x"), format!("new{round}/z"));
        std::fs::rename(env.project().join(from), env.project().join(to)).unwrap();
        testkit::tree::git(&env.project(), &["add", "b.txt"]);
        if round == 2 {
            std::fs::remove_dir_all(env.project().join("new0")).unwrap();
        }
        let watched = env.json(&["checkpoint"]);
        // Another home knows no watcher, and looks at everything.
        let elsewhere = env.root().join(format!("elsewhere{round}"));
        let looked = env
            .command(&["checkpoint", "--json", "--type", "file_backup"])
            .env("SAFEPOINT_HOME", &elsewhere)
            .output()
            .unwrap();
        let looked: serde_json::Value = serde_json::from_slice(&looked.stdout).unwrap();
        let files = |reply: &serde_json::Value| reply["checkpoint"]["scope"]["files"].clone();
        assert_eq!(files(&watched), files(&looked), "{round}");
        assert_eq!(
            watched["pre_mutation_state"]["hash"], looked["pre_mutation_state"]["hash"],
            "{round}"
        );
        assert_eq!(watched["sensitive"], looked["sensitive"], "{round}");
        env.json(&["verify", &id(&watched)]);
    }
    drop(watching);
    assert_eq!(env.json(&["watch", "--status"])["running"], false);
    env.json(&["checkpoint"]);
}

#[test]
fn st_17_a_second_watcher_is_refused_and_one_that_was_killed_is_replaced() {
    let env = env();
    let watching = Watching::begin(&env);
    let run = env.run(&["watch", "--json"]);
    assert_eq!(run.code, 9, "{run:?}");
    drop(watching);
    drop(Watching::begin(&env));
}

#[test]
fn st_17_a_roll_back_does_not_believe_the_watcher() {
    let env = env();
    let _watching = Watching::begin(&env);
    let first = id(&env.json(&["checkpoint"]));
    env.write("project/b.txt", "agent\n");
    env.json(&["checkpoint"]);
    let reply = env.json(&["rollback", &first]);
    assert_eq!(reply["verification"]["match"], true);
    assert_eq!(
        std::fs::read(env.project().join("b.txt")).unwrap(),
        b"two\n"
    );
    let after = env.json(&["checkpoint"]);
    assert_eq!(
        after["pre_mutation_state"]["hash"],
        env.json(&["show", &first])["record"]["hash"]
    );
}
