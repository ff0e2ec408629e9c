//! What somebody wants to do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use safepoint_authority::{Envelope, SideEffect, Understanding};
use safepoint_model::{PermitId, SessionId};
use safepoint_state::mutate::Covering;
use serde::{Deserialize, Serialize};

use crate::WorkflowIdentity;

/// What somebody wants to do.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// What.
    pub act: Act,
    /// Where, absolute and without links.
    pub directory: PathBuf,
    /// With which variables.
    pub variables: Vec<(OsString, OsString)>,
    /// With what on standard input.
    pub stdin: Stdin,
    /// In which session; without one, in that of the workspace.
    pub session: Option<SessionId>,
    /// Whose model or service proposes it.
    pub provider: Option<String>,
    /// What for.
    pub objective: Option<String>,
    /// The workflow it is a step of.
    pub workflow: Option<WorkflowIdentity>,
    /// When a person is asked.
    pub mode: Mode,
    /// The effects that were declared; another one is denied.
    pub declared: Option<BTreeSet<SideEffect>>,
    /// The one action it says it is, if it says so; another one is denied.
    pub said: Option<String>,
    /// What it keeps to: what goes beyond is put before a person.
    pub bounds: Option<Envelope>,
    /// The permit to be used; without one it is looked for.
    pub permit: Option<PermitId>,
    /// The client that proposes it, and carries out itself what it is given leave for.
    pub visitor: Option<Visitor>,
}

/// A client of its own, and its call.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Visitor {
    /// Which one, such as `claude-code`.
    pub client: String,
    /// Its own name for its session.
    pub session: String,
    /// Its own name for the sub-agent that calls.
    pub agent: Option<String>,
    /// Its own name for the call, or one that is made of what the call is.
    pub call: String,
    /// Its process, and when that was started.
    pub process: (u32, u64),
    /// Whether it does not wait for the end of the call.
    #[serde(default)]
    pub in_background: bool,
    /// What kind of tool it calls.
    #[serde(default, skip_serializing_if = "CallKind::is_other")]
    pub kind: CallKind,
}

/// What kind of tool a client calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// One of its own that writes the files it names, in the client's process.
    Files,
    /// One of its own that reads or searches the files it names, there too.
    Reading,
    /// Any other.
    #[default]
    Other,
}

impl CallKind {
    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands the field over so"
    )]
    fn is_other(&self) -> bool {
        *self == Self::Other
    }

    /// Whether it uses files by their paths, in the client's process.
    pub(super) fn uses_paths(self) -> bool {
        matches!(self, Self::Files | Self::Reading)
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum Act {
    /// This program, with these words.
    Command(Vec<String>),
    /// An agent with these words, which a person starts: it works in a session of its own.
    Agent(Vec<String>),
    /// A change under a checkpoint, by us.
    Change {
        /// What makes it: `mutate` or `integrate`.
        tool: &'static str,
        /// The operations, each as canonical JSON with its target.
        operations: Vec<String>,
        /// What they do.
        understood: Understanding,
        /// Whether they start programs.
        programs: StartsPrograms,
        /// What it could be taken back to, where that is known.
        covering: Option<Box<Covering>>,
    },
    /// A tool that somebody else uses.
    Tool {
        /// Its name.
        name: String,
        /// Exactly what it is given.
        words: Vec<String>,
        /// What it does.
        understood: Understanding,
        /// The line, if it is a shell: it can be run behind the fence instead.
        line: Option<String>,
    },
}

/// Whether a change starts programs, which then run here and behind the fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartsPrograms {
    /// It does.
    Yes,
    /// It does not.
    No,
}

/// What is on standard input.
#[derive(Clone, Debug)]
pub enum Stdin {
    /// Nothing.
    Empty,
    /// Whatever we were started with.
    Inherited,
    /// These bytes.
    Bytes(Vec<u8>),
}

/// When a person is asked.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Before everything.
    Always,
    /// When the rules say so.
    #[default]
    Policy,
    /// Never. It needs elevated trust, and what the rules want approved is refused.
    Never,
}

impl Act {
    /// What a change could be taken back to, where that is known already.
    pub(super) fn covering(&self) -> Option<&Covering> {
        match self {
            Self::Change { covering, .. } => covering.as_deref(),
            Self::Command(_) | Self::Agent(_) | Self::Tool { .. } => None,
        }
    }
}
