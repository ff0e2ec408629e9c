//! What `~`, `~NAME`, `$HOME` and a bare `cd` mean to the shell that runs the line.
//!
//! A shell takes `HOME` from its environment, or as the line sets it. Where `HOME` is not set,
//! bash asks the user database for `~`, while `$HOME` is empty.

use std::path::{Path, PathBuf};

use crate::deed::Surroundings;

use super::expand::Unit;
use super::state::{Argument, State, Value};
use super::syntax::Assignment;
use super::walk::Walker;

/// The variable that `~` stands for.
pub(super) const NAME: &str = "HOME";

/// Commands after which POSIX shells keep an assignment that stands before them.
const SPECIAL: [&str; 13] = [
    ":", ".", "source", "eval", "exec", "export", "readonly", "set", "shift", "times", "trap",
    "unset", "return",
];

const UNKNOWN: Unit = Unit::Unknown { splits: false };

/// What `~` becomes.
pub(super) fn of_tilde(around: &Surroundings<'_>, state: &State) -> Unit {
    match (state.variables.get(NAME), around.programs.home_variable()) {
        (Some(value), _) => of_value(value),
        (None, Some(home)) => home.to_str().map_or(UNKNOWN, of_text),
        (None, None) => around.home.and_then(Path::to_str).map_or(UNKNOWN, of_text),
    }
}

/// What a tilde becomes that stands for a variable with this value.
pub(super) fn of_value(value: &Value) -> Unit {
    match value {
        Value::One(values) => match values.as_slice() {
            [Argument::Known(text)] => Unit::Text(text.clone()),
            several => Unit::One(several.to_vec()),
        },
        Value::All(_) | Value::Unknown => UNKNOWN,
    }
}

/// What `$HOME` becomes, where the line has not set it.
pub(super) fn of_variable(around: &Surroundings<'_>, quoted: bool) -> Unit {
    match around.programs.home_variable() {
        Some(home) => home.to_str().map_or(UNKNOWN, |home| {
            // Unquoted, the shell splits what it holds.
            match quoted || !home.contains([' ', '\t', '\n']) {
                true => of_text(home),
                false => Unit::Unknown { splits: true },
            }
        }),
        None => match of_unset(around) {
            Value::One(values) => Unit::One(values),
            _ => Unit::Unknown { splits: !quoted },
        },
    }
}

/// What `~NAME` becomes. The user database of a network may have more names than this machine.
pub(super) fn of_account(around: &Surroundings<'_>, account: &str) -> Unit {
    let home = around.programs.home_of(account);
    home.as_deref()
        .and_then(Path::to_str)
        .map_or(UNKNOWN, of_text)
}

fn of_text(text: &str) -> Unit {
    Unit::Text(text.to_owned())
}

/// The values of `HOME` where it is not set: `$HOME` is empty, and `~` the account's. A login
/// shell sets it.
pub(super) fn of_unset(around: &Surroundings<'_>) -> Value {
    let known = |text: &str| Argument::Known(text.to_owned());
    match around.home.and_then(Path::to_str) {
        Some(home) => Value::One(vec![known(home), known("")]),
        None => Value::Unknown,
    }
}

impl Walker<'_> {
    /// The home directories that may hold credentials: that of the account, and the one that
    /// the environment names.
    pub(super) fn homes(&self) -> Vec<PathBuf> {
        let variable = self.around.programs.home_variable().map(PathBuf::from);
        let account = self.around.home.map(Path::to_owned);
        let mut homes: Vec<PathBuf> = account.into_iter().chain(variable).collect();
        homes.retain(|home| home.is_absolute());
        homes.dedup();
        homes
    }

    /// Where a `cd` without a directory goes.
    pub(super) fn home_target(&self, state: &State) -> Option<Argument> {
        match of_tilde(self.around, state) {
            Unit::Text(text) => Some(Argument::Known(text)),
            Unit::One(values) => match values.as_slice() {
                [only] => Some(only.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// Gives `HOME` a value for one command, whose words are expanded already. Returns what
    /// `end_assignment` puts back.
    pub(super) fn begin_assignment(
        &mut self,
        assignments: &[Assignment],
        state: &mut State,
    ) -> Option<HomeBefore> {
        let is_home = |assignment: &&Assignment| assignment.name == NAME;
        let assignment = assignments.iter().rfind(is_home)?;
        let before = HomeBefore {
            value: state.variables.get(NAME).cloned(),
            exported: state.exported.contains(NAME),
        };
        self.assign(assignment, state);
        state.exported.insert(NAME.to_owned());
        Some(before)
    }
}

/// What `HOME` was before the command that an assignment stands before.
pub(super) struct HomeBefore {
    value: Option<Value>,
    exported: bool,
}

/// Gives `HOME` the value it had before the command.
pub(super) fn end_assignment(before: HomeBefore, first: Option<&str>, state: &mut State) {
    if first.is_some_and(|first| SPECIAL.contains(&first)) {
        // Bash forgets it, and others do not.
        state.variables.insert(NAME.to_owned(), Value::Unknown);
        return;
    }
    match before.value {
        Some(value) => state.variables.insert(NAME.to_owned(), value),
        None => state.variables.remove(NAME),
    };
    if !before.exported {
        state.exported.remove(NAME);
    }
}
