//! `curl` and `wget`: what is fetched, what is sent, to whom, and which files take part.
//!
//! What is written in the line may be asked for; what is only known when it runs, and what
//! files hold, is sent. An address says where it goes only as long as nothing leads elsewhere.

use crate::deed::Role;

use super::actions::{FETCH, READ, SEND, WRITE};
use super::net::{deed, machine};
use super::options::{self, Parsed};
use super::run::{Call, strings};
use super::state::{Argument, State};
use super::tools::named_by_options;
use super::walk::Walker;

/// Schemes by which something is asked for. Others carry what is written in the address.
const ASKING: [&str; 5] = ["http", "https", "ftp", "ftps", "file"];

/// Names by which `curl` guesses another scheme.
const GUESSED: [&str; 6] = ["dict.", "ldap.", "imap.", "smtp.", "pop3.", "gopher."];

/// Whether an address does more than ask.
fn is_talk(address: &Argument) -> bool {
    let text = address.start().to_ascii_lowercase();
    match text.split_once("://") {
        Some((scheme, _)) => !ASKING.contains(&scheme),
        None => GUESSED.iter().any(|guessed| text.starts_with(guessed)),
    }
}

/// Whether some option holds what only the run will tell, and sends it.
fn leaks(call: &Call<'_>, parsed: &Parsed) -> bool {
    let entry = call.entry;
    let kept = [&entry.local, &entry.reads, &entry.writes];
    parsed.options.iter().any(|(option, value)| {
        let stays = kept
            .iter()
            .any(|list| list.iter().any(|name| options::same(option, name)));
        !stays && value.as_ref().is_some_and(Argument::is_dynamic)
    }) || parsed.operands.iter().any(Argument::is_dynamic)
}

/// The machines it talks to. What leads elsewhere is named instead of being left out.
fn machines(call: &Call<'_>, parsed: &Parsed) -> Vec<String> {
    let mut hosts: Vec<String> = parsed.operands.iter().map(machine).collect();
    hosts.extend(parsed.values(&["--url"]).into_iter().map(machine));
    for tunnel in &call.entry.tunnels {
        if parsed.has(&[tunnel]) {
            hosts.push(format!("by {tunnel}"));
        }
    }
    hosts
}

fn method_sends(parsed: &Parsed, names: &[&str]) -> bool {
    super::net::method_sends(parsed, names)
}

/// `curl`
pub(super) fn curl(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    named_by_options(walker, call, &parsed, state);
    let files = given_files(&parsed);
    for file in &files {
        if file.known() != Some("-") {
            let read = [(file.clone(), Role::Read)];
            walker.file(READ, &read, "`curl` sends a file", state);
        }
    }
    for file in parsed.values(&["-w", "--write-out"]) {
        if let Some(name) = file.start().strip_prefix('@') {
            let read = [(options::tail(file, 1, name), Role::Read)];
            walker.file(READ, &read, "`curl` shows a file", state);
        }
    }
    // With `-G`, what would be sent becomes part of the address: a question.
    let asks = parsed.has(&["-G", "--get"])
        && !parsed.has(&["-T", "--upload-file", "-F", "--form", "--form-string"]);
    let body = parsed.has(&strings(&call.entry.sends)) && !asks;
    let sends = body
        || !files.is_empty()
        || leaks(call, &parsed)
        || method_sends(&parsed, &["-X", "--request"])
        || parsed.has(&["--unix-socket", "--abstract-unix-socket"])
        || parsed.operands.iter().any(is_talk)
        || parsed.values(&["--url"]).into_iter().any(is_talk)
        || parsed
            .values(&["--proto-default"])
            .into_iter()
            .any(|scheme| !ASKING.contains(&scheme.start()));
    if parsed.has(&[
        "-O",
        "--remote-name",
        "--remote-name-all",
        "-J",
        "--remote-header-name",
    ]) {
        here(walker, state, "`curl` writes what it fetched");
    }
    if parsed.has(&["-n", "--netrc", "--netrc-optional"]) {
        let why = "`curl` uses stored credentials".to_owned();
        walker.add(super::actions::deed(super::actions::SECRET, why));
    }
    let addresses = parsed.operands.iter().chain(parsed.values(&["--url"]));
    for address in addresses {
        let text = address.start();
        if let Some(path) = text.strip_prefix("file://") {
            // `file://localhost/x` is `/x`.
            let path = path.find('/').and_then(|at| path.get(at..)).unwrap_or(path);
            let read = [(
                options::tail(address, text.len() - path.len(), path),
                Role::Read,
            )];
            walker.file(READ, &read, "`curl` reads a file", state);
        }
    }
    finish(walker, call, sends, machines(call, &parsed));
}

/// Files whose content `curl` sends: `@file`, `name@file`, `name=@file`, `name=<file`.
fn given_files(parsed: &Parsed) -> Vec<Argument> {
    let mut files = Vec::new();
    let mut add = |value: &Argument, name: &str| {
        let text = value.start();
        let from = text.len() - name.len();
        for one in name.split(';').next().unwrap_or_default().split(',') {
            files.push(options::tail(value, from, one));
        }
    };
    for value in parsed.values(&[
        "-d",
        "--data",
        "--data-ascii",
        "--data-binary",
        "--json",
        "-H",
        "--header",
        "--proxy-header",
    ]) {
        if let Some(name) = value.start().strip_prefix('@') {
            add(value, name);
        }
    }
    for value in parsed.values(&["--data-urlencode", "--url-query"]) {
        let text = value.start();
        let at = text.find('@');
        if let Some(at) = at.filter(|at| text.find('=').is_none_or(|equals| equals > *at)) {
            add(value, text.get(at + 1..).unwrap_or_default());
        }
    }
    for value in parsed.values(&["-F", "--form"]) {
        let named = value.start().split_once('=').map(|(_, rest)| rest);
        if let Some(name) = named.and_then(|rest| rest.strip_prefix(['@', '<'])) {
            add(value, name);
        }
    }
    for value in parsed.values(&["-T", "--upload-file"]) {
        add(value, value.start());
    }
    // Cookies are a file, unless they are written out.
    for value in parsed.values(&["-b", "--cookie"]) {
        let text = value.start();
        if !text.contains('=') && !text.is_empty() {
            add(value, text.strip_prefix('@').unwrap_or(text));
        }
    }
    files
}

/// A file with a name that the other machine chooses, in this directory.
fn here(walker: &mut Walker<'_>, state: &State, because: &str) {
    let name = Argument::Pattern {
        directory: String::new(),
        text: "*".to_owned(),
    };
    walker.file(WRITE, &[(name, Role::Write)], because, state);
}

/// `wget`
pub(super) fn wget(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    named_by_options(walker, call, &parsed, state);
    let named = parsed.has(&["-O", "--output-document", "-P", "--directory-prefix"]);
    if !named && !parsed.has(&["--spider"]) {
        here(walker, state, "`wget` writes what it fetched");
    }
    let sends = parsed.has(&strings(&call.entry.sends))
        || leaks(call, &parsed)
        || method_sends(&parsed, &["--method"]);
    finish(walker, call, sends, machines(call, &parsed));
}

fn finish(walker: &mut Walker<'_>, call: &Call<'_>, sends: bool, hosts: Vec<String>) {
    let action = if sends { SEND } else { FETCH };
    let why = format!("`{}` talks to another machine", call.name);
    walker.add(deed(action, why, hosts));
}
