//! A client's settings: our hooks put in among what is there, and taken out again.
//!
//! Everything is a function from the old text to the new one; the caller reads, keeps a
//! copy and writes. Entries of others are never touched. A text that is not understood is
//! not changed.

mod coverage;
mod lossless;
mod merge;
mod opencode;
mod place;
mod plugin;
mod server;
mod shape;

use std::path::PathBuf;

use crate::Client;

pub use coverage::not_covered;
pub use place::{Roots, Scope, home_variable, places};
pub use plugin::plugin;
pub use server::{install_server, named_server, server_place, uninstall_server};

/// How long a client waits for the hook. The hook must have answered long before: most
/// clients go on when this runs out.
pub const TIMEOUT_SECONDS: u32 = 300;

/// How the hook is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCommand {
    /// The program, by its absolute path: some clients reset the search path.
    pub program: PathBuf,
}

impl HookCommand {
    /// The path as a text that every client can hold.
    pub(crate) fn text(&self) -> Result<&str, SettingsError> {
        let text = self
            .program
            .to_str()
            .filter(|text| self.program.is_absolute() && !text.chars().any(char::is_control));
        text.ok_or(SettingsError::Program)
    }
}

/// What is there of ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The program that the entries name; the first one, if they differ.
    pub program: Option<PathBuf>,
    /// The events that have an entry of ours.
    pub events: Vec<String>,
    /// The events that should have one and have none.
    pub missing: Vec<String>,
    /// The events whose entry is not as we would write it now, such as one without what
    /// makes the client stop when the hook fails, or one that names another program.
    pub stale: Vec<String>,
    /// What in the same text switches all hooks off, or ours.
    pub switched_off: Option<String>,
}

impl Installed {
    /// Whether everything is there, as we would write it now, and switched on.
    pub fn complete(&self) -> bool {
        let lacks = !self.missing.is_empty() || !self.stale.is_empty();
        self.program.is_some() && !lacks && self.switched_off.is_none()
    }
}

/// Why settings were not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// The text is not strict JSON.
    #[error(
        "the settings are not plain JSON: line {line}, column {column}: {why}; nothing was \
         changed, so remove comments and trailing commas, or add the hooks by hand"
    )]
    NotJson {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there.
        why: String,
    },
    /// Something has another form than it should.
    #[error("{place} is not {expected}; nothing was changed")]
    Odd {
        /// What, in words.
        place: String,
        /// What it should be.
        expected: &'static str,
    },
    /// The program cannot be named.
    #[error("the program must be named by an absolute path of plain UTF-8 characters")]
    Program,
    /// A file that should be ours is somebody else's.
    #[error("the file is there and was not written by Safepoint; nothing was changed")]
    Foreign,
    /// The text was read and could not be walked, which does not happen.
    #[error("the settings could not be walked; nothing was changed")]
    Unreadable,
}

/// The text with our hooks in it. The same text again, byte for byte, if they are there.
pub fn install(
    client: Client,
    existing: Option<&str>,
    command: &HookCommand,
) -> Result<String, SettingsError> {
    let program = command.text()?;
    let existing = existing.filter(|text| !text.trim().is_empty());
    match shape::Shape::of(client) {
        Some(shape) => merge::install(client, shape, existing, program),
        None => opencode::install(existing, program),
    }
}

/// The text without our hooks. `None`: nothing else is left, and the file can be deleted.
pub fn uninstall(client: Client, existing: &str) -> Result<Option<String>, SettingsError> {
    if existing.trim().is_empty() {
        return Ok(Some(existing.to_owned()));
    }
    match shape::Shape::of(client) {
        Some(shape) => merge::uninstall(client, shape, existing),
        None => Ok(opencode::uninstall(existing)),
    }
}

/// What is there of ours.
pub fn installed(client: Client, existing: &str) -> Result<Installed, SettingsError> {
    match shape::Shape::of(client) {
        Some(shape) if existing.trim().is_empty() => Ok(Installed {
            missing: shape.entries().map(str::to_owned).collect(),
            ..Installed::default()
        }),
        Some(shape) => merge::installed(client, shape, existing),
        None => Ok(opencode::installed(existing)),
    }
}
