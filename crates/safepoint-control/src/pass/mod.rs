//! The passage: the one way an action goes, whoever proposes it and through whatever surface.
//!
//! Read `Passage::ask_once` from top to bottom. What it answers is leave to act, or
//! a denial; there is no third. Whatever goes wrong on the way is an error, and
//! then nothing runs.

mod attend;
mod change;
mod cover;
mod desk;
mod documents;
mod execute;
mod guarded;
mod integrate;
mod join;
mod needs;
mod overridden;
mod permitted;
mod proposal;
mod recover;
mod rehearse;
mod scratch;
mod script;
mod see;
mod settle;
mod signed;
mod silence;
mod standing;
mod tool;
mod trust;
mod visit;
mod word;

use std::path::PathBuf;

use safepoint_authority::{Canonical, Coverage, Denial, Permit};
use safepoint_fence::Fence;
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, SessionId, Span, WorkspaceId};
use safepoint_state::{Errand, Progress, Snapshot, State, Workspace};
use safepoint_store::fault;

pub(crate) use desk::active as active_operator;
pub use desk::{Desk, Signing, Verdict};
pub(crate) use documents::Standing;
pub use execute::{Capture, Ended, Ran};
pub use integrate::{INTEGRATE, Takeover};
pub use join::JOINED;
pub use proposal::{Act, Mode, Proposal, Stdin, Visitor};
pub use recover::this_process;
pub use signed::Elsewhere;
pub use visit::{Finished, client_process};
pub use word::{Word, signed_word};

use crate::session::ByPolicy;
use crate::world::Opened;
use crate::{AtlasFile, Control, ControlError};
use see::Seen;
use settle::Settled;

/// The fault points of the passage, in the order in which a command passes them.
pub const FAULT_POINTS: [&str; 8] = [
    "pass.begun",
    "pass.secured",
    "pass.settled",
    "pass.intended",
    "pass.started",
    "pass.ran",
    "pass.concluded",
    "pass.recorded",
];

/// How often something is asked for anew before giving up.
const MOST_ATTEMPTS: usize = 5;

/// Those of a decision.
pub const DECISION_POINTS: [&str; 2] = ["desk.signed", "desk.decided"];

/// Everything the passage needs.
pub struct Passage<'a> {
    /// The sessions and what is decided.
    pub control: &'a Control,
    /// The way back.
    pub state: &'a State,
    /// Where it happens.
    pub workspace: &'a Workspace,
    /// What it is judged under, where no session is named.
    pub atlases: Vec<AtlasFile>,
    /// Where Safepoint keeps its own things.
    pub own: Vec<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// How long a hold waits.
    pub hold_timeout: Span,
    /// Where what is started may write; anywhere without one.
    pub fence: Option<Fence>,
    /// Whether whoever asks is behind such a fence, with all that it starts.
    pub is_within: bool,
    /// The workspace of an agent that this directory belongs to.
    pub place: Option<WorkspaceId>,
    /// Shows how far a look at the workspace has come.
    pub progress: &'a Progress,
}

/// What comes of a proposal.
#[derive(Debug)]
pub enum Answer {
    /// It may be done, now and once.
    Leave(Box<Leave>),
    /// It may not.
    Denied(Box<Denied>),
}

/// A denial, with what the agent is told besides.
#[derive(Debug)]
pub struct Denied {
    /// Why, and how to go on.
    pub denial: Denial,
    /// The session it is about.
    pub session_id: SessionId,
    /// What the gates said, if they were asked.
    pub resolution: Option<Resolution>,
}

/// Leave to do one exact thing, once. Whoever has it says how it ended.
#[derive(Debug)]
pub struct Leave {
    /// The action.
    pub action_id: ActionId,
    /// Its session.
    pub session_id: SessionId,
    /// Exactly what may be done.
    pub canonical: Canonical,
    /// What could be taken back.
    pub coverage: Coverage,
    /// What the gates said.
    pub resolution: Resolution,
    /// The state before it, unless it changes nothing.
    pub before: Option<Snapshot>,
    pub(crate) permit: Option<Permit>,
    pub(crate) errand: Errand,
    pub(crate) program: Option<Opened>,
    /// The words themselves; in the form there are no tokens.
    pub(crate) argv: Vec<String>,
    pub(crate) variables: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    pub(crate) trust_after: Option<u32>,
    /// Whether a steward has allowed all of it by policies.
    pub(crate) by_policy: bool,
    /// The line to be run behind the fence in the place of the one that was asked for: only
    /// there it changes nothing that a checkpoint does not cover.
    pub line: Option<String>,
}

