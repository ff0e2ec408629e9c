//! What a client said, in words that are the same for all of them.

use std::path::PathBuf;

use serde_json::Value;

use crate::Client;

/// One event of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// Who says it.
    pub client: Client,
    /// The client's own name for its session.
    pub session: String,
    /// Where the client works, absolute.
    pub directory: PathBuf,
    /// The sub-agent it is about.
    pub agent: Option<String>,
    /// Where the client writes its session down, if it says so.
    pub transcript: Option<PathBuf>,
    /// The client's own name of the event: an answer must repeat it.
    pub name: String,
    /// What happens.
    pub event: Event,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A session begins, or goes on after a pause.
    SessionStart,
    /// Somebody says something to the agent: a person, or the client itself.
    Prompt {
        /// What.
        text: String,
    },
    /// A tool is about to be used.
    Before(Call),
    /// A tool has been used.
    After {
        /// The call.
        call: Call,
        /// How it ended.
        ended: Ended,
        /// What the client says came of it.
        result: Value,
    },
    /// The client asks whether it may, after we have been asked already.
    Permission(Call),
    /// The agent, or a sub-agent, has nothing more to do for now.
    Stop,
    /// The session ends.
    SessionEnd,
    /// Something that needs no answer.
    Other,
}

/// One use of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The client's own name of the call, which pairs before and after; some have none.
    pub id: Option<String>,
    /// The client's own name of the tool.
    pub name: String,
    /// Everything it is given, as the client says it.
    pub input: Value,
    /// What that means.
    pub tool: Tool,
}

/// How a call ended, as far as the client tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Well.
    Ok,
    /// Not well.
    Error,
    /// The client does not say.
    Unsaid,
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq)]
pub enum Tool {
    /// A shell runs a line.
    Shell {
        /// The line.
        line: String,
        /// Where, if not where the client works.
        directory: Option<PathBuf>,
        /// Whether the client does not wait for its end.
        background: bool,
        /// The field of the input that holds the line, by which it can be replaced.
        field: &'static str,
    },
    /// Files are written, edited, removed or moved.
    Files(Vec<FileChange>),
    /// These are read, or searched.
    Read(Vec<PathBuf>),
    /// Something is fetched from a machine.
    Fetch {
        /// From where; `None` when the client chooses, as with a search.
        url: Option<String>,
    },
    /// A tool of an MCP server.
    Mcp {
        /// The server; empty where the client does not say.
        server: String,
        /// Its tool.
        tool: String,
    },
    /// A sub-agent is started. Its own calls pass here one by one.
    Delegate,
    /// It changes nothing but what the client keeps for itself, such as a list of things to do.
    Own,
    /// A tool that we do not know.
    Unknown,
}

/// What becomes of one file. Paths may be relative to where the client works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// It is made or written.
    Write(PathBuf),
    /// It is removed.
    Delete(PathBuf),
    /// It becomes another one.
    Move {
        /// What.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
    },
}
