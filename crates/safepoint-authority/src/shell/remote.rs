//! Other machines: files that go there or come from there, and commands that run there.

use crate::deed::Role;

use super::actions::{self, FETCH, READ, SEND, WRITE};
use super::net::{deed, host, is_local, is_machine};
use super::options;
use super::run::Call;
use super::state::{Argument, State};
use super::walk::Walker;

/// `scp`, `rsync`, `sftp`: to another machine, from one, or neither.
pub(super) fn copy(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    super::tools::named_by_options(walker, call, &parsed, state);
    let because = format!("`{}` copies", call.name);
    let Some((last, sources)) = parsed.operands.split_last() else {
        return;
    };
    let remote = |argument: &Argument| {
        let text = argument.start();
        text.contains("://")
            || text.contains("::")
            || text
                .split_once(':')
                .is_some_and(|(before, _)| !before.is_empty() && !before.contains('/'))
    };
    let machine = |argument: &Argument| {
        let named = host(argument.start()).or_else(|| {
            let before = argument.start().split(':').next().unwrap_or_default();
            is_machine(before).then(|| before.to_owned())
        });
        elsewhere(named)
    };
    if parsed.has(&["--remove-source-files"]) {
        let all: Vec<(Argument, Role)> = sources
            .iter()
            .map(|source| (source.clone(), Role::Delete))
            .collect();
        walker.file(actions::DELETE, &all, &because, state);
    }
    for source in sources {
        if remote(source)
            || source.is_dynamic()
                && call.name != "rsync"
                && call.name != "cp"
                && source.start().is_empty()
        {
            walker.add(deed(FETCH, because.clone(), machine(source)));
        } else {
            walker.watch_tree(source, state);
            walker.file(READ, &[(source.clone(), Role::Read)], &because, state);
        }
    }
    if remote(last) || last.is_dynamic() && last.start().is_empty() {
        walker.add(deed(SEND, because.clone(), machine(last)));
    } else {
        if parsed.has(&[
            "--delete",
            "--del",
            "--delete-after",
            "--delete-before",
            "--delete-excluded",
            "--delete-during",
            "--delete-delay",
        ]) {
            let below = match last {
                Argument::Known(text) => Argument::Pattern {
                    directory: text.trim_end_matches('/').to_owned(),
                    text: format!("{text}/*"),
                },
                other => other.clone(),
            };
            walker.file(actions::DELETE, &[(below, Role::Delete)], &because, state);
        }
        walker.file(WRITE, &[(last.clone(), Role::Write)], &because, state);
    }
}

/// What answers on this machine acts outside of every fence: it is not this machine that is
/// named then, but nobody.
fn elsewhere(machine: Option<String>) -> Option<String> {
    machine.filter(|machine| !is_local(machine))
}

/// `ssh`: another machine does something, and nothing here takes it back.
pub(super) fn ssh(walker: &mut Walker<'_>, call: &Call<'_>) {
    let parsed = options::parse(call.arguments, call.entry, true);
    walker.strange_options(call, &parsed);
    for value in parsed.values(&["-o"]) {
        let text = value.start().to_ascii_lowercase();
        if value.known().is_none()
            || [
                "proxycommand",
                "localcommand",
                "knownhostscommand",
                "pkcs11provider",
                "include",
                "sendenv",
                "permitlocal",
                "securitykeyprovider",
                "proxyusefdpass",
                "match",
            ]
            .iter()
            .any(|word| text.starts_with(word))
        {
            walker.opaque("`ssh -o` runs code");
        }
    }
    let machine = parsed.operands.first().map(|first| {
        let text = first.start();
        text.rsplit('@').next().unwrap_or(text).to_owned()
    });
    walker.add(deed(
        SEND,
        format!("`{}` acts on another machine", call.name),
        elsewhere(machine.filter(|machine| is_machine(machine))),
    ));
}
