//! Checkpoints of git work trees, from the outside.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use support::{Facts, checkpoint, commit, repository, roll_back, survives};
use testkit::TestEnv;
use testkit::tree::{git, git_command};

#[test]
fn st_13_a_checkpoint_leaves_tree_index_head_branches_and_stashes_untouched() {
    let env = repository();
    let root = env.project();
    git(&root, &["stash", "push", "-q", "--", "changed.txt"]);
    env.write("project/changed.txt", "changed again\n");
    let before = Facts::of(&root);
    checkpoint(&env);
    before.assert_same(&Facts::of(&root));
    let id = stash_checkpoint(&env);
    let mut after = Facts::of(&root);
    let (newest, rest) = after.stashes.split_once('\n').unwrap();
    assert!(
        newest.ends_with(&format!(" checkpoint:{id}:why")),
        "{newest}"
    );
    after.stashes = rest.to_owned();
    before.assert_same(&after);
    git(&root, &["fsck", "--strict"]);
}

/// A checkpoint that a person wants in `git stash list` as well.
fn stash_checkpoint(env: &TestEnv) -> String {
    let reply = env.json(&["checkpoint", "--reason", "why", "--type", "git_stash"]);
    assert!(
        reply["evidence_anchors"]
            .to_string()
            .contains("git stash list"),
        "{reply}"
    );
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

/// What the shell prints when it runs the last anchor of a reply.
fn run_last_anchor(env: &TestEnv, reply: &serde_json::Value) -> String {
    let anchor = reply["evidence_anchors"]
        .as_array()
        .unwrap()
        .last()
        .unwrap();
    let line = anchor.as_str().unwrap().strip_prefix("tool:bash:").unwrap();
    let run = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(env.project())
        .output()
        .unwrap();
    assert!(run.status.success(), "{line}");
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn st_13_no_stash_pop_takes_a_checkpoint_that_nobody_wanted_as_a_stash() {
    let mut env = repository();
    let root = env.project();
    shelve(&env, "mine");
    env.write("project/changed.txt", "changed again\n");
    let reply = env.json(&["checkpoint", "--reason", "why"]);
    assert_eq!(reply["checkpoint"]["type"], "git_stash", "{reply}");
    assert_eq!(reply["stash"], serde_json::Value::Null, "{reply}");
    assert_eq!(shelved(&env).lines().count(), 1);
    let id = reply["checkpoint_id"].as_str().unwrap();
    let name = format!("refs/safepoint/checkpoints/{id}");
    assert_eq!(reply["git_reference"], name.as_str());
    assert!(run_last_anchor(&env, &reply).contains(&name));
    // Neither does an agent put anything there.
    env.set("SAFEPOINT_AGENT", "1");
    let agents = env.json(&["checkpoint", "--type", "git_stash"]);
    assert_eq!(agents["checkpoint"]["type"], "git_stash", "{agents}");
    assert_eq!(shelved(&env).lines().count(), 1);
    env.set("SAFEPOINT_AGENT", "");
    // Going back takes no reference away.
    env.write("project/changed.txt", "agent\n");
    roll_back(&env, id);
    git(&root, &["rev-parse", "-q", "--verify", &name]);
    // Plain git restores what it holds.
    git(&root, &["reset", "-q", "--hard"]);
    fs::remove_dir_all(root.join("untracked")).unwrap();
    git(&root, &["stash", "apply", "-q", "--index", &name]);
    assert_eq!(
        fs::read_to_string(root.join("changed.txt")).unwrap(),
        "changed again\n"
    );
    git(&root, &["reset", "-q", "--hard"]);
    git(&root, &["stash", "pop", "-q"]);
    assert_eq!(
        fs::read_to_string(root.join("changed.txt")).unwrap(),
        "mine\n"
    );
    git(&root, &["fsck", "--strict"]);
}

#[test]
fn st_07_a_collected_checkpoint_leaves_nothing_in_git() {
    let env = repository();
    shelve(&env, "mine");
    let first = env.json(&["checkpoint", "--expiry", "1ms"]);
    let name = first["git_reference"].as_str().unwrap().to_owned();
    env.json(&[
        "checkpoint",
        "--expiry",
        "1ms",
        "--reason",
        "a  b",
        "--type",
        "git_stash",
    ]);
    assert_eq!(shelved(&env).lines().count(), 2);
    let reply = env.json(&["gc"]);
    assert_eq!(reply["deleted"].as_array().unwrap().len(), 2, "{reply}");
    assert_eq!(reply["warnings"], serde_json::json!([]));
    assert!(shelved(&env).ends_with("mine\n"), "{}", shelved(&env));
    assert_eq!(shelved(&env).lines().count(), 1);
    assert_eq!(git(&env.project(), &["for-each-ref", &name]), "");
}

/// Puts a change on the shelf, with this name.
fn shelve(env: &TestEnv, name: &str) {
    env.write("project/changed.txt", &format!("{name}\n"));
    let push = ["stash", "push", "-q", "-m", name, "--", "changed.txt"];
    git(&env.project(), &push);
}

/// Runs a command as an action, and tells which.
fn exec(env: &TestEnv, words: &[&str]) -> String {
    let run = env.run(&[&["exec", "--no-tui", "--json", "--"], words].concat());
    let reply: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(reply["outcome"], "ok", "{reply}");
    reply["action_id"].as_str().unwrap().to_owned()
}

fn shelved(env: &TestEnv) -> String {
    git(&env.project(), &["stash", "list", "--format=%s"])
}

#[test]
fn st_35_a_dropped_stash_is_told_and_taken_back() {
    let env = repository();
    for name in ["one", "two", "three"] {
        shelve(&env, name);
    }
    let all = git(&env.project(), &["stash", "list", "--format=%H"]);
    let action = exec(&env, &["git", "stash", "drop", "-q", "stash@{1}"]);
    assert!(!shelved(&env).contains("two"));
    let log = env.json(&["log"])["actions"][0].clone();
    assert_eq!(
        log["changes"],
        serde_json::json!([{ "path": ".git/logs/refs/stash", "change": "modified" }])
    );
    env.json(&["undo", &action]);
    assert_eq!(git(&env.project(), &["stash", "list", "--format=%H"]), all);
    // Once is enough.
    let again = env.run(&["undo", &action]);
    assert_eq!(again.code, 9, "{again:?}");
    assert!(again.stderr.contains("took it back already"), "{again:?}");
    // What came onto the shelf later stays, and so does what others took from it.
    let cleared = exec(&env, &["git", "stash", "clear"]);
    assert_eq!(shelved(&env), "");
    shelve(&env, "four");
    let dry = env.json(&["undo", &cleared, "--dry-run"]);
    assert_eq!(dry["changes"][0]["path"], ".git/logs/refs/stash", "{dry}");
    env.json(&["undo"]);
    let listed = shelved(&env);
    for name in ["one", "two", "three", "four"] {
        assert!(listed.contains(name), "{listed}");
    }
    git(&env.project(), &["stash", "apply", "-q", "stash@{0}"]);
    git(&env.project(), &["fsck", "--strict"]);
}

#[test]
fn st_35_a_deleted_repository_comes_back_with_its_stashes() {
    let env = repository();
    for packed in [false, true] {
        shelve(&env, "one");
        shelve(&env, "two");
        if packed {
            git(&env.project(), &["pack-refs", "--all"]);
        }
        let all = git(&env.project(), &["stash", "list", "--format=%H %gs"]);
        env.write("project/wipe.sh", "rm -rf .git\n");
        exec(&env, &["sh", "wipe.sh"]);
        assert!(!env.project().join(".git").exists());
        env.json(&["undo"]);
        let back = git(&env.project(), &["stash", "list", "--format=%H %gs"]);
        assert_eq!(back, all, "packed: {packed}");
        git(&env.project(), &["fsck", "--strict"]);
        git(&env.project(), &["stash", "pop", "-q"]);
        git(&env.project(), &["checkout", "-q", "--", "changed.txt"]);
    }
}

#[test]
fn st_35_damage_among_the_objects_is_told_and_taken_back() {
    let env = repository();
    let damage = "cd .git/objects && for f in ??/*; do chmod u+w $f; echo x > $f; break; done; \
                  for f in ??/*; do last=$f; done; rm -f $last\n";
    env.write("project/damage.sh", damage);
    let action = exec(&env, &["sh", "damage.sh"]);
    assert!(
        !git_command(&env.project(), &["fsck", "--strict"])
            .status()
            .unwrap()
            .success()
    );
    let log = env.json(&["log"])["actions"][0].clone();
    assert_eq!(log["action_id"], action.as_str());
    let changes = log["changes"].as_array().unwrap();
    assert!(!changes.is_empty() && changes.len() <= 2, "{log}");
    assert!(
        changes[0]["path"]
            .as_str()
            .unwrap()
            .starts_with(".git/objects/")
    );
    env.json(&["undo"]);
    git(&env.project(), &["fsck", "--strict"]);
    // What git packs is not lost.
    exec(&env, &["git", "gc", "-q"]);
    let log = env.json(&["log"])["actions"][0].clone();
    assert!(
        !log["changes"].to_string().contains(".git/objects/"),
        "{log}"
    );
}

#[test]
fn st_35_only_the_stash_that_an_action_took_comes_back() {
    let env = repository();
    shelve(&env, "one");
    shelve(&env, "two");
    let first = exec(&env, &["git", "stash", "drop", "-q", "stash@{1}"]);
    exec(&env, &["git", "stash", "drop", "-q"]);
    stash_checkpoint(&env); // which puts an entry there as well
    env.json(&["undo", &first]);
    let listed = shelved(&env);
    assert!(
        listed.contains("one") && !listed.contains("two") && listed.contains("checkpoint:"),
        "{listed}"
    );
    // That checkpoints are put onto the shelf is nothing that happened.
    let log = env.json(&["log"]);
    for action in log["actions"].as_array().unwrap() {
        assert_ne!(action["action"], "workspace.change", "{log:#}");
    }
}

#[test]
fn st_13_plain_git_can_restore_the_stash_entry() {
    let env = repository();
    let root = env.project();
    let id = stash_checkpoint(&env);
    let before = Facts::of(&root);
    let listed = git(&root, &["stash", "list"]);
    assert!(listed.contains(&format!("checkpoint:{id}:why")), "{listed}");
    git(&root, &["reset", "-q", "--hard"]);
    fs::remove_dir_all(root.join("untracked")).unwrap();
    git(&root, &["stash", "apply", "-q", "--index"]);
    let after = Facts::of(&root);
    assert_eq!(before.status, after.status);
    let contents = |facts: &Facts| -> Vec<_> {
        let tree = &facts.tree;
        tree.iter()
            .map(|(path, seen)| (path.clone(), seen.content.clone()))
            .collect()
    };
    assert_eq!(contents(&before), contents(&after));
}

#[test]
fn st_13_a_clean_tree_and_no_identity_are_no_obstacle() {
    let env = repository();
    let root = env.project();
    git(&root, &["reset", "-q", "--hard"]);
    fs::remove_dir_all(root.join("untracked")).unwrap();
    let before = Facts::of(&root);
    let id = stash_checkpoint(&env); // the environment of the tests names nobody
    let listed = git(&root, &["stash", "list"]);
    assert!(listed.contains(&id), "{listed}");
    assert_eq!(before.status, Facts::of(&root).status);
    assert_eq!(before.index, Facts::of(&root).index);
}

#[test]
fn st_13_nothing_that_the_repository_configures_is_ever_run() {
    let env = repository();
    let root = env.project();
    let ran = env.root().join("ran");
    let trap = env.write(
        "trap",
        &format!("#!/bin/sh\necho \"$0 $*\" >> {}\n", ran.display()),
    );
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    fs::create_dir_all(root.join(".git/hooks")).unwrap();
    for hook in [
        "pre-commit",
        "post-commit",
        "commit-msg",
        "prepare-commit-msg",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
        "pre-auto-gc",
        "post-rewrite",
        "post-merge",
    ] {
        std::os::unix::fs::symlink(trap, root.join(".git/hooks").join(hook)).unwrap();
    }
    for (name, value) in [
        ("core.fsmonitor", trap),
        ("diff.external", trap),
        ("diff.x.textconv", trap),
        ("diff.x.command", trap),
        ("filter.x.clean", trap),
        ("filter.x.smudge", trap),
        ("filter.x.process", trap),
        ("gpg.program", trap),
        ("commit.gpgSign", "true"),
        ("tag.gpgSign", "true"),
        ("core.pager", trap),
        ("core.editor", trap),
        ("core.sshCommand", trap),
        ("core.askPass", trap),
        ("credential.helper", trap),
    ] {
        // Written as they are: git itself would run some of them to set the next.
        let mut config = fs::read_to_string(root.join(".git/config")).unwrap();
        let (section, key) = name.split_once('.').unwrap();
        let header = match key.split_once('.') {
            Some((sub, _)) => format!("[{section} \"{sub}\"]"),
            None => format!("[{section}]"),
        };
        let key = key.rsplit('.').next().unwrap();
        config.push_str(&format!("{header}\n\t{key} = {value}\n"));
        fs::write(root.join(".git/config"), config).unwrap();
    }
    env.write("project/.gitattributes", "*.txt diff=x filter=x\n");
    let id = stash_checkpoint(&env);
    assert!(
        git(
            &root,
            &[
                "-c",
                "core.fsmonitor=false",
                "-c",
                "core.hooksPath=/dev/null",
                "rev-parse",
                "refs/stash"
            ]
        )
        .len()
            > 30
    );
    let _ = fs::remove_file(&ran); // what the line above ran is no business of ours
    env.write("project/changed.txt", "changed once more\n");
    env.json(&["diff", &id]);
    env.json(&["checkpoint"]);
    env.json(&["rollback", &id]);
    env.json(&["undo"]);
    let told = fs::read_to_string(&ran).unwrap_or_default();
    assert_eq!(told, "");
}

#[test]
fn st_13_roll_back_after_a_commit() {
    survives(&repository(), |root| {
        fs::write(root.join("kept.txt"), "agent\n").unwrap();
        git(root, &["add", "-A"]);
        git(root, &["commit", "-qm", "agent"]);
    });
}

#[test]
fn st_13_roll_back_after_an_amended_commit() {
    survives(&repository(), |root| {
        git(root, &["commit", "-q", "--amend", "-am", "amended"]);
    });
}

#[test]
fn st_13_roll_back_after_switching_the_branch() {
    survives(&repository(), |root| {
        git(root, &["switch", "-q", "--discard-changes", "other"]);
        git(root, &["branch", "-qD", "main"]);
        git(root, &["switch", "-q", "-c", "third"]);
    });
}

#[test]
fn st_13_roll_back_after_a_hard_reset() {
    survives(&repository(), |root| {
        git(root, &["reset", "-q", "--hard", "HEAD~1"]);
        git(
            root,
            &["clean", "-qfdx", "-e", ".checkpoints", "-e", ".audit"],
        );
    });
}

#[test]
fn st_13_roll_back_after_references_were_packed_and_objects_collected() {
    let env = repository();
    survives(&env, |root| {
        git(root, &["commit", "-qam", "agent"]);
        git(root, &["reset", "-q", "--hard", "HEAD~2"]);
        git(root, &["pack-refs", "--all"]);
        let mut expire = vec![
            "reflog",
            "expire",
            "--expire=now",
            "--expire-unreachable=now",
        ];
        expire.extend(["HEAD", "refs/heads/main", "refs/heads/other"]);
        git(root, &expire);
        git(root, &["gc", "-q", "--prune=now"]);
    });
}

/// Two branches that change the same line.
fn diverged() -> TestEnv {
    let env = repository();
    let root = env.project();
    git(&root, &["reset", "-q", "--hard"]);
    env.write("project/kept.txt", "ours\n");
    commit(&root, "ours");
    git(&root, &["switch", "-q", "other"]);
    env.write("project/kept.txt", "theirs\n");
    commit(&root, "theirs");
    git(&root, &["switch", "-q", "main"]);
    env
}

#[test]
fn st_13_a_merge_in_progress_comes_back() {
    let env = diverged();
    let merge = git_command(&env.project(), &["merge", "other"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    survives(&env, |root| {
        git(root, &["merge", "--abort"]);
        fs::write(root.join("kept.txt"), "something else\n").unwrap();
    });
    env.undo_seen(); // of what the redo brought back
    survives(&env, |root| {
        fs::write(root.join("kept.txt"), "resolved\n").unwrap();
        git(root, &["add", "kept.txt"]);
        git(root, &["commit", "-qm", "merged"]);
    });
}

#[test]
fn st_13_a_rebase_in_progress_comes_back() {
    let env = diverged();
    let rebase = git_command(&env.project(), &["rebase", "other"])
        .output()
        .unwrap();
    assert!(!rebase.status.success());
    assert!(env.project().join(".git/rebase-merge").exists());
    survives(&env, |root| {
        git(root, &["rebase", "--abort"]);
    });
}

#[test]
fn st_13_a_merge_that_began_since_is_gone_after_a_roll_back() {
    let env = diverged();
    survives(&env, |root| {
        let merge = git_command(root, &["merge", "other"]).output().unwrap();
        assert!(!merge.status.success());
    });
}

#[test]
fn st_13_an_unborn_branch_works() {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.project();
    git(&root, &["init", "-q", "-b", "main"]);
    env.write("project/a.txt", "a\n");
    git(&root, &["add", "a.txt"]);
    let reply = env.json(&["checkpoint"]);
    let id = reply["checkpoint_id"].as_str().unwrap();
    assert!(
        reply["warnings"]
            .to_string()
            .contains("no reference for plain git"),
        "{reply}"
    );
    let before = Facts::of(&root);
    git(&root, &["commit", "-qm", "first"]);
    roll_back(&env, id);
    before.assert_same(&Facts::of(&root));
}

#[test]
fn st_13_a_detached_head_works() {
    let env = repository();
    git(&env.project(), &["checkout", "-q", "--detach"]);
    survives(&env, |root| {
        git(root, &["commit", "-qam", "on no branch"]);
        git(root, &["switch", "-q", "main"]);
    });
}

#[test]
fn st_13_without_git_it_is_a_file_backup_with_a_warning() {
    let mut env = repository();
    let empty = env.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let path = empty.to_str().unwrap().to_owned();
    env.set("PATH", &path);
    let before = Facts::of(&env.project());
    let reply = env.json(&["checkpoint"]);
    assert_eq!(reply["checkpoint"]["type"], "file_backup");
    assert!(reply["warnings"].to_string().contains("git"), "{reply}");
    let id = reply["checkpoint_id"].as_str().unwrap();
    git(&env.project(), &["commit", "-qam", "agent"]);
    env.json(&["rollback", id]);
    before.assert_same(&Facts::of(&env.project()));
}
