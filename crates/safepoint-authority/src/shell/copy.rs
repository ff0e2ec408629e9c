//! Programs that copy, move, pack and cut files.
//!
//! An empty source empties the target; a move to nowhere removes.

use crate::deed::Role;

use super::actions::{DELETE, MOVE, READ, WRITE};
use super::options;
use super::run::{Call, because};
use super::state::{Argument, State};
use super::walk::Walker;

/// The old way to write options of `tar`: letters without a dash, whose values follow in turn.
fn unbundled(arguments: &[Argument]) -> Vec<Argument> {
    let Some((Argument::Known(first), mut rest)) = arguments.split_first() else {
        return arguments.to_vec();
    };
    if first.starts_with('-') || !first.chars().all(|next| next.is_ascii_alphabetic()) {
        return arguments.to_vec();
    }
    let mut words = Vec::new();
    for letter in first.chars() {
        words.push(Argument::Known(format!("-{letter}")));
        if "fCTXbgHKLNVIF".contains(letter)
            && let Some((value, after)) = rest.split_first()
        {
            words.push(value.clone());
            rest = after;
        }
    }
    words.extend(rest.iter().cloned());
    words
}

/// The directories that `tar` changes to: each counts from the one before it.
fn entered(parsed: &options::Parsed) -> Vec<Argument> {
    let mut places: Vec<Argument> = Vec::new();
    for directory in parsed.values(&["-C", "--directory", "--one-top-level"]) {
        places.push(match (places.last(), directory) {
            (Some(Argument::Known(before)), Argument::Known(text)) if !text.starts_with('/') => {
                Argument::Known(format!("{before}/{text}"))
            }
            _ => directory.clone(),
        });
    }
    places
}

