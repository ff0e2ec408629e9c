//! What happens beside a change: the work of a person who goes on working meanwhile, files that
//! no checkpoint holds, and a program that outlives its Safepoint. None of it is lost without a
//! word, and none of it is taken for the change's own.

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
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::{Answer, actions, assert_sound, checkpoint, env, mutate, spent_by, text};
use testkit::TestEnv;
use testkit::tree::git;

fn some() -> (TestEnv, String) {
    let env = env();
    env.write("project/f.txt", "before\n");
    env.write("project/src/a.py", "one\n");
    env.write("project/config/c.yaml", "c\n");
    let id = checkpoint(&env, &[]);
    (env, id)
}

fn read(env: &TestEnv, name: &str) -> String {
    fs::read_to_string(env.project().join(name)).unwrap()
}

fn write() -> Value {
    json!({ "type": "write", "content": "by the change\n" })
}

fn command(line: &str) -> Value {
    json!({ "type": "command", "argv": ["sh", "-c", line] })
}

/// A line that says that it is there, waits until it may go on, and ends like this.
fn line(env: &TestEnv, end: &str) -> String {
    let (there, on) = (env.scratch().join("there"), env.scratch().join("on"));
    let (there, on) = (there.display(), on.display());
    format!("touch '{there}'; until [ -e '{on}' ]; do sleep 0.01; done; {end}")
}

/// Does something while that line waits.
fn meanwhile(env: &TestEnv, change: impl FnOnce() -> Answer, act: impl FnOnce() + Send) -> Answer {
    let (there, on) = (env.scratch().join("there"), env.scratch().join("on"));
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !there.exists() && !done.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            if there.exists() {
                act();
            }
            fs::write(&on, "").unwrap();
        });
        let answer = change();
        done.store(true, Ordering::Relaxed);
        answer
    })
}

#[track_caller]
fn roll_back(env: &TestEnv, id: &str, path: &str) {
    let run = env.run(&["rollback", id, "--", path]);
    assert_eq!(run.code, 0, "{run:?}");
}

/// A person works while a check runs.
fn work(env: &TestEnv) {
    env.write("project/src/a.py", "one\ntwo\n");
    env.write("project/essay.md", "mine\n");
    fs::remove_file(env.project().join("config/c.yaml")).unwrap();
}

/// The same, but for the file that the command writes too.
fn work_elsewhere(env: &TestEnv) {
    env.write("project/essay.md", "mine\n");
    fs::remove_file(env.project().join("config/c.yaml")).unwrap();
}

fn assert_work_is_there(env: &TestEnv) {
    assert_eq!(read(env, "src/a.py"), "one\ntwo\n");
    assert_eq!(read(env, "essay.md"), "mine\n");
    assert!(!env.project().join("config/c.yaml").exists());
}

/// The entry of the trail that tells of a failure.
fn failure(env: &TestEnv, reply: &Value) -> Value {
    let action = text(&reply["action_id"]);
    let list = env.json(&["trail", "list", "--action", &action]);
    let entries = list["entries"].as_array().unwrap().iter();
    let mut failed = entries.filter(|entry| entry["kind"] == "mutation_failed");
    let seq = failed.next().unwrap()["seq"].to_string();
    env.json(&["trail", "show", &seq])
}

