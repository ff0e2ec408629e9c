//! Whether an answer will do.
//!
//! # What counts, by kind
//!
//! - `text`: a JSON string. Numbers, lists and objects do not count.
//! - `boolean`: JSON `true` or `false`, or one of the words in `words.rs`.
//! - `acknowledgment`: an explicit one, see `words.rs`; JSON `true` counts, and
//!   JSON `false` keeps the gate shut.
//! - `choice`: one of the options. Letter case and form do not matter as long as
//!   only one option is meant.
//! - `number`: a JSON number, or a string that is a plain decimal number
//!   (`-12.50`). No exponents, no hexadecimal, nothing that is not finite. Bounds
//!   are compared as 64-bit floating point numbers.
//! - `json`: any JSON, or a string that holds JSON, as its schema wants it. A
//!   string that the schema accepts as a string counts as well.
//!
//! An answer without anything to see is no answer: that fails (`required`), or
//! passes where the question is optional. So does JSON `null`.
//!
//! # What else is checked
//!
//! `validation` applies to every kind, on the string as it was written, or on
//! the shortest JSON of anything else; see `validation.rs`. All failures come
//! together, each with the hint of the question. Messages never repeat the
//! answer: it may hold a secret.
//!
//! An answer of more than 64 KiB fails (`max_size`), and nothing else is looked
//! at. The custom validator of a question is not run here.

mod schema;
#[cfg(test)]
mod tests;
mod validation;
mod words;

use std::io;

use safepoint_model::text;
use serde::Serialize;
use serde_json::Value;

use crate::atlas::{CheckpointQuestion, Expect, ResponseType};
use crate::keyword::fold::{Case, plain, seen};
use schema::Shape;
use validation::Checks;
use words::Statement;

/// The largest answer, in bytes.
const MAX_SIZE: usize = 64 << 10;

/// A question whose rules cannot be followed.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("{message}")]
pub struct QuestionError {
    /// Where in the question, as a JSON Pointer.
    pub pointer: String,
    /// What is wrong.
    pub message: String,
}

impl QuestionError {
    fn new(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}

/// A rule that an answer does not fulfil.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Failure {
    /// Which question.
    pub question_id: String,
    /// Which rule, such as `min_length`.
    pub rule: &'static str,
    /// What is wrong.
    pub message: String,
    /// What helps to answer.
    pub hint: Option<String>,
}

/// What an answer says, beyond being well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It passes the gate.
    Passes,
    /// It is a proper answer, and keeps the gate shut: a no.
    Refuses,
}

/// The rules of one question, ready for use.
#[derive(Debug)]
pub struct Rules {
    question_id: String,
    hint: Option<String>,
    required: bool,
    kind: Kind,
    checks: Checks,
}

#[derive(Debug)]
enum Kind {
    Text,
    Boolean(Expect),
    Acknowledgment(Statement),
    Choice(Vec<Choice>),
    Number { min: Option<f64>, max: Option<f64> },
    Json(Shape),
}

#[derive(Debug)]
struct Choice {
    written: String,
    folded: String,
}

