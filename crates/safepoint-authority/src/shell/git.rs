//! `git`: its options before the subcommand can choose code; its subcommands are in the table.

use super::actions::{self, DELETE, GIT_READ, GIT_REWRITE, SECRET};
use super::options;
use super::run::{Call, because};
use super::state::{Argument, State};
use super::walk::Walker;

/// Settings that choose no code.
const HARMLESS: [&str; 30] = [
    "user.name",
    "user.email",
    "core.quotepath",
    "core.autocrlf",
    "core.eol",
    "core.safecrlf",
    "core.filemode",
    "core.ignorecase",
    "core.abbrev",
    "commit.gpgsign",
    "tag.gpgsign",
    "init.defaultbranch",
    "advice.",
    "color.",
    "log.",
    "diff.renames",
    "diff.algorithm",
    "diff.context",
    "diff.noprefix",
    "diff.mnemonicprefix",
    "diff.colormoved",
    "merge.conflictstyle",
    "pull.rebase",
    "pull.ff",
    "push.default",
    "safe.directory",
    "protocol.version",
    "gc.auto",
    "fetch.prune",
    "rebase.autostash",
];

/// Follows a call of `git`.
pub(super) fn follow(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let before = walker.out.deeds.len();
    let inside = subcommand(walker, call, state);
    walker.elsewhere(before, &[], &inside);
}

