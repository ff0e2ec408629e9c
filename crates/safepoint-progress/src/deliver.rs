//! Delivery: parents are told what their children emitted, in order and once each.
//!
//! It is a transaction of its own, so a parent that cannot be told does not
//! keep its child from working. What waits stands in a line before its parent;
//! only lines are looked at, never what was delivered before. Only what a
//! record tells is handed over in the transaction of the record, where nothing
//! waits before it and its parent can take it: that is nearly always so, and
//! half the work. A record or a signal is never taken back because its delivery
//! failed: what could not be handed over gets into line.

use safepoint_model::WorkspaceId;
use safepoint_store::{Durability, Sql, fault};
use safepoint_trail::{Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::ProgressError;
use crate::emitted::Emission;
use crate::progress::Progress;
use crate::state::State;
use crate::table;
use crate::tell::protocol;

/// How many are delivered in one transaction.
const AT_ONCE: u32 = 500;

/// How safe a delivery is when it is told of.
///
/// A power cut may take the newest deliveries, never one from the middle: all transactions of a
/// store are one log, and each that is synced brings those before it to disk. With a delivery
/// its row, its entry and its leaving of the line are lost together, and so the signal waits
/// again and is delivered by whoever comes next. The head outside the database moves only when
/// a commit is on disk, so the trail never knows more than the store. Emission, which was
/// acknowledged to the agent, is synced.
const DELIVERY: Durability = Durability::Async;

/// How a signal gets to its parent.
#[derive(Debug, PartialEq)]
pub(crate) enum Handing {
    /// In the transaction that emits it, if that can be.
    AtOnce,
    /// By whoever looks at the line next.
    InLine,
    /// At once was tried, and failed: the transaction comes to nothing.
    Failed,
    /// It stands in the line before this parent.
    Left(WorkspaceId),
    /// It is delivered, or there is nobody above.
    Done,
}

impl Progress {
    /// Hands a signal that was just emitted to its parent, or puts it into line.
    pub(crate) fn hand_over(
        &self,
        writing: &mut Writing<'_>,
        emission: &Emission,
        handing: &mut Handing,
    ) -> Result<(), ProgressError> {
        let tried = *handing == Handing::AtOnce;
        let done = match &emission.signal.delivered_to {
            None => Ok(Handing::Done),
            Some(parent) if tried => self.hand_over_now(writing, parent, emission),
            Some(parent) => left_in_line(writing, parent, emission),
        };
        if tried {
            *handing = Handing::Failed; // unless it is done
        }
        *handing = done?;
        fault::point("progress.signal.in_line");
        Ok(())
    }

    fn hand_over_now(
        &self,
        writing: &mut Writing<'_>,
        parent: &WorkspaceId,
        emission: &Emission,
    ) -> Result<Handing, ProgressError> {
        let stream = Stream::from(parent);
        let is_heard = writing
            .mark(&stream)
            .is_some_and(|mark| self.heard.is_known(parent, &mark));
        if !is_heard {
            let (state, is_waited_for) = table::standing_in_line(writing.sql(), parent)?;
            if state.holds_signals() || state.is_terminal() || is_waited_for {
                return left_in_line(writing, parent, emission);
            }
        }
        self.record_delivery(writing, parent, emission)?;
        if let Some(mark) = writing.mark(&stream) {
            self.heard.remember(parent, mark);
        }
        fault::point("progress.deliver.out_of_line");
        Ok(Handing::Done)
    }

    /// Delivers what waits, as far as parents can take it, and says how much that was.
    ///
    /// In order for each source, and each once, whoever else does the same. Reads only, when
    /// nothing waits or nobody can take it.
    pub fn deliver(&self) -> Result<usize, ProgressError> {
        let mut delivered = Ok(0);
        let mut after = String::new();
        loop {
            let next = self
                .trail
                .store()
                .read(|sql| table::waited_for(sql, &after))?;
            let Some(parent) = next else {
                return delivered;
            };
            // One that cannot be told does not keep the others from being told.
            let now = match parent.parse() {
                Ok(parent) => self.deliver_if_heard(&parent),
                Err(_) => self.clear_line(&parent),
            };
            delivered = delivered.and_then(|before| Ok(before + now?));
            after = parent;
        }
    }

    /// The same for one parent. Reads only, when it cannot take anything.
    fn deliver_if_heard(&self, parent: &WorkspaceId) -> Result<usize, ProgressError> {
        let read = |sql: &mut dyn Sql| table::standing(sql, parent);
        let (standing, _) = self.trail.store().read(read)?;
        match standing.state.holds_signals() {
            true => Ok(0),
            false => self.deliver_to(parent),
        }
    }

    /// Takes a line away that somebody else has put before what is no workspace. It is no record
    /// of anything.
    fn clear_line(&self, parent: &str) -> Result<usize, ProgressError> {
        self.trail.write(DELIVERY, |writing| {
            table::no_line(writing.sql(), parent)?;
            Ok(0)
        })
    }

    /// Delivers what waits for one parent, if it can take it.
    pub(crate) fn deliver_to(&self, parent: &WorkspaceId) -> Result<usize, ProgressError> {
        let mut delivered = 0;
        loop {
            let now = self.trail.write(DELIVERY, |writing| {
                let (standing, _) = table::standing(writing.sql(), parent)?;
                self.deliver_some(writing, parent, standing.state)
            })?;
            delivered += now;
            if now < AT_ONCE as usize {
                return Ok(delivered);
            }
        }
    }

    fn deliver_some(
        &self,
        writing: &mut Writing<'_>,
        parent: &WorkspaceId,
        state: State,
    ) -> Result<usize, ProgressError> {
        if state.holds_signals() {
            return Ok(0);
        }
        if state.is_terminal() {
            // Nobody is there to be told any more: they stay emitted, and are not looked at again.
            table::no_line(writing.sql(), parent.as_str())?;
            return Ok(0);
        }
        let waiting = table::in_line(writing.sql(), parent, AT_ONCE)?;
        for place in &waiting {
            // A line is only where to look: what counts is what was emitted and delivered.
            let emission = self.emission(writing.sql(), *place)?.filter(|emission| {
                let signal = &emission.signal;
                signal.delivered_at.is_none() && signal.delivered_to.as_ref() == Some(parent)
            });
            if let Some(emission) = emission {
                self.record_delivery(writing, parent, &emission)?;
            }
            table::leave_line(writing.sql(), parent, *place)?;
            fault::point("progress.deliver.out_of_line");
        }
        Ok(waiting.len())
    }

    fn record_delivery(
        &self,
        writing: &mut Writing<'_>,
        parent: &WorkspaceId,
        emission: &Emission,
    ) -> Result<(), ProgressError> {
        let time = self.moment(writing)?;
        let signal = &emission.signal;
        let entry = writing.append(Draft {
            stream: Stream::from(parent),
            actor: protocol(),
            kind: Kind::fixed("signal_delivered").into(),
            action_id: None,
            body: json!({
                "signal_id": signal.id, "from": signal.from,
                "delivered_to": parent, "delivered_at": time, "emission": emission.entry,
            }),
        })?;
        fault::point("progress.deliver.recorded");
        // Right behind its emission it is found without a row.
        if !is_right_behind(emission.entry, entry.seq) {
            table::insert_delivery(writing.sql(), emission.entry, entry.seq)?;
        }
        fault::point("progress.deliver.kept");
        Ok(())
    }
}

/// Whether a delivery stands right behind its emission in the trail, as nearly all do. Such a one
/// has no row.
pub(crate) fn is_right_behind(emission: u64, delivery: u64) -> bool {
    emission.checked_add(1) == Some(delivery)
}

fn left_in_line(
    writing: &mut Writing<'_>,
    parent: &WorkspaceId,
    emission: &Emission,
) -> Result<Handing, ProgressError> {
    put_in_line(writing, parent, emission.entry)?;
    Ok(Handing::Left(parent.clone()))
}

/// Puts a signal into the line before its parent, which no entry tells of.
pub(crate) fn put_in_line(
    writing: &mut Writing<'_>,
    parent: &WorkspaceId,
    emission: u64,
) -> Result<(), ProgressError> {
    table::put_in_line(writing.sql(), parent, emission)?;
    writing.change_marks();
    Ok(())
}
