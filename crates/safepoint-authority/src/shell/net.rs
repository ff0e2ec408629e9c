//! Programs that talk to other machines: what is fetched, what is sent, and to whom.

use crate::deed::{Deed, Role};

use super::actions::{self, FETCH, READ, SEND, WRITE};
use super::options::{self, Parsed};
use super::run::Call;
use super::state::{Argument, State};
use super::walk::Walker;

/// The machine that a text names, when it names one.
pub(super) fn host(text: &str) -> Option<String> {
    let rest = match text.split_once("://") {
        Some((scheme, rest))
            if scheme
                .chars()
                .all(|next| next.is_ascii_alphanumeric() || next == '+') =>
        {
            rest
        }
        Some(_) => return None,
        None => {
            // `user@host:path`
            let (before, _) = text.split_once(':')?;
            let (_, machine) = before.split_once('@')?;
            return is_machine(machine).then(|| machine.to_owned());
        }
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let machine = authority.rsplit('@').next().unwrap_or_default();
    let machine = if machine.starts_with('[') {
        machine.split_inclusive(']').next().unwrap_or_default()
    } else {
        machine.split(':').next().unwrap_or_default()
    };
    is_machine(machine).then(|| machine.to_ascii_lowercase())
}

pub(super) fn is_machine(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|next| next.is_alphanumeric() || ".-_[]:*".contains(next))
}

fn is_local(host: &str) -> bool {
    matches!(
        host,
        "localhost" | "127.0.0.1" | "[::1]" | "0.0.0.0" | "::1"
    ) || host.ends_with(".localhost")
}

/// A deed on the network.
pub(super) fn deed(action: &str, because: String, hosts: impl IntoIterator<Item = String>) -> Deed {
    let mut deed = actions::deed(action, because);
    deed.hosts.extend(hosts);
    if !deed.hosts.is_empty() && deed.hosts.iter().all(|host| is_local(host)) {
        deed.risk = crate::Risk::Low;
    }
    deed
}

/// The machine of an argument that is a URL, with or without its scheme.
fn url_host(argument: &Argument) -> Option<String> {
    let text = argument.start();
    host(text).or_else(|| {
        let machine = text.split(['/', ':', '?']).next().unwrap_or_default();
        is_machine(machine).then(|| machine.to_ascii_lowercase())
    })
}

/// Whether part of this could be something that was just read.
fn is_leak(argument: &Argument) -> bool {
    argument.is_dynamic()
}

/// Options of `curl` that send something.
const BODIES: [&str; 16] = [
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-ascii",
    "--data-urlencode",
    "-F",
    "--form",
    "--form-string",
    "-T",
    "--upload-file",
    "--json",
    "-Q",
    "--quote",
    "--mail-from",
    "--url-query",
];

/// `curl -G`: what would be sent becomes part of the address. That is a question, as long as
/// all of it is written in the line.
fn is_query(parsed: &Parsed) -> bool {
    parsed.has(&["-G", "--get"])
        && parsed
            .values(&BODIES)
            .into_iter()
            .all(|value| !is_leak(value) && !value.start().contains('@'))
}

/// `curl`
pub(super) fn curl(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let mut sends = parsed.has(&BODIES) && !is_query(&parsed);
    sends |= method_sends(&parsed, &["-X", "--request"]);
    let mut hosts: Vec<String> = parsed.operands.iter().filter_map(url_host).collect();
    hosts.extend(parsed.values(&["--url"]).into_iter().filter_map(url_host));
    sends |= parsed.operands.iter().any(is_leak);
    for value in parsed.values(&[
        "-H",
        "--header",
        "-A",
        "--user-agent",
        "-e",
        "--referer",
        "-b",
        "--cookie",
        "-u",
        "--user",
        "--url",
        "-x",
        "--proxy",
        "--oauth2-bearer",
        "--resolve",
        "--connect-to",
    ]) {
        sends |= is_leak(value) || value.start().starts_with('@');
    }
    for value in parsed.values(&[
        "-d",
        "--data",
        "--data-raw",
        "--data-binary",
        "--json",
        "-F",
        "--form",
        "--data-urlencode",
        "-H",
        "-T",
        "--upload-file",
        "-b",
        "--cookie",
    ]) {
        let text = value.start();
        let file = text
            .strip_prefix('@')
            .or_else(|| text.split_once("=@").map(|(_, file)| file))
            .or_else(|| text.split_once("=<").map(|(_, file)| file));
        let named = parsed
            .values(&["-T", "--upload-file"])
            .contains(&value)
            .then_some(text);
        if let Some(file) = file.or(named)
            && file != "-"
        {
            let file = Argument::Known(file.split(';').next().unwrap_or_default().to_owned());
            walker.file(READ, &[(file, Role::Read)], "`curl` sends a file", state);
        }
    }
    for value in parsed.values(&[
        "-o",
        "--output",
        "-D",
        "--dump-header",
        "-c",
        "--cookie-jar",
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--output-dir",
        "--etag-save",
    ]) {
        if value.known() != Some("-") {
            walker.file(
                WRITE,
                &[(value.clone(), Role::Write)],
                "`curl` writes what it fetched",
                state,
            );
        }
    }
    if parsed.has(&[
        "-O",
        "--remote-name",
        "--remote-name-all",
        "-J",
        "--remote-header-name",
    ]) {
        here(walker, state, "`curl` writes what it fetched");
    }
    for operand in &parsed.operands {
        if let Some(path) = operand.start().strip_prefix("file://") {
            walker.file(
                READ,
                &[(Argument::Known(path.to_owned()), Role::Read)],
                "`curl` reads a file",
                state,
            );
        }
    }
    let action = if sends { SEND } else { FETCH };
    walker.add(deed(
        action,
        format!("`{}` talks to another machine", call.name),
        hosts,
    ));
}

