//! Whether something holds, as `mutate` and `verify` tell it.

use safepoint_model::text;
use safepoint_state::mutate::{Checked, Outcome, Verdict, Weight};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{BAD, FAINT, GOOD, WARNING};

/// What was checked, and what came of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerdictDocument {
    /// `PASS`, `FAIL` or `INCONCLUSIVE`.
    verdict: &'static str,
    checks_run: Vec<CheckDocument>,
    failures: Vec<FailureDocument>,
    coverage: Coverage,
}

/// One check.
#[derive(Serialize, JsonSchema)]
struct CheckDocument {
    name: String,
    /// `invariant` for what always must hold, `assertion` for what was asked.
    #[serde(rename = "type")]
    kind: &'static str,
    /// On what.
    target: String,
    /// `PASS`, `FAIL` or `INCONCLUSIVE`.
    result: &'static str,
    /// What was seen.
    evidence: String,
}

/// One check that does not hold.
#[derive(Serialize, JsonSchema)]
struct FailureDocument {
    check: String,
    expected: String,
    actual: String,
    /// `high` when the whole falls with it, otherwise `low`.
    severity: &'static str,
}

/// How much of what could be checked was.
#[derive(Serialize, JsonSchema)]
struct Coverage {
    checked: usize,
    total: usize,
    percentage: f64,
}

const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "PASS",
        Outcome::Fail => "FAIL",
        Outcome::Inconclusive => "INCONCLUSIVE",
    }
}

impl From<&Verdict> for VerdictDocument {
    fn from(verdict: &Verdict) -> Self {
        let asked = |check: &&Checked| matches!(check.name, "command" | "query");
        let checked = verdict.checks.len();
        let total = verdict.possible.max(checked);
        Self {
            verdict: word(verdict.outcome()),
            checks_run: verdict
                .checks
                .iter()
                .map(|check| CheckDocument {
                    name: check.name.to_owned(),
                    kind: if asked(&check) {
                        "assertion"
                    } else {
                        "invariant"
                    },
                    target: check.target.clone(),
                    result: word(check.outcome),
                    evidence: check.actual.clone(),
                })
                .collect(),
            failures: verdict
                .checks
                .iter()
                .filter(|check| check.outcome != Outcome::Pass)
                .map(|check| FailureDocument {
                    check: check.name.to_owned(),
                    expected: check.expected.clone(),
                    actual: check.actual.clone(),
                    severity: match check.weight {
                        Weight::Decides => "high",
                        Weight::Tells => "low",
                    },
                })
                .collect(),
            coverage: Coverage {
                checked,
                total,
                percentage: (checked as f64 / total as f64 * 1000.0).round() / 10.0,
            },
        }
    }
}

impl VerdictDocument {
    /// The share of what could be checked that was, and held.
    pub(super) fn confidence(&self) -> f64 {
        let held = self
            .checks_run
            .iter()
            .filter(|check| check.result == "PASS")
            .count();
        (held as f64 / self.coverage.total as f64 * 1000.0).floor() / 1000.0
    }

    /// One line for each check.
    pub(super) fn lines(&self) -> String {
        let mut shown = String::new();
        for check in &self.checks_run {
            let (style, mark) = match check.result {
                "PASS" => (GOOD, "✓"),
                "FAIL" => (BAD, "✗"),
                _ => (WARNING, "?"),
            };
            let name = check.name.replace('_', " ");
            let evidence = text::shorten(&text::line(&check.evidence).text, 100);
            shown.push_str(&format!(
                "  {style}{mark}{style:#} {name}  {FAINT}{evidence}{FAINT:#}\n"
            ));
        }
        shown
    }
}
