//! Programs that are given code: shells, interpreters and `sed`.
//!
//! Shell text that is known is followed as part of the line. The small language
//! of `sed` is scanned for what leaves it. Everything else that is given as text
//! is opaque.

use crate::deed::Role;

use super::actions::{self, DB_DROP, EXEC, READ, WRITE};
use super::options;
use super::run::{Call, because};
use super::state::{Argument, State};
use super::walk::{Input, Walker};

/// `sh`, `bash`, `zsh` and the like.
pub(super) fn shell(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    if let [Argument::Known(only)] = call.arguments
        && only == "--version"
    {
        walker.add(actions::deed(READ, because(call)));
        return;
    }
    let mut inside = state.clone();
    inside.functions.clear();
    let inherits_home = walker.around.programs.home_variable().is_some();
    inside.variables.retain(|name, _| {
        state.exported.contains(name) || name == super::home::NAME && inherits_home
    });
    inside.arguments = None;
    let operand = parsed.operands.first();
    if operand.is_some_and(|operand| operand.start().starts_with('+')) {
        walker.opaque("a shell with options that are not known");
        return;
    }
    if parsed.has(&["-c"]) {
        match operand {
            Some(Argument::Known(text)) => {
                inside.arguments = Some(parsed.operands.get(2..).unwrap_or_default().to_vec());
                walker.nested(text, &mut inside, call.input);
            }
            Some(_) => walker.opaque("a shell runs text that is not known"),
            None => {}
        }
        return;
    }
    let stdin =
        parsed.has(&["-s"]) || operand.is_none() || operand.and_then(Argument::known) == Some("-");
    if stdin {
        match call.input {
            Input::Text(Some(text)) => walker.nested(text, &mut inside, &Input::Inherited),
            Input::Inherited => walker.add(actions::deed(EXEC, because(call))),
            _ => walker.opaque("a shell runs what it is fed"),
        }
        return;
    }
    script(walker, call, operand, state);
}

/// A file that is run.
pub(super) fn script(
    walker: &mut Walker<'_>,
    call: &Call<'_>,
    file: Option<&Argument>,
    state: &State,
) {
    let mut deed = actions::deed(EXEC, format!("`{}` runs a script", call.name));
    if let Some(file) = file {
        if file.is_dynamic()
            || file.known() == Some("-")
            || file.start().starts_with("/dev/")
            || file.start().starts_with("/proc/")
        {
            walker.opaque(format!("`{}` runs code that is not known", call.name));
        }
        deed.touches = walker.touches(file, Role::Execute, state);
    }
    walker.add(deed);
}

/// `python`, `node`, `perl`, `ruby` and the like.
pub(super) fn interpreter(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, true);
    if parsed
        .options
        .iter()
        .all(|(option, _)| matches!(option.as_str(), "--version" | "-V" | "--help"))
        && !parsed.options.is_empty()
        && parsed.operands.is_empty()
    {
        walker.add(actions::deed(READ, because(call)));
        return;
    }
    let inline = parsed.options.iter().any(|(option, _)| {
        call.entry
            .opaque
            .iter()
            .any(|name| options::same(option, name))
    });
    walker.strange_options(call, &parsed);
    if inline {
        return;
    }
    if let Some(module) = parsed.values(&["-m"]).first() {
        match module.known() {
            Some("pip") => {
                let mut words = vec![Argument::Known("pip".to_owned())];
                words.extend(parsed.operands.iter().cloned());
                walker.start(&words, call.input, state);
            }
            Some("timeit" | "code" | "asyncio" | "pdb" | "idlelib") => {
                walker.opaque(format!("`{}` runs code that it is given", call.name));
            }
            // The second is written.
            Some("json.tool") => {
                let (read, written) = parsed.operands.split_at(parsed.operands.len().min(1));
                super::special::read_all(walker, read, call, state);
                for file in written {
                    walker.file(WRITE, &[(file.clone(), Role::Write)], &because(call), state);
                }
            }
            Some(_) => walker.add(actions::deed(EXEC, because(call))),
            None => walker.opaque(format!("`{}` runs code that is not known", call.name)),
        }
        return;
    }
    let operand = parsed.operands.first();
    if let Some(Argument::Known(file)) = operand
        && drops(file, parsed.operands.get(1))
    {
        walker.add(actions::deed(
            DB_DROP,
            format!("`{file}` empties the database"),
        ));
    }
    if operand.is_none() || operand.and_then(Argument::known) == Some("-") {
        match call.input {
            Input::Inherited => walker.add(actions::deed(EXEC, because(call))),
            _ => walker.opaque(format!("`{}` runs what it is fed", call.name)),
        }
        return;
    }
    script(walker, call, operand, state);
}