#[test]
fn st_27_a_failed_check_leaves_what_others_did_meanwhile() {
    let cases: [(&str, &[&str], &str); 2] =
        [("false", &[], "F513"), ("true", &["--strict"], "F504")];
    for (end, more, code) in cases {
        let (env, id) = some();
        let line = line(&env, end);
        let more = [&["--verify", &line], more].concat();
        let change = || mutate(&env, &id, "f.txt", &write(), &more);
        let answer = meanwhile(&env, change, || work(&env));
        let exit = if end == "true" { 2 } else { 1 };
        let reply = answer.failed(exit, code);
        assert_eq!(read(&env, "f.txt"), "before\n");
        assert_work_is_there(&env);
        let beside = json!(["config/c.yaml", "essay.md", "src/a.py"]);
        assert_eq!(reply["side_effects"], beside, "{reply}");
        let warnings = reply["warnings"].to_string();
        for name in ["config/c.yaml", "essay.md", "src/a.py"] {
            assert!(
                warnings.contains(&format!("`{name}` is not as it was")),
                "{warnings}"
            );
        }
        let suggestion = text(&reply["error"]["suggestion"]);
        assert!(
            !suggestion.contains("everything is as it was"),
            "{suggestion}"
        );
        let entry = failure(&env, &reply).to_string();
        assert!(entry.contains("\"rolled_back\":true"), "{entry}");
        assert!(entry.contains("essay.md"), "{entry}");
        assert_eq!(spent_by(&env, &id), None);
        assert_sound(&env);
    }
}

#[test]
fn st_27_what_others_wrote_into_the_target_is_left_and_named() {
    let (env, id) = some();
    let line = line(&env, "false");
    let change = || mutate(&env, &id, "f.txt", &write(), &["--verify", &line]);
    let theirs = "by the change\nand by hand\n";
    let answer = meanwhile(&env, change, || {
        env.write("project/f.txt", theirs);
    });
    assert_eq!(read(&env, "f.txt"), theirs);
    let reply = &answer.reply;
    assert_eq!(reply["error"]["code"], "F513", "{reply}");
    let changes = json!([{ "path": "f.txt", "change": "modified" }]);
    assert_eq!(reply["changes"], changes);
    let entry = failure(&env, reply).to_string();
    assert!(entry.contains("\"rolled_back\":false"), "{entry}");
    let command = text(&reply["rollback_command"]);
    let warnings = reply["warnings"].to_string();
    assert!(
        warnings.contains("`f.txt` was changed by somebody else"),
        "{reply}"
    );
    assert!(warnings.contains(&command), "{reply}");
    support::paste(&env, &command);
    assert_eq!(read(&env, "f.txt"), "before\n");
}

#[test]
fn st_27_people_who_see_no_json_are_told_what_differs() {
    let (env, id) = some();
    let operation = write().to_string();
    let arguments = [
        "mutate",
        "f.txt",
        "--checkpoint",
        &id,
        "--operation",
        &operation,
    ];
    let more = ["--verify", "echo x > essay.md; echo y >> f.txt; false"];
    let run = env.run(&[&arguments[..], &more].concat());
    assert_eq!(run.code, 1, "{run:?}");
    for told in [
        "`essay.md` is not as it was before the change",
        "`f.txt` was changed by somebody else",
        "-- ./f.txt` brings back what was there before",
    ] {
        assert!(run.stderr.contains(told), "{told}: {run:?}");
    }
    assert!(!run.stderr.contains("rollback_command"), "{run:?}");
}

#[test]
fn st_22_a_workspace_that_is_not_in_the_scope_has_a_name() {
    let (env, _) = some();
    let id = checkpoint(&env, &["f.txt"]);
    let answer = mutate(&env, &id, ".", &command("true"), &[]);
    let message = text(&answer.failed(2, "F501")["error"]["message"]);
    assert!(
        message.contains("the workspace as a whole is not in its scope"),
        "{message}"
    );
}

#[test]
fn fe_33_only_what_a_failed_command_wrote_itself_goes_back() {
    let (env, id) = some();
    let script = "echo x > src/made; echo x >> src/a.py; echo x > beside; exit 1";
    let operation = command(&line(&env, script));
    let change = || mutate(&env, &id, "src", &operation, &[]);
    let answer = meanwhile(&env, change, || work_elsewhere(&env));
    let reply = answer.failed(1, "F514");
    assert_eq!(read(&env, "src/a.py"), "one\n");
    for made in ["src/made", "beside"] {
        assert!(!env.project().join(made).exists(), "{made}");
    }
    // What a person wrote, edited and deleted meanwhile is left and named.
    assert_eq!(read(&env, "essay.md"), "mine\n");
    assert!(!env.project().join("config/c.yaml").exists());
    assert_eq!(reply["taken_back"], json!([]), "{reply:#}");
    let beside = json!(["config/c.yaml", "essay.md"]);
    assert_eq!(reply["side_effects"], beside, "{reply:#}");
    let warnings = reply["warnings"].to_string();
    assert!(
        warnings.contains("`essay.md` is not as it was"),
        "{reply:#}"
    );
    assert_sound(&env);
}

