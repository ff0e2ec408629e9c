//! What happens when the queue was read: what is on screen stays, unless it is gone or has
//! become something else.

use safepoint_authority::{HoldState, Pending};
use safepoint_model::HoldId;

use super::{App, Brief};
use crate::run::Until;
use crate::told::Told;
use crate::words::has_expired;
use crate::{Effect, Ended};

impl App {
    /// Takes the queue as it was read.
    pub(super) fn take_queue(&mut self, read: Result<Vec<Pending>, String>) -> Vec<Effect> {
        let mut queue = match read {
            Ok(queue) => queue,
            Err(why) => {
                self.trouble = Some(Told::theirs(&why));
                self.dialog = None;
                return Vec::new();
            }
        };
        self.trouble = None;
        // The desk says the oldest first; the rule that it is decided first must not depend on that.
        queue.sort_by(|one, other| (one.since, &one.hold_id).cmp(&(other.since, &other.hold_id)));
        let before = self.queue.take();
        let is_new = |pending: &Pending| match &before {
            Some(known) => !known.iter().any(|old| old.hold_id == pending.hold_id),
            None => false,
        };
        let mut effects = Vec::new();
        if queue.iter().any(is_new) {
            effects.push(Effect::Ring);
        }
        self.compare(before.as_deref().unwrap_or_default(), &queue);
        self.briefs = self.brief_all(before.as_deref().unwrap_or_default(), &queue);
        self.queue = Some(queue);
        self.settling = false;
        if self.pending().is_none() {
            let next = self.first();
            self.select(next);
        }
        self.drop_what_expired();
        if self.until == Until::Empty && self.turn().is_none() {
            effects.push(Effect::Leave(Ended::Empty));
        }
        effects.extend(self.wanted());
        effects
    }

    /// Drops what the operator has read and typed, if it was about something else than what is there now.
    fn compare(&mut self, before: &[Pending], now: &[Pending]) {
        let find = |queue: &[Pending]| {
            let selected = self.selected.as_ref()?;
            queue
                .iter()
                .find(|pending| pending.hold_id == *selected)
                .cloned()
        };
        let (old, new) = (find(before), find(now));
        // Most often nothing has changed, and a page can be long.
        self.stale |= old != new;
        match (old, new) {
            (Some(old), Some(new)) if !is_same(&old, &new) => {
                self.unread();
                self.preview = None;
                let is_other = old.fingerprint != new.fingerprint;
                if is_other {
                    self.top = 0;
                }
                // What the operator's own decision has changed is no surprise.
                if is_other || !self.settling {
                    self.warn("⚠ It has changed while you looked at it: read it again.");
                }
            }
            (Some(_), None) if !self.settling => {
                self.warn("The hold that was on screen is gone. This is another one.");
            }
            _ => {}
        }
    }

    /// What each hold would do, in a line; those that are known are kept.
    fn brief_all(&self, before: &[Pending], now: &[Pending]) -> Vec<Brief> {
        let is_known = |old: &Pending, new: &Pending| {
            old.hold_id == new.hold_id
                && old.canonical_request_summary == new.canonical_request_summary
        };
        let brief = |new: &Pending| {
            let place = before.iter().position(|old| is_known(old, new));
            let known = place.and_then(|place| self.briefs.get(place));
            known.cloned().unwrap_or_else(|| Brief::new(new))
        };
        now.iter().map(brief).collect()
    }

    /// The hold that is decided before the one on screen, or the one to decide next.
    pub(super) fn older(&self) -> Option<HoldId> {
        let session = self.pending().map(|pending| &pending.session_id);
        let queue = self.queue.as_deref().unwrap_or_default();
        let first = queue
            .iter()
            .find(|other| Some(&other.session_id) == session && self.is_turn(other));
        let first = first.map(|pending| pending.hold_id.clone());
        match first.filter(|first| Some(first) != self.selected.as_ref()) {
            Some(first) => Some(first),
            None => self.first(),
        }
    }

    /// The hold to show when none is chosen: the one to decide, or else the oldest.
    pub(super) fn first(&self) -> Option<HoldId> {
        let queue = self.queue.as_deref().unwrap_or_default();
        self.turn()
            .or_else(|| queue.first())
            .map(|pending| pending.hold_id.clone())
    }

    /// The hold to decide next: the oldest that can still be decided. One that is halted
    /// waits for as long as it takes, and holds up nothing that came later.
    pub(crate) fn turn(&self) -> Option<&Pending> {
        let queue = self.queue.as_deref().unwrap_or_default();
        queue
            .iter()
            .find(|pending| pending.state == HoldState::Pending && !has_expired(pending, self.now))
    }

    /// Whether it is the turn of this hold: no older one of its session can still be decided.
    /// Sessions do not wait for each other.
    pub(crate) fn is_turn(&self, pending: &Pending) -> bool {
        let queue = self.queue.as_deref().unwrap_or_default();
        let mut open = queue.iter().filter(|other| {
            other.session_id == pending.session_id
                && other.state == HoldState::Pending
                && !has_expired(other, self.now)
        });
        open.next()
            .is_some_and(|first| first.hold_id == pending.hold_id)
    }

    /// Closes a dialog about a hold that nobody can decide any more.
    pub(super) fn drop_what_expired(&mut self) {
        let over = self
            .pending()
            .is_some_and(|pending| has_expired(pending, self.now));
        if over && self.dialog.is_some() {
            self.dialog = None;
            self.warn("⚠ It has expired: nothing was decided.");
        }
    }
}

/// Whether two readings of a hold are the same to somebody who has read one of them.
fn is_same(old: &Pending, new: &Pending) -> bool {
    let others = Pending {
        decided_by: new.decided_by.clone(),
        ..old.clone()
    };
    others == *new
}
