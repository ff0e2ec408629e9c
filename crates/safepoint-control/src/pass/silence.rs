//! Silence is a denial: a hold that nobody decided in time is over, and the trail says so.
//!
//! An expired hold counts as a no from its last moment on, whether or not anybody has written
//! that down. Here it is written down, by whoever looks next. Nothing here ever lets
//! something happen.

use safepoint_authority::{Denial, DenialCode, Hold, HoldState, Permit};
use safepoint_model::{HoldId, SessionId, Timestamp};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::Desk;
use crate::{Control, ControlError, kept};

/// What whoever asked is told to do next.
const NEXT: &str = "ask again when an operator is there";
/// What whoever asked in a session that has ended is told to do next.
const NEXT_SESSION: &str = "ask again in a session that is open";

impl Desk<'_> {
    /// Ends every hold whose time is up, and says which. Two who do so at once end each of
    /// them once.
    pub fn sweep(&self) -> Result<Vec<HoldId>, ControlError> {
        let now = self.control.around.clock.now();
        let store = self.control.trail.store();
        let over: Vec<Hold> = store.read(|sql| kept::open_if(sql, |hold| is_over(hold, now)))?;
        let mut ended = Vec::new();
        for hold in &over {
            let done = self.control.trail.write(
                Durability::Sync,
                |writing| -> Result<_, ControlError> {
                    let hold: Option<Hold> = kept::get(writing.sql(), hold.hold_id.as_str())?;
                    // Somebody may have decided, or swept, in between.
                    match hold.filter(|hold| is_over(hold, now)) {
                        Some(hold) => {
                            end(writing, &hold, &silence(&hold), Actor::safepoint())?;
                            Ok(true)
                        }
                        None => Ok(false),
                    }
                },
            )?;
            if done {
                ended.push(hold.hold_id.clone());
            }
        }
        Ok(ended)
    }

    /// Nobody decided while somebody waited: the hold is over.
    pub fn give_up(&self, denial: &Denial) -> Result<Denial, ControlError> {
        let given_up = given_up(denial);
        let id = denial.hold_id.as_ref().map(ToString::to_string);
        self.control
            .trail
            .write(Durability::Sync, |writing| -> Result<_, ControlError> {
                let hold: Option<Hold> = kept::get(writing.sql(), &id.clone().unwrap_or_default())?;
                match hold.map(|hold| (hold.state, hold)) {
                    Some((HoldState::Pending, hold)) => {
                        let actor = self.control.around.actor.clone();
                        end(writing, &hold, &given_up, actor)
                    }
                    // Somebody else has seen that nobody decided.
                    Some((HoldState::Expired, _)) => Ok(()),
                    _ => Err(ControlError::Meanwhile("it was decided after all")),
                }
            })?;
        Ok(given_up)
    }
}

impl Desk<'_> {
    /// The rules changed while somebody waited: what was approved meanwhile is void.
    pub fn void_for_rules(&self, denial: &Denial) -> Result<Denial, ControlError> {
        let code = DenialCode::PolicyChanged;
        let now = self.control.around.clock.now();
        let told = Denial {
            code,
            reason: code.meaning().to_owned(),
            next: "nothing was run; ask again, and it is judged by the rules that are there now"
                .to_owned(),
            ..denial.clone()
        };
        let id = denial.hold_id.as_ref().map(ToString::to_string);
        let hold = id.unwrap_or_default();
        self.control
            .trail
            .write(Durability::Sync, |writing| -> Result<_, ControlError> {
                let hold: Option<Hold> = kept::get(writing.sql(), &hold)?;
                let Some(hold) = hold else { return Ok(()) };
                let wish = hold.canonical.wish().to_string();
                let permits: Vec<Permit> = kept::about(writing.sql(), &wish)?;
                for permit in permits.iter().filter(|it| it.hold_id == hold.hold_id) {
                    if let Ok(void) = permit.clone().cancel(code, now) {
                        kept::put(writing, &void)?;
                    }
                }
                writing.append(Draft {
                    stream: Stream::from(&hold.canonical.session_id),
                    actor: self.control.around.actor.clone(),
                    kind: Kind::fixed("action_denied").into(),
                    action_id: Some(hold.action_id.clone()),
                    body: json!(told),
                })?;
                Ok(())
            })?;
        Ok(told)
    }
}

