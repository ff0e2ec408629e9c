//! Random events, played to the engine and to the naive evaluator side by side.
//!
//! Events are kept as moves: what they mean depends on how things stand when
//! they are played, so that any of them can be left out.

use std::collections::HashMap;

use safepoint_gates::{
    AtlasManifest, Engine, Event, Judgement, Loaded, Outcome as Ending, Refusal, Request, RiskTier,
    Session, Simulation,
};
use safepoint_model::{ActionId, Digest, HoldId, Timestamp};
use serde_json::{Map, Value, json};

use crate::generate::{ACTIONS, CAPABILITIES, Dice, GATES, TEXTS};
use crate::naive::{Naive, Outcome};

/// One event, before it is known how things stand.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    Wait(u64),
    Input(&'static str),
    Request(&'static str, Value, Option<RiskTier>),
    Access(String),
    Ask(Option<String>),
    /// Answers whatever waits, or else this gate; the number decides how.
    Answer(u64, String),
    Report(u64, Ending),
    End {
        abandon: bool,
    },
    /// The session is written to JSON and read back.
    Restart,
}

pub(crate) fn moves(dice: &mut Dice) -> Vec<Move> {
    (0..4 + dice.below(28)).map(|_| one_move(dice)).collect()
}

fn one_move(dice: &mut Dice) -> Move {
    let name = |dice: &mut Dice, from: &[&str]| match dice.below(8) {
        0 => format!("one/{}", dice.pick(from)),
        1 => format!("two/{}", dice.pick(from)),
        _ => (*dice.pick(from)).to_owned(),
    };
    match dice.below(32) {
        0 | 1 => Move::Wait(*dice.pick(&[1, 9, 10, 60, 200])),
        2..=4 => {
            let text: &&'static str = dice.pick(TEXTS);
            Move::Input(text)
        }
        5..=13 => {
            let action = if dice.once_in(15) {
                "z.z"
            } else {
                dice.pick(ACTIONS)
            };
            let parameters = [json!({"n": 1}), json!({"n": 1}), json!({"n": 2}), json!({})];
            let parameters = dice.pick(&parameters).clone();
            let tiers = [
                RiskTier::Low,
                RiskTier::Medium,
                RiskTier::High,
                RiskTier::Critical,
            ];
            let risk = dice.once_in(4).then(|| *dice.pick(&tiers));
            Move::Request(action, parameters, risk)
        }
        14 | 15 => Move::Access(name(dice, CAPABILITIES)),
        16 => Move::Ask(None),
        17 => Move::Ask(Some(name(dice, GATES))),
        18..=26 => Move::Answer(dice.next(), name(dice, GATES)),
        27 | 28 => {
            let ending = if dice.once_in(2) {
                Ending::Ok
            } else {
                Ending::Error
            };
            Move::Report(dice.next(), ending)
        }
        29 => Move::End {
            abandon: dice.once_in(3),
        },
        _ => Move::Restart,
    }
}

pub(crate) fn engine(atlases: &[AtlasManifest]) -> Engine {
    let loaded = atlases.iter().map(|manifest| Loaded {
        manifest: manifest.clone(),
        digest: Digest::from_bytes([0; 32]),
        modules: Default::default(),
    });
    Engine::new(loaded.collect()).expect("a generated atlas can be used")
}

/// A game of both.
pub(crate) struct Game<'e> {
    pub(crate) simulation: Simulation<'e>,
    pub(crate) naive: Naive,
    holds: HashMap<usize, HoldId>,
    requests: Vec<(ActionId, usize, String)>,
}

impl<'e> Game<'e> {
    pub(crate) fn new(engine: &'e Engine, atlases: &[AtlasManifest]) -> Self {
        let began = Timestamp::from_micros(0);
        Self {
            simulation: Simulation::new(engine, "user:test", None, began).expect("it begins"),
            naive: Naive::new(atlases.to_vec()),
            holds: HashMap::new(),
            requests: Vec::new(),
        }
    }

