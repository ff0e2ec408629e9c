//! Programs that talk to other machines: what is fetched, what is sent, and to whom.

use crate::deed::{Deed, Role};

use super::actions::{self, FETCH, READ, SEND};
use super::options::{self, Parsed};
use super::run::{Call, strings};
use super::state::{Argument, State};
use super::tools::named_by_options;
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

pub(super) fn is_local(host: &str) -> bool {
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

/// The machine of an address; the address itself where no machine can be told.
pub(super) fn machine(argument: &Argument) -> String {
    let text = argument.start();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    // What is not known could still belong to the name of the machine.
    let whole = !argument.is_dynamic() || rest.contains('/');
    match url_host(argument) {
        Some(host) if whole && !text.contains(['\\', '{', '%', ' ']) => host,
        _ => format!("`{}`", safepoint_model::text::line(argument.shown()).text),
    }
}

/// Whether part of this could be something that was just read.
fn is_leak(argument: &Argument) -> bool {
    argument.is_dynamic()
}

pub(super) fn method_sends(parsed: &Parsed, names: &[&str]) -> bool {
    parsed.values(names).into_iter().any(|method| {
        !method.known().is_some_and(|method| {
            matches!(
                method.to_ascii_uppercase().as_str(),
                "GET" | "HEAD" | "OPTIONS"
            )
        })
    })
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
    named_by_options(walker, call, &parsed, state);
    let mut operands = parsed.operands.as_slice();
    let mut sends = operands.iter().any(is_leak) || parsed.has(&["--raw"]);
    if let Some((Argument::Known(method), rest)) = operands.split_first()
        && !method.is_empty()
        && method.chars().all(|next| next.is_ascii_uppercase())
    {
        sends |= !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS");
        operands = rest;
    }
    for item in operands.iter().skip(1) {
        let text = item.start();
        sends |= !text.contains("==") && text.contains(['=', '@']);
        if let Some(at) = text.find('@') {
            let file = text.get(at + 1..).unwrap_or_default();
            let read = [(options::tail(item, at + 1, file), Role::Read)];
            walker.file(READ, &read, "it sends a file", state);
        }
    }
    sends |= matches!(
        call.input,
        super::walk::Input::Pipe | super::walk::Input::File | super::walk::Input::Text(_)
    );
    sends |= parsed.options.iter().any(|(option, value)| {
        !options::listed(&call.entry.writes, option) && value.as_ref().is_some_and(is_leak)
    });
    let mut hosts: Vec<String> = operands.first().map(machine).into_iter().collect();
    if parsed.has(&strings(&call.entry.tunnels)) {
        hosts.push("a proxy".to_owned());
    }
    let action = if sends { SEND } else { FETCH };
    let why = format!("`{}` talks to another machine", call.name);
    walker.add(deed(action, why, hosts));
}

/// Names that are asked for can carry what was read, and so can files that hold names.
pub(super) fn lookup(walker: &mut Walker<'_>, call: &Call<'_>, state: &mut State) {
    let parsed = options::parse(call.arguments, call.entry, false);
    walker.strange_options(call, &parsed);
    named_by_options(walker, call, &parsed, state);
    let sends = call.arguments.iter().any(is_leak) || parsed.has(&strings(&call.entry.reads));
    let action = if sends { SEND } else { FETCH };
    let why = format!("`{}` asks the network", call.name);
    walker.add(deed(action, why, None));
}
