//! What leaves the trail for others: exports, tiles, cosignatures and bundles, from the outside.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests"
)]

#[path = "support/witness.rs"]
mod witness;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use insta::assert_snapshot;
use serde_json::Value;
use testkit::{Database, Room, TestEnv};
use witness::{Witness, serve};

const FORMATS: [&str; 5] = ["jsonl", "cloudevents", "ocsf", "otlp", "intoto"];

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

/// A session with an action, its undo, and a hostile note.
fn filled() -> TestEnv {
    let env = env();
    env.write("project/a.txt", "one\n");
    for arguments in [
        &["exec", "--no-tui", "--", "rm", "a.txt"][..],
        &["undo"],
        &["trail", "note", "\u{1b}[2J \"日本語\" \u{202e}"],
    ] {
        let run = env.run(arguments);
        assert_eq!(run.code, 0, "{arguments:?}: {run:?}");
    }
    env
}

fn key(env: &TestEnv) -> String {
    let head = env.json(&["trail", "head"]);
    head["key"].as_str().unwrap().to_owned()
}

fn session(env: &TestEnv) -> String {
    let sessions = env.json(&["session", "list"]);
    let id = &sessions["sessions"][0]["session_id"];
    id.as_str().unwrap().to_owned()
}

#[test]
fn tr_07_each_format_goes_to_a_file_or_to_standard_output() {
    let env = filled();
    for format in FORMATS {
        let export = ["trail", "export", "--format", format];
        let printed = env.run(&export).stdout;
        assert!(!printed.is_empty());
        for line in printed.lines() {
            let _: Value = serde_json::from_str(line).unwrap();
        }
        let file = env.root().join(format).display().to_string();
        let reply = env.json(&[&export[..], &["--out", &file]].concat());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), printed);
        let lines = printed.lines().count() as u64;
        assert_eq!(reply["documents"].as_u64(), Some(lines));
        assert_eq!(reply["out"], file.as_str());
        let batch = env.run(&[&export[..], &["--batch"]].concat()).stdout;
        let batch: Vec<Value> = serde_json::from_str(&batch).unwrap();
        assert_eq!(batch.len() as u64, lines);
    }
    let none = [
        "trail", "export", "--format", "ocsf", "--batch", "--kind", "none",
    ];
    let none = env.run(&none).stdout;
    assert_eq!(serde_json::from_str::<Vec<Value>>(&none).unwrap().len(), 0);
    let some = [
        "trail",
        "export",
        "--format",
        "cloudevents",
        "--kind",
        "note",
    ];
    assert_eq!(env.run(&some).stdout.lines().count(), 1);
    let one = ["trail", "export", "--format", "intoto", "--kind", "undone"];
    assert_eq!(env.run(&one).stdout.lines().count(), 1);
}

#[test]
fn tr_07_standard_output_gets_every_character_that_a_file_gets() {
    let env = env();
    assert_eq!(env.run(&["trail", "note", "a\u{7f}b"]).code, 0);
    for format in FORMATS {
        let export = ["trail", "export", "--format", format];
        let printed = env.run(&export).stdout;
        env.json(&[&export[..], &["--out", "file"]].concat());
        let written = std::fs::read_to_string(env.project().join("file")).unwrap();
        assert_eq!(printed, written, "{format}");
    }
    let listed = env.json(&["trail", "list", "--kind", "note"]).to_string();
    assert!(listed.contains("a\u{7f}b"), "{listed:?}");
    // Colours are taken out of what people read, and nothing else.
    let text = env.run(&["status"]).stdout;
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn tr_07_a_file_is_replaced_whole_or_not_at_all() {
    let env = filled();
    let old = env.write("project/out.jsonl", "what was there");
    // A collector's address is no file, and an unknown session no reason to lose one.
    let export = ["trail", "export", "--format", "ocsf", "--out", "out.jsonl"];
    let unknown = env.run(&[&export[..], &["--session", "ses_none"]].concat());
    assert_eq!(unknown.code, 8);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "what was there");
    assert_eq!(env.run(&export).code, 0);
    assert!(
        std::fs::read_to_string(&old)
            .unwrap()
            .starts_with("{\"activity_id\"")
    );
    for file in std::fs::read_dir(env.project()).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        assert!(!name.ends_with(".tmp"), "{name} is left behind");
    }
}

