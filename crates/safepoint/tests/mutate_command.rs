//! A change that runs a program: judged where it runs, covered by a checkpoint, behind the fence.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

#[path = "support/mutation.rs"]
mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::{Value, json};
use support::{batch, checkpoint, mutate, spent_by, text};
use testkit::TestEnv;

/// A workspace under the rules that every installation has.
fn workspace() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/.env", "TOKEN=1\n");
    env.write("project/src/a.txt", "a\n");
    env.write("project/config/b.txt", "b\n");
    env
}

fn command(argv: &[&str]) -> Value {
    json!({ "type": "command", "argv": argv })
}

/// A file where the fence lets nobody write, and the directory it is in.
fn outside() -> (tempfile::TempDir, PathBuf) {
    let place = testkit::outside(env!("CARGO_TARGET_TMPDIR"));
    let victim = place.path().join("victim");
    fs::write(&victim, "work\n").unwrap();
    (place, victim)
}

#[test]
fn st_22_a_command_does_not_change_what_no_checkpoint_holds() {
    let env = workspace();
    let id = checkpoint(&env, &[]);
    let secret = env.project().join(".env");
    let cases = [
        (".", command(&["rm", ".env"])),
        ("src", command(&["rm", "../.env"])),
        (".", command(&["sh", "-c", "echo x > .env"])),
        (".", command(&["sh", "-c", "cd src && rm ../.env"])),
        (".", command(&["mv", ".env", "src/kept"])),
    ];
    for (target, operation) in cases {
        let answer = mutate(&env, &id, target, &operation, &[]);
        let reply = answer.failed(2, "F504");
        let message = text(&reply["error"]["message"]);
        assert!(message.contains("no checkpoint holds it"), "{message}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "TOKEN=1\n");
    }
    // A person decides about a check that does.
    let edit = json!({ "type": "write", "content": "new\n" });
    let answer = mutate(&env, &id, "src/a.txt", &edit, &["--verify", "rm .env"]);
    answer.failed(2, "F502");
    assert!(secret.exists());
    // And about one that changes what the checkpoint is not of.
    let part = checkpoint(&env, &["src"]);
    let more = ["--verify", "rm config/b.txt"];
    mutate(&env, &part, "src/a.txt", &edit, &more).failed(2, "F502");
    assert!(env.project().join("config/b.txt").exists());
    // A link that an earlier step makes leads to the same file.
    let steps = json!([
        { "target": "src/alias", "type": "symlink", "to": "../.env" },
        { "target": "src", "type": "command", "argv": ["sh", "-c", "echo x > alias"] },
    ]);
    assert_ne!(batch(&env, &id, &steps, &[]).code, 0);
    assert_eq!(fs::read_to_string(&secret).unwrap(), "TOKEN=1\n");
    assert!(env.project().join("src/alias").symlink_metadata().is_err());
    assert_eq!(spent_by(&env, &id), None);
}

#[test]
fn st_22_a_command_changes_nothing_that_the_checkpoint_is_not_of() {
    let env = workspace();
    let id = checkpoint(&env, &["config"]);
    let answer = mutate(&env, &id, "config", &command(&["rm", "../src/a.txt"]), &[]);
    let reply = answer.failed(2, "F501");
    let message = text(&reply["error"]["message"]);
    assert!(
        message.contains("`src/a.txt` is not in its scope"),
        "{message}"
    );
    assert!(env.project().join("src/a.txt").exists());
    mutate(&env, &id, "config", &command(&["rm", "b.txt"]), &[]).done();
}

#[test]
fn au_03_a_command_is_judged_in_the_directory_in_which_it_runs() {
    let env = workspace();
    let (place, victim) = outside();
    symlink(place.path(), env.project().join("config/out")).unwrap();
    let id = checkpoint(&env, &[]);
    for (target, name) in [("config", "out/victim"), (".", "config/out/victim")] {
        let answer = mutate(&env, &id, target, &command(&["rm", name]), &[]);
        assert_eq!(answer.code, 2, "{answer:?}");
        let hold = text(&answer.reply["denial"]["hold_id"]);
        let shown = env.json(&["hold", "show", &hold]);
        let paths = &shown["canonical_form"]["paths"];
        let named = paths.to_string().contains(victim.to_str().unwrap());
        assert!(named, "{shown}");
        assert!(victim.exists());
    }
}

#[test]
fn au_27_the_programs_of_a_change_run_behind_the_fence() {
    let env = workspace();
    let (_place, victim) = outside();
    let id = checkpoint(&env, &[]);
    env.write(
        "project/build.sh",
        &format!("echo made > src/made; echo mine > {}\n", victim.display()),
    );
    // Nobody knows what it does, and so it runs where it can do no harm.
    let answer = mutate(&env, &id, ".", &command(&["sh", "build.sh"]), &[]);
    let reply = answer.failed(1, "F514");
    assert!(
        text(&reply["error"]["message"]).contains("ermission denied"),
        "{reply}"
    );
    assert!(!env.project().join("src/made").exists());
    let edit = json!({ "type": "write", "content": "new\n" });
    let more = ["--verify", "sh build.sh"];
    mutate(&env, &id, "src/a.txt", &edit, &more).failed(1, "F513");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "work\n");
    // What a check made is left, and is named.
    fs::remove_file(env.project().join("src/made")).unwrap();
    // What stays inside is listed.
    env.write(
        "project/build.sh",
        "echo made > src/made; rm config/b.txt\n",
    );
    let reply = mutate(&env, &id, ".", &command(&["sh", "build.sh"]), &[]).done();
    let changes = json!([
        { "path": "config/b.txt", "change": "deleted" },
        { "path": "src/made", "change": "created" },
    ]);
    assert_eq!(reply["changes"], changes);
}

