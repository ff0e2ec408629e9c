//! Whether a decision can be made now, and the way from a key to a verdict.

use safepoint_authority::{Choice, HoldState, Pending};

use super::{App, Dialog};
use crate::page::{self, Tab};
use crate::rows::Tone;
use crate::told::Told;
use crate::words::has_expired;
use crate::{Effect, Verdict, suggest};

/// How long something must have been on screen before a key can mean it, in microseconds:
/// longer than a hand needs to stop.
const LOOK: i64 = 750_000;

impl App {
    /// The operator wants to decide. The key came alone, not in a burst.
    pub(super) fn ask(&mut self, choice: Choice) -> Vec<Effect> {
        if let Err(why) = self.may(choice) {
            self.notice = Some((Tone::Warning, why));
            return Vec::new();
        }
        let Some(pending) = self.pending() else {
            return Vec::new();
        };
        self.dialog = match choice {
            Choice::Continue => return self.approve(choice, None),
            Choice::Deny | Choice::Halt => Some(Dialog::reason(choice)),
            Choice::PerStep => Some(Dialog::per_step()),
            Choice::Modify => match suggest(&pending.canonical_form, self.now) {
                Ok(envelope) => {
                    let beyond = envelope.delta(&pending.canonical_form, self.now);
                    let page = page::envelope(&envelope, &beyond);
                    Some(Dialog::envelope(envelope, page))
                }
                Err(error) => {
                    let told = Told::ours("No envelope can be suggested: ");
                    let told = told.and_theirs(&error.to_string());
                    self.notice = Some((Tone::Warning, told));
                    None
                }
            },
        };
        Vec::new()
    }

    /// The operator has said yes once. Where that is not enough, the word is asked for.
    pub(super) fn approve(
        &mut self,
        choice: Choice,
        envelope: Option<safepoint_authority::Envelope>,
    ) -> Vec<Effect> {
        let Some(pending) = self.pending() else {
            return Vec::new();
        };
        match &pending.confirm {
            Some(word) => {
                self.dialog = Some(Dialog::word(choice, envelope, word));
                Vec::new()
            }
            None => self.hand_in(choice, |verdict| verdict.envelope = envelope),
        }
    }

    /// Hands in a verdict about what is on screen.
    pub(super) fn hand_in(
        &mut self,
        choice: Choice,
        fill: impl FnOnce(&mut Verdict),
    ) -> Vec<Effect> {
        self.dialog = None;
        let Some(pending) = self.pending() else {
            return Vec::new();
        };
        let mut verdict = Verdict {
            hold_id: pending.hold_id.clone(),
            fingerprint: pending.fingerprint,
            choice,
            envelope: None,
            confirm: None,
            reason: None,
        };
        fill(&mut verdict);
        self.settling = true;
        vec![Effect::Decide(Box::new(verdict))]
    }

    /// Whether this can be decided now, or why not.
    fn may(&mut self, choice: Choice) -> Result<(), Told> {
        let refuse = |words: &str| Err(Told::ours(words));
        if self.trouble.is_some() {
            return refuse(
                "What is on screen may be old: nothing is decided until it is live again.",
            );
        }
        if self.settling {
            return refuse("A decision was just handed in. One moment.");
        }
        if self.drawn.too_small {
            return refuse("The window is too small to decide anything.");
        }
        let Some(pending) = self.pending() else {
            return refuse("Nothing waits.");
        };
        self.can_be_decided(pending)?;
        if choice.is_yes() {
            self.was_read(pending)?;
        }
        // A key that is held down, or was meant for what was here before, decides nothing.
        let looked = match self.shown_since {
            Some(since) => self.now.as_micros().saturating_sub(since.as_micros()),
            None => 0,
        };
        if looked < LOOK {
            self.shown_since = Some(self.now);
            return refuse(
                "This has only just come on screen: look at it, then press the key again.",
            );
        }
        Ok(())
    }

    /// Whether the hold can be decided at all.
    fn can_be_decided(&self, pending: &Pending) -> Result<(), Told> {
        let refuse = |words: &str| Err(Told::ours(words));
        if has_expired(pending, self.now) {
            return refuse("It has expired: nothing can be decided about it.");
        }
        match pending.state {
            HoldState::Halted => return Ok(()),
            HoldState::Pending => {}
            _ => return refuse("It is decided already."),
        }
        match self.is_turn(pending) {
            true => Ok(()),
            false => refuse("An older one is decided first in this session: press o to go there."),
        }
    }

    /// Whether the operator can know what a yes would mean.
    fn was_read(&self, pending: &Pending) -> Result<(), Told> {
        let refuse = |words: &str| Err(Told::ours(words));
        if let Some(fault) = &self.fault {
            return Err(Told::ours("This cannot be approved: ").and_theirs(fault));
        }
        // It must never be easier than the control plane wants it.
        if pending.reversibility_class.is_final() && pending.confirm.is_none() {
            return refuse("This cannot be approved: no word for a second confirmation was given.");
        }
        match (self.seen, self.tab) {
            (true, _) => Ok(()),
            (false, Tab::Detail) => {
                refuse("Not read to the end yet: space goes on, G goes to the end.")
            }
            (false, _) => refuse("The canonical form was not read yet: d shows it."),
        }
    }
}