/// What is wrong, before it is known with which question.
type Fault = (&'static str, String);

impl Rules {
    /// The rules of `question`, but for its own validator.
    pub fn compile(question: &CheckpointQuestion) -> Result<Self, QuestionError> {
        let kind = match &question.response_type {
            ResponseType::Text => Kind::Text,
            ResponseType::Boolean => Kind::Boolean(question.expect),
            ResponseType::Acknowledgment => {
                Kind::Acknowledgment(Statement::new(&question.question))
            }
            ResponseType::Choice(_) => Kind::Choice(choices(question.choices())?),
            ResponseType::Number(_) => {
                let (min, max) = question.bounds();
                bounds(min, max)?;
                Kind::Number { min, max }
            }
            ResponseType::Json(_) => Kind::Json(Shape::compile(question.answer_schema())?),
        };
        let checks = match &question.validation {
            Some(validation) => Checks::compile(validation)?,
            None => Checks::default(),
        };
        Ok(Self {
            question_id: question.question_id.clone(),
            hint: question.hint.clone(),
            required: question.required,
            kind,
            checks,
        })
    }

    /// Whether `answer` fulfils them; if not, all that is wrong.
    pub fn judge(&self, answer: &Value) -> Result<Accepted, Vec<Failure>> {
        let Some(written) = written(answer) else {
            let message =
                format!("the answer is larger than {MAX_SIZE} bytes; answer in fewer words");
            return Err(self.failures(vec![("max_size", message)]));
        };
        if answer.is_null() || seen(&written).all(char::is_whitespace) {
            if !self.required {
                return Ok(Accepted::Passes);
            }
            let message = String::from("an answer is required, and this one is empty");
            return Err(self.failures(vec![("required", message)]));
        }
        let mut faults = Vec::new();
        let accepted = match self.kind.judge(answer) {
            Ok(accepted) => accepted,
            Err(found) => {
                faults = found;
                Accepted::Refuses
            }
        };
        self.checks.judge(&written, &mut faults);
        if faults.is_empty() {
            Ok(accepted)
        } else {
            Err(self.failures(faults))
        }
    }

    fn failures(&self, faults: Vec<Fault>) -> Vec<Failure> {
        faults
            .into_iter()
            .map(|(rule, message)| Failure {
                question_id: self.question_id.clone(),
                rule,
                message,
                hint: self.hint.clone(),
            })
            .collect()
    }
}

impl Kind {
    fn judge(&self, answer: &Value) -> Result<Accepted, Vec<Fault>> {
        match self {
            Self::Text if answer.is_string() => Ok(Accepted::Passes),
            Self::Text => wrong("the answer must be text"),
            Self::Boolean(expect) => match words::boolean(answer) {
                None => wrong("the answer must be yes or no, and nothing else"),
                Some(said) => Ok(match (expect, said) {
                    (Expect::Any, _) | (Expect::Yes, true) | (Expect::No, false) => {
                        Accepted::Passes
                    }
                    (Expect::Yes, false) | (Expect::No, true) => Accepted::Refuses,
                }),
            },
            Self::Acknowledgment(statement) => match answer {
                Value::Bool(true) => Ok(Accepted::Passes),
                Value::Bool(false) => Ok(Accepted::Refuses),
                Value::String(said) if statement.acknowledged_by(said) => Ok(Accepted::Passes),
                _ => wrong(
                    "the answer must acknowledge the statement, such as `understood` or `I acknowledge`",
                ),
            },
            Self::Choice(options) => choose(options, answer),
            Self::Number { min, max } => number(answer, *min, *max),
            Self::Json(shape) => shape.judge(answer).map(|()| Accepted::Passes),
        }
    }
}

fn wrong<T>(message: impl Into<String>) -> Result<T, Vec<Fault>> {
    Err(vec![("response_type", message.into())])
}

fn choices(options: &[String]) -> Result<Vec<Choice>, QuestionError> {
    if options.is_empty() {
        let message = "a choice needs `options`; name at least one";
        return Err(QuestionError::new("/options", message));
    }
    let mut choices: Vec<Choice> = Vec::with_capacity(options.len());
    for (index, option) in options.iter().enumerate() {
        let pointer = format!("/options/{index}");
        let folded = plain(option, Case::Folded).trim().to_owned();
        if folded.is_empty() {
            return Err(QuestionError::new(
                pointer,
                "an option has nothing to see in it",
            ));
        }
        if choices
            .iter()
            .any(|earlier| earlier.written == option.trim())
        {
            let message = format!("the option `{}` is there twice", text::line(option).text);
            return Err(QuestionError::new(pointer, message));
        }
        choices.push(Choice {
            written: option.trim().to_owned(),
            folded,
        });
    }
    Ok(choices)
}

fn choose(options: &[Choice], answer: &Value) -> Result<Accepted, Vec<Fault>> {
    if let Value::String(said) = answer {
        let written = said.trim();
        if options.iter().any(|option| option.written == written) {
            return Ok(Accepted::Passes);
        }
        let folded = plain(written, Case::Folded);
        let alike = options
            .iter()
            .filter(|option| option.folded == folded.trim())
            .count();
        if alike == 1 {
            return Ok(Accepted::Passes);
        }
    }
    let names: Vec<String> = options
        .iter()
        .take(20)
        .map(|option| format!("`{}`", text::shorten(&text::line(&option.written).text, 40)))
        .collect();
    let more = if options.len() > names.len() {
        " …"
    } else {
        ""
    };
    wrong(format!(
        "the answer must be one of {}{more}",
        names.join(", ")
    ))
}

fn bounds(min: Option<f64>, max: Option<f64>) -> Result<(), QuestionError> {
    for (name, bound) in [("/min", min), ("/max", max)] {
        if bound.is_some_and(|bound| !bound.is_finite()) {
            return Err(QuestionError::new(name, "a bound must be a finite number"));
        }
    }
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let message = format!("no number is at least {min} and at most {max}");
        return Err(QuestionError::new("/min", message));
    }
    Ok(())
}

fn number(answer: &Value, min: Option<f64>, max: Option<f64>) -> Result<Accepted, Vec<Fault>> {
    let number = match answer {
        Value::Number(number) => number.as_f64(),
        Value::String(said) => decimal(said.trim()),
        _ => None,
    };
    let Some(number) = number.filter(|number| number.is_finite()) else {
        return wrong("the answer must be a plain number, such as `12` or `-0.5`");
    };
    let mut faults = Vec::new();
    if let Some(min) = min.filter(|min| number < *min) {
        faults.push(("min", format!("the number must be at least {min}")));
    }
    if let Some(max) = max.filter(|max| number > *max) {
        faults.push(("max", format!("the number must be at most {max}")));
    }
    if faults.is_empty() {
        Ok(Accepted::Passes)
    } else {
        Err(faults)
    }
}

/// Digits, perhaps with a sign in front and a point with digits behind.
fn decimal(said: &str) -> Option<f64> {
    let digits = said.strip_prefix(['-', '+']).unwrap_or(said);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if plain(whole) && plain(fraction) {
        said.parse().ok()
    } else {
        None
    }
}

/// The answer as text, or `None` if it is too large.
fn written(answer: &Value) -> Option<String> {
    /// Takes bytes up to the limit.
    struct Limited(Vec<u8>);

    impl io::Write for Limited {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0.len() + bytes.len() > MAX_SIZE {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    if let Value::String(said) = answer {
        return (said.len() <= MAX_SIZE).then(|| said.clone());
    }
    let mut out = Limited(Vec::new());
    serde_json::to_writer(&mut out, answer).ok()?;
    String::from_utf8(out.0).ok()
}
