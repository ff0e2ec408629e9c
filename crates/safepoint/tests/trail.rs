//! `safepoint trail …` from the outside.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use insta::assert_snapshot;
use testkit::{Database, Room, TestEnv};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

/// The actor of whoever runs the tests.
fn user() -> String {
    let env = env();
    let entry = env.json(&["trail", "note", "who am I?"]);
    entry["actor"].as_str().unwrap().to_owned()
}

fn with_notes(count: usize) -> TestEnv {
    let env = env();
    for number in 0..count {
        assert_eq!(
            env.run(&["trail", "note", &format!("note {number}")]).code,
            0
        );
    }
    env
}

#[test]
fn tr_08_entries_are_listed_oldest_first_in_pages() {
    let env = with_notes(5);
    assert_snapshot!(env.snapshot(&["trail", "list"]), @r#"
    exit 0
    ----- stdout
         0  [time]  trail_created         safepoint  store  {"origin":"safepoint/log_[id]","replaces":null,"verifier_key":"safepoint/log_[id]+[key]"}
         1  [time]  note                  user:[me]  store  {"text":"note 0"}
         2  [time]  note                  user:[me]  store  {"text":"note 1"}
         3  [time]  note                  user:[me]  store  {"text":"note 2"}
         4  [time]  note                  user:[me]  store  {"text":"note 3"}
         5  [time]  note                  user:[me]  store  {"text":"note 4"}
    "#);
    let page = env.json(&["trail", "list", "--limit", "2"]);
    let seqs = |page: &serde_json::Value| -> Vec<u64> {
        page["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["seq"].as_u64().unwrap())
            .collect()
    };
    assert_eq!((seqs(&page), &page["next"]), (vec![0, 1], &"2".into()));
    let rest = env.json(&["trail", "list", "--from", "2"]);
    assert_eq!(
        (seqs(&rest), &rest["next"]),
        (vec![2, 3, 4, 5], &serde_json::Value::Null)
    );
    let last = env.json(&["trail", "list", "--last", "2", "--kind", "note"]);
    assert_eq!(seqs(&last), [4, 5]);
    let found = env.json(&["trail", "list", "--where", "text=note 3"]);
    assert_eq!(seqs(&found), [4]);
    assert_eq!(
        seqs(&env.json(&["trail", "list", "--since", "1h", "--actor", &user()])),
        [1, 2, 3, 4, 5]
    );
    assert_eq!(
        seqs(&env.json(&["trail", "list", "--until", "2020-01-01T00:00:00Z"])),
        [0; 0]
    );
    assert_eq!(env.run(&["trail", "list", "--session", "ses_none"]).code, 8);
    let lines = env.run(&["trail", "list", "--output", "ndjson"]).stdout;
    assert_eq!(lines.lines().count(), 6);
    let exported = env.run(&["trail", "export", "--format", "jsonl"]).stdout;
    assert_eq!(exported, lines);
}

#[test]
fn su_02_the_beginning_of_an_id_is_enough() {
    let env = env();
    for (stream, action) in [
        ("ses_aaaa", "act_k3f9000000000000"),
        ("ses_abbb", "act_k3z0000000000000"),
    ] {
        let note = ["trail", "note", "x", "--stream", stream, "--action", action];
        assert_eq!(env.run(&note).code, 0);
    }
    let found = |arguments: &[&str]| {
        let page = env.json(&[&["trail", "list"], arguments].concat());
        page["entries"].as_array().unwrap().len()
    };
    assert_eq!(found(&["--action", "act_k3f9"]), 1);
    assert_eq!(found(&["--action", "act_k3z0000000000000"]), 1);
    assert_eq!(found(&["--session", "ses_ab"]), 1);
    let ambiguous = env.run(&["trail", "list", "--action", "act_k3"]);
    assert_eq!(ambiguous.code, 7);
    assert!(
        ambiguous
            .stderr
            .contains("act_k3f9000000000000, act_k3z0000000000000"),
        "{ambiguous:?}"
    );
    assert_eq!(env.run(&["trail", "list", "--session", "ses_a"]).code, 7);
    assert_eq!(env.run(&["trail", "list", "--action", "act_zz"]).code, 8);
}

#[test]
fn su_02_only_a_regular_file_is_ever_replaced() {
    let env = with_notes(1);
    let export = |out: &str| env.run(&["trail", "export", "--format", "jsonl", "--out", out]);
    assert_eq!(export("/dev/null").code, 7);
    let real = env.write("project/real.jsonl", "old");
    std::os::unix::fs::symlink(&real, env.project().join("link.jsonl")).unwrap();
    assert_eq!(export("link.jsonl").code, 0);
    assert!(
        std::fs::read_to_string(&real)
            .unwrap()
            .contains("trail_created")
    );
    assert!(env.project().join("link.jsonl").is_symlink());
    assert_eq!(export("no/such/directory/x.jsonl").code, 1);
    // A link that leads to a pipe stays what it is.
    let pipe = env.project().join("pipe");
    std::os::unix::fs::symlink("/proc/self/fd/1", &pipe).unwrap();
    assert_eq!(export("pipe").code, 7);
    assert!(pipe.is_symlink());
    assert_eq!(export("-").stdout.lines().count(), 2);
}

#[test]
fn tr_08_follow_prints_what_is_added() {
    use std::io::BufRead;
    let env = with_notes(1);
    let mut child = env
        .command(&["trail", "list", "--follow", "--output", "ndjson"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next =
        || -> serde_json::Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    assert_eq!((&next()["seq"], &next()["seq"]), (&0.into(), &1.into()));
    env.run(&["trail", "note", "later"]);
    assert_eq!(next()["body"]["text"], "later");
    #[expect(clippy::disallowed_methods, reason = "the test presses Ctrl-C")]
    let status = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(child.wait().unwrap().code(), Some(3), "interrupted");
}

#[test]
fn tr_01_an_entry_is_shown_whole() {
    let env = with_notes(1);
    assert_snapshot!(env.snapshot(&["trail", "show", "1"]), @r#"
    exit 0
    ----- stdout
    entry     ent_[id]
    place     1 of 2
    time      [time]
    stream    store
    actor     user:[me]
    kind      note
    action    none
    hash      [hash]
    previous  [hash]

    {
      "text": "note 0"
    }
    "#);
    let id = env.json(&["trail", "show", "1"])["id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(env.json(&["trail", "show", &id[..22]])["id"], id.as_str());
}

#[test]
fn tr_04_verify_says_good_or_names_the_first_bad_entry() {
    let env = with_notes(3);
    assert_snapshot!(env.snapshot(&["trail", "verify"]), @r"
    exit 0
    ----- stdout
    good  4 entries: content, chains, tree and signed head
          the copy outside the database covers 4
    ");
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
    edit_database(&env, "note 1", "nope 1");
    assert_snapshot!(env.snapshot(&["trail", "verify"]), @r"
    exit 1
    ----- stdout
    bad   entry 2 (ent_[id]): its content does not match its hash
          before it: 2 entries, as written
    ");
    let run = env.run(&["trail", "verify", "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &verdict["valid"], &verdict["first_bad"]["seq"]),
        (1, &false.into(), &2.into())
    );
}

#[test]
fn tr_04_a_store_that_was_moved_and_deleted_is_noticed() {
    let mut env = with_notes(2);
    let moved = env.root().join("moved");
    #[expect(clippy::disallowed_methods, reason = "the test moves the home")]
    std::fs::rename(env.home(), &moved).unwrap();
    env.set("SAFEPOINT_HOME", &moved.display().to_string());
    assert_eq!(env.run(&["trail", "note", "from the new place"]).code, 0);
    assert_eq!(env.json(&["trail", "verify"])["checked"], 4);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test takes the part of the vandal"
    )]
    std::fs::remove_file(moved.join("data/store.db")).unwrap();
    assert_eq!(env.run(&["status"]).code, 5);
}

#[test]
fn a_long_note_comes_from_standard_input() {
    let env = env();
    let text = "x".repeat(200_000);
    assert_eq!(
        env.run_with(&["trail", "note", "-"], text.as_bytes()).code,
        0
    );
    assert_eq!(env.json(&["trail", "show", "1"])["body"]["text"], text);
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

#[test]
fn tr_04_a_deleted_store_is_noticed_and_starting_anew_is_recorded() {
    let env = with_notes(3);
    #[expect(
        clippy::disallowed_methods,
        reason = "the test takes the part of the vandal"
    )]
    std::fs::remove_file(env.home().join("data/store.db")).unwrap();
    assert_snapshot!(env.snapshot(&["trail", "list"]), @r"
    exit 5
    ----- stderr
    error: the store `sqlite:[root]/home/data/store.db` is empty, but the trail `safepoint/log_[id]` with 4 entries was kept there
    hint: restore it from a backup, or run `safepoint init --start-anew` to begin a new trail that records the loss
    ");
    let run = env.run(&["trail", "verify", "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &verdict["valid"]), (1, &false.into()));
    assert_eq!(
        env.run(&["init", "--start-anew"]).code,
        7,
        "it wants to be confirmed"
    );
    assert_eq!(env.run(&["init", "--start-anew", "--yes"]).code, 0);
    let first = env.json(&["trail", "show", "0"]);
    assert_eq!(first["body"]["replaces"]["size"], 4);
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

#[test]
fn tr_03_the_head_is_a_signed_note() {
    let env = with_notes(1);
    assert_snapshot!(env.snapshot(&["trail", "head"]), @r"
    exit 0
    ----- stdout
    safepoint/log_[id]
    2
    [hash]

    — safepoint/log_[id] [signature]
    ");
    let head = env.json(&["trail", "head"]);
    let lines: Vec<&str> = head["note"].as_str().unwrap().lines().collect();
    assert_eq!((lines[1], lines[2]), ("2", head["root"].as_str().unwrap()));
}

#[test]
fn tr_05_a_stranger_checks_a_proof_without_the_store() {
    let env = with_notes(4);
    let proof = env.root().join("one.tlog-proof");
    let file = proof.display().to_string();
    let written = env.run(&["trail", "prove", "2", "--out", &file]);
    assert_eq!((written.code, written.stdout.as_str()), (0, ""));
    let head = env.json(&["trail", "head"]);
    let key = head["key"].as_str().unwrap();

    let mut stranger = self::env();
    stranger.set("HOME", "/nonexistent");
    let check = ["trail", "check-proof", &file, "--key", key];
    let checked = stranger.json(&check);
    assert_eq!(checked["entry"]["body"]["text"], "note 1");
    assert!(!stranger.home().exists(), "no store was made");
    assert_snapshot!(stranger.snapshot(&check), @r#"
    exit 0
    ----- stdout
    good  in the trail safepoint/log_[id] of 5 entries
         2  [time]  note                  user:[me]  store  {"text":"note 1"}
    "#);

    let text = std::fs::read_to_string(&proof).unwrap();
    let piped = stranger.run_with(
        &["trail", "check-proof", "-", "--key", key],
        text.as_bytes(),
    );
    assert_eq!(piped.code, 0);
    let forged = text.replacen("index 2", "index 3", 1);
    let refused = stranger.run_with(
        &["trail", "check-proof", "-", "--key", key, "--json"],
        forged.as_bytes(),
    );
    assert_eq!(refused.code, 1);
    assert!(
        refused.stdout.contains("\"valid\":false"),
        "{}",
        refused.stdout
    );
    let garbage = stranger.run_with(&["trail", "check-proof", "-", "--key", key], &[0xff, 0, 1]);
    assert_eq!(garbage.code, 1);
}

#[test]
fn tr_05_a_kept_head_is_proved_to_be_a_beginning() {
    let env = with_notes(3);
    let kept = env.write(
        "kept",
        env.json(&["trail", "head"])["note"].as_str().unwrap(),
    );
    let kept = kept.display().to_string();
    env.run(&["trail", "note", "one more"]);
    let proof = env.root().join("proof").display().to_string();
    assert_eq!(
        env.run(&["trail", "prove", "--consistency", &kept, "--out", &proof])
            .code,
        0
    );
    let key = env.json(&["trail", "head"])["key"]
        .as_str()
        .unwrap()
        .to_owned();
    let check = [
        "trail",
        "check-proof",
        &proof,
        "--key",
        &key,
        "--old",
        &kept,
    ];
    assert_snapshot!(env.snapshot(&check), @r"
    exit 0
    ----- stdout
    good  the trail of 4 entries is the beginning of the one of 5 entries
          safepoint/log_[id]
    ");
    // A head of another log is not the old one, whatever the proof says.
    let other = with_notes(3);
    let foreign = env.write(
        "foreign",
        other.json(&["trail", "head"])["note"].as_str().unwrap(),
    );
    let foreign = foreign.display().to_string();
    assert_eq!(
        env.run(&[
            "trail",
            "check-proof",
            &proof,
            "--key",
            &key,
            "--old",
            &foreign
        ])
        .code,
        1
    );
    assert_eq!(env.run(&["trail", "prove", "--consistency", "99"]).code, 8);
}

#[test]
fn tr_10_each_trouble_with_the_store_has_its_own_error() {
    let env = with_notes(1);
    let database = env.home().join("data/store.db");
    let code = |run: testkit::Run| {
        let printed: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        (
            printed["error"]["name"].as_str().unwrap().to_owned(),
            run.code,
        )
    };
    let newer = "UPDATE schema_versions SET version = 99";
    raw(&database, newer);
    assert_snapshot!(env.snapshot(&["status"]), @r"
    exit 5
    ----- stderr
    error: the store `sqlite:[root]/home/data/store.db` was written by a newer Safepoint: its `trail` tables have version 99, this one knows 1
    hint: use the newer Safepoint for this store
    ");
    assert_eq!(
        code(env.run(&["status", "--json"])),
        ("STORE_NEWER".into(), 5)
    );
    raw(&database, "UPDATE schema_versions SET version = 1");
    assert_eq!(env.run(&["status"]).code, 0);

    let foreign = env.write(
        "project/text.db",
        "this is not a database, it is only a text file",
    );
    let store = format!("sqlite:{}", foreign.display());
    assert_eq!(
        code(env.run(&["--store", &store, "status", "--json"])),
        ("STORE_FOREIGN".into(), 5)
    );
    let nowhere = "postgres://nobody@localhost/none?host=/nowhere";
    assert_eq!(
        code(env.run(&["--store", nowhere, "status", "--json"])),
        ("STORE_UNREACHABLE".into(), 5)
    );
    let keys = env.home().join("data/keys");
    let key = std::fs::read_dir(&keys)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    #[expect(clippy::disallowed_methods, reason = "the test loses the key")]
    std::fs::rename(&key, env.root().join("lost")).unwrap();
    assert_eq!(
        code(env.run(&["trail", "note", "x", "--json"])),
        ("KEY_MISSING".into(), 6)
    );
}

#[test]
fn tr_10_a_locked_store_gives_up_in_time() {
    let mut env = with_notes(1);
    env.set("SAFEPOINT_LOCK_TIMEOUT", "100ms");
    let blocker = lock(&env.home().join("data/store.db"));
    let run = env.run(&["trail", "note", "x", "--json"]);
    assert_eq!(run.code, 5);
    assert!(run.stdout.contains("STORE_LOCKED"), "{}", run.stdout);
    drop(blocker);
    assert_eq!(env.run(&["trail", "note", "x"]).code, 0);
}

#[test]
fn su_03_the_same_on_postgresql() {
    let room = Room::new(Database::Postgres);
    let mut env = env();
    env.set("SAFEPOINT_STORE", &room.address());
    for number in 0..3 {
        assert_eq!(
            env.run(&["trail", "note", &format!("note {number}")]).code,
            0
        );
    }
    assert_eq!(env.json(&["trail", "verify"])["checked"], 4);
    assert!(!env.home().join("data/store.db").exists());
    room.tamper("UPDATE trail_entries SET body = '{\"text\":\"nope\"}' WHERE seq = 2");
    let run = env.run(&["trail", "verify", "--json"]);
    let verdict: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((run.code, &verdict["first_bad"]["seq"]), (1, &2.into()));
}

/// Changes bytes in the database file, as anybody with an editor could.
#[expect(
    clippy::disallowed_methods,
    reason = "the test takes the part of the vandal"
)]
fn edit_database(env: &TestEnv, before: &str, after: &str) {
    let path = env.home().join("data/store.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let place = bytes
        .windows(before.len())
        .position(|window| window == before.as_bytes())
        .unwrap();
    bytes[place..place + after.len()].copy_from_slice(after.as_bytes());
    std::fs::write(&path, bytes).unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test takes the part of another program"
)]
fn raw(path: &std::path::Path, statement: &str) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test takes the part of another program"
)]
fn lock(path: &std::path::Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}
