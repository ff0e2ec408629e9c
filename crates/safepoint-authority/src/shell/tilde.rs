//! Tildes that the parser does not find, since they begin a word only once braces have made it,
//! or stand within one: in assignments, and in what looks like one.
//!
//! Bash in its own mode is the measure. Where shells, or versions of one, read a tilde
//! differently, what it becomes is unknown. Nothing is read from the machine.

use super::expand::{Expander, Unit};
use super::home;

/// Where a word stands, which says what tildes in it mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TildeContext {
    /// A word of a command: what looks like an assignment is expanded like one.
    Command,
    /// The value of an assignment: what follows a colon is expanded too.
    Value,
    /// Anything else. Shells differ about what looks like an assignment here.
    Other,
}

/// What a tilde is at its place.
enum Tilde {
    /// An account, or nothing, and how many letters that takes with the tilde.
    Prefix(String, usize),
    /// A letter like any other.
    Letter,
    /// One or the other.
    Unclear,
}

impl Expander<'_> {
    /// The same units, with what the tildes among them stand for.
    pub(super) fn tildes(&self, units: Vec<Unit>, context: TildeContext) -> Vec<Unit> {
        let letters = || units.iter().map(letter);
        // `[[ a =~ b ]]`
        if letters().all(|it| it != Some('~')) || letters().eq("=~".chars().map(Some)) {
            return units;
        }
        let assigns_at = match context {
            TildeContext::Command => assignment(&units),
            TildeContext::Value | TildeContext::Other => None,
        };
        let mut made = Vec::with_capacity(units.len());
        let mut has_equals = false;
        let mut at = 0;
        while let Some(unit) = units.get(at) {
            if letter(unit) != Some('~') {
                has_equals |= letter(unit) == Some('=');
                made.push(unit.clone());
                at += 1;
                continue;
            }
            let before = at.checked_sub(1).and_then(|before| units.get(before));
            let is_assigned = assigns_at.is_some_and(|start| start < at);
            let tilde = match before.map(letter) {
                None => prefix(units.get(at + 1..).unwrap_or_default()),
                Some(Some('=')) if assigns_at.is_some_and(|start| start + 1 == at) => {
                    prefix(units.get(at + 1..).unwrap_or_default())
                }
                Some(Some(':')) if is_assigned || context == TildeContext::Value => {
                    prefix(units.get(at + 1..).unwrap_or_default())
                }
                Some(Some('=' | ',' | '{')) => Tilde::Unclear,
                Some(Some(':')) if has_equals => Tilde::Unclear,
                Some(_) => Tilde::Letter,
            };
            match tilde {
                Tilde::Prefix(account, length) => {
                    made.push(self.tilde(&account));
                    at += length;
                }
                Tilde::Letter => {
                    made.push(unit.clone());
                    at += 1;
                }
                Tilde::Unclear => {
                    made.push(Unit::Unknown { splits: false });
                    at += 1;
                }
            }
        }
        made
    }

    /// What `~` or `~ACCOUNT` becomes.
    pub(super) fn tilde(&self, account: &str) -> Unit {
        match account {
            "" => home::of_tilde(self.around, self.state),
            "+" => match self.state.variables.get("PWD") {
                Some(value) => home::of_value(value),
                None => self.directory(true),
            },
            account => home::of_account(self.around, account),
        }
    }
}

fn letter(unit: &Unit) -> Option<char> {
    match unit {
        Unit::Letter(letter) => Some(*letter),
        _ => None,
    }
}

/// What a tilde with these units behind it is, where a tilde is expanded.
fn prefix(after: &[Unit]) -> Tilde {
    let mut account = String::new();
    for unit in after {
        match letter(unit) {
            Some('/' | ':') => break,
            Some(next) if next.is_ascii_alphanumeric() || "._-+".contains(next) => {
                account.push(next);
            }
            // A pattern of names that begin with it.
            Some('*' | '?') => return Tilde::Letter,
            // Some shells expand it once they know what follows.
            _ => return Tilde::Unclear,
        }
    }
    let length = account.len() + 1;
    Tilde::Prefix(account, length)
}

/// Where the `=` stands in `NAME=…`, `NAME+=…` or `NAME[…]=…`.
fn assignment(units: &[Unit]) -> Option<usize> {
    let at = |index: usize| units.get(index).and_then(letter);
    at(0).filter(|first| first.is_ascii_alphabetic() || *first == '_')?;
    let is_of_name =
        |unit: &Unit| letter(unit).is_some_and(|next| next.is_ascii_alphanumeric() || next == '_');
    let mut end = units.iter().position(|unit| !is_of_name(unit))?;
    if at(end) == Some('[') {
        let index = units.iter().skip(end);
        end += index.take_while(|unit| letter(unit) != Some(']')).count() + 1;
    }
    if at(end) == Some('+') {
        end += 1;
    }
    (at(end) == Some('=')).then_some(end)
}
