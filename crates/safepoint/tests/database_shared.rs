//! A database that others write to while a change is made there, or after it: their rows stay,
//! whatever becomes of the change.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests do what the product may not"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;

use rusqlite::Connection;
use serde_json::{Value, json};
use testkit::TestEnv;

/// A project with a database that somebody has open.
struct Shop {
    env: TestEnv,
    open: Connection,
    begun: PathBuf,
    go: PathBuf,
}

impl Shop {
    fn new() -> Self {
        let env = support::env();
        let open = Connection::open(env.project().join("app.db")).unwrap();
        open.execute_batch(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT);
             INSERT INTO users VALUES (1, 'Ann'), (2, 'Bob'); CREATE TABLE orders (id INTEGER);",
        )
        .unwrap();
        let (begun, go) = (env.scratch().join("begun"), env.scratch().join("go"));
        Self {
            env,
            open,
            begun,
            go,
        }
    }

    /// All names and orders.
    fn rows(&self) -> String {
        let query = "SELECT (SELECT group_concat(name, ' ') FROM (SELECT name FROM users ORDER BY id)) \
                     || '/' || coalesce((SELECT group_concat(id, ' ') FROM orders), '')";
        self.open.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Changes the database, while others write there as it is checked.
    fn change(&self, sql: &str, others: &str, ends: u8) -> (i32, Value) {
        let check = format!(
            "touch '{}'; while [ ! -e '{}' ]; do sleep 0.01; done; exit {ends}",
            self.begun.display(),
            self.go.display()
        );
        let operation = json!({ "type": "sql", "sql": sql }).to_string();
        let words = [
            "mutate",
            "sqlite:app.db",
            "--auto-checkpoint",
            "--operation",
            &operation,
            "--verify",
            &check,
            "--json",
        ];
        let mut command = self.env.command(&words);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.unwrap();
        while !self.begun.exists() {
            assert!(child.try_wait().unwrap().is_none(), "it ended too soon");
            std::thread::yield_now();
        }
        self.open.execute_batch(others).unwrap();
        fs::write(&self.go, "").unwrap();
        let output = child.wait_with_output().unwrap();
        fs::remove_file(&self.begun).unwrap();
        fs::remove_file(&self.go).unwrap();
        let reply = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), reply)
    }

    /// Changes the database, and is killed at this point.
    fn killed(&self, sql: &str, point: &str) {
        let operation = json!({ "type": "sql", "sql": sql }).to_string();
        let words = [
            "mutate",
            "sqlite:app.db",
            "--auto-checkpoint",
            "--operation",
            &operation,
        ];
        let mut command = self.env.command(&words);
        let output = command.env("SAFEPOINT_FAULT", point).output().unwrap();
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
    }
}

#[test]
fn st_27_what_others_wrote_to_a_database_stays_when_a_change_is_taken_back() {
    let shop = Shop::new();
    // Nobody else wrote anything: there is nothing to be told.
    let (code, reply) = shop.change("DELETE FROM users", "", 1);
    assert_eq!((code, &*shop.rows()), (1, "Ann Bob/"), "{reply:#}");
    assert_eq!(reply["taken_back"], json!([]), "{reply:#}");
    assert_eq!(reply["side_effects"], json!([]), "{reply:#}");

    let others = "INSERT INTO orders VALUES (99); INSERT INTO users VALUES (7, 'Eve')";
    let (code, reply) = shop.change("DELETE FROM users", others, 1);
    assert_eq!((code, &*shop.rows()), (1, "Ann Bob Eve/99"), "{reply:#}");
    let warnings = reply["warnings"].to_string();
    assert!(
        warnings.contains("only the rows of the change"),
        "{reply:#}"
    );
    let beside = reply["side_effects"].to_string();
    assert!(beside.contains("app.db"), "{reply:#}");
    assert_eq!(reply["taken_back"], json!([]), "{reply:#}");
    let suggestion = reply["error"]["suggestion"].to_string();
    assert!(!suggestion.contains("everything is as it was"), "{reply:#}");
}

#[test]
fn st_27_a_change_that_others_have_built_on_is_left_and_named() {
    let shop = Shop::new();
    let ours = "UPDATE users SET name = 'Anna' WHERE id = 1";
    let theirs = "UPDATE users SET name = 'Hannah' WHERE id = 1; INSERT INTO orders VALUES (99)";
    let (code, reply) = shop.change(ours, theirs, 1);
    assert_eq!((code, &*shop.rows()), (1, "Hannah Bob/99"), "{reply:#}");
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("not taken back, since others"),
        "{message}"
    );
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("id=1, name='Anna'"), "{reply:#}");
    // What is said brings it back, and takes theirs with it.
    let before = reply["before_checkpoint_id"].as_str().unwrap();
    assert!(
        warnings.contains(&format!("rollback {before}")),
        "{reply:#}"
    );
    let log = shop.env.project().join(".audit/checkpoint-operations.log");
    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("failed, taken back in part"), "{log}");
    let name = reply["side_effects"][0].as_str().unwrap();
    shop.env.json(&["rollback", before, name]);
    assert_eq!(shop.rows(), "Ann Bob/");
}

