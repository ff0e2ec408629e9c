//! Sensitive files: nowhere in the store, unless they are sealed.

#![expect(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use testkit::TestEnv;
use testkit::tree::{assert_same, git, look};

/// Secrets are put together here, so that no scanner mistakes this file for one.
fn secrets() -> Vec<(&'static str, String, String)> {
    let body: String = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNkZWZnaGlqa2xtbm9w"
        .chars()
        .rev()
        .collect();
    let begin = format!("-----BEGIN {} PRIVATE KEY-----", "OPENSSH");
    let end = format!("-----END {} PRIVATE KEY-----", "OPENSSH");
    let key = format!("{begin}\n{}\n{end}\n", [body.as_str(); 6].join("\n"));
    let token = format!("{}_{}", "ghp", "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5");
    let aws = format!("{}{}", "AKIA", "Q3EGZ7RPLXKWYNTB");
    let env = format!("PASSWORD={}\n", "correct-horse-battery-staple-4711");
    vec![
        (".env", env.clone(), env),
        (".env.production", format!("B={aws}"), aws.clone()),
        ("notes/innocent.txt", key, body),
        ("src/config.py", format!("TOKEN = \"{token}\"\n"), token),
        ("id_ed25519", "key material".into(), "key material".into()),
        (".aws/credentials", format!("[default]\nx={aws}\n"), aws),
        (
            ".npmrc",
            "//r/:_authToken=npmsecretvalue".into(),
            "npmsecretvalue".into(),
        ),
    ]
}

fn with_secrets() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    git(&env.project(), &["init", "-q"]);
    env.write("project/plain.txt", "plain\n");
    git(&env.project(), &["add", "plain.txt"]);
    git(&env.project(), &["commit", "-qm", "plain"]);
    for (path, content, _) in secrets() {
        env.write(&format!("project/{path}"), &content);
    }
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(env.project().join(".env"), private).unwrap();
    env
}

fn remove_secrets(env: &TestEnv) {
    for (path, ..) in secrets() {
        fs::remove_file(env.project().join(path)).unwrap();
    }
}

