//! The interface of the specification: one gate, without a session.
//!
//! [`Engine`](crate::Engine) does more, and is what everything else uses. This
//! is for whoever writes atlases in code, or tests one gate by itself.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::answer::{Accepted, Failure, Rules};
use crate::atlas::{
    ActionSection, CheckpointConfig, CheckpointTrigger, InvalidAnswerAction, PlainSection,
    RiskTier, StewardCheckpointDef,
};
use crate::keyword::{KeywordRule, KeywordSet};
use crate::pattern::Pattern;
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
    /// What raised it, or did not.
    pub trigger_data: Value,
    /// Whether it is raised: switched on, and by what its trigger waits for.
    pub is_raised: bool,
    /// Contexts that the configuration gives with it.
    pub contexts: Vec<String>,
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

    /// Raises one gate, if what happened is what its trigger waits for.
    ///
    /// `trigger_data` has `action_id`, `risk`, `capability_id`, `input` and `checkpoint_id`, as far
    /// as they apply. Where the one that decides is missing or cannot be read, the gate is raised.
    ///
    /// ```
    /// use safepoint_gates::{
    ///     CheckpointConfig, CheckpointEvaluator, CheckpointTrigger, StewardCheckpointDef,
    /// };
    /// use serde_json::json;
    ///
    /// let gate = StewardCheckpointDef::new(
    ///     "delete-confirm",
    ///     "Deletion",
    ///     CheckpointTrigger::ActionPre { patterns: vec!["*.delete".to_string()] },
    /// );
    /// let evaluator = CheckpointEvaluator::new(CheckpointConfig::default());
    /// let raised = |data| evaluator.evaluate_steward_checkpoint(&gate, data).is_raised;
    /// assert!(raised(json!({"action_id": "ticket.delete"})));
    /// assert!(!raised(json!({"action_id": "ticket.read"})));
    /// assert!(raised(json!({})), "nobody knows what it is");
    ///
    /// let named = StewardCheckpointDef::new("review", "Review", CheckpointTrigger::Interactive {});
    /// let raised = |data| evaluator.evaluate_steward_checkpoint(&named, data).is_raised;
    /// assert!(raised(json!({"checkpoint_id": "review"})));
    /// assert!(!raised(json!({"checkpoint_id": "another"})));
    /// ```
    pub fn evaluate_steward_checkpoint(
        &self,
        definition: &StewardCheckpointDef,
        trigger_data: Value,
    ) -> TriggeredCheckpoint {
        let is_raised = definition.enabled && is_met(definition, &trigger_data);
        TriggeredCheckpoint {
            contexts: match is_raised {
                true => self.contexts(&definition.trigger, &trigger_data),
                false => Vec::new(),
            },
            definition: definition.clone(),
            trigger_data,
            is_raised,
        }
    }

    /// The contexts that the configuration gives at the moment that this trigger waits for.
    fn contexts(&self, trigger: &CheckpointTrigger, data: &Value) -> Vec<String> {
        let config = &self.config;
        let plain = |section: &Option<PlainSection>| {
            let section = section.iter().filter(|it| it.enabled);
            section.flat_map(|it| it.inject_contexts.clone()).collect()
        };
        let by_action = |section: &Option<ActionSection>| {
            let Some(action) = text_in(data, "action_id") else {
                return Vec::new();
            };
            let sections = section.iter().filter(|it| it.enabled);
            let mappings = sections.flat_map(|it| &it.mappings.0);
            mappings
                .filter(|(pattern, _)| has_action(std::slice::from_ref(pattern), action))
                .flat_map(|(_, mapping)| mapping.inject_contexts.clone())
                .collect()
        };
        match trigger {
            CheckpointTrigger::SessionStart {} => plain(&config.session_start),
            CheckpointTrigger::SessionEnd {} => plain(&config.session_end),
            CheckpointTrigger::ExplicitRequest {} => plain(&config.explicit_request),
            CheckpointTrigger::ErrorOccurred {} => plain(&config.error_occurred),
            CheckpointTrigger::ActionPre { .. } => by_action(&config.action_pre),
            CheckpointTrigger::ActionPost { .. } => by_action(&config.action_post),
            CheckpointTrigger::RiskThreshold { .. } => {
                let section = config.risk_threshold.iter().filter(|it| it.enabled);
                let risk = risk_in(data);
                section
                    .filter(|it| risk.is_none_or(|risk| risk >= it.min_tier))
                    .flat_map(|it| it.inject_contexts.clone())
                    .collect()
            }
            CheckpointTrigger::Keyword { .. } | CheckpointTrigger::KeywordMatch { .. } => {
                let Some(input) = text_in(data, "input") else {
                    return Vec::new();
                };
                let section = config.keyword_match.iter().filter(|it| it.enabled);
                section
                    .flat_map(|it| it.mappings.0.iter().map(move |mapping| (it, mapping)))
                    .filter(|(section, (words, _))| {
                        has_words(
                            &KeywordRule {
                                patterns: std::slice::from_ref(words),
                                match_mode: section.match_mode,
                                case_sensitive: section.case_sensitive,
                            },
                            input,
                        )
                    })
                    .flat_map(|(_, (_, contexts))| contexts.clone())
                    .collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Whether what happened is what a trigger waits for, as far as that can be told from it.
fn is_met(definition: &StewardCheckpointDef, data: &Value) -> bool {
    match &definition.trigger {
        // Somebody asks for a gate by its name, or for any.
        CheckpointTrigger::Interactive { .. } | CheckpointTrigger::ExplicitRequest { .. } => {
            text_in(data, "checkpoint_id").is_none_or(|id| id == definition.checkpoint_id)
        }
        CheckpointTrigger::ActionPre { patterns } | CheckpointTrigger::ActionPost { patterns } => {
            text_in(data, "action_id").is_none_or(|action| has_action(patterns, action))
        }
        CheckpointTrigger::RiskThreshold { min_tier } => {
            risk_in(data).is_none_or(|risk| risk >= *min_tier)
        }
        CheckpointTrigger::CapabilityAccess { capability_ids }
        | CheckpointTrigger::CapabilityGate { capability_ids } => text_in(data, "capability_id")
            .is_none_or(|capability| capability_ids.iter().any(|it| it == capability)),
        CheckpointTrigger::Keyword {
            patterns,
            case_sensitive,
            match_mode,
        }
        | CheckpointTrigger::KeywordMatch {
            patterns,
            case_sensitive,
            match_mode,
        } => {
            let rule = KeywordRule {
                patterns,
                match_mode: *match_mode,
                case_sensitive: *case_sensitive,
            };
            text_in(data, "input").is_none_or(|input| has_words(&rule, input))
        }
        // These are raised by the moment itself, which the caller has seen; what a steward's own
        // code says is not asked here.
        _ => true,
    }
}

fn text_in<'d>(data: &'d Value, name: &str) -> Option<&'d str> {
    data.get(name).and_then(Value::as_str)
}

fn risk_in(data: &Value) -> Option<RiskTier> {
    let risk = data.get("risk").or_else(|| data.get("risk_tier"))?;
    RiskTier::deserialize(risk).ok()
}

/// A pattern that cannot be read is taken to match.
fn has_action(patterns: &[String], action: &str) -> bool {
    let matches = |text: &String| Pattern::parse(text).map_or(true, |it| it.matches(action));
    patterns.iter().any(matches)
}

/// Words that cannot be looked for are taken to be there.
fn has_words(rule: &KeywordRule<'_>, input: &str) -> bool {
    match KeywordSet::new(&[*rule]) {
        Err(_) => true,
        Ok(words) => {
            let mut found = Vec::new();
            words.matching(input, &mut found);
            !found.is_empty()
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
    /// One that is not raised asks nothing and gives nothing. A validator of the steward's own cannot be asked here, so what needs one is refused.
    pub fn validate(triggered: &TriggeredCheckpoint, response: &CheckpointResponse) -> Validation {
        let definition = &triggered.definition;
        if !triggered.is_raised {
            return Validation {
                is_valid: true,
                failures: Vec::new(),
                actions: vec![CheckpointAction::Proceed],
            };
        }
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
            true => effects(definition, &triggered.contexts),
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
fn effects(definition: &StewardCheckpointDef, configured: &[String]) -> Vec<CheckpointAction> {
    let own = &definition.inject_contexts;
    let contexts = own.iter().cloned();
    // Each context is given once.
    let more = configured.iter().filter(|it| !own.contains(it)).cloned();
    let contexts = contexts.chain(more);
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
    use crate::atlas::{AnswerValidation, CheckpointQuestion};

    fn judged(question: CheckpointQuestion, response: &CheckpointResponse) -> Validation {
        let gate = StewardCheckpointDef::new("gate", "Gate", CheckpointTrigger::SessionStart {})
            .blocking()
            .with_question(question)
            .lock_capabilities(vec!["public".to_owned()]);
        let raised = CheckpointEvaluator::default().evaluate_steward_checkpoint(&gate, json!({}));
        CheckpointValidator::validate(&raised, response)
    }

    #[test]
    fn ga_45_a_gate_is_raised_by_what_its_trigger_waits_for_and_nothing_else() {
        let keyword = CheckpointTrigger::Keyword {
            patterns: vec!["refund".to_owned()],
            case_sensitive: false,
            match_mode: crate::atlas::MatchMode::Any,
        };
        let capability = CheckpointTrigger::CapabilityGate {
            capability_ids: vec!["admin".to_owned()],
        };
        let risk = CheckpointTrigger::RiskThreshold {
            min_tier: RiskTier::High,
        };
        let cases = [
            (&keyword, json!({"input": "a Refund, please"}), true),
            (&keyword, json!({"input": "hello"}), false),
            (&keyword, json!({}), true),
            (&capability, json!({"capability_id": "admin"}), true),
            (&capability, json!({"capability_id": "public"}), false),
            (&risk, json!({"risk": "critical"}), true),
            (&risk, json!({"risk": "low"}), false),
            (&risk, json!({"risk": "unheard of"}), true),
        ];
        for (trigger, data, is_raised) in cases {
            let gate = StewardCheckpointDef::new("g", "G", trigger.clone())
                .with_question(CheckpointQuestion::boolean("ok", "Sure?"))
                .unlock_capabilities(vec!["c".to_owned()]);
            let evaluator = CheckpointEvaluator::default();
            let found = evaluator.evaluate_steward_checkpoint(&gate, data.clone());
            assert_eq!(found.is_raised, is_raised, "{trigger:?} {data}");
            let answered = CheckpointValidator::validate(&found, &CheckpointResponse::new());
            assert_eq!(answered.is_valid, !is_raised, "{data}");
            let unlocks =
                |it: &CheckpointAction| matches!(it, CheckpointAction::UnlockCapability { .. });
            assert!(!answered.actions.iter().any(unlocks), "{data}");
        }
        let config: CheckpointConfig = serde_json::from_value(json!({
            "action_pre": {"mappings": {"ticket.*": {"inject_contexts": ["tickets"]}}}
        }))
        .unwrap();
        let trigger = CheckpointTrigger::ActionPre {
            patterns: vec!["*.delete".to_owned()],
        };
        let gate = StewardCheckpointDef::new("g", "G", trigger);
        let evaluator = CheckpointEvaluator::new(config);
        let found =
            evaluator.evaluate_steward_checkpoint(&gate, json!({"action_id": "ticket.delete"}));
        let answered = CheckpointValidator::validate(&found, &CheckpointResponse::new());
        let context_id = "tickets".to_owned();
        assert_eq!(
            answered.actions,
            [
                CheckpointAction::Proceed,
                CheckpointAction::InjectContext { context_id }
            ]
        );
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
