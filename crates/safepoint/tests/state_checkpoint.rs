//! Making checkpoints, from the outside.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use testkit::TestEnv;
use testkit::tree::{assert_same, git, look};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv, arguments: &[&str]) -> Value {
    let mut all = vec!["checkpoint"];
    all.extend(arguments);
    env.json(&all)
}

fn id(reply: &Value) -> String {
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    let list = value.as_array().unwrap();
    list.iter()
        .map(|one| one.as_str().unwrap().to_owned())
        .collect()
}

fn paths(notes: &Value) -> Vec<&str> {
    let list = notes.as_array().unwrap();
    list.iter()
        .map(|one| one["path"].as_str().unwrap())
        .collect()
}

/// Lets a checkpoint expire without waiting for it.
fn expire(env: &TestEnv, id: &str) {
    let store = rusqlite::Connection::open(env.home().join("data/store.db")).unwrap();
    let set = "UPDATE state_snapshots SET expiry = 1 WHERE id = ?1";
    assert_eq!(store.execute(set, [id]).unwrap(), 1);
}

/// One entry of every kind that anybody may make.
fn fill(root: &Path) {
    fs::create_dir_all(root.join("src/deep/er")).unwrap();
    fs::create_dir_all(root.join("empty")).unwrap();
    fs::write(root.join("src/main.rs"), "fn main() {}\n").unwrap();
    fs::write(root.join("src/deep/er/zero"), "").unwrap();
    fs::write(root.join("run.sh"), "#!/bin/sh\n").unwrap();
    fs::write(root.join("big"), vec![7_u8; 3 << 20]).unwrap();
    let hostile = std::ffi::OsStr::from_bytes(b"bad\xff\nname");
    fs::write(root.join(hostile), "hostile").unwrap();
    fs::write(root.join("one"), "two names").unwrap();
    fs::hard_link(root.join("one"), root.join("src/other")).unwrap();
    symlink("src/main.rs", root.join("link")).unwrap();
    symlink("nowhere/at/all", root.join("dangling")).unwrap();
    symlink("src", root.join("to-directory")).unwrap();
    for name in ["user.b", "user.a"] {
        let flags = rustix::fs::XattrFlags::empty();
        let _ = rustix::fs::lsetxattr(root.join("run.sh"), name, name.as_bytes(), flags); // where there are any
    }
    for (path, mode) in [("run.sh", 0o755), ("src/deep", 0o700), ("one", 0o640)] {
        fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// Bytes that cannot be compressed, the same each time.
fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut bytes);
    bytes
}

/// The hash of a directory as `docs/formats/tree-hash.md` describes it.
fn tree_hash(directory: &Path, is_top: bool) -> String {
    let mut names: Vec<Vec<u8>> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
        .filter(|name| !(is_top && [&b".checkpoints"[..], b".audit", b".git"].contains(&&name[..])))
        .collect();
    names.sort();
    let mut text = b"safepoint tree 1\n".to_vec();
    for name in names {
        let path = directory.join(std::ffi::OsStr::from_bytes(&name));
        let found = path.symlink_metadata().unwrap();
        let mode = found.mode() & 0o7777;
        let (kind, value) = if found.is_dir() {
            ("d", tree_hash(&path, false))
        } else if found.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            let digest = blake3::hash(target.as_os_str().as_bytes());
            ("l", digest.to_hex().to_string())
        } else {
            let digest = blake3::hash(&fs::read(&path).unwrap());
            ("f", digest.to_hex().to_string())
        };
        let seen = &look(directory)[Path::new(std::ffi::OsStr::from_bytes(&name))];
        let mut attributes = Vec::new();
        for (name, value) in &seen.attributes {
            attributes.extend([name, &b"\0"[..], &(value.len() as u64).to_be_bytes()].concat());
            attributes.extend(value);
        }
        let mut line = format!("{kind} {mode:04o} {value}");
        if !attributes.is_empty() {
            line.push_str(&format!(" {}", blake3::hash(&attributes).to_hex()));
        }
        text.extend(line.into_bytes());
        text.push(0);
        text.extend(name);
        text.push(0);
    }
    let bytes = Sha256::digest(&text);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn st_01_a_scope_is_files_directories_and_patterns_in_any_mixture() {
    let env = env();
    for path in ["a.txt", "b.txt", "src/x.rs", "src/y.md", "docs/z.md", "no"] {
        env.write(&format!("project/{path}"), path);
    }
    let files = |scope: &[&str]| texts(&checkpoint(&env, scope)["checkpoint"]["scope"]["files"]);
    assert_eq!(files(&["a.txt"]), ["a.txt"]);
    assert_eq!(files(&["src"]), ["src/x.rs", "src/y.md"]);
    assert_eq!(files(&["src/", "b.txt"]), ["b.txt", "src/x.rs", "src/y.md"]);
    assert_eq!(files(&["**/*.md"]), ["docs/z.md", "src/y.md"]);
    assert_eq!(
        files(&["*.txt", "src/*.rs"]),
        ["a.txt", "b.txt", "src/x.rs"]
    );
    let absolute = env.project().join("docs");
    assert_eq!(files(&[absolute.to_str().unwrap()]), ["docs/z.md"]);
    assert_eq!(files(&[]).len(), 6);
    assert_eq!(files(&["."]).len(), 6);
}

