//! Snapshots as they are recorded, and how they are found again.

mod id;
mod table;
mod told;

use std::path::PathBuf;

use safepoint_model::{ActionId, Digest, Expiry, Timestamp};
use serde::{Deserialize, Serialize};

pub use id::SnapshotId;
pub use table::{Action, COMPONENT, Selection, is_listed, keep, taken_back};
pub(crate) use table::{
    Source, actions_after, actions_placed, actions_since, delete, insert, insert_action,
    list_placed, recent_actions, set_pinned, spend, workspaces,
};
pub use told::prove;
pub(crate) use told::{
    Said, find_action_said, find_expired, find_said, is_recorded, of_action, of_snapshot, text_of,
};

use crate::linked::LinkedGit;
use crate::omitted::OmittedMark;
use crate::part::Part;
use crate::path::TreePath;
use crate::tree::{Change, Entry, Moment, Node, Subtree};
use crate::{ContentId, StateError};

/// How a snapshot is kept, in the words of its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SnapshotType {
    /// Files and git state of a work tree.
    GitStash,
    /// Files.
    FileBackup,
    /// Named states.
    StateSnapshot,
    /// A database.
    DatabaseSavepoint,
}

impl SnapshotType {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GitStash => "git_stash",
            Self::FileBackup => "file_backup",
            Self::StateSnapshot => "state_snapshot",
            Self::DatabaseSavepoint => "database_savepoint",
        }
    }
}

/// Who wanted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Somebody asked for it.
    Asked,
    /// It was made before or after an action.
    Automatic,
}

/// A restorable state.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its name.
    pub id: SnapshotId,
    /// The directory it is of.
    pub workspace: PathBuf,
    /// When it was made.
    pub created: Timestamp,
    /// Until when it authorises anything.
    pub expiry: Expiry,
    /// Whether it is kept even after that.
    pub pinned: bool,
    /// The change that it authorised: it authorises no other.
    pub spent: Option<ActionId>,
    /// Everything else.
    pub record: Record,
}

/// What is recorded of a snapshot. Its form is versioned: it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The version of this form.
    pub format: u32,
    /// How it is kept.
    #[serde(rename = "type")]
    pub kind: SnapshotType,
    /// Who wanted it.
    pub origin: Origin,
    /// Why it was made.
    pub reason: Option<String>,
    /// What it covers; empty for the whole workspace.
    pub scope: Vec<String>,
    /// The files.
    pub files: Subtree,
    /// The mode of the workspace itself.
    pub root_mode: Option<u32>,
    /// The git directories, as a tree of their own; `None` when they were not captured.
    pub git: Option<Subtree>,
    /// The git state of a linked work tree, which lies elsewhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<LinkedGit>,
    /// What git says of the work tree.
    pub git_head: Option<String>,
    /// The directory of the repository that keeps a reference or a stash entry of it, where that
    /// is outside the workspace; what is not UTF-8 is escaped. Earlier records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_common: Option<String>,
    /// What was left out, and why.
    pub left_out: Vec<Note>,
    /// Which secrets were not captured.
    pub sensitive: Vec<Note>,
    /// How what was left out looked, secrets too. Earlier records have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<OmittedMark>,
    /// Secrets that were captured, encrypted.
    pub sealed: Vec<Sealed>,
    /// Pipes, sockets and devices.
    pub special: Vec<Note>,
    /// Databases and states. Version 1 had none.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What else is to be known.
    pub warnings: Vec<String>,
    /// Whether the next look is compared with an earlier state: there may be something in this
    /// one that nobody has told yet, or it is none that was there as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub untold: bool,
    /// How many bytes the store grew by.
    pub size: u64,
}

/// The version of [`Record`].
pub(crate) const FORMAT: u32 = 2;

/// A path and what is to be said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Where; what is not UTF-8 is escaped.
    pub path: String,
    /// What.
    pub why: String,
}

/// A secret, encrypted to the operator's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sealed {
    /// Where.
    pub path: String,
    /// The object that holds it.
    pub content: ContentId,
    /// Its permission bits.
    pub mode: u32,
    /// When it was last changed.
    pub modified: Moment,
}

impl Sealed {
    /// It as a tree would have it, with a content that tells nothing of its own.
    pub(crate) fn entry(&self, path: &[u8], content: ContentId) -> Entry {
        Entry {
            name: crate::path::split(path).1.to_vec(),
            mode: self.mode,
            owner: 0,
            group: 0,
            modified: self.modified,
            attributes: Vec::new(),
            node: Node::File {
                size: 0,
                content,
                sparse: false,
                link: None,
            },
        }
    }
}

impl Snapshot {
    /// Whether it authorises nothing any more.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.expiry.is_past(now)
    }

    /// The hash of everything in it, as a stranger computes it.
    pub fn hash(&self) -> Digest {
        self.record.hash()
    }
}

impl Record {
    pub(crate) fn read(id: &str, text: &str) -> Result<Self, StateError> {
        serde_json::from_str(text).map_err(|error| {
            StateError::Unsupported(format!(
                "the record of checkpoint `{id}` cannot be read: {error}"
            ))
        })
    }

    /// How the mode of the workspace itself differs in another state, if that is known of both.
    pub(crate) fn root_change(&self, after: &Self) -> Option<Change> {
        let entry = |record: &Self| {
            Some(Entry {
                name: Vec::new(),
                mode: record.root_mode?,
                owner: 0,
                group: 0,
                modified: Moment::default(),
                attributes: Vec::new(),
                node: Node::Directory(record.files),
            })
        };
        let (from, to) = (entry(self)?, entry(after)?);
        (from.mode != to.mode).then(|| Change {
            path: TreePath::new(),
            from: Some(from),
            to: Some(to),
            relinked: false,
        })
    }

    /// Whether nothing was in the directory, neither captured nor left out.
    pub(crate) fn is_empty(&self) -> bool {
        let notes = [&self.left_out, &self.sensitive, &self.special];
        self.files.files == 0
            && self.git.is_none_or(|git| git.files == 0)
            && notes.iter().all(|notes| notes.is_empty())
    }

    /// The hash of the files, and of databases and states where there are any.
    pub fn hash(&self) -> Digest {
        crate::part::hash(self.files.hash, &self.parts)
    }
}
