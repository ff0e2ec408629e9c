//! JSON answers, and the schema they must follow.
//!
//! A text that holds JSON is read as JSON, strictly.

use safepoint_model::{json, text};
use serde_json::Value;

use super::{Fault, MAX_SIZE, QuestionError};
use crate::schema::Schema;

/// The longest message, in characters.
const MAX_MESSAGE: usize = 300;

/// What a JSON answer must look like.
#[derive(Debug)]
pub(super) struct Shape {
    schema: Option<Schema>,
}

impl Shape {
    pub(super) fn compile(schema: Option<&Value>) -> Result<Self, QuestionError> {
        let schema = schema.map(Schema::compile).transpose().map_err(|reason| {
            QuestionError::new(
                "/schema",
                format!("this is not a schema that can be used: {reason}"),
            )
        })?;
        Ok(Self { schema })
    }

    pub(super) fn judge(&self, answer: &Value) -> Result<(), Vec<Fault>> {
        let Value::String(said) = answer else {
            return self.follows(answer);
        };
        let limits = json::Limits {
            bytes: MAX_SIZE,
            ..json::Limits::default()
        };
        let read = match json::read(said.as_bytes(), limits) {
            Ok(value) => self.follows(&value),
            Err(error) => {
                let message = text::shorten(&text::line(&error.to_string()).text, MAX_MESSAGE);
                Err(vec![(
                    "response_type",
                    format!("the answer must be JSON: {message}"),
                )])
            }
        };
        // A schema that wants a string takes the string itself.
        let itself = self.schema.as_ref();
        if read.is_err() && itself.is_some_and(|schema| schema.fits(answer)) {
            return Ok(());
        }
        read
    }

    fn follows(&self, value: &Value) -> Result<(), Vec<Fault>> {
        let Some(schema) = &self.schema else {
            return Ok(());
        };
        let problems = schema.problems(value);
        if problems.is_empty() {
            return Ok(());
        }
        Err(problems
            .into_iter()
            .map(|problem| ("schema", problem))
            .collect())
    }
}