#[test]
fn st_35_undo_leaves_what_others_did_during_a_check() {
    let (env, id) = some();
    let line = line(&env, "true");
    let change = || mutate(&env, &id, "f.txt", &write(), &["--verify", &line]);
    let reply = meanwhile(&env, change, || work(&env)).done();
    let changes = json!([{ "path": "f.txt", "change": "modified" }]);
    assert_eq!(reply["changes"], changes);
    let beside = json!(["config/c.yaml", "essay.md", "src/a.py"]);
    assert_eq!(reply["side_effects"], beside);
    let log = actions(&env);
    assert_eq!(log[0]["outcome"], "observed", "{log:?}");
    assert_eq!(log[0]["changes"].as_array().unwrap().len(), 3, "{log:?}");
    assert_eq!(log[1]["action_id"], reply["action_id"]);
    assert_eq!(log[1]["changes"].as_array().unwrap().len(), 1, "{log:?}");
    env.json(&["undo"]);
    assert_eq!(read(&env, "f.txt"), "before\n");
    assert_work_is_there(&env);
    env.json(&["undo", &text(&log[0]["action_id"])]);
    assert!(!env.project().join("essay.md").exists());
    assert_eq!(read(&env, "config/c.yaml"), "c\n");
    assert_sound(&env);
}

fn with_secret() -> (TestEnv, String) {
    let env = env();
    env.write("project/.env", "TOKEN=before\n");
    env.write("project/sub/.env", "TOKEN=below\n");
    env.write("project/node_modules/m/index.js", "m\n");
    env.write("project/f.txt", "before\n");
    // Nobody knows what it does.
    env.write(
        "project/w.sh",
        "rm .env; rm -r node_modules; echo x > sub/.env; exit $1\n",
    );
    let id = checkpoint(&env, &[]);
    (env, id)
}

fn run_script(status: &str) -> Value {
    json!({ "type": "command", "argv": ["sh", "w.sh", status] })
}

#[test]
fn st_27_secrets_that_a_failed_command_destroyed_are_brought_back() {
    let (env, id) = with_secret();
    let reply = mutate(&env, &id, ".", &run_script("1"), &[]).failed(1, "F514");
    assert_eq!(read(&env, ".env"), "TOKEN=before\n", "{reply}");
    assert_eq!(read(&env, "sub/.env"), "TOKEN=below\n", "{reply}");
    let lost = &reply["not_restored"];
    assert_eq!(lost[0]["path"], "node_modules", "{reply}");
    assert_eq!(lost.as_array().unwrap().len(), 1, "{reply}");
    let message = text(&reply["error"]["message"]);
    assert!(message.contains("`node_modules`"), "{message}");
    // Even what it wrote instead is kept.
    let safety = text(&reply["safety_checkpoint_id"]);
    roll_back(&env, &safety, "sub/.env");
    assert_eq!(read(&env, "sub/.env"), "x\n");
    assert_sound(&env);
}

