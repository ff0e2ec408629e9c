//! What an answer does. It belongs to one hold of one session, and can do
//! nothing but pass, or fail to pass, the gate that asked.

use std::collections::BTreeMap;

use safepoint_model::HoldId;
use serde_json::{Map, Value, json};

use super::raise::lasts;
use super::{Decided, Refusal, Step};
use crate::answer::{Accepted, Failure};
use crate::atlas::{InvalidAnswerAction, NotificationTrigger};
use crate::engine::{Gate, Question, Ran};
use crate::resolution::{CheckpointAction, Decision, GateStatus, Validation};
use crate::session::{Cause, Hold, Reach, Shut, Waiting};

/// What was made of one set of answers.
#[derive(Default)]
struct Read {
    failures: Vec<Failure>,
    /// Questions that were answered with a no.
    refused: Vec<String>,
    /// The questions whose answers failed and count as answered, with what let them through.
    let_through: BTreeMap<String, &'static str>,
    /// Whether what failed keeps the gate from being passed.
    stops: bool,
    /// Whether the gate stays shut from now on.
    shuts: bool,
}

impl<'a> Step<'a> {
    pub(super) fn answer(
        &mut self,
        id: &str,
        hold: Option<&HoldId>,
        answers: &Map<String, Value>,
    ) -> Result<Decided, Refusal> {
        let (gate, hold) = self.waiting_for(id, hold)?;
        let Some(mut waiting) = find(&hold, gate).cloned() else {
            return Err(Refusal::NotWaiting(id.to_owned()));
        };
        let read = self.read(gate, &hold, &mut waiting, answers);
        if !self.wanted.is_empty() {
            return Ok(Decided::new(Decision::Hold, "a steward's service is asked"));
        }
        let open = gate.questions.iter().any(|question| {
            question.definition.required
                && !waiting.answered.contains(&question.definition.question_id)
        });
        let passes = !open && !read.stops && read.refused.is_empty();
        let is_valid = !read.stops;
        self.sync |= gate.definition.force_sync_trace;
        self.record(
            "CheckpointResponse",
            json!({
                "checkpoint_id": gate.label,
                "hold_id": hold.hold_id,
                "answers": answers,
                "validation_result": if read.failures.is_empty() { "valid" } else { "invalid" },
                "failures": read.failures,
                "let_through": read.let_through,
            }),
        );
        waiting.passed = passes;
        let mut actions = Vec::new();
        if passes {
            self.note(gate, GateStatus::Passed);
            actions = self.pass(gate);
        } else {
            let reason = self.why_not(gate, &hold, &read);
            self.note(gate, GateStatus::Pending);
            actions.push(CheckpointAction::Block { reason });
        }
        self.keep(gate, &hold, waiting);
        if read.shuts {
            self.shut(gate, &hold);
        }
        let mut decided = match self.hold(&hold.hold_id).cloned() {
            Some(hold) => self.reconsider(&hold),
            None if read.shuts => Decided::new(
                Decision::Deny,
                format!("checkpoint `{}` is shut", gate.label),
            ),
            None => self.standing("nothing is held"),
        };
        self.forget_cleared();
        decided.validation = Some(Validation {
            is_valid,
            failures: read.failures,
            actions,
        });
        Ok(decided)
    }

