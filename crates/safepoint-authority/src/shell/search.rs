//! Programs that find files and hand them to others: `find`, `fd`, `xargs`.

use crate::deed::Role;

use super::actions::{DELETE, WRITE};
use super::options;
use super::run::{Call, because};
use super::state::{Argument, State};
use super::walk::Walker;

/// Something below a path that is searched.
fn below(path: &Argument) -> Argument {
    match path {
        Argument::Known(text) => Argument::Pattern {
            directory: text.clone(),
            text: format!("{}/*", text.trim_end_matches('/')),
        },
        other => other.clone(),
    }
}

/// `find`
pub(super) fn find(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let mut paths = Vec::new();
    let mut rest = call.arguments.iter().peekable();
    while let Some(argument) = rest.peek() {
        let text = argument.start();
        if matches!(text, "-H" | "-L" | "-P") || text.starts_with("-O") || text == "-D" {
            rest.next();
            continue;
        }
        if text.starts_with('-') || matches!(text, "(" | "!" | ")") {
            break;
        }
        if argument.is_dynamic() && text.is_empty() {
            walker.opaque("what `find` is told is not known");
        }
        paths.push((*argument).clone());
        rest.next();
    }
    if paths.is_empty() {
        paths.push(Argument::Known(".".to_owned()));
    }
    super::special::read_all(walker, &paths, call, state);
    let mut names = Vec::new();
    let mut runs = false;
    while let Some(argument) = rest.next() {
        let text = argument.start();
        if argument.is_dynamic() && (text.is_empty() || text.starts_with('-')) {
            walker.opaque("what `find` is told is not known");
        }
        match text {
            "-delete" => {
                let all: Vec<(Argument, Role)> = paths
                    .iter()
                    .map(|path| (below(path), Role::Delete))
                    .collect();
                walker.file(DELETE, &all, "`find -delete` removes what it finds", state);
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = rest.next() {
                    walker.file(WRITE, &[(file.clone(), Role::Write)], &because(call), state);
                }
                if text == "-fprintf" {
                    rest.next();
                }
            }
            "-files0-from" => walker.opaque("what `find` searches is not known"),
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let mut words = Vec::new();
                for word in rest.by_ref() {
                    match word.known() {
                        Some(";") => break,
                        Some("+")
                            if words
                                .last()
                                .is_some_and(|last| matches!(last, Argument::Pattern { .. })) =>
                        {
                            break;
                        }
                        Some("{}") => words.extend(paths.iter().map(below)),
                        Some(text) if text.contains("{}") => words.push(Argument::Dynamic {
                            start: text.split("{}").next().unwrap_or_default().to_owned(),
                            written: text.to_owned(),
                            splits: false,
                        }),
                        _ => words.push(word.clone()),
                    }
                }
                runs = true;
                let mut aside = state.clone();
                if text.ends_with("dir") {
                    aside.directories = None;
                }
                walker.start(&words, call.input, &mut aside);
            }
            "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex" | "-iregex"
            | "-lname" => {
                names.extend(rest.next().cloned());
            }
            "-newer" | "-type" | "-size" | "-mtime" | "-atime" | "-ctime" | "-mmin" | "-amin"
            | "-cmin" | "-user" | "-group" | "-perm" | "-maxdepth" | "-mindepth" | "-printf"
            | "-links" | "-inum" | "-samefile" | "-fstype" | "-uid" | "-gid" | "-xtype"
            | "-newermt" | "-anewer" | "-cnewer" | "-used" | "-regextype" | "-context"
            | "-newerct" | "-newerat" => {
                rest.next();
            }
            "-print"
            | "-print0"
            | "-ls"
            | "-prune"
            | "-quit"
            | "-true"
            | "-false"
            | "-empty"
            | "-readable"
            | "-writable"
            | "-executable"
            | "-nouser"
            | "-nogroup"
            | "-not"
            | "-and"
            | "-or"
            | "-a"
            | "-o"
            | "!"
            | "("
            | ")"
            | ","
            | "-depth"
            | "-d"
            | "-xdev"
            | "-mount"
            | "-follow"
            | "-daystart"
            | "-noleaf"
            | "-ignore_readdir_race"
            | "-noignore_readdir_race"
            | "-warn"
            | "-nowarn"
            | "-E"
            | "-x"
            | "-s"
            | "-X" => {}
            _ => walker.opaque(format!("`find {text}` is not known")),
        }
    }
    if runs {
        for name in names {
            walker.watch_name(&name, state);
        }
    }
}

/// `fd`: `-x` and `-X` run a program on what is found.
pub(super) fn fd(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let at = call.arguments.iter().position(|argument| {
        matches!(
            argument.known(),
            Some("-x" | "--exec" | "-X" | "--exec-batch")
        )
    });
    if let Some(at) = at {
        let mut words: Vec<Argument> = call.arguments.get(at + 1..).unwrap_or_default().to_vec();
        words.push(unknown());
        walker.start(&words, call.input, state);
    } else if call.arguments.iter().any(|argument| {
        let text = argument.start();
        text.starts_with("--exec")
            || text.starts_with('-') && !text.starts_with("--") && text.contains(['x', 'X'])
    }) {
        walker.opaque("`fd` runs a program");
    }
    let shown = call
        .arguments
        .get(..at.unwrap_or(call.arguments.len()))
        .unwrap_or_default();
    let parsed = options::parse(shown, call.entry, false);
    let rest = parsed.operands.get(1..).unwrap_or_default();
    super::special::read_all(walker, rest, call, state);
}

fn unknown() -> Argument {
    Argument::Dynamic {
        start: String::new(),
        written: "what it is fed".to_owned(),
        splits: true,
    }
}

/// `xargs` and `parallel`: a program, with words that come from elsewhere.
pub(super) fn xargs(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    for file in parsed.values(&["-a", "--arg-file"]) {
        super::special::read_all(walker, std::slice::from_ref(file), call, state);
    }
    let mark = parsed
        .values(&["-I", "-J", "--replace", "-i"])
        .first()
        .and_then(|value| value.known())
        .map(str::to_owned);
    let mut words = Vec::new();
    for word in &parsed.operands {
        match (word.known(), &mark) {
            (Some(text), Some(mark)) if !mark.is_empty() && text.contains(mark.as_str()) => {
                words.push(Argument::Dynamic {
                    start: text
                        .split(mark.as_str())
                        .next()
                        .unwrap_or_default()
                        .to_owned(),
                    written: text.to_owned(),
                    splits: false,
                });
            }
            _ => words.push(word.clone()),
        }
    }
    if words.is_empty() {
        return;
    }
    if mark.is_none() {
        words.push(unknown());
    }
    let mut aside = state.clone();
    walker.start(&words, &super::walk::Input::File, &mut aside);
}
