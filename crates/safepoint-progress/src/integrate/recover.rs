//! Integrations that were cut off between the store and the directory.
//!
//! What the directory's own journal finished or dropped decides: if the action was done,
//! the integration is concluded; if not, it is given up, and may be tried again.

use safepoint_state::State;
use safepoint_trail::Actor;

use super::Integration;
use crate::{Progress, ProgressError, table};

impl Progress {
    /// Integrations that have not ended and whose directory was to be changed.
    pub fn integrations_cut_off(&self) -> Result<Vec<Integration>, ProgressError> {
        let open = self
            .trail
            .store()
            .read(|sql| Ok::<_, ProgressError>(table::open_integrations(sql)?))?;
        Ok(open
            .into_iter()
            .filter(|one| !one.actions.is_empty())
            .collect())
    }

    /// Ends those of which nobody is at work any more. Says what became of each.
    ///
    /// Doing it again changes nothing.
    pub fn recover_integrations(
        &self,
        state: &State,
        by: &Actor,
    ) -> Result<Vec<Integration>, ProgressError> {
        let cut_off = self.integrations_cut_off()?;
        if cut_off.is_empty() {
            return Ok(Vec::new());
        }
        // Directories first: what was half done is ended there.
        state.recover()?;
        let mut ended = Vec::new();
        for one in cut_off {
            let Some(_held) = state.hold_isolated(one.source.as_str())? else {
                continue; // somebody is at work
            };
            if self.verify(&one.source)?.first_bad.is_some() {
                continue; // nothing is done with what is not as the trail tells
            }
            let done = one
                .actions
                .iter()
                .any(|action| state.find_action(action.as_str()).is_ok());
            if done {
                ended.push(self.conclude(&one, by)?);
            } else if one.conflicts.is_empty() {
                self.give_up(&one, "cut_off", by)?;
                let now = self.integrations(&one.source)?;
                ended.extend(now.into_iter().find(|it| it.turn == one.turn));
            }
            // With conflicts it goes on where it is, when somebody resumes it.
        }
        Ok(ended)
    }
}