/// Scripts of well-known frameworks that empty a database when told so.
fn drops(file: &str, told: Option<&Argument>) -> bool {
    let Some(told) = told.and_then(Argument::known) else {
        return false;
    };
    match file.rsplit('/').next() {
        Some("artisan") => matches!(
            told,
            "migrate:fresh" | "migrate:reset" | "migrate:refresh" | "db:wipe"
        ),
        Some("manage.py") => matches!(told, "flush" | "reset_db" | "sqlflush"),
        _ => false,
    }
}

/// `sed`
pub(super) fn sed(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    // `-i` takes its value only when it is tied to it.
    let mut arguments = Vec::new();
    let mut in_place = false;
    for argument in call.arguments {
        match in_place_option(argument.start()) {
            Some((before, ending)) => {
                in_place = true;
                // An ending with a directory in it puts the old file there.
                if argument.is_dynamic() || ending.contains('/') {
                    let directory = ending.rsplit_once('/').map_or("", |(before, _)| before);
                    let kept = if argument.is_dynamic() {
                        argument.clone()
                    } else {
                        Argument::Pattern {
                            directory: directory.to_owned(),
                            text: ending,
                        }
                    };
                    let written = [(kept, Role::Write)];
                    walker.file(WRITE, &written, "`sed` keeps the old files", state);
                }
                if !before.is_empty() {
                    arguments.push(Argument::Known(before));
                }
            }
            None => arguments.push(argument.clone()),
        }
    }
    let parsed = options::parse(&arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let scripts = parsed.values(&["-e", "--expression"]);
    let given = !scripts.is_empty() || parsed.has(&["-f", "--file"]);
    let mut operands = parsed.operands.as_slice();
    let mut texts: Vec<&Argument> = scripts;
    if !given && let Some((first, rest)) = operands.split_first() {
        texts.push(first);
        operands = rest;
    }
    for text in texts {
        match text.known() {
            Some(script) => match super::sed::effects(script) {
                Some(files) => {
                    for (file, role) in files {
                        let action = if role == Role::Read { READ } else { WRITE };
                        walker.file(
                            action,
                            &[(Argument::Known(file), role)],
                            &because(call),
                            state,
                        );
                    }
                }
                None => walker.opaque("`sed` is given code that runs programs"),
            },
            // A part that is not known can end the command and begin another.
            None if !is_tame(text) => walker.opaque("`sed` is given a script that is not known"),
            None => {}
        }
    }
    if parsed.has(&["-f", "--file"]) {
        script(
            walker,
            call,
            parsed.values(&["-f", "--file"]).first().copied(),
            state,
        );
    }
    // In place, an empty first word is the backup's ending on some systems.
    let files: Vec<Argument> = operands
        .iter()
        .filter(|operand| operand.known() != Some(""))
        .cloned()
        .collect();
    if in_place {
        let all: Vec<(Argument, Role)> =
            files.into_iter().map(|file| (file, Role::Write)).collect();
        walker.file(WRITE, &all, "`sed` changes files in place", state);
    } else {
        super::special::read_all(walker, &files, call, state);
    }
}

/// The options before `-i` in a word that holds it, and the ending of the old files after it.
fn in_place_option(text: &str) -> Option<(String, String)> {
    if let Some(long) = text.strip_prefix("--") {
        let (name, ending) = long.split_once('=').unwrap_or((long, ""));
        let is_it = !name.is_empty() && "in-place".starts_with(name);
        return is_it.then(|| (String::new(), ending.to_owned()));
    }
    let letters = text.strip_prefix('-')?;
    for (at, letter) in letters.char_indices() {
        match letter {
            'i' => {
                let before = letters.get(..at).unwrap_or_default();
                let ending = letters.get(at + 1..).unwrap_or_default().to_owned();
                let before = if before.is_empty() {
                    String::new()
                } else {
                    format!("-{before}")
                };
                return Some((before, ending));
            }
            'e' | 'f' | 'l' => return None,
            _ => {}
        }
    }
    None
}

/// `"${n}p"`: some lines are printed.
fn is_tame(text: &Argument) -> bool {
    matches!(text, Argument::Pattern { text, .. } if text.chars().all(|next| next.is_ascii_digit() || "*,p".contains(next)))
}
