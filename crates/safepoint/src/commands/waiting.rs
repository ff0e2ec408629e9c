//! Waiting for an operator elsewhere: one way, for everything that takes `--wait`.
//!
//! Whoever waited asks once more, or is told why that is no use: nobody decided in time, the
//! session ended, or the rules are others by now. What was approved under others is void.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_authority::{Denial, HoldState};
use safepoint_control::pass::{given_up, session_ended};
use safepoint_control::{Control, ControlError};
use safepoint_gates::Refusal;
use safepoint_model::{Clock, HoldId, Span};

use super::passing::Room;
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// How often to look whether somebody has decided.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Signals that ask us to end while somebody waits for a decision.
pub(crate) struct StopSignals {
    asked: Arc<AtomicBool>,
    hooks: Vec<signal_hook::SigId>,
}

impl StopSignals {
    pub(crate) fn listen() -> Result<Self, CliError> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
        let asked = Arc::new(AtomicBool::new(false));
        let mut hooks = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            hooks.push(signal_hook::flag::register(signal, Arc::clone(&asked))?);
        }
        Ok(Self { asked, hooks })
    }

    /// Set when one has come.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// An error if one has come.
    pub(crate) fn check(&self) -> Result<(), CliError> {
        match self.asked.load(Ordering::Relaxed) {
            true => Err(CliError::Interrupted),
            false => Ok(()),
        }
    }
}

impl Drop for StopSignals {
    fn drop(&mut self) {
        for hook in self.hooks.drain(..) {
            signal_hook::low_level::unregister(hook);
        }
    }
}

/// Where what waits was asked for.
#[derive(Clone, Copy)]
pub(crate) enum Asked<'a> {
    /// In a directory, and judged here or at a server.
    Room(&'a Room),
    /// In a session alone.
    Session(&'a Control),
}

impl Asked<'_> {
    fn standing(self, context: &Context, hold: &HoldId) -> Result<HoldState, CliError> {
        let control = match self {
            Self::Room(room) => return Ok(room.passage().standing(hold)?),
            Self::Session(control) => control,
        };
        let found = context.desk(control).hold(hold.as_str())?;
        let is_over = found.state == HoldState::Pending && found.expires_at <= SystemClock.now();
        Ok(match is_over {
            true => HoldState::Expired,
            false => found.state,
        })
    }

    /// Somebody else's machine is not asked all the time.
    fn poll_interval(self) -> Duration {
        match self.is_here() {
            true => POLL_INTERVAL,
            false => POLL_INTERVAL * 5,
        }
    }

    fn is_here(self) -> bool {
        match self {
            Self::Room(room) => room.is_here(),
            Self::Session(_) => true,
        }
    }

    fn control(&self) -> &Control {
        match self {
            Self::Room(room) => &room.control,
            Self::Session(control) => control,
        }
    }

    fn has_other_rules(self, context: &Context) -> bool {
        match self {
            Self::Room(room) => room.has_other_rules(context),
            // A session is pinned to its atlases, and asking says whether they are still so.
            Self::Session(_) => false,
        }
    }
}

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// Somebody has decided: asking again tells how.
    Decided,
    /// The hold is over, and nobody has. Asking again would only make another one.
    Silence,
    /// Nobody has yet.
    InVain,
    /// The session ended before anybody did.
    SessionEnded,
}

/// What whoever waited does next.
pub(crate) enum Next {
    /// Asks once more.
    Ask,
    /// Nothing: this is why.
    Denied(Box<Denial>),
}

/// Waits for an operator elsewhere, at most so long, or until a signal has come.
pub(crate) fn wait_until(
    context: &Context,
    asked: Asked<'_>,
    hold: &HoldId,
    limit: Span,
    stop: &StopSignals,
) -> Result<Waited, CliError> {
    let mut left = Duration::from_micros(limit.as_micros());
    while !left.is_zero() {
        stop.check()?;
        match asked.standing(context, hold)? {
            HoldState::Pending => {}
            HoldState::Expired => return Ok(Waited::Silence),
            HoldState::Closed => return Ok(Waited::SessionEnded),
            HoldState::Approved | HoldState::Denied | HoldState::Halted => {
                return Ok(Waited::Decided);
            }
        }
        let step = left.min(asked.poll_interval());
        std::thread::sleep(step);
        left -= step;
    }
    Ok(Waited::InVain)
}

/// The same for a denial, and what follows from it.
pub(crate) fn wait_for_decision(
    context: &Context,
    asked: Asked<'_>,
    denial: &Denial,
    limit: Span,
    stop: &StopSignals,
) -> Result<Next, CliError> {
    let Some(hold) = &denial.hold_id else {
        return Ok(Next::Denied(Box::new(denial.clone())));
    };
    let told = |denial: Denial| Ok(Next::Denied(Box::new(denial)));
    match (
        wait_until(context, asked, hold, limit, stop)?,
        asked.is_here(),
    ) {
        (Waited::Decided, _) => Ok(Next::Ask),
        (Waited::SessionEnded, _) => told(session_ended(denial)),
        // It goes on waiting at the server, which ends it in its time.
        (Waited::InVain, false) => told(denial.clone()),
        (Waited::Silence, false) => told(given_up(denial)),
        (Waited::InVain | Waited::Silence, true) => give_up(context, asked, denial),
    }
}

/// Nobody has decided: the hold is over.
pub(crate) fn give_up(
    context: &Context,
    asked: Asked<'_>,
    denial: &Denial,
) -> Result<Next, CliError> {
    match context.desk(asked.control()).give_up(denial) {
        Ok(given_up) => Ok(Next::Denied(Box::new(given_up))),
        Err(ControlError::Meanwhile(_)) => Ok(Next::Ask),
        Err(error) => Err(error.into()),
    }
}

/// Asks once more, now that somebody has decided. Rules that changed meanwhile make that void, and
/// in a session that has ended nothing is asked any more: the denial says so.
pub(crate) fn ask_again<T>(
    context: &Context,
    asked: Asked<'_>,
    denial: &Denial,
    ask: impl FnOnce() -> Result<T, CliError>,
) -> Result<Result<T, Box<Denial>>, CliError> {
    match asked.has_other_rules(context) {
        true => void_for_rules(context, asked, denial).map(Err),
        false => void_if_changed(context, asked, denial, ask()),
    }
}

/// The same for what was asked already.
pub(crate) fn void_if_changed<T>(
    context: &Context,
    asked: Asked<'_>,
    denial: &Denial,
    said: Result<T, CliError>,
) -> Result<Result<T, Box<Denial>>, CliError> {
    match said {
        Err(CliError::Control(ControlError::AtlasChanged { .. })) if asked.is_here() => {
            void_for_rules(context, asked, denial).map(Err)
        }
        Err(CliError::Control(ControlError::Refused(Refusal::Ended))) => {
            Ok(Err(Box::new(session_ended(denial))))
        }
        other => other.map(Ok),
    }
}

/// What was approved is void: the rules are others by now.
pub(crate) fn void_for_rules(
    context: &Context,
    asked: Asked<'_>,
    denial: &Denial,
) -> Result<Box<Denial>, CliError> {
    let desk = context.desk(asked.control());
    Ok(Box::new(desk.void_for_rules(denial)?))
}
