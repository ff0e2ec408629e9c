//! Safepoint's own files in a workspace: `.checkpoints/` with a manifest for
//! each checkpoint, and `.audit/` with a line for each operation.
//!
//! Both are for people to read. Nothing is restored from them.

use std::io::Write;
use std::path::{Path, PathBuf};

use safepoint_model::{ActionId, Expiry, Timestamp};
use safepoint_store::durable::{self, Access};
use safepoint_store::regular;
use serde_json::{Value, json};

use crate::StateError;
use crate::listing::ListedFile;
use crate::own_directory::{OwnDirectory, unwritable};
use crate::snapshot::{Snapshot, SnapshotId};

/// A manifest lists 5,000 files at most.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// The directory of manifests.
pub(crate) const CHECKPOINTS: &str = ".checkpoints";
/// The directory of the log of operations.
const AUDIT: &str = ".audit";
const MANIFEST: &str = "manifest.json";

/// Makes a directory in a workspace, or the workspace itself.
pub(crate) fn create(directory: &Path) -> Result<(), StateError> {
    durable::create_directory(directory).map_err(|error| unwritable(directory, error))
}

/// The directories on the way to this one that are not there, the innermost first.
pub(crate) fn missing(directory: &Path) -> Vec<PathBuf> {
    let is_missing = |path: &&Path| path.symlink_metadata().is_err();
    let missing = directory.ancestors().take_while(is_missing);
    missing.map(Path::to_owned).collect()
}

/// Removes those of these directories that nobody has put anything into.
pub(crate) fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        if std::fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

/// Where the manifest of a snapshot stands.
pub fn manifest_path(workspace: &Path, id: &SnapshotId) -> PathBuf {
    workspace.join(CHECKPOINTS).join(id.as_str()).join(MANIFEST)
}

/// Writes the manifest, with the files where they are listed.
pub(crate) fn write_manifest(
    snapshot: &Snapshot,
    files: Option<&[ListedFile]>,
) -> Result<(), StateError> {
    let checkpoints = OwnDirectory::make(&snapshot.workspace, CHECKPOINTS)?;
    let directory = checkpoints.inside(snapshot.id.as_str())?;
    let manifest = json!({
        "checkpoint_id": snapshot.id,
        "created_at": snapshot.created,
        "expiry": snapshot.expiry,
        "used_up_by": snapshot.spent,
        "workspace": crate::checkpoint::shown(&snapshot.workspace),
        "hash": format!("sha256:{}", snapshot.hash()),
        "restore": restore_instructions(snapshot),
        "files": file_list(snapshot, files),
        "snapshot": snapshot.record,
    });
    let mut text = serde_json::to_vec_pretty(&manifest)
        .map_err(|error| StateError::Unsupported(error.to_string()))?;
    text.push(b'\n');
    durable::write(&directory.at(MANIFEST), &text, Access::Shared)
        .map_err(|error| unwritable(directory.path(), error))
}

/// The directory of a snapshot's manifest, if it is there and ours.
fn manifest_directory(workspace: &Path, id: &SnapshotId) -> Option<OwnDirectory> {
    let checkpoints = OwnDirectory::find(workspace, CHECKPOINTS).ok()??;
    checkpoints.find_inside(id.as_str()).ok()?
}

/// How the checkpoint is restored, for somebody who has only the manifest.
fn restore_instructions(snapshot: &Snapshot) -> Value {
    let (id, record) = (&snapshot.id, &snapshot.record);
    let mut prerequisites = vec![
        "`safepoint` is installed and uses the store in which the checkpoint was made: nothing is restored from this file".to_owned(),
        match quoted(&snapshot.workspace) {
            Some(workspace) => format!(
                "run it in the workspace, or as `safepoint -C {workspace} rollback {id}`"
            ),
            None => "run it in the workspace".to_owned(),
        },
    ];
    if let Expiry::At(end) = snapshot.expiry {
        prerequisites.push(format!("after {end}, add `--expired`"));
    }
    let mut order =
        vec!["what is there is captured first, so that `safepoint redo` brings it back".to_owned()];
    if !record.parts.is_empty() {
        let names: Vec<String> = record.parts.iter().map(|it| it.subject.name()).collect();
        prerequisites.push(format!("these can be reached: {}", names.join(", ")));
        order.push("databases and states, each as a whole or not at all".to_owned());
    }
    if !record.sealed.is_empty() {
        prerequisites.push("sealed files need the key of the operator".to_owned());
    }
    order.push("files: what was made since is removed, the rest is put back".to_owned());
    if record.git.is_some_and(|git| git.files > 0) {
        order.push("the git directory with `HEAD`, index and branches".to_owned());
    }
    if record.linked.is_some() {
        order.push("`HEAD` with its branch, and the index of the linked work tree".to_owned());
    }
    order.push("everything that was touched is read back and compared".to_owned());
    json!({
        "command": format!("safepoint rollback {id}"),
        "dry_run": format!("safepoint rollback {id} --dry-run"),
        "verify": format!("safepoint verify {id}"),
        "prerequisites": prerequisites,
        "order": order,
    })
}

