//! The note that is on disk before a tree is touched, and goes when all is done.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safepoint_model::ActionId;
use safepoint_store::durable::{self, Access};
use serde::{Deserialize, Serialize};

use crate::StateError;
use crate::around::Errand;
use crate::identity::Marks;
use crate::moved::is_bare;
use crate::part::{Part, Provider};
use crate::scan::Patterns;
use crate::scope::Scope;
use crate::snapshot::{Record, SnapshotId};
use crate::state::key;

/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Phase {
    /// Contents are put beside the tree, which has not been touched.
    Staging,
    /// The tree is being changed: only going on makes it whole.
    Applying,
}

/// Everything that is needed to go on after a crash.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Journal {
    pub(crate) format: u32,
    pub(crate) phase: Phase,
    pub(crate) workspace: PathText,
    /// Which directory that was, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) directory: Option<Marks>,
    pub(crate) patterns: Patterns,
    /// The commands that own states.
    #[serde(default)]
    pub(crate) providers: BTreeMap<String, Provider>,
    /// What the change is limited to.
    pub(crate) scope: Vec<String>,
    /// The state before.
    pub(crate) before: SnapshotId,
    /// The state that is to be.
    pub(crate) after: SnapshotId,
    pub(crate) record: Record,
    pub(crate) action: ActionId,
    pub(crate) verb: String,
    pub(crate) summary: String,
    pub(crate) restored_to: Option<SnapshotId>,
    pub(crate) undoes: Option<ActionId>,
    /// What is known of a change that is not a going back.
    #[serde(default)]
    pub(crate) mutating: Option<Mutating>,
    /// What is told of an action that somebody else asked for.
    #[serde(default)]
    pub(crate) errand: Option<Told>,
    /// What was to be made of the state before, when that is taken back again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) taking_back: Option<Box<Record>>,
}

/// How an action is told in the log.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Told {
    pub(crate) session: Option<String>,
    pub(crate) action: String,
    pub(crate) decision: String,
}

impl Told {
    pub(crate) fn of(errand: &Errand) -> Self {
        Self {
            session: errand.session.clone(),
            action: errand.action.clone(),
            decision: errand.decision.clone(),
        }
    }
}

/// A change under a checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutating {
    /// The checkpoint that allows it.
    pub(crate) checkpoint: SnapshotId,
    /// Whether all it may touch is known.
    pub(crate) extent: Extent,
    /// What it leads to, where that is known: only this is taken back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<Box<Record>>,
    /// Databases and states as its steps have left them, where that was looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) left: Vec<Part>,
}

/// How far a change reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Extent {
    /// Exactly the scope of the journal: it can be taken back.
    Known,
    /// A command, a database: nobody saw how far it came.
    Unknown,
}

pub(crate) const FORMAT: u32 = 2;

/// What stands where a going back was cut off.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ground {
    /// The same directory, as far as that is known.
    Same,
    /// None, or an empty one.
    Gone,
    /// Another one.
    Another,
}

/// A path with any bytes in it, as JSON can hold it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PathText(Vec<u8>);

impl PathText {
    pub(crate) fn of(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        Self(path.as_os_str().as_bytes().to_vec())
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        crate::path::as_path(&self.0).to_owned()
    }
}

/// Where journals are kept, below the directory of states.
pub(crate) fn directory(state: &Path) -> PathBuf {
    state.join("journals")
}

impl Journal {
    /// Where the journal of a workspace stands: there is never more than one.
    pub(crate) fn path(directory: &Path, workspace: &Path) -> PathBuf {
        directory.join(format!("{}.json", key(workspace)))
    }

    /// Whether it is of a change under a checkpoint, or of taking one back.
    pub(crate) fn is_of_change(&self) -> bool {
        self.mutating.is_some() || self.verb == super::recover::TAKE_BACK
    }

    /// The same, limited to this scope.
    pub(crate) fn within(mut self, scope: &Scope) -> Self {
        self.scope = scope.to_stored();
        self
    }

    /// Puts it on disk.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), StateError> {
        durable::create_directory(directory)?;
        let text =
            serde_json::to_vec(self).map_err(|error| StateError::Unsupported(error.to_string()))?;
        let path = Self::path(directory, &self.workspace.to_path());
        Ok(durable::write(&path, &text, Access::Private)?)
    }

    /// Says on disk that it has come so far.
    pub(crate) fn advance(mut self, phase: Phase, directory: &Path) -> Result<(), StateError> {
        self.phase = phase;
        self.write(directory)
    }

    /// What stands where it was begun.
    pub(crate) fn ground(&self) -> Ground {
        let Some(then) = &self.directory else {
            return Ground::Same;
        };
        let root = self.workspace.to_path();
        match Marks::of(&root) {
            Some(now) if then.is_same(&now) => Ground::Same,
            Some(_) if !is_bare(&root) => Ground::Another,
            Some(_) | None => Ground::Gone,
        }
    }

    /// Gives the path of its workspace to another directory, and leaves it for later.
    pub(crate) fn set_aside(&self, path: &Path, directory: &Path) -> Result<(), StateError> {
        let name = format!("{}-{}.json", key(&self.workspace.to_path()), self.action);
        let text = std::fs::read(path).map_err(|error| StateError::file("read", path, error))?;
        durable::write(&directory.join(name), &text, Access::Private)?;
        Ok(durable::remove(path)?)
    }

    /// Takes it away: all is done.
    pub(crate) fn remove(&self, directory: &Path) -> Result<(), StateError> {
        Ok(durable::remove(&Self::path(
            directory,
            &self.workspace.to_path(),
        ))?)
    }

    pub(crate) fn read(path: &Path) -> Result<Self, StateError> {
        let text = std::fs::read(path).map_err(|error| StateError::file("read", path, error))?;
        serde_json::from_slice(&text).map_err(|error| {
            StateError::damaged(
                path,
                format!("it is not a journal that this program knows: {error}"),
            )
        })
    }

    /// The journals that are there, whoever wrote them.
    pub(crate) fn all(directory: &Path) -> Result<Vec<PathBuf>, StateError> {
        let listing = match std::fs::read_dir(directory) {
            Ok(listing) => listing,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StateError::file("read", directory, error)),
        };
        let mut found = Vec::new();
        for entry in listing {
            let entry = entry.map_err(|error| StateError::file("read", directory, error))?;
            if entry.path().extension().is_some_and(|it| it == "json") {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }
}
