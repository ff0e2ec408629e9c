//! JSON Schemas that a steward wrote: for parameters of actions and for answers.
//!
//! They are as hostile as any input: patterns run in linear time and limited
//! size, and nothing is ever fetched. What is said about a value never repeats
//! the value: it may be a secret.

mod simple;

use std::sync::OnceLock;

use jsonschema::{PatternOptions, Validator};
use safepoint_model::text;
use serde_json::Value;

pub(crate) use simple::is_simple;

/// The largest schema, in bytes.
const LARGEST: usize = 256 << 10;
/// The most that is said about one value.
const MOST_PROBLEMS: usize = 10;
/// The longest message, in characters.
const LONGEST_MESSAGE: usize = 300;
/// The most memory that one pattern of a schema may take, in bytes.
const PATTERN_SIZE: usize = 1 << 20;

/// A schema, ready for use.
#[derive(Debug)]
pub struct Schema {
    /// The schema itself, where it can be understood without being compiled.
    simple: Option<Value>,
    /// Made when it is first needed.
    compiled: OnceLock<Result<Validator, String>>,
}

impl Schema {
    /// Reads a schema; what is wrong with it otherwise.
    pub fn compile(schema: &Value) -> Result<Self, String> {
        if is_simple(schema) {
            return Ok(Self {
                simple: Some(schema.clone()),
                compiled: OnceLock::new(),
            });
        }
        let compiled = Self::compiled(schema)?;
        Ok(Self {
            simple: None,
            compiled: OnceLock::from(Ok(compiled)),
        })
    }

    fn compiled(schema: &Value) -> Result<Validator, String> {
        if schema.to_string().len() > LARGEST {
            return Err("it is larger than 256 KiB".to_owned());
        }
        jsonschema::options()
            .offline()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_SIZE)
                    .dfa_size_limit(PATTERN_SIZE),
            )
            .build(schema)
            .map_err(|error| short(&error.to_string()))
    }

    /// Whether `value` fits.
    pub fn fits(&self, value: &Value) -> bool {
        let simple = self.simple.as_ref();
        simple.is_some_and(|schema| simple::fits(schema, value))
            || self
                .validator()
                .is_ok_and(|validator| validator.is_valid(value))
    }

    /// That a simple schema fails to compile cannot be; nothing would fit it.
    fn validator(&self) -> Result<&Validator, &str> {
        self.compiled
            .get_or_init(|| Self::compiled(self.simple.as_ref().unwrap_or(&Value::Bool(false))))
            .as_ref()
            .map_err(String::as_str)
    }

    /// What is wrong with `value`: nothing when it fits.
    pub fn problems(&self, value: &Value) -> Vec<String> {
        if self.fits(value) {
            return Vec::new();
        }
        let validator = match self.validator() {
            Ok(validator) => validator,
            Err(error) => return vec![error.to_owned()],
        };
        validator
            .iter_errors(value)
            .take(MOST_PROBLEMS)
            .map(|error| {
                let place = error.instance_path().to_string();
                match place.as_str() {
                    "" => short(&error.masked().to_string()),
                    place => short(&format!("{place}: {}", error.masked())),
                }
            })
            .collect()
    }
}

fn short(message: &str) -> String {
    text::shorten(&text::line(message).text, LONGEST_MESSAGE)
}
