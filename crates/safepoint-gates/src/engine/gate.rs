//! One gate, ready to be raised.

use std::sync::{Arc, OnceLock};

use super::Code;
use crate::answer::Rules;
use crate::atlas::{CheckpointMode, CheckpointQuestion, StewardCheckpointDef};

/// How often a question may be answered wrongly unless it says so itself.
const DEFAULT_ATTEMPTS: u32 = 3;

/// One gate, ready to be raised.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Its place among all gates: ties are broken by it.
    pub(crate) number: u32,
    /// Which atlas it is in.
    pub(crate) atlas: usize,
    /// Its name among all atlases, as sessions remember it.
    pub(crate) name: Arc<str>,
    /// Its name as people see it: the short one where that is enough.
    pub(crate) label: Arc<str>,
    /// As it was written, but for its questions.
    pub(crate) definition: StewardCheckpointDef,
    pub(crate) priority: i64,
    /// What decides whether a custom trigger fires. Without it, it always does.
    pub(crate) code: Option<Code>,
    pub(crate) questions: Vec<Question>,
}

/// One question, ready to be answered.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) definition: CheckpointQuestion,
    /// Made when it is first answered.
    rules: OnceLock<Result<Rules, String>>,
    pub(crate) validator: Option<Code>,
}

impl Gate {
    pub(crate) fn is_blocking(&self) -> bool {
        self.definition.mode == CheckpointMode::Blocking
    }

    /// Whether somebody must answer before it is passed.
    pub(crate) fn asks(&self) -> bool {
        self.is_blocking()
            && self
                .questions
                .iter()
                .any(|question| question.definition.required)
    }

    pub(crate) fn question(&self, id: &str) -> Option<&Question> {
        self.questions
            .iter()
            .find(|question| question.definition.question_id == id)
    }
}

impl Question {
    pub(crate) fn new(definition: CheckpointQuestion, validator: Option<Code>) -> Self {
        Self {
            definition,
            rules: OnceLock::new(),
            validator,
        }
    }

    /// Its rules; why there are none otherwise.
    pub(crate) fn rules(&self) -> Result<&Rules, &str> {
        self.rules
            .get_or_init(|| Rules::compile(&self.definition).map_err(|error| error.to_string()))
            .as_ref()
            .map_err(String::as_str)
    }

    pub(crate) fn attempts(&self) -> u32 {
        self.definition.max_attempts.unwrap_or(DEFAULT_ATTEMPTS)
    }
}
