//! Takes a program's arguments apart: options, their values, operands.

use super::state::Argument;
use super::table::Entry;

/// Arguments, taken apart.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    /// Each option by its name, with its value if it has one.
    pub(super) options: Vec<(String, Option<Argument>)>,
    pub(super) operands: Vec<Argument>,
    /// Some word may turn out to be an option.
    pub(super) unsure: bool,
}

impl Parsed {
    /// Whether one of these options was given.
    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.options
            .iter()
            .any(|(option, _)| names.iter().any(|name| same(option, name)))
    }

    /// One entry speaks for many programs, whose options differ: a word that looks like a path
    /// is taken for an operand as well, lest an option swallow it.
    fn doubt(&mut self, option: &str, value: Option<&Argument>, entry: &Entry, leading: bool) {
        let is_path = listed(&entry.reads, option) || listed(&entry.writes, option);
        let on_files = !is_path
            && entry.special.is_none()
            && entry.does.iter().any(|does| does.starts_with("file."));
        let Some(value) = value.filter(|_| on_files && !leading) else {
            return;
        };
        let text = value.start();
        if text.contains('/') || text.starts_with(['.', '~']) {
            self.operands.push(value.clone());
        }
    }

    /// The values of these options.
    pub(super) fn values(&self, names: &[&str]) -> Vec<&Argument> {
        self.options
            .iter()
            .filter(|(option, _)| names.iter().any(|name| same(option, name)))
            .filter_map(|(_, value)| value.as_ref())
            .collect()
    }
}

/// Whether a given option is this one. Long ones may be cut short.
pub(super) fn same(given: &str, listed: &str) -> bool {
    given == listed || given.starts_with("--") && given.len() >= 3 && listed.starts_with(given)
}

/// Whether an option is in a list. Long ones may be cut short.
pub(super) fn listed(list: &[String], given: &str) -> bool {
    list.iter().any(|name| same(given, name))
}

/// Whether an option takes a value.
pub(super) fn takes_value(entry: &Entry, given: &str) -> bool {
    // Written out, it is that option and no other.
    let whole = |list: &[String]| list.iter().any(|name| name == given);
    let flags = [Some(&entry.opaque), entry.options.as_ref()];
    let taking = [
        &entry.values,
        &entry.reads,
        &entry.writes,
        &entry.sends,
        &entry.tunnels,
    ];
    taking.iter().any(|list| whole(list))
        || !flags.into_iter().flatten().any(|list| whole(list))
            && taking.iter().any(|list| listed(list, given))
}

/// Whether an entry says anything about an option.
pub(super) fn is_named(entry: &Entry, given: &str) -> bool {
    let flag = |given: &str| {
        entry
            .options
            .as_ref()
            .is_some_and(|list| listed(list, given))
    };
    takes_value(entry, given)
        || listed(&entry.opaque, given)
        || listed(&entry.pairs, given)
        || flag(given)
        || given
            .strip_prefix("--no-")
            .is_some_and(|rest| flag(&format!("--{rest}")))
        || entry.with.iter().any(|(list, _)| listed(list, given))
}

/// Takes arguments apart. With `leading`, the first operand ends the options.
pub(super) fn parse(arguments: &[Argument], entry: &Entry, leading: bool) -> Parsed {
    let mut parsed = Parsed::default();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let text = argument.start();
        if argument.is_dynamic() && text.is_empty() {
            parsed.unsure = true;
        }
        let option = text.len() > 1 && text.starts_with('-');
        if !option {
            parsed.operands.push(argument.clone());
            if leading {
                parsed.operands.extend(rest.cloned());
                break;
            }
            continue;
        }
        if argument.known() == Some("--") {
            parsed.operands.extend(rest.cloned());
            break;
        }
        if argument.is_dynamic() && !text.contains('=') && text.starts_with("--") {
            parsed.unsure = true;
        }
        if text.starts_with("--") || entry.words {
            match text.split_once('=') {
                Some((name, value)) => {
                    let value = tail(argument, name.len() + 1, value);
                    parsed.options.push((name.to_owned(), Some(value)));
                }
                None => {
                    let value = if listed(&entry.pairs, text) {
                        rest.next();
                        rest.next().cloned()
                    } else if takes_value(entry, text) {
                        rest.next().cloned()
                    } else {
                        None
                    };
                    parsed.doubt(text, value.as_ref(), entry, leading);
                    parsed.options.push((text.to_owned(), value));
                }
            }
            continue;
        }
        for (at, letter) in text.char_indices().skip(1) {
            let name = format!("-{letter}");
            if takes_value(entry, &name) {
                let after = at + letter.len_utf8();
                let value = match text.get(after..) {
                    Some(value) if !value.is_empty() || argument.is_dynamic() => {
                        Some(tail(argument, after, value))
                    }
                    _ => {
                        let value = rest.next().cloned();
                        parsed.doubt(&name, value.as_ref(), entry, leading);
                        value
                    }
                };
                parsed.options.push((name, value));
                break;
            }
            parsed.options.push((name, None));
        }
        if argument.is_dynamic() {
            parsed.unsure = true;
        }
    }
    parsed
}

/// The end of an argument, from a place in what is known of it.
pub(super) fn tail(argument: &Argument, from: usize, known: &str) -> Argument {
    match argument {
        Argument::Known(_) => Argument::Known(known.to_owned()),
        Argument::Pattern { text, .. } => {
            let text = text.get(from..).unwrap_or_default().to_owned();
            let directory = text
                .find(['*', '?', '['])
                .and_then(|at| text.get(..at))
                .and_then(|before| before.rfind('/').and_then(|end| before.get(..end)))
                .unwrap_or_default()
                .to_owned();
            Argument::Pattern { directory, text }
        }
        Argument::Dynamic {
            written, splits, ..
        } => Argument::Dynamic {
            start: known.to_owned(),
            written: written.clone(),
            splits: *splits,
        },
    }
}