impl Leave {
    /// `allow`, or `approved` when a person said yes.
    pub fn decision(&self) -> &str {
        &self.errand.decision
    }
}

/// What would come of a proposal.
#[derive(Debug)]
pub struct Rehearsed {
    /// Why it would be denied, if it would.
    pub denial: Option<Denial>,
    /// Exactly what would be done.
    pub canonical: Canonical,
    /// What could be taken back.
    pub coverage: Coverage,
    /// What the gates say.
    pub resolution: Option<Resolution>,
}

impl Passage<'_> {
    /// Asks for leave. Where somebody else was faster with the same, it is asked anew.
    pub fn ask(&self, proposal: &Proposal) -> Result<Answer, ControlError> {
        for _ in 1..MOST_ATTEMPTS {
            match self.ask_once(proposal) {
                Err(ControlError::Meanwhile(_)) => {}
                answered => return answered,
            }
        }
        self.ask_once(proposal)
    }

    fn ask_once(&self, proposal: &Proposal) -> Result<Answer, ControlError> {
        // What was cut off is told before anything new begins.
        self.recover()?;
        fault::point("pass.begun");
        let session = self.session_of(proposal)?;

        // 1. Canonicalize: what exactly is this, and what would it touch?
        let seen = self.see(proposal)?;
        let action = self.action_of(&seen, &session)?;

        // 2. Secure: what could be taken back is part of the judgement.
        let before = self.secure(&seen, &action)?;
        fault::point("pass.secured");
        let form = self.form(&seen, before.as_ref(), &session)?;

        // 3. Judge, and settle what follows in the same transaction: a hold, or leave. The
        //    intent is on disk before anything is done.
        let (judgement, (settled, by_policy)) = self.control.propose(
            &session,
            &action,
            &form.requests,
            |writing, judgement, by_policy, now| {
                let settled =
                    self.settle(writing, proposal, &form, &action, judgement, by_policy, now)?;
                Ok((settled, by_policy == ByPolicy::Allowed))
            },
        )?;
        fault::point("pass.settled");
        let resolution = judgement.resolution;
        let leave = match settled {
            Settled::Denied(denial) => {
                return Ok(Answer::Denied(Box::new(Denied {
                    denial: *denial,
                    session_id: session,
                    resolution: Some(resolution),
                })));
            }
            Settled::Leave {
                permit,
                trust_after,
                decision,
                line,
            } => Leave {
                errand: self.errand(&form, &action, &session, decision),
                action_id: action,
                session_id: session,
                canonical: form.canonical,
                coverage: form.coverage,
                resolution,
                before,
                permit: permit.map(|permit| *permit),
                program: seen.program,
                argv: seen.argv,
                variables: seen.variables,
                trust_after,
                by_policy,
                // What a steward has allowed runs as it was asked for.
                line: line.filter(|_| !by_policy),
            },
        };

        // 4. Look again: what was approved is what is there, at the last moment.
        match self.changed_since(proposal, &leave)? {
            None => Ok(Answer::Leave(Box::new(leave))),
            Some(code) => self.withdraw(leave, code),
        }
    }

    /// The first three stages only: nothing is written, and no checkpoint is made.
    pub fn rehearse(&self, proposal: &Proposal) -> Result<Rehearsed, ControlError> {
        let seen = self.see(proposal)?;
        self.rehearse_seen(proposal, &seen)
    }

    /// Takes the checkpoint before an action that changes something.
    fn secure(&self, seen: &Seen, action: &ActionId) -> Result<Option<Snapshot>, ControlError> {
        if !seen.changes_something || seen.has_checkpoint {
            return Ok(None);
        }
        let company = self.company()?;
        let snapshot = self
            .state
            .before(self.workspace, action, company, self.progress)?;
        Ok(Some(snapshot))
    }
}
