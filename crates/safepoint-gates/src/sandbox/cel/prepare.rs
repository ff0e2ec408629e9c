//! The tree of an expression, checked and made to count.
//!
//! Refused here: functions that are not on the list, patterns that are not
//! written out, loops in loops in loops, and trees that are too deep. After
//! that, each value that a function reads, a list takes up or a loop goes
//! through is wrapped in a call of [`budget`](super::budget). This never
//! evaluates anything.

use std::collections::BTreeSet;

use cel::IdedExpr;
use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, LiteralValue, operators};
use cel::common::types::CelInt;
use regex::RegexBuilder;
use safepoint_model::text;

use super::super::SandboxError;
use super::budget::Pattern;

/// The name of the budget. No expression can write it.
pub(super) const BUDGET: &str = "@budget";
/// The function that takes what a value weighs.
pub(super) const CHARGE: &str = "@charge";
/// The function that takes what a loop costs.
pub(super) const EACH: &str = "@each";
/// The function behind `matches`.
pub(super) const MATCHES: &str = "@matches";

/// How deep a tree may be.
const MAX_DEPTH: usize = 96;
/// How many loops may stand in each other.
const MAX_LOOPS: usize = 2;
/// How large a compiled pattern may be, in bytes.
const MAX_PATTERN_BYTES: usize = 64 * 1024;

/// The functions that an expression may call.
const FUNCTIONS: [&str; 12] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

/// The operators whose work does not grow with what they are given.
const CHEAP: [&str; 12] = [
    operators::CONDITIONAL,
    operators::LOGICAL_AND,
    operators::LOGICAL_OR,
    operators::LOGICAL_NOT,
    operators::SUBSTRACT,
    operators::MULTIPLY,
    operators::DIVIDE,
    operators::MODULO,
    operators::NEGATE,
    operators::NOT_STRICTLY_FALSE,
    "type",
    "dyn",
];

/// The operators that go through what they are given.
const DEAR: [&str; 8] = [
    operators::ADD,
    operators::EQUALS,
    operators::NOT_EQUALS,
    operators::GREATER_EQUALS,
    operators::LESS_EQUALS,
    operators::GREATER,
    operators::LESS,
    operators::IN,
];

/// The names of types, which are no variables.
const TYPES: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

/// A tree that is ready to run.
#[derive(Debug)]
pub(super) struct Prepared {
    /// The tree.
    pub(super) tree: IdedExpr,
    /// The variables it needs.
    pub(super) variables: BTreeSet<String>,
    /// Its patterns, by number.
    pub(super) patterns: Vec<Pattern>,
}

/// The name of a pattern. No expression can write it.
pub(super) fn pattern_name(index: usize) -> String {
    format!("@pattern{index}")
}

/// Checks a tree, and makes it count.
pub(super) fn prepare(mut tree: IdedExpr) -> Result<Prepared, SandboxError> {
    let mut walk = Walk::default();
    walk.visit(&mut tree, 0)?;
    Ok(Prepared {
        tree,
        variables: walk.variables,
        patterns: walk.patterns,
    })
}

fn invalid<T>(message: impl Into<String>) -> Result<T, SandboxError> {
    Err(SandboxError::Invalid(message.into()))
}

#[derive(Debug, Default)]
struct Walk {
    variables: BTreeSet<String>,
    patterns: Vec<Pattern>,
    /// The variables of the loops around.
    bound: Vec<String>,
    loops: usize,
}

