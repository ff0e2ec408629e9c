//! The examples in an atlas, tried out.

use safepoint_model::{ActionId, Span, Timestamp};
use serde_json::{Value, json};

use crate::atlas::{Case, Expectation, Step};
use crate::engine::Engine;
use crate::event::{Event, Outcome, Request};
use crate::resolution::Judgement;
use crate::simulate::Simulation;

/// Something that came out otherwise than an example says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Which step, from 0.
    pub step: usize,
    /// What of it.
    pub what: &'static str,
    /// What must come out.
    pub expected: String,
    /// What came out.
    pub found: String,
}

/// What came of one step, in the words of expectations.
struct Found {
    decision: String,
    reason: String,
    valid: bool,
    judgement: Option<Judgement>,
}

impl Engine {
    /// Tries out one example. Nothing comes back when everything is as it says.
    pub fn try_case(&self, case: &Case) -> Vec<Mismatch> {
        let mut mismatches = Vec::new();
        let began = Timestamp::from_micros(0);
        let Ok(mut simulation) = Simulation::new(self, "user:test", None, began) else {
            return mismatches;
        };
        let mut last = simulation.step(&Event::Start).map(Some).unwrap_or(None);
        let mut request: Option<(ActionId, String)> = None;
        for (number, step) in case.steps.iter().enumerate() {
            if let Some(span) = step
                .wait
                .as_deref()
                .and_then(|text| text.parse::<Span>().ok())
            {
                simulation.now = span.after(simulation.now).unwrap_or(simulation.now);
            }
            let found = match event(step, request.as_ref()) {
                None => Found::of(last.clone()),
                Some(event) => match simulation.step(&event) {
                    Ok(judgement) => {
                        if let (Some(id), Some(action)) = (&judgement.request_id, &step.request) {
                            request = Some((id.clone(), action.clone()));
                        }
                        last = Some(judgement);
                        Found::of(last.clone())
                    }
                    Err(refusal) => Found {
                        decision: "deny".to_owned(),
                        reason: refusal.to_string(),
                        valid: false,
                        judgement: None,
                    },
                },
            };
            if let Some(expected) = &step.expect {
                compare(number, expected, &found, &mut mismatches);
            }
        }
        mismatches
    }
}

/// The event that a step stands for; `None` when nothing happens.
fn event(step: &Step, last: Option<&(ActionId, String)>) -> Option<Event> {
    if let Some(text) = &step.input {
        return Some(Event::Input { text: text.clone() });
    }
    if let Some(action) = &step.request {
        return Some(Event::Request(Request {
            action: action.clone(),
            parameters: step.params.clone().unwrap_or_else(|| json!({})),
            risk: step.risk,
            conditions: step.known.iter().copied().collect(),
        }));
    }
    if let Some(capability) = &step.access {
        return Some(Event::Access {
            capability: capability.clone(),
        });
    }
    if let Some(topic) = &step.ask {
        return Some(Event::Ask {
            topic: Some(topic.clone()),
            gate: None,
        });
    }
    if let Some(gate) = &step.raise {
        return Some(Event::Ask {
            topic: None,
            gate: Some(gate.clone()),
        });
    }
    if let Some(gate) = &step.answer {
        return Some(Event::Answer {
            gate: gate.clone(),
            hold: None,
            answers: step.answers.clone().unwrap_or_default(),
        });
    }
    if let (Some(outcome), Some((request_id, action))) = (&step.report, last) {
        return Some(Event::Report {
            request_id: request_id.clone(),
            action: action.clone(),
            outcome: match outcome.as_str() {
                "ok" => Outcome::Ok,
                _ => Outcome::Error,
            },
            result: None::<Value>,
        });
    }
    step.end.then_some(Event::End { abandon: false })
}

impl Found {
    fn of(judgement: Option<Judgement>) -> Self {
        let resolution = judgement.as_ref().map(|it| &it.resolution);
        Self {
            decision: resolution.map_or("", |it| it.decision.as_str()).to_owned(),
            reason: resolution.map_or("", |it| it.reason.as_str()).to_owned(),
            valid: judgement
                .as_ref()
                .and_then(|it| it.validation.as_ref())
                .is_none_or(|validation| validation.is_valid),
            judgement,
        }
    }
}

fn compare(step: usize, expected: &Expectation, found: &Found, mismatches: &mut Vec<Mismatch>) {
    let mut differ = |what, expected: String, found: String| {
        mismatches.push(Mismatch {
            step,
            what,
            expected,
            found,
        });
    };
    if let Some(decision) = &expected.decision
        && *decision != found.decision
    {
        differ(
            "decision",
            decision.clone(),
            format!("{} ({})", found.decision, found.reason),
        );
    }
    if let Some(reason) = &expected.reason
        && !found.reason.contains(reason.as_str())
    {
        differ("reason", reason.clone(), found.reason.clone());
    }
    if let Some(valid) = expected.valid
        && valid != found.valid
    {
        differ("valid", valid.to_string(), found.valid.to_string());
    }
    let resolution = found.judgement.as_ref().map(|it| &it.resolution);
    let lists = [
        (
            "checkpoints",
            &expected.checkpoints,
            resolution.map(|it| ids(&it.checkpoints, |note| &note.checkpoint_id)),
        ),
        (
            "questions",
            &expected.questions,
            resolution.map(|it| ids(&it.questions, |note| &note.question_id)),
        ),
        (
            "contexts",
            &expected.contexts,
            resolution.map(|it| ids(&it.contexts, |note| &note.context_id)),
        ),
    ];
    for (what, expected, found) in lists {
        let found = found.unwrap_or_default();
        if let Some(expected) = expected
            && *expected != found
        {
            differ(what, expected.join(", "), found.join(", "));
        }
    }
    let capabilities = resolution
        .map(|it| it.capabilities.clone())
        .unwrap_or_default();
    let sides = [
        ("unlocked", &expected.unlocked, capabilities.unlocked),
        ("locked", &expected.locked, capabilities.locked),
    ];
    for (what, expected, found) in sides {
        for id in expected.iter().filter(|id| !found.contains(id)) {
            differ(what, id.clone(), found.join(", "));
        }
    }
}

fn ids<T>(notes: &[T], id: impl Fn(&T) -> &String) -> Vec<String> {
    notes.iter().map(|note| id(note).clone()).collect()
}
