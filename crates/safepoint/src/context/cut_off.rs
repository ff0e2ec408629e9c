//! Actions whose process was killed before it said how they ended.
//!
//! A command that may write records them first, so that nothing is taken back or captured as if
//! they had not been. One that only reads says what was cut off, and records nothing.

use safepoint_control::Control;
use safepoint_state::{Access, State};

use super::Context;
use crate::commands::passing;
use crate::error::CliError;

impl Context {
    /// Records what was cut off in this workspace, or says so.
    pub(super) fn settle_cut_off(&mut self, state: &State) -> Result<(), CliError> {
        // A server asks for many, and the actions happen elsewhere.
        if self.served.is_some() {
            return Ok(());
        }
        let control = Control::open(state.trail().clone(), self.control_surroundings()?)?;
        let mut cut_off = control.cut_off()?;
        if self.access == Access::Writing {
            let Ok(workspace) = self.workspace() else {
                return Ok(());
            };
            cut_off.retain(|it| it.workspace == workspace.root);
            if cut_off.is_empty() || self.unadopted.is_some() || !workspace.root.is_dir() {
                return Ok(());
            }
            passing::recover(self, &control, state, &workspace)?;
        } else if std::mem::replace(&mut self.told_cut_off, true) {
            return Ok(());
        }
        // What an agent client shows its model is no place for it.
        if self.agent.is_some() {
            return Ok(());
        }
        for it in cut_off.iter().filter(|it| it.has_checkpoint) {
            let (what, place) = (&it.summary, it.workspace.display());
            self.console.warn_always(&match self.access {
                Access::Writing => format!(
                    "`{what}` was cut off in `{place}`, and nobody saw how far it came: it is in `safepoint log` as `unknown` with what it was seen to write, and whatever else has changed since as `observed`"
                ),
                Access::Reading => format!(
                    "`{what}` was cut off in `{place}`, and what it wrote is not in the log yet: `safepoint checkpoint`, or any command that writes, records it"
                ),
            });
        }
        Ok(())
    }
}