fn id(reply: &Value) -> String {
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

/// Every file below, with its bytes.
fn files(root: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.is_file() {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

fn contains(bytes: &[u8], needle: &str) -> bool {
    bytes
        .windows(needle.len())
        .any(|window| window == needle.as_bytes())
}

fn assert_nowhere(env: &TestEnv) {
    let mut found = Vec::new();
    let root = env.project();
    for place in [
        env.home(),
        root.join(".git"),
        root.join(".checkpoints"),
        root.join(".audit"),
    ] {
        files(&place, &mut found);
    }
    assert!(found.len() > 10);
    let objects = git(
        &root,
        &[
            "cat-file",
            "--batch-all-objects",
            "--batch-check=%(objectname)",
        ],
    );
    for object in objects.lines() {
        let content = git(&root, &["cat-file", "-p", object]);
        found.push((object.to_owned(), content.into_bytes()));
    }
    for (path, bytes) in &found {
        for (secret, _, needle) in secrets() {
            assert!(!contains(bytes, &needle), "{secret} is in {path}");
        }
    }
}

#[test]
fn st_08_sensitive_files_are_named_and_their_bytes_are_nowhere() {
    let env = with_secrets();
    let reply = env.json(&["checkpoint", "--reason", "r"]);
    let mut named: Vec<&str> = reply["sensitive"]
        .as_array()
        .unwrap()
        .iter()
        .map(|note| note["path"].as_str().unwrap())
        .collect();
    named.sort();
    let mut expected: Vec<&str> = secrets().iter().map(|(path, ..)| *path).collect();
    expected.sort();
    assert_eq!(named, expected);
    let warnings = reply["warnings"].to_string();
    let manifest = format!(".checkpoints/{}/manifest.json", id(&reply));
    let manifest = fs::read_to_string(env.project().join(manifest)).unwrap();
    for path in &expected {
        assert!(warnings.contains(path), "{path}: {warnings}");
        assert!(manifest.contains(path), "{path}: {manifest}");
    }
    let shown = env.json(&["show", &id(&reply), "--files"]);
    let captured = shown["checkpoint"]["scope"]["files"].to_string();
    assert_eq!(captured, r#"["plain.txt"]"#);
    assert_nowhere(&env);
    // What was never stored cannot come back; and nothing takes away what is there.
    remove_secrets(&env);
    fs::remove_file(env.project().join("plain.txt")).unwrap();
    env.json(&["rollback", &id(&reply)]);
    assert!(env.project().join("plain.txt").exists());
    for path in expected {
        assert!(!env.project().join(path).exists(), "{path}");
    }
}

#[test]
fn st_08_a_secret_is_never_taken_away_by_a_roll_back() {
    let env = with_secrets();
    remove_secrets(&env);
    let reply = env.json(&["checkpoint"]);
    for (path, content, _) in secrets() {
        env.write(&format!("project/{path}"), &content);
    }
    env.json(&["rollback", &id(&reply)]);
    for (path, content, _) in secrets() {
        let there = fs::read_to_string(env.project().join(path)).unwrap();
        assert_eq!(there, content, "{path}");
    }
    assert_nowhere(&env);
}

#[test]
fn st_08_a_secret_that_becomes_one_between_checkpoints_is_not_captured() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let (_, content, needle) = secrets().remove(3);
    let path = env.write("project/config.py", &"x".repeat(content.len()));
    let time = path.metadata().unwrap().modified().unwrap();
    assert_eq!(
        env.json(&["checkpoint"])["sensitive"]
            .as_array()
            .unwrap()
            .len(),
        0
    );
    fs::write(&path, &content).unwrap();
    // The same size and the same time as before.
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["sensitive"][0]["path"], "config.py", "{reply}");
    let mut found = Vec::new();
    files(&env.home(), &mut found);
    assert!(found.iter().all(|(_, bytes)| !contains(bytes, &needle)));
}

#[test]
fn st_08_sealed_secrets_are_encrypted_and_come_back() {
    let env = with_secrets();
    let before = look(&env.project());
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    assert_nowhere(&env);
    assert_eq!(reply["confidence"], 1.0, "{reply}");
    remove_secrets(&env);
    env.write("project/.env", "PASSWORD=another");
    let restored = env.json(&["rollback", &id(&reply)]);
    assert_eq!(restored["verification"]["match"], true, "{restored}");
    assert_same(&before, &look(&env.project()));
    assert_nowhere(&env);
}

#[test]
fn st_08_without_the_key_sealed_secrets_stay_away_and_that_is_said() {
    let env = with_secrets();
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    remove_secrets(&env);
    let key = env.home().join("data/keys/seal.age");
    let kept = env.root().join("kept.age");
    fs::rename(&key, &kept).unwrap();
    let restored = env.json(&["rollback", &id(&reply)]);
    assert!(
        restored["warnings"].to_string().contains(".env"),
        "{restored}"
    );
    assert!(!env.project().join(".env").exists());
    let kept = kept.to_str().unwrap();
    env.json(&["rollback", &id(&reply), "--identity", kept]);
    assert!(env.project().join(".env").exists());
}

#[test]
fn st_34_a_roll_back_of_chosen_paths_leaves_sealed_secrets_elsewhere_alone() {
    let env = with_secrets();
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    env.write("project/plain.txt", "changed\n");
    env.write("project/.env", "PASSWORD=newer");
    env.json(&["rollback", &id(&reply), "plain.txt"]);
    let path = env.project();
    assert_eq!(
        fs::read_to_string(path.join("plain.txt")).unwrap(),
        "plain\n"
    );
    assert_eq!(
        fs::read_to_string(path.join(".env")).unwrap(),
        "PASSWORD=newer"
    );
}

#[test]
fn st_31_redo_brings_back_a_secret_that_a_roll_back_replaced() {
    let env = with_secrets();
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    env.write("project/.env", "PASSWORD=newer");
    let changed = look(&env.project());
    env.json(&["rollback", &id(&reply)]);
    env.json(&["redo"]);
    assert_same(&changed, &look(&env.project()));
}

#[test]
fn st_35_undo_brings_no_secret_back_that_its_person_removed_since() {
    let env = with_secrets();
    let write = "open('.env', 'a').write('more')\nopen('plain.txt', 'a').write('more')\n";
    env.write("project/work.py", write);
    env.json(&["checkpoint", "--seal-sensitive"]);
    let words = ["--json", "exec", "--no-tui", "--", "python3", "work.py"];
    let act = || -> Value {
        let run = env.run(&words);
        assert_eq!(run.code, 0, "{run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    };
    let secret = env.project().join(".env");
    let old = fs::read_to_string(&secret).unwrap();
    // What the action left goes back.
    let done = act();
    let undone = env.json(&["undo", done["action_id"].as_str().unwrap()]);
    assert_eq!(fs::read_to_string(&secret).unwrap(), old, "{undone:#}");

    env.json(&["checkpoint", "--seal-sensitive"]);
    let done = act();
    fs::remove_file(&secret).unwrap();
    let undone = env.json(&["undo", done["action_id"].as_str().unwrap()]);
    assert!(!secret.exists(), "{undone:#}");
    let warnings = undone["warnings"].to_string();
    assert!(
        warnings.contains("`.env` has been changed since"),
        "{undone:#}"
    );
    let plain = fs::read_to_string(env.project().join("plain.txt")).unwrap();
    assert_eq!(plain, "plain\n");
}

#[test]
fn st_30_a_roll_back_says_which_newer_secrets_it_replaces() {
    let env = with_secrets();
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    env.write("project/.env", "PASSWORD=newer");
    fs::remove_file(env.project().join(".npmrc")).unwrap();
    let plan = env.json(&["rollback", &id(&reply), "--dry-run"]);
    let restored = env.json(&["rollback", &id(&reply)]);
    for said in [&plan, &restored] {
        let warnings = said["warnings"].to_string();
        assert!(
            warnings.contains("`.env` was changed since then"),
            "{said:#}"
        );
        assert!(
            warnings.contains("`.npmrc` was removed since then"),
            "{said:#}"
        );
    }
    env.json(&["redo"]);
    let newer = fs::read_to_string(env.project().join(".env")).unwrap();
    assert_eq!(newer, "PASSWORD=newer");
}

#[test]
fn st_34_a_chosen_sealed_secret_that_is_gone_comes_back() {
    let env = with_secrets();
    let before = look(&env.project());
    let reply = env.json(&["checkpoint", "--seal-sensitive"]);
    let gone = env.project().join(".env");
    for words in [&["--", "./.env"][..], &[".env"]] {
        fs::remove_file(&gone).unwrap();
        let id = id(&reply);
        let dry = env.run(&[&["rollback", &id, "--dry-run"], words].concat());
        assert_eq!(dry.code, 0, "{dry:?}");
        assert!(!gone.exists());
        let run = env.run(&[&["rollback", &id, "--json"], words].concat());
        assert_eq!(run.code, 0, "{run:?}");
        assert_same(&before, &look(&env.project()));
    }
    let unknown = env.run(&["rollback", &id(&reply), ".env.other"]);
    assert_eq!(unknown.code, 7, "{unknown:?}");
}

#[test]
fn st_35_a_sealed_secret_that_a_check_took_is_told_and_comes_back() {
    let env = with_secrets();
    // By a script: its words are no reason to ask anybody.
    env.write("project/check.sh", "rm -f .env\n");
    let before = look(&env.project());
    let operation = serde_json::json!({ "type": "append", "content": "more\n" }).to_string();
    env.json(&[
        "mutate",
        "plain.txt",
        "--auto-checkpoint",
        "--operation",
        &operation,
        "--verify",
        "sh check.sh",
    ]);
    assert!(!env.project().join(".env").exists());
    let log = env.json(&["log"]);
    let seen = &log["actions"][0];
    assert_eq!(seen["action"], "workspace.change", "{log:#}");
    assert_eq!(
        seen["changes"],
        serde_json::json!([{ "path": ".env", "change": "deleted" }])
    );
    env.json(&["undo"]);
    env.json(&["undo", seen["action_id"].as_str().unwrap()]);
    assert_same(&before, &look(&env.project()));
    assert_nowhere(&env);
}