impl Walk {
    /// Visits a tree, and says what it costs to evaluate it once.
    fn visit(&mut self, tree: &mut IdedExpr, depth: usize) -> Result<u64, SandboxError> {
        if depth > MAX_DEPTH {
            return invalid(format!("the expression nests deeper than {MAX_DEPTH}"));
        }
        let below = depth + 1;
        let mut weight = 1_u64;
        match &mut tree.expr {
            Expr::Unspecified => return invalid("a part of the expression is missing"),
            Expr::Struct(_) => return invalid("messages cannot be made: write a map"),
            Expr::Literal(literal) => weight += literal_weight(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => weight += self.visit(&mut select.operand, below)?,
            Expr::List(list) => {
                for element in &mut list.elements {
                    weight += self.visit(element, below)?;
                    charge(element);
                }
            }
            Expr::Map(map) => {
                for entry in &mut map.entries {
                    let EntryExpr::MapEntry(entry) = &mut entry.expr else {
                        return invalid("a map has something that is no entry");
                    };
                    weight += self.visit(&mut entry.key, below)?;
                    weight += self.visit(&mut entry.value, below)?;
                    charge(&mut entry.key);
                    charge(&mut entry.value);
                }
            }
            Expr::Call(call) => weight += self.call(call, below)?,
            Expr::Comprehension(comprehension) => {
                weight += self.comprehension(comprehension, below)?;
            }
        }
        Ok(weight)
    }

    fn name(&mut self, name: &str) {
        // A leading dot names the outermost, whatever loops are around.
        let absolute = name.strip_prefix('.');
        let is_bound = absolute.is_none() && self.bound.iter().any(|bound| bound == name);
        let plain = absolute.unwrap_or(name);
        if !is_bound && !TYPES.contains(&plain) && !plain.starts_with('@') {
            self.variables.insert(plain.to_owned());
        }
    }

    fn call(&mut self, call: &mut CallExpr, depth: usize) -> Result<u64, SandboxError> {
        let mut weight = 0;
        if let Some(target) = &mut call.target {
            weight += self.visit(target, depth)?;
        }
        for argument in &mut call.args {
            weight += self.visit(argument, depth)?;
        }
        let name = call.func_name.as_str();
        if name == "matches" {
            return self.matches(call).map(|()| weight);
        }
        if CHEAP.contains(&name) {
            return Ok(weight);
        }
        if name == operators::INDEX {
            // The list or map is not gone through, but a key is hashed.
            call.args.iter_mut().skip(1).for_each(charge);
            return Ok(weight);
        }
        if !FUNCTIONS.contains(&name) && !DEAR.contains(&name) {
            return invalid(format!(
                "there is no function `{}`: there are `matches`, `{}` and the macros of CEL",
                text::line(name).text,
                FUNCTIONS.join("`, `")
            ));
        }
        // What a loop adds up stays as it is: the library knows its shape, and
        // what is added was counted.
        let is_step = matches!(
            call.args.first().map(|argument| &argument.expr),
            Some(Expr::Ident(name)) if name.starts_with('@')
        );
        if !is_step {
            call.target.as_deref_mut().into_iter().for_each(charge);
            call.args.iter_mut().for_each(charge);
        }
        Ok(weight)
    }

    /// Makes `text.matches("…")` a call with a pattern that is compiled here.
    fn matches(&mut self, call: &mut CallExpr) -> Result<(), SandboxError> {
        let mut arguments: Vec<IdedExpr> = call
            .target
            .take()
            .map(|target| *target)
            .into_iter()
            .collect();
        arguments.append(&mut call.args);
        let Ok([text, pattern]) = <[IdedExpr; 2]>::try_from(arguments) else {
            return invalid("`matches` takes a text and a pattern");
        };
        let Expr::Literal(LiteralValue::String(pattern)) = &pattern.expr else {
            return invalid("the pattern of `matches` must be written out, as text in quotes");
        };
        let pattern = RegexBuilder::new(pattern.inner())
            .size_limit(MAX_PATTERN_BYTES)
            .dfa_size_limit(MAX_PATTERN_BYTES * 4)
            .nest_limit(32)
            .build()
            .map_err(|error| {
                SandboxError::Invalid(format!(
                    "the pattern of `matches` cannot be used: {}",
                    super::shown(&error.to_string(), 300)
                ))
            })?;
        call.func_name = MATCHES.to_owned();
        call.args = vec![
            identifier(BUDGET),
            identifier(&pattern_name(self.patterns.len())),
            text,
        ];
        self.patterns.push(Pattern(pattern));
        Ok(())
    }

    fn comprehension(
        &mut self,
        comprehension: &mut ComprehensionExpr,
        depth: usize,
    ) -> Result<u64, SandboxError> {
        if self.loops == MAX_LOOPS {
            return invalid(format!("more than {MAX_LOOPS} loops stand in each other"));
        }
        let outside = self.visit(&mut comprehension.iter_range, depth)?
            + self.visit(&mut comprehension.accu_init, depth)?;
        let bound = self.bound.len();
        self.bound.push(comprehension.iter_var.clone());
        self.bound.extend(comprehension.iter_var2.clone());
        self.bound.push(comprehension.accu_var.clone());
        self.loops += 1;
        let inside = self.visit(&mut comprehension.loop_cond, depth)?
            + self.visit(&mut comprehension.loop_step, depth)?
            + self.visit(&mut comprehension.result, depth)?;
        self.loops -= 1;
        self.bound.truncate(bound);

        let weight = i64::try_from(inside).unwrap_or(i64::MAX);
        let range = std::mem::take(&mut comprehension.iter_range);
        let weight = IdedExpr {
            id: range.id,
            expr: Expr::Literal(LiteralValue::Int(CelInt::from(weight))),
        };
        comprehension.iter_range = function(EACH, vec![identifier(BUDGET), weight, range]);
        // What is inside is taken by `@each`, turn by turn.
        Ok(outside)
    }
}

/// A literal costs what is gone through when it is compared.
fn literal_weight(literal: &LiteralValue) -> u64 {
    let bytes = match literal {
        LiteralValue::String(text) => text.inner().len(),
        LiteralValue::Bytes(bytes) => bytes.inner().len(),
        _ => 0,
    };
    u64::try_from(bytes / 64).unwrap_or(u64::MAX)
}

fn identifier(name: &str) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Ident(name.to_owned()),
    }
}

fn function(name: &str, args: Vec<IdedExpr>) -> IdedExpr {
    IdedExpr {
        id: 0,
        expr: Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }),
    }
}

/// Wraps what is not a literal, so that it pays for its size.
fn charge(tree: &mut IdedExpr) {
    if matches!(tree.expr, Expr::Literal(_)) {
        return;
    }
    let value = std::mem::take(tree);
    *tree = function(CHARGE, vec![identifier(BUDGET), value]);
}