#[test]
fn st_22_what_a_command_did_is_listed_whatever_the_checkpoint_is_of() {
    let env = workspace();
    let id = checkpoint(&env, &["config"]);
    env.write("project/build.sh", "echo made > ../src/made; rm ../.env\n");
    let operation = command(&["sh", "../build.sh"]);
    let reply = mutate(&env, &id, "config", &operation, &[]).done();
    let changes = json!([
        { "path": "src/made", "change": "created" },
        { "path": ".env", "change": "deleted" },
    ]);
    assert_eq!(reply["changes"], changes);
    assert_eq!(reply["side_effects"], json!(["src/made", ".env"]));
    // Of a program that nobody knows it is only seen later that it took this away.
    assert!(
        reply["warnings"]
            .to_string()
            .contains("`.env` is no longer"),
        "{reply}"
    );
    env.json(&["undo", &text(&reply["action_id"])]);
    assert!(!env.project().join("src/made").exists());
    assert!(env.project().join(".env").exists());
}

#[test]
fn au_03_nothing_is_shown_as_covered_and_as_not_covered() {
    let env = workspace();
    env.run(&["exec", "--no-tui", "--", "rm", ".env", "src/a.txt"]);
    let holds = env.json(&["hold", "list"]);
    let id = text(&holds["holds"][0]["hold_id"]);
    let shown = env.json(&["hold", "show", &id]);
    let covered = shown["coverage"]["covered"].to_string();
    assert!(covered.contains("src/a.txt"), "{shown}");
    assert!(!covered.contains(".env"), "{shown}");
    let not = shown["coverage"]["not_covered"].to_string();
    assert!(not.contains(".env"), "{shown}");
}

#[test]
fn st_22_a_step_of_a_workflow_is_held_to_the_same() {
    let env = workspace();
    let steps = "name: wipe\nsteps:\n  - id: wipe\n    \
        mutate: {target: '.', type: command, argv: [rm, .env]}\n";
    env.write("project/wipe.yaml", steps);
    let run = env.run(&["run", "./wipe.yaml", "--objective", "x", "--no-tui"]);
    assert_eq!(run.code, 2, "{run:?}");
    let said = format!("{}{}", run.stdout, run.stderr);
    assert!(said.contains("no checkpoint holds it"), "{run:?}");
    assert!(env.project().join(".env").exists());
}

#[test]
fn au_24_what_a_command_does_outside_is_told_as_never_brought_back() {
    let env = workspace();
    env.run(&["operator", "add", "ann"]);
    let (place, victim) = outside();
    symlink(place.path(), env.project().join("config/out")).unwrap();
    let id = checkpoint(&env, &[]);
    let remove = command(&["rm", "out/victim"]);
    let asked = mutate(&env, &id, "config", &remove, &[]).failed(2, "F502");
    let hold = text(&asked["denial"]["hold_id"]);
    let shown = env.json(&["hold", "show", &hold]);
    let fingerprint = text(&shown["fingerprint"]);
    let mut words = vec!["hold", "approve", &hold, "--fingerprint", &fingerprint];
    if let Some(word) = shown["confirm"].as_str() {
        words.extend(["--confirm", word]);
    }
    assert_eq!(env.run(&words).code, 0);
    let reply = mutate(&env, &id, "config", &remove, &[]).done();
    assert!(!victim.exists());
    let told = format!("`{}` is outside the workspace", victim.display());
    assert_eq!(reply["not_covered"], json!([told]), "{reply:#}");
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("no roll back brings back"), "{reply:#}");
    assert!(warnings.contains(&told), "{reply:#}");
}

#[test]
fn au_24_what_a_checkpoint_holds_encrypted_is_no_reason_to_ask() {
    let env = workspace();
    let id = text(&env.json(&["checkpoint", "--seal-sensitive"])["checkpoint_id"]);
    let reply = mutate(&env, &id, ".", &command(&["rm", ".env"]), &[]).done();
    assert_eq!(reply["not_covered"], json!([]), "{reply:#}");
    let log = env.json(&["log"]);
    let log = &log["actions"][0];
    assert_eq!(log["remainder"], json!([]), "{log:#}");
    assert_eq!(log["not_held"], json!([]), "{log:#}");
    let told = json!([{ "path": ".env", "change": "deleted" }]);
    assert_eq!(log["changes"], told, "{log:#}");
}

#[test]
fn su_10_values_of_given_variables_are_in_no_message_and_no_record() {
    let env = workspace();
    let id = checkpoint(&env, &[]);
    let operation = json!({
        "type": "command",
        "argv": ["sh", "-c", "echo \"got $SECRETV\" >&2; exit 1"],
        "env": { "SECRETV": "zebra-4411-giraffe" },
    });
    let answer = mutate(&env, &id, ".", &operation, &[]);
    let said = format!("{answer:?}");
    let reply = answer.failed(1, "F514");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("got [redacted:"), "{message}");
    let log = env.project().join(".audit/checkpoint-operations.log");
    let records = [
        said,
        fs::read_to_string(log).unwrap(),
        env.run(&["audit"]).stdout,
        env.run(&["--json", "trail", "list"]).stdout,
    ];
    for record in records {
        assert!(!record.contains("zebra"), "{record}");
    }
}
