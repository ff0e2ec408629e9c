//! Code that behaves, and code that does not.

mod cel;
mod fuzz;
mod wasm;

use serde_json::{Value, json};

use super::{Program, Said, SandboxError};

/// What the engine gives to a validator, more or less.
fn input() -> Value {
    json!({
        "answer": "because of ticket 42",
        "question": "why?",
        "action": "file.delete",
        "params": {"path": "/srv/data", "count": 3, "tags": ["a", "b"], "rate": 0.5},
        "risk": "high",
        "session": {"actions": 7},
    })
}

fn failed(result: Result<Said, SandboxError>) -> String {
    match result {
        Err(SandboxError::Failed(message)) => message,
        other => panic!("not a failure: {other:?}"),
    }
}

fn invalid(result: Result<Program, SandboxError>) -> String {
    match result {
        Err(SandboxError::Invalid(message)) => message,
        other => panic!("not invalid: {other:?}"),
    }
}

#[test]
fn ga_15_an_input_that_is_too_large_or_too_deep_is_not_run() {
    let program = Program::cel("true").unwrap();
    let large = json!({"answer": "x".repeat(super::MAX_INPUT_BYTES)});
    assert!(failed(program.run(&large)).contains("bytes"));
    let deep = (0..1_000).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let deep = Value::Object([("answer".to_owned(), deep)].into_iter().collect());
    assert!(failed(program.run(&deep)).contains("deeper"));
    assert!(failed(program.run(&json!([1]))).contains("object"));
}

#[test]
fn ga_15_a_panic_of_a_library_is_a_failure() {
    let result = super::guarded::<Said>(|| panic!("on purpose"), SandboxError::Failed);
    assert!(failed(result).contains("fault of its own"));
}