    /// The one gate and the one hold that an answer is for.
    fn waiting_for(&self, id: &str, wanted: Option<&HoldId>) -> Result<(&'a Gate, Hold), Refusal> {
        let gates = self.engine.gates_called(id);
        if gates.is_empty() {
            return Err(Refusal::UnknownGate(id.to_owned()));
        }
        let mut found: Vec<(&'a Gate, &Hold)> = Vec::new();
        for gate in gates {
            for hold in &self.session.holds {
                let meant = wanted.is_none_or(|wanted| *wanted == hold.hold_id);
                let waits = find(hold, gate).is_some_and(|waiting| !waiting.passed);
                let shut = self.session.is_shut(&gate.name, hold.action());
                if meant && waits && !shut {
                    found.push((gate, hold));
                }
            }
        }
        match found.as_slice() {
            [] => Err(Refusal::NotWaiting(id.to_owned())),
            [(gate, hold)] => Ok((gate, (*hold).clone())),
            // Passing it once is enough for all of them.
            [(gate, hold), rest @ ..]
                if lasts(gate) && rest.iter().all(|(other, _)| other.name == gate.name) =>
            {
                Ok((gate, (*hold).clone()))
            }
            [(gate, _), rest @ ..] if rest.iter().any(|(other, _)| other.name != gate.name) => {
                Err(Refusal::Ambiguous {
                    id: id.to_owned(),
                    among: found
                        .iter()
                        .map(|(gate, _)| gate.name.to_string())
                        .collect(),
                })
            }
            several => Err(Refusal::SeveralHolds {
                gate: id.to_owned(),
                among: several
                    .iter()
                    .map(|(_, hold)| match hold.action() {
                        Some(action) => format!("{} (`{action}`)", hold.hold_id),
                        None => hold.hold_id.to_string(),
                    })
                    .collect(),
            }),
        }
    }

    /// Reads all answers, and remembers which questions are answered well.
    fn read(
        &mut self,
        gate: &'a Gate,
        hold: &Hold,
        waiting: &mut Waiting,
        answers: &Map<String, Value>,
    ) -> Read {
        let mut read = Read::default();
        for id in answers.keys().filter(|id| gate.question(id).is_none()) {
            read.stops = true;
            read.failures.push(Failure {
                question_id: id.clone(),
                rule: "unknown_question",
                message: format!("checkpoint `{}` does not ask this", gate.label),
                hint: None,
            });
        }
        for question in &gate.questions {
            let id = &question.definition.question_id;
            match answers.get(id) {
                None | Some(Value::Null) => {
                    if question.definition.required && !waiting.answered.contains(id) {
                        read.stops = true;
                        read.failures.push(Failure {
                            question_id: id.clone(),
                            rule: "required",
                            message: "an answer is needed".to_owned(),
                            hint: question.definition.hint.clone(),
                        });
                    }
                }
                Some(answer) => {
                    waiting.answered.remove(id);
                    match self.accept(gate, hold, question, answer) {
                        Ok(Accepted::Passes) => {
                            waiting.answered.insert(id.clone());
                        }
                        Ok(Accepted::Refuses) => read.refused.push(id.clone()),
                        Err(failures) => self.fail(question, failures, waiting, &mut read),
                    }
                }
            }
        }
        read
    }

    /// Whether one answer will do: by its rules, and by the steward's own code.
    fn accept(
        &mut self,
        gate: &'a Gate,
        hold: &Hold,
        question: &Question,
        answer: &Value,
    ) -> Result<Accepted, Vec<Failure>> {
        let failure = |rule, message: String| {
            vec![Failure {
                question_id: question.definition.question_id.clone(),
                rule,
                message,
                hint: question.definition.hint.clone(),
            }]
        };
        let rules = question
            .rules()
            .map_err(|error| failure("rules", error.to_owned()))?;
        let accepted = rules.judge(answer)?;
        let Some(code) = &question.validator else {
            return Ok(accepted);
        };
        let (action, parameters, risk) = match &hold.cause {
            Cause::Request {
                action,
                parameters,
                risk,
                ..
            } => (action.as_str(), parameters.clone(), risk.as_str()),
            _ => ("", Value::Null, ""),
        };
        let given = json!({
            "answer": answer,
            "question": question.definition.question_id,
            "action": action,
            "params": super::custom::object_or_empty(&parameters),
            "risk": risk,
            "session": self.session_facts(),
        });
        match code.run(&given, self.facts) {
            Ran::Said(said) if said.yes => Ok(accepted),
            Ran::Said(said) => Err(failure(
                "custom_validator",
                said.message
                    .unwrap_or_else(|| "the steward's own check refused it".to_owned()),
            )),
            Ran::Failed(error) => {
                self.extension_failed(gate, &error);
                Err(failure("custom_validator", error))
            }
            Ran::Wanted(callback) => {
                self.wanted.push(callback);
                Ok(accepted)
            }
        }
    }

    /// Does what the question says about answers that will not do.
    fn fail(
        &mut self,
        question: &Question,
        failures: Vec<Failure>,
        waiting: &mut Waiting,
        read: &mut Read,
    ) {
        let id = &question.definition.question_id;
        match question.definition.on_invalid {
            InvalidAnswerAction::Retry => {
                let failed = waiting.failed.entry(id.clone()).or_default();
                *failed += 1;
                read.stops = true;
                read.shuts |= *failed >= question.attempts();
            }
            InvalidAnswerAction::Block => {
                read.stops = true;
                read.shuts = true;
            }
            InvalidAnswerAction::WarnAndContinue => {
                waiting.answered.insert(id.clone());
                read.let_through.insert(id.clone(), "warn_and_continue");
                for failure in &failures {
                    self.warnings.push(format!("{id}: {}", failure.message));
                }
            }
            InvalidAnswerAction::LogAndContinue => {
                waiting.answered.insert(id.clone());
                read.let_through.insert(id.clone(), "log_and_continue");
            }
        }
        read.failures.extend(failures);
    }

    fn why_not(&mut self, gate: &Gate, hold: &Hold, read: &Read) -> String {
        let reason = match (read.shuts, read.refused.is_empty()) {
            (true, _) => "the answers will not do, and there are no further attempts",
            (false, false) => "it was answered with no",
            (false, true) => "Required question not answered",
        };
        self.record(
            "CheckpointBlocked",
            json!({
                "checkpoint_id": gate.label,
                "reason": reason,
                "blocked_action": hold.action(),
                "hold_id": hold.hold_id,
            }),
        );
        reason.to_owned()
    }

    /// Writes what was learned of a gate back to its hold; to all of them where once is enough.
    /// Attempts are counted for all holds of the action together.
    fn keep(&mut self, gate: &Gate, hold: &Hold, waiting: Waiting) {
        for other in &mut self.session.holds {
            let same_action = other.action() == hold.action();
            let place = other.gates.iter_mut().find(|it| *it.gate == *gate.name);
            if let Some(place) = place {
                if other.hold_id != hold.hold_id && !lasts(gate) {
                    if same_action {
                        place.failed.clone_from(&waiting.failed);
                    }
                    continue;
                }
                let reach = place.reach;
                *place = Waiting {
                    reach,
                    ..waiting.clone()
                };
            }
        }
    }

    /// Shuts a gate: for the session, or for the action it was about.
    fn shut(&mut self, gate: &Gate, hold: &Hold) {
        self.note(gate, GateStatus::Blocked);
        let for_all = lasts(gate) || hold.action().is_none();
        self.session.shut.insert(Shut {
            gate: gate.name.to_string(),
            action: match for_all {
                true => None,
                false => hold.action().map(str::to_owned),
            },
        });
        self.notify(
            NotificationTrigger::CheckpointBlocked,
            Some(gate.atlas),
            || json!({"checkpoint_id": gate.label, "blocked_action": hold.action()}),
        );
        // What it held alone is over, in every hold; what everything waits for goes on
        // being waited for.
        let mut holds = std::mem::take(&mut self.session.holds);
        for other in &mut holds {
            let over = self.session.is_shut(&gate.name, other.action())
                && find(other, gate).is_some_and(|it| !it.passed && it.reach == Reach::Cause);
            if over {
                let stays = |it: &Waiting| it.reach == Reach::Session && !it.passed;
                other.gates.retain(stays);
            }
        }
        holds.retain(|other| !other.gates.is_empty());
        self.session.holds = holds;
    }

    /// Removes holds that have been cleared, unless what is behind them is still to come.
    fn forget_cleared(&mut self) {
        let over = |hold: &Hold| {
            hold.is_cleared() && !matches!(hold.cause, Cause::Request { .. } | Cause::End {})
        };
        self.session.holds.retain(|hold| !over(hold));
    }
}

/// The place of a gate in a hold.
fn find<'h>(hold: &'h Hold, gate: &Gate) -> Option<&'h Waiting> {
    hold.gates
        .iter()
        .find(|waiting| *waiting.gate == *gate.name)
}