#[test]
fn tr_07_every_format_comes_from_postgresql_too() {
    let room = Room::new(Database::Postgres);
    let mut env = env();
    env.set("SAFEPOINT_STORE", &room.address());
    env.write("project/a.txt", "one\n");
    assert_eq!(env.run(&["exec", "--no-tui", "--", "rm", "a.txt"]).code, 0);
    for format in FORMATS {
        let run = env.run(&["trail", "export", "--format", format]);
        assert_eq!(run.code, 0, "{run:?}");
        assert!(run.stdout.contains("safepoint/log_") || format == "jsonl" || format == "intoto");
    }
    let bundle = env.run(&["trail", "bundle", &session(&env)]).stdout;
    let check = ["trail", "check-bundle", "-", "--key", &key(&env)];
    assert_eq!(self::env().run_with(&check, bundle.as_bytes()).code, 0);
    let tiles = env.root().join("tiles").display().to_string();
    assert_eq!(env.json(&["trail", "tiles", &tiles])["before"], 0);
}

#[test]
fn tr_07_spans_are_sent_to_a_collector() {
    let env = filled();
    let received = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&received);
    let url = serve(move |asked| {
        let good = asked.path == "/v1/traces"
            && asked.headers.contains("content-type: application/json")
            && asked.headers.contains("x-api-key: k");
        if !good {
            return (401, "\u{1b}[31mno\u{1b}[0m".to_owned());
        }
        heard.lock().unwrap().push(asked.body.clone());
        (200, "{\"partialSuccess\":{}}".to_owned())
    });
    let export = ["trail", "export", "--format", "otlp"];
    let printed = env.run(&export).stdout;
    let to = ["--to", &url, "--header", "x-api-key: k"];
    let reply = env.json(&[&export[..], &to].concat());
    let sent: String = received
        .lock()
        .unwrap()
        .iter()
        .map(|body| format!("{body}\n"))
        .collect();
    assert_eq!(sent, printed, "the same is sent as is written");
    assert_eq!(reply["to"], format!("{url}/v1/traces"));

    let refused = env.run(&[&export[..], &["--to", &url]].concat());
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("status 401"), "{refused:?}");
    assert!(!refused.stderr.contains('\u{1b}'), "{refused:?}");

    let partial = serve(|_| {
        (
            200,
            r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#.to_owned(),
        )
    });
    let refused = env.run(&[&export[..], &["--to", &partial]].concat());
    assert_eq!(refused.code, 5);
    assert!(
        refused.stderr.contains("3 were refused: too old"),
        "{refused:?}"
    );
    let nobody = env.run(&[&export[..], &["--to", "http://127.0.0.1:9"]].concat());
    assert_eq!(nobody.code, 5, "{nobody:?}");
    let plain = env.run(&[&export[..], &["--to", "http://192.0.2.1/"]].concat());
    assert_eq!(plain.code, 5);
    assert!(plain.stderr.contains("write `https:`"), "{plain:?}");
    let other = env.run(&["trail", "export", "--format", "ocsf", "--to", &url]);
    assert_eq!(other.code, 7);
    let odd = env.run(&[&export[..], &["--to", &url, "--header", "odd"]].concat());
    assert_eq!(odd.code, 7);
}

