//! The interface of the specification: one gate, without a session.
//!
//! [`Engine`](crate::Engine) does more, and is what everything else uses. This
//! is for whoever writes atlases in code, or tests one gate by itself.

use serde_json::{Map, Value};

use crate::answer::{Accepted, Failure, Rules};
use crate::atlas::{CheckpointConfig, InvalidAnswerAction, StewardCheckpointDef};
use crate::resolution::{CheckpointAction, Validation};

/// Raises gates.
///
/// ```
/// use safepoint_gates::{
///     CheckpointAction, CheckpointConfig, CheckpointEvaluator, CheckpointQuestion,
///     CheckpointResponse, CheckpointTrigger, CheckpointValidator, StewardCheckpointDef,
/// };
/// use serde_json::json;
///
/// # let checkpoint_def = StewardCheckpointDef::new("gate", "Gate", CheckpointTrigger::SessionStart {})
/// #     .blocking()
/// #     .with_question(CheckpointQuestion::boolean("agree", "Do you agree?"))
/// #     .unlock_capabilities(vec!["basic".to_string()]);
/// # let config = CheckpointConfig::default();
/// # let trigger_data = json!({"action_id": "ticket.delete"});
/// # let response = CheckpointResponse::new().with_answer("agree", true);
/// let evaluator = CheckpointEvaluator::new(config);
///
/// // Evaluate steward checkpoint
/// let triggered = evaluator.evaluate_steward_checkpoint(&checkpoint_def, trigger_data);
///
/// // Validate response
/// let validation = CheckpointValidator::validate(&triggered, &response);
/// # let mut unlocked = Vec::new();
/// if validation.is_valid {
///     for action in validation.actions {
///         match action {
///             CheckpointAction::Proceed => { /* continue */ }
///             CheckpointAction::InjectContext { context_id } => {
///                 /* inject */
/// #               drop(context_id);
///             }
///             CheckpointAction::UnlockCapability { capability_id } => {
///                 /* unlock */
/// #               unlocked.push(capability_id);
///             }
///             CheckpointAction::LockCapability { capability_id } => {
///                 /* lock */
/// #               drop(capability_id);
///             }
///             CheckpointAction::InjectGuidance { guidance } => {
///                 /* inject */
/// #               drop(guidance);
///             }
///             _ => {}
///         }
///     }
/// }
/// # assert_eq!(unlocked, ["basic"]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct CheckpointEvaluator {
    config: CheckpointConfig,
}

/// A gate that has been raised.
#[derive(Clone, Debug)]
pub struct TriggeredCheckpoint {
    /// The gate.
    pub definition: StewardCheckpointDef,
    /// What raised it.
    pub trigger_data: Value,
}

/// Answers to the questions of a gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckpointResponse {
    /// By question.
    pub answers: Map<String, Value>,
}

/// Says whether answers will do.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointValidator;

impl CheckpointEvaluator {
    /// Raises gates under this configuration.
    pub fn new(config: CheckpointConfig) -> Self {
        Self { config }
    }

    /// The configuration.
    pub fn config(&self) -> &CheckpointConfig {
        &self.config
    }

    /// Raises one gate.
    pub fn evaluate_steward_checkpoint(
        &self,
        definition: &StewardCheckpointDef,
        trigger_data: Value,
    ) -> TriggeredCheckpoint {
        TriggeredCheckpoint {
            definition: definition.clone(),
            trigger_data,
        }
    }
}

impl CheckpointResponse {
    /// No answers yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Answers one question.
    pub fn with_answer(mut self, question_id: &str, answer: impl Into<Value>) -> Self {
        self.answers.insert(question_id.to_owned(), answer.into());
        self
    }
}

