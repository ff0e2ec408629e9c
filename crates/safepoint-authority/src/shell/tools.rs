//! Small programs whose words mean different things in different places.
//!
//! Each only adds deeds. Nothing is looked up on the machine.

use crate::deed::Role;

use super::actions::{self, CHMOD, READ, SECRET, SYSTEM, WRITE};
use super::options::{self, Parsed};
use super::run::{Call, because, strings};
use super::special::read_all;
use super::state::{Argument, State};
use super::walk::Walker;

fn parse(walker: &mut Walker<'_>, call: &Call<'_>) -> Parsed {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    parsed
}

/// Files that options name, read and written.
pub(super) fn named_by_options(
    walker: &mut Walker<'_>,
    call: &Call<'_>,
    parsed: &Parsed,
    state: &State,
) {
    for file in parsed.values(&strings(&call.entry.reads)) {
        if file.known() != Some("-") {
            read_all(walker, std::slice::from_ref(file), call, state);
        }
    }
    for file in parsed.values(&strings(&call.entry.writes)) {
        if file.known() != Some("-") {
            let written = [(file.clone(), Role::Write)];
            walker.file(WRITE, &written, &because(call), state);
        }
    }
}

/// Names that begin so.
fn beginning(prefix: &Argument) -> Argument {
    match prefix {
        Argument::Known(text) => Argument::Pattern {
            directory: text
                .rfind('/')
                .map_or("", |end| text.get(..end.max(1)).unwrap_or_default())
                .to_owned(),
            text: format!("{text}*"),
        },
        other => other.clone(),
    }
}

/// `split FILE PREFIX`, `csplit -f PREFIX FILE`: pieces with names that begin so.
pub(super) fn split(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = parse(walker, call);
    let (file, rest) = match parsed.operands.split_first() {
        Some((first, rest)) => (std::slice::from_ref(first), rest),
        None => (parsed.operands.as_slice(), parsed.operands.as_slice()),
    };
    if file.iter().any(|file| file.known() != Some("-")) {
        read_all(walker, file, call, state);
    }
    let prefix = if call.name == "csplit" {
        parsed.values(&["-f", "--prefix"]).first().copied()
    } else {
        rest.first()
    };
    let prefix = prefix.cloned().unwrap_or(Argument::Known("x".to_owned()));
    let pieces = [(beginning(&prefix), Role::Write)];
    walker.file(WRITE, &pieces, &because(call), state);
}

/// `mktemp`: a file that was not there before. Only a template with a directory says where.
pub(super) fn mktemp(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = parse(walker, call);
    let mut made: Vec<(Argument, Role)> = parsed
        .values(&["-p", "--tmpdir"])
        .into_iter()
        .chain(&parsed.operands)
        .filter(|place| place.is_dynamic() || place.start().contains(['/', '~']))
        .map(|place| (beginning(place), Role::Write))
        .collect();
    if made.is_empty() {
        let here = Argument::Known("tmp.".to_owned());
        made.push((beginning(&here), Role::Write));
    }
    walker.file(WRITE, &made, &because(call), state);
}

/// `chmod`: the mode comes first, unless it looks like an option or another file gives it.
pub(super) fn chmod(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let is_mode = |word: &Argument| {
        let text = word.start();
        let letters = match call.name {
            "chmod" => "rwxXstugo0123456789,+-=",
            "chattr" => "aAcCdDeEFijmPsStTuUx",
            _ => return false,
        };
        let rest = text.strip_prefix('-').unwrap_or_default();
        !text.starts_with("--") && !rest.is_empty() && rest.chars().all(|it| letters.contains(it))
    };
    let given = call.arguments.iter().any(is_mode);
    let words: Vec<Argument> = call
        .arguments
        .iter()
        .filter(|word| !is_mode(word))
        .cloned()
        .collect();
    let parsed = options::parse(&words, call.entry, false);
    let told = given || parsed.has(&["--reference"]);
    let skip = usize::from(!told);
    let changed: Vec<(Argument, Role)> = parsed
        .operands
        .into_iter()
        .skip(skip)
        .map(|operand| (operand, Role::Metadata))
        .collect();
    walker.file(CHMOD, &changed, &because(call), state);
}

/// `patch [FILE [PATCH]]`: without a file, the patch names what it changes.
pub(super) fn patch(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = parse(walker, call);
    let why = because(call);
    for file in parsed.values(&strings(&call.entry.reads)) {
        read_all(walker, std::slice::from_ref(file), call, state);
    }
    if let Some(patch) = parsed.operands.get(1..2) {
        read_all(walker, patch, call, state);
    }
    if parsed.has(&["--dry-run"]) {
        return;
    }
    for file in parsed.values(&["-o", "--output", "-r", "--reject-file"]) {
        if file.known() != Some("-") {
            walker.file(WRITE, &[(file.clone(), Role::Write)], &why, state);
        }
    }
    for prefix in parsed.values(&[
        "-B",
        "--prefix",
        "-Y",
        "--basename-prefix",
        "-z",
        "--suffix",
    ]) {
        if prefix.is_dynamic() || prefix.start().contains('/') {
            walker.file(WRITE, &[(beginning(prefix), Role::Write)], &why, state);
        }
    }
    let below = match parsed.values(&["-d", "--directory"]).first() {
        Some(directory) => beginning(&joined(directory, "")),
        None => beginning(&Argument::Known(String::new())),
    };
    let target = match (parsed.operands.first(), &below) {
        (Some(file @ Argument::Known(_)), Argument::Pattern { directory, .. })
            if directory.is_empty() || file.start().starts_with('/') =>
        {
            file.clone()
        }
        (Some(file), _) if file.is_dynamic() => file.clone(),
        _ => below,
    };
    walker.file(WRITE, &[(target, Role::Write)], &why, state);
}

