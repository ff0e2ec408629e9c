//! The passage: the one way an action goes, whoever proposes it and through whatever surface.
//!
//! Read `Passage::ask_once` from top to bottom. What it answers is leave to act, or
//! a denial; there is no third. Whatever goes wrong on the way is an error, and
//! then nothing runs.

mod agent;
mod approved_line;
mod asked;
mod attend;
mod bench;
mod change;
mod confine;
mod cover;
mod desk;
mod disagreement;
mod documents;
mod effect;
mod execute;
mod far;
mod fetching;
mod file_tool;
mod guarded;
mod integrate;
mod join;
mod late;
mod moved;
mod needs;
mod open_actions;
mod opened;
mod outbox;
mod outside;
mod outside_use;
mod overridden;
mod perform;
mod permitted;
pub(crate) mod places;
mod proposal;
mod receive;
mod recover;
mod refused;
mod rehearse;
mod request;
mod restore;
mod sandboxed;
mod scratch;
mod script;
mod see;
mod seen_settings;
mod settle;
mod signed;
mod silence;
mod standing;
mod supervise;
mod tool;
mod trust;
mod visit;
mod web_address;
mod word;

use std::collections::BTreeSet;
use std::path::PathBuf;

use safepoint_authority::{Canonical, Coverage, Denial, Permit};
use safepoint_fence::Fence;
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, SessionId, Span, WorkspaceId};
use safepoint_state::{Errand, Foreseen, Progress, Snapshot, State, Workspace};
use safepoint_store::fault;

pub use asked::{
    Asked, ChangedPath, Entered, Entering, Foretelling, Foretold, Granted, Heard, Part, Refused,
    Reported, Settlement, Told, Wants,
};
pub use bench::Bench;
pub use change::ProposedChange;
pub(crate) use desk::active as active_operator;
pub use desk::{Desk, Signing, Verdict};
pub use disagreement::DisagreementCounts;
pub(crate) use documents::Standing;
pub use effect::{ActionEffect, MeasuredEffect};
pub use execute::{Capture, Ended, Ran};
pub use far::{Far, Question};
pub use fetching::{Asker, DefaultHosts};
pub use file_tool::{FileTarget, StrayWrite, freezer_of};
pub use guarded::settings_of_clients;
pub use integrate::{INTEGRATE, Takeover};
pub use join::JOINED;
pub use late::{LateWork, LeftRunning};
pub use open_actions::open_actions;
pub use outside_use::OutsideUse;
pub use perform::{ClaimedLine, LinePlace, PerformedLine, ShellLine};
pub use proposal::{Act, CallKind, Mode, Proposal, StartsPrograms, Stdin, Visitor};
pub use recover::{CutOff, this_process};
pub use request::Requested;
pub use sandboxed::{LineOrder, LineReport, OrderedLine};
pub use seen_settings::SettingsDigests;
pub use signed::Elsewhere;
pub use silence::{given_up, session_ended};
pub use supervise::{
    HoldListener, HoldWait, ReachRecord, ReachedTargets, RefusedTarget, SupervisedChild,
};
pub use tool::means_program;
pub use visit::{Finished, client_process, is_between};
pub use word::{Word, program_content, signed_word};

use crate::world::{self, Opened};
use crate::{AtlasFile, Control, ControlError};
use bench::Under;
use confine::{Approved, runs_unfenced};
use cover::Net;
use file_tool::refuse_kernel_links;
use see::{Seen, errand};

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

/// Where the control plane is elsewhere, one more: it has answered, and nothing is written here.
pub const FAR_POINTS: [&str; 1] = ["pass.answered"];

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
    /// Which hosts may be reached although nobody has named them.
    pub default_hosts: DefaultHosts,
    /// Who asks. What an agent asks for brings no hosts.
    pub asker: Asker,
    /// Whether whoever asks is behind such a fence, with all that it starts.
    pub is_within: bool,
    /// The workspace of an agent that this directory belongs to.
    pub place: Option<WorkspaceId>,
    /// Shows how far a look at the workspace has come.
    pub progress: &'a Progress,
    /// The control plane, where that is somewhere else. Then `control` has only what this
    /// machine remembers itself.
    pub far: Option<&'a dyn Far>,
    /// How long a program waits for a decision about what it wants outside; not at all without.
    pub hold_wait: Option<HoldWait<'a>>,
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
    /// Where a program may write, if it was let through by an envelope.
    pub(crate) within: Option<BTreeSet<String>>,
    /// The shell line that is to be run behind the fence. None where there is no line, no fence,
    /// or an approval for what no fence lets happen.
    pub line: Option<String>,
}

impl Leave {
    /// `allow`, or `approved` when a person said yes.
    pub fn decision(&self) -> &str {
        &self.errand.decision
    }