/// `tar`, in its old and its new way of writing options.
pub(super) fn tar(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let arguments = unbundled(call.arguments);
    let parsed = options::parse(&arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let because = because(call);
    let archives: Vec<(Argument, Role)> = parsed
        .values(&["-f", "--file"])
        .into_iter()
        .filter(|value| value.known() != Some("-"))
        .map(|value| (value.clone(), Role::Read))
        .collect();
    if archives
        .iter()
        .any(|(value, _)| value.start().contains(':'))
        && !parsed.has(&["--force-local"])
    {
        walker.opaque("`tar` reaches another machine");
    }
    super::tools::named_by_options(walker, call, &parsed, state);
    if parsed.has(&["-x", "--extract", "--get"]) {
        walker.file(READ, &archives, &because, state);
        let mut targets: Vec<(Argument, Role)> = entered(&parsed)
            .into_iter()
            .map(|directory| (within(directory), Role::Write))
            .collect();
        if targets.is_empty() {
            targets.push((within(Argument::Known(String::new())), Role::Write));
        }
        if parsed.has(&["-P", "--absolute-names"]) {
            walker.opaque("`tar -P` writes anywhere");
        }
        if !parsed.has(&["-O", "--to-stdout"]) {
            walker.file(WRITE, &targets, &because, state);
        }
    } else if parsed.has(&["-t", "--list", "-d", "--diff", "--compare"]) {
        walker.file(READ, &archives, &because, state);
    } else {
        let written: Vec<(Argument, Role)> = archives
            .into_iter()
            .map(|(archive, _)| (archive, Role::Write))
            .collect();
        let mut read: Vec<(Argument, Role)> = Vec::new();
        let directories = entered(&parsed);
        for operand in &parsed.operands {
            if directories.is_empty() {
                read.push((operand.clone(), Role::Read));
            }
            for directory in &directories {
                let place = match (directory, operand) {
                    (Argument::Known(before), Argument::Known(text)) if !text.starts_with('/') => {
                        Argument::Known(format!("{before}/{text}"))
                    }
                    (Argument::Known(before), Argument::Pattern { text, .. })
                        if !text.starts_with('/') =>
                    {
                        // The shell finds the names here, and they are packed there.
                        within(Argument::Known(before.clone()))
                    }
                    _ => operand.clone(),
                };
                read.push((place, Role::Read));
            }
        }
        for (operand, _) in &read {
            walker.watch_tree(operand, state);
        }
        walker.file(READ, &read, &because, state);
        if parsed.has(&["--remove-files"]) {
            let gone: Vec<(Argument, Role)> = read
                .into_iter()
                .map(|(operand, _)| (operand, Role::Delete))
                .collect();
            walker.file(DELETE, &gone, &because, state);
        }
        if !written.is_empty() {
            walker.file(WRITE, &written, &because, state);
        }
    }
}

/// `cp`, `install`, `ln`: an empty source empties the target.
pub(super) fn cp(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let because = because(call);
    let mut operands = parsed.operands.clone();
    let target = parsed
        .values(&["-t", "--target-directory"])
        .first()
        .map(|value| (*value).clone())
        .or_else(|| {
            if operands.len() > 1 || call.name != "ln" {
                operands.pop()
            } else {
                Some(Argument::Known(".".to_owned()))
            }
        });
    let Some(target) = target else { return };
    if call.name == "install" && parsed.has(&["-d", "--directory"]) {
        operands.push(target);
        let made: Vec<(Argument, Role)> = operands
            .into_iter()
            .map(|directory| (directory, Role::Write))
            .collect();
        walker.file(WRITE, &made, &because, state);
        return;
    }
    let sources: Vec<(Argument, Role)> = operands
        .iter()
        .map(|source| (source.clone(), Role::Read))
        .collect();
    let empty = operands
        .iter()
        .all(|source| source.known() == Some("/dev/null"))
        && !operands.is_empty();
    if empty {
        walker.file(DELETE, &[(target, Role::Delete)], &because, state);
        return;
    }
    for source in &operands {
        walker.watch_tree(source, state);
    }
    walker.file(READ, &sources, &because, state);
    let places = walker.places(&target, state);
    walker.file(WRITE, &[(target, Role::Write)], &because, state);
    if parsed.has(&["-s", "--symbolic", "--symbolic-link"]) {
        // What is reached through it from here on lies elsewhere.
        for place in places {
            if let crate::Where::Exact(path) | crate::Where::Below(path) = place {
                for source in &operands {
                    let name = source.shown().rsplit('/').next().unwrap_or_default();
                    walker.links.push(path.join(name));
                }
                walker.links.push(path);
            }
        }
    }
}

/// `mv`: to nowhere is removing.
pub(super) fn mv(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let because = because(call);
    let mut operands = parsed.operands.clone();
    let target = parsed
        .values(&["-t", "--target-directory"])
        .first()
        .map(|value| (*value).clone())
        .or_else(|| operands.pop());
    let Some(target) = target else { return };
    let mut all: Vec<(Argument, Role)> = operands
        .iter()
        .map(|source| (source.clone(), Role::Delete))
        .collect();
    for source in &operands {
        walker.watch(source, Role::Read, state);
        walker.watch_tree(source, state);
    }
    if target.known() == Some("/dev/null") {
        walker.file(DELETE, &all, &because, state);
        return;
    }
    all.push((target, Role::Write));
    walker.file(MOVE, &all, &because, state);
}

pub(super) fn dd(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let because = because(call);
    let mut empty = false;
    let mut outputs = Vec::new();
    for argument in call.arguments {
        let text = argument.start();
        let value = |key: &str| {
            text.strip_prefix(key).map(|rest| match argument {
                Argument::Known(_) => Argument::Known(rest.to_owned()),
                other => other.clone(),
            })
        };
        if let Some(input) = value("if=") {
            empty |= matches!(
                input.known(),
                Some("/dev/null" | "/dev/zero" | "/dev/urandom")
            );
            walker.file(READ, &[(input, Role::Read)], &because, state);
        } else if let Some(output) = value("of=") {
            outputs.push(output);
        } else if argument.is_dynamic() {
            outputs.push(argument.clone());
        }
    }
    for output in outputs {
        let (action, role) = if empty {
            (DELETE, Role::Delete)
        } else {
            (WRITE, Role::Write)
        };
        walker.file(action, &[(output, role)], &because, state);
    }
}

pub(super) fn truncate(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    let grows = parsed
        .values(&["-s", "--size"])
        .first()
        .is_some_and(|size| size.start().starts_with(['+', '>']));
    let (action, role) = if grows {
        (WRITE, Role::Write)
    } else {
        (DELETE, Role::Delete)
    };
    let all: Vec<(Argument, Role)> = parsed
        .operands
        .into_iter()
        .map(|operand| (operand, role))
        .collect();
    walker.file(action, &all, &because(call), state);
}

/// Something in a directory.
fn within(directory: Argument) -> Argument {
    match directory {
        Argument::Known(text) if text.is_empty() => Argument::Pattern {
            directory: text,
            text: "*".to_owned(),
        },
        Argument::Known(text) => Argument::Pattern {
            text: format!("{text}/*"),
            directory: text,
        },
        other => other,
    }
}

/// `unzip`: files that an archive names, in a directory.
pub(super) fn unpack(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let because = because(call);
    let read: Vec<(Argument, Role)> = parsed
        .operands
        .iter()
        .map(|operand| (operand.clone(), Role::Read))
        .collect();
    if !read.is_empty() {
        walker.file(READ, &read, &because, state);
    }
    if parsed.has(&["-l", "-t", "-v", "-Z", "-p"]) {
        return;
    }
    let directory = parsed.values(&super::run::strings(&call.entry.writes));
    let target = match directory.first() {
        Some(directory) => within((*directory).clone()),
        None => within(Argument::Known(String::new())),
    };
    walker.file(WRITE, &[(target, Role::Write)], &because, state);
}
