//! Safepoint called by a line: an agent may ask and look, never decide.

use super::actions::{self, CONTROL, EXEC, READ};
use super::state::Argument;
use super::walk::Walker;

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

/// Follows a call of `safepoint`. One that does not lie where only the system's owner writes
/// may be anything of that name, and so may what is put into it when it runs.
pub(super) fn follow(walker: &mut Walker<'_>, arguments: &[Argument], is_known: bool) {
    let is_certain = is_known && arguments.iter().all(|word| word.known().is_some());
    let words = certain_words(arguments);
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    let action = match (first, second) {
        ("", _) if arguments.iter().any(|word| word.known() == Some("--")) => CONTROL,
        (
            "" | "list" | "show" | "diff" | "log" | "status" | "doctor" | "completions" | "help",
            _,
        )
        | ("trail", "list" | "show" | "verify" | "head" | "prove" | "check-proof")
        | ("session", "show" | "list")
        | ("hold", "list" | "show")
        | ("atlas", "show" | "list" | "check" | "explain")
        | (
            "workspace",
            "list" | "show" | "head" | "final" | "log" | "verify" | "watch" | "signals",
        )
        | ("task", "list" | "show")
        | ("audit" | "version", _) => READ,
        ("verify" | "du" | "schema" | "man" | "mutate" | "hook", _)
        | ("session", "answer" | "request" | "open" | "start" | "close" | "resume")
        | ("checkpoint" | "undo" | "rollback" | "exec" | "redo" | "restore" | "branch", _)
        // With the token of its workspace; everything else of it is the coordinator's.
        | ("workspace", "checkpoint" | "signal") => EXEC,
        _ => CONTROL,
    };
    let action = match action {
        READ if !is_certain => EXEC,
        action => action,
    };
    let mut deed = actions::deed(
        action,
        match action {
            CONTROL => "`safepoint` is told what only an operator may say".to_owned(),
            _ => "`safepoint` is asked".to_owned(),
        },
    );
    if action == EXEC && first == "exec" {
        // What it runs is judged when it gets there.
        deed.because = "`safepoint exec` judges what it runs".to_owned();
    }
    walker.add(deed);
}
