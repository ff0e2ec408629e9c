//! What the control plane elsewhere is still to be told: how things ended here, and what was
//! never run.
//!
//! It is kept in the transaction in which it became so, and gone only when the server knows
//! it. Nothing is judged here, and nothing is run.

use safepoint_gates::Resolution;
use safepoint_model::{ActionId, Code, SessionId};
use safepoint_state::Changed;
use safepoint_store::Durability;
use serde_json::{Value, json};

use super::asked::{ChangedPath, FORMAT, Heard, MOST_CHANGES, Reported, Told};
use super::documents::{Running, Unsent};
use super::execute::chooses_code;
use super::visit::is_alive;
use super::{Passage, Question};
use crate::{ControlError, kept};

/// How something ended, and what is told of it.
pub(super) struct Ending<'a> {
    pub(super) outcome: &'a str,
    pub(super) body: Value,
    pub(super) report: Option<Reported>,
    pub(super) changes: &'a [Changed],
}

impl<'a> Ending<'a> {
    pub(super) fn new(outcome: &'a str, body: Value) -> Self {
        Self {
            outcome,
            body,
            report: None,
            changes: &[],
        }
    }
}

/// What became of something that was to be kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is kept.
    Now,
    /// It is not: the action has been begun here.
    Begun,
}

impl Passage<'_> {
    /// Keeps what is to be told of something that is not run, unless another process has
    /// begun it here.
    pub(super) fn keep(
        &self,
        unsent: &Unsent,
        durability: Durability,
    ) -> Result<Kept, ControlError> {
        let action = unsent.told.action_id.as_str();
        self.control.trail.write(durability, |writing| {
            if kept::get::<Running>(writing.sql(), action)?.is_some() {
                return Ok(Kept::Begun);
            }
            kept::put(writing, unsent)?;
            Ok::<Kept, ControlError>(Kept::Now)
        })
    }

    /// What the server is told of something that is not run.
    pub(super) fn not_run(&self, session: &SessionId, action: &ActionId, why: &str) -> Unsent {
        Unsent {
            format: 1,
            told: Told {
                format: FORMAT,
                action_id: action.clone(),
                session_id: session.clone(),
                outcome: "not_run".to_owned(),
                body: json!({"why": why}),
                report: None,
                changed: 0,
                changes: Vec::new(),
                chooses_code: false,
            },
            time: self.now(),
            settled: false,
            refused: None,
            asking: None,
        }
    }

    /// What the server is to be told of an end.
    pub(super) fn unsent(&self, running: &Running, ending: &Ending<'_>) -> Unsent {
        let named = ending.changes.iter().take(MOST_CHANGES);
        let changes = named.map(|change| ChangedPath {
            path: safepoint_state::path::display(&change.path),
            change: change.kind.as_str().to_owned(),
        });
        Unsent {
            format: 1,
            told: Told {
                format: FORMAT,
                action_id: running.action_id.clone(),
                session_id: running.session_id.clone(),
                outcome: ending.outcome.to_owned(),
                body: ending.body.clone(),
                report: ending.report.clone(),
                changed: ending.changes.len() as u64,
                changes: changes.collect(),
                chooses_code: running.permit_id.is_none() && chooses_code(ending.changes),
            },
            time: self.now(),
            settled: false,
            refused: None,
            asking: None,
        }
    }

    /// Tells the server what it does not know yet. What cannot be told now comes before the
    /// next action.
    pub(super) fn send(&self) {
        if self.far.is_some() {
            let _ = self.send_waiting();
        }
    }

    /// The same, with what the gates say to the end of one action.
    pub(super) fn send_about(&self, action: &ActionId) -> Option<Resolution> {
        let told = self.send_waiting().ok()?;
        let mut told = told.into_iter().filter(|(id, _)| id == action);
        told.next().and_then(|(_, heard)| heard.resolution)
    }

    pub(super) fn send_waiting(&self) -> Result<Vec<(ActionId, Heard)>, ControlError> {
        let store = self.control.trail.store();
        let waiting: Vec<Unsent> = store.read(|sql| kept::open(sql))?;
        let mut heard = Vec::new();
        let is_asking = |it: &Unsent| it.asking.is_some_and(is_alive);
        for unsent in waiting.into_iter().filter(|it| !is_asking(it)) {
            let action = unsent.told.action_id.clone();
            let refused = match self.answered::<Heard>(&Question::End(&unsent.told)) {
                Ok(answer) => {
                    heard.push((action, answer));
                    None
                }
                // It knows nothing of it, and never will: nothing is gained by asking again.
                Err(ControlError::Refuses { code, message, .. }) if is_final(&code) => {
                    Some(message)
                }
                Err(error) => return Err(error),
            };
            let settled = Unsent {
                settled: true,
                refused,
                asking: None,
                ..unsent
            };
            self.control
                .trail
                .write(Durability::Async, |writing| kept::put(writing, &settled))?;
        }
        Ok(heard)
    }
}

/// Whether a server that says so will never say anything else.
fn is_final(code: &str) -> bool {
    [Code::NotFound, Code::InvalidInput]
        .iter()
        .any(|it| it.code() == code)
}
