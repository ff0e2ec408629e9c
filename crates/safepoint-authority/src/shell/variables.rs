//! Variables that choose code: given to a program, they make a line opaque.
//!
//! The names are data (`rules/variables.toml`).

use std::sync::OnceLock;

use super::actions::{self, EXEC};
use super::state::State;
use super::syntax::{Piece, Word};
use super::walk::Walker;

const VARIABLES: &str = include_str!("../../rules/variables.toml");

struct Names {
    exact: Vec<String>,
    prefixes: Vec<String>,
    harmless: Vec<String>,
    modules: Vec<String>,
    proxies: Vec<String>,
}

fn names() -> &'static Names {
    static NAMES: OnceLock<Names> = OnceLock::new();
    NAMES.get_or_init(|| {
        let document = toml_edit::Document::parse(VARIABLES).ok();
        let list = |key: &str| -> Vec<String> {
            document
                .as_ref()
                .and_then(|document| document.get(key)?.as_str())
                .map(|text| text.split_ascii_whitespace().map(str::to_owned).collect())
                .unwrap_or_default()
        };
        Names {
            exact: list("code"),
            prefixes: list("prefixes"),
            harmless: list("harmless"),
            modules: list("modules"),
            proxies: list("proxies"),
        }
    })
}

/// Whether a variable chooses what code runs.
fn chooses_code(name: &str) -> bool {
    let names = names();
    if names.harmless.iter().any(|known| known == name) {
        return false;
    }
    names.exact.iter().any(|known| known == name)
        || names
            .prefixes
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
}

/// Whether a variable, with this value, chooses nothing after all.
fn is_harmless(name: &str, value: &str) -> bool {
    let words = || value.split_ascii_whitespace();
    if name.ends_with("PAGER") || name.ends_with("EDITOR") {
        // The usual ways to switch a pager or an editor off.
        return matches!(
            value,
            "" | "cat" | "true" | ":" | "/bin/true" | "/bin/cat" | "less"
        );
    }
    match name {
        "NODE_OPTIONS" => words().all(|word| {
            [
                "--max-old-space-size",
                "--max_old_space_size",
                "--experimental-vm-modules",
                "--no-warnings",
                "--trace-warnings",
                "--trace-deprecation",
                "--no-deprecation",
                "--openssl-legacy-provider",
                "--enable-source-maps",
                "--stack-size",
            ]
            .iter()
            .any(|option| word.starts_with(option))
        }),
        "MAKEFLAGS" => words().all(|word| word.starts_with("-j") || matches!(word, "-s" | "-k")),
        "RUSTC_WRAPPER" => matches!(value, "" | "sccache"),
        _ => false,
    }
}

/// What giving a variable this value means.
pub(super) fn weigh(walker: &mut Walker<'_>, name: &str, value: Option<&str>) {
    walker.out.assigned.insert(name.to_owned());
    if matches!(name, "SAFEPOINT_HOME" | "SAFEPOINT_STORE") {
        let why = format!("`{name}` chooses another store");
        walker.add(actions::deed(super::actions::CONTROL, why));
    }
    if names().proxies.iter().any(|known| known == name) {
        // Whatever is fetched or sent goes there first.
        if value != Some("") {
            let why = format!("`{name}` leads what is sent elsewhere");
            walker.add(actions::deed(super::actions::SEND, why));
        }
    } else if names().modules.iter().any(|known| known == name) {
        walker.add(actions::deed(
            EXEC,
            format!("`{name}` chooses what code runs"),
        ));
    } else if chooses_code(name) && !value.is_some_and(|value| is_harmless(name, value)) {
        walker.opaque(format!("`{name}` chooses what code runs"));
    }
}

/// The text of a word that holds nothing but text.
pub(super) fn literal(word: &Word) -> Option<String> {
    let mut text = String::new();
    for piece in &word.pieces {
        match piece {
            Piece::Plain(part) | Piece::Quoted(part) => text.push_str(part),
            _ => return None,
        }
    }
    Some(text)
}

/// A variable that is assigned in the line, for all that follows.
pub(super) fn within(walker: &mut Walker<'_>, name: &str, value: Option<&str>, state: &mut State) {
    if name == "PATH" {
        state.path_changed = true;
    } else {
        weigh(walker, name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::{chooses_code, names};

    #[test]
    fn au_04_the_names_are_there() {
        assert!(!names().modules.is_empty() && !names().proxies.is_empty());
        for name in ["PATH", "IFS", "BASH_ENV", "LD_PRELOAD", "GIT_SSH_COMMAND"] {
            assert!(chooses_code(name), "{name}");
        }
        for name in ["FOO", "NODE_ENV", "RUST_LOG", "CI", "GIT_AUTHOR_NAME"] {
            assert!(!chooses_code(name), "{name}");
        }
    }
}