#[test]
fn tr_06_tiles_are_written_once() {
    let env = filled();
    let tiles = env.root().join("tiles").display().to_string();
    let first = env.json(&["trail", "tiles", &tiles]);
    assert_eq!(
        (&first["before"], &first["written"]),
        (&0.into(), &2.into())
    );
    assert_eq!(first["checkpoint"], env.json(&["trail", "head"])["note"]);
    let again = env.json(&["trail", "tiles", &tiles]);
    assert_eq!(
        (&again["before"], &again["written"]),
        (&first["size"], &0.into())
    );
    let other = filled();
    let refused = other.run(&["trail", "tiles", &tiles]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(
        refused.stderr.contains("cannot be continued"),
        "{refused:?}"
    );
    let file = env.write("project/file", "x").display().to_string();
    assert_eq!(env.run(&["trail", "tiles", &file]).code, 5);
}

/// Every file below a directory but those that a killed process left half-written.
fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(files(&path));
        } else if !name.starts_with('.') {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

#[test]
fn tr_06_killed_at_any_file_the_tiles_are_a_whole_log() {
    let env = env();
    let notes = |count: usize| {
        for number in 0..count {
            assert_eq!(env.run(&["trail", "note", &number.to_string()]).code, 0);
        }
    };
    let place = env.root().join("tiles");
    let tiles = place.display().to_string();
    let published = |place: &Path| std::fs::read_to_string(place.join("checkpoint")).ok();
    notes(250);
    assert_eq!(env.run(&["trail", "tiles", &tiles]).code, 0);
    let old = published(&place);
    let before = files(&place);
    notes(20);
    let mut killed = 0;
    for point in ["file.written", "file.renamed"] {
        for nth in 1..=6 {
            std::fs::remove_dir_all(&place).unwrap();
            for (path, content) in &before {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, content).unwrap();
            }
            let mut command = env.command(&["trail", "tiles", &tiles]);
            let fault = format!("{point}:{nth}");
            let ended = command.env("SAFEPOINT_FAULT", fault).output().unwrap();
            assert_eq!(ended.status.code(), None, "{point}:{nth}");
            killed += 1;
            let is_last = published(&place) != old;
            // Whatever the checkpoint that stands there needs is there as it was.
            for (path, content) in before.iter().filter(|_| !is_last) {
                assert_eq!(&std::fs::read(path).unwrap(), content, "{path:?}");
            }
        }
    }
    // Two tiles, two bundles, one tile above them and the checkpoint.
    assert_eq!(killed, 12);
    assert_eq!(env.run(&["trail", "tiles", &tiles]).code, 0);
    let whole = env.root().join("whole");
    assert_eq!(
        env.run(&["trail", "tiles", &whole.display().to_string()])
            .code,
        0
    );
    for (path, content) in files(&whole) {
        let path = place.join(path.strip_prefix(&whole).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), content, "{path:?}");
    }
}

