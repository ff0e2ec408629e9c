//! Whether a checkpoint allows a change: there, whole, not expired, not used up,
//! of this workspace, and covering the target.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::Found;
use super::operation::Operation;
use super::place::{Place, Target};
use crate::capture::Capture;
use crate::objects::Reader;
use crate::omitted::mark_of;
use crate::part::Subject;
use crate::path;
use crate::scan::OWN;
use crate::scope::{Cover, Scope};
use crate::snapshot::Snapshot;
use crate::state::{State, Workspace};
use crate::tree::{self, Node, Trees};
use crate::{ContentId, StateError};

impl State {
    /// The checkpoint, if it may authorise a change in this workspace.
    pub(super) fn authority(
        &self,
        workspace: &Workspace,
        name: &str,
    ) -> Result<Snapshot, StateError> {
        let refuse = |why: String| StateError::CheckpointRequired {
            checkpoint: name.to_owned(),
            why,
        };
        let snapshot = match self.find(name) {
            Err(StateError::NotFound { .. }) => {
                return Err(refuse("there is no such checkpoint".to_owned()));
            }
            Err(StateError::Tampered { .. }) => {
                return Err(refuse("it was changed behind our back".to_owned()));
            }
            other => other?,
        };
        if snapshot.workspace != workspace.root {
            return Err(refuse(format!(
                "it is of `{}`",
                snapshot.workspace.display()
            )));
        }
        if let Some(action) = &snapshot.spent {
            return Err(refuse(format!("it is used up by {action}")));
        }
        if snapshot.is_expired(self.now()) {
            return Err(refuse(format!("it expired at {}", snapshot.expiry)));
        }
        // What cannot be restored makes nothing undoable.
        self.verify_with(&self.objects()?, &snapshot)
            .map_err(|error| refuse(format!("it is damaged: {error}")))?;
        Ok(snapshot)
    }
}

/// Refuses what could not be brought back: of a large checkpoint not everything was read,
/// so the content of the targets is.
pub(super) fn refuse_unrestorable(
    reader: &Reader<'_>,
    snapshot: &Snapshot,
    capture: &Capture,
    steps: &[Found],
) -> Result<(), StateError> {
    contents_of(reader, capture, steps)
        .and_then(|contents| reader.check(contents))
        .map_err(|error| StateError::CheckpointRequired {
            checkpoint: snapshot.id.to_string(),
            why: format!("it is damaged: {error}"),
        })
}

/// The contents that operations will replace or take away, as they are now.
fn contents_of(
    reader: &Reader<'_>,
    capture: &Capture,
    steps: &[Found],
) -> Result<Vec<ContentId>, StateError> {
    let mut contents = Vec::new();
    for found in steps {
        let reach = Reach::of(&found.step.operation);
        let target = match &found.target {
            Target::Place(place) => Some(place),
            Target::Part(_) => None,
        };
        let mut waiting = Vec::new();
        for place in target.into_iter().chain(&found.other) {
            waiting.extend(tree::find(reader, Some(&capture.files), &place.path)?);
        }
        while let Some(entry) = waiting.pop() {
            match entry.node {
                Node::File { content, .. } => contents.push(content),
                Node::Directory(below) if reach == Reach::Below => {
                    waiting.extend(reader.tree(below.tree)?);
                }
                _ => {}
            }
        }
    }
    Ok(contents)
}

/// How much of a target an operation is done to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The file or directory itself. What is in a directory is judged when it is named.
    Itself,
    /// A directory with everything in it.
    Below,
}

impl Reach {
    /// How far an operation reaches.
    pub(super) fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Delete { .. } | Operation::Move { .. } => Self::Below,
            _ => Self::Itself,
        }
    }
}

/// Refuses a command that is known to change something in the workspace which the checkpoint
/// does not cover. What is outside the workspace, git's, or Safepoint's own, is judged by
/// whoever gives leave.
pub(super) fn covers_paths(
    workspace: &Workspace,
    snapshot: &Snapshot,
    capture: &Capture,
    changed: &[PathBuf],
) -> Result<(), StateError> {
    for changed in changed {
        let Ok(inside) = changed.strip_prefix(&workspace.root) else {
            continue;
        };
        let path = inside.as_os_str().as_bytes().to_vec();
        let own = path::names(&path)
            .next()
            .is_some_and(|it| OWN.contains(&it));
        if own || path::names(&path).any(|name| name == b".git") {
            continue;
        }
        // The state before a program holds it encrypted, and brings it back.
        if !is_sealed_as_it_is(workspace, snapshot, &path) {
            refuse_unheld(capture, &path, Reach::Below)?;
        }
        refuse_outside_scope(snapshot, &path)?;
    }
    Ok(())
}

