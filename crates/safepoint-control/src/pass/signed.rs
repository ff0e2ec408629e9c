//! Decisions that were signed elsewhere: by an operator whose key is not here, and never is.
//!
//! Nothing is signed here, and nothing in a decision is believed before its signature is
//! checked, under the key that the operator has now.

use safepoint_authority::{Choice, Hold, Permit, SignedDecision};
use safepoint_model::{Digest, Timestamp};

use super::Desk;
use crate::ControlError;

/// How far the clock of another machine may be off, and how long a signature may be under way.
const SKEW: i64 = 5 * 60 * 1_000_000;

/// The moments that a signature of now may name.
pub(super) fn around(now: Timestamp) -> (Timestamp, Timestamp) {
    (
        now.saturating_add_micros(-SKEW),
        now.saturating_add_micros(SKEW),
    )
}

/// A decision that was signed elsewhere, and what it must be about.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere<'a> {
    /// The hold that is decided about.
    pub hold: &'a Hold,
    /// The fingerprint that was displayed.
    pub fingerprint: Digest,
    /// What may have been decided.
    pub choices: &'a [Choice],
    /// Whose signature it must be, where that is known.
    pub operator: Option<&'a str>,
    /// The signed note.
    pub note: &'a str,
}

impl Desk<'_> {
    /// Takes a decision that its operator has signed elsewhere.
    pub fn decide_signed(
        &self,
        given: &Elsewhere<'_>,
    ) -> Result<(Hold, Option<Permit>, Choice, String), ControlError> {
        let now = self.control.around.clock.now();
        let signed = SignedDecision::new(given.note.to_owned());
        let claimed = signed.claimed()?;
        let refuse = |reason| Err(ControlError::SignedElse { reason });
        let hold = given.hold;
        if claimed.hold_id != hold.hold_id || claimed.action_id != hold.action_id {
            return refuse("it is about another hold");
        }
        if claimed.fingerprint != given.fingerprint {
            return refuse("it names another fingerprint than the request");
        }
        if !given.choices.contains(&claimed.choice) {
            return refuse("it decides something else than the request");
        }
        if given.operator.is_some_and(|name| name != claimed.operator) {
            return refuse("it is another operator's than the token");
        }
        // An old one cannot be of use: a hold is decided once. One from before the hold was
        // there, or from days to come, was made by a clock that cannot be right.
        let (first, _) = around(hold.since);
        let (_, last) = around(now);
        if claimed.time < first || claimed.time > last {
            return refuse("its time cannot be right");
        }
        if let Some(envelope) = &claimed.envelope {
            envelope.check().map_err(|error| ControlError::Proposal {
                reason: format!("the envelope cannot be used: {error}"),
            })?;
        }
        if claimed.envelope.is_some() != (claimed.choice == Choice::Modify) {
            return refuse("an envelope goes with `modify`, and with nothing else");
        }
        hold.decide(&claimed, SignedDecision::new(String::new()), now)?;
        let (decided, permit) = self.enter(hold, &claimed, signed, now)?;
        Ok((decided, permit, claimed.choice, claimed.operator))
    }
}
