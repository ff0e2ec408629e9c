//! A git repository in the middle of work, and what must be the same after a roll back.

use std::fs;
use std::path::Path;

use serde_json::Value;
use testkit::TestEnv;
use testkit::tree::{Tree, assert_same, git, look};

/// A repository with two commits, two branches, and something staged, changed,
/// removed and untracked.
pub(crate) fn repository() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    let root = env.project();
    git(&root, &["init", "-q", "-b", "main"]);
    for name in ["kept", "changed", "staged", "removed"] {
        env.write(&format!("project/{name}.txt"), &format!("{name}\n"));
    }
    commit(&root, "first");
    git(&root, &["branch", "other"]);
    env.write("project/second.txt", "second\n");
    commit(&root, "second");
    env.write("project/changed.txt", "changed, not staged\n");
    env.write("project/staged.txt", "staged\nmore\n");
    git(&root, &["add", "staged.txt"]);
    fs::remove_file(root.join("removed.txt")).unwrap();
    env.write("project/untracked/new.txt", "new\n");
    env
}

pub(crate) fn commit(root: &Path, message: &str) {
    git(root, &["add", "-A", ":!untracked"]);
    git(root, &["commit", "-qm", message]);
}

/// Everything that git says of a repository, and its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) status: String,
    pub(crate) references: String,
    pub(crate) head: String,
    pub(crate) stashes: String,
    pub(crate) index: Vec<u8>,
    pub(crate) tree: Tree,
}

impl Facts {
    pub(crate) fn of(root: &Path) -> Self {
        let references = git(root, &["for-each-ref"]);
        let own = |line: &&str| !line.ends_with("refs/stash") && !line.contains("refs/safepoint/");
        Self {
            status: git(root, &["status", "--porcelain=v2", "--branch"]),
            references: references.lines().filter(own).collect(),
            head: fs::read_to_string(root.join(".git/HEAD")).unwrap(),
            stashes: git(root, &["stash", "list", "--format=%H %gs"]),
            index: fs::read(root.join(".git/index")).unwrap_or_default(),
            tree: look(root),
        }
    }

    #[track_caller]
    pub(crate) fn assert_same(&self, other: &Self) {
        assert_same(&self.tree, &other.tree);
        assert_eq!(self.status, other.status);
        assert_eq!(self.references, other.references);
        assert_eq!(self.head, other.head);
        assert_eq!(self.stashes, other.stashes);
        assert_eq!(self.index, other.index);
    }
}

pub(crate) fn checkpoint(env: &TestEnv) -> String {
    let reply = env.json(&["checkpoint", "--reason", "why"]);
    assert_eq!(reply["checkpoint"]["type"], "git_stash", "{reply}");
    reply["checkpoint_id"].as_str().unwrap().to_owned()
}

pub(crate) fn roll_back(env: &TestEnv, id: &str) -> Value {
    let reply = env.json(&["rollback", id]);
    assert_eq!(reply["verification"]["match"], true, "{reply}");
    assert_eq!(reply["warnings"].to_string(), "[]", "{reply}");
    reply
}

/// Checkpoints, lets `change` happen, rolls back, and expects everything as it
/// was; then takes the roll back back.
#[track_caller]
pub(crate) fn survives(env: &TestEnv, change: impl FnOnce(&Path)) {
    let id = checkpoint(env);
    let before = Facts::of(&env.project());
    change(&env.project());
    let changed = Facts::of(&env.project());
    assert_ne!(before, changed);
    roll_back(env, &id);
    before.assert_same(&Facts::of(&env.project()));
    git(&env.project(), &["fsck", "--strict"]);
    let redone = env.json(&["redo"]);
    assert_eq!(redone["verification"]["match"], true, "{redone}");
    changed.assert_same(&Facts::of(&env.project()));
    assert!(!env.project().join(".git/index.lock").exists());
}
