//! Problems while they are collected, before they have places.

use std::collections::HashSet;

use super::tree::Tree;
use super::{Place, Problem, Severity};

/// How many problems are listed; what is worse than that is hopeless anyway.
const MOST: usize = 1_000;

/// What was found so far.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: Vec<Finding>,
    seen: HashSet<(String, String)>,
    errors: usize,
    /// How many were left out because there are too many.
    left_out: usize,
    errors_only: bool,
}

#[derive(Debug)]
struct Finding {
    problem: Problem,
    /// Whether the key of the value is meant, and not the value.
    on_key: bool,
}

impl Findings {
    /// Keeps errors and forgets warnings.
    pub(super) fn errors_only() -> Self {
        Self {
            errors_only: true,
            ..Self::default()
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether nothing more will be listed: no need to think of hints.
    pub(super) fn is_full(&self) -> bool {
        self.found.len() >= MOST
    }

    /// Whether an error is known at `pointer`.
    pub(super) fn has_error_at(&self, pointer: &str) -> bool {
        self.found.iter().any(|finding| {
            finding.problem.severity == Severity::Error && finding.problem.pointer == pointer
        })
    }

    pub(super) fn push(&mut self, problem: Problem) {
        self.add(problem, false);
    }

    /// An error about the value at `pointer`.
    pub(super) fn error(&mut self, pointer: String, message: String, hint: impl Into<Hint>) {
        self.add(problem(Severity::Error, pointer, message, hint), false);
    }

    /// An error about the key at `pointer`.
    pub(super) fn key_error(&mut self, pointer: String, message: String, hint: impl Into<Hint>) {
        self.add(problem(Severity::Error, pointer, message, hint), true);
    }

    /// A warning about the value at `pointer`.
    pub(super) fn warning(&mut self, pointer: String, message: String, hint: impl Into<Hint>) {
        self.add(problem(Severity::Warning, pointer, message, hint), false);
    }

    /// A warning about the key at `pointer`.
    pub(super) fn key_warning(&mut self, pointer: String, message: String, hint: impl Into<Hint>) {
        self.add(problem(Severity::Warning, pointer, message, hint), true);
    }

    fn add(&mut self, problem: Problem, on_key: bool) {
        let error = problem.severity == Severity::Error;
        if self.errors_only && !error {
            return;
        }
        // The same is found twice when two checks look at one thing.
        if !self
            .seen
            .insert((problem.pointer.clone(), problem.message.clone()))
        {
            return;
        }
        self.errors += usize::from(error);
        // Errors matter more: warnings never take their room.
        let room = if error { MOST } else { MOST / 2 };
        if self.found.len() >= room {
            self.left_out += 1;
            return;
        }
        self.found.push(Finding { problem, on_key });
    }

    /// The problems with their places in `tree`, in the order in which they are shown.
    pub(super) fn located(self, tree: Option<&Tree>) -> Vec<Problem> {
        let mut problems: Vec<Problem> = self
            .found
            .into_iter()
            .map(|Finding { problem, on_key }| Problem {
                place: problem
                    .place
                    .or_else(|| tree.and_then(|tree| tree.place(&problem.pointer, on_key))),
                ..problem
            })
            .collect();
        let at = |place: Option<Place>| place.map(|place| (place.line, place.column));
        problems.sort_by_key(|problem| (std::cmp::Reverse(problem.severity), at(problem.place)));
        if self.left_out > 0 {
            problems.push(Problem {
                severity: if self.errors > 0 {
                    Severity::Error
                } else {
                    Severity::Warning
                },
                message: format!("{} more problems are not listed", self.left_out),
                hint: Some("mend the first ones, and check again".to_owned()),
                pointer: String::new(),
                place: None,
            });
        }
        problems
    }
}

/// A hint, or none.
pub(super) struct Hint(Option<String>);

impl From<&str> for Hint {
    fn from(hint: &str) -> Self {
        Self(Some(hint.to_owned()))
    }
}

impl From<String> for Hint {
    fn from(hint: String) -> Self {
        Self(Some(hint))
    }
}

impl From<Option<String>> for Hint {
    fn from(hint: Option<String>) -> Self {
        Self(hint)
    }
}

fn problem(severity: Severity, pointer: String, message: String, hint: impl Into<Hint>) -> Problem {
    Problem {
        severity,
        message,
        hint: hint.into().0,
        pointer,
        place: None,
    }
}
