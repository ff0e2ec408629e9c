//! What an expression may use, counted while it runs.
//!
//! The functions of the library have no state of their own, so the budget and
//! the compiled patterns are handed to ours as values, under names that no
//! expression can write. This never looks at a clock.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cel::common::types::{
    CelBool, CelBytes, CelInt, CelList, CelMap, CelMapKey, CelString, DYN_TYPE, Type,
};
use cel::common::value::{CowVal, StaticVal, Val};
use cel::{DeclarationError, Env, ExecutionError};
use regex::Regex;

use super::super::SandboxError;
use super::prepare::{CHARGE, EACH, MATCHES};

/// How many bytes are one step.
const BYTES_PER_STEP: u64 = 64;
/// How much dearer a byte is that a pattern goes through: each may touch many
/// states.
const PATTERN_FACTOR: u64 = 16;

static BUDGET: Type = Type::new_unspecified_type("safepoint.budget");
static PATTERN: Type = Type::new_unspecified_type("safepoint.pattern");

/// The steps that are left.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<AtomicU64>);

impl Budget {
    /// A budget of `steps`.
    pub(super) fn new(steps: u64) -> Self {
        Self(Arc::new(AtomicU64::new(steps)))
    }

    /// Whether nothing is left.
    pub(super) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes what `steps` says, or everything.
    ///
    /// `all` and `exists` go on after an error, for a later turn may decide.
    /// So when nothing is left nothing is measured any more: the turns that
    /// were paid for end quickly.
    fn take(&self, steps: impl FnOnce() -> u64) -> Result<(), ExecutionError> {
        let left = match self.0.load(Ordering::Relaxed) {
            0 => 0,
            left => left.saturating_sub(steps()),
        };
        self.0.store(left, Ordering::Relaxed);
        if left == 0 {
            return Err(ExecutionError::function_error("budget", "used up"));
        }
        Ok(())
    }
}

impl Val for Budget {
    fn get_type(&self) -> &Type {
        &BUDGET
    }

    fn cel_type() -> &'static Type {
        &BUDGET
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Budget {}

/// A regular expression, compiled with the program.
#[derive(Clone, Debug)]
pub(super) struct Pattern(pub(super) Regex);

impl Val for Pattern {
    fn get_type(&self) -> &Type {
        &PATTERN
    }

    fn cel_type() -> &'static Type {
        &PATTERN
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl StaticVal for Pattern {}

/// The standard functions, and ours.
pub(super) fn environment() -> Result<Env, SandboxError> {
    let mut environment = Env::stdlib().with_optional_support(false);
    declare(&mut environment)
        .map_err(|error| SandboxError::Invalid(format!("the functions clash: {error}")))?;
    Ok(environment)
}

fn declare(environment: &mut Env) -> Result<(), DeclarationError> {
    environment.add_overload(CHARGE, CHARGE, vec![DYN_TYPE, DYN_TYPE], charge)?;
    environment.add_overload(EACH, EACH, vec![DYN_TYPE, DYN_TYPE, DYN_TYPE], each)?;
    environment.add_overload(
        MATCHES,
        MATCHES,
        vec![DYN_TYPE, DYN_TYPE, DYN_TYPE],
        matches,
    )
}

fn wrong(function: &str) -> ExecutionError {
    ExecutionError::function_error(function, "wrong arguments")
}

/// `@charge(budget, value)`: takes what the value weighs, and gives it back.
fn charge<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, value] = <[_; 2]>::try_from(arguments).map_err(|_| wrong(CHARGE))?;
    let budget = budget
        .downcast_ref::<Budget>()
        .ok_or_else(|| wrong(CHARGE))?;
    budget.take(|| steps_of(value.as_ref()))?;
    Ok(value)
}

/// `@each(budget, weight, range)`: takes what a loop over the range costs,
/// when one turn costs `weight`, and gives the range back. A map becomes the
/// list of its keys, in order: the library would go through it in any.
fn each<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, weight, range] = <[_; 3]>::try_from(arguments).map_err(|_| wrong(EACH))?;
    let budget = budget.downcast_ref::<Budget>().ok_or_else(|| wrong(EACH))?;
    let weight = weight.downcast_ref::<CelInt>().ok_or_else(|| wrong(EACH))?;
    let weight = u64::try_from(*weight.inner()).map_err(|_| wrong(EACH))?;
    let turns = match range.downcast_ref::<CelList>() {
        Some(list) => list.inner().len(),
        None => range
            .downcast_ref::<CelMap>()
            .map_or(0, |map| map.inner().len()),
    };
    let turns = u64::try_from(turns).unwrap_or(u64::MAX);
    budget.take(|| steps_of(range.as_ref()).saturating_add(turns.saturating_mul(weight)))?;
    let Some(map) = range.downcast_ref::<CelMap>() else {
        return Ok(range);
    };
    let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
    keys.sort_by(|left, right| order(left).cmp(&order(right)));
    let keys: Vec<Box<dyn Val + 'v>> = keys
        .into_iter()
        .map(|key| key.inner().clone_as_boxed())
        .collect();
    Ok(CowVal::owned(CelList::from(keys)))
}

/// Where a key stands among others: by kind, then by value.
fn order<'k>(key: &'k CelMapKey<'_>) -> (u8, i128, &'k str) {
    match key {
        CelMapKey::Bool(flag) => (0, i128::from(*flag.inner()), ""),
        CelMapKey::Int(number) => (1, i128::from(*number.inner()), ""),
        CelMapKey::UInt(number) => (1, i128::from(*number.inner()), ""),
        CelMapKey::String(text) => (2, 0, text.inner()),
    }
}

/// `@matches(budget, pattern, text)`.
fn matches<'b, 'v>(arguments: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [budget, pattern, text] = <[_; 3]>::try_from(arguments).map_err(|_| wrong(MATCHES))?;
    let budget = budget
        .downcast_ref::<Budget>()
        .ok_or_else(|| wrong(MATCHES))?;
    let pattern = pattern
        .downcast_ref::<Pattern>()
        .ok_or_else(|| wrong(MATCHES))?;
    let text = text
        .downcast_ref::<CelString>()
        .ok_or_else(|| wrong("matches"))?;
    budget.take(|| steps(text.inner().len()).saturating_mul(PATTERN_FACTOR))?;
    Ok(CowVal::owned(CelBool::from(
        pattern.0.is_match(text.inner()),
    )))
}

fn steps(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX) / BYTES_PER_STEP + 1
}

/// What it costs to go through a value once.
fn steps_of(value: &dyn Val) -> u64 {
    if let Some(text) = value.downcast_ref::<CelString>() {
        return steps(text.inner().len());
    }
    if let Some(bytes) = value.downcast_ref::<CelBytes>() {
        return steps(bytes.inner().len());
    }
    if let Some(list) = value.downcast_ref::<CelList>() {
        return list
            .inner()
            .iter()
            .map(|item| steps_of(item.as_ref()))
            .fold(1, u64::saturating_add);
    }
    if let Some(map) = value.downcast_ref::<CelMap>() {
        return map
            .inner()
            .iter()
            .map(|(key, member)| steps_of(key.inner()).saturating_add(steps_of(member.as_ref())))
            .fold(1, u64::saturating_add);
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ga_15_nothing_is_measured_once_the_budget_is_used_up() {
        let budget = Budget::new(2);
        assert!(budget.take(|| 1).is_ok());
        assert!(budget.take(|| u64::MAX).is_err());
        assert!(budget.is_used_up());
        assert!(budget.take(|| panic!("measured")).is_err());
    }
}
