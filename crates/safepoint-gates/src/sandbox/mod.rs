//! Code that a steward wrote, run so that it can do no harm.
//!
//! There are two kinds: a CEL expression ([`cel`](self)) and a WebAssembly
//! module. Both get one JSON object, and say yes or no, with a message. What
//! they may use is counted in steps and bytes, never in time, so that the same
//! input always gives the same, on any machine.
//!
//! Nothing here reads a file, a clock or the network, and no code keeps
//! anything from one run to the next. Whatever goes wrong is an error: the
//! caller takes it as a no.

mod cel;
#[cfg(test)]
mod tests;
mod wasm;

use safepoint_model::text;
use serde_json::Value;

/// The most bytes of JSON that code is given.
pub const MAX_INPUT_BYTES: usize = 256 * 1024;
/// How deep what code is given may nest.
pub const MAX_INPUT_DEPTH: usize = 64;
/// The most characters of a message that are kept.
pub const MAX_MESSAGE_CHARACTERS: usize = 1_000;

/// Code that cannot be used, or that failed while it ran.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum SandboxError {
    /// It is not code.
    #[error("it cannot be compiled: {0}")]
    Invalid(String),
    /// It ran out of what it may use.
    #[error("it used up its {0}")]
    Exhausted(&'static str),
    /// It failed.
    #[error("it failed: {0}")]
    Failed(String),
}

/// What code said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Whether the answer will do, or the gate is raised.
    pub yes: bool,
    /// Why, in its own words: one line, safe to show.
    pub message: Option<String>,
    /// What it logged: lines that are safe to show.
    pub log: Vec<String>,
}

/// A piece of code, ready to run.
#[derive(Debug)]
pub struct Program {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Cel(Box<cel::Expression>),
    Wasm(Box<wasm::Code>),
}

impl Program {
    /// A CEL expression.
    pub fn cel(expression: &str) -> Result<Self, SandboxError> {
        let kind = Kind::Cel(Box::new(cel::Expression::compile(expression)?));
        Ok(Self { kind })
    }

    /// A WebAssembly module.
    pub fn wasm(module: &[u8]) -> Result<Self, SandboxError> {
        let kind = Kind::Wasm(Box::new(wasm::Code::compile(module)?));
        Ok(Self { kind })
    }

    /// The members of the input without which it fails, as far as that is known before it runs.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let variables = match &self.kind {
            Kind::Cel(expression) => Some(expression.variables()),
            Kind::Wasm(_) => None,
        };
        variables.into_iter().flatten()
    }

    /// Runs it on `input`, an object. The same input always gives the same.
    pub fn run(&self, input: &Value) -> Result<Said, SandboxError> {
        let Value::Object(members) = input else {
            return Err(SandboxError::Failed("its input is no object".to_owned()));
        };
        if !is_shallow(input, MAX_INPUT_DEPTH) {
            return Err(SandboxError::Failed(format!(
                "its input nests deeper than {MAX_INPUT_DEPTH}"
            )));
        }
        let json = serde_json::to_vec(input)
            .map_err(|error| SandboxError::Failed(format!("its input is no JSON: {error}")))?;
        if json.len() > MAX_INPUT_BYTES {
            return Err(SandboxError::Failed(format!(
                "its input has {} bytes, and {MAX_INPUT_BYTES} are the most",
                json.len()
            )));
        }
        match &self.kind {
            Kind::Cel(expression) => expression.run(members),
            Kind::Wasm(code) => code.run(&json),
        }
    }
}

/// Whether `value` nests at most `depth` deep.
fn is_shallow(value: &Value, depth: usize) -> bool {
    let Some(below) = depth.checked_sub(1) else {
        return false;
    };
    match value {
        Value::Array(items) => items.iter().all(|item| is_shallow(item, below)),
        Value::Object(members) => members.values().all(|member| is_shallow(member, below)),
        _ => true,
    }
}

/// A message or a line of a log as it may be shown.
fn shown(input: &str, characters: usize) -> String {
    // Cut first: a text is not made harmless further than it is kept.
    let cut: String = input.chars().take(characters.saturating_add(1)).collect();
    text::shorten(&text::line(&cut).text, characters)
}

/// Runs `library`, a call into someone else's code, and makes a panic an error.
///
/// Neither library promises that no text makes it panic, and a panic in the
/// middle of judging would leave the action undecided.
fn guarded<T>(
    library: impl FnOnce() -> Result<T, SandboxError>,
    on_panic: impl FnOnce(String) -> SandboxError,
) -> Result<T, SandboxError> {
    // Nothing that `library` borrows is used again after a panic but what is
    // read only, and the counters of the run that failed.
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(library)).unwrap_or_else(|_| {
        Err(on_panic(
            "the library that runs it had a fault of its own".to_owned(),
        ))
    })
}