/// A path as one word for a shell; `None` where it has no text.
fn quoted(path: &Path) -> Option<String> {
    let text = path.to_str()?;
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%:,=".contains(c);
    Some(match text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    })
}

/// The files with their hashes, or how to list them.
fn file_list(snapshot: &Snapshot, files: Option<&[ListedFile]>) -> Value {
    json!({
        "total": snapshot.record.files.files,
        "hash": "blake3",
        "listed": files.map(|files| files.iter().map(ListedFile::to_json).collect::<Vec<_>>()),
        "list_command": format!("safepoint show {} --files --json", snapshot.id),
    })
}

/// Says in the manifest that a change has used the checkpoint up. The row is what counts: a
/// manifest that is not there, or not ours to read, stays as it is.
pub(crate) fn mark_used(snapshot: &Snapshot, action: &ActionId) {
    let Some(directory) = manifest_directory(&snapshot.workspace, &snapshot.id) else {
        return;
    };
    let path = directory.at(MANIFEST);
    if path.symlink_metadata().is_ok_and(|it| it.is_symlink()) {
        return;
    }
    let Ok(text) = regular::read(&path, MAX_MANIFEST_BYTES) else {
        return;
    };
    let Ok(Value::Object(mut manifest)) = serde_json::from_slice(&text) else {
        return;
    };
    manifest.insert("used_up_by".to_owned(), json!(action));
    if let Ok(mut text) = serde_json::to_vec_pretty(&manifest) {
        text.push(b'\n');
        let _ = durable::write(&path, &text, Access::Shared);
    }
}

/// Removes what [`write_manifest`] wrote, as far as it is there.
pub(crate) fn remove_manifest(workspace: &Path, id: &SnapshotId) {
    if let Some(directory) = manifest_directory(workspace, id) {
        let _ = durable::remove(&directory.at(MANIFEST));
    }
    if let Ok(Some(checkpoints)) = OwnDirectory::find(workspace, CHECKPOINTS) {
        let _ = std::fs::remove_dir(checkpoints.at(id.as_str()));
    }
}

/// What a line in the log of operations tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Operation<'a> {
    /// What was done: `checkpoint`, `mutate`, `rollback`, `undo`, `redo` or `gc`.
    pub(crate) name: &'a str,
    /// The checkpoint that it is about, where one is known.
    pub(crate) checkpoint: Option<&'a str>,
    /// The action that it is.
    pub(crate) action: Option<&'a str>,
    /// What was changed.
    pub(crate) targets: &'a [String],
    /// Why.
    pub(crate) reason: Option<&'a str>,
    /// How it ended.
    pub(crate) outcome: &'a str,
}

/// Whether a workspace has a log of operations.
pub(crate) fn has_log(workspace: &Path) -> bool {
    workspace.join(AUDIT).is_dir()
}

/// Adds a line to the log of operations. The trail is what counts: a line that
/// cannot be written is no reason to fail.
pub(crate) fn log(workspace: &Path, time: Timestamp, operation: &Operation<'_>) {
    let line = json!({
        "time": time, "operation": operation.name, "checkpoint_id": operation.checkpoint,
        "action_id": operation.action, "targets": operation.targets,
        "reason": operation.reason, "outcome": operation.outcome,
    });
    if !workspace.is_dir() {
        return; // a directory that somebody deleted is not made anew for this
    }
    let directory = OwnDirectory::make(workspace, AUDIT);
    let file = directory.and_then(|it| it.append("checkpoint-operations.log"));
    if let Ok(mut file) = file {
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}
