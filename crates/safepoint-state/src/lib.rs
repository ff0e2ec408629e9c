//! The way back: exact snapshots of files and git state, and what is done with
//! them: compare, verify, roll back, undo, collect.
//!
//! This is the only crate that writes a user's tree. It judges nothing: who may
//! do what is decided above.

mod account;
mod around;
mod aside;
mod bring;
mod capture;
mod checkpoint;
mod collect;
mod compare;
mod content;
mod contested;
pub mod edit;
mod error;
mod exclusive;
mod forget;
pub mod git;
mod git_state;
mod identity;
mod isolate;
mod known_git;
mod late;
mod left_behind;
pub mod left_out;
mod linked;
mod listing;
mod lock;
mod moved;
pub mod mutate;
pub mod objects;
mod omitted;
mod overwritten;
mod own;
mod own_changes;
mod own_directory;
mod part;
pub mod path;
mod programs;
mod record;
mod refusal;
mod restore;
mod run;
mod scan;
pub mod scope;
pub mod seal;
pub mod sensitive;
mod set_aside;
mod share;
mod snapshot;
mod state;
pub mod text;
pub mod tree;
mod undo;
mod unheld;
mod verify;
pub mod watch;
mod work_trees;
mod written;

pub use account::{OpenAction, OpenActions, OpenWrites};
pub use around::{Changed, Errand};
pub use aside::Aside;
pub use bring::{Arrival, Incoming, Resolution, Side, Sides, is_rule};
pub use checkpoint::{Made, Wanted};
pub use collect::{Choice, Collection, KeepReason, KeptForUndo, RunningStates, UNDO_GRACE_HOURS};
pub use content::ContentId;
pub use error::{Ending, StateError};
pub use identity::Standing;
pub use isolate::{Apart, Held as HeldDirectory, Isolated};
pub use known_git::{Caller, linked_places};
pub use listing::{ListedFile, all_entries, all_files};
pub use moved::{Footing, nearest_recorded};
pub use overwritten::{Foreseen, Others, Overwrites, Reach};
pub use own::manifest_path;
pub use part::{Held, Part, Provider, Subject, WantedPart};
pub use restore::{
    End, Goal, PartChange, Preview, Recovered, Remedy, Restored, Unfinished, automatic_expiry,
    is_unfinished,
};
pub use scan::{Patterns, Progress, Rules};
pub use share::{LinkedShare, Share};
pub use snapshot::{
    Action, COMPONENT, Note, Origin, Record, Sealed, Selection, Snapshot, SnapshotId, SnapshotType,
    is_listed, keep, prove, taken_back,
};
pub use state::{Access, DatabaseCheck, DatabaseReach, State, Surroundings, Workspace, stream};
pub use undo::FileConflict;
pub use verify::Verified;