#[test]
fn tr_06_a_witness_cosigns_the_head() {
    let env = filled();
    let mut played = Witness::new(7);
    let key = played.printed();
    played.seen = 3; // it has seen more than we know of
    let url = serve(move |asked| played.answer(asked));
    let ask = ["trail", "witness", &format!("{url}/w/"), "--key", &key];
    let before = env.run(&["trail", "head", "--cosigned"]);
    assert_eq!(before.code, 8);
    let reply = env.json(&ask);
    assert_eq!(reply["witness"], Witness::NAME);
    let head = env.json(&["trail", "head"]);
    assert_eq!(head["note"], reply["note"]);
    assert_eq!(head["cosigned"][0]["size"], head["size"]);
    assert_eq!(head["cosigned"][0]["time"], "2026-11-16T03:33:20.000000Z");

    // The cosigned head goes to the tiles and into proofs of strangers.
    let tiles = env.root().join("tiles").display().to_string();
    assert_eq!(
        env.json(&["trail", "tiles", &tiles])["checkpoint"],
        reply["note"]
    );
    env.run(&["trail", "note", "after"]);
    let present = env.run(&["trail", "head"]);
    assert!(!present.stdout.contains(Witness::NAME), "{present:?}");
    assert!(present.stderr.contains(Witness::NAME), "{present:?}");
    let cosigned = env.run(&["trail", "head", "--cosigned"]).stdout;
    assert_eq!(cosigned, reply["note"].as_str().unwrap());
    assert_snapshot!(env.snapshot(&ask), @r"
    exit 0
    ----- stdout
    cosigned  22 entries by witness.example/played
              [time]
    ");
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

#[test]
fn tr_06_a_witness_that_does_not_cosign_is_told_of() {
    let env = filled();
    let key = Witness::new(7).printed();
    let size = env.json(&["trail", "head"])["size"].as_u64().unwrap();
    for (status, body, told) in [
        (404, String::new(), "does not know this trail"),
        (403, String::new(), "does not trust the key"),
        (
            422,
            String::new(),
            "does not accept that the trail continues",
        ),
        (409, format!("{}\n", size + 5), "last saw a trail of"),
        (409, format!("{size}\n"), "another trail of the same size"),
        (409, "many\n".to_owned(), "malformed"),
        (500, String::new(), "status 500"),
        (200, String::new(), "no cosignature"),
        (200, "garbage".to_owned(), "malformed"),
    ] {
        let url = serve(move |_| (status, body.clone()));
        let run = env.run(&["trail", "witness", &url, "--key", &key]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    // One that always knows another size is not asked for ever.
    let mut turn = 0;
    let url = serve(move |_| {
        turn += 1;
        (409, format!("{}\n", 1 + turn % 2))
    });
    assert_eq!(env.run(&["trail", "witness", &url, "--key", &key]).code, 1);
    // Somebody else's signature is not kept.
    let mut impostor = Witness::new(8);
    let url = serve(move |asked| impostor.answer(asked));
    let ask = ["trail", "witness", &format!("{url}/w"), "--key", &key];
    assert_eq!(env.run(&ask).code, 1);
    assert_eq!(
        env.json(&["trail", "head"])["cosigned"],
        Value::Array(Vec::new())
    );
    assert_eq!(
        env.run(&["trail", "witness", &url, "--key", "none"]).code,
        7
    );
}

#[test]
fn tr_07_a_stranger_checks_a_bundle_without_a_store() {
    let env = filled();
    let (session, key) = (session(&env), key(&env));
    let file = env.root().join("bundle.json").display().to_string();
    let reply = env.json(&["trail", "bundle", &session[..8], "--out", &file]);
    assert_eq!(reply["session"], session.as_str());
    let stranger = self::env();
    let check = ["trail", "check-bundle", &file, "--key", &key];
    let checked = stranger.json(&check);
    assert_eq!(
        (&checked["valid"], &checked["entries"]),
        (&true.into(), &reply["entries"])
    );
    assert!(!stranger.home().exists(), "no store was made");
    assert_snapshot!(stranger.snapshot(&check), @r"
    exit 0
    ----- stdout
    good  ses_[id]: 17 entries of 2 actions, each proved to be in the trail
          [time] to [time]
    ");

    let text = std::fs::read_to_string(&file).unwrap();
    let forged = text.replacen("file.delete", "file.read", 1);
    let check = ["trail", "check-bundle", "-", "--key", &key, "--json"];
    let refused = stranger.run_with(&check, forged.as_bytes());
    assert_eq!(refused.code, 1);
    let refused: Value = serde_json::from_str(&refused.stdout).unwrap();
    let reason = refused["reason"].as_str().unwrap();
    assert!(
        reason.contains("what is shown is not what is proved"),
        "{reason}"
    );
    let other = filled();
    let check = ["trail", "check-bundle", "-", "--key", &self::key(&other)];
    assert_eq!(stranger.run_with(&check, text.as_bytes()).code, 1);
    assert_eq!(stranger.run_with(&check, &[0xff, 0]).code, 1);
    assert_eq!(env.run(&["trail", "bundle", "ses_none"]).code, 8);
}
