//! Whether a change holds: what was checked, and what came of it.

use serde::Serialize;

use crate::Ending;

/// What came of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Outcome {
    /// It holds.
    #[serde(rename = "PASS")]
    Pass,
    /// It does not.
    #[serde(rename = "FAIL")]
    Fail,
    /// It could not be told.
    #[serde(rename = "INCONCLUSIVE")]
    Inconclusive,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What it is called.
    pub name: &'static str,
    /// On what.
    pub target: String,
    /// What came of it.
    pub outcome: Outcome,
    /// What should have been.
    pub expected: String,
    /// What was seen.
    pub actual: String,
    /// Whether the whole stands or falls with it.
    pub weight: Weight,
}

/// Whether the whole stands or falls with a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// It does.
    Decides,
    /// It is only told.
    Tells,
}

/// All checks of one thing.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// Those that were made.
    pub checks: Vec<Checked>,
    /// How many could have been made.
    pub possible: usize,
    /// Whether the user's own check ended by itself.
    pub ending: Ending,
}

impl Verdict {
    /// What all of them say together.
    pub fn outcome(&self) -> Outcome {
        let any = |outcome| {
            self.checks
                .iter()
                .any(|check| check.weight == Weight::Decides && check.outcome == outcome)
        };
        if any(Outcome::Fail) {
            Outcome::Fail
        } else if any(Outcome::Inconclusive) || self.checks.is_empty() {
            Outcome::Inconclusive
        } else {
            Outcome::Pass
        }
    }
}
