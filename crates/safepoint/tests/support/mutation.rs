//! A workspace in which something is changed under a checkpoint, and what must
//! be so whenever that fails.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use testkit::tree::{Tree, assert_same, look};
use testkit::{Run, TestEnv};

/// What `mutate` answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) reply: Value,
    pub(crate) stderr: String,
}

/// Agents may do anything here: what is tested is what becomes of a change, not who allows it.
pub(crate) fn env() -> TestEnv {
    let env = TestEnv::new(env!("CARGO_BIN_EXE_safepoint"));
    allow_everything(&env);
    env
}

/// An atlas of the user's own that allows everything.
pub(crate) fn allow_everything(env: &TestEnv) {
    let config = env.home().join("config");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.yaml"), "atlases: [anything.yaml]\n").unwrap();
    let atlas = r#"{"atlas_version": "1.0", "atlas_id": "test.anything", "version": "1.0.0",
        "name": "Anything", "description": "Everything is allowed",
        "policies": [{"policy_id": "all", "type": "allow", "actions": ["*"]}]}"#;
    fs::write(config.join("anything.yaml"), atlas).unwrap();
    // Some tests work as another user.
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    fs::set_permissions(env.home(), everybody).unwrap();
}

/// A checkpoint of everything, or of these.
#[track_caller]
pub(crate) fn checkpoint(env: &TestEnv, scope: &[&str]) -> String {
    let reply = env.json(&[&["checkpoint"], scope].concat());
    text(&reply["checkpoint_id"])
}

#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => panic!("no text: {value}"),
    }
}

/// Runs `mutate` with these arguments.
pub(crate) fn run(env: &TestEnv, arguments: &[&str]) -> Answer {
    let run = env.run(&[&["mutate", "--json"], arguments].concat());
    let reply = serde_json::from_str(&run.stdout);
    Answer {
        code: run.code,
        reply: reply.unwrap_or_else(|error| panic!("{error}: {run:?}")),
        stderr: run.stderr,
    }
}

/// Changes `target` under the checkpoint `id`.
pub(crate) fn mutate(
    env: &TestEnv,
    id: &str,
    target: &str,
    operation: &Value,
    more: &[&str],
) -> Answer {
    let operation = operation.to_string();
    let arguments = [
        "--checkpoint",
        id,
        target,
        "--operation",
        operation.as_str(),
    ];
    run(env, &[&arguments, more].concat())
}

/// Several operations, each with a target of its own.
pub(crate) fn batch(env: &TestEnv, id: &str, operations: &Value, more: &[&str]) -> Answer {
    let operations = operations.to_string();
    let arguments = ["--checkpoint", id, "--operation", operations.as_str()];
    run(env, &[&arguments, more].concat())
}

impl Answer {
    /// It was done and kept.
    #[track_caller]
    pub(crate) fn done(self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        assert_eq!(self.reply["success"], true, "{self:?}");
        assert!(self.reply.get("error").is_none(), "{self:?}");
        assert_eq!(self.reply["verification"]["verdict"], "PASS", "{self:?}");
        self.reply
    }

    /// It was not, and both the error and the contract say so.
    #[track_caller]
    pub(crate) fn failed(self, exit: i32, code: &str) -> Value {
        assert_eq!(self.code, exit, "{self:?}");
        let reply = &self.reply;
        assert_eq!(reply["error"]["code"], code, "{self:?}");
        for field in ["name", "message", "suggestion"] {
            assert!(reply["error"][field].is_string(), "{field}: {self:?}");
        }
        assert!(reply["error"]["recoverable"].is_boolean(), "{self:?}");
        assert_eq!(reply["success"], false, "{self:?}");
        assert_eq!(reply["diff"]["type"], "none", "{self:?}");
        let message = format!("Mutation failed: {}", text(&reply["error"]["message"]));
        let content = text(&reply["diff"]["content"]);
        // The error has its causes behind it.
        assert!(message.starts_with(&content), "{self:?}");
        assert_eq!(
            reply["new_state"],
            json!({ "snapshot": null, "verified_at": null }),
            "{self:?}"
        );
        let none = "N/A - mutation did not complete";
        assert_eq!(reply["rollback_command"], none, "{self:?}");
        assert!(text(&reply["operation"]).ends_with("(FAILED)"), "{self:?}");
        assert!(reply["target"].is_string() && reply["checkpoint_id"].is_string());
        assert!(reply["previous_state"].get("captured_at").is_some());
        assert!(reply["evidence_anchors"].is_array(), "{self:?}");
        assert_eq!(reply["changes"], json!([]), "{self:?}");
        assert_eq!(reply["confidence"], 0.0, "{self:?}");
        self.reply
    }
}

/// Everything in a directory, down to which file is which.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Still {
    top: PathBuf,
    tree: Tree,
    inodes: BTreeMap<PathBuf, (u64, u32, u32)>,
}

