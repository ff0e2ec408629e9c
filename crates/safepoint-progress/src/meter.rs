//! What a workspace took by the runtime's own account, what it may take, and what agents say.
//!
//! Pure: three comparisons. What follows from them is done elsewhere.

use safepoint_model::json::MAX_INTEGER;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::record::{Usage, WallTime};
use crate::words::words;

words! {
    /// What is counted.
    Dimension, "dimension of a budget":
    /// Input and output tokens.
    Tokens = "tokens_consumed",
    /// Time in the states active and blocked.
    WallTime = "wall_time",
    /// Money.
    Cost = "cost",
    /// Bytes of records.
    RecordBytes = "checkpoint_bytes",
}

/// What was taken, in all or since some moment. Money is counted in millionths.
///
/// Tokens and money are known only where somebody reports them: until then they are not 0 but
/// unknown, and nobody can disagree with what was not measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// Tokens.
    pub tokens: Option<u64>,
    /// Microseconds at work.
    pub wall_micros: u64,
    /// Millionths of the unit of cost.
    pub cost_micros: Option<u64>,
    /// Bytes of records.
    pub record_bytes: u64,
}

impl Meter {
    /// What came since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        let known = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or(0)))
        };
        Self {
            tokens: known(self.tokens, earlier.tokens),
            wall_micros: self.wall_micros.saturating_sub(earlier.wall_micros),
            cost_micros: known(self.cost_micros, earlier.cost_micros),
            record_bytes: self.record_bytes.saturating_sub(earlier.record_bytes),
        }
    }

    /// What was taken of it; `None` where nobody counted.
    fn of(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Tokens => self.tokens,
            Dimension::WallTime => Some(self.wall_micros),
            Dimension::Cost => self.cost_micros,
            Dimension::RecordBytes => Some(self.record_bytes),
        }
    }

    /// The value as it is shown: tokens, seconds, units of cost or bytes; null where nobody counted.
    pub fn shown(&self, dimension: Dimension) -> Value {
        self.of(dimension)
            .map_or(Value::Null, |amount| shown(dimension, amount))
    }
}

fn shown(dimension: Dimension, amount: u64) -> Value {
    match dimension {
        Dimension::Tokens | Dimension::RecordBytes => json!(amount),
        Dimension::WallTime => json!(WallTime::from_micros(amount)),
        Dimension::Cost => json!(amount as f64 / 1e6),
    }
}

/// Millionths of a cost.
pub fn cost_micros(cost: f64) -> u64 {
    // A cast saturates, and takes what is no number for 0.
    ((cost * 1e6).round() as u64).min(MAX_INTEGER)
}

/// Whether money can be so much.
pub(crate) fn is_cost(cost: f64) -> bool {
    cost.is_finite() && cost >= 0.0
}

/// What a workspace may take. Nothing given is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// The most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The longest time at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_time: Option<WallTime>,
    /// The most money.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The most bytes of records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_bytes: Option<u64>,
}

/// The part of a limit, in hundredths, from which on there is a warning.
pub(crate) const WARNING_FROM: u64 = 80;

/// A limit that is near or passed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Strain {
    /// Which limit.
    pub dimension: Dimension,
    /// Whether it is passed, and not only near.
    pub is_exceeded: bool,
    /// What was taken.
    pub used: Value,
    /// What may be.
    pub limit: Value,
}

impl Budget {
    /// Whether nothing is limited.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with the limits, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.cost.is_some_and(|cost| !is_cost(cost)) {
            return Some("the limit of a cost is not a number from 0 on");
        }
        let large = |limit: Option<u64>| limit.is_some_and(|limit| limit > MAX_INTEGER);
        if large(self.tokens) || large(self.checkpoint_bytes) {
            return Some("a limit is too large");
        }
        None
    }

    fn limit(&self, dimension: Dimension) -> Option<u64> {
        match dimension {
            Dimension::Tokens => self.tokens,
            Dimension::WallTime => self.wall_time.map(WallTime::as_micros),
            Dimension::Cost => self.cost.map(cost_micros),
            Dimension::RecordBytes => self.checkpoint_bytes,
        }
    }

    /// The limits that are near or passed.
    pub fn strains(&self, meter: &Meter) -> Vec<Strain> {
        let strain = |dimension: &Dimension| {
            let (limit, used) = (self.limit(*dimension)?, meter.of(*dimension)?);
            (u128::from(used) * 100 >= u128::from(limit) * u128::from(WARNING_FROM)).then(|| {
                Strain {
                    dimension: *dimension,
                    is_exceeded: used > limit,
                    used: shown(*dimension, used),
                    limit: shown(*dimension, limit),
                }
            })
        };
        Dimension::ALL.iter().filter_map(strain).collect()
    }
}

/// How far an agent's account may be from ours, in hundredths of ours, before it is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tolerance {
    /// For tokens.
    pub tokens: u32,
    /// For time.
    pub wall_time: u32,
    /// For money.
    pub cost: u32,
}

impl Default for Tolerance {
    fn default() -> Self {
        Self {
            tokens: 5,
            wall_time: 5,
            cost: 5,
        }
    }
}

/// A field in which the two accounts differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Discrepancy {
    /// Which field.
    pub field: Dimension,
    /// What the agent says.
    pub agent_value: Value,
    /// What we counted.
    pub runtime_value: Value,
}

/// Where an agent's account differs from `measured` by more than `tolerance`.
///
/// What the agent does not say, and what nobody measured, differs in nothing.
pub fn discrepancies(said: &Usage, measured: &Meter, tolerance: Tolerance) -> Vec<Discrepancy> {
    let fields = [
        (Dimension::Tokens, said.tokens_consumed, tolerance.tokens),
        (
            Dimension::WallTime,
            said.wall_time.map(WallTime::as_micros),
            tolerance.wall_time,
        ),
        (Dimension::Cost, said.cost.map(cost_micros), tolerance.cost),
    ];
    let differs = |(field, said, tolerance): (Dimension, Option<u64>, u32)| {
        let (said, ours) = (said?, measured.of(field)?);
        let off = u128::from(said.abs_diff(ours)) * 100;
        (off > u128::from(ours) * u128::from(tolerance)).then(|| Discrepancy {
            field,
            agent_value: shown(field, said),
            runtime_value: shown(field, ours),
        })
    };
    fields.into_iter().filter_map(differs).collect()
}

#[cfg(test)]
mod tests;
