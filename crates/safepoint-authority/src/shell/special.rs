//! Programs that need more than the table: each is looked at by code of its own.

use crate::deed::Role;

use super::actions::{self, CONTROL, EXEC, KILL, READ, SECRET, WRITE};
use super::options;
use super::run::{Call, because};
use super::state::{Argument, State, Value};
use super::walk::Walker;

/// Follows a program with special care.
pub(super) fn follow(walker: &mut Walker<'_>, special: &str, call: &Call<'_>, state: &mut State) {
    match special {
        "git" => super::git::follow(walker, call, state),
        "curl" => super::transfer::curl(walker, call, state),
        "wget" => super::transfer::wget(walker, call, state),
        "copy" => super::remote::copy(walker, call, state),
        "ssh" => super::remote::ssh(walker, call),
        "shell" => super::code::shell(walker, call, state),
        "interpreter" => super::code::interpreter(walker, call, state),
        "sed" => super::code::sed(walker, call, state),
        "awk" => super::awk::follow(walker, call, state),
        "find" => super::search::find(walker, call, state),
        "fd" => super::search::fd(walker, call, state),
        "xargs" => super::search::xargs(walker, call, state),
        "env" => environment(walker, call, state),
        "tar" => super::copy::tar(walker, call, state),
        "cp" => super::copy::cp(walker, call, state),
        "mv" => super::copy::mv(walker, call, state),
        "dd" => super::copy::dd(walker, call, state),
        "truncate" => super::copy::truncate(walker, call, state),
        "sql" => super::database::follow(walker, call, state),
        "pkill" => pkill(walker, call),
        "make" => make(walker, call),
        "grep" => grep(walker, call, state),
        "pattern" => pattern(walker, call, state),
        "ghapi" => super::net::api(walker, call),
        "httpie" => super::net::httpie(walker, call, state),
        "lookup" => super::net::lookup(walker, call, state),
        "unpack" => super::copy::unpack(walker, call, state),
        "patch" => super::tools::patch(walker, call, state),
        "split" => super::tools::split(walker, call, state),
        "mktemp" => super::tools::mktemp(walker, call, state),
        "chmod" => super::tools::chmod(walker, call, state),
        "keygen" => super::tools::keygen(walker, call, state),
        "pager" => super::tools::pager(walker, call, state),
        "printenv" => super::tools::printenv(walker, call),
        "ps" => super::tools::processes(walker, call, state),
        "date" => super::tools::date(walker, call, state),
        "sysctl" => super::tools::sysctl(walker, call),
        "bare" => super::tools::bare(walker, call),
        "gpg" => gpg(walker, call, state),
        // `rustup run TOOLCHAIN PROGRAM`
        "runs-toolchain" => runs(
            walker,
            call,
            call.arguments.get(1..).unwrap_or_default(),
            state,
        ),
        "runs" => runs(walker, call, call.arguments, state),
        "runs-itself" => {
            let name = call.name.rsplit(' ').next().unwrap_or_default();
            let mut words = vec![Argument::Known(name.to_owned())];
            words.extend(call.arguments.iter().cloned());
            runs(walker, call, &words, state);
        }
        "container" => container(walker, call, state),
        _ => walker.opaque(format!("`{}` is not known", call.name)),
    }
}

/// `env`: variables, then a program; alone it shows every variable.
fn environment(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    // What it starts is another process: this shell keeps its variables.
    let mut aside = state.clone();
    let state = &mut aside;
    let names = parsed.values(&["-u", "--unset"]);
    let unsets = names
        .iter()
        .any(|name| name.known().is_none_or(|name| name == super::home::NAME));
    if unsets
        || parsed.has(&["-i", "--ignore-environment"])
        || call
            .arguments
            .iter()
            .any(|argument| argument.known() == Some("-"))
    {
        set_home(super::home::of_unset(walker.around), state);
    }
    if parsed.has(&["-C", "--chdir"]) {
        walker.opaque("`env -C` runs a program elsewhere");
    }
    if let Some(text) = parsed.values(&["-S", "--split-string"]).first() {
        match text.known() {
            Some(text) if !text.contains(['\\', '$', '"', '\'']) => {
                let mut words: Vec<Argument> = text
                    .split_ascii_whitespace()
                    .map(|word| Argument::Known(word.to_owned()))
                    .collect();
                words.extend(parsed.operands.iter().cloned());
                after_variables(walker, &words, call, state);
            }
            _ => walker.opaque("`env -S` splits text"),
        }
        return;
    }
    after_variables(walker, &parsed.operands, call, state);
}

