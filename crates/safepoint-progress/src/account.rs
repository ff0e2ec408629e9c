//! The running account of a workspace: totals, carried on from one row to the next.
//!
//! Pure: it counts, and says when something will be due. Nothing is read or stored here.

use safepoint_model::json::MAX_INTEGER;
use safepoint_model::{Span, Timestamp};

use crate::meter::{Budget, Dimension, Meter, WARNING_FROM};
use crate::record::WallTime;
use crate::state::State;

/// Which dimensions something was said about already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(i64);

impl Marks {
    /// As it is stored.
    pub(crate) const fn from_bits(bits: i64) -> Self {
        Self(bits)
    }

    /// As it is stored.
    pub(crate) const fn bits(self) -> i64 {
        self.0
    }

    const fn bit(dimension: Dimension) -> i64 {
        // Stored: these never change.
        match dimension {
            Dimension::Tokens => 1,
            Dimension::WallTime => 2,
            Dimension::Cost => 4,
            Dimension::RecordBytes => 8,
        }
    }

    pub(crate) const fn has(self, dimension: Dimension) -> bool {
        self.0 & Self::bit(dimension) != 0
    }

    pub(crate) const fn add(&mut self, dimension: Dimension) {
        self.0 |= Self::bit(dimension);
    }
}

/// Everything that is counted for one workspace, up to some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    /// How many rows there are.
    pub(crate) number: i64,
    /// What was taken.
    pub(crate) taken: Meter,
    /// Microseconds that count toward the timeout.
    pub(crate) counted: u64,
    /// What had been taken when the last record was made.
    pub(crate) at_record: Meter,
    /// The limits that there was a warning of.
    pub(crate) warned: Marks,
    /// The limits that were passed.
    pub(crate) exceeded: Marks,
    /// The moment up to which time is counted.
    pub(crate) time: Timestamp,
    /// When something has to be done, by the last row.
    pub(crate) due: Option<Timestamp>,
}

impl Account {
    /// How every account begins.
    pub(crate) const NEW: Self = Self {
        number: 0,
        taken: Meter {
            tokens: None,
            wall_micros: 0,
            cost_micros: None,
            record_bytes: 0,
        },
        counted: 0,
        at_record: Meter {
            tokens: None,
            wall_micros: 0,
            cost_micros: None,
            record_bytes: 0,
        },
        warned: Marks(0),
        exceeded: Marks(0),
        time: Timestamp::from_micros(0),
        due: None,
    };

    /// The account at `now`, when the workspace was in `state` all the time.
    #[must_use]
    pub(crate) fn at(mut self, state: State, now: Timestamp) -> Self {
        let passed = now.as_micros().saturating_sub(self.time.as_micros());
        let passed = u64::try_from(passed).unwrap_or(0);
        if state.is_working() {
            self.taken.wall_micros = sum(self.taken.wall_micros, passed);
        }
        if state.is_timed() {
            self.counted = sum(self.counted, passed);
        }
        self.time = self.time.max(now);
        self
    }

    /// Adds what somebody reports.
    pub(crate) fn spend(&mut self, tokens: Option<u64>, cost_micros: Option<u64>) {
        let add = |total: &mut Option<u64>, more: Option<u64>| {
            if let Some(more) = more {
                *total = Some(sum(total.unwrap_or(0), more));
            }
        };
        add(&mut self.taken.tokens, tokens);
        add(&mut self.taken.cost_micros, cost_micros);
    }

    /// Adds a record, and says what was taken since the one before it.
    pub(crate) fn add_record(&mut self, bytes: u64) -> Meter {
        let bytes = sum(self.taken.record_bytes, bytes);
        self.with_record(bytes)
    }

    /// The same, by how many bytes there are with it.
    pub(crate) fn with_record(&mut self, bytes: u64) -> Meter {
        self.taken.record_bytes = bytes;
        let since = self.taken.since(self.at_record);
        self.at_record = self.taken;
        since
    }