/// Refuses a target that the checkpoint does not cover.
pub(super) fn covers(
    snapshot: &Snapshot,
    capture: &Capture,
    target: &Target,
    reach: Reach,
) -> Result<(), StateError> {
    let uncovered = |what: String, why: &str| StateError::CheckpointRequired {
        checkpoint: snapshot.id.to_string(),
        why: format!("`{what}` {why}"),
    };
    let place = match target {
        Target::Part(subject) => {
            let covered = snapshot
                .record
                .parts
                .iter()
                .any(|part| match (&part.subject, subject) {
                    (
                        Subject::Database { address: known, .. },
                        Subject::Database { address, .. },
                    ) => known.covers(address),
                    (known, wanted) => known == wanted,
                });
            return match covered {
                true => Ok(()),
                false => Err(uncovered(subject.name(), "is not in it")),
            };
        }
        Target::Place(place) => place,
    };
    let Place { path, .. } = place;
    let shown = path::display(path);
    let names: Vec<&[u8]> = path::names(path).collect();
    if names.first().is_some_and(|name| OWN.contains(name)) {
        return Err(StateError::Protected {
            path: shown,
            why: "it is Safepoint's own".to_owned(),
        });
    }
    if names.contains(&b".git".as_slice()) {
        return Err(StateError::Protected {
            path: shown,
            why: "it belongs to git: change it with a `command` that runs git".to_owned(),
        });
    }
    let below = |known: &[u8]| reach == Reach::Below && path::is_within(known, path);
    if let Some((known, _)) = capture.scan.git.iter().find(|(known, _)| below(known)) {
        return Err(StateError::Protected {
            path: shown,
            why: format!(
                "it holds the repository `{}`: delete or move it with a `command`",
                path::display(known)
            ),
        });
    }
    if snapshot.record.holds_sealed(&shown) {
        return Err(StateError::Protected {
            path: shown,
            why: "the checkpoint holds it only encrypted: change it with a `command`".to_owned(),
        });
    }
    refuse_unheld(capture, path, reach)?;
    refuse_outside_scope(snapshot, path)
}

/// Whether the checkpoint holds a sensitive file, encrypted, as it is now.
fn is_sealed_as_it_is(workspace: &Workspace, snapshot: &Snapshot, path: &[u8]) -> bool {
    let name = path::display(path);
    let now = mark_of(&workspace.root.join(path::as_path(path)));
    snapshot.record.holds_sealed(&name) && now.as_deref() == snapshot.record.mark(&name)
}

/// Refuses what no checkpoint holds: what is sensitive, and what is left out.
fn refuse_unheld(capture: &Capture, path: &[u8], reach: Reach) -> Result<(), StateError> {
    let shown = path::display(path);
    let below = |known: &[u8]| reach == Reach::Below && path::is_within(known, path);
    let within = |known: &[u8]| path::is_within(path, known) || below(known);
    let secret = capture
        .scan
        .sensitive
        .iter()
        .find(|(known, _)| within(known));
    if let Some((known, reason)) = secret {
        return Err(StateError::Protected {
            path: path::display(known),
            why: format!(
                "it is sensitive ({}), so no checkpoint holds it",
                reason.as_str()
            ),
        });
    }
    if let Some(reason) = crate::sensitive::by_name(path) {
        return Err(StateError::Protected {
            path: shown,
            why: format!(
                "it is sensitive ({}), so no checkpoint holds it",
                reason.as_str()
            ),
        });
    }
    let left_out = capture
        .scan
        .left_out
        .iter()
        .find(|one| path::is_within(path, &one.path) || below(&one.path));
    if let Some(one) = left_out {
        return Err(StateError::Protected {
            path: path::display(&one.path),
            why: format!("no checkpoint holds it: {}", one.why),
        });
    }
    Ok(())
}

fn refuse_outside_scope(snapshot: &Snapshot, path: &[u8]) -> Result<(), StateError> {
    let scope = Scope::stored(&snapshot.record.scope)?;
    match scope.cover(path) {
        Cover::Everything => Ok(()),
        Cover::Nothing | Cover::Part => Err(StateError::CheckpointRequired {
            checkpoint: snapshot.id.to_string(),
            why: match path.is_empty() {
                true => "the workspace as a whole is not in its scope".to_owned(),
                false => format!("`{}` is not in its scope", path::display(path)),
            },
        }),
    }
}