impl Control {
    /// Closes what still waits in a session that has ended: nobody would do it any more. What
    /// an operator has halted stays so until an operator decides.
    pub(crate) fn close_holds(
        &self,
        writing: &mut Writing<'_>,
        session: &SessionId,
    ) -> Result<(), ControlError> {
        let waits =
            |hold: &Hold| hold.state == HoldState::Pending && hold.canonical.session_id == *session;
        for hold in kept::open_if(writing.sql(), waits)? {
            let denial = session_ended(&silence(&hold));
            let actor = self.around.actor.clone();
            settle(writing, &hold, HoldState::Closed, &denial, actor)?;
        }
        let mine = |permit: &Permit| permit.session_id == *session;
        let now = self.around.clock.now();
        for permit in kept::open_if(writing.sql(), mine)? {
            // One that is in use ends with what it is used for.
            if let Ok(void) = permit.cancel(DenialCode::SessionEnded, now) {
                kept::put(writing, &void)?;
            }
        }
        Ok(())
    }
}

/// A denial whose hold was waited for in vain.
pub fn given_up(denial: &Denial) -> Denial {
    Denial {
        code: DenialCode::TimedOut,
        reason: DenialCode::TimedOut.meaning().to_owned(),
        next: NEXT.to_owned(),
        ..denial.clone()
    }
}

/// A denial whose session ended while it was waited for.
pub fn session_ended(denial: &Denial) -> Denial {
    Denial {
        code: DenialCode::SessionEnded,
        reason: DenialCode::SessionEnded.meaning().to_owned(),
        next: NEXT_SESSION.to_owned(),
        ..denial.clone()
    }
}

/// What is said of a hold that nobody waited for.
pub(super) fn silence(hold: &Hold) -> Denial {
    Denial {
        code: DenialCode::TimedOut,
        hold_id: Some(hold.hold_id.clone()),
        fingerprint: Some(hold.fingerprint),
        action_id: Some(hold.action_id.clone()),
        policy_basis: hold.basis.clone(),
        reason: DenialCode::TimedOut.meaning().to_owned(),
        next: NEXT.to_owned(),
    }
}

/// How a hold stands: one that has run out of its time has expired, whoever has seen it.
pub(super) fn standing(hold: &Hold, now: Timestamp) -> HoldState {
    match is_over(hold, now) {
        true => HoldState::Expired,
        false => hold.state,
    }
}

/// Whether a hold has run out of its time.
pub(super) fn is_over(hold: &Hold, now: Timestamp) -> bool {
    hold.state == HoldState::Pending && hold.expires_at <= now
}

/// Ends a hold that nobody decided about in time, and tells of it.
pub(super) fn end(
    writing: &mut Writing<'_>,
    hold: &Hold,
    denial: &Denial,
    actor: Actor,
) -> Result<(), ControlError> {
    settle(writing, hold, HoldState::Expired, denial, actor)
}

fn settle(
    writing: &mut Writing<'_>,
    hold: &Hold,
    state: HoldState,
    denial: &Denial,
    actor: Actor,
) -> Result<(), ControlError> {
    kept::put(
        writing,
        &Hold {
            state,
            ..hold.clone()
        },
    )?;
    writing.append(Draft {
        stream: Stream::from(&hold.canonical.session_id),
        actor,
        kind: Kind::fixed("action_denied").into(),
        action_id: Some(hold.action_id.clone()),
        body: json!(denial),
    })?;
    Ok(())
}
