//! CEL expressions: compiled once, checked, and run on a budget.
//!
//! The library counts nothing, so the tree of an expression is changed before
//! it runs: what is given to a function, put into a list or iterated over
//! first passes through [`budget`], which takes what it costs. Text and nesting
//! are bounded before the library parses anything ([`crate::nesting`]).
//!
//! There is no clock here, no regular expression but those of [`prepare`], and
//! maps are gone through in the order of their keys.

mod budget;
mod prepare;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use cel::objects::Key;
use cel::{Context, Env, ExecutionError, IdedExpr, Value as CelValue};
use safepoint_model::text;
use serde_json::{Map, Value};

use super::{MAX_MESSAGE_CHARACTERS, Said, SandboxError, guarded, shown};
use crate::nesting::{self, Bounds};
use budget::{Budget, Pattern};

/// The most bytes of an expression.
pub(super) const MAX_BYTES: usize = 4 * 1024;
/// What an expression may have of what makes it deep.
const BOUNDS: Bounds = Bounds {
    brackets: 128,
    operators: 512,
};
/// The steps of one run: a step is a part of the expression that is evaluated
/// in a loop, or 64 bytes that are gone through.
pub(super) const MAX_STEPS: u64 = 1_000_000;

/// An expression, ready to run.
pub(super) struct Expression {
    environment: Arc<Env>,
    tree: IdedExpr,
    /// What the input must have.
    variables: BTreeSet<String>,
    patterns: Vec<Pattern>,
}

impl std::fmt::Debug for Expression {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Expression")
            .field("variables", &self.variables)
            .finish_non_exhaustive()
    }
}

impl Expression {
    /// Compiles an expression, and refuses what could not be run safely.
    pub(super) fn compile(expression: &str) -> Result<Self, SandboxError> {
        if expression.len() > MAX_BYTES {
            return Err(SandboxError::Invalid(format!(
                "the expression has {} bytes, and {MAX_BYTES} are the most",
                expression.len()
            )));
        }
        nesting::check_expression(expression, BOUNDS).map_err(|deep| {
            SandboxError::Invalid(format!(
                "the expression has too many brackets or operators, at byte {}",
                deep.offset
            ))
        })?;
        guarded(
            || {
                let environment = budget::environment()?;
                let tree = environment
                    .parser()
                    .parse(expression)
                    .map_err(|errors| SandboxError::Invalid(mistakes(&errors)))?;
                let prepared = prepare::prepare(tree)?;
                Ok(Self {
                    environment: Arc::new(environment),
                    tree: prepared.tree,
                    variables: prepared.variables,
                    patterns: prepared.patterns,
                })
            },
            SandboxError::Invalid,
        )
    }

    /// What the input must have.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        self.variables.iter().map(String::as_str)
    }

    /// Runs it with the members of an object as variables.
    pub(super) fn run(&self, input: &Map<String, Value>) -> Result<Said, SandboxError> {
        // `unknown || true` is true in CEL: a name that is wrong must show.
        for name in &self.variables {
            if !input.contains_key(name) {
                return Err(SandboxError::Failed(format!(
                    "it uses `{}`, which is not given",
                    text::line(name).text
                )));
            }
        }
        guarded(
            || {
                let budget = Budget::new(MAX_STEPS);
                let mut context = Context::with_env(Arc::clone(&self.environment));
                for name in &self.variables {
                    if let Some(value) = input.get(name) {
                        context.add_variable_from_value(name.clone(), convert(value));
                    }
                }
                for (index, pattern) in self.patterns.iter().enumerate() {
                    context.add_variable_as_val(
                        prepare::pattern_name(index),
                        Box::new(pattern.clone()),
                    );
                }
                context.add_variable_as_val(prepare::BUDGET, Box::new(budget.clone()));
                let result = CelValue::resolve(&self.tree, &context);
                // First, for `||` may have swallowed the error.
                if budget.is_used_up() {
                    return Err(SandboxError::Exhausted("steps"));
                }
                result
                    .map_err(|error| SandboxError::Failed(reason(&error)))
                    .and_then(|value| said(&value))
            },
            SandboxError::Failed,
        )
    }
}

/// What the parser says, on one line.
fn mistakes(errors: &cel::ParseErrors) -> String {
    let messages: Vec<String> = errors
        .errors
        .iter()
        .take(3)
        .map(|error| {
            let (line, column) = error.pos;
            format!("line {line}, column {column}: {}", shown(&error.msg, 200))
        })
        .collect();
    messages.join("; ")
}

/// A JSON value as CEL sees it. Whole numbers are `int` where they fit.
fn convert(value: &Value) -> CelValue {
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(flag) => CelValue::Bool(*flag),
        Value::Number(number) => number
            .as_i64()
            .map(CelValue::Int)
            .or_else(|| number.as_u64().map(CelValue::UInt))
            .or_else(|| number.as_f64().map(CelValue::Float))
            .unwrap_or(CelValue::Null),
        Value::String(string) => CelValue::String(Arc::new(string.clone())),
        Value::Array(items) => CelValue::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(members) => {
            let members: HashMap<Key, CelValue> = members
                .iter()
                .map(|(name, member)| (Key::from(name.clone()), convert(member)))
                .collect();
            CelValue::from(members)
        }
    }
}

/// What the value of an expression says.
fn said(value: &CelValue) -> Result<Said, SandboxError> {
    let wrong = || {
        SandboxError::Failed(
            "its value is neither a bool nor a map of `valid` (or `fire`) and `message`".to_owned(),
        )
    };
    let members = match value {
        CelValue::Bool(yes) => {
            return Ok(Said {
                yes: *yes,
                ..Said::default()
            });
        }
        CelValue::Map(map) => &map.map,
        _ => return Err(wrong()),
    };
    let (mut yes, mut message) = (None, None);
    for (key, member) in members.iter() {
        let Key::String(name) = key else {
            return Err(wrong());
        };
        match (name.as_str(), member) {
            ("valid" | "fire", CelValue::Bool(flag)) if yes.is_none() => yes = Some(*flag),
            ("message", CelValue::String(text)) => {
                message = Some(shown(text, MAX_MESSAGE_CHARACTERS));
            }
            _ => return Err(wrong()),
        }
    }
    Ok(Said {
        yes: yes.ok_or_else(wrong)?,
        message,
        log: Vec::new(),
    })
}

/// Why an evaluation failed, without the values: they may be long, secret, and
/// in no certain order.
fn reason(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(name) => format!("there is no `{}`", shown(name, 100)),
        ExecutionError::UndeclaredReference(name) => {
            format!("`{}` is not known", shown(name, 100))
        }
        ExecutionError::NoSuchOverload(overload) => shown(&overload.to_string(), 300),
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(..) => "a number is too large".to_owned(),
        ExecutionError::IndexOutOfBounds(_) => "a list is shorter than the index".to_owned(),
        ExecutionError::DuplicateKey(_) => "a map has a key twice".to_owned(),
        ExecutionError::FunctionError { function, .. } => {
            format!("`{}` cannot be done with that", shown(function, 100))
        }
        ExecutionError::UnexpectedType { got, want } => {
            format!("{} where {} is needed", shown(got, 100), shown(want, 100))
        }
        _ => "a value is of the wrong kind".to_owned(),
    }
}