impl Still {
    pub(crate) fn of(top: &Path) -> Self {
        let tree = look(top);
        let inodes = tree
            .keys()
            .map(|path| {
                let found = top.join(path).symlink_metadata().unwrap();
                (path.clone(), (found.ino(), found.uid(), found.gid()))
            })
            .collect();
        Self {
            top: top.to_owned(),
            tree,
            inodes,
        }
    }

    /// The same files with the same bytes, modes and times: nothing was touched.
    #[track_caller]
    pub(crate) fn assert_untouched(&self) {
        let now = Self::of(&self.top);
        assert_same(&self.tree, &now.tree);
        assert_eq!(self.inodes, now.inodes);
    }

    /// Whether bytes, modes and times are the same, in files that may be others.
    pub(crate) fn is_back(&self) -> bool {
        self.tree == look(&self.top)
    }

    /// The same bytes, modes and times, in files that may be others.
    #[track_caller]
    pub(crate) fn assert_back(&self) {
        assert_same(&self.tree, &look(&self.top));
    }
}

/// What `list` tells of a checkpoint.
#[track_caller]
pub(crate) fn listed(env: &TestEnv, id: &str) -> Value {
    let list = env.json(&["list", "--automatic"]);
    let all = list["checkpoints"].as_array().unwrap().iter();
    let found = all.clone().find(|one| one["id"] == id).cloned();
    found.unwrap_or_else(|| panic!("{id} is not in {list}"))
}

/// The action that used a checkpoint up.
#[track_caller]
pub(crate) fn spent_by(env: &TestEnv, id: &str) -> Option<String> {
    listed(env, id)["spent_by"].as_str().map(str::to_owned)
}

/// The actions in the log, the newest first.
pub(crate) fn actions(env: &TestEnv) -> Vec<Value> {
    let log = env.json(&["log"]);
    log["actions"].as_array().unwrap().clone()
}

/// The kinds of entries of an action in the trail.
pub(crate) fn kinds(env: &TestEnv, action: &str) -> Vec<String> {
    let list = env.json(&["trail", "list", "--action", action]);
    let entries = list["entries"].as_array().unwrap().iter();
    let kinds = entries.map(|entry| text(&entry["kind"]));
    // How it was judged is tested elsewhere.
    kinds.filter(|kind| kind.starts_with("mutation_")).collect()
}

/// Nothing lies about, nothing is half-way, and the trail is whole.
#[track_caller]
pub(crate) fn assert_sound(env: &TestEnv) {
    let staging = env.project().join(".checkpoints/.staging");
    assert!(!staging.exists(), "staging is left");
    let odd = |path: &&PathBuf| path.to_string_lossy().contains(".safepoint-");
    let tree = look(&env.project());
    let left: Vec<_> = tree.keys().filter(odd).collect();
    assert!(left.is_empty(), "{left:?}");
    let journals = fs::read_dir(env.home().join("state/journals"));
    let is_journal = |entry: &fs::DirEntry| entry.path().extension() == Some("json".as_ref());
    let left = journals.into_iter().flatten().flatten().filter(is_journal);
    assert_eq!(left.count(), 0, "a journal is left");
    let run = env.run(&["trail", "verify"]);
    assert_eq!(run.code, 0, "{run:?}");
}

/// Runs the binary as somebody whom permissions bind; `None` where that cannot be done.
pub(crate) fn bound(env: &TestEnv, arguments: &[&str]) -> Option<Run> {
    const NOBODY: &str = "65534";
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    // Where the binary lies others may not be allowed to go.
    let binary = env.root().join("safepoint");
    let command = env.command(arguments);
    if !binary.exists() {
        fs::copy(command.get_program(), &binary).unwrap();
    }
    let given = command.get_envs();
    let output = Command::new("setpriv")
        .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"])
        .arg(binary)
        .args(arguments)
        .current_dir(env.project())
        .env_clear()
        .envs(given.filter_map(|(name, value)| Some((name, value?))))
        .output()
        .unwrap();
    Some(Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    })
}

/// Runs a line in a shell, with the environment of the tests and from somewhere else.
#[track_caller]
pub(crate) fn paste(env: &TestEnv, line: &str) {
    let given = env.command(&[]);
    let given = given.get_envs();
    let output = Command::new("sh")
        .args(["-c", line])
        .env_clear()
        .envs(given.filter_map(|(name, value)| Some((name, value?))))
        .current_dir("/")
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

/// Flips a byte of every pack in the object store.
pub(crate) fn damage(env: &TestEnv) {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(env.objects().join("packs")).unwrap() {
        let pack = entry.unwrap().path();
        let mut bytes = fs::read(&pack).unwrap();
        // Behind the header, in the first object.
        bytes[60] ^= 1;
        fs::set_permissions(&pack, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&pack, bytes).unwrap();
    }
}
