//! Limits: budgets and timeouts, held to from the runtime's own account and nothing else.
//!
//! There is no daemon: whoever comes next does what is due. What is in flight completes first;
//! then a workspace that took too much fails. Where both hold, the timeout is looked at first.

use safepoint_model::WorkspaceId;
use safepoint_store::Durability;
use safepoint_trail::{Draft, Kind, Stream, Writing, newest_time};
use serde_json::json;

use crate::ProgressError;
use crate::account::Account;
use crate::meter::Strain;
use crate::moves::Cause;
use crate::progress::Progress;
use crate::state::State;
use crate::table::{self, Made};
use crate::tell::protocol;

/// So many moments that no longer matter are looked past before they are swept aside for good.
const SWEEP_FROM: usize = 64;

impl Progress {
    /// Fails what is over its timeout or its limit of time, warns of what is near it, and says
    /// which workspaces failed.
    ///
    /// Doing it again changes nothing. Where nothing is due it is one query.
    pub fn tick(&self) -> Result<Vec<WorkspaceId>, ProgressError> {
        let now = self.clock.now();
        let found = self.trail.store().read(|sql| table::due(sql, now))?;
        if found.len() < SWEEP_FROM && !found.iter().any(|due| due.holds) {
            return Ok(Vec::new());
        }
        self.trail.write(Durability::Sync, |writing| {
            let newest = newest_time(writing.sql())?;
            let found = table::due(writing.sql(), now)?;
            let mut failed = Vec::new();
            for due in found.iter().filter(|due| due.holds) {
                if self.strike(writing, &due.workspace)? {
                    failed.push(due.workspace.clone());
                }
            }
            // Every later row has a later time than the newest entry had, and is due later still.
            let swept = newest.map_or(now, |newest| newest.min(now));
            if found.len() >= SWEEP_FROM {
                table::insert_sweep(writing.sql(), swept)?;
            }
            Ok(failed)
        })
    }

    /// Does what is due in one workspace, and says whether it failed.
    fn strike(&self, writing: &mut Writing<'_>, id: &WorkspaceId) -> Result<bool, ProgressError> {
        let made = table::made(writing.sql(), id)?;
        let (standing, _) = table::standing(writing.sql(), id)?;
        if standing.state.is_terminal() {
            // The one above it failed in this same sweep, and it with it.
            return Ok(false);
        }
        let now = self.moment(writing)?;
        let account = table::account(writing.sql(), id)?.at(standing.state, now);
        if self.time_out(writing, &made, &account, standing.state)? {
            return Ok(true);
        }
        self.settle(writing, &made, account, standing.state)?;
        let (after, _) = table::standing(writing.sql(), id)?;
        Ok(after != standing && after.state == State::Failed)
    }

    /// Fails a workspace whose time is up at the moment of `account`, and says whether it was.
    pub(crate) fn time_out(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        account: &Account,
        state: State,
    ) -> Result<bool, ProgressError> {
        if !account.is_timed_out(state, made.timeout) {
            return Ok(false);
        }
        let reason = match state {
            State::Conflicted => "conflict_timeout",
            _ => "timeout",
        };
        self.transition(writing, made, State::Failed, Some(reason), protocol())?
            .map_err(ProgressError::from)?;
        Ok(true)
    }

    /// The same, for whoever acts in a workspace before anybody looked at the time.
    pub(crate) fn time_out_now(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
    ) -> Result<(), ProgressError> {
        if made.timeout.is_some() {
            let (standing, _) = table::standing(writing.sql(), &made.id)?;
            let now = self.moment(writing)?;
            let account = table::account(writing.sql(), &made.id)?.at(standing.state, now);
            self.time_out(writing, made, &account, standing.state)?;
        }
        Ok(())
    }

    /// Writes an account down, warns once of each limit that is near, and fails the workspace
    /// when one is passed.
    ///
    /// When its agent is done with it (integrating or later) the work is not thrown away for
    /// what is reported late: that a limit was passed is recorded, and changes nothing.
    pub(crate) fn settle(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        mut account: Account,
        state: State,
    ) -> Result<(), ProgressError> {
        let mut strains = made.budget.strains(&account.taken);
        if state.is_terminal() {
            strains.clear();
        }
        let (mut near, mut passed) = (Vec::new(), Vec::new());
        for strain in &strains {
            // Both when one step jumps over both: there is a warning before, always.
            if !account.warned.has(strain.dimension) {
                account.warned.add(strain.dimension);
                near.push(strain);
            }
            if strain.is_exceeded && !account.exceeded.has(strain.dimension) {
                account.exceeded.add(strain.dimension);
                passed.push(strain);
            }
        }
        table::insert_account(writing.sql(), made, &account, state)?;
        for strain in near {
            self.strained(writing, made, "budget_warning", strain)?;
        }
        for strain in &passed {
            self.strained(writing, made, "budget_exceeded", strain)?;
        }
        let is_over = matches!(state, State::Integrating | State::Conflicted);
        if let Some(first) = passed.first().filter(|_| !is_over) {
            let cause = Cause {
                reason: Some("budget_exceeded"),
                dimension: Some(first.dimension),
            };
            self.transition_for(writing, made, State::Failed, cause, protocol())?
                .map_err(ProgressError::from)?;
        }
        Ok(())
    }

    fn strained(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        kind: &'static str,
        strain: &Strain,
    ) -> Result<(), ProgressError> {
        let timestamp = self.moment(writing)?;
        writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: protocol(),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body: json!({
                "workspace": made.id, "budget_dimension": strain.dimension,
                "used": strain.used, "limit": strain.limit, "timestamp": timestamp,
            }),
        })?;
        Ok(())
    }
}