#[test]
fn st_27_secrets_that_a_failed_check_destroyed_are_brought_back() {
    let (env, id) = with_secret();
    let more = ["--verify", "sh w.sh 1"];
    let reply = mutate(&env, &id, "f.txt", &write(), &more).failed(1, "F513");
    assert_eq!(read(&env, "f.txt"), "before\n");
    assert_eq!(read(&env, ".env"), "TOKEN=before\n", "{reply}");
    // Who changed this one nobody can tell: it stays, and is named with the way back.
    assert_eq!(read(&env, "sub/.env"), "x\n");
    assert_eq!(reply["side_effects"], json!(["sub/.env"]));
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("`.env` was brought back"), "{warnings}");
    let before = text(&reply["before_checkpoint_id"]);
    let way = format!("`safepoint rollback {before} -- ./sub/.env`");
    assert!(reply["warnings"].to_string().contains(&way), "{reply}");
    roll_back(&env, &before, "./sub/.env");
    assert_eq!(read(&env, "sub/.env"), "TOKEN=below\n");
}

#[test]
fn st_27_undo_brings_back_secrets_that_a_command_destroyed() {
    let (env, id) = with_secret();
    let reply = mutate(&env, &id, ".", &run_script("0"), &[]).done();
    let warnings = reply["warnings"].to_string();
    for name in [".env", "sub/.env", "node_modules"] {
        assert!(
            warnings.contains(&format!("`{name}` is no longer")),
            "{warnings}"
        );
    }
    let changes = json!([
        { "path": ".env", "change": "deleted" },
        { "path": "sub/.env", "change": "modified" },
    ]);
    assert_eq!(reply["changes"], changes);
    let undone = env.json(&["undo", &text(&reply["action_id"])]);
    assert_eq!(read(&env, ".env"), "TOKEN=before\n", "{undone}");
    assert_eq!(read(&env, "sub/.env"), "TOKEN=below\n", "{undone}");
    let reverted = json!([
        { "path": ".env", "change": "created" },
        { "path": "sub/.env", "change": "modified" },
    ]);
    assert_eq!(undone["changes_reverted"], reverted);
}

#[test]
fn st_27_a_change_that_loses_what_no_checkpoint_holds_does_not_hold() {
    let env = env();
    env.write("project/safepoint.yaml", "exclude: [kept.bin]\n");
    env.write("project/kept.bin", "the only copy\n");
    env.write("project/f.txt", "before\n");
    env.write("project/w.sh", "rm kept.bin; echo x > f.txt\n");
    let id = checkpoint(&env, &[]);
    let operation = json!({ "type": "command", "argv": ["sh", "w.sh"] });
    let reply = mutate(&env, &id, ".", &operation, &[]).failed(2, "F504");
    assert_eq!(read(&env, "f.txt"), "before\n");
    assert_eq!(reply["verification"]["verdict"], "FAIL", "{reply}");
    assert_eq!(reply["not_restored"][0]["path"], "kept.bin", "{reply}");
    let entry = failure(&env, &reply).to_string();
    assert!(entry.contains("\"rolled_back\":false"), "{entry}");
    assert!(entry.contains("kept.bin"), "{entry}");
}

#[test]
fn st_22_a_sealed_secret_may_be_changed_by_a_command() {
    let env = env();
    env.write("project/.env", "TOKEN=before\n");
    env.write("project/f.txt", "f\n");
    let id = text(&env.json(&["checkpoint", "--seal-sensitive"])["checkpoint_id"]);
    let operation = json!({ "type": "command", "argv": ["rm", ".env"] });
    let delete = json!({ "type": "delete" });
    let refused = mutate(&env, &id, ".env", &delete, &[]).failed(2, "F504");
    let message = text(&refused["error"]["message"]);
    assert!(message.contains("only encrypted"), "{message}");
    let reply = mutate(&env, &id, ".", &operation, &[]).done();
    let warnings = reply["warnings"].to_string();
    assert!(!warnings.contains("no checkpoint holds it"), "{warnings}");
    assert!(warnings.contains("holds it encrypted"), "{warnings}");
    env.json(&["undo"]);
    assert_eq!(read(&env, ".env"), "TOKEN=before\n");
}

