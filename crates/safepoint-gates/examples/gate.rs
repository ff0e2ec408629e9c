//! A gate from Rust: raised before a deletion, passed by an answer, or not.
//!
//! `cargo run -p safepoint-gates --example gate -- ticket.delete yes`

use std::io::Write;
use std::process::ExitCode;

use safepoint_gates::{
    CheckpointAction, CheckpointConfig, CheckpointEvaluator, CheckpointQuestion,
    CheckpointResponse, CheckpointTrigger, CheckpointValidator, StewardCheckpointDef,
};
use serde_json::json;

fn main() -> std::io::Result<ExitCode> {
    let mut words = std::env::args().skip(1);
    let action = words.next().unwrap_or_else(|| "ticket.delete".to_owned());
    let agrees = words.next().as_deref() == Some("yes");

    let gate = StewardCheckpointDef::new(
        "delete-confirm",
        "Deletion",
        CheckpointTrigger::ActionPre {
            patterns: vec!["*.delete".to_owned()],
        },
    )
    .blocking()
    .with_question(CheckpointQuestion::boolean("sure", "Is it meant?"))
    .unlock_capabilities(vec!["delete-access".to_owned()]);

    let evaluator = CheckpointEvaluator::new(CheckpointConfig::default());
    let raised = evaluator.evaluate_steward_checkpoint(&gate, json!({ "action_id": action }));
    let mut out = std::io::stdout();
    writeln!(out, "{action}: the gate is raised: {}", raised.is_raised)?;

    let response = match agrees {
        true => CheckpointResponse::new().with_answer("sure", true),
        false => CheckpointResponse::new(),
    };
    let validation = CheckpointValidator::validate(&raised, &response);
    for failure in &validation.failures {
        writeln!(out, "{}: {}", failure.question_id, failure.message)?;
    }
    for action in &validation.actions {
        if let CheckpointAction::UnlockCapability { capability_id } = action {
            writeln!(out, "unlocked: {capability_id}")?;
        }
    }
    Ok(match validation.is_valid {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