/// Gives the programs that are started another `HOME`.
fn set_home(value: Value, state: &mut State) {
    state.variables.insert(super::home::NAME.to_owned(), value);
    state.exported.insert(super::home::NAME.to_owned());
}

fn after_variables(
    walker: &mut Walker<'_>,
    words: &[Argument],
    call: &Call<'_>,
    state: &mut State,
) {
    let mut rest = words;
    while let Some((first, after)) = rest.split_first()
        && let Some((name, value)) = first.start().split_once('=')
    {
        let known = Some(value).filter(|_| first.known().is_some());
        super::variables::weigh(walker, name, known);
        if name == super::home::NAME {
            let value = known.map(|value| Value::One(vec![Argument::Known(value.to_owned())]));
            set_home(value.unwrap_or(Value::Unknown), state);
        }
        rest = after;
    }
    if rest.is_empty() {
        walker.add(actions::deed(
            SECRET,
            format!("`{}` shows every variable", call.name),
        ));
    } else {
        walker.start(rest, call.input, state);
    }
}

fn pkill(walker: &mut Walker<'_>, call: &Call<'_>) {
    walker.add(actions::deed(KILL, because(call)));
    if call
        .arguments
        .iter()
        .any(|argument| argument.start().contains("safepoint"))
    {
        walker.add(actions::deed(
            CONTROL,
            "what guards this machine is stopped".to_owned(),
        ));
    }
}

/// `make`: its rules are a script; variables that choose the shell are another.
fn make(walker: &mut Walker<'_>, call: &Call<'_>) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    for file in parsed.values(&["-f", "--file", "--makefile"]) {
        if file
            .known()
            .is_none_or(|text| text == "-" || text.starts_with("/dev/"))
        {
            walker.opaque("`make` is given code");
        }
    }
    for operand in &parsed.operands {
        let text = operand.start();
        if let Some((name, value)) = text.split_once('=')
            && (matches!(
                name,
                "SHELL" | "MAKEFLAGS" | ".SHELLFLAGS" | "MAKE" | "MAKEFILES"
            ) || value.contains('$')
                || value.contains('`'))
        {
            walker.opaque("`make` is given code");
        }
    }
    walker.add(actions::deed(EXEC, because(call)));
}

/// `grep` and its kin: a pattern, unless an option gives it, then files.
fn grep(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let given = parsed.has(&["-e", "--regexp", "-f", "--file", "--files", "--type-list"]);
    let skip = usize::from(!given);
    for file in parsed.values(&["-f", "--file"]) {
        walker.file(READ, &[(file.clone(), Role::Read)], "`grep` reads", state);
    }
    for name in parsed.values(&["--include", "-g", "--glob", "--iglob"]) {
        walker.watch_name(name, state);
    }
    let rest = parsed.operands.get(skip..).unwrap_or_default();
    if parsed.has(&["-r", "-R", "--recursive", "--dereference-recursive"]) || call.name != "grep" {
        for operand in rest {
            walker.watch_tree(operand, state);
        }
    }
    read_all(walker, rest, call, state);
}

/// A script or a pattern first, then files that are read.
fn pattern(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    for file in parsed.values(&super::run::strings(&call.entry.writes)) {
        walker.file(WRITE, &[(file.clone(), Role::Write)], &because(call), state);
    }
    if call
        .arguments
        .iter()
        .any(|argument| names_environment(argument.shown()))
    {
        walker.add(actions::deed(
            SECRET,
            format!("`{}` can show every variable", call.name),
        ));
    }
    let names = super::run::strings(&call.entry.reads);
    let files: Vec<Argument> = parsed.values(&names).into_iter().cloned().collect();
    let skip = usize::from(!parsed.has(&["-f", "--from-file", "-e", "--expression"]));
    let mut rest = parsed.operands.get(skip..).unwrap_or_default().to_vec();
    rest.extend(files);
    read_all(walker, &rest, call, state);
    if parsed.has(&["-i", "--inplace", "--in-place"]) {
        let all: Vec<(Argument, Role)> = rest.into_iter().map(|file| (file, Role::Write)).collect();
        walker.file(WRITE, &all, &because(call), state);
    }
}

