//! Rolling back, undoing and redoing, from the outside.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use testkit::TestEnv;
use testkit::tree::{assert_same, look};

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv) -> String {
    let reply = env.json(&["checkpoint"]);
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn read(env: &TestEnv, path: &str) -> String {
    fs::read_to_string(env.project().join(path)).unwrap()
}

fn changes(reply: &Value) -> BTreeSet<(String, String)> {
    let list = reply.as_array().unwrap();
    list.iter()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap().to_owned();
            (text("path"), text("change"))
        })
        .collect()
}

fn of(expected: &[(&str, &str)]) -> BTreeSet<(String, String)> {
    let owned = |(path, change): &(&str, &str)| ((*path).to_owned(), (*change).to_owned());
    expected.iter().map(owned).collect()
}

/// A tree with everything that a roll back must bring back.
fn filled() -> TestEnv {
    let env = env();
    let root = env.project();
    for path in [
        "a.txt",
        "gone.txt",
        "src/x.rs",
        "src/y.rs",
        "deep/1/2/3/f",
        "becomes-directory",
    ] {
        env.write(&format!("project/{path}"), &format!("{path}\n"));
    }
    fs::create_dir(root.join("empty")).unwrap();
    fs::create_dir(root.join("locked")).unwrap();
    env.write("project/locked/inside", "inside\n");
    env.write("project/becomes-file/in", "in\n");
    fs::write(root.join(OsStr::from_bytes(b"raw\xfe\nname")), "raw").unwrap();
    fs::hard_link(root.join("a.txt"), root.join("src/same-as-a")).unwrap();
    symlink("a.txt", root.join("link")).unwrap();
    symlink("not/there", root.join("dangling")).unwrap();
    symlink("src", root.join("to-directory")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(5 << 20).unwrap();
    let _ = rustix::fs::lsetxattr(
        root.join("a.txt"),
        "user.note",
        b"kept",
        rustix::fs::XattrFlags::empty(),
    ); // not every file system has them
    mode(&root.join("src/x.rs"), 0o755);
    mode(&root.join("locked/inside"), 0o400);
    mode(&root.join("locked"), 0o555);
    env
}

/// Does everything to it that can be done.
fn wreck(root: &Path) {
    mode(&root.join("locked"), 0o755);
    mode(&root.join("locked/inside"), 0o600);
    fs::write(root.join("locked/inside"), "changed").unwrap();
    fs::write(root.join("a.txt"), "changed through one of its names\n").unwrap();
    fs::remove_file(root.join("gone.txt")).unwrap();
    fs::remove_dir_all(root.join("deep")).unwrap();
    fs::remove_dir(root.join("empty")).unwrap();
    fs::remove_file(root.join("becomes-directory")).unwrap();
    fs::create_dir_all(root.join("becomes-directory/sub")).unwrap();
    fs::write(root.join("becomes-directory/sub/f"), "f").unwrap();
    fs::remove_dir_all(root.join("becomes-file")).unwrap();
    fs::write(root.join("becomes-file"), "now a file").unwrap();
    for link in ["link", "dangling", "to-directory"] {
        fs::remove_file(root.join(link)).unwrap();
    }
    symlink("elsewhere", root.join("link")).unwrap();
    fs::create_dir(root.join("to-directory")).unwrap();
    fs::write(root.join("to-directory/x.rs"), "not src").unwrap();
    mode(&root.join("src/x.rs"), 0o644);
    fs::remove_file(root.join("src/same-as-a")).unwrap();
    fs::copy(root.join("a.txt"), root.join("src/same-as-a")).unwrap();
    fs::remove_file(root.join("sparse")).unwrap();
    fs::create_dir_all(root.join("new/er")).unwrap();
    fs::write(root.join("new/er/file"), "created since").unwrap();
}

#[test]
fn st_30_a_roll_back_makes_everything_identical() {
    let env = filled();
    let before = look(&env.project());
    let id = checkpoint(&env);
    wreck(&env.project());
    let wrecked = look(&env.project());
    let reply = env.json(&["rollback", &id]);
    assert_same(&before, &look(&env.project()));
    let told = changes(&reply["changes_reverted"]);
    for expected in [
        ("new/er/file", "deleted"),
        ("gone.txt", "created"),
        ("a.txt", "modified"),
        ("empty", "created"),
        ("src/x.rs", "metadata"),
    ] {
        assert!(
            told.is_superset(&of(&[expected])),
            "{expected:?} in {told:?}"
        );
    }
    assert!(!told.iter().any(|(path, _)| path == "src/y.rs"), "{told:?}");
    // ST-31: and any roll back can itself be taken back.
    env.json(&["redo"]);
    assert_same(&wrecked, &look(&env.project()));
    env.undo_seen();
    env.json(&["rollback", &id]);
    assert_same(&before, &look(&env.project()));
}

#[test]
fn st_30_a_roll_back_of_an_unchanged_tree_changes_nothing() {
    let env = filled();
    let id = checkpoint(&env);
    let before = look(&env.project());
    let reply = env.json(&["rollback", &id]);
    assert_eq!(reply["changes_reverted"], json!([]));
    assert_eq!(reply["verification"]["match"], true);
    assert_same(&before, &look(&env.project()));
}

#[test]
fn st_30_what_is_outside_the_scope_or_was_left_out_is_never_touched() {
    let env = env();
    for path in ["src/a", "docs/b", "node_modules/m/i.js"] {
        env.write(&format!("project/{path}"), "old");
    }
    let outside = env.write("outside", "outside");
    symlink(&outside, env.project().join("src/out")).unwrap();
    let reply = env.json(&["checkpoint", "src"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    let whole = checkpoint(&env);
    for path in [
        "src/a",
        "docs/b",
        "node_modules/m/i.js",
        "src/new",
        "docs/new",
    ] {
        env.write(&format!("project/{path}"), "new");
    }
    fs::write(&outside, "changed through the link").unwrap();
    env.json(&["rollback", id]);
    assert_eq!(read(&env, "src/a"), "old");
    assert!(!env.project().join("src/new").exists());
    assert_eq!(read(&env, "docs/b"), "new");
    assert_eq!(read(&env, "docs/new"), "new");
    env.json(&["rollback", &whole]);
    assert_eq!(read(&env, "docs/b"), "old");
    assert_eq!(read(&env, "node_modules/m/i.js"), "new");
    assert_eq!(
        fs::read_to_string(outside).unwrap(),
        "changed through the link"
    );
}

#[test]
fn st_31_the_state_before_a_roll_back_is_a_checkpoint_of_its_own() {
    let env = filled();
    let id = checkpoint(&env);
    wreck(&env.project());
    let wrecked = look(&env.project());
    let reply = env.json(&["rollback", &id]);
    let safety = reply["safety_checkpoint_id"].as_str().unwrap();
    env.json(&["verify", safety]);
    env.write("project/a.txt", "and later something else");
    env.json(&["rollback", safety]);
    assert_same(&wrecked, &look(&env.project()));
}

#[test]
fn st_32_a_dry_run_shows_the_plan_and_touches_nothing() {
    let env = filled();
    let id = checkpoint(&env);
    wreck(&env.project());
    let wrecked = look(&env.project());
    let listed = env.json(&["list", "-a"]);
    let plan = env.json(&["rollback", &id, "--dry-run"]);
    assert_eq!(
        (&plan["dry_run"], &plan["rolled_back"]),
        (&json!(true), &json!(false))
    );
    let diff = plan["diff"].as_str().unwrap();
    assert!(diff.contains("-changed through one of its names"), "{diff}");
    assert!(diff.contains("+a.txt"), "{diff}");
    assert_same(&wrecked, &look(&env.project()));
    assert_eq!(env.json(&["list", "-a"]), listed);
    let done = env.json(&["rollback", &id]);
    assert_eq!(plan["changes"], done["changes_reverted"]);
}

#[test]
fn st_32_no_temporary_files_remain() {
    let env = filled();
    let id = checkpoint(&env);
    wreck(&env.project());
    env.json(&["rollback", &id]);
    let names = |place: PathBuf| -> Vec<String> {
        let list = fs::read_dir(place).unwrap();
        let mut names: Vec<String> = list
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(
        names(env.project().join(".checkpoints")),
        [".gitignore", &id]
    );
    let journals = env.home().join("state/journals");
    assert_eq!(names(journals), Vec::<String>::new());
}

#[test]
fn st_34_paths_can_be_chosen() {
    let env = env();
    for path in ["src/a", "src/b", "docs/c", "top"] {
        env.write(&format!("project/{path}"), "old");
    }
    let id = checkpoint(&env);
    for path in ["src/a", "src/b", "docs/c", "top", "src/new"] {
        env.write(&format!("project/{path}"), "new");
    }
    let reply = env.json(&["rollback", &id, "src/a", "top"]);
    let told = changes(&reply["changes_reverted"]);
    assert_eq!(told, of(&[("src/a", "modified"), ("top", "modified")]));
    assert_eq!(
        (read(&env, "src/b"), read(&env, "docs/c")),
        ("new".into(), "new".into())
    );
    let reply = env.json(&["rollback", &id, "src/"]);
    let told = changes(&reply["changes_reverted"]);
    assert!(told.is_superset(&of(&[("src/b", "modified"), ("src/new", "deleted")])));
    assert_eq!(read(&env, "docs/c"), "new");
    let before = look(&env.project());
    assert_eq!(env.run(&["rollback", &id, "no/such/path"]).code, 7);
    assert_eq!(env.run(&["rollback", &id, "../escape"]).code, 7);
    assert_same(&before, &look(&env.project()));
    env.json(&["redo"]);
    assert_eq!(read(&env, "src/new"), "new");
}

/// Three lines that are far enough apart.
#[test]
fn st_34_an_empty_path_names_nothing_and_nothing_is_done() {
    let env = env();
    env.write("project/a.txt", "1\n");
    let id = checkpoint(&env);
    env.write("project/a.txt", "2\n");
    let before = look(&env.project());
    let write = r#"{"type": "write", "content": "x"}"#;
    for arguments in [
        &["rollback", &id, ""][..],
        &["rollback", &id, "a.txt", ""],
        &["rollback", &id, "--dry-run", ""],
        &["checkpoint", ""],
        &["diff", &id, "--", ""],
        &["audit", "--scope", ""],
        &["mutate", "", "--auto-checkpoint", "--operation", write],
    ] {
        let run = env.run(arguments);
        assert_eq!(run.code, 7, "{arguments:?}: {run:?}");
        assert!(run.stderr.contains("hint: "), "{arguments:?}: {run:?}");
    }
    let told = env.run(&["rollback", &id, ""]).stderr;
    insta::assert_snapshot!(told, @r"
    error: the scope `` cannot be used: it is empty, and an empty path names nothing
    hint: leave it out to mean everything, or name a file, a directory or `.`
    ");
    assert_same(&before, &look(&env.project()));
    env.json(&["rollback", &id, "."]);
    assert_eq!(read(&env, "a.txt"), "1\n");
}

fn lines(first: &str, middle: &str, last: &str) -> String {
    format!("{first}\n2\n3\n4\n5\n{middle}\n7\n8\n9\n10\n{last}\n")
}

#[test]
fn st_35_one_action_in_the_middle_is_undone_and_later_edits_stay() {
    let env = env();
    env.write("project/f", &lines("1", "6", "11"));
    env.write("project/other", "other\n");
    checkpoint(&env);
    env.write("project/f", &lines("1", "agent", "11"));
    env.write("project/made-by-agent", "x\n");
    checkpoint(&env); // what happened until here is one action
    let log = env.json(&["log"]);
    let action = log["actions"][0]["action_id"].as_str().unwrap().to_owned();
    let told = changes(&log["actions"][0]["changes"]);
    assert_eq!(told, of(&[("f", "modified"), ("made-by-agent", "created")]));
    env.write("project/f", &lines("1", "agent", "human"));
    env.write("project/other", "human\n");
    env.write("project/later", "later\n");
    let before = look(&env.project());
    let plan = env.json(&["undo", &action, "--dry-run"]);
    assert_eq!(plan["dry_run"], true);
    assert_same(&before, &look(&env.project()));
    env.json(&["undo", &action]);
    assert_eq!(read(&env, "f"), lines("1", "6", "human"));
    assert_eq!(
        (read(&env, "other"), read(&env, "later")),
        ("human\n".into(), "later\n".into())
    );
    assert!(!env.project().join("made-by-agent").exists());
    env.json(&["redo"]);
    assert_eq!(read(&env, "f"), lines("1", "agent", "human"));
    assert!(env.project().join("made-by-agent").exists());
}

#[test]
fn st_35_a_true_conflict_is_refused_with_its_hunks_and_nothing_changes() {
    let env = env();
    env.write("project/f", &lines("1", "6", "11"));
    checkpoint(&env);
    env.write("project/f", &lines("1", "agent", "11"));
    env.write("project/free", "agent\n");
    checkpoint(&env);
    let log = env.json(&["log"]);
    let action = log["actions"][0]["action_id"].as_str().unwrap().to_owned();
    env.write("project/f", &lines("1", "human", "11"));
    let before = look(&env.project());
    let run = env.run(&["undo", &action, "--json"]);
    assert_eq!(run.code, 9, "{run:?}");
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    let conflict = &reply["conflicts"][0];
    assert_eq!(conflict["path"], "f", "{reply}");
    let hunk = conflict["hunks"][0].to_string();
    for side in ["agent", "human", "6"] {
        assert!(hunk.contains(side), "{side}: {hunk}");
    }
    let shown = env.run(&["undo", &action]);
    assert!(shown.stderr.contains("human"), "{shown:?}");
    assert_same(&before, &look(&env.project()));
}

/// Runs a command as an action, and tells which.
fn exec(env: &TestEnv, words: &[&str]) -> String {
    let run = env.run(&[&["exec", "--no-tui", "--json", "--"], words].concat());
    let reply: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["outcome"], "ok", "{reply}");
    reply["action_id"].as_str().unwrap().to_owned()
}

#[test]
fn st_35_without_a_name_the_last_action_goes_and_hand_edits_stay() {
    let env = env();
    env.write("project/f", "f\n");
    env.write("project/notes.md", "notes\n");
    let action = exec(&env, &["rm", "f"]);
    env.write("project/notes.md", "notes\nan hour of work\n");
    let plan = env.json(&["undo", "--dry-run"]);
    assert_eq!(plan["taken_back"]["action_id"], action.as_str(), "{plan}");
    assert_eq!(plan["left_alone"].as_array().unwrap().len(), 1, "{plan}");
    insta::assert_snapshot!(env.snapshot(&["undo"]), @r"
    exit 0
    ----- stdout
    verified  taken back act_[id] (rm f), 1 path
      created   f
      kept      1 newer change that nobody asked for, act_[id]; `safepoint undo act_[id]` takes it back
      `safepoint redo` brings back what was there before
    ");
    assert_eq!(read(&env, "f"), "f\n");
    assert_eq!(read(&env, "notes.md"), "notes\nan hour of work\n");
    // What is left is nobody's, and goes only by its name.
    let observed = plan["left_alone"][0]["action_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = env.run(&["undo"]);
    assert_eq!(refused.code, 8, "{refused:?}");
    assert!(
        refused
            .stderr
            .contains(&format!("safepoint undo {observed}")),
        "{refused:?}"
    );
    insta::assert_snapshot!(env.snapshot(&["redo"]), @r"
    exit 0
    ----- stdout
    verified  taken back act_[id] (undo of act_[id] (rm f)), 1 path
      deleted   f
      `safepoint undo act_[id]` takes it back again
    ");
    assert!(!env.project().join("f").exists());
    let undone = env.json(&["undo", &observed]);
    assert_eq!(undone["taken_back"]["action"], "workspace.change");
    assert_eq!(undone["taken_back"]["action_id"], observed.as_str());
    assert_eq!(undone["left_alone"], json!([]));
    assert_eq!(read(&env, "notes.md"), "notes\n");
    // What was redone is the last action again.
    assert_eq!(
        env.json(&["undo"])["taken_back"]["action_id"],
        action.as_str()
    );
    assert_eq!(read(&env, "f"), "f\n");
}

#[test]
fn st_35_an_action_of_which_nothing_is_left_is_not_said_to_be_taken_back() {
    let env = env();
    env.write("project/src/a.txt", &lines("1", "6", "11"));
    let changed = exec(&env, &["sed", "-i", "s/^6$/agent/", "src/a.txt"]);
    let made = exec(&env, &["touch", "made"]);
    env.json(&["undo", &changed]);
    let refused = |action: &str, why: &str| {
        let before = look(&env.project());
        for more in [&[][..], &["--dry-run"]] {
            let run = env.run(&[&["undo", action], more].concat());
            assert_eq!(run.code, 9, "{run:?}");
            assert!(run.stderr.contains(why), "{run:?}");
            assert!(run.stderr.contains(action), "{run:?}");
        }
        assert_same(&before, &look(&env.project()));
    };
    refused(&changed, "took it back already");
    // Nor does it touch anything when there was something else to do in that file.
    env.write("project/src/a.txt", &lines("1", "6", "human"));
    refused(&changed, "took it back already");
    env.json(&["redo"]);
    assert_eq!(read(&env, "src/a.txt"), lines("1", "agent", "human"));
    exec(&env, &["rm", "-r", "src"]);
    refused(&changed, "`src/a.txt` is gone since");
    fs::remove_file(env.project().join("made")).unwrap();
    refused(&made, "everything is as it was before it");
}

#[test]
fn st_32_a_dry_run_shows_what_is_put_together() {
    let env = env();
    env.write("project/f", &lines("1", "6", "11"));
    let first = exec(&env, &["sed", "-i", "s/^1$/ONE/", "f"]);
    exec(&env, &["sed", "-i", "s/^11$/ELEVEN/", "f"]);
    let plan = env.json(&["undo", "--dry-run", &first]);
    insta::assert_snapshot!(plan["diff"].as_str().unwrap(), @r"
    diff --git a/f b/f
    --- a/f
    +++ b/f
    @@ -1,4 +1,4 @@
    -ONE
    +1
     2
     3
     4
    ");
    let shown = env.run(&["undo", "--dry-run", &first]).stdout;
    assert!(shown.contains("-ONE\n+1\n"), "{shown}");
    assert_eq!(read(&env, "f"), lines("ONE", "6", "ELEVEN"));
    env.json(&["undo", &first]);
    assert_eq!(read(&env, "f"), lines("1", "6", "ELEVEN"));
}

#[test]
fn st_11_names_are_escaped_once() {
    let env = env();
    let names = [&b"inv\xff"[..], b"a\tb\nc", b"lit\\xff", b"plain"];
    env.write("project/keep", "");
    let id = checkpoint(&env);
    for name in names {
        fs::write(env.project().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    let shown = [r"inv\xff", r"a\x09b\nc", r"lit\\xff", "plain"];
    for arguments in [
        &["diff", &id, "--name-only"][..],
        &["diff", &id, "--stat"],
        &["rollback", &id, "--dry-run"],
        &["rollback", &id],
        &["log"],
        &["redo"],
        &["undo"],
        &["log"],
    ] {
        let seen = match arguments {
            ["undo"] => env.seen_action(),
            _ => String::new(),
        };
        let named = ["undo", &seen];
        let run = env.run(match seen.is_empty() {
            true => arguments,
            false => &named,
        });
        for name in shown {
            let ends = |line: &str| line.ends_with(&format!(" {name}")) || line == name;
            assert!(
                run.stdout.lines().any(ends),
                "{name} {arguments:?}: {run:?}"
            );
        }
    }
    let audit = env.run(&["audit"]).stdout;
    for name in shown {
        assert!(audit.contains(&format!(" {name}  ")), "{name}: {audit}");
    }
    let told = env.json(&["log"])["actions"][0]["changes"].clone();
    let told: Vec<_> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["path"])
        .collect();
    assert!(
        shown.iter().all(|name| told.contains(&&json!(name))),
        "{told:?}"
    );
}

#[test]
fn st_35_a_log_of_nothing_is_refused() {
    let env = env();
    assert_eq!(env.run(&["log", "--limit", "0"]).code, 7);
}

#[test]
fn st_36_the_reply_has_every_field() {
    let env = filled();
    let id = checkpoint(&env);
    let hash = env.json(&["verify", &id])["hash"].clone();
    wreck(&env.project());
    let reply = env.json(&["rollback", &id]);
    assert_eq!(reply["rolled_back"], true);
    assert_eq!(reply["restored"], true);
    assert_eq!(reply["restored_to"], id);
    let verification = &reply["verification"];
    assert_eq!(verification["checkpoint_hash"], hash);
    assert_eq!(verification["post_state_hash"], hash);
    assert_ne!(verification["pre_state_hash"], hash);
    assert_eq!(verification["match"], true);
    assert_eq!(reply["confidence"], 1.0);
    for list in [
        "changes_reverted",
        "warnings",
        "next_actions",
        "evidence_anchors",
        "assumptions",
    ] {
        assert!(reply[list].is_array(), "{list}");
    }
    assert!(reply["evidence_anchors"].to_string().contains(&id));
}

fn start(env: &TestEnv, arguments: &[&str]) -> Child {
    let mut command = env.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn st_41_roll_backs_and_checkpoints_at_once_never_leave_a_mixture() {
    let env = env();
    let state = |content: &str| {
        for number in 0..30 {
            env.write(&format!("project/d{}/f{number}", number % 5), content);
        }
    };
    state("first");
    let first = checkpoint(&env);
    let hash = |id: &str| env.json(&["verify", id])["hash"].clone();
    state("second");
    let second = checkpoint(&env);
    let known = [hash(&first), hash(&second)];
    let mut running = Vec::new();
    for round in 0..4 {
        let target = if round % 2 == 0 { &first } else { &second };
        running.push(start(&env, &["rollback", target, "--json"]));
        running.push(start(&env, &["checkpoint", "--json"]));
        running.push(start(&env, &["checkpoint", "--json"]));
        running.push(start(&env, &["list", "--json"]));
    }
    let mut seen = 0;
    for child in running {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let reply: Value = serde_json::from_slice(&output.stdout).unwrap();
        if let Some(found) = reply["pre_mutation_state"].get("hash") {
            // Whoever looked saw one state or the other, and nothing between.
            assert!(known.contains(found), "{reply}");
            seen += 1;
        }
        if let Some(verification) = reply.get("verification") {
            assert_eq!(verification["match"], true, "{reply}");
        }
    }
    assert_eq!(seen, 8);
    let contents: BTreeSet<Vec<u8>> = look(&env.project())
        .into_values()
        .filter(|seen| seen.mode & 0o170_000 == 0o100_000)
        .map(|seen| seen.content)
        .collect();
    assert_eq!(contents.len(), 1, "{contents:?}");
    assert_eq!(env.run(&["trail", "verify"]).code, 0);
}

#[test]
fn st_42_failures_carry_code_name_message_location_and_suggestion() {
    let env = env();
    env.write("project/a", "a");
    checkpoint(&env);
    for arguments in [
        &["rollback", "chk_19990101"][..],
        &["checkpoint", "missing"],
        &["undo", "act_zzzzzzzzzzzzzzzz"],
        &["rollback", "chk_", "missing"],
        &["verify", "nonsense"],
    ] {
        let mut arguments = arguments.to_vec();
        arguments.push("--json");
        let run = env.run(&arguments);
        let reply: Value = serde_json::from_str(&run.stdout).unwrap();
        for field in ["code", "name", "message", "location", "suggestion"] {
            let text = reply["error"][field].as_str();
            assert!(
                text.is_some_and(|text| !text.is_empty()),
                "{field}: {reply}"
            );
        }
        assert!(run.stderr.is_empty(), "{run:?}");
    }
}

#[test]
fn st_43_there_is_no_progress_in_a_pipe() {
    let env = filled();
    for number in 0..500 {
        env.write(&format!("project/many/f{number}"), &number.to_string());
    }
    let run = env.run(&["checkpoint"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(!run.stdout.contains(['\r', '\u{1b}']), "{run:?}");
    let id = checkpoint(&env);
    fs::remove_dir_all(env.project().join("many")).unwrap();
    let run = env.run(&["rollback", &id]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(!run.stdout.contains(['\r', '\u{1b}']), "{run:?}");
}

fn not_restored(reply: &Value) -> Vec<String> {
    let list = reply["not_restored"].as_array().unwrap();
    list.iter()
        .map(|one| one["path"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn st_32_what_no_checkpoint_holds_and_is_gone_is_named() {
    let env = env();
    let root = env.project();
    fs::write(root.join(".env"), "TOKEN=1\n").unwrap();
    fs::write(root.join("a.txt"), "a\n").unwrap();
    for path in ["node_modules/one", ".venv/lib/python3/site-packages", "src"] {
        fs::create_dir_all(root.join(path)).unwrap();
    }
    fs::write(root.join(".venv/pyvenv.cfg"), "home = x\n").unwrap();
    fs::write(root.join("src/b.txt"), "b\n").unwrap();
    let id = checkpoint(&env);
    let same = env.json(&["rollback", &id, "--dry-run"]);
    assert_eq!(not_restored(&same), Vec::<String>::new(), "{same}");

    fs::remove_file(root.join(".env")).unwrap();
    fs::remove_dir_all(root.join("node_modules")).unwrap();
    fs::remove_dir_all(root.join("src")).unwrap();
    let packages = root.join(".venv/lib/python3/site-packages");
    fs::create_dir(packages.join("colorama")).unwrap();
    let named = [".env", ".venv", "node_modules"];
    let action = env.seen_action();
    let dry = env.json(&["undo", &action, "--dry-run"]);
    assert_eq!(not_restored(&dry), named, "{dry}");
    let undone = env.json(&["undo", &action]);
    assert_eq!(not_restored(&undone), named, "{undone}");
    assert!(undone["confidence"].as_f64().unwrap() < 1.0);
    assert_eq!(read(&env, "src/b.txt"), "b\n");
    let back = env.run(&["rollback", &id]);
    let shown = back.stdout;
    assert!(shown.starts_with("verified in part"), "{shown}");
    assert!(shown.contains("not restored  .env (it is gone"), "{shown}");
    assert!(
        shown.contains("not restored  .venv (it has changed"),
        "{shown}"
    );
    let part = env.json(&["rollback", &id, "src"]);
    assert_eq!(not_restored(&part), Vec::<String>::new(), "{part}");
}

#[test]
fn st_32_a_deleted_project_is_listed_and_comes_back() {
    let env = env();
    let root = env.project();
    fs::create_dir(root.join("src")).unwrap();
    fs::write(root.join("src/a.txt"), "a\n").unwrap();
    mode(&root, 0o700);
    let id = checkpoint(&env);
    fs::remove_dir_all(&root).unwrap();
    let place = root.to_str().unwrap();
    let with = |words: &[&str]| {
        let all = [&["-C", place, "--json"], words].concat();
        let output = env.command(&all).current_dir(env.root()).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };

    let list = with(&["list"]);
    assert_eq!(list["checkpoints"][0]["id"], json!(id));
    with(&["log"]);
    with(&["undo", "--dry-run"]);
    assert!(!root.exists());
    let undone = with(&["undo"]);
    assert_eq!(undone["restored"], json!(true), "{undone}");
    assert_eq!(read(&env, "src/a.txt"), "a\n");
    let found = fs::metadata(&root).unwrap().permissions().mode() & 0o7777;
    assert_eq!(found, 0o700);
    let log = with(&["log", "--all-workspaces"]);
    assert_eq!(log["actions"][0]["workspace"], json!(place));

    fs::remove_dir_all(&root).unwrap();
    with(&["rollback", &id]);
    assert_eq!(read(&env, "src/a.txt"), "a\n");
}
