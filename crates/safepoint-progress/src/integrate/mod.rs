//! Integration: a parent takes over what a child has made.
//!
//! Three steps, so that whoever guards the parent's directory can stand in between:
//! [`Progress::prepare`] looks and writes down what is meant; the directory is changed
//! under an action of its own ([`Bringing::incoming`]); [`Progress::conclude`] writes down
//! that it was. Where there is no directory to change, the first step is all.
//! One at a time for each parent. Observations are read, and change nothing.

mod begin;
mod end;
mod proof;
mod recover;
mod resolve;
mod taken_back;
mod taker;
mod tree;

use safepoint_model::{ActionId, RecordId, Timestamp, WorkspaceId};
use safepoint_state::ContentId;
use safepoint_state::path::TreePath;
use serde::Serialize;

pub use recover::Ended;
pub use resolve::{Declined, Resolve};
pub use tree::{Bringing, Ground, changed_rules};

use crate::words::words;

words! {
    /// What is taken over.
    Mode, "mode of integration":
    /// The work of a workspace whose agent is done.
    Normal = "normal",
    /// What can be used of a failed one.
    Salvage = "salvage",
}

words! {
    /// How closely is looked at what is taken over.
    Strategy, "strategy of integration":
    /// Nothing is compared but what a directory itself cannot put together.
    Direct = "direct",
    /// Changes of the same things are found.
    Layered = "layered",
    /// Everything that both sides touched is shown to somebody, with what the coordinator found.
    Evaluated = "evaluated",
}

words! {
    /// In what way two pieces of work do not go together.
    ConflictType, "type of conflict":
    /// Both change the same.
    ContentOverlap = "content_overlap",
    /// They say what cannot both be true.
    SemanticContradiction = "semantic_contradiction",
    /// One needs what the other takes away.
    DependencyViolation = "dependency_violation",
    /// A rule that was given is broken.
    ConstraintBreach = "constraint_breach",
}

words! {
    /// Who settles a conflict, and how.
    Settling, "way to resolve a conflict":
    /// The coordinator chooses.
    Coordinator = "coordinator_resolve",
    /// A person chooses.
    Human = "human_escalate",
    /// The agent has to do it again: the workspace fails.
    Rework = "agent_rework",
    /// Nobody did in time: the workspace fails.
    Timeout = "timeout",
}

words! {
    /// What becomes of a path, or of what a conflict is about.
    Choice, "choice":
    /// What the parent has.
    Ours = "ours",
    /// What the workspace made of it.
    Theirs = "theirs",
    /// Both, line by line.
    Merged = "merged",
    /// Something else that is given.
    Content = "content",
}

words! {
    /// How an integration ended.
    Outcome, "result of an integration":
    /// There was no conflict.
    Success = "success",
    /// There were conflicts, and all were resolved.
    ConflictResolved = "conflict_resolved",
    /// Nothing was taken over.
    Aborted = "aborted",
}

/// What is to be integrated, and how.
#[derive(Clone, Debug)]
pub struct Wish<'a> {
    /// The workspace whose work is taken over by its parent.
    pub source: &'a WorkspaceId,
    /// Whether it is done, or failed.
    pub mode: Mode,
    /// How closely is looked.
    pub strategy: Strategy,
    /// Which record. By default the newest final one; for a salvage otherwise the newest.
    pub record: Option<&'a RecordId>,
    /// What the coordinator found. Only with `evaluated`.
    pub findings: &'a [Finding],
}

/// Something that only a mind can find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// In what way it does not fit.
    pub kind: ConflictType,
    /// What it is about.
    pub description: String,
}

/// One integration, as far as it has come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Integration {
    /// The workspace whose work is taken over.
    pub source: WorkspaceId,
    /// The one that takes it over: its parent, or the nearest above it that has not ended.
    pub target: WorkspaceId,
    /// The how manyeth integration of the parent this is.
    pub turn: i64,
    /// Whether the source was done or failed.
    pub mode: Mode,
    /// How closely is looked.
    pub strategy: Strategy,
    /// The record that is taken over.
    pub checkpoint_ref: RecordId,
    /// When it began.
    pub started: Timestamp,
    /// The actions by which the parent's directory was changed, or was to be.
    pub actions: Vec<ActionId>,
    /// What does not fit.
    pub conflicts: Vec<Conflict>,
    /// How it ended; `None` while it has not.
    pub result: Option<Outcome>,
}

/// A place where the work does not fit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Its name in this integration: `c1`, `c2` …
    pub id: String,
    /// In what way.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// The path that it is about, as it is shown.
    pub path: Option<String>,
    /// The path itself.
    #[serde(skip)]
    pub raw: Option<TreePath>,
    /// Whether both changes fit line by line all the same.
    pub mergeable: bool,
    /// What is wrong, in a sentence.
    pub description: String,
    /// What was there when it was found, in one word. A decision to replace it holds only
    /// for that.
    #[serde(skip)]
    pub ours: Option<ContentId>,
    /// What was decided; `None` while nothing was.
    pub resolution: Option<Resolved>,
}

/// What was decided about a conflict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Resolved {
    /// By whom, and in what way.
    pub strategy: Settling,
    /// What becomes of it.
    pub choice: Option<Choice>,
    /// What was given in its place.
    #[serde(skip)]
    pub content: Option<Vec<u8>>,
}

/// Where an integration has come to.
#[derive(Debug)]
pub enum Step {
    /// To its end: there was no directory to change.
    Done(Integration),
    /// To conflicts. Each has to be resolved first.
    Conflicted(Integration),
    /// To the directory of the parent, which is to be changed now.
    Bring(Box<Bringing>),
}

impl Settling {
    /// The way that a word names. `escalate` is an older word for `human_escalate`.
    pub fn read(text: &str) -> Result<Self, crate::UnknownWord> {
        match text {
            "escalate" => Ok(Self::Human),
            other => other.parse(),
        }
    }
}

impl Conflict {
    /// Whether it is about what says what agents may do: then the parent keeps its own.
    pub fn is_rule(&self) -> bool {
        self.raw.as_deref().is_some_and(|path| {
            self.kind == ConflictType::ConstraintBreach || safepoint_state::is_rule(path)
        })
    }

    /// Whether a content can be given in its place.
    pub fn takes_content(&self) -> bool {
        self.raw.is_some() && !self.is_rule()
    }

    /// What can become of it, besides a content that is given.
    pub fn choices(&self) -> &'static [Choice] {
        match (self.is_rule(), self.mergeable) {
            (true, _) => &[Choice::Ours],
            (false, true) => &[Choice::Ours, Choice::Theirs, Choice::Merged],
            (false, false) => &[Choice::Ours, Choice::Theirs],
        }
    }
}

impl Integration {
    /// Whether nobody has to decide anything.
    pub fn is_settled(&self) -> bool {
        self.conflicts.iter().all(|one| one.resolution.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_32_both_words_for_asking_a_person_are_taken() {
        for word in ["escalate", "human_escalate"] {
            assert_eq!(Settling::read(word), Ok(Settling::Human));
        }
        assert!(Settling::read("escalated").is_err());
        assert_eq!(Settling::Human.as_str(), "human_escalate");
    }
}
