//! Questions: whether they can be answered, and whether they should be asked.

mod secrets;

use std::collections::HashSet;

use serde_json::Value;

use super::{Names, extensions, similar};
use crate::answer::{Accepted, Rules};
use crate::atlas::{
    AnswerValidation, AtlasManifest, CheckpointMode, CheckpointQuestion, Expect, ResponseType,
    Runner, StewardCheckpointDef,
};
use crate::load::finding::Findings;
use crate::load::suggest::shown;

/// How many words or options of a question are tried on its own rules: each
/// costs as much as there are rules.
const MOST_ASKED: usize = 64;

pub(super) fn check(atlas: &AtlasManifest, names: &Names<'_>, findings: &mut Findings) {
    for (gate_index, gate) in atlas.checkpoints.iter().enumerate() {
        for (index, question) in gate.questions.iter().enumerate() {
            let mut checker = Checker {
                question,
                names,
                findings: &mut *findings,
                gate: gate_index,
                index,
                faults: 0,
            };
            checker.kind();
            if let Some(validation) = &question.validation {
                checker.validation(validation);
            }
            checker.rules(gate);
        }
    }
}

struct Checker<'a, 'f> {
    question: &'a CheckpointQuestion,
    names: &'a Names<'a>,
    findings: &'f mut Findings,
    gate: usize,
    index: usize,
    faults: usize,
}

impl Checker<'_, '_> {
    fn pointer(&self, below: &str) -> String {
        format!("/checkpoints/{}/questions/{}{below}", self.gate, self.index)
    }

    fn error(&mut self, below: &str, message: String, hint: &str) {
        self.faults += 1;
        self.findings.error(self.pointer(below), message, hint);
    }

    fn key_error(&mut self, below: &str, message: String, hint: &str) {
        self.faults += 1;
        self.findings.key_error(self.pointer(below), message, hint);
    }

    /// What is given for a kind of answer, and what that kind needs.
    fn kind(&mut self) {
        let question = self.question;
        let kind = &question.response_type;
        let name = kind.name();
        let choice = matches!(kind, ResponseType::Choice(_));
        let number = matches!(kind, ResponseType::Number(_));
        let json = matches!(kind, ResponseType::Json(_));
        let given = [
            (!question.options.is_empty() && !choice, "options", "choice"),
            (question.min.is_some() && !number, "min", "number"),
            (question.max.is_some() && !number, "max", "number"),
            (question.schema.is_some() && !json, "schema", "json"),
        ];
        for (wrong, field, wanted) in given {
            if wrong {
                let message = format!("`{field}` says nothing about an answer of type `{name}`");
                let hint = format!("say `response_type: {wanted}`, or leave it out");
                self.key_error(&format!("/{field}"), message, &hint);
            }
        }
        if choice && question.choices().is_empty() {
            let hint = "list what can be chosen under `options`";
            self.error("", "there is nothing to choose from".to_owned(), hint);
        }
        if choice {
            self.options();
        }
        if let (Some(least), Some(most)) = question.bounds()
            && number
            && least > most
        {
            let message = format!("no number is at least {least} and at most {most}");
            let below = if question.min.is_some() { "/min" } else { "" };
            self.error(below, message, "swap `min` and `max`");
        }
    }

    fn options(&mut self) {
        let twice = match &self.question.response_type {
            ResponseType::Choice(form) => {
                !form.options.is_empty() && !self.question.options.is_empty()
            }
            _ => false,
        };
        if twice {
            let message = "the options are given twice".to_owned();
            self.key_error("/options", message, "give them in one place");
        }
        let options = self.question.choices();
        let below = match self.question.options.is_empty() {
            true => "/response_type/choice/options",
            false => "/options",
        };
        let mut seen = HashSet::new();
        for (index, option) in options.iter().enumerate() {
            if !seen.insert(option) {
                let message = format!("option `{}` is given twice", shown(option));
                self.error(&format!("{below}/{index}"), message, "leave one out");
            }
        }
    }