/// Whether a filter speaks of the environment: `env`, `$ENV`, but not of a field `.env`.
fn names_environment(filter: &str) -> bool {
    if filter.contains("$ENV") || filter.contains("strenv(") {
        return true;
    }
    filter.match_indices("env").any(|(at, word)| {
        let before = filter.get(..at).and_then(|text| text.chars().next_back());
        let after = filter
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        let part = |letter: char| letter.is_alphanumeric() || "_-./\"'@".contains(letter);
        !before.is_some_and(part)
            && !after.is_some_and(|letter| part(letter) && letter != '.' || letter == ':')
    })
}

pub(super) fn read_all(
    walker: &mut Walker<'_>,
    files: &[Argument],
    call: &Call<'_>,
    state: &State,
) {
    let all: Vec<(Argument, Role)> = files
        .iter()
        .map(|file| (file.clone(), Role::Read))
        .collect();
    walker.file(READ, &all, &because(call), state);
}

/// `gpg`: checking a signature is reading; the rest handles keys.
fn gpg(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    if parsed.has(&[
        "--verify",
        "--list-keys",
        "-k",
        "--fingerprint",
        "--version",
        "--list-public-keys",
    ]) {
        read_all(walker, &parsed.operands, call, state);
    } else {
        walker.add(actions::deed(SECRET, because(call)));
    }
}

/// `docker run`: what is mounted into a container can be changed from inside.
fn container(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, true);
    for mount in parsed.values(&["-v", "--volume", "--mount"]) {
        let text = mount.start();
        let source = text
            .split(',')
            .find_map(|part| {
                part.strip_prefix("source=")
                    .or_else(|| part.strip_prefix("src="))
            })
            .unwrap_or_else(|| text.split(':').next().unwrap_or_default());
        if source.starts_with(['/', '.', '~']) || mount.is_dynamic() {
            let argument = match mount {
                Argument::Known(_) => Argument::Known(source.to_owned()),
                other => other.clone(),
            };
            let read_only = text.ends_with(":ro") || text.contains("readonly");
            let (action, role) = if read_only {
                (READ, Role::Read)
            } else {
                (WRITE, Role::Write)
            };
            walker.file(
                action,
                &[(argument, role)],
                "a container is given a directory",
                state,
            );
        }
    }
    if parsed.has(&[
        "--privileged",
        "--pid",
        "--cap-add",
        "--device",
        "--security-opt",
        "--userns",
        "--ipc",
        "--uts",
    ]) {
        walker.add(actions::deed(
            super::actions::SYSTEM,
            "a container is given the machine".to_owned(),
        ));
    }
    let mut deed = actions::deed(EXEC, because(call));
    if let Some(why) = &call.entry.never {
        deed.undo = crate::Undo::Never(why.clone());
    }
    walker.add(deed);
}

/// `npx`, `uv run`, `bundle exec`: a program of the project's own choice. If it is one that
/// the table knows, it is looked at as well, for what it is told.
fn runs(walker: &mut Walker<'_>, call: &Call<'_>, arguments: &[Argument], state: &mut State) {
    let parsed = options::parse(arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    for action in &call.entry.does {
        walker.add(actions::deed(action, because(call)));
    }
    let Some((first, rest)) = parsed.operands.split_first() else {
        return;
    };
    let Some(name) = first.known() else {
        walker.opaque("the program is chosen when it runs");
        return;
    };
    let name = match name.rfind('@') {
        Some(at) if at > 0 => name.get(..at).unwrap_or_default(),
        _ => name,
    };
    let base = name.rsplit('/').next().unwrap_or_default();
    let Some(entry) = super::table::find(base) else {
        return;
    };
    let inner = Call {
        name: base,
        entry: &entry,
        arguments: rest,
        input: call.input,
    };
    walker.depth += 1;
    if walker.depth > super::parse::DEPTH {
        walker.opaque("it nests too deeply");
    } else {
        walker.call(&inner, state);
    }
    walker.depth -= 1;
}
