//! Edges where something could be lost: each was once a way to lose it.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests do what the product may not"
)]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;

use testkit::TestEnv;

fn env() -> TestEnv {
    TestEnv::new(env!("CARGO_BIN_EXE_safepoint"))
}

fn checkpoint(env: &TestEnv, scope: &[&str]) -> String {
    let reply = env.json(&[&["checkpoint"], scope].concat());
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

fn read(env: &TestEnv, path: &str) -> Option<String> {
    fs::read_to_string(env.project().join(path)).ok()
}

/// Built at run time, so that this file is not taken for a secret itself.
fn private_key() -> String {
    let line = "MIIEpAIBAAKCAQEA7yn3bRHQ5FHMQ1ZrQk9vVkZ3dGd6".repeat(2);
    format!(
        "-----BEGIN RSA {0} KEY-----\n{line}\n-----END RSA {0} KEY-----\n",
        "PRIVATE"
    )
}

#[test]
fn st_17_collecting_for_one_store_keeps_what_another_needs() {
    let env = env();
    env.write("project/f", "precious");
    let id = checkpoint(&env, &[]);
    let other = format!("sqlite:{}", env.root().join("other.db").display());
    env.json(&["--store", &other, "gc"]);
    env.json(&["verify", &id]);
}

#[test]
fn st_34_a_chosen_pattern_stays_inside_what_was_checkpointed() {
    let env = env();
    env.write("project/src/a.txt", "1");
    env.write("project/notes.txt", "keep");
    env.write("project/docs/d.txt", "keep");
    let id = checkpoint(&env, &["src"]);
    env.write("project/src/a.txt", "2");
    env.json(&["rollback", &id, "**/*.txt"]);
    assert_eq!(read(&env, "src/a.txt").as_deref(), Some("1"));
    assert_eq!(read(&env, "notes.txt").as_deref(), Some("keep"));
    assert_eq!(read(&env, "docs/d.txt").as_deref(), Some("keep"));
    assert_eq!(env.run(&["rollback", &id, "docs"]).code, 7);
}

#[test]
fn st_34_a_checkpointed_pattern_is_rolled_back_by_directory_and_alone() {
    let env = env();
    env.write("project/src/a.rs", "1");
    env.write("project/src/b.md", "1");
    let id = checkpoint(&env, &["src/*.rs"]);
    env.write("project/src/a.rs", "2");
    env.write("project/src/b.md", "2");
    let reply = env.json(&["rollback", &id, "src"]);
    assert_eq!(reply["changes_reverted"].as_array().unwrap().len(), 1);
    assert_eq!(read(&env, "src/a.rs").as_deref(), Some("1"));
    assert_eq!(read(&env, "src/b.md").as_deref(), Some("2"));
}

#[test]
fn st_34_a_single_file_comes_back_beside_others_and_without_them() {
    let env = env();
    env.write("project/src/a", "x");
    env.write("project/src/b", "y");
    env.write("project/src/sub/q", "z");
    let whole = checkpoint(&env, &[]);
    let part = checkpoint(&env, &["src/a"]);
    for id in [&part, &whole] {
        fs::remove_file(env.project().join("src/a")).unwrap();
        env.write("project/src/b", "later");
        env.json(&["rollback", id, "src/a"]);
        assert_eq!(read(&env, "src/a").as_deref(), Some("x"), "{id}");
        assert_eq!(read(&env, "src/b").as_deref(), Some("later"), "{id}");
    }
    fs::remove_dir_all(env.project().join("src")).unwrap();
    env.json(&["rollback", &whole, "src/*"]);
    assert_eq!(read(&env, "src/sub/q").as_deref(), Some("z"));
    fs::remove_dir_all(env.project().join("src")).unwrap();
    env.json(&["rollback", &part]);
    assert_eq!(read(&env, "src/a").as_deref(), Some("x"));
    assert_eq!(read(&env, "src/b"), None, "it was not in the scope");
}

#[test]
fn st_30_what_the_checkpoint_left_out_is_never_touched() {
    let env = env();
    env.write("project/safepoint.yaml", "exclude: [data]\n");
    env.write("project/data/d", "keep");
    env.write("project/Cargo.toml", "");
    env.write("project/target/out", "keep");
    env.write("project/conf.txt", &private_key());
    env.write("project/f", "1");
    let id = checkpoint(&env, &[]);
    env.write("project/safepoint.yaml", "exclude: []\n");
    fs::remove_file(env.project().join("Cargo.toml")).unwrap();
    env.write("project/conf.txt", "clean");
    env.write("project/f", "2");
    env.run(&["rollback", &id]);
    for (path, content) in [
        ("data/d", "keep"),
        ("target/out", "keep"),
        ("conf.txt", "clean"),
        ("f", "1"),
    ] {
        assert_eq!(read(&env, path).as_deref(), Some(content), "{path}");
    }
}

#[test]
fn st_30_what_has_become_a_secret_is_kept_and_named_and_the_rest_comes_back() {
    let env = env();
    env.write("project/conf.txt", "good");
    env.write("project/f", "1");
    let id = checkpoint(&env, &[]);
    let key = private_key();
    env.write("project/conf.txt", &key);
    env.write("project/f", "2");
    let run = env.run(&["rollback", &id, "--json"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (run.code, &reply["verification"]["match"]),
        (1, &false.into())
    );
    assert!(
        reply["warnings"].to_string().contains("conf.txt"),
        "{reply}"
    );
    assert_eq!(read(&env, "f").as_deref(), Some("1"));
    assert_eq!(
        read(&env, "conf.txt"),
        Some(key),
        "it is in no checkpoint, so it stays"
    );
}

#[test]
fn st_08_a_secret_behind_a_known_name_is_still_a_secret() {
    let env = env();
    env.write("project/x", "");
    symlink("x", env.project().join(".env")).unwrap();
    checkpoint(&env, &[]);
    fs::remove_file(env.project().join(".env")).unwrap();
    env.write("project/.env", "PASSWORD=hunter2hunter2\n");
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["sensitive"][0]["path"], ".env", "{reply}");
}

#[test]
fn st_13_a_directory_that_becomes_a_repository_is_one() {
    let env = env();
    env.write("project/.git/placeholder", "");
    checkpoint(&env, &[]);
    testkit::tree::git(&env.project(), &["init", "-q"]);
    let reply = env.json(&["checkpoint"]);
    let files = reply["checkpoint"]["scope"]["files"].to_string();
    assert!(!files.contains(".git/"), "{files}");
}

#[test]
fn st_01_each_thing_a_scope_names_must_be_found() {
    let env = env();
    env.write("project/a.txt", "");
    env.write("project/.env", "K=1\n");
    env.write("project/node_modules/x", "");
    symlink("/", env.project().join("link")).unwrap();
    for scope in [
        &["a.txt", "link/etc"][..],
        &["a.txt", "docs/*.md"],
        &["no*"],
    ] {
        assert_eq!(
            env.run(&[&["checkpoint"], scope].concat()).code,
            7,
            "{scope:?}"
        );
    }
    let run = env.run(&["checkpoint", ".env"]);
    assert!(
        run.code == 7 && run.stderr.contains("--seal-sensitive"),
        "{run:?}"
    );
    let run = env.run(&["checkpoint", "node_modules"]);
    assert!(run.code == 7 && run.stderr.contains("include"), "{run:?}");
    assert!(
        env.json(&["list"])["checkpoints"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn st_01_brackets_in_names_are_names() {
    let env = env();
    env.write("project/p/[id].tsx", "1");
    env.write("project/p/i.tsx", "1");
    env.write("project/[x]/a.ts", "1");
    let id = checkpoint(&env, &[]);
    fs::remove_file(env.project().join("p/[id].tsx")).unwrap();
    env.write("project/p/i.tsx", "mine");
    env.json(&["rollback", &id, "p/[id].tsx"]);
    assert_eq!(read(&env, "p/[id].tsx").as_deref(), Some("1"));
    assert_eq!(read(&env, "p/i.tsx").as_deref(), Some("mine"));
    let mut inside = env.command(&["checkpoint", "*.ts", "--json"]);
    inside.current_dir(env.project().join("[x]"));
    let reply: serde_json::Value =
        serde_json::from_slice(&inside.output().unwrap().stdout).unwrap();
    assert_eq!(reply["checkpoint"]["scope"]["files"][0], "[x]/a.ts");
}

#[test]
fn st_30_the_mode_of_the_workspace_itself_comes_back() {
    let env = env();
    env.write("project/f", "");
    fs::set_permissions(env.project(), fs::Permissions::from_mode(0o751)).unwrap();
    let id = checkpoint(&env, &[]);
    fs::remove_dir_all(env.project()).unwrap();
    let mut roll_back = env.command(&["rollback", &id]);
    assert!(
        roll_back
            .current_dir(env.root())
            .status()
            .unwrap()
            .success()
    );
    let mode = fs::metadata(env.project()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o751);
}

#[test]
fn st_35_undo_after_redo_takes_back_the_same_action() {
    let env = env();
    env.write("project/a", "1");
    checkpoint(&env, &[]);
    env.write("project/a", "2");
    checkpoint(&env, &[]);
    env.write("project/b", "new");
    env.undo_seen();
    assert_eq!(read(&env, "b"), None);
    env.json(&["redo"]);
    assert_eq!(read(&env, "b").as_deref(), Some("new"));
    env.undo_seen();
    assert_eq!(read(&env, "b"), None);
    assert_eq!(read(&env, "a").as_deref(), Some("2"));
}

#[test]
fn st_12_somebody_elses_files_in_our_directory_are_named() {
    let env = env();
    env.write("project/.checkpoints/model.bin", "weights");
    let reply = env.json(&["checkpoint"]);
    assert!(
        reply["left_out"].to_string().contains("model.bin"),
        "{reply}"
    );
}

#[test]
fn st_17_a_watcher_is_not_confused_by_the_workspace_itself_or_by_names_like_ours() {
    let env = env();
    env.write("project/n/f", "");
    testkit::tree::git(&env.project().join("n"), &["init", "-q"]);
    env.write("project/.auditrc", "1");
    let mut watching = env
        .command(&["watch", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(watching.stdout.as_mut().unwrap(), &mut first).unwrap();
    checkpoint(&env, &[]);
    fs::set_permissions(env.project(), fs::Permissions::from_mode(0o711)).unwrap();
    env.write("project/.auditrc", "2");
    let second = checkpoint(&env, &[]);
    watching.kill().unwrap();
    watching.wait().unwrap();
    env.write("project/.auditrc", "3");
    fs::remove_dir_all(env.project().join("n")).unwrap();
    env.json(&["rollback", &second]);
    assert_eq!(read(&env, ".auditrc").as_deref(), Some("2"));
    assert!(env.project().join("n/.git/HEAD").exists());
}

#[test]
fn st_06_damage_is_healed_from_the_files_that_are_still_there() {
    let env = env();
    env.write("project/a", "the only content\n");
    let old = checkpoint(&env, &[]);
    for pack in fs::read_dir(env.objects().join("packs")).unwrap() {
        let pack = pack.unwrap().path();
        let mut bytes = fs::read(&pack).unwrap();
        bytes[40] ^= 1;
        fs::write(&pack, bytes).unwrap();
    }
    assert_eq!(env.run(&["verify", &old]).code, 5);
    let new = checkpoint(&env, &[]);
    env.json(&["verify", &new]);
    env.json(&["verify", &old]);
}

#[test]
fn st_30_a_name_that_sorts_between_a_directory_and_its_files_is_no_obstacle() {
    let env = env();
    env.write("project/a/b/c", "1");
    env.write("project/a.txt", "2");
    env.write("project/a/b.x", "3");
    let id = checkpoint(&env, &[]);
    for path in ["a/b/c", "a.txt", "a/b.x"] {
        fs::remove_file(env.project().join(path)).unwrap();
    }
    fs::remove_dir_all(env.project().join("a")).unwrap();
    env.json(&["rollback", &id]);
    assert_eq!(read(&env, "a/b/c").as_deref(), Some("1"));
    assert_eq!(read(&env, "a.txt").as_deref(), Some("2"));
    assert_eq!(read(&env, "a/b.x").as_deref(), Some("3"));
}

#[test]
fn st_12_a_store_inside_the_workspace_is_no_part_of_it() {
    let mut env = env();
    let home = env.project().join("own[1]").display().to_string();
    env.set("SAFEPOINT_HOME", &home);
    env.write("project/a.txt", "one\n");
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["checkpoint"]["scope"]["files"][0], "a.txt");
    assert_eq!(reply["checkpoint"]["scope"]["total_files"], 1);
    let again = env.json(&["checkpoint"]);
    let left_out = again["left_out"].to_string();
    assert!(left_out.contains("own[1]/data"), "{left_out}");
    let id = again["checkpoint_id"].as_str().unwrap();
    env.write("project/a.txt", "two\n");
    env.json(&["rollback", id]);
    assert_eq!(env.json(&["trail", "verify"])["valid"], true);
}

#[test]
fn fe_05_links_in_the_place_of_our_own_files_lead_nothing_out() {
    let outside = tempfile::tempdir().unwrap();
    let out = |name: &str| outside.path().join(name);
    let listed = || {
        let mut names: Vec<_> = fs::read_dir(outside.path()).unwrap().collect();
        names.sort_by_key(|it| it.as_ref().unwrap().file_name());
        let names = names.into_iter().map(|it| it.unwrap().path());
        let with_content = names.map(|it| (it.clone(), fs::read_to_string(it).unwrap_or_default()));
        with_content.collect::<Vec<_>>()
    };
    fs::write(out("rc"), "# mine\n").unwrap();
    fs::write(out("manifest.json"), "{}\n").unwrap();
    let before = listed();
    let log = ".audit/checkpoint-operations.log";
    for (place, target) in [
        (log, "rc"),
        (".audit", ""),
        (".checkpoints", ""),
        (".checkpoints/.staging", ""),
    ] {
        let env = env();
        let id = checkpoint(&env, &[]);
        // A control: what is ours is written.
        assert!(read(&env, log).unwrap().contains(&id));
        env.write("project/a", "changed\n");
        let place = env.project().join(place);
        let _ = fs::remove_file(&place);
        let _ = fs::remove_dir_all(&place);
        symlink(out(target), &place).unwrap();
        env.run(&["checkpoint", "--reason", "$(touch /somewhere)"]);
        env.run(&["rollback", &id]);
        env.run(&["undo"]);
        env.run(&["gc"]);
        assert_eq!(listed(), before, "{}", place.display());
    }
    // A file with another name outside is not ours either.
    let env = env();
    checkpoint(&env, &[]);
    let log = env.project().join(log);
    fs::remove_file(&log).unwrap();
    fs::hard_link(out("rc"), &log).unwrap();
    env.run(&["checkpoint"]);
    assert_eq!(listed(), before);
}

#[test]
fn st_35_a_new_mode_of_the_workspace_itself_is_a_change_and_is_taken_back() {
    let env = env();
    env.write("project/f", "1");
    let root = env.project();
    let mode = || fs::metadata(&root).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    let exec = |words: &[&str]| -> serde_json::Value {
        let run = env.run(&[&["--json", "exec", "--no-tui", "--"] as &[&str], words].concat());
        assert_eq!(run.code, 0, "{run:?}");
        serde_json::from_str(&run.stdout).unwrap()
    };
    exec(&["sed", "-i", "s/1/2/", "f"]);
    let closed = exec(&["chmod", "700", "."]);
    let told = serde_json::json!([{"path": ".", "change": "metadata"}]);
    assert_eq!(closed["changes"], told, "{closed:#}");
    assert_eq!(env.json(&["log"])["actions"][0]["changes"], told);
    let id = closed["action_id"].as_str().unwrap();
    assert_eq!(env.run(&["verify", id]).code, 0);

    let planned = env.json(&["undo", "--dry-run"]);
    assert_eq!(planned["changes"], told, "{planned:#}");
    assert_eq!(mode(), 0o700);
    let undone = env.json(&["undo"]);
    assert_eq!(undone["taken_back"]["action_id"], closed["action_id"]);
    assert_eq!(undone["changes_reverted"], told, "{undone:#}");
    assert_eq!(mode(), 0o755);
    assert_eq!(read(&env, "f").as_deref(), Some("2"));
    env.json(&["redo"]);
    assert_eq!(mode(), 0o700);

    // What somebody has made of it since stays, and is told.
    fs::set_permissions(&root, fs::Permissions::from_mode(0o711)).unwrap();
    assert_eq!(env.run(&["verify", id]).code, 1);
    let undone = env.json_with_code(1, &["undo", id]);
    assert_eq!(undone["rolled_back"], false, "{undone:#}");
    assert_eq!(undone["not_restored"][0]["path"], ".");
    assert_eq!(mode(), 0o711);
}

#[test]
fn st_26_a_change_under_a_checkpoint_tells_of_a_new_mode_of_the_workspace_itself() {
    let env = env();
    env.write("project/f", "1");
    let root = env.project();
    let mode = || fs::metadata(&root).unwrap().permissions().mode() & 0o7777;
    fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
    let operation = r#"{"type":"command","argv":["chmod","700","."]}"#;
    let line = ["mutate", ".", "--auto-checkpoint", "--operation", operation];
    let changed = env.json(&line);
    assert_eq!(changed["changes"][0]["path"], ".", "{changed:#}");
    assert_eq!(mode(), 0o700);
    env.json(&["undo"]);
    assert_eq!(mode(), 0o755);
    let failed = env.run(&[&line as &[&str], &["--verify", "false"]].concat());
    assert_ne!(failed.code, 0, "{failed:?}");
    assert_eq!(mode(), 0o755);
}

#[test]
fn st_35_a_line_cannot_leave_out_what_it_destroys() {
    let env = env();
    env.write("project/work/f", "precious");
    let id = checkpoint(&env, &[]);
    let tag = "Signature: 8a477f597d28d172789f06886806bc55";
    let script = format!("echo '{tag}' >work/CACHEDIR.TAG; rm work/f; echo bad >work/g\n");
    env.write("project/act.sh", &script);
    let acted = env.run(&["exec", "--no-tui", "--", "sh", "act.sh"]);
    assert_eq!(acted.code, 0, "{acted:?}");
    let log = env.json(&["log"])["actions"][0].clone();
    assert_eq!(
        log["changes"],
        serde_json::json!([
            { "path": "work/CACHEDIR.TAG", "change": "created" },
            { "path": "work/f", "change": "deleted" },
            { "path": "work/g", "change": "created" },
        ])
    );
    env.json(&["undo"]);
    assert_eq!(read(&env, "work/f").as_deref(), Some("precious"));
    assert_eq!(read(&env, "work/g"), None);
    // Nor where nothing is remembered of what was captured.
    env.json(&["redo"]);
    fs::remove_dir_all(env.home().join("data/cache")).unwrap();
    env.json(&["gc"]);
    let reply = env.json(&["rollback", &id]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    assert_eq!(read(&env, "work/f").as_deref(), Some("precious"));
    assert_eq!(read(&env, "work/g"), None);
}

#[test]
fn st_35_what_an_action_made_a_secret_is_not_called_new() {
    let env = env();
    env.write("project/README.md", "hello\n");
    checkpoint(&env, &[]);
    env.write("project/key", &private_key());
    checkpoint(&env, &[]);
    env.write("project/act.sh", "cat key >>README.md\n");
    let act = ["exec", "--no-tui", "--json", "--", "sh", "act.sh"];
    let log = env.run(&act).stdout + &env.json(&["log"])["actions"][0].to_string();
    let run = env.run(&["undo", "--json"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let told = log + &reply["not_restored"].to_string();
    assert!(told.contains("README.md"), "{told}");
    assert!(told.contains("it was captured before"), "{told}");
    assert!(!told.contains("it is new"), "{told}");
    assert_eq!(
        (run.code, &reply["verification"]["match"]),
        (1, &false.into()),
        "{reply}"
    );
    // Where it is gone since, nothing is lost by bringing it back.
    fs::remove_file(env.project().join("README.md")).unwrap();
    let log = env.json(&["log"]);
    let actions = log["actions"].as_array().unwrap();
    let exec = actions.iter().find(|one| one["action"] == "process.exec");
    let exec = exec.map_or(&actions[0], |one| one);
    env.json(&["undo", exec["action_id"].as_str().unwrap()]);
    assert_eq!(read(&env, "README.md").as_deref(), Some("hello\n"));
}

#[test]
fn st_35_a_line_cannot_exclude_what_it_destroys() {
    for exclude in ["'**'", "README.md, src"] {
        let env = env();
        env.write("project/README.md", "demo\n");
        env.write("project/src/a.txt", "a\n");
        let damage = "echo damage >README.md; rm src/a.txt; echo made >src/b.txt";
        let settings = format!("echo \"exclude: [{exclude}]\" >safepoint.yaml");
        env.write("project/act.sh", &format!("{damage}; {settings}\n"));
        let id = checkpoint(&env, &[]);
        let acted = env.run(&["exec", "--no-tui", "--", "sh", "act.sh"]);
        assert_eq!(acted.code, 0, "{acted:?}");
        for back in [&["undo"][..], &["rollback", &id]] {
            let reply = env.json(back);
            assert_eq!(reply["verification"]["match"], true, "{reply}");
            assert_eq!(read(&env, "README.md").as_deref(), Some("demo\n"));
            assert_eq!(read(&env, "src/a.txt").as_deref(), Some("a\n"));
            if back.len() == 1 {
                assert_eq!(read(&env, "src/b.txt"), None, "{exclude}");
            }
            env.json(&["redo"]);
            assert_eq!(read(&env, "README.md").as_deref(), Some("damage\n"));
        }
    }
}

#[test]
fn st_35_plain_undo_goes_past_a_roll_back_that_changed_nothing() {
    let env = env();
    env.write("project/f", "1");
    let acted = env.run(&["exec", "--no-tui", "--", "touch", "made"]);
    assert_eq!(acted.code, 0, "{acted:?}");
    let id = checkpoint(&env, &[]);
    env.json(&["rollback", &id]);
    env.json(&["undo"]);
    assert_eq!(read(&env, "made"), None);
}

#[test]
fn st_35_undo_names_a_directory_that_is_left_out_and_was_changed() {
    let env = env();
    env.write("project/node_modules/one/file.js", "1");
    env.write("project/act.sh", "rm -rf node_modules/one\n");
    let run = env.run(&["exec", "--no-tui", "--json", "--", "sh", "act.sh"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let action = reply["action_id"].as_str().unwrap();
    let run = env.run(&["undo", action, "--json"]);
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["not_restored"][0]["path"], "node_modules", "{reply}");
}

#[test]
fn st_35_what_stands_in_the_place_of_our_directory_does_not_stop_the_way_back() {
    for damage in [
        "ln -s /nonexist .checkpoints",
        "ln -s .. .checkpoints",
        "echo mine >.checkpoints",
        "mkdir .checkpoints; chmod 000 .checkpoints",
    ] {
        let env = env();
        env.write("project/a", "a");
        let id = checkpoint(&env, &[]);
        let script = format!("echo damage >a; rm -rf .checkpoints; {damage}\n");
        env.write("project/act.sh", &script);
        let acted = env.run(&["exec", "--no-tui", "--", "sh", "act.sh"]);
        assert_eq!(acted.code, 0, "{acted:?}");
        let undone = env.json(&["undo"]);
        assert_eq!(undone["verification"]["match"], true, "{damage}: {undone}");
        assert_eq!(read(&env, "a").as_deref(), Some("a"), "{damage}");
        env.json(&["rollback", &id]);
        checkpoint(&env, &[]);
    }
}