fn joined(directory: &Argument, name: &str) -> Argument {
    match directory {
        Argument::Known(text) => Argument::Known(format!("{}/{name}", text.trim_end_matches('/'))),
        other => other.clone(),
    }
}

/// `ssh-keygen`: most of it handles keys; some only looks at public ones.
pub(super) fn keygen(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = parse(walker, call);
    let files: Vec<Argument> = parsed.values(&["-f"]).into_iter().cloned().collect();
    if parsed.has(&["-l", "-B", "-F"]) {
        read_all(walker, &files, call, state);
        return;
    }
    walker.add(actions::deed(SECRET, because(call)));
    if !parsed.has(&["-y", "-e", "-i", "-L", "-Q"]) {
        let made = files.first().cloned().unwrap_or(Argument::Dynamic {
            start: String::new(),
            written: "the default key".to_owned(),
            splits: false,
        });
        walker.file(WRITE, &[(made, Role::Write)], &because(call), state);
    }
}

/// `less`, `man`: commands can be given that they run as if they had been typed.
pub(super) fn pager(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    for word in call.arguments {
        if let Some(told) = word.start().strip_prefix('+') {
            let looks = word.known().is_some()
                && (matches!(told, "" | "G" | "g" | "F")
                    || told.chars().all(|next| next.is_ascii_digit())
                    || told.starts_with('/') && !told.contains(['!', '|', '\n', '^']));
            if !looks {
                walker.opaque(format!("`{}` is told what to do", call.name));
            }
        }
    }
    walker.plain(call, state);
}

/// Names of variables that hold no credential.
fn is_plain_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    ![
        "KEY",
        "TOKEN",
        "SECRET",
        "PASS",
        "PWD_",
        "CRED",
        "AUTH",
        "DSN",
        "COOKIE",
        "SESSION",
        "URL",
        "URI",
        "CONNECTION",
        "PRIVATE",
        "SIGN",
        "CERT",
        "SALT",
        "HASH",
        "JWT",
        "PIN",
    ]
    .iter()
    .any(|part| upper.contains(part))
}

/// `printenv`: some variables, or all of them.
pub(super) fn printenv(walker: &mut Walker<'_>, call: &Call<'_>) {
    let parsed = parse(walker, call);
    let plain = |word: &Argument| word.known().is_some_and(is_plain_variable);
    let action = if !parsed.operands.is_empty() && parsed.operands.iter().all(plain) {
        READ
    } else {
        SECRET
    };
    walker.add(actions::deed(action, because(call)));
}

/// `ps e`: the variables of every process.
pub(super) fn processes(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let shows = call.arguments.iter().any(|word| {
        let text = word.start();
        let letters = !text.is_empty() && text.chars().all(|next| next.is_ascii_alphabetic());
        let told = call.arguments.iter().any(|word| {
            matches!(
                word.known(),
                Some("-o" | "-C" | "-u" | "-U" | "-p" | "-t" | "-g")
            )
        });
        letters && text.contains('e') && !told || text == "-E" || text.contains("environ")
    });
    if shows {
        walker.add(actions::deed(
            SECRET,
            format!("`{}` shows the variables of others", call.name),
        ));
    }
    walker.plain(call, state);
}

/// `date`: an operand that is no format sets the clock.
pub(super) fn date(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = parse(walker, call);
    named_by_options(walker, call, &parsed, state);
    let sets = parsed.has(&["-s", "--set"])
        || parsed
            .operands
            .iter()
            .any(|operand| !operand.start().starts_with('+'));
    if sets {
        walker.add(actions::deed(SYSTEM, because(call)));
    } else {
        walker.add(actions::deed(READ, format!("`{}`", call.name)));
    }
}

/// `sysctl`: names are read, assignments and files are settings.
pub(super) fn sysctl(walker: &mut Walker<'_>, call: &Call<'_>) {
    let parsed = parse(walker, call);
    let looks = |(option, _): &(String, Option<Argument>)| {
        matches!(
            option.as_str(),
            "-a" | "-A"
                | "-n"
                | "-N"
                | "-e"
                | "-b"
                | "-h"
                | "-d"
                | "--all"
                | "--values"
                | "--names"
        )
    };
    let names = |word: &Argument| word.known().is_some_and(|text| !text.contains('='));
    let action = if parsed.options.iter().all(looks) && parsed.operands.iter().all(names) {
        READ
    } else {
        SYSTEM
    };
    walker.add(actions::deed(action, because(call)));
}

/// A program that only tells when it is given nothing.
pub(super) fn bare(walker: &mut Walker<'_>, call: &Call<'_>) {
    if call.arguments.is_empty() {
        walker.add(actions::deed(READ, format!("`{}`", call.name)));
    } else {
        for action in &call.entry.does {
            walker.add(actions::deed(action, because(call)));
        }
    }
}
