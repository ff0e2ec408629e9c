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
use crate::table::{self, Made, NewRow};
use crate::tell::protocol;

/// So many moments that no longer matter are looked past before they are swept aside for good.
const SWEEP_FROM: usize = 64;

/// An account that is about to be written down, and which limits it is the first to come near
/// or to pass.
pub(crate) struct Reckoned<'a> {
    pub(crate) row: [NewRow<'a>; 1],
    /// Whether something else is due than before.
    is_due_anew: bool,
    state: State,
    near: Vec<Strain>,
    passed: Vec<Strain>,
}

impl Made {
    /// Compares an account with the limits.
    pub(crate) fn reckoned(&self, mut account: Account, state: State) -> Reckoned<'_> {
        let mut strains = self.budget.strains(&account.taken);
        if state.is_terminal() {
            strains.clear();
        }
        let (mut near, mut passed) = (Vec::new(), Vec::new());
        for strain in strains {
            // Both when one step jumps over both: there is a warning before, always.
            if !account.warned.has(strain.dimension) {
                account.warned.add(strain.dimension);
                near.push(strain.clone());
            }
            if strain.is_exceeded && !account.exceeded.has(strain.dimension) {
                account.exceeded.add(strain.dimension);
                passed.push(strain);
            }
        }
        Reckoned {
            row: [table::account_row(self, &account, state)],
            is_due_anew: account.next_due(state, &self.budget, self.timeout) != account.due,
            state,
            near,
            passed,
        }
    }
}

impl<'a> Reckoned<'a> {
    /// The row that a record needs: none, where all that it changes follows from its own.
    pub(crate) fn row_for_record(&self) -> &[NewRow<'a>] {
        let changed = self.is_due_anew || !self.near.is_empty() || !self.passed.is_empty();
        match changed {
            true => &self.row,
            false => &[],
        }
    }
}

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
        let reckoned = made.reckoned(account, standing.state);
        self.settle(writing, &made, &reckoned, None)?;
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

    /// Warns of each limit that is near, and fails the workspace when one is passed. Without an
    /// `entry` that has the mark of the row, the row is written with the first one here.
    ///
    /// When its agent is done with it (integrating or later) the work is not thrown away for
    /// what is reported late: that a limit was passed is recorded, and changes nothing.
    pub(crate) fn settle(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        reckoned: &Reckoned<'_>,
        mut entry: Option<u64>,
    ) -> Result<(), ProgressError> {
        let near = reckoned
            .near
            .iter()
            .map(|strain| ("budget_warning", strain));
        let passed = reckoned.passed.iter();
        for (kind, strain) in near.chain(passed.map(|strain| ("budget_exceeded", strain))) {
            let rows = match entry {
                Some(_) => &[],
                None => reckoned.row.as_slice(),
            };
            entry = Some(self.strained(writing, made, kind, strain, rows)?);
        }
        if entry.is_none() {
            // Nothing was near after all, and still the next look is at another moment.
            let told = writing.append(Draft {
                stream: Stream::from(&made.id),
                actor: protocol(),
                kind: Kind::fixed("resources_metered").into(),
                action_id: None,
                body: json!({"workspace": made.id, "rows": table::marks(&reckoned.row)}),
            })?;
            table::insert_rows(writing.sql(), &reckoned.row, told.seq)?;
        }
        let is_over = matches!(reckoned.state, State::Integrating | State::Conflicted);
        if let Some(first) = reckoned.passed.first().filter(|_| !is_over) {
            let cause = Cause {
                reason: Some("budget_exceeded"),
                dimension: Some(first.dimension),
            };
            self.transition_for(writing, made, State::Failed, cause, protocol())?
                .map_err(ProgressError::from)?;
        }
        Ok(())
    }

    /// Tells of a limit, and writes the rows that come with that; says where it is told.
    fn strained(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        kind: &'static str,
        strain: &Strain,
        rows: &[NewRow<'_>],
    ) -> Result<u64, ProgressError> {
        let timestamp = self.moment(writing)?;
        let entry = writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: protocol(),
            kind: Kind::fixed(kind).into(),
            action_id: None,
            body: json!({
                "workspace": made.id, "budget_dimension": strain.dimension,
                "used": strain.used, "limit": strain.limit, "timestamp": timestamp,
                "rows": table::marks(rows),
            }),
        })?;
        table::insert_rows(writing.sql(), rows, entry.seq)?;
        Ok(entry.seq)
    }
}