    /// Plays one event. What the engine makes of it, and what the naive evaluator does.
    pub(crate) fn play(&mut self, event: &Event, hold: Option<usize>) -> (Outcome, Outcome) {
        let naive = self.naive.step(event, hold);
        let judged = self.simulation.step(event);
        if let Ok(judgement) = &judged {
            let newest = self.naive.holds.last().map(|hold| hold.number);
            if let (Some(number), Some(hold)) = (newest, judgement.session.holds.last()) {
                self.holds
                    .entry(number)
                    .or_insert_with(|| hold.hold_id.clone());
            }
            if let (Event::Request(request), Some(id), Some(number)) =
                (event, &judgement.request_id, self.naive.request_number)
            {
                self.requests
                    .push((id.clone(), number, request.action.clone()));
            }
        }
        (seen(&judged), naive)
    }

    /// What a move means now.
    pub(crate) fn event(&mut self, one: &Move) -> Option<(Event, Option<usize>)> {
        let event = match one {
            Move::Wait(seconds) => {
                self.naive.now += seconds;
                let micros = i64::try_from(self.naive.now * 1_000_000).expect("not that late");
                self.simulation.now = Timestamp::from_micros(micros);
                return None;
            }
            Move::Restart => {
                let text = serde_json::to_string(&self.simulation.session).expect("it is written");
                let read: Session = serde_json::from_str(&text).expect("it is read");
                assert_eq!(read, self.simulation.session);
                self.simulation.session = read;
                return None;
            }
            Move::Input(text) => Event::Input {
                text: (*text).to_owned(),
            },
            Move::Request(action, parameters, risk) => Event::Request(Request {
                action: (*action).to_owned(),
                parameters: parameters.clone(),
                risk: *risk,
                conditions: std::collections::BTreeSet::new(),
            }),
            Move::Access(capability) => Event::Access {
                capability: capability.clone(),
            },
            Move::Ask(gate) => Event::Ask {
                topic: None,
                gate: gate.clone(),
            },
            Move::Answer(seed, gate) => return Some(self.answer(&mut Dice::new(*seed), gate)),
            Move::Report(seed, outcome) => {
                if self.requests.is_empty() {
                    return None;
                }
                let at = Dice::new(*seed).below(self.requests.len() as u64) as usize;
                let (request_id, number, action) = self.requests[at].clone();
                self.naive.reported = Some(number);
                Event::Report {
                    request_id,
                    action,
                    outcome: *outcome,
                    result: None,
                }
            }
            Move::End { abandon } => Event::End { abandon: *abandon },
        };
        Some((event, None))
    }

    fn answer(&self, dice: &mut Dice, gate: &str) -> (Event, Option<usize>) {
        let waiting: Vec<(usize, usize)> = self
            .naive
            .holds
            .iter()
            .flat_map(|hold| hold.waits.iter().map(|wait| (wait.gate, hold.number)))
            .collect();
        let mut name = gate.to_owned();
        let mut hold = None;
        let mut answers = Map::new();
        if waiting.is_empty() || dice.once_in(12) {
            answers.insert("q0".into(), json!(true));
        } else {
            let (gate, number) = *dice.pick(&waiting);
            let gate = &self.naive.gates[gate];
            name.clone_from(&gate.shown);
            hold = dice.once_in(2).then_some(number);
            if dice.once_in(20) {
                hold = Some(dice.pick(&waiting).1);
            }
            // Some are careful, some are not.
            let careless = *dice.pick(&[2, 4, 50, 50]);
            for question in &gate.def.questions {
                let kind = question.response_type.name();
                if let Some(answer) = one_answer(dice, kind, careless) {
                    answers.insert(question.question_id.clone(), answer);
                }
            }
            if dice.once_in(12) {
                let odd = if dice.once_in(2) {
                    json!("?")
                } else {
                    Value::Null
                };
                answers.insert("q9".into(), odd);
            }
        }
        let hold_id = hold.and_then(|number| self.holds.get(&number).cloned());
        let hold = hold.filter(|_| hold_id.is_some());
        (
            Event::Answer {
                gate: name,
                hold: hold_id,
                answers,
            },
            hold,
        )
    }
}

