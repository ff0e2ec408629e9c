//! YAML, for the files that people write: policies and settings.
//!
//! The only place that names the YAML crate. Everything YAML does behind the
//! writer's back is off: `yes` and `no` are texts, a key counts once, merge
//! keys and unknown tags are refused, and aliases cannot be piled up into more
//! than was written. Whether unknown fields are refused is up to the type.

mod lines;
mod quick;
#[cfg(test)]
mod tests;
mod value;
mod write;

use std::fmt;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_saphyr::options::{DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, MessageFormatter, UserMessageFormatter};

use crate::text;

pub use value::read_value;
pub use write::write;

/// The longest document that is read, in bytes: 4 MiB.
pub const MAX_BYTES: usize = 4 << 20;
/// The most scalars, lists and mappings, and their ends, in one document.
const MAX_NODES: usize = 1_000_000;
/// How many lists and mappings lie inside each other.
const MAX_DEPTH: usize = 64;

/// A document that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct YamlError {
    /// What is wrong.
    pub message: String,
    /// The line, from 1, when the fault has a place.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text::line(&self.message).text)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, " at line {line} column {column}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for YamlError {}

/// Reads exactly one YAML document as a `T`.
pub fn read_as<T: DeserializeOwned>(input: &str) -> Result<T, YamlError> {
    if input.len() > MAX_BYTES {
        return Err(YamlError {
            message: format!(
                "document of {} bytes is too large: at most {MAX_BYTES} are read",
                input.len()
            ),
            line: None,
            column: None,
        });
    }
    if let Some(value) = quick::read(input) {
        return Ok(value);
    }
    read_strictly(input)
}

/// Reads with the YAML crate, which alone decides what is right.
fn read_strictly<T: DeserializeOwned>(input: &str) -> Result<T, YamlError> {
    let value = serde_saphyr::from_str_with_options(input, options()).map_err(refusal)?;
    // The crate forgives nonsense behind the marker that ends a document
    // (`...`); reading on as a stream of documents does not.
    if input.contains("...") {
        serde_saphyr::from_str_multiple_with_options::<IgnoredAny, Vec<_>>(input, options())
            .map_err(refusal)?;
    }
    Ok(value)
}

fn refusal(error: Error) -> YamlError {
    let place = error.location();
    let number = |number: u64| usize::try_from(number).ok();
    YamlError {
        message: message(&error),
        line: place.and_then(|place| number(place.line())),
        column: place.and_then(|place| number(place.column())),
    }
}

/// What is wrong, in our words where people are likely to meet it.
fn message(error: &Error) -> String {
    match error.without_snippet() {
        Error::AliasError { error, .. } => message(error),
        Error::DuplicateMappingKey { key: Some(key), .. } => format!("key `{key}` occurs twice"),
        Error::InvalidBooleanStrict { .. } => "expected `true` or `false`".to_owned(),
        Error::MergeKeyNotAllowed { .. } => {
            "merge keys (`<<`) are not read; write the fields out".to_owned()
        }
        Error::MultipleDocuments { .. } => {
            "a second document begins here; only one is read".to_owned()
        }
        Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "aliases repeat too much; write the values out".to_owned()
        }
        Error::UnknownAnchor { .. } => "alias has no anchor before it".to_owned(),
        Error::RecursiveReferencesRequireWeakTypes { .. } => {
            "alias stands inside its own anchor".to_owned()
        }
        Error::Budget { .. } => "document is too large or too deeply nested".to_owned(),
        other => UserMessageFormatter.format_message(other).into_owned(),
    }
}

fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_events: 2 * MAX_NODES,
            max_nodes: MAX_NODES,
            max_anchors: 256,
            max_aliases: 1_024,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: 10_000,
            max_replay_stack_depth: 8,
            max_alias_expansions_per_anchor: 256,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        merge_keys: MergeKeyPolicy::Error,
        non_finite_float_policy: NonFiniteFloatPolicy::Reject,
        reject_unsupported_tags: true,
        strict_booleans: true,
        with_snippet: false,
    }
}
