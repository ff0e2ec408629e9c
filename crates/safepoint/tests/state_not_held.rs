//! What no checkpoint holds, or nothing covered: it is said whenever an action or a way back
//! has to do with it, and never passed over for something else.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests do what the product may not"
)]

use std::fs;

use serde_json::Value;
use testkit::TestEnv;
use testkit::tree::git;

fn project() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    git(&env.project(), &["init", "-q"]);
    env.write("project/f.txt", "line\n");
    env.write("project/.env", "SECRET=1\n");
    env.write("project/work.py", "import os\nos.remove('.env')\n");
    env
}

/// Runs a command, and returns the reply.
fn exec(env: &TestEnv, words: &[&str]) -> Value {
    let line = [&["--json", "exec", "--no-tui", "--"] as &[&str], words].concat();
    let run = env.run(&line);
    assert_eq!(run.code, 0, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

fn paths(notes: &Value) -> Vec<&str> {
    let notes = notes.as_array().unwrap();
    notes
        .iter()
        .map(|note| note["path"].as_str().unwrap())
        .collect()
}

#[test]
fn st_35_an_action_that_only_hurt_what_no_checkpoint_holds_is_not_passed_over() {
    let env = project();
    let sed = exec(&env, &["sed", "-i", "s/line/LINE/", "f.txt"]);
    let lost = exec(&env, &["python3", "work.py"]);
    assert_eq!(lost["changes"].to_string(), "[]", "{lost:#}");
    assert_eq!(paths(&lost["not_held"]), [".env"]);
    let log = env.json(&["log"]);
    assert_eq!(paths(&log["actions"][0]["not_held"]), [".env"], "{log:#}");
    assert!(env.run(&["log"]).stdout.contains("not held  .env"));

    let undone = env.json_with_code(1, &["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], lost["action_id"]);
    assert_eq!(undone["rolled_back"], false, "{undone:#}");
    assert_eq!(undone["restored"], false, "{undone:#}");
    assert_eq!(undone["verification"]["match"], false, "{undone:#}");
    assert_eq!(paths(&undone["not_restored"]), [".env"]);
    assert_eq!(
        fs::read_to_string(env.project().join("f.txt")).unwrap(),
        "LINE\n"
    );
    // The next one goes on with what came before it.
    let undone = env.json(&["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], sed["action_id"]);
    assert_eq!(undone["verification"]["match"], true, "{undone:#}");
}

#[test]
fn st_35_what_only_tools_build_again_does_not_stop_an_undo() {
    let env = project();
    env.write("project/package.json", "{}\n");
    env.write("project/node_modules/a/b", "1\n");
    let sed = exec(&env, &["sed", "-i", "s/line/LINE/", "f.txt"]);
    env.write(
        "project/work.py",
        "import os\nos.makedirs('node_modules/new')\n",
    );
    env.json(&["checkpoint"]);
    let built = exec(&env, &["python3", "work.py"]);
    assert_eq!(built["not_held"].to_string(), "[]", "{built:#}");
    let undone = env.json(&["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], sed["action_id"]);
    env.json(&["redo"]);
    env.write(
        "project/work.py",
        "import shutil\nshutil.rmtree('node_modules')\n",
    );
    env.json(&["checkpoint"]);
    let removed = exec(&env, &["python3", "work.py"]);
    assert_eq!(paths(&removed["not_held"]), ["node_modules"]);
    let undone = env.json_with_code(1, &["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], removed["action_id"]);
    assert_eq!(undone["rolled_back"], false, "{undone:#}");
}

#[test]
fn st_35_an_action_that_only_staged_something_is_taken_back_itself() {
    let env = project();
    git(&env.project(), &["add", "f.txt"]);
    git(&env.project(), &["commit", "-qm", "first"]);
    exec(&env, &["sed", "-i", "s/line/LINE/", "f.txt"]);
    let staged = || git(&env.project(), &["diff", "--cached", "--name-only"]);
    let added = exec(&env, &["git", "add", "f.txt"]);
    assert_eq!(staged(), "f.txt\n");
    // Git writes its index anew when it looks at the files; nothing is staged by that.
    exec(&env, &["git", "status"]);
    let undone = env.json(&["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], added["action_id"]);
    assert_eq!(undone["verification"]["match"], true, "{undone:#}");
    assert_eq!(staged(), "");
    assert_eq!(
        fs::read_to_string(env.project().join("f.txt")).unwrap(),
        "LINE\n"
    );
}

#[test]
fn st_35_what_a_person_made_since_is_never_taken_back_without_its_name() {
    let env = project();
    env.json(&["checkpoint"]);
    exec(&env, &["cat", "f.txt"]);
    env.write("project/essay.md", "mine\n");
    let refused = env.run(&["undo"]);
    assert_eq!(refused.code, 8, "{refused:?}");
    assert!(
        refused.stderr.contains("`safepoint undo act_"),
        "{refused:?}"
    );
    assert!(env.project().join("essay.md").exists());
}

#[test]
fn st_30_what_is_new_and_not_held_is_told_by_a_roll_back() {
    let env = project();
    fs::remove_file(env.project().join(".env")).unwrap();
    let id = env.json(&["checkpoint"])["checkpoint_id"]
        .as_str()
        .unwrap()
        .to_owned();
    env.write("project/.env", "SECRET=1\n");
    let back = env.json(&["rollback", &id]);
    assert_eq!(paths(&back["not_restored"]), [".env"], "{back:#}");
    let shown = env.run(&["rollback", &id]).stdout;
    assert!(shown.contains("verified in part"), "{shown}");

    let id = env.json(&["checkpoint"])["checkpoint_id"]
        .as_str()
        .unwrap()
        .to_owned();
    fs::remove_file(env.project().join(".env")).unwrap();
    let refused = env.run(&["rollback", &id, ".env"]);
    assert_eq!(refused.code, 7, "{refused:?}");
    assert!(
        refused.stderr.contains("no checkpoint holds"),
        "{refused:?}"
    );
}

#[test]
fn st_07_the_reference_of_a_deleted_checkpoint_does_not_come_back() {
    let env = project();
    git(&env.project(), &["add", "f.txt"]);
    git(&env.project(), &["commit", "-qm", "first"]);
    let make = |content: &str| {
        env.write("project/f.txt", content);
        let made = env.json(&["checkpoint"]);
        made["checkpoint_id"].as_str().unwrap().to_owned()
    };
    let (deleted, later) = (make("two\n"), make("three\n"));
    let references = || git(&env.project(), &["for-each-ref"]);
    assert!(references().contains(&deleted));
    env.json(&["gc", "--checkpoint", &deleted, "--force"]);
    assert!(!references().contains(&deleted));
    env.write("project/f.txt", "four\n");
    env.json(&["rollback", &later]);
    assert!(!references().contains(&deleted), "{}", references());
    assert!(references().contains(&later), "{}", references());
}

#[test]
fn st_35_a_tree_too_deep_to_be_captured_stays_and_is_named() {
    let env = project();
    env.write(
        "project/deep.py",
        "import os\nfor i in range(700):\n    os.mkdir('d' * 20)\n    os.chdir('d' * 20)\n",
    );
    env.write(
        "project/work.py",
        "import os\nopen('q.txt', 'w').write('q')\nexec(open('deep.py').read())\n",
    );
    env.json(&["checkpoint"]);
    let made = exec(&env, &["python3", "work.py"]);
    let top = "d".repeat(20);
    let is_named = |notes: &Value| {
        let named = paths(notes);
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(named[0].starts_with(&format!("{top}/{top}/")), "{named:?}");
    };
    is_named(&made["not_held"]);
    let undone = env.json(&["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], made["action_id"]);
    is_named(&undone["not_restored"]);
    assert!(env.project().join(&top).exists());
    assert!(!env.project().join("q.txt").exists());
    env.json(&["redo"]);
    let said = env.run(&["undo", made["action_id"].as_str().unwrap()]);
    assert!(said.stdout.starts_with("verified in part"), "{said:?}");
    assert!(said.stdout.lines().all(|line| line.len() < 500), "{said:?}");
    assert!(said.stderr.contains(&format!("`{top}` stays")), "{said:?}");
}

#[test]
fn au_20_what_a_checkpoint_holds_encrypted_is_covered() {
    let env = project();
    let held = exec_denied(&env, &["rm", ".env"]);
    assert_eq!(held["denial"]["code"], "APPROVAL_REQUIRED", "{held:#}");
    env.json(&["checkpoint", "--seal-sensitive"]);
    let removed = exec(&env, &["rm", ".env"]);
    assert_eq!(removed["reversibility"], "reversible", "{removed:#}");
    assert_eq!(removed["not_covered"].to_string(), "[]", "{removed:#}");
    assert_eq!(removed["not_held"].to_string(), "[]", "{removed:#}");
    let told = serde_json::json!([{"path": ".env", "change": "deleted"}]);
    assert_eq!(removed["changes"], told);
    let log = env.json(&["log"]);
    assert_eq!(log["actions"][0]["changes"], told, "{log:#}");
    assert_eq!(log["actions"][0]["remainder"].to_string(), "[]");
    let undone = env.json(&["undo"]);
    assert_eq!(undone["verification"]["match"], true, "{undone:#}");
    let env_file = || fs::read_to_string(env.project().join(".env")).unwrap();
    assert_eq!(env_file(), "SECRET=1\n");
    // So it is after other actions, for as long as it is what was sealed.
    let sed = exec(&env, &["sed", "-i", "s/line/LINE/", "f.txt"]);
    let plan = env.run(&["exec", "--dry-run", "--", "rm", ".env"]);
    assert!(plan.stdout.contains("file.delete  reversible"), "{plan:?}");
    let removed = exec(&env, &["rm", ".env"]);
    assert_eq!(removed["changes"], told);
    env.json(&["undo"]);
    assert_eq!(env_file(), "SECRET=1\n");
    // What it did not touch is no reason to take it back twice.
    let sed = sed["action_id"].as_str().unwrap();
    env.json(&["undo", sed]);
    let again = env.run(&["undo", sed]);
    assert!(again.stderr.contains("took it back already"), "{again:?}");
    env.write("project/.env", "SECRET=another\n");
    let held = exec_denied(&env, &["rm", ".env"]);
    assert_eq!(held["denial"]["code"], "APPROVAL_REQUIRED", "{held:#}");
}

fn exec_denied(env: &TestEnv, words: &[&str]) -> Value {
    let line = [&["--json", "exec", "--no-tui", "--"] as &[&str], words].concat();
    let run = env.run(&line);
    assert_eq!(run.code, 2, "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn st_35_an_undo_tells_of_what_still_runs() {
    let env = project();
    let sed = exec(&env, &["sed", "-i", "s/line/LINE/", "f.txt"]);
    let gate = env.project().join("gate");
    let line = "echo begun > begun; until test -e gate; do sleep 0.02; done";
    let mut command = env.command(&["exec", "--no-tui", "--", "sh", "-c", line]);
    let mut running = command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while !env.project().join("begun").exists() {
        assert!(running.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let undone = env.json(&["undo"]);
    fs::write(gate, "").unwrap();
    assert!(running.wait().unwrap().success());
    assert_eq!(undone["taken_back"]["action_id"], sed["action_id"]);
    let warnings = undone["warnings"].to_string();
    assert!(warnings.contains("is still running"), "{undone:#}");
    let undone = env.json(&["undo"]);
    assert!(!undone["warnings"].to_string().contains("still running"));
}