fn one_answer(dice: &mut Dice, kind: &str, careless: u64) -> Option<Value> {
    if dice.once_in(careless) {
        let odd = [
            None,
            Some(Value::Null),
            Some(json!("")),
            Some(json!("no")),
            Some(json!(false)),
            Some(json!("not understood")),
            Some(json!([1])),
            Some(json!(100)),
        ];
        return dice.pick(&odd).clone();
    }
    let good = match kind {
        "boolean" => vec![
            json!(true),
            json!("yes"),
            json!("Yes."),
            json!("no"),
            json!(true),
        ],
        "acknowledgment" => vec![json!("understood"), json!("I acknowledge it"), json!(true)],
        "choice" => vec![json!("red"), json!("green"), json!("Green")],
        "number" => vec![json!(2), json!(7), json!("5"), json!(3.5)],
        _ => vec![
            json!("because of this"),
            json!("BECAUSE"),
            json!("Because I say so"),
        ],
    };
    Some(dice.pick(&good).clone())
}

const COMPARED: &[&str] = &[
    "CheckpointTriggered",
    "CheckpointResponse",
    "CheckpointPassed",
    "CheckpointBlocked",
    "ActionAllowed",
    "ActionDenied",
    "ActionHeld",
    "ApprovalRequired",
];

/// What came out of the engine, as far as it is compared.
fn seen(judged: &Result<Judgement, Refusal>) -> Outcome {
    let mut out = Outcome::new();
    let judgement = match judged {
        Ok(judgement) => judgement,
        Err(refusal) => {
            out.refused = Some(match refusal {
                Refusal::Ended => "ended",
                Refusal::UnknownGate(_) => "unknown gate",
                Refusal::UnknownCapability(_) => "unknown capability",
                Refusal::Ambiguous { .. } => "ambiguous",
                Refusal::NotWaiting(_) => "not waiting",
                Refusal::SeveralHolds { .. } => "several holds",
                Refusal::NotRaisedByAsking(_) => "not raised by asking",
            });
            return out;
        }
    };
    let shown = &judgement.resolution;
    out.decision = Some(shown.decision);
    out.hold = shown.hold_id.is_some();
    let gates = shown.checkpoints.iter();
    out.checkpoints = gates
        .map(|it| (it.checkpoint_id.clone(), it.status))
        .collect();
    let questions = shown.questions.iter();
    out.questions = questions
        .map(|it| (it.checkpoint_id.clone(), it.question_id.clone()))
        .collect();
    out.contexts = shown
        .contexts
        .iter()
        .map(|it| it.context_id.clone())
        .collect();
    out.guidance = shown
        .guidance
        .iter()
        .map(|it| it.checkpoint_id.clone())
        .collect();
    out.unlocked = sorted(shown.capabilities.unlocked.iter().cloned());
    out.locked = sorted(shown.capabilities.locked.iter().cloned());
    out.allowed = sorted(
        shown
            .allowed_actions
            .iter()
            .map(|it| it.action_id.to_string()),
    );
    out.denied = sorted(
        shown
            .denied_actions
            .iter()
            .map(|it| it.action_id.to_string()),
    );
    let dropped = shown.dropped.iter();
    out.dropped = dropped
        .map(|it| (it.checkpoint_id.clone(), it.context_id.clone()))
        .collect();
    out.validation = judgement.validation.as_ref().map(|it| {
        let failures = it.failures.iter();
        let failures = failures.map(|it| (it.question_id.clone(), it.rule.to_owned()));
        let mut failures: Vec<_> = failures.collect();
        failures.sort();
        (it.is_valid, failures)
    });
    let kinds = judgement.records.iter().map(|record| record.kind);
    out.records = kinds.filter(|kind| COMPARED.contains(kind)).collect();
    out.ended = judgement.session.ended.is_some();
    out
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}