#[test]
fn st_01_a_scope_that_matches_nothing_fails_and_writes_nothing() {
    let env = env();
    env.write("project/a.txt", "a");
    let outside = env.write("outside.txt", "o");
    for scope in [
        &["missing"][..],
        &["*.rs"],
        &["a.txt", "missing"],
        &["../outside.txt"],
        &[outside.to_str().unwrap()],
    ] {
        let mut arguments = vec!["checkpoint", "--json"];
        arguments.extend(scope);
        let run = env.run(&arguments);
        assert_eq!(run.code, 7, "{scope:?}: {run:?}");
        let reply: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(reply["checkpoint_created"], json!(false), "{run:?}");
        assert!(reply["error"]["suggestion"].is_string());
        assert!(reply.get("checkpoint_id").is_none(), "{reply}");
    }
    assert!(!env.project().join(".checkpoints").exists());
    assert!(!env.project().join(".audit").exists());
    assert_eq!(env.json(&["list", "-a"]), json!({ "checkpoints": [] }));
    assert_eq!(env.json(&["du"])["bytes"], 0);
    let kept = env.json(&["trail", "list", "--kind", "checkpoint_created"]);
    assert_eq!(kept["entries"], json!([]));
}

#[test]
fn st_02_the_type_follows_the_workspace_unless_it_is_chosen() {
    let env = env();
    env.write("project/a", "a");
    assert_eq!(checkpoint(&env, &[])["checkpoint"]["type"], "file_backup");
    let refused = env.run(&["checkpoint", "--type", "git_stash"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    git(&env.project(), &["init", "-q"]);
    git(&env.project(), &["add", "a"]);
    git(&env.project(), &["commit", "-qm", "a"]);
    assert_eq!(checkpoint(&env, &[])["checkpoint"]["type"], "git_stash");
    let plain = checkpoint(&env, &["--type", "file_backup"]);
    assert_eq!(plain["checkpoint"]["type"], "file_backup");
    assert_eq!(plain["stash"], Value::Null);
    assert_eq!(git(&env.project(), &["stash", "list"]), "");
    let listed = checkpoint(&env, &["--type", "git_stash"]);
    assert_eq!(listed["checkpoint"]["type"], "git_stash");
    assert_eq!(git(&env.project(), &["stash", "list"]).lines().count(), 1);
}

#[test]
fn st_03_forty_checkpoints_at_once_have_forty_ids() {
    let env = env();
    env.write("project/a", "a");
    let running: Vec<_> = (0..40)
        .map(|_| {
            let mut command = env.command(&["checkpoint", "--json"]);
            command.stdout(std::process::Stdio::piped());
            command.stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let shape = regex::Regex::new("^chk_[0-9]{8}_[0-9]{6}_[0-9a-z]{6,}$").unwrap();
    let mut ids = BTreeSet::new();
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(shape.is_match(&id(&reply)), "{reply}");
        ids.insert(id(&reply));
    }
    assert_eq!(ids.len(), 40);
    let listed = env.json(&["list"]);
    let listed: BTreeSet<String> = listed["checkpoints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(listed, ids);
}

#[test]
fn st_03_the_beginning_of_an_id_is_enough_where_it_is_unambiguous() {
    let env = env();
    env.write("project/a", "a");
    let first = id(&checkpoint(&env, &[]));
    let prefix = &first[..first.len() - 3];
    assert_eq!(env.json(&["show", prefix])["checkpoint"]["id"], first);
    assert_eq!(env.json(&["verify", prefix])["checkpoint_id"], first);
    assert_eq!(env.json(&["rollback", prefix])["restored_to"], first);
    checkpoint(&env, &[]);
    for command in ["show", "verify", "rollback", "diff", "pin"] {
        let run = env.run(&[command, "chk_"]);
        assert_eq!(run.code, 7, "{command}: {run:?}");
        for unknown in ["chk_19990101", "nonsense", "chk_20260101_000000_zzzzzzzz"] {
            let run = env.run(&[command, unknown]);
            assert_eq!(run.code, 8, "{command} {unknown}: {run:?}");
        }
    }
}

#[test]
fn st_04_the_reply_has_every_field_and_its_confidence_is_computed() {
    let env = env();
    env.write("project/a", "a");
    let reply = checkpoint(&env, &["--expiry", "24h", "--reason", "why"]);
    let made = &reply["checkpoint"];
    assert_eq!(reply["checkpoint_created"], true);
    assert_eq!(made["id"], reply["checkpoint_id"]);
    assert_eq!(made["created_at"], reply["timestamp"]);
    assert_eq!(made["scope"]["files"], json!(["a"]));
    assert_eq!(made["scope"]["state_keys"], json!([]));
    assert!(made["expiry"].is_string() && made["type"].is_string());
    let command = format!("safepoint rollback {}", id(&reply));
    assert_eq!(made["restore_command"], command);
    let state = &reply["pre_mutation_state"];
    assert!(state["hash"].as_str().unwrap().starts_with("sha256:"));
    assert!(!state["summary"].as_str().unwrap().is_empty());
    assert!(!texts(&reply["next_safe_actions"]).is_empty());
    let anchors = texts(&reply["evidence_anchors"]);
    assert!(anchors.iter().any(|anchor| anchor.contains(&id(&reply))));
    assert!(reply["assumptions"].is_array() && reply["warnings"].is_array());
    assert!(reply["size"].as_u64().unwrap() > 0);
    assert_eq!(reply["confidence"], 1.0);
    assert_eq!(checkpoint(&env, &[])["checkpoint"]["expiry"], Value::Null);

    env.write("project/.env", "A=b");
    let less = checkpoint(&env, &[])["confidence"].as_f64().unwrap();
    assert!(less < 1.0, "{less}");
    for name in ["b", "c", "d"] {
        env.write(&format!("project/{name}"), name);
    }
    let more = checkpoint(&env, &[])["confidence"].as_f64().unwrap();
    assert!(less < more && more < 1.0, "{less} {more}");
}

#[test]
fn st_05_a_stranger_can_recompute_the_hash() {
    let env = env();
    fill(&env.project());
    let reply = checkpoint(&env, &[]);
    let hash = format!("sha256:{}", tree_hash(&env.project(), true));
    assert_eq!(reply["pre_mutation_state"]["hash"], hash);
    assert_eq!(env.json(&["verify", &id(&reply)])["hash"], hash);

    let elsewhere = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    fill(&elsewhere.project());
    let other = checkpoint(&elsewhere, &[]);
    assert_eq!(other["pre_mutation_state"]["hash"], hash);

    let run = env.project().join("run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o644)).unwrap();
    let changed = checkpoint(&env, &[]);
    assert_ne!(changed["pre_mutation_state"]["hash"], hash);
}

#[test]
fn st_06_a_new_checkpoint_does_not_rest_on_content_that_is_damaged() {
    let env = env();
    env.write("project/a", "the only content\n");
    checkpoint(&env, &[]);
    for pack in fs::read_dir(env.objects().join("packs")).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = fs::read(&pack).unwrap();
        for byte in &mut bytes[16..40] {
            *byte ^= 0x40;
        }
        fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&pack, bytes).unwrap();
    }
    // Either it is not made, or it can be restored.
    let run = env.run(&["checkpoint", "--json"]);
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    if run.code == 0 {
        env.json(&["verify", &id(&reply)]);
    } else {
        assert_eq!(reply["checkpoint_created"], false);
    }
}

#[test]
fn st_07_an_expiry_is_a_span_a_time_or_never() {
    let env = env();
    env.write("project/a", "a");
    let expiry = |text: &str| checkpoint(&env, &["--expiry", text])["checkpoint"]["expiry"].clone();
    for span in ["24h", "7d", "30m"] {
        assert!(expiry(span).is_string(), "{span}");
    }
    let time = expiry("2999-01-02T03:04:05Z");
    assert!(time.as_str().unwrap().starts_with("2999-01-02T03:04:05"));
    assert_eq!(expiry("never"), Value::Null);
    let before = env.json(&["list"]);
    for bad in ["", "soon", "24", "-1h", "1y2", "2026-13-01T00:00:00Z"] {
        let run = env.run(&["checkpoint", &format!("--expiry={bad}"), "--json"]);
        assert_eq!(run.code, 7, "{bad}: {run:?}");
    }
    assert_eq!(env.json(&["list"]), before);
}

#[test]
fn st_07_an_expired_checkpoint_is_listed_and_restored_only_when_asked() {
    let env = env();
    env.write("project/a", "old");
    let made = id(&checkpoint(&env, &["--expiry", "1h"]));
    expire(&env, &made);
    env.write("project/a", "new");
    let listed = env.json(&["list"]);
    assert_eq!(listed["checkpoints"][0]["expired"], true);
    let refused = env.run(&["rollback", &made, "--json"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(fs::read(env.project().join("a")).unwrap(), b"new");
    env.json(&["rollback", &made, "--expired"]);
    assert_eq!(fs::read(env.project().join("a")).unwrap(), b"old");
}

#[test]
fn st_09_the_manifest_and_the_log_stand_in_the_workspace() {
    let env = env();
    env.write("project/a", "a");
    let reply = checkpoint(&env, &["--reason", "first"]);
    let root = env.project();
    let manifest = root.join(format!(".checkpoints/{}/manifest.json", id(&reply)));
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    assert_eq!(manifest["checkpoint_id"], reply["checkpoint_id"]);
    assert_eq!(manifest["hash"], reply["pre_mutation_state"]["hash"]);
    for own in [".checkpoints", ".audit"] {
        assert_eq!(fs::read(root.join(own).join(".gitignore")).unwrap(), b"*\n");
    }
    env.json(&["rollback", &id(&reply)]);
    let log = fs::read_to_string(root.join(".audit/checkpoint-operations.log")).unwrap();
    let operations: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["operation"].clone())
        .collect();
    assert_eq!(operations, ["checkpoint", "rollback"]);
}

#[test]
fn st_09_a_workspace_that_is_gone_altogether_comes_back() {
    let env = env();
    fill(&env.project());
    let reply = checkpoint(&env, &[]);
    let before = look(&env.project());
    fs::remove_dir_all(env.project()).unwrap();
    // From elsewhere, and with the directory named that is not there.
    let elsewhere = env.root().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = env.command(&["rollback", &id(&reply), "--json"]);
    let output = command.current_dir(&elsewhere).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_same(&before, &look(&env.project()));
    fs::remove_dir_all(env.project()).unwrap();
    let project = env.project();
    let project = project.to_str().unwrap();
    let mut command = env.command(&["-C", project, "rollback", &id(&reply), "--json"]);
    let output = command.current_dir(&elsewhere).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_same(&before, &look(&env.project()));
}

#[test]
fn st_10_the_reason_is_listed_shown_and_in_the_trail() {
    let env = env();
    env.write("project/a", "a");
    let reason = "before the \"big\" change — naïve";
    let reply = checkpoint(&env, &["--reason", reason]);
    assert_eq!(reply["reason"], reason);
    assert_eq!(env.json(&["list"])["checkpoints"][0]["reason"], reason);
    let shown = env.json(&["show", &id(&reply)]);
    assert_eq!(shown["record"]["reason"], reason);
    assert!(env.run(&["list"]).stdout.contains("big"));
    let entries = env.json(&["trail", "list", "--kind", "checkpoint_created"]);
    assert_eq!(entries["entries"][0]["body"]["reason"], reason);
}

#[test]
fn st_12_what_is_ignored_by_git_is_captured_and_what_is_left_out_is_named() {
    let env = env();
    git(&env.project(), &["init", "-q"]);
    env.write("project/.gitignore", "ignored.txt\n");
    env.write("project/ignored.txt", "kept");
    env.write("project/node_modules/x/index.js", "built");
    let reply = checkpoint(&env, &[]);
    assert_eq!(paths(&reply["left_out"]), ["node_modules"]);
    assert!(
        texts(&reply["warnings"])
            .iter()
            .any(|it| it.contains("node_modules"))
    );
    fs::remove_file(env.project().join("ignored.txt")).unwrap();
    env.write("project/node_modules/x/more.js", "built later");
    env.json(&["rollback", &id(&reply)]);
    assert!(env.project().join("ignored.txt").exists());
    assert!(env.project().join("node_modules/x/more.js").exists());
}

#[test]
fn st_17_the_same_content_costs_nothing_more_and_a_small_edit_little() {
    let env = env();
    let mut noise = noise(8 << 20);
    let large = env.project().join("large");
    fs::write(&large, &noise).unwrap();
    let size = |reply: &Value| reply["size"].as_u64().unwrap();
    let first = checkpoint(&env, &[]);
    assert!(size(&first) > 8 << 20);
    assert_eq!(size(&checkpoint(&env, &[])), 0);
    fs::copy(&large, env.project().join("copy")).unwrap();
    assert!(size(&checkpoint(&env, &[])) < 4 << 10);
    let other = env.root().join("other");
    fs::create_dir(&other).unwrap();
    fs::copy(&large, other.join("third")).unwrap();
    assert!(size(&env.json(&["-C", other.to_str().unwrap(), "checkpoint"])) < 4 << 10);
    noise.splice(4 << 20..4 << 20, *b"inserted");
    fs::write(&large, &noise).unwrap();
    let edited = size(&checkpoint(&env, &[]));
    assert!(edited > 0 && edited < 1 << 20, "{edited}");
    let usage = env.json(&["du"]);
    assert_eq!(usage["checkpoints"], 5);
    assert!(usage["bytes"].as_u64().unwrap() < 10 << 20, "{usage}");
    assert!(
        usage["logical_bytes"].as_u64().unwrap() > 40 << 20,
        "{usage}"
    );
}

#[test]
fn st_17_beyond_the_cap_nothing_is_stored_and_nothing_is_lost() {
    let mut env = env();
    env.write("project/a", "a");
    let first = id(&checkpoint(&env, &[]));
    env.set("SAFEPOINT_OBJECT_CAP", "64KiB");
    fs::write(env.project().join("big"), noise(1 << 20)).unwrap();
    let run = env.run(&["checkpoint", "--json"]);
    assert_ne!(run.code, 0, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["checkpoint_created"], false);
    assert_eq!(
        env.json(&["list"])["checkpoints"].as_array().unwrap().len(),
        1
    );
    env.json(&["verify", &first]);
}

#[test]
fn st_12_a_secret_beside_other_files_is_a_warning() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.project();
    std::fs::write(root.join(".env"), "TOKEN=1\n").unwrap();
    std::fs::create_dir(root.join("src")).unwrap();
    std::fs::write(root.join("src/a.txt"), "a\n").unwrap();
    let made = env.json(&["checkpoint", ".env", "src"]);
    let warnings = made["warnings"].to_string();
    assert!(warnings.contains(".env"), "{made}");
    assert_ne!(env.run(&["checkpoint", ".env"]).code, 0);
}

#[test]
fn st_12_a_pattern_that_finds_only_secrets_is_a_warning_too() {
    let env = env();
    env.write("project/keys/id_ed25519", "x\n");
    env.write("project/src/a.txt", "a\n");
    let made = env.json(&["checkpoint", "keys/id_*", "src"]);
    assert_eq!(made["checkpoint"]["scope"]["files"], json!(["src/a.txt"]));
    let warnings = made["warnings"].to_string();
    assert!(warnings.contains("keys/id_ed25519"), "{made}");
    assert_eq!(env.run(&["checkpoint", "keys/no_*", "src"]).code, 7);
}

#[test]
fn st_04_the_restore_instructions_fit_what_was_captured() {
    let env = env();
    let place = env.root().join("it's here");
    fs::create_dir(&place).unwrap();
    fs::write(place.join("a"), "a\n").unwrap();
    let restore = |scope: &[&str]| {
        let named = ["-C", place.to_str().unwrap(), "checkpoint"];
        let made = env.json(&[&named, scope].concat());
        let manifest = place.join(format!(".checkpoints/{}/manifest.json", id(&made)));
        let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
        manifest["restore"].clone()
    };
    let plain = restore(&[]);
    assert!(!plain["order"].to_string().contains("git"), "{plain}");
    // The command can be given to a shell as it stands there.
    let hint = plain["prerequisites"][1].as_str().unwrap();
    let command = hint.split('`').nth(1).unwrap();
    let words = format!("set -- {command}; printf '%s' \"$3\"");
    let shell = std::process::Command::new("sh")
        .args(["-c", &words])
        .output()
        .unwrap();
    let named = String::from_utf8(shell.stdout).unwrap();
    assert_eq!(named, place.canonicalize().unwrap().to_str().unwrap());
    testkit::tree::git(&place, &["init", "-q"]);
    assert!(restore(&[])["order"].to_string().contains("git"));
    assert!(!restore(&["a"])["order"].to_string().contains("git"));
}

#[test]
fn st_04_the_manifest_has_restore_instructions_and_the_hash_of_every_file() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/a", "one\ntwo\n");
    env.write("project/d/b", "three");
    std::os::unix::fs::symlink("a", env.project().join("link")).unwrap();
    let reply = env.json(&["checkpoint", "--expiry", "24h"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    let path = env
        .project()
        .join(format!(".checkpoints/{id}/manifest.json"));
    let manifest: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let restore = &manifest["restore"];
    assert_eq!(restore["command"], format!("safepoint rollback {id}"));
    for list in ["prerequisites", "order"] {
        assert!(!restore[list].as_array().unwrap().is_empty(), "{manifest}");
    }
    assert!(restore["prerequisites"].to_string().contains("--expired"));
    let files = &manifest["files"];
    assert_eq!(
        (&files["total"], &files["hash"]),
        (&json!(3), &json!("blake3"))
    );
    let hash = |text: &str| format!("blake3:{}", blake3::hash(text.as_bytes()));
    let wanted = json!([
        {"path": "a", "type": "file", "size": 8, "hash": hash("one\ntwo\n")},
        {"path": "d/b", "type": "file", "size": 5, "hash": hash("three")},
        {"path": "link", "type": "symlink", "size": null, "hash": null},
    ]);
    assert_eq!(files["listed"], wanted);
    let shown = env.json(&["show", id, "--files"]);
    assert_eq!(shown["contents"], wanted);
    let summary = reply["pre_mutation_state"]["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("3 files, 3 lines, 13 B, last modified 20"),
        "{summary}"
    );
}

#[test]
fn st_04_the_reply_says_whether_git_has_uncommitted_changes() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let git = |arguments: &[&str]| {
        let mut command = std::process::Command::new("git");
        command.current_dir(env.project()).args(arguments);
        command.env("GIT_CONFIG_GLOBAL", "/dev/null");
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    env.write("project/a", "one\n");
    git(&["init", "-q"]);
    git(&["add", "a"]);
    let name = ["-c", "user.name=n", "-c", "user.email=e@example.com"];
    git(&[&name[..], &["commit", "-qm", "first"]].concat());
    let clean = env.json(&["checkpoint"]);
    assert_eq!(clean["uncommitted_changes"], json!(false), "{clean}");
    env.write("project/a", "two\n");
    let dirty = env.json(&["checkpoint"]);
    assert_eq!(dirty["uncommitted_changes"], json!(true), "{dirty}");
    let summary = dirty["pre_mutation_state"]["summary"].as_str().unwrap();
    assert!(summary.ends_with("with uncommitted changes"), "{summary}");
}

#[test]
fn st_01_the_examples_of_the_contract_are_read_as_yaml() {
    let env = env();
    env.write("project/config/production.yaml", "a: 1\n");
    env.write("project/other", "other\n");
    env.write(
        "project/input.yaml",
        "scope: \"config/production.yaml\"\nreason: \"Before config migration\"\ncheckpoint_type: file_backup\nexpiry: \"24h\"\n",
    );
    let made = env.json(&["checkpoint", "--input", "@input.yaml"]);
    assert_eq!(
        made["checkpoint"]["scope"]["files"],
        json!(["config/production.yaml"])
    );
    assert_eq!(made["checkpoint"]["type"], "file_backup");
    assert_eq!(made["reason"], "Before config migration");
    assert!(made["checkpoint"]["expiry"].is_string());
    let listed = r#"{"scope": ["config", "other"]}"#;
    let made = env.json(&["checkpoint", "--input", listed]);
    assert_eq!(made["checkpoint"]["scope"]["total_files"], 2);
    env.write("project/state.yaml", "answer: no\nday: 2026-11-18\n");
    let made = env.json(&[
        "checkpoint",
        "--state",
        "session=@state.yaml",
        "state:session",
    ]);
    assert_eq!(
        made["checkpoint"]["scope"]["state_keys"],
        json!(["session"])
    );
    for wrong in [
        "scope: []",
        "reason: x",
        "{\"scope\": \"a\", \"scopes\": 1}",
        "nonsense",
    ] {
        let run = env.run(&["checkpoint", "--input", wrong]);
        assert_eq!(run.code, 7, "{wrong}: {run:?}");
    }
    let both = env.run(&["checkpoint", "other", "--input", listed]);
    assert_eq!(both.code, 7, "{both:?}");
}

#[test]
fn su_02_every_reply_is_the_same_document_in_yaml() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    env.write("project/no", "one\n");
    let run = env.run(&[
        "checkpoint",
        "--reason",
        "yes: 2026-11-18",
        "--output",
        "yaml",
    ]);
    assert_eq!(run.code, 0, "{run:?}");
    let made: Value = safepoint_model::yaml::read_as(&run.stdout).unwrap();
    assert_eq!(made["reason"], "yes: 2026-11-18");
    let id = made["checkpoint_id"].as_str().unwrap();
    for arguments in [&["list"][..], &["show", id], &["trail", "list"], &["log"]] {
        let run = env.run(&[arguments, &["--output", "yaml"]].concat());
        let found: Value = safepoint_model::yaml::read_as(&run.stdout).unwrap();
        assert_eq!(found, env.json(arguments), "{arguments:?}");
    }
    let refused = env.run(&["show", "chk_nothing", "--output", "yaml"]);
    assert_eq!(refused.code, 8);
    let error: Value = safepoint_model::yaml::read_as(&refused.stdout).unwrap();
    assert_eq!(error["error"]["code"], "N801");
}