fn method_sends(parsed: &Parsed, names: &[&str]) -> bool {
    parsed.values(names).into_iter().any(|method| {
        !method.known().is_some_and(|method| {
            matches!(
                method.to_ascii_uppercase().as_str(),
                "GET" | "HEAD" | "OPTIONS"
            )
        })
    })
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
    let mut sends = parsed.has(&["--post-data", "--post-file", "--body-data", "--body-file"])
        || method_sends(&parsed, &["--method"]);
    sends |= parsed.operands.iter().any(is_leak)
        || parsed
            .values(&["--header", "-U", "--user-agent", "--referer"])
            .into_iter()
            .any(is_leak);
    for value in parsed.values(&["--post-file", "--body-file", "-i", "--input-file"]) {
        walker.file(
            READ,
            &[(value.clone(), Role::Read)],
            "`wget` reads a file",
            state,
        );
    }
    let outputs = parsed.values(&["-O", "--output-document"]);
    if outputs.is_empty() && !parsed.has(&["--spider"]) {
        match parsed.values(&["-P", "--directory-prefix"]).first() {
            Some(prefix) => walker.file(
                WRITE,
                &[((*prefix).clone(), Role::Write)],
                "`wget` writes what it fetched",
                state,
            ),
            None => here(walker, state, "`wget` writes what it fetched"),
        }
    }
    for value in
        outputs
            .into_iter()
            .chain(parsed.values(&["-o", "-a", "--output-file", "--append-output"]))
    {
        if value.known() != Some("-") {
            walker.file(
                WRITE,
                &[(value.clone(), Role::Write)],
                "`wget` writes what it fetched",
                state,
            );
        }
    }
    let hosts: Vec<String> = parsed.operands.iter().filter_map(url_host).collect();
    let action = if sends { SEND } else { FETCH };
    walker.add(deed(
        action,
        format!("`{}` talks to another machine", call.name),
        hosts,
    ));
}

/// `gh api`
pub(super) fn api(walker: &mut Walker<'_>, call: &Call<'_>) {
    let parsed = options::parse(call.arguments, call.entry, false);
    let gets = parsed
        .values(&["-X", "--method"])
        .into_iter()
        .any(|method| {
            method
                .known()
                .is_some_and(|method| method.eq_ignore_ascii_case("get"))
        });
    let sends = method_sends(&parsed, &["-X", "--method"])
        || !gets && parsed.has(&["-f", "-F", "--field", "--raw-field", "--input"])
        || parsed
            .operands
            .iter()
            .any(|operand| operand.start().starts_with("graphql"));
    let action = if sends { SEND } else { FETCH };
    walker.add(deed(
        action,
        format!("`{}` talks to a service", call.name),
        None,
    ));
}

/// `http`: a method, a URL, and items that are sent.
pub(super) fn httpie(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    let mut operands = parsed.operands.as_slice();
    let mut sends = operands.iter().any(is_leak);
    if let Some((Argument::Known(method), rest)) = operands.split_first()
        && !method.is_empty()
        && method.chars().all(|next| next.is_ascii_uppercase())
    {
        sends |= !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
        operands = rest;
    }
    sends |= operands
        .iter()
        .skip(1)
        .any(|item| !item.start().contains("==") && item.start().contains(['=', '@']));
    sends |= matches!(
        call.input,
        super::walk::Input::Pipe | super::walk::Input::File | super::walk::Input::Text(_)
    );
    for value in parsed.values(&["-o", "--output"]) {
        walker.file(
            WRITE,
            &[(value.clone(), Role::Write)],
            "it writes what it fetched",
            state,
        );
    }
    let action = if sends { SEND } else { FETCH };
    walker.add(deed(
        action,
        format!("`{}` talks to another machine", call.name),
        operands.first().and_then(url_host),
    ));
}

/// Names that are asked for can carry what was read.
pub(super) fn lookup(walker: &mut Walker<'_>, call: &Call<'_>) {
    let action = if call.arguments.iter().any(is_leak) {
        SEND
    } else {
        FETCH
    };
    walker.add(deed(
        action,
        format!("`{}` asks the network", call.name),
        None,
    ));
}
