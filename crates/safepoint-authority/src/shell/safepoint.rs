//! Safepoint called by a line: an agent may ask and look, never decide.

use super::actions::{self, CONTROL, EXEC, READ};
use super::state::Argument;
use super::walk::Walker;

/// Follows a call of `safepoint`.
pub(super) fn follow(walker: &mut Walker<'_>, arguments: &[Argument]) {
    let mut words = Vec::new();
    for argument in arguments {
        match argument.known() {
            Some("--") => break,
            Some(text) if text.starts_with('-') => {}
            Some(text) => words.push(text),
            None => words.push("\0"),
        }
    }
    let first = words.first().copied().unwrap_or_default();
    let second = words.get(1).copied().unwrap_or_default();
    let action = match (first, second) {
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
        | ("audit" | "version", _) => READ,
        ("session", "answer" | "request" | "open" | "start" | "close" | "resume")
        | ("checkpoint" | "undo" | "rollback" | "exec" | "redo" | "restore" | "branch", _)
        | ("workspace", "create" | "checkpoint" | "state" | "migrate" | "integrate" | "resolve")
        | ("task", _) => EXEC,
        _ => CONTROL,
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
