//! Whoever answers: the commands of the program, run for somebody who asks over a connection.
//!
//! The API and the page know nothing else. They name a command by its words and get the
//! document that it prints under `--json`, so that there is one meaning for each thing.

use std::path::PathBuf;

use serde_json::Value;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Works: sessions of its own, requests, records. It decides nothing.
    Agent,
    /// Decides: holds, permits, trust.
    Operator,
    /// Writes rules.
    Steward,
    /// Reads everything, and changes nothing.
    Auditor,
}

/// Somebody whose token is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name, as the trail has it.
    pub name: String,
    /// What they may do.
    pub roles: Vec<Role>,
    /// What it is limited to; empty for everything that the roles allow.
    pub scopes: Vec<String>,
}

/// A command, with everything it reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// Its words, without the name of the program.
    pub words: Vec<String>,
    /// What stands for standard input.
    pub input: Vec<u8>,
    /// The directory that it works in, where that matters.
    pub directory: Option<PathBuf>,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The exit code, as the contract has it.
    pub exit: u8,
    /// What it printed.
    pub document: Value,
}

/// What is kept of a workspace, and named by an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// A checkpoint.
    Checkpoint,
    /// An action.
    Action,
}

/// Nobody can say now.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the store cannot be reached: {0}")]
pub struct Unavailable(pub String);

/// The commands.
pub trait Commands: Send + Sync + 'static {
    /// Whose token this is. `None` where nobody's, or where it was revoked or has expired.
    fn caller(&self, token: &str) -> Result<Option<Caller>, Unavailable>;

    /// The directory that something is of. `None` where there is no such thing, or none in a
    /// workspace that the caller may use.
    fn home(
        &self,
        caller: &Caller,
        record: Record,
        id: &str,
    ) -> Result<Option<PathBuf>, Unavailable>;

    /// Runs a command. Whatever goes wrong is an answer too.
    fn run(&self, caller: &Caller, command: &Command) -> Answer;
}

/// Who asks with a cookie: a visit lasts for as long as a person does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Somebody is there.
    Person,
    /// An open page asks by itself, and nobody need be there.
    Page,
}

/// The commands, for people whose browsers have a cookie in the place of their token. Whoever
/// is behind this keeps the visits: every server of the same store knows them.
pub trait Visits: Commands {
    /// Begins a visit of whoever shows this token, and says what their cookie is. `None` where
    /// the token is nobody's.
    fn begin_visit(&self, token: &str) -> Result<Option<String>, Unavailable>;

    /// Whose cookie this is. `None` where the visit is over, or the token no longer good.
    fn visitor(&self, cookie: &str, asker: Asker) -> Result<Option<Caller>, Unavailable>;

    /// Ends a visit, everywhere.
    fn end_visit(&self, cookie: &str) -> Result<(), Unavailable>;
}