/// Follows it, and tells from where.
fn subcommand(walker: &mut Walker<'_>, call: &Call<'_>, state: &State) -> State {
    let parsed = options::parse(call.arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    for setting in parsed.values(&["-c"]) {
        let Some(text) = setting.known() else {
            walker.opaque("a setting of `git` is not known");
            continue;
        };
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let name = name.to_ascii_lowercase();
        let harmless = HARMLESS
            .iter()
            .any(|known| *known == name || known.ends_with('.') && name.starts_with(known))
            || matches!(
                name.as_str(),
                "core.pager" | "core.editor" | "sequence.editor"
            ) && matches!(value, "cat" | "true" | ":" | "less" | "")
            || name.starts_with("pager.") && matches!(value, "false" | "true" | "cat" | "0")
            || matches!(name.as_str(), "core.fsmonitor" | "core.hookspath")
                && matches!(value, "false" | "/dev/null" | "");
        if !harmless {
            walker.opaque(format!("`git -c {name}` can run code"));
        }
    }
    let mut inside = state.clone();
    for directory in parsed.values(&["-C"]) {
        let mut directories = Vec::new();
        let mut known = true;
        for place in walker.places(directory, &inside) {
            match place {
                crate::Where::Exact(path) => directories.push(path),
                _ => known = false,
            }
        }
        inside.directories = known.then_some(directories);
    }
    let Some((name, arguments)) = parsed.operands.split_first() else {
        walker.add(actions::deed(GIT_READ, because(call)));
        return inside;
    };
    let Some(name) = name.known() else {
        walker.opaque("what `git` is told is not known");
        return inside;
    };
    let known = |text: &str| {
        arguments
            .iter()
            .any(|argument| argument.known() == Some(text))
    };
    let first = arguments.first().and_then(Argument::known);
    match name {
        "branch" | "tag" | "worktree" if arguments.is_empty() || first == Some("list") => {
            walker.add(actions::deed(GIT_READ, because(call)));
            return inside;
        }
        "checkout" if known("--") || known(".") || known("-f") || known("--force") => {
            walker.add(actions::deed(
                GIT_REWRITE,
                "`git checkout` discards changes".to_owned(),
            ));
            return inside;
        }
        "commit" if known("--amend") => {
            walker.add(actions::deed(
                GIT_REWRITE,
                "`git commit --amend` rewrites".to_owned(),
            ));
            return inside;
        }
        "submodule" if first == Some("foreach") => {
            let rest = arguments
                .iter()
                .skip(1)
                .filter(|argument| {
                    !matches!(argument.known(), Some("--recursive" | "--quiet" | "-q"))
                })
                .cloned()
                .collect::<Vec<_>>();
            inside.directories = None;
            match rest.as_slice() {
                [Argument::Known(text)] => walker.nested(text, &mut inside, call.input),
                _ => walker.opaque("`git submodule foreach` runs code"),
            }
            return inside;
        }
        "show" | "cat-file" | "diff" | "blame" | "annotate" | "grep" | "log" | "archive"
        | "hash-object" | "whatchanged" | "difftool" | "range-diff" => {
            for argument in arguments {
                let text = argument.start();
                if !argument.is_dynamic() && !text.starts_with('-') {
                    let path = text.rsplit(':').next().unwrap_or_default().to_owned();
                    walker.watch_name(&Argument::Known(path), &inside);
                }
            }
        }
        "fetch" | "pull" | "ls-remote" | "fetch-pack" => reach(walker, name, arguments),
        "clone" | "init" => {
            let told = options::parse(arguments, &placed(), false);
            for place in told.values(&["--separate-git-dir"]) {
                let made = [(place.clone(), crate::Role::Write)];
                walker.file(super::actions::WRITE, &made, "`git` makes files", &inside);
            }
            let skip = usize::from(name == "clone");
            let target = match told.operands.get(skip..) {
                Some([first, ..]) => first.clone(),
                _ => Argument::Pattern {
                    directory: String::new(),
                    text: "*".to_owned(),
                },
            };
            walker.file(
                super::actions::WRITE,
                &[(target, crate::Role::Write)],
                "`git` makes a repository",
                &inside,
            );
        }
        "worktree" if matches!(first, Some("remove" | "move")) => {
            let gone: Vec<(Argument, crate::Role)> = arguments
                .iter()
                .skip(1)
                .filter(|argument| !argument.start().starts_with('-'))
                .map(|argument| (argument.clone(), crate::Role::Delete))
                .collect();
            walker.file(DELETE, &gone, "`git` removes a working tree", &inside);
        }
        "worktree" | "bundle" if matches!(first, Some("add" | "create")) => {
            let told = options::parse(arguments.get(1..).unwrap_or_default(), &placed(), false);
            if let Some(target) = told.operands.first() {
                walker.file(
                    super::actions::WRITE,
                    &[(target.clone(), crate::Role::Write)],
                    "`git` makes files",
                    &inside,
                );
            }
        }
        "bisect" if first == Some("run") => {
            let rest = arguments.get(1..).unwrap_or_default();
            walker.start(rest, call.input, &mut inside);
        }
        "credential" if first == Some("fill") => {
            walker.add(actions::deed(
                SECRET,
                "`git credential fill` shows credentials".to_owned(),
            ));
            return inside;
        }
        "rm" if !known("--cached") => {
            let files: Vec<(Argument, crate::Role)> = arguments
                .iter()
                .filter(|argument| !argument.start().starts_with('-'))
                .map(|argument| (argument.clone(), crate::Role::Delete))
                .collect();
            walker.file(DELETE, &files, "`git rm` removes files", &inside);
        }
        "clean" => {
            let dry = arguments.iter().any(|argument| {
                let text = argument.start();
                text == "--dry-run"
                    || text.starts_with('-') && !text.starts_with("--") && text.contains('n')
            });
            let all = Argument::Pattern {
                directory: String::new(),
                text: "*".to_owned(),
            };
            if dry {
                walker.add(actions::deed(
                    GIT_READ,
                    "`git clean -n` only tells".to_owned(),
                ));
            } else {
                walker.file(
                    DELETE,
                    &[(all, crate::Role::Delete)],
                    "`git clean` removes files",
                    &inside,
                );
            }
            return inside;
        }
        "config" => {
            configure(walker, arguments);
            return inside;
        }
        _ => {}
    }
    let words: Vec<Argument> = parsed.operands.clone();
    let below = Call {
        arguments: &words,
        ..*call
    };
    walker.subcommand(&below, &mut inside);
    inside
}

/// Options with values, of the subcommands that are told where to make something.
fn placed() -> super::table::Entry {
    const VALUES: &str = "-b -B --branch --depth -o --origin -j --jobs --shallow-since \
        --shallow-exclude --reference --reference-if-able --filter -c --config -u --upload-pack \
        --template --initial-branch --object-format --ref-format --server-option --bundle-uri \
        --reason --separate-git-dir --revision";
    super::table::Entry {
        values: VALUES.split_ascii_whitespace().map(str::to_owned).collect(),
        ..super::table::Entry::default()
    }
}

/// From where something is fetched: a remote of this repository, unless an address is given.
fn reach(walker: &mut Walker<'_>, name: &str, arguments: &[Argument]) {
    let operand = |argument: &&Argument| !argument.start().starts_with('-');
    let Some(remote) = arguments.iter().find(operand) else {
        return;
    };
    let text = remote.start();
    if text.starts_with("ext::") || text.starts_with("fd::") || text.contains("://-") {
        walker.opaque(format!("`git {name}` is given an address that runs code"));
    }
    let why = format!("`git {name}` is given an address");
    if remote.is_dynamic() {
        walker.add(actions::deed(super::actions::SEND, why));
    } else if let Some(host) = super::net::host(text) {
        walker.add(super::net::deed(super::actions::FETCH, why, Some(host)));
    }
}

/// `git config`: reading, setting what is harmless, and the rest.
fn configure(walker: &mut Walker<'_>, arguments: &[Argument]) {
    let parsed = options::parse(arguments, &super::table::Entry::default(), false);
    let mut words: Vec<&str> = parsed
        .operands
        .iter()
        .map(|word| word.known().unwrap_or("\0"))
        .collect();
    let reads = parsed.has(&[
        "-l",
        "--list",
        "--get",
        "--get-all",
        "--get-regexp",
        "--get-urlmatch",
    ]) || matches!(words.first(), Some(&("get" | "list")))
        || words.len() < 2;
    if parsed.options.iter().any(|(option, _)| {
        matches!(
            option.as_str(),
            "-e" | "--edit" | "-f" | "--file" | "--blob"
        )
    }) {
        walker.opaque("`git config` on a file that is not known");
        return;
    }
    let credential = |word: &str| {
        let word = word.to_ascii_lowercase();
        ["extraheader", "credential", "token", "password", "secret"]
            .iter()
            .any(|part| word.contains(part))
    };
    if reads && words.iter().any(|word| credential(word)) {
        let why = "`git config` shows credentials".to_owned();
        walker.add(actions::deed(SECRET, why));
        return;
    }
    if reads {
        walker.add(actions::deed(
            GIT_READ,
            "`git config` reads settings".to_owned(),
        ));
        return;
    }
    if matches!(words.first(), Some(&("set" | "unset"))) {
        words.remove(0);
    }
    let name = words
        .first()
        .map(|name| name.to_ascii_lowercase())
        .unwrap_or_default();
    let harmless = HARMLESS
        .iter()
        .any(|known| *known == name || known.ends_with('.') && name.starts_with(known));
    if parsed.has(&["--global", "--system"]) {
        walker.add(actions::deed(
            super::actions::SYSTEM,
            "`git config` changes settings outside the repository".to_owned(),
        ));
    } else if harmless || parsed.has(&["--unset", "--unset-all"]) {
        walker.add(actions::deed(
            super::actions::GIT_COMMIT,
            "`git config` changes a setting".to_owned(),
        ));
    } else {
        walker.opaque(format!("the setting `{name}` can run code"));
    }
}
