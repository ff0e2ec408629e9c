//! The seam to whoever knows what waits. The terminal renders what comes through here.

use safepoint_authority::{Choice, Envelope, Pending};
use safepoint_model::{Digest, HoldId, Timestamp};

/// Where holds come from and decisions go to.
///
/// Errors are sentences for the operator; they are shown as text from outside.
pub trait Desk {
    /// What waits, the oldest first.
    fn queue(&mut self) -> Result<Vec<Pending>, String>;

    /// What the action would change, as far as it can be told: lines of a unified diff, or sentences.
    fn preview(&mut self, hold: &HoldId) -> Result<Vec<String>, String>;

    /// What has happened in its session, the newest last.
    fn timeline(&mut self, hold: &HoldId) -> Result<Vec<Moment>, String>;

    /// Takes a decision. Says what came of it, in a sentence.
    fn decide(&mut self, verdict: &Verdict) -> Result<String, String>;
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Timestamp,
    /// What kind of thing, in a word.
    pub kind: String,
    /// What happened.
    pub text: String,
}

/// What the operator decided, about exactly what was displayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// About which hold.
    pub hold_id: HoldId,
    /// The fingerprint that was on screen.
    pub fingerprint: Digest,
    /// What was decided.
    pub choice: Choice,
    /// The envelope that was on screen, where one goes with it.
    pub envelope: Option<Envelope>,
    /// The word of the second confirmation, as it was typed.
    pub confirm: Option<String>,
    /// Why, where the operator said so.
    pub reason: Option<String>,
}
