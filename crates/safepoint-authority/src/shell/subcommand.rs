//! Subcommands (`git push`, `docker compose up`), and options that must be known.
//!
//! An option that nobody knows could take the next word for its value, and the
//! subcommand would then be another: such a line is opaque.

use std::sync::Arc;

use super::actions::{self, EXEC, READ};
use super::options::{self, Parsed};
use super::run::Call;
use super::state::{Argument, State};
use super::walk::Walker;

impl Walker<'_> {
    /// Options that run code, or that are not known where that could be.
    pub(super) fn strange_options(&mut self, call: &Call<'_>, parsed: &Parsed) {
        let entry = call.entry;
        for (option, _) in &parsed.options {
            let listed = entry.opaque.iter().any(|name| options::same(option, name));
            if listed {
                self.opaque(format!("`{} {option}` runs code", call.name));
            } else if entry.options.is_some() && !options::is_named(entry, option) {
                self.opaque(format!("`{} {option}` is not known", call.name));
            }
        }
        // Options of two letters after one dash, which are no bundle.
        for name in &entry.opaque {
            let is_pair = name.len() > 2 && !name.starts_with("--");
            if is_pair && call.arguments.iter().any(|word| word.start() == name) {
                self.opaque(format!("`{} {name}` runs code", call.name));
            }
        }
        if entry.options.is_some() && parsed.unsure {
            self.opaque(format!("an option of `{}` is not known", call.name));
        }
    }

    pub(super) fn subcommand(&mut self, call: &Call<'_>, state: &mut State) {
        let entry = call.entry;
        let parsed = options::parse(call.arguments, entry, true);
        self.strange_options(call, &parsed);
        let Some((first, _)) = parsed.operands.split_first() else {
            if entry.does.is_empty() {
                self.add(actions::deed(
                    READ,
                    format!("`{}` tells about itself", call.name),
                ));
            } else {
                self.plain(
                    &Call {
                        arguments: &[],
                        ..*call
                    },
                    state,
                );
            }
            return;
        };
        if first.known().is_none() {
            self.opaque(format!("what `{}` is told is not known", call.name));
            return;
        }
        for (option, value) in &parsed.options {
            if value.is_none() && !options::is_named(entry, option) && !is_usual(option) {
                self.opaque(format!("`{} {option}` is not known", call.name));
            }
        }
        // Words that may be part of the subcommand, with their places.
        let mut words = Vec::new();
        let mut places = Vec::new();
        let mut strange_after = None;
        let mut skip = false;
        for (place, word) in parsed.operands.iter().enumerate() {
            let text = word.start();
            if std::mem::take(&mut skip) {
                continue;
            }
            if text.len() > 1 && text.starts_with('-') {
                if options::takes_value(entry, text) {
                    skip = !text.contains('=');
                } else if !is_usual(text) && !text.contains('=') {
                    strange_after.get_or_insert(words.len());
                }
                continue;
            }
            words.push(word.known().unwrap_or("\0"));
            places.push(place);
        }
        for (pattern, below) in &entry.sub {
            let fits = pattern.len() <= words.len()
                && pattern
                    .iter()
                    .zip(&words)
                    .all(|(pattern, word)| super::guarded::glob(pattern, word));
            if !fits {
                continue;
            }
            if strange_after.is_some_and(|after| after < pattern.len()) {
                self.opaque(format!("an option of `{}` is not known", call.name));
            }
            // What follows the words of the subcommand, with the options among them.
            let taken = places.get(..pattern.len()).unwrap_or_default();
            let arguments: Vec<Argument> = parsed
                .operands
                .iter()
                .enumerate()
                .filter(|(place, _)| !taken.contains(place))
                .map(|(_, word)| word.clone())
                .collect();
            let name = format!(
                "{} {}",
                call.name,
                words.get(..pattern.len()).unwrap_or_default().join(" ")
            );
            let below = Arc::clone(below);
            let inner = Call {
                name: &name,
                entry: &below,
                arguments: &arguments,
                input: call.input,
            };
            self.call(&inner, state);
            return;
        }
        if entry.does.is_empty() {
            self.add(actions::deed(EXEC, format!("`{}` is run", call.name)));
        } else {
            self.plain(call, state);
        }
    }
}

/// Options that change nothing but what is told.
fn is_usual(option: &str) -> bool {
    matches!(
        option,
        "-v" | "-vv"
            | "--verbose"
            | "-q"
            | "--quiet"
            | "-h"
            | "--help"
            | "--version"
            | "-V"
            | "--no-color"
            | "--debug"
            | "-y"
            | "--yes"
            | "--json"
            | "--silent"
            | "-s"
            | "-n"
            | "--offline"
            | "--locked"
            | "--frozen"
            | "--no-pager"
            | "-g"
            | "--global"
            | "-a"
            | "--all"
            | "-r"
            | "--recursive"
    )
}