impl CheckpointValidator {
    /// Says whether `response` passes the gate, and what follows.
    ///
    /// A validator of the steward's own cannot be asked here, so what needs one is refused.
    pub fn validate(triggered: &TriggeredCheckpoint, response: &CheckpointResponse) -> Validation {
        let definition = &triggered.definition;
        let mut failures = Vec::new();
        let mut passes = true;
        let mut is_valid = true;
        for question in &definition.questions {
            let failure = |rule, message: String| Failure {
                question_id: question.question_id.clone(),
                rule,
                message,
                hint: question.hint.clone(),
            };
            let continues = matches!(
                question.on_invalid,
                InvalidAnswerAction::WarnAndContinue | InvalidAnswerAction::LogAndContinue
            );
            let judged = match response.answers.get(&question.question_id) {
                None | Some(Value::Null) if !question.required => continue,
                None | Some(Value::Null) => {
                    is_valid = false;
                    failures.push(failure("required", "an answer is needed".to_owned()));
                    continue;
                }
                Some(answer) => match Rules::compile(question) {
                    Ok(rules) => rules.judge(answer),
                    Err(error) => Err(vec![failure("rules", error.to_string())]),
                },
            };
            let own = question
                .validation
                .as_ref()
                .and_then(|validation| validation.custom_validator.as_ref());
            match judged {
                Ok(_) if own.is_some() => {
                    is_valid = false;
                    let message = "the steward's own check is not asked here".to_owned();
                    failures.push(failure("custom_validator", message));
                }
                Ok(Accepted::Passes) => {}
                Ok(Accepted::Refuses) => passes = false,
                Err(found) => {
                    is_valid &= continues;
                    failures.extend(found);
                }
            }
        }
        let actions = match is_valid && passes {
            true => effects(definition),
            false => vec![CheckpointAction::Block {
                reason: "it is not passed".to_owned(),
            }],
        };
        Validation {
            is_valid,
            failures,
            actions,
        }
    }
}

/// What passing a gate brings, in the order in which it is applied.
fn effects(definition: &StewardCheckpointDef) -> Vec<CheckpointAction> {
    let contexts = definition.inject_contexts.iter().cloned();
    let guidance = definition.guidance.iter().cloned();
    let unlock = definition.unlock_capabilities.iter().cloned();
    let lock = definition.lock_capabilities.iter().cloned();
    let allow = definition.allow_actions.iter().cloned();
    let deny = definition.deny_actions.iter().cloned();
    std::iter::once(CheckpointAction::Proceed)
        .chain(contexts.map(|context_id| CheckpointAction::InjectContext { context_id }))
        .chain(guidance.map(|guidance| CheckpointAction::InjectGuidance { guidance }))
        .chain(unlock.map(|capability_id| CheckpointAction::UnlockCapability { capability_id }))
        .chain(lock.map(|capability_id| CheckpointAction::LockCapability { capability_id }))
        .chain(allow.map(|pattern| CheckpointAction::AllowActions { pattern }))
        .chain(deny.map(|pattern| CheckpointAction::DenyActions { pattern }))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::atlas::{AnswerValidation, CheckpointQuestion, CheckpointTrigger};

    fn judged(question: CheckpointQuestion, response: &CheckpointResponse) -> Validation {
        let gate = StewardCheckpointDef::new("gate", "Gate", CheckpointTrigger::SessionStart {})
            .blocking()
            .with_question(question)
            .lock_capabilities(vec!["public".to_owned()]);
        let raised = CheckpointEvaluator::default().evaluate_steward_checkpoint(&gate, json!({}));
        CheckpointValidator::validate(&raised, response)
    }

    #[test]
    fn ga_45_the_interface_of_the_specification_judges_as_the_engine_does() {
        let ask = || CheckpointQuestion::boolean("ok", "Sure?");
        let answered = |answer: Value| CheckpointResponse::new().with_answer("ok", answer);
        let passed = judged(ask(), &answered(json!(true)));
        assert!(passed.is_valid);
        assert_eq!(
            passed.actions,
            [
                CheckpointAction::Proceed,
                CheckpointAction::LockCapability {
                    capability_id: "public".to_owned()
                }
            ]
        );
        for (answer, is_valid) in [
            (json!(false), true),
            (json!("maybe"), false),
            (json!(null), false),
        ] {
            let refused = judged(ask(), &answered(answer.clone()));
            assert_eq!(refused.is_valid, is_valid, "{answer}");
            assert!(matches!(
                refused.actions.as_slice(),
                [CheckpointAction::Block { .. }]
            ));
        }
        let optional = judged(ask().optional(), &CheckpointResponse::new());
        assert!(optional.is_valid);
        let own = AnswerValidation {
            custom_validator: Some("cel:true".to_owned()),
            ..AnswerValidation::default()
        };
        let unasked = judged(ask().with_validation(own), &answered(json!(true)));
        assert!(!unasked.is_valid, "what cannot be asked here is refused");
    }
}
