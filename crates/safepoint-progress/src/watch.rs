//! What parents were told since some moment, for whoever listens.
//!
//! Nothing waits here: whoever listens asks again.

use safepoint_model::{Timestamp, WorkspaceId};
use safepoint_store::Flow;
use safepoint_trail::{Query, Stream};

use crate::signal::Signal;
use crate::table;
use crate::{Progress, ProgressError};

/// How many are handed over at once.
const AT_ONCE: usize = 500;

impl Progress {
    /// Signals that were delivered after `after`, to one workspace or to any, in the order in
    /// which they arrived: at most 500, and the time of the last is where to go on.
    pub fn delivered_after(
        &self,
        after: Option<Timestamp>,
        to: Option<&WorkspaceId>,
    ) -> Result<Vec<Signal>, ProgressError> {
        let since_then = Query {
            streams: to.map(Stream::from).into_iter().collect(),
            kind: Some("signal_delivered".to_owned()),
            since: after.map(Timestamp::next),
            ..Query::default()
        };
        let mut emissions = Vec::new();
        self.trail.entries(&since_then, |entry| {
            emissions.extend(self.delivered_in(&entry)?);
            Ok::<_, ProgressError>(match emissions.len() < AT_ONCE {
                true => Flow::More,
                false => Flow::Enough,
            })
        })?;
        self.trail.store().read(|sql| {
            if let Some(id) = to {
                table::made(sql, id)?;
            }
            let mut signals = Vec::with_capacity(emissions.len());
            for place in emissions {
                signals.extend(self.emission(sql, place)?.map(|emission| emission.signal));
            }
            Ok(signals)
        })
    }
}
