//! The machine that lines are understood on in tests: no real one is looked at.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use safepoint_authority::{Program, Programs, Role, Surroundings, Understanding, Undo, Where};

pub(crate) const WORKSPACE: &str = "/home/sam/work/app";
pub(crate) const HOME: &str = "/home/sam";

/// Programs by their names alone.
pub(crate) struct Machine;

/// Tools that lie in the user's own directories.
const OWN: [&str; 12] = [
    "cargo", "rustc", "rustup", "node", "npm", "npx", "uv", "uvx", "pnpm", "claude", "evil",
    "rustfmt",
];

impl Programs for Machine {
    fn find(&self, name: &str, directory: &Path) -> Program {
        if name.starts_with("/usr/bin/") || name.starts_with("/bin/") {
            return Program::System(PathBuf::from(name));
        }
        if name.contains('/') {
            return Program::Other(directory.join(name));
        }
        if name.starts_with("no-such") || name.len() == 1 || name.starts_with("my_") {
            return Program::Missing;
        }
        if OWN.contains(&name) {
            return Program::Other(Path::new(HOME).join(".local/bin").join(name));
        }
        if name == "localtool" {
            return Program::Other(Path::new(WORKSPACE).join("node_modules/.bin").join(name));
        }
        Program::System(Path::new("/usr/bin").join(name))
    }

    fn home_variable(&self) -> Option<OsString> {
        Some(HOME.into())
    }

    fn home_of(&self, account: &str) -> Option<PathBuf> {
        (account == "ann").then(|| "/home/ann".into())
    }
}

pub(crate) fn understand(line: &str) -> Understanding {
    let own = [PathBuf::from("/home/sam/.local/share/safepoint")];
    safepoint_authority::shell::line(
        line,
        &Surroundings {
            programs: &Machine,
            directory: Path::new(WORKSPACE),
            home: Some(Path::new(HOME)),
            own: &own,
        },
    )
}

pub(crate) fn understand_command(argv: &[&str]) -> Understanding {
    let own = [PathBuf::from("/home/sam/.local/share/safepoint")];
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    safepoint_authority::shell::command(
        &argv,
        &Surroundings {
            programs: &Machine,
            directory: Path::new(WORKSPACE),
            home: Some(Path::new(HOME)),
            own: &own,
        },
    )
}

/// A line of a corpus as it is meant: signs stand for what a text file would hide.
pub(crate) fn unescape(line: &str) -> String {
    line.replace('⏎', "\n")
        .replace('⇥', "\t")
        .replace('␍', "\r")
        .replace('␣', "\u{a0}")
        .replace('␀', "\0")
        .replace('␈', "\u{202e}")
}

/// The other way round.
pub(crate) fn escape(line: &str) -> String {
    line.replace('\n', "⏎")
        .replace('\t', "⇥")
        .replace('\r', "␍")
        .replace('\u{a0}', "␣")
        .replace('\0', "␀")
        .replace('\u{202e}', "␈")
}

pub(crate) fn actions(understanding: &Understanding) -> BTreeSet<String> {
    understanding
        .deeds
        .iter()
        .map(|deed| deed.action.clone())
        .collect()
}

/// What counts as this machine, where a line is judged.
fn is_local(host: &str) -> bool {
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    matches!(name, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0") || host == "::1"
}

/// What the built-in atlas would hold, in short.
pub(crate) fn held(understanding: &Understanding) -> Vec<String> {
    let mut why = Vec::new();
    for deed in &understanding.deeds {
        let always = matches!(
            deed.action.as_str(),
            "shell.opaque"
                | "safepoint.control"
                | "secret.read"
                | "net.send"
                | "git.push"
                | "system.change"
                | "db.drop"
                | "package.publish"
                | "process.kill"
                | "agent.delegate"
        );
        let local = deed.action == "net.send"
            && !deed.hosts.is_empty()
            && deed.hosts.iter().all(|host| is_local(host));
        if local {
            continue;
        }
        if always || matches!(deed.undo, Undo::Never(_) | Undo::Unknown) {
            why.push(format!("{}: {}", deed.action, deed.because));
        }
        for touch in &deed.touches {
            let changes = matches!(touch.role, Role::Write | Role::Delete | Role::Metadata);
            let outside = match &touch.place {
                Where::Exact(path) | Where::Below(path) => !path.starts_with(WORKSPACE),
                Where::Unknown(_) => true,
            };
            if changes && outside {
                why.push(format!(
                    "{}: {:?} {:?}",
                    deed.action, touch.role, touch.place
                ));
            }
        }
    }
    why
}
