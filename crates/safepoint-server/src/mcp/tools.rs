//! What a server of tools is asked for.

use serde_json::{Map, Value};

/// The tools that are offered, and what they do. Synchronous: calls run on threads of their
/// own.
pub trait Tools: Send + Sync + 'static {
    /// Who offers them.
    fn about(&self) -> About;

    /// All tools, in the order in which they are shown.
    fn list(&self) -> Vec<ToolNote>;

    /// All prompts, in the order in which they are shown.
    fn prompts(&self) -> Vec<PromptNote> {
        Vec::new()
    }

    /// Whether a call waits for a person. While it does, others go on.
    fn waits(&self, _name: &str, _arguments: &Map<String, Value>) -> bool {
        false
    }

    /// Uses one. What the tool refuses or fails at is an answer, not an error.
    fn call(
        &self,
        caller: &Caller,
        name: &str,
        arguments: &Map<String, Value>,
    ) -> Result<ToolAnswer, Refused>;
}

/// Who offers tools.
#[derive(Clone, Debug)]
pub struct About {
    /// The name for programs.
    pub name: String,
    /// The name for people.
    pub title: String,
    /// Of which version.
    pub version: String,
    /// What a model should know of them together.
    pub instructions: String,
}

/// One tool.
#[derive(Clone, Debug)]
pub struct ToolNote {
    /// Its name for programs.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of what it takes.
    pub input: Map<String, Value>,
    /// The JSON Schema of what it gives.
    pub output: Map<String, Value>,
    /// What a client may expect of it.
    pub hints: Hints,
}

/// One prompt: a text that a person has their client put before the model.
#[derive(Clone, Debug)]
pub struct PromptNote {
    /// Its name for programs.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// The text.
    pub text: String,
}

/// What a client may expect of a tool, in the words of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: bool,
    /// It may overwrite or remove something.
    pub destructive: bool,
    /// Twice with the same arguments is as good as once.
    pub idempotent: bool,
    /// It deals with more than this machine's own things.
    pub open_world: bool,
}

/// Who calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Caller {
    /// The name of the connection, where there can be several.
    pub connection: Option<String>,
}

/// What a tool answers.
#[derive(Clone, Debug)]
pub struct ToolAnswer {
    /// The document.
    pub document: Value,
    /// How to go on, in words, where it did not do what was asked.
    pub advice: Option<String>,
    /// Whether it did what was asked.
    pub done: bool,
}

/// A call that reaches no tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// There is no such tool.
    #[error("there is no tool `{0}`")]
    Unknown(String),
    /// It cannot take these arguments.
    #[error("{0}")]
    Arguments(String),
}