/// A work tree whose repository lies elsewhere.
fn linked() -> TestEnv {
    let env = env();
    let main = env.root().join("main");
    fs::create_dir(&main).unwrap();
    git(&main, &["init", "-q", "-b", "main"]);
    fs::write(main.join("a.txt"), "a\n").unwrap();
    git(&main, &["add", "a.txt"]);
    git(&main, &["commit", "-qm", "first"]);
    let project = env.project();
    let place = project.to_str().unwrap();
    git(
        &main,
        &["worktree", "add", "-q", "--force", "-b", "work", place],
    );
    env
}

#[test]
fn st_13_a_change_in_a_linked_work_tree_takes_its_git_state_along() {
    let env = linked();
    let project = env.project();
    let head = git(&project, &["rev-parse", "HEAD"]);
    // The repository lies outside: what writes there is run by whom it is allowed.
    let commit = "echo b >> a.txt; git -c user.name=a -c user.email=a@b commit -qam second";
    let id = checkpoint(&env, &[]);
    let answer = mutate(&env, &id, ".", &command(commit), &["--verify", "false"]);
    assert_eq!(answer.reply["error"]["code"], "F513", "{answer:?}");
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
    let reply = mutate(&env, &id, ".", &command(commit), &[]).done();
    assert_ne!(git(&project, &["rev-parse", "HEAD"]), head);
    let paths = reply["changes"].to_string();
    assert!(
        paths.contains(".git/HEAD") && paths.contains("a.txt"),
        "{reply}"
    );
    support::paste(&env, &text(&reply["rollback_command"]));
    assert_eq!(git(&project, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&project, &["status", "--porcelain"]), "");
}

#[test]
fn st_13_a_hook_that_a_command_writes_is_listed_and_taken_back() {
    let env = env();
    let project = env.project();
    git(&project, &["init", "-q"]);
    let id = checkpoint(&env, &[]);
    env.write(
        "project/h.sh",
        "echo x > .git/hooks/post-commit; chmod +x .git/hooks/post-commit\n",
    );
    let operation = json!({ "type": "command", "argv": ["sh", "h.sh"] });
    let reply = mutate(&env, &id, ".", &operation, &[]).done();
    let changes = json!([{ "path": ".git/hooks/post-commit", "change": "created" }]);
    assert_eq!(reply["changes"], changes, "{reply}");
    assert_eq!(actions(&env)[0]["changes"], changes);
    env.json(&["undo", &text(&reply["action_id"])]);
    assert!(!project.join(".git/hooks/post-commit").exists());
}

#[test]
fn st_32_a_command_that_outlives_its_safepoint_is_ended_before_anything_is_recorded() {
    let (env, id) = some();
    let pids = env.scratch().join("pids");
    let line = format!(
        "echo $$ > '{}'; while :; do date >> log.txt; sleep 0.01; done",
        pids.display()
    );
    let operation = command(&line).to_string();
    let arguments = [
        "mutate",
        "src",
        "--checkpoint",
        &id,
        "--operation",
        &operation,
    ];
    let mut child = env.command(&arguments).spawn().unwrap();
    let log: PathBuf = env.project().join("src/log.txt");
    while !log.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let listed = env.run(&["list"]);
    assert!(listed.stderr.contains("may still run"), "{listed:?}");
    let run = env.run(&["gc"]);
    assert_eq!(run.code, 0, "{run:?}");
    let pid = fs::read_to_string(pids).unwrap();
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    assert!(!stat.is_ok_and(|stat| !stat.contains(") Z ")), "{pid} runs");
    let log = actions(&env);
    assert_eq!(log.len(), 1, "{log:?}");
    assert_eq!(log[0]["outcome"], "unknown");
    assert!(
        text(&log[0]["summary"]).starts_with("command sh -c"),
        "{log:?}"
    );
    assert_ne!(log[0]["action"], "batch", "{log:?}");
    env.json(&["undo"]);
    assert!(!env.project().join("src/log.txt").exists());
    assert_sound(&env);
}