#[test]
fn st_35_undo_of_a_change_in_a_database_leaves_the_rows_of_others() {
    let shop = Shop::new();
    let ours = "UPDATE users SET name = 'Anna' WHERE id = 1; DELETE FROM users WHERE id = 2";
    // Some while it is checked, and some later.
    let (code, reply) = shop.change(ours, "INSERT INTO orders VALUES (1)", 0);
    assert_eq!(code, 0, "{reply:#}");
    shop.open
        .execute_batch("INSERT INTO orders VALUES (2); INSERT INTO users VALUES (7, 'Eve')")
        .unwrap();
    let plan = shop.env.json(&["undo", "--dry-run"]);
    let diff = plan["diff"].as_str().unwrap();
    assert!(diff.contains("name='Ann'"), "{plan:#}");
    assert!(
        !diff.contains("Eve") && !diff.contains("orders"),
        "{plan:#}"
    );
    let undone = shop.env.json(&["undo"]);
    assert_eq!(undone["verification"]["match"], true, "{undone:#}");
    assert_eq!(shop.rows(), "Ann Bob Eve/1 2");
    shop.open
        .execute_batch("INSERT INTO orders VALUES (3)")
        .unwrap();
    shop.env.json(&["redo"]);
    assert_eq!(shop.rows(), "Anna Eve/1 2 3");

    // Where they have changed the same row since, nothing is done, and the row is named.
    shop.open
        .execute_batch("UPDATE users SET name = 'Hannah' WHERE id = 1")
        .unwrap();
    let action = reply["action_id"].as_str().unwrap();
    let refused = shop.env.json_with_code(9, &["undo", action]);
    assert!(refused.to_string().contains("name='Anna'"), "{refused:#}");
    assert_eq!(shop.rows(), "Hannah Eve/1 2 3");
}

#[test]
fn st_32_undo_of_a_killed_change_in_a_database_leaves_the_rows_of_others() {
    let shop = Shop::new();
    shop.killed("DELETE FROM users WHERE id = 2", "mutate.looked");
    shop.open
        .execute_batch("INSERT INTO orders VALUES (1)")
        .unwrap();
    let run = shop.env.run(&["checkpoint"]);
    assert!(run.stderr.contains("nobody saw how far it came"), "{run:?}");
    let log = shop.env.json(&["log"]);
    assert_eq!(log["actions"][0]["outcome"], "unknown", "{log:#}");
    shop.open
        .execute_batch("INSERT INTO orders VALUES (2)")
        .unwrap();
    let undone = shop.env.json(&["undo"]);
    assert_eq!(undone["warnings"], json!([]), "{undone:#}");
    assert_eq!(shop.rows(), "Ann Bob/1 2");
}

#[test]
fn st_32_what_nobody_saw_a_killed_change_do_goes_back_only_by_its_name() {
    let shop = Shop::new();
    // Between the commit and the look at what it has made.
    shop.killed("DELETE FROM users WHERE id = 2", "mutate.stepped");
    shop.open
        .execute_batch("INSERT INTO orders VALUES (1)")
        .unwrap();
    shop.env.run(&["checkpoint"]);
    let refused = shop.env.json_with_code(9, &["undo"]);
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("also what others have written"),
        "{message}"
    );
    let action = refused["error"]["location"].as_str().unwrap();
    let suggestion = refused["error"]["suggestion"].as_str().unwrap();
    assert!(
        suggestion.contains(&format!("`safepoint undo --dry-run {action}`")),
        "{refused:#}"
    );
    assert_eq!(shop.rows(), "Ann/1");
    // The plan names what would go.
    let plan = shop.env.json(&["undo", "--dry-run", action]);
    assert!(
        plan["diff"].as_str().unwrap().contains("orders: 1 → 0"),
        "{plan:#}"
    );
    assert!(plan["warnings"][0].is_string(), "{plan:#}");
    let undone = shop.env.json(&["undo", action]);
    assert!(undone["warnings"][0].is_string(), "{undone:#}");
    assert_eq!(shop.rows(), "Ann Bob/");
}
