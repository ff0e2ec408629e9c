//! Metering: what the surface reports and what the clock says is written down, and compared
//! with what agents say.
//!
//! A difference is recorded. It never keeps a record from being made.

use safepoint_model::json::MAX_INTEGER;
use safepoint_model::{Timestamp, WorkspaceId};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde::Serialize;
use serde_json::json;

use crate::ProgressError;
use crate::account::Account;
use crate::meter::{self, Dimension, Meter, Strain, Tolerance};
use crate::progress::Progress;
use crate::record::{Record, WallTime};
use crate::state::State;
use crate::table::{self, Made, NewRow};
use crate::tell::protocol;

/// What a workspace took, by the runtime's own account.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metered {
    /// Which workspace.
    pub workspace_id: WorkspaceId,
    /// Tokens; `None` where nobody ever reported any.
    pub tokens_consumed: Option<u64>,
    /// Time at work: active or blocked.
    pub wall_time: WallTime,
    /// Money; `None` where nobody ever reported any.
    pub cost: Option<f64>,
    /// Bytes of records.
    pub checkpoint_bytes: u64,
    /// Time that counts toward the timeout: active, blocked or conflicted.
    pub toward_timeout: WallTime,
    /// The limits that are near or passed.
    pub strained: Vec<Strain>,
}

impl Metered {
    fn of(made: &Made, account: &Account) -> Self {
        Self {
            strained: made.budget.strains(&account.taken),
            workspace_id: made.id.clone(),
            tokens_consumed: account.taken.tokens,
            wall_time: WallTime::from_micros(account.taken.wall_micros),
            cost: account.taken.cost_micros.map(|micros| micros as f64 / 1e6),
            checkpoint_bytes: account.taken.record_bytes,
            toward_timeout: WallTime::from_micros(account.counted),
        }
    }
}

impl Progress {
    /// The same workspaces, with another tolerance for what agents say of themselves.
    #[must_use]
    pub fn with_tolerance(mut self, tolerance: Tolerance) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Adds what a workspace took since the last report: tokens, money or both.
    ///
    /// `by` is the surface that saw it; an agent has no say in this. What comes late, for a
    /// workspace that is over, is counted all the same: it was spent.
    pub fn account(
        &self,
        id: &WorkspaceId,
        tokens: Option<u64>,
        cost: Option<f64>,
        by: &Actor,
    ) -> Result<Metered, ProgressError> {
        let most_cost = MAX_INTEGER as f64 / 1e6;
        if tokens.is_some_and(|tokens| tokens > MAX_INTEGER)
            || cost.is_some_and(|cost| !meter::is_cost(cost) || cost > most_cost)
        {
            return Err(ProgressError::Invalid(format!(
                "tokens are from 0 to {MAX_INTEGER}, and cost is from 0 to {most_cost:.0}"
            )));
        }
        if tokens.is_none() && cost.is_none() {
            return self.meter(id);
        }
        self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            self.time_out_now(writing, &made)?;
            let (standing, _) = table::standing(writing.sql(), id)?;
            let timestamp = self.moment(writing)?;
            let mut account = table::account(writing.sql(), id)?.at(standing.state, timestamp);
            account.spend(tokens, cost.map(meter::cost_micros));
            let reckoned = made.reckoned(account, standing.state);
            let entry = writing.append(Draft {
                stream: Stream::from(id),
                actor: by.clone(),
                kind: Kind::fixed("resources_metered").into(),
                action_id: None,
                body: json!({
                    "workspace": id, "tokens_consumed": tokens, "cost": cost,
                    "total": {
                        "tokens_consumed": account.taken.shown(Dimension::Tokens),
                        "cost": account.taken.shown(Dimension::Cost),
                    },
                    "timestamp": timestamp,
                    "rows": table::marks(&reckoned.row),
                }),
            })?;
            table::insert_rows(writing.sql(), &reckoned.row, entry.seq)?;
            self.settle(writing, &made, &reckoned, Some(entry.seq))?;
            Ok(Metered::of(&made, &account))
        })
    }

    /// What a workspace took up to now. It costs the same however long its chain is.
    pub fn meter(&self, id: &WorkspaceId) -> Result<Metered, ProgressError> {
        self.trail.store().read(|sql| {
            let made = table::made(sql, id)?;
            let (standing, _) = table::standing(sql, id)?;
            let account = table::account(sql, id)?.at(standing.state, self.clock.now());
            Ok(Metered::of(&made, &account))
        })
    }

    /// Counts the time up to a move.
    pub(crate) fn meter_move<'a>(
        &self,
        writing: &mut Writing<'_>,
        made: &'a Made,
        (before, after): (State, State),
        time: Timestamp,
    ) -> Result<NewRow<'a>, ProgressError> {
        let account = table::account(writing.sql(), &made.id)?.at(before, time);
        Ok(table::account_row(made, &account, after))
    }

    /// Compares what the agent says of a record that was just made with what we know.
    pub(crate) fn meter_record(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        record: &Record,
        since: &Meter,
    ) -> Result<(), ProgressError> {
        let said = record.resource_usage.unwrap_or_default();
        for one in meter::discrepancies(&said, since, self.tolerance) {
            let timestamp = self.moment(writing)?;
            writing.append(Draft {
                stream: Stream::from(&made.id),
                actor: protocol(),
                kind: Kind::fixed("resource_discrepancy").into(),
                action_id: None,
                body: json!({
                    "checkpoint_id": record.id, "workspace": made.id, "field": one.field,
                    "agent_value": one.agent_value, "runtime_value": one.runtime_value,
                    "timestamp": timestamp,
                }),
            })?;
        }
        Ok(())
    }
}
