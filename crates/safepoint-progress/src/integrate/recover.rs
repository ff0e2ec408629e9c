//! Integrations that were cut off between the store and the directory.
//!
//! What the directory's own journal finished or dropped decides: if the action was done,
//! the integration is concluded; if not, it is given up, and may be tried again. One that
//! cannot be ended is told of, and keeps nobody from ending the others.

use safepoint_model::WorkspaceId;
use safepoint_state::State;
use safepoint_store::Durability;
use safepoint_trail::Actor;

use super::end::is_stale;
use super::{Integration, taker};
use crate::{Progress, ProgressError, table};

/// What became of integrations that were cut off.
#[derive(Debug, Default)]
pub struct Ended {
    /// Those that have ended now.
    pub ended: Vec<Integration>,
    /// Those that could not be ended, and why.
    pub failed: Vec<(Integration, ProgressError)>,
}

impl Progress {
    /// Integrations that have not ended and whose directory was to be changed, or whose source
    /// has ended without them.
    pub fn integrations_cut_off(&self) -> Result<Vec<Integration>, ProgressError> {
        self.trail.store().read(|sql| {
            let mut found = Vec::new();
            for one in table::open_integrations(sql)? {
                if !one.actions.is_empty() || is_stale(sql, &one)? {
                    found.push(one);
                }
            }
            Ok(found)
        })
    }

    /// Ends those of which nobody is at work any more. Says what became of each.
    ///
    /// Doing it again changes nothing.
    pub fn recover_integrations(&self, state: &State, by: &Actor) -> Result<Ended, ProgressError> {
        self.end_those(self.integrations_cut_off()?, state, by)
    }

    /// Ends those that keep the work of `source` from being taken over: its own, or another one
    /// of whoever takes it over. It is for whoever wants to begin.
    pub fn end_cut_off_before(
        &self,
        source: &WorkspaceId,
        state: &State,
        by: &Actor,
    ) -> Result<Ended, ProgressError> {
        let target = self.trail.store().read(|sql| {
            let made = table::made(sql, source)?;
            Ok::<_, ProgressError>(taker::of(sql, &made)?.target)
        })?;
        let mut cut_off = self.integrations_cut_off()?;
        let in_the_way = |one: &Integration| target.as_ref().is_some_and(|it| it.id == one.target);
        cut_off.retain(in_the_way);
        self.end_those(cut_off, state, by)
    }

    fn end_those(
        &self,
        cut_off: Vec<Integration>,
        state: &State,
        by: &Actor,
    ) -> Result<Ended, ProgressError> {
        let mut outcome = Ended::default();
        if cut_off.is_empty() {
            return Ok(outcome);
        }
        // Directories first: what was half done is ended there.
        state.recover()?;
        for one in cut_off {
            match self.end_cut_off(state, &one, by) {
                Ok(ended) => outcome.ended.extend(ended),
                Err(error) => outcome.failed.push((one, error)),
            }
        }
        Ok(outcome)
    }

    /// Ends one; `None` where somebody is at work, or has to decide something first.
    fn end_cut_off(
        &self,
        state: &State,
        one: &Integration,
        by: &Actor,
    ) -> Result<Option<Integration>, ProgressError> {
        let Some(_held) = state.hold_isolated(one.source.as_str())? else {
            return Ok(None);
        };
        if self.verify(&one.source)?.first_bad.is_some() {
            return Ok(None); // nothing is done with what is not as the trail tells
        }
        let mut done = None;
        for action in &one.actions {
            if state.has_recorded(action)? {
                done = Some(action);
            }
        }
        let stale = self.trail.store().read(|sql| is_stale(sql, one))?;
        if stale {
            self.trail.write(Durability::Sync, |writing| {
                self.abort_stale(writing, &one.source, by)
            })?;
            if let Some(action) = done {
                return Err(ProgressError::Unfit(format!(
                    "`{}` has ended, and its work was written all the same; `safepoint undo {action}` takes that back",
                    one.source
                )));
            }
        } else if done.is_some() {
            return self.conclude(one, by).map(Some);
        } else if one.conflicts.is_empty() {
            self.give_up(one, "cut_off", by)?;
        } else {
            return Ok(None); // it goes on where it is, when somebody resumes it
        }
        let now = self.integrations(&one.source)?;
        Ok(now
            .into_iter()
            .find(|it| it.target == one.target && it.turn == one.turn))
    }
}