    /// The variables of the programs it starts.
    pub fn variables(&self) -> &[(std::ffi::OsString, std::ffi::OsString)] {
        &self.variables
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
        if let Some(visitor) = &proposal.visitor {
            self.let_earlier_freezes_expire(visitor)?;
            refuse_kernel_links(proposal)?;
        }
        fault::point("pass.begun");

        // 1. Canonicalize: what exactly is this, and what would it touch?
        let (seen, under, action) = match self.far {
            None => self.look(proposal)?,
            Some(_) => self.look_far(proposal)?,
        };

        // 2. Secure: what could be taken back is part of the judgement.
        let before = self.secure(&seen, &action)?;
        fault::point("pass.secured");
        let net = Net::of(before.as_ref(), proposal.act.covering());
        let form = self.form(&seen, &net, &under)?;

        // 3. Judge, and settle what follows in the same transaction: a hold, or leave. The
        //    intent is on disk before anything is done.
        let settlement = match self.far {
            None => self.bench()?.judge(&form, &proposal.wants(), &action)?,
            Some(_) => self.judge_far(proposal, &form, &action)?,
        };
        fault::point("pass.settled");
        let leave = match settlement {
            Settlement::Denied(refused) => {
                return Ok(Answer::Denied(Box::new(Denied {
                    denial: refused.denial,
                    session_id: refused.session_id,
                    resolution: refused.resolution,
                })));
            }
            Settlement::Leave(granted) => Leave {
                errand: errand(&form, &action, &under.session_id, &granted.decision),
                line: form.line.filter(|_| {
                    let approved = match granted.by_policy || granted.permit.is_some() {
                        true => Approved::Yes,
                        false => Approved::No,
                    };
                    granted.within.is_some() || !runs_unfenced(&form.canonical, approved)
                }),
                action_id: action,
                session_id: under.session_id,
                canonical: form.canonical,
                coverage: form.coverage,
                resolution: granted.resolution,
                before,
                program: seen.program,
                argv: seen.argv,
                variables: seen.variables,
                trust_after: granted.trust_after,
                within: granted.within,
                permit: granted.permit,
            },
        };

        // 4. Look again: what was approved is what is there, at the last moment.
        if let Some(change) = self.changed_since(proposal, &leave)? {
            return self.withdraw(leave, change);
        }
        match self.freeze_targets(proposal, &leave)? {
            None => Ok(Answer::Leave(Box::new(leave))),
            Some(change) => self.withdraw(leave, change),
        }
    }

    /// Looks at everything, in the session that it belongs to.
    fn look(&self, proposal: &Proposal) -> Result<(Seen, Under, ActionId), ControlError> {
        let bench = self.bench()?;
        self.note_remotes();
        let (session, _) = bench.enter(&self.entering(proposal)?)?;
        let seen = self.see(proposal)?;
        let (kept, _) = self.control.session(&session)?;
        let under = Under::of(&kept);
        let form = self.form(&seen, &Net::Expected, &under)?.canonical;
        let wish = form.wish().to_string();
        let action = bench.action_of(&wish, &session, Some(&form.environment))?;
        Ok((seen, under, action))
    }

    /// The first three stages only: nothing is written, and no checkpoint is made.
    pub fn rehearse(&self, proposal: &Proposal) -> Result<Rehearsed, ControlError> {
        if self.far.is_some() {
            return self.rehearse_far(proposal);
        }
        let seen = self.see(proposal)?;
        let bench = self.bench()?;
        let rehearsal = bench.session_for_rehearsal(&self.entering(proposal)?)?;
        let foreseen = self.foresee(&seen)?;
        let net = match (&foreseen, proposal.act.covering()) {
            (Some(foreseen), _) => Net::Foreseen(foreseen),
            (None, covering) => Net::of(None, covering),
        };
        let form = self.form(&seen, &net, &Under::of(&rehearsal.session))?;
        let (denial, resolution) = bench.rehearse_form(&proposal.wants(), &form, &rehearsal)?;
        Ok(Rehearsed {
            denial,
            canonical: form.canonical,
            coverage: form.coverage,
            resolution: Some(resolution),
        })
    }

    /// Where it is judged.
    pub(crate) fn bench(&self) -> Result<Bench<'_>, ControlError> {
        Ok(Bench {
            control: self.control,
            atlases: &self.atlases,
            hold_timeout: self.hold_timeout,
            root: world::text(&self.workspace.root)?,
            site: None,
            place: self.place.as_ref(),
        })
    }

    /// What the checkpoint before an action would leave out, where one would be made.
    fn foresee(&self, seen: &Seen) -> Result<Option<Foreseen>, ControlError> {
        if !seen.changes_something || seen.has_checkpoint {
            return Ok(None);
        }
        let foreseen = self.state.foresee(self.workspace, self.progress)?;
        Ok(Some(foreseen))
    }

    /// Takes the checkpoint before an action that changes something.
    fn secure(&self, seen: &Seen, action: &ActionId) -> Result<Option<Snapshot>, ControlError> {
        if !seen.changes_something || seen.has_checkpoint {
            return Ok(None);
        }
        let snapshot = self.state.before(self.workspace, action, self.progress)?;
        Ok(Some(snapshot))
    }
}
