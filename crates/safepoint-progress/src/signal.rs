//! Signals: the closed set, who may emit which, and what one carries.
//!
//! Nothing is delivered here.

use safepoint_model::{SignalId, Timestamp, WorkspaceId};
use serde::Serialize;

use crate::role::BaseRole;
use crate::state::{Standing, State};
use crate::words::words;

words! {
    /// What a signal says. The set is closed: no taxonomy adds to it.
    SignalType, "signal":
    /// Ready to begin.
    Ready = "ready",
    /// At work, or at work again.
    Started = "started",
    /// Something from outside is missing.
    Blocked = "blocked",
    /// A record was made.
    Checkpoint = "checkpoint",
    /// The work is done.
    Complete = "complete",
    /// The work is given up.
    Failed = "failed",
    /// The parent takes the work over.
    Integrate = "integrate",
    /// A message has arrived.
    Acknowledged = "acknowledged",
    /// A person has to look.
    Escalation = "escalation",
    /// The work is to pause.
    Suspend = "suspend",
    /// The work goes to another agent.
    Migrate = "migrate",
}

impl SignalType {
    /// Whether it says nothing without a reason.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Self::Blocked | Self::Failed | Self::Escalation)
    }

    /// The move that the signal of an agent asks for.
    pub const fn asks_for(self) -> Option<State> {
        match self {
            Self::Started => Some(State::Active),
            Self::Blocked => Some(State::Blocked),
            Self::Complete => Some(State::Integrating),
            Self::Failed => Some(State::Failed),
            _ => None,
        }
    }
}

/// The move that an agent's signal makes of a workspace that stands so, if there is one.
///
/// What was paused from outside is not taken up again by the agent itself; and one that was told
/// nothing yet does not begin by itself: its directive makes it active, or the coordinator.
pub fn move_asked(standing: Standing, signal: SignalType) -> Option<State> {
    let to = signal.asks_for()?;
    let lifts_pause = standing.former == Some(to);
    let begins = standing.state == State::Idle && to == State::Active;
    (!lifts_pause && !begins && standing.moved_to(to).is_ok()).then_some(to)
}

/// Whether an agent in this role may emit it. What the runtime emits itself needs no leave.
pub const fn may_emit(role: BaseRole, signal: SignalType) -> bool {
    use SignalType::{
        Acknowledged, Blocked, Checkpoint, Complete, Escalation, Failed, Integrate, Ready, Started,
    };
    match role {
        BaseRole::Coordinator => {
            matches!(signal, Ready | Started | Failed | Integrate | Acknowledged)
        }
        BaseRole::Worker => matches!(
            signal,
            Ready | Started | Blocked | Checkpoint | Complete | Failed | Escalation
        ),
        BaseRole::Observer => matches!(signal, Ready | Started | Complete | Failed | Escalation),
    }
}

/// One signal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signal {
    /// Its identifier.
    pub id: SignalId,
    /// The workspace that it comes from.
    pub from: WorkspaceId,
    /// What it says.
    #[serde(rename = "type")]
    pub kind: SignalType,
    /// Why.
    pub reason: Option<String>,
    /// What it is about, such as the id of a record.
    #[serde(rename = "ref")]
    pub about: Option<String>,
    /// When it was emitted.
    pub timestamp: Timestamp,
    /// The parent; `None` at the root, where there is nobody to tell.
    pub delivered_to: Option<WorkspaceId>,
    /// When the parent got it; `None` while it waits.
    pub delivered_at: Option<Timestamp>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_04_the_set_is_closed() {
        let words: Vec<&str> = SignalType::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(
            words.join(" "),
            "ready started blocked checkpoint complete failed integrate acknowledged escalation suspend migrate"
        );
        assert!("progress".parse::<SignalType>().is_err());
    }

    #[test]
    fn pr_01_an_agent_does_not_end_a_pause_itself() {
        let active = Standing::NEW.moved_to(State::Active).unwrap();
        let paused = active.moved_to(State::Suspended).unwrap();
        assert_eq!(move_asked(paused, SignalType::Started), None);
        assert_eq!(move_asked(paused, SignalType::Failed), Some(State::Failed));
        let blocked = active.moved_to(State::Blocked).unwrap();
        assert_eq!(
            move_asked(blocked, SignalType::Started),
            Some(State::Active)
        );
        assert_eq!(move_asked(active, SignalType::Checkpoint), None);
    }

    #[test]
    fn pr_06_an_agent_that_was_told_nothing_does_not_begin_by_itself() {
        assert_eq!(move_asked(Standing::NEW, SignalType::Started), None);
        let given_up = move_asked(Standing::NEW, SignalType::Failed);
        assert_eq!(given_up, Some(State::Failed));
    }

    #[test]
    fn pr_04_an_observer_does_not_emit_what_the_runtime_emits_for_it() {
        assert!(!may_emit(BaseRole::Observer, SignalType::Checkpoint));
        assert!(may_emit(BaseRole::Worker, SignalType::Checkpoint));
        for role in BaseRole::ALL {
            for never in [SignalType::Suspend, SignalType::Migrate] {
                assert!(!may_emit(*role, never), "{role} {never}");
            }
        }
    }
}
