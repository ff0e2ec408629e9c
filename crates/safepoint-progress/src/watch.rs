//! What parents were told since some moment, for whoever listens.
//!
//! Nothing waits here: whoever listens asks again.

use safepoint_model::{Timestamp, WorkspaceId};

use crate::signal::Signal;
use crate::table;
use crate::{Progress, ProgressError};

/// How many are handed over at once.
const AT_ONCE: i64 = 500;

impl Progress {
    /// Signals that were delivered after `after`, to one workspace or to any, in the order in
    /// which they arrived: at most 500, and the time of the last is where to go on.
    pub fn delivered_after(
        &self,
        after: Option<Timestamp>,
        to: Option<&WorkspaceId>,
    ) -> Result<Vec<Signal>, ProgressError> {
        let after = after.map_or(-1, Timestamp::as_micros);
        self.trail.store().read(|sql| {
            if let Some(id) = to {
                table::made(sql, id)?;
            }
            Ok(table::delivered_after(sql, after, to, AT_ONCE)?)
        })
    }
}
