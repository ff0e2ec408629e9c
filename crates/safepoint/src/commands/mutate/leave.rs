//! Leave to make a change: it passes like any other action.

use std::cell::RefCell;

use safepoint_authority::Denial;
use safepoint_control::ControlError;
use safepoint_control::pass::{Answer, Leave, Passage, Proposal};
use safepoint_state::mutate::{AskLeave, Given};
use safepoint_state::{Snapshot, StateError};

/// Asks the passage once it is known that the change could be made.
pub(super) struct Asking<'a> {
    pub(super) passage: &'a Passage<'a>,
    pub(super) proposal: &'a Proposal,
    pub(super) answer: RefCell<Option<Said>>,
}

/// What the passage said.
pub(super) enum Said {
    Leave(Box<Leave>),
    Denied(Box<Denial>),
    Failed(Box<ControlError>),
}

impl AskLeave for Asking<'_> {
    fn ask(&self, _checkpoint: &Snapshot) -> Result<Given, StateError> {
        let refuse = |said: Said, why: String| {
            *self.answer.borrow_mut() = Some(said);
            Err(StateError::NoLeave { why })
        };
        match self.passage.ask(self.proposal) {
            Ok(Answer::Leave(leave)) => {
                let given = Given {
                    action: leave.action_id.clone(),
                    session: Some(leave.session_id.to_string()),
                    decision: leave.decision().to_owned(),
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
}
