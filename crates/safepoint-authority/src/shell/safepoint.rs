//! Safepoint called by a line: an agent may ask and look, never decide.

use super::actions::{self, CONTROL, EXEC, READ, WRITE};
use super::state::{Argument, State};
use super::walk::Walker;
use crate::Role;

/// Commands that only look.
pub const SAFEPOINT_READS: [&str; 43] = [
    "atlas check",
    "atlas replay",
    "atlas schema",
    "atlas show",
    "atlas test",
    "audit",
    "completions",
    "diff",
    "du",
    "help",
    "hold list",
    "hold show",
    "list",
    "log",
    "man",
    "notify list",
    "operator list",
    "permit list",
    "permit show",
    "schema",
    "session list",
    "session show",
    "show",
    "status",
    "task list",
    "task show",
    "token list",
    "trail check-bundle",
    "trail check-proof",
    "trail head",
    "trail list",
    "trail prove",
    "trail show",
    "trail verify",
    "trust list",
    "workspace final",
    "workspace head",
    "workspace list",
    "workspace log",
    "workspace show",
    "workspace signals",
    "workspace verify",
    "workspace watch",
];

/// Commands of an agent's own work, judged where they get there. Whatever is in neither list is
/// an operator's: to end a session, too, since the next one is under other rules.
pub const SAFEPOINT_ASKS: [&str; 18] = [
    "checkpoint",
    // It starts what the settings of clients name.
    "doctor",
    "exec",
    "hook",
    "mutate",
    "redo",
    "rollback",
    "session access",
    "session answer",
    "session ask",
    "session input",
    "session report",
    "session request",
    "session start",
    "undo",
    "verify",
    // With the token of its workspace; everything else of it is the coordinator's.
    "workspace checkpoint",
    "workspace signal",
];

/// Options that take no value and change nothing but what is printed.
const PLAIN: [&str; 6] = ["--json", "-q", "--quiet", "--help", "-h", "--version"];

/// The words that say what is asked for. They end where an option might take the next word
/// for its value; one before them, or another store, leaves nothing certain.
fn certain_words(arguments: &[Argument]) -> Vec<&str> {
    let mut words = Vec::new();
    let mut certain = true;
    for argument in arguments {
        match argument.known() {
            Some("--") => break,
            Some(text) if PLAIN.contains(&text) => {}
            Some(text) if text.starts_with("--store") => return vec!["\0"],
            Some(text) if text.starts_with('-') => {
                certain &= text.starts_with("--output=") || text.starts_with("--color=");
            }
            Some(text) if certain => words.push(text),
            Some(_) => {}
            None if argument.start().starts_with('-') => return vec!["\0"],
            None if certain => words.push("\0"),
            None => {}
        }
    }
    if !certain && words.is_empty() {
        words.push("\0");
    }
    words
}

/// Whether the words begin with one of these commands.
fn is_among(commands: &[&str], words: &[&str]) -> bool {
    commands.iter().any(|command| {
        let command: Vec<&str> = command.split(' ').collect();
        words.starts_with(&command)
    })
}

/// The file that what is printed goes to.
fn written(arguments: &[Argument]) -> Option<Argument> {
    let ours = arguments.iter();
    let mut ours = ours.take_while(|word| word.known() != Some("--"));
    while let Some(argument) = ours.next() {
        let text = argument.known().unwrap_or_default();
        if text == "--out" {
            return ours.next().cloned();
        }
        if let Some(file) = text.strip_prefix("--out=") {
            return Some(Argument::Known(file.to_owned()));
        }
    }
    None
}

/// Follows a call of `safepoint`. One that does not lie where only the system's owner writes
/// may be anything of that name, and so may what is put into it when it runs.
pub(super) fn follow(
    walker: &mut Walker<'_>,
    arguments: &[Argument],
    is_known: bool,
    state: &State,
) {
    let is_certain = is_known && arguments.iter().all(|word| word.known().is_some());
    let words = certain_words(arguments);
    let is_cut = arguments.iter().any(|word| word.known() == Some("--"));
    let is_reading = match words.is_empty() {
        true => !is_cut,
        false => is_among(&SAFEPOINT_READS, &words),
    };
    let action = match (is_reading, is_among(&SAFEPOINT_ASKS, &words)) {
        (true, _) if is_certain => READ,
        (true, _) | (_, true) => EXEC,
        (false, false) => CONTROL,
    };
    let mut deed = actions::deed(
        action,
        match action {
            CONTROL => "`safepoint` is told what only an operator may say".to_owned(),
            _ => "`safepoint` is asked".to_owned(),
        },
    );
    if action == EXEC && words.first() == Some(&"exec") {
        // What it runs is judged when it gets there.
        deed.because = "`safepoint exec` judges what it runs".to_owned();
    }
    walker.add(deed);
    if let Some(file) = written(arguments).filter(|_| action != CONTROL) {
        let because = "`safepoint` writes what it is asked for there";
        walker.file(WRITE, &[(file, Role::Write)], because, state);
    }
}