    /// Rules that contradict each other.
    fn validation(&mut self, validation: &AnswerValidation) {
        let (least, most) = (validation.min_length, validation.max_length);
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            let message = format!("no answer has at least {least} and at most {most} characters");
            self.error(
                "/validation/min_length",
                message,
                "swap `min_length` and `max_length`",
            );
        }
        if most == Some(0) && self.question.required {
            let message = "an answer is required, and none may have a character".to_owned();
            self.error("/validation/max_length", message, "raise `max_length`");
        }
        let forbidden = validation.must_not_contain.iter();
        let forbidden: HashSet<String> = forbidden.map(|word| word.to_lowercase()).collect();
        for (index, word) in validation.must_contain.iter().enumerate() {
            let below = format!("/validation/must_contain/{index}");
            let length = word.chars().count();
            if let Some(most) = most.filter(|most| length > *most) {
                let message = format!(
                    "`{}` must occur, and an answer has at most {most} characters",
                    shown(word)
                );
                self.error(&below, message, "raise `max_length`");
            }
            if forbidden.contains(&word.to_lowercase()) {
                let message = format!("`{}` must occur, and must not", shown(word));
                self.error(&below, message, "leave it out of `must_not_contain`");
            }
        }
        if let Some(reference) = &validation.custom_validator {
            self.custom(reference);
        }
    }

    fn custom(&mut self, reference: &str) {
        let below = "/validation/custom_validator";
        if self.names.extensions.contains(reference) {
            return;
        }
        match Runner::inline(reference) {
            Some(Runner::Cel(expression)) => {
                let pointer = self.pointer(below);
                let given = [extensions::OF_ANSWERS];
                extensions::cel(&expression, &given, &pointer, self.findings);
            }
            Some(Runner::Wasm(path)) if path.is_empty() => {
                let message = "`wasm:` names no module".to_owned();
                self.error(below, message, "give its path beside the atlas");
            }
            Some(Runner::Callback { url, .. }) if !extensions::is_https(&url) => {
                let message = format!("`{}` is not an `https:` address", shown(&url));
                self.error(
                    below,
                    message,
                    "write it like `https://steward.example/check`",
                );
            }
            Some(_) => {}
            None => {
                let near = similar(reference, &self.names.extensions, self.findings);
                let hint = match near {
                    Some(name) => format!("did you mean `{}`?", shown(name)),
                    None => {
                        "name an extension, or write `cel:…`, `wasm:…` or `https://…`".to_owned()
                    }
                };
                let message = format!("no extension is called `{}`", shown(reference));
                self.error(below, message, &hint);
            }
        }
    }

    /// What only shows when the rules are put together.
    fn rules(&mut self, gate: &StewardCheckpointDef) {
        let rules = match Rules::compile(self.question) {
            Ok(rules) => rules,
            Err(error) => {
                let pointer = self.pointer(&error.pointer);
                // Options and bounds can be written in two places, and are told already.
                let kinds = ["/options", "/min", "/max"];
                let told = self.faults > 0 && kinds.iter().any(|it| error.pointer.starts_with(it));
                if !told && !self.findings.has_error_at(&pointer) {
                    self.findings.error(pointer, shown(&error.message), None);
                }
                return;
            }
        };
        let Some(validation) = self
            .question
            .validation
            .as_ref()
            .filter(|_| self.faults == 0)
        else {
            return;
        };
        // Asking the rules themselves: they alone know what counts as occurring.
        let asked = validation.must_contain.iter().enumerate();
        for (index, word) in asked.take(MOST_ASKED) {
            let refused = rules
                .judge(&Value::String(word.clone()))
                .err()
                .unwrap_or_default();
            if refused
                .iter()
                .any(|failure| failure.rule == "must_not_contain")
            {
                let message = format!("`{}` must occur, and is forbidden", shown(word));
                let below = format!("/validation/must_contain/{index}");
                self.error(&below, message, "loosen `must_not_contain`");
            }
        }
        let blocking = gate.mode == CheckpointMode::Blocking && self.question.required;
        let options = self.question.choices();
        let passes = |option: &String| {
            matches!(
                rules.judge(&Value::String(option.clone())),
                Ok(Accepted::Passes)
            )
        };
        if blocking
            && (1..=MOST_ASKED).contains(&options.len())
            && self.faults == 0
            && !options.iter().any(passes)
        {
            let message =
                "no option fulfils `validation`, so this gate can never be passed".to_owned();
            self.key_error("/validation", message, "loosen it, or add an option");
        }
    }
}

pub(super) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    for (gate_index, gate) in atlas.checkpoints.iter().enumerate() {
        let id = shown(&gate.checkpoint_id);
        let blocking = gate.mode == CheckpointMode::Blocking;
        if blocking && gate.questions.is_empty() {
            findings.warning(
                format!("/checkpoints/{gate_index}"),
                format!("gate `{id}` is blocking and asks nothing, so it blocks nothing"),
                "add a question, or say `mode: advisory`",
            );
        }
        if !blocking && !gate.questions.is_empty() {
            findings.key_warning(
                format!("/checkpoints/{gate_index}/questions"),
                format!("gate `{id}` is not blocking, so nobody has to answer its questions"),
                "say `mode: blocking`",
            );
        }
        for (index, question) in gate.questions.iter().enumerate() {
            let pointer = || format!("/checkpoints/{gate_index}/questions/{index}");
            if question.expect != Expect::default()
                && !matches!(question.response_type, ResponseType::Boolean)
            {
                findings.key_warning(
                    format!("{}/expect", pointer()),
                    "only a yes-or-no question can expect a yes or a no".to_owned(),
                    "say `response_type: boolean`, or leave it out",
                );
            }
            secrets::warn(question, &pointer, findings);
        }
    }
}
