//! Leave to make a change: it passes like any other action.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::process::{Child, Command};

use safepoint_authority::Denial;
use safepoint_control::ControlError;
use safepoint_control::pass::LeftRunning;
use safepoint_control::pass::{Act, Answer, Leave, Passage, Proposal, ProposedChange};
use safepoint_state::StateError;
use safepoint_state::mutate::{AskLeave, Covering, Given};

/// Asks the passage once it is known that the change could be made.
pub(super) struct Asking<'a> {
    pub(super) passage: &'a Passage<'a>,
    pub(super) change: ProposedChange<'a>,
    pub(super) proposal: &'a Proposal,
    pub(super) answer: RefCell<Option<Said>>,
    /// Whether a program ran that no supervisor watched.
    pub(super) is_unwatched: Cell<bool>,
}

/// What the passage said.
pub(super) enum Said {
    Leave(Box<Leave>),
    Denied(Box<Denial>),
    Failed(Box<ControlError>),
}

impl AskLeave for Asking<'_> {
    fn ask(&self, covering: &Covering) -> Result<Given, StateError> {
        let mut proposal = self.proposal.clone();
        if let Act::Change {
            covering: known, ..
        } = &mut proposal.act
        {
            *known = Some(Box::new(covering.clone()));
        }
        let refuse = |said: Said, why: String| {
            *self.answer.borrow_mut() = Some(said);
            Err(StateError::NoLeave { why })
        };
        match self.passage.ask(&proposal) {
            Ok(Answer::Leave(leave)) => {
                let given = Given {
                    action: leave.action_id.clone(),
                    session: Some(leave.session_id.to_string()),
                    decision: leave.decision().to_owned(),
                    variables: Some(leave.variables().to_vec()),
                };
                *self.answer.borrow_mut() = Some(Said::Leave(leave));
                Ok(given)
            }
            Ok(Answer::Denied(denied)) => {
                let why = denied.denial.reason.clone();
                refuse(Said::Denied(Box::new(denied.denial)), why)
            }
            Err(error) => {
                let why = error.to_string();
                refuse(Said::Failed(Box::new(error)), why)
            }
        }
    }
    fn changed_paths(&self) -> Result<Vec<PathBuf>, StateError> {
        let paths = self.passage.changed_by_commands(&self.change);
        paths.map_err(|error| {
            let why = error.to_string();
            *self.answer.borrow_mut() = Some(Said::Failed(Box::new(error)));
            StateError::NoLeave { why }
        })
    }

    fn start(&self, command: Command) -> std::io::Result<Child> {
        match &*self.answer.borrow() {
            Some(Said::Leave(leave)) => {
                let started = self.passage.start_for_change(leave, command)?;
                let (child, supervisor) = started.into_parts();
                let is_unwatched = self.is_unwatched.get() || supervisor.is_none();
                self.is_unwatched.set(is_unwatched);
                if let Some(supervisor) = supervisor {
                    crate::detach::keep(LeftRunning::Unrecorded(supervisor));
                }
                Ok(child)
            }
            _ => Err(std::io::Error::other("the change has no leave")),
        }
    }

    fn has_seen_writes(&self) -> bool {
        !self.is_unwatched.get()
    }
}
