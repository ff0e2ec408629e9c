//! A story: an atlas, a session under it, and what happens.

use safepoint_gates::{
    Decision, Engine, Event, Judgement, Loaded, Outcome, Refusal, Request, Resolution, RiskTier,
    Simulation, Validation, load,
};
use safepoint_model::{ActionId, Digest, HoldId, Timestamp};
use serde_json::{Value, json};

/// The engine of these atlases, each written without its head.
pub(crate) fn engine(atlases: &[&str]) -> Engine {
    let loaded = atlases
        .iter()
        .enumerate()
        .map(|(number, body)| {
            let text = format!(
                "atlas_version: \"1.0\"\natlas_id: \"atlas-{number}\"\nversion: \"1.0.0\"\nname: \"Story\"\n{body}"
            );
            let manifest = load::read(&text).unwrap_or_else(|problems| {
                let shown: Vec<String> = problems
                    .iter()
                    .map(|problem| problem.render("atlas.yaml", &text))
                    .collect();
                panic!("{}", shown.join("\n"))
            });
            Loaded {
                manifest,
                digest: Digest::of_parts(&[text.as_bytes()]),
                modules: std::collections::BTreeMap::new(),
            }
        })
        .collect();
    Engine::new(loaded).unwrap()
}

/// A session, and its last step.
pub(crate) struct Story<'e> {
    pub(crate) simulation: Simulation<'e>,
    last: Option<(ActionId, String)>,
}

impl<'e> Story<'e> {
    pub(crate) fn begin(engine: &'e Engine) -> (Self, Resolution) {
        let began = Timestamp::from_micros(1_000_000);
        let mut simulation = Simulation::new(engine, "user:ada", None, began).unwrap();
        let start = simulation.step(&Event::Start).unwrap();
        let story = Self {
            simulation,
            last: None,
        };
        (story, start.resolution)
    }

    pub(crate) fn of(engine: &'e Engine) -> Self {
        Self::begin(engine).0
    }

    pub(crate) fn request(&mut self, action: &str) -> Resolution {
        self.request_with(action, json!({}), None)
    }

    pub(crate) fn request_with(
        &mut self,
        action: &str,
        parameters: Value,
        risk: Option<RiskTier>,
    ) -> Resolution {
        let event = Event::Request(Request {
            action: action.to_owned(),
            parameters,
            risk,
            conditions: std::collections::BTreeSet::new(),
        });
        let judgement = self.simulation.step(&event).unwrap();
        let id = judgement.request_id.unwrap();
        self.last = Some((id, action.to_owned()));
        judgement.resolution
    }

    pub(crate) fn decision(&mut self, action: &str) -> Decision {
        self.request(action).decision
    }

    pub(crate) fn input(&mut self, text: &str) -> Resolution {
        self.step(&Event::Input {
            text: text.to_owned(),
        })
        .resolution
    }

    pub(crate) fn answer(&mut self, gate: &str, answers: Value) -> (Validation, Resolution) {
        let judgement = self.try_answer(gate, None, answers).unwrap();
        (judgement.validation.unwrap(), judgement.resolution)
    }

    pub(crate) fn try_answer(
        &mut self,
        gate: &str,
        hold: Option<HoldId>,
        answers: Value,
    ) -> Result<Judgement, Refusal> {
        self.simulation.step(&Event::Answer {
            gate: gate.to_owned(),
            hold,
            answers: answers.as_object().unwrap().clone(),
        })
    }

    pub(crate) fn report(&mut self, outcome: Outcome) -> Resolution {
        let (request_id, action) = self.last.clone().unwrap();
        self.step(&Event::Report {
            request_id,
            action,
            outcome,
            result: None,
        })
        .resolution
    }

    pub(crate) fn ask(&mut self, gate: Option<&str>) -> Resolution {
        self.step(&Event::Ask {
            topic: None,
            gate: gate.map(str::to_owned),
        })
        .resolution
    }

    pub(crate) fn access(&mut self, capability: &str) -> Resolution {
        self.step(&Event::Access {
            capability: capability.to_owned(),
        })
        .resolution
    }

    pub(crate) fn end(&mut self) -> Resolution {
        self.step(&Event::End { abandon: false }).resolution
    }

    pub(crate) fn wait(&mut self, seconds: i64) {
        let later = self
            .simulation
            .now
            .saturating_add_micros(seconds * 1_000_000);
        self.simulation.now = later;
    }

    pub(crate) fn step(&mut self, event: &Event) -> Judgement {
        self.simulation.step(event).unwrap()
    }
}

pub(crate) fn gates(resolution: &Resolution) -> Vec<&str> {
    let notes = resolution.checkpoints.iter();
    notes.map(|note| note.checkpoint_id.as_str()).collect()
}

pub(crate) fn contexts(resolution: &Resolution) -> Vec<&str> {
    let notes = resolution.contexts.iter();
    notes.map(|note| note.context_id.as_str()).collect()
}

pub(crate) fn guidance(resolution: &Resolution) -> Vec<&str> {
    let notes = resolution.guidance.iter();
    notes.map(|note| note.content.as_str()).collect()
}

pub(crate) fn questions(resolution: &Resolution) -> Vec<&str> {
    let notes = resolution.questions.iter();
    notes.map(|note| note.question_id.as_str()).collect()
}

pub(crate) fn rules(validation: &Validation) -> Vec<&str> {
    validation.failures.iter().map(|it| it.rule).collect()
}

/// A blocking gate with one yes-or-no question `ok`.
pub(crate) fn asking(id: &str, trigger: &str, more: &str) -> String {
    format!(
        "  - checkpoint_id: {id}\n    trigger: {trigger}\n    mode: blocking\n    questions:\n      - {{question_id: ok, question: \"Sure?\", response_type: boolean}}\n{more}"
    )
}