    /// Whether the time is up.
    pub(crate) fn is_timed_out(&self, state: State, timeout: Option<Span>) -> bool {
        state.is_timed() && timeout.is_some_and(|timeout| self.counted >= timeout.as_micros())
    }

    /// When something has to be done if the workspace stays in `state`.
    pub(crate) fn next_due(
        &self,
        state: State,
        budget: &Budget,
        timeout: Option<Span>,
    ) -> Option<Timestamp> {
        let timeout = timeout
            .filter(|_| state.is_timed())
            .map(|timeout| timeout.as_micros().saturating_sub(self.counted));
        let limit = budget
            .wall_time
            .filter(|_| state.is_working())
            .map(WallTime::as_micros)
            .map(|limit| {
                let strained = match self.warned.has(Dimension::WallTime) {
                    true => limit.saturating_add(1),
                    false => limit.saturating_mul(WARNING_FROM).div_ceil(100),
                };
                strained.saturating_sub(self.taken.wall_micros)
            });
        let next = [timeout, limit].into_iter().flatten().min()?;
        let next = i64::try_from(next).unwrap_or(i64::MAX);
        Some(self.time.saturating_add_micros(next))
    }
}

/// The most that is counted is the most that every reader keeps exactly.
fn sum(total: u64, more: u64) -> u64 {
    total.saturating_add(more).min(MAX_INTEGER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    #[test]
    fn pr_20_the_clock_pauses_while_nobody_works() {
        let account = Account::NEW
            .at(State::Idle, at(1_000))
            .at(State::Active, at(1_010))
            .at(State::Suspended, at(1_500))
            .at(State::Blocked, at(1_507))
            .at(State::Migrating, at(1_900))
            .at(State::Integrating, at(2_000))
            .at(State::Conflicted, at(2_100))
            // A clock that goes back takes nothing away.
            .at(State::Active, at(5));
        assert_eq!(account.taken.wall_micros, 17);
        assert_eq!(account.counted, 117);
        assert_eq!(account.time, at(2_100));
    }

    #[test]
    fn pr_20_what_is_due_is_the_warning_then_the_limit_or_the_timeout() {
        let budget = Budget {
            wall_time: Some(WallTime::from_micros(101)),
            ..Budget::default()
        };
        let timeout = Some(Span::from_micros(90));
        let mut account = Account::NEW.at(State::Idle, at(1_000));
        assert_eq!(account.next_due(State::Idle, &budget, timeout), None);
        assert_eq!(
            account.next_due(State::Active, &budget, timeout),
            Some(at(1_081))
        );
        account = account.at(State::Active, at(1_081));
        assert_eq!(budget.strains(&account.taken).len(), 1);
        account.warned.add(Dimension::WallTime);
        assert_eq!(
            account.next_due(State::Active, &budget, timeout),
            Some(at(1_090))
        );
        assert_eq!(
            account.next_due(State::Active, &budget, None),
            Some(at(1_102))
        );
        assert_eq!(account.next_due(State::Suspended, &budget, timeout), None);
        assert_eq!(
            account.next_due(State::Conflicted, &budget, timeout),
            Some(at(1_090))
        );
        assert!(!account.is_timed_out(State::Active, timeout));
        assert!(
            account
                .at(State::Active, at(1_090))
                .is_timed_out(State::Active, timeout)
        );
        let over = account.at(State::Active, at(1_102));
        assert!(budget.strains(&over.taken)[0].is_exceeded);
        assert!(!budget.strains(&account.at(State::Active, at(1_101)).taken)[0].is_exceeded);
    }

    #[test]
    fn pr_20_a_record_is_compared_with_what_came_since_the_one_before() {
        let mut account = Account::NEW;
        account.spend(Some(100), None);
        assert_eq!(account.add_record(7).tokens, Some(100));
        account.spend(Some(30), Some(5));
        account.spend(Some(u64::MAX), None);
        let since = account.add_record(8);
        assert_eq!((since.cost_micros, since.record_bytes), (Some(5), 8));
        assert_eq!(account.taken.tokens, Some(MAX_INTEGER));
    }
}
