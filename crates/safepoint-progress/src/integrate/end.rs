//! The end of an integration: taken over, or given up. Each is one transaction.

use safepoint_model::WorkspaceId;
use safepoint_store::{Durability, Sql, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::begin::{again, number_of};
use super::{Bringing, Integration, Mode, Outcome, Resolved, Settling};
use crate::error::without_nul;
use crate::signal::SignalType;
use crate::state::State as WorkspaceState;
use crate::{Progress, ProgressError, table};

impl Progress {
    /// Records that the directory was changed: the work is taken over, and the source closed.
    pub fn conclude(&self, one: &Integration, by: &Actor) -> Result<Integration, ProgressError> {
        let ended = self.trail.write(Durability::Sync, |writing| {
            let found = again(writing, one)?;
            if found.result == Some(Outcome::Aborted) {
                let actions: Vec<&str> = found.actions.iter().map(|id| id.as_str()).collect();
                return Err(ProgressError::Unfit(format!(
                    "the integration of `{}` was given up meanwhile; `safepoint undo {}` takes the change of the directory back",
                    found.source,
                    actions.join(" ")
                )));
            }
            if found.result.is_none() {
                self.finish(writing, &found, by)?;
            }
            again(writing, one)
        })?;
        fault::point("integrate.concluded");
        self.deliver()?;
        Ok(ended)
    }

    /// The same inside the present transaction.
    pub(super) fn finish(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        if !one.is_settled() {
            let why = format!("`{}` has conflicts that nobody resolved yet", one.source);
            return Err(ProgressError::Unfit(why));
        }
        let result = match one.conflicts.is_empty() {
            true => Outcome::Success,
            false => Outcome::ConflictResolved,
        };
        let time = self.moment(writing)?;
        let row = [table::end_row(one, result, None, time)];
        let entry = writing.append(Draft {
            stream: Stream::from(&one.source),
            actor: by.clone(),
            kind: Kind::fixed("integration_completed").into(),
            action_id: one.actions.last().cloned(),
            body: json!({
                "source": one.source, "target": one.target, "mode": one.mode, "strategy": one.strategy,
                "checkpoint_ref": one.checkpoint_ref, "result": result, "timestamp": time,
                "rows": table::marks(&row),
            }),
        })?;
        table::insert_rows(writing.sql(), &row, entry.seq)?;
        if one.mode == Mode::Normal {
            let made = table::made(writing.sql(), &one.source)?;
            let reason = Some("integrated");
            self.transition(writing, &made, WorkspaceState::Closed, reason, by.clone())?
                .map_err(ProgressError::from)?;
        }
        let target = table::made(writing.sql(), &one.target)?;
        let about = Some(one.checkpoint_ref.as_str());
        self.tell(
            writing,
            &target,
            by.clone(),
            SignalType::Integrate,
            None,
            about,
        )?;
        Ok(())
    }

    /// Gives an integration up. The workspace stays as it is, and may be integrated again.
    pub fn give_up(
        &self,
        one: &Integration,
        reason: &str,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        without_nul("a reason", Some(reason))?;
        self.trail.write(Durability::Sync, |writing| {
            let found = again(writing, one)?;
            match found.result {
                None => self.abort(writing, &found, reason, by),
                Some(_) => Ok(()),
            }
        })
    }

    pub(super) fn abort(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        reason: &str,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        if reason == "conflict_timeout" {
            self.settle_late(writing, one, by)?;
        }
        let time = self.moment(writing)?;
        let row = [table::end_row(one, Outcome::Aborted, Some(reason), time)];
        let entry = writing.append(Draft {
            stream: Stream::from(&one.source),
            actor: by.clone(),
            kind: Kind::fixed("integration_aborted").into(),
            action_id: one.actions.last().cloned(),
            body: json!({
                "source": one.source, "target": one.target, "mode": one.mode,
                "reason": reason, "timestamp": time, "rows": table::marks(&row),
            }),
        })?;
        table::insert_rows(writing.sql(), &row, entry.seq)?;
        Ok(())
    }

    /// Records of each conflict that is left that nobody resolved it in time.
    fn settle_late(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let late = Resolved {
            strategy: Settling::Timeout,
            choice: None,
            content: None,
        };
        for conflict in &one.conflicts {
            let number = number_of(&conflict.id);
            if let (None, Some(number)) = (&conflict.resolution, number) {
                self.settle_conflict(writing, one, number, conflict, &late, by)?;
            }
        }
        Ok(())
    }

    /// Gives up integrations of a workspace, on either side, whose source has ended without
    /// them: they can lead nowhere, and would keep the parent from taking over anything else.
    pub(super) fn abort_stale(
        &self,
        writing: &mut Writing<'_>,
        id: &WorkspaceId,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        for one in table::open_integrations_with(writing.sql(), id)? {
            if is_stale(writing.sql(), &one)? {
                self.abort(writing, &one, "source_ended", by)?;
            }
        }
        Ok(())
    }

    /// Whether a directory may be changed for this integration now: it is looked at last thing
    /// before that, since others may have ended it meanwhile.
    pub fn still_wanted(&self, bringing: &Bringing, by: &Actor) -> Result<(), ProgressError> {
        let one = &bringing.integration;
        self.trail.write(Durability::Sync, |writing| {
            self.abort_stale(writing, &one.source, by)?;
            let found = again(writing, one)?;
            Ok::<_, ProgressError>(match found.result {
                None if found.is_settled() => Ok(()),
                None => Err(ProgressError::Unfit(format!(
                    "`{}` has conflicts that nobody resolved yet; nothing was changed",
                    one.source
                ))),
                Some(_) => Err(ProgressError::Unfit(format!(
                    "the integration of `{}` has ended meanwhile; nothing was changed",
                    one.source
                ))),
            })
        })?
    }

    /// Gives up what a workspace that has failed was in the middle of.
    pub(crate) fn abort_open(
        &self,
        writing: &mut Writing<'_>,
        id: &WorkspaceId,
        reason: Option<&str>,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        for one in table::open_integrations_with(writing.sql(), id)? {
            self.abort(writing, &one, reason.unwrap_or("failed"), by)?;
        }
        Ok(())
    }
}

/// Whether an integration that has not ended cannot end any more, since its source has.
pub(super) fn is_stale(sql: &mut dyn Sql, one: &Integration) -> Result<bool, ProgressError> {
    let (standing, _) = table::standing(sql, &one.source)?;
    Ok(match one.mode {
        Mode::Normal => standing.state.is_terminal(),
        Mode::Salvage => standing.state != WorkspaceState::Failed,
    })
}
