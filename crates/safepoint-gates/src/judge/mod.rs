//! Judging: one event, one session, one answer.
//!
//! [`Engine::judge`] is the whole of it, read from top to bottom. The rest of
//! this module is its verbs: which gates an event raises (`raise`), what an
//! answer does (`answer`), what passing a gate brings (`effects`), what becomes
//! of a request (`request`), and what the agent is shown (`show`).

mod answer;
mod custom;
mod effects;
mod policy;
mod raise;
mod request;
mod rights;
mod show;

use std::collections::HashMap;
use std::sync::Arc;

use safepoint_model::{ActionId, HoldId};
use serde_json::{Value, json};

use crate::atlas::NotificationTrigger;
use crate::engine::{Engine, Gate};
use crate::event::{Callback, Event, Facts, Outcome};
use crate::resolution::{
    ContextNote, Decision, Dropped, GateNote, GateStatus, Judgement, Notice, PolicyNote, Record,
    Validation,
};
use crate::session::{Cause, Hold, Reach, Session, Waiting};
use raise::lasts;

/// What came of judging.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// It is decided.
    Judged(Box<Judgement>),
    /// Stewards' services must be asked first: with their answers among the facts, judge again.
    Ask(Vec<Callback>),
}

/// An event that cannot be taken. Nothing has changed; the record tells of it.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum Refusal {
    /// The session is over.
    #[error("the session has ended")]
    Ended,
    /// There is no such gate.
    #[error("no atlas of this session has a checkpoint `{0}`")]
    UnknownGate(String),
    /// There is no such capability.
    #[error("no atlas of this session has a capability `{0}`")]
    UnknownCapability(String),
    /// More than one atlas has it.
    #[error("`{id}` can be {}", among.join(", "))]
    Ambiguous {
        /// What was said.
        id: String,
        /// What it can be.
        among: Vec<String>,
    },
    /// The gate waits for nothing.
    #[error("checkpoint `{0}` is not waiting for answers")]
    NotWaiting(String),
    /// The gate waits in several holds.
    #[error("checkpoint `{gate}` waits in several holds: {}", among.join(", "))]
    SeveralHolds {
        /// The gate.
        gate: String,
        /// The holds, with what raised them.
        among: Vec<String>,
    },
    /// The gate cannot be raised by asking.
    #[error("checkpoint `{0}` is not raised by asking for it")]
    NotRaisedByAsking(String),
}

/// One step: the session as it changes, and what comes out.
struct Step<'a> {
    engine: &'a Engine,
    facts: &'a Facts,
    session: Session,
    records: Vec<Record>,
    notices: Vec<Notice>,
    /// The gates of this step, with their numbers.
    gates: Vec<(u32, GateNote)>,
    contexts: Vec<ContextNote>,
    /// Bytes of context given in this step, by atlas.
    context_bytes: HashMap<usize, u64>,
    policies: Vec<PolicyNote>,
    dropped: Vec<Dropped>,
    warnings: Vec<String>,
    wanted: Vec<Callback>,
    uses: Vec<String>,
    sync: bool,
    /// Whether every hold is shown, or only those of this step.
    shows_all: bool,
}

/// What was decided, why, and what it waits for.
struct Decided {
    decision: Decision,
    reason: String,
    hold: Option<HoldId>,
    request_id: Option<ActionId>,
    validation: Option<Validation>,
}

impl Decided {
    fn new(decision: Decision, reason: impl Into<String>) -> Self {
        Self {
            decision,
            reason: reason.into(),
            hold: None,
            request_id: None,
            validation: None,
        }
    }
}

impl Engine {
    /// Judges one event of one session.
    pub fn judge(
        &self,
        session: &Session,
        event: &Event,
        facts: &Facts,
    ) -> Result<Verdict, Refusal> {
        if session.ended.is_some() {
            return Err(Refusal::Ended);
        }
        let mut step = Step::new(self, session, facts);
        step.session.latest = session.latest.max(facts.now);
        let decided = match event {
            Event::Start => step.start(),
            Event::Input { text } => step.input(text),
            Event::Request(request) => step.request(request),
            Event::Access { capability } => step.access(capability)?,
            Event::Ask { topic, gate } => step.ask(topic.as_deref(), gate.as_deref())?,
            Event::Answer {
                gate,
                hold,
                answers,
            } => step.answer(gate, hold.as_ref(), answers)?,
            Event::Report {
                request_id,
                action,
                outcome,
                result,
            } => step.report(request_id, action, *outcome, result.as_ref()),
            Event::End { abandon } => step.end(*abandon),
        };
        if !step.wanted.is_empty() {
            return Ok(Verdict::Ask(step.wanted));
        }
        Ok(Verdict::Judged(Box::new(step.judgement(decided))))
    }

    /// How a session stands, without anything happening to it.
    pub fn show(&self, session: &Session, facts: &Facts) -> crate::resolution::Resolution {
        let mut step = Step::new(self, session, facts);
        step.shows_all = true;
        let decided = match session.ended {
            Some(_) => Decided::new(Decision::Deny, "the session has ended"),
            None => step.standing("the session is open"),
        };
        step.judgement(decided).resolution
    }
}

impl<'a> Step<'a> {
    fn new(engine: &'a Engine, session: &Session, facts: &'a Facts) -> Self {
        Self {
            engine,
            facts,
            session: session.clone(),
            records: Vec::new(),
            notices: Vec::new(),
            gates: Vec::new(),
            contexts: Vec::new(),
            context_bytes: HashMap::new(),
            policies: Vec::new(),
            dropped: Vec::new(),
            warnings: Vec::new(),
            wanted: Vec::new(),
            uses: Vec::new(),
            sync: false,
            shows_all: false,
        }
    }

    fn start(&mut self) -> Decided {
        let body = json!({
            "goal": self.session.goal,
            "principal": self.session.principal,
            "atlases": self.session.atlases,
        });
        self.record("SessionStarted", body);
        self.notify(NotificationTrigger::SessionStarted, None, || json!({}));
        self.give_by_themselves(self.engine.moments.context_start.clone());
        let mut gates = self.engine.moments.start.clone();
        gates.extend(self.custom("session_start", None, None));
        let raised = self.raise(gates, Cause::Start {}, Reach::Session, json!({}));
        self.after(raised, "the session is open")
    }

    fn input(&mut self, text: &str) -> Decided {
        self.record("InputReceived", json!({"text": text}));
        let moments = &self.engine.moments;
        let mut rules = Vec::new();
        moments.context_words.matching(text, &mut rules);
        let contexts = rules.iter();
        let contexts = contexts.filter_map(|rule| moments.word_contexts.get(*rule as usize));
        self.give_by_themselves(contexts.copied().collect());
        rules.clear();
        moments.words.matching(text, &mut rules);
        let mut gates: Vec<u32> = rules
            .iter()
            .filter_map(|rule| moments.word_gates.get(*rule as usize).copied())
            .collect();
        gates.extend(self.due_times());
        gates.extend(self.custom("input", Some(text), None));
        let raised = self.raise(gates, Cause::Input {}, Reach::Session, json!({}));
        self.after(raised, "nothing in the input is held")
    }

    fn access(&mut self, id: &str) -> Result<Decided, Refusal> {
        let number = match self.engine.capabilities_called(id).as_slice() {
            [] => return Err(Refusal::UnknownCapability(id.to_owned())),
            [number] => *number,
            several => {
                let names = several.iter().filter_map(|number| {
                    let capability = self.engine.capabilities.get(*number as usize)?;
                    Some(capability.name.to_string())
                });
                return Err(Refusal::Ambiguous {
                    id: id.to_owned(),
                    among: names.collect(),
                });
            }
        };
        let Some(capability) = self.engine.capabilities.get(number as usize) else {
            return Err(Refusal::UnknownCapability(id.to_owned()));
        };
        self.record(
            "CapabilityRequested",
            json!({"capability_id": capability.label}),
        );
        let gates = self.capability_gates(&[number]);
        let cause = Cause::Access {
            capability: capability.name.to_string(),
        };
        let data = json!({"capability_id": capability.label});
        let raised = self.raise(gates, cause, Reach::Cause, data);
        let open = format!("capability `{}` is unlocked", capability.label);
        let decided = self.after(raised, &open);
        if decided.decision == Decision::Allow && !self.is_open(capability) {
            return Ok(Decided::new(
                Decision::Deny,
                self.why_locked(capability).to_string(),
            ));
        }
        Ok(decided)
    }

    fn ask(&mut self, topic: Option<&str>, gate: Option<&str>) -> Result<Decided, Refusal> {
        let mut gates = match gate {
            None => self.engine.moments.explicit.clone(),
            Some(id) => vec![self.askable(id)?],
        };
        gates.retain(|number| !self.is_passed(*number));
        self.record(
            "HelpRequested",
            json!({"topic": topic, "checkpoint_id": gate}),
        );
        let raised = self.raise(gates, Cause::Ask {}, Reach::Cause, json!({"topic": topic}));
        Ok(self.after(raised, "nothing is held"))
    }

    fn report(
        &mut self,
        request_id: &ActionId,
        action: &str,
        outcome: Outcome,
        result: Option<&Value>,
    ) -> Decided {
        let outcome_name = match outcome {
            Outcome::Ok => "ok",
            Outcome::Error => "error",
        };
        self.record(
            "ActionReported",
            json!({"request_id": request_id, "action_id": action, "outcome": outcome_name, "result": result}),
        );
        // What was asked before it is done with: the next such action is asked again.
        // What still waits for answers goes on waiting: saying that it is done does not help.
        self.session.holds.retain(|hold| match &hold.cause {
            Cause::Request {
                request_id: held, ..
            } => held != request_id || !hold.is_cleared(),
            _ => true,
        });
        let mut gates = Vec::new();
        self.engine.moments.after.matching(action, &mut gates);
        if outcome == Outcome::Error {
            gates.extend(&self.engine.moments.error);
            self.notify(
                NotificationTrigger::ErrorOccurred,
                None,
                || json!({"request_id": request_id, "action_id": action}),
            );
        }
        let cause = Cause::Report {
            request_id: request_id.clone(),
            action: action.to_owned(),
        };
        let data = json!({"action_id": action, "outcome": outcome_name});
        let raised = self.raise(gates, cause, Reach::Session, data);
        let mut decided = self.after(raised, "the outcome is recorded");
        decided.request_id = Some(request_id.clone());
        decided
    }

    fn end(&mut self, abandon: bool) -> Decided {
        let held = self
            .session
            .holds
            .iter()
            .position(|hold| matches!(hold.cause, Cause::End {}));
        let answered = match held.and_then(|place| self.session.holds.get(place)) {
            Some(hold) => hold.is_cleared(),
            None => {
                let gates = self.engine.moments.end.clone();
                let raised = self.raise(gates, Cause::End {}, Reach::Cause, json!({}));
                raised.is_none() && self.blocked_now().is_none()
            }
        };
        if !answered && !abandon {
            let hold = self
                .session
                .holds
                .iter()
                .find(|hold| matches!(hold.cause, Cause::End {}))
                .map(|hold| hold.hold_id.clone());
            return self.after(hold, "");
        }
        self.close();
        Decided::new(Decision::Allow, "the session has ended")
    }

    /// Ends the session. What still waits is denied.
    fn close(&mut self) {
        let holds = std::mem::take(&mut self.session.holds);
        let mut denied = Vec::new();
        for hold in &holds {
            for waiting in hold.gates.iter().filter(|waiting| !waiting.passed) {
                let label = self.label(&waiting.gate);
                let body = json!({
                    "checkpoint_id": label,
                    "reason": "the session ended before it was answered",
                    "blocked_action": hold.action(),
                    "hold_id": hold.hold_id,
                });
                self.record("CheckpointBlocked", body);
                denied.push(hold.hold_id.clone());
            }
        }
        denied.dedup();
        self.session.ended = Some(self.facts.now);
        self.session.guidance.clear();
        self.record(
            "SessionEnded",
            json!({"denied_holds": denied, "actions": self.session.actions}),
        );
        self.notify(NotificationTrigger::SessionEnded, None, || json!({}));
    }

    /// What is decided once gates have been raised: the hold, if there is one, or how things stand.
    fn after(&mut self, hold: Option<HoldId>, otherwise: &str) -> Decided {
        let own = hold.and_then(|id| self.hold(&id));
        if let Some(hold) = own
            .or_else(|| self.pending_now())
            .filter(|it| !it.is_cleared())
        {
            return self.held_by(hold);
        }
        if let Some(gate) = self.blocked_now() {
            return Decided::new(Decision::Deny, format!("checkpoint `{gate}` is shut"));
        }
        self.standing(otherwise)
    }

    /// How the session stands: whether something holds everything.
    fn standing(&mut self, otherwise: &str) -> Decided {
        let holds = || {
            self.session.holds.iter().filter(|hold| {
                hold.gates
                    .iter()
                    .any(|waiting| waiting.reach == Reach::Session && !waiting.passed)
            })
        };
        // The strictest first.
        let shut = holds().find(|hold| self.held_by(hold).decision == Decision::Deny);
        match shut.or_else(|| holds().next()).cloned() {
            None => Decided::new(Decision::Allow, otherwise),
            Some(hold) => self.held_by(&hold),
        }
    }

    /// The hold in which a gate of this step has been waiting since an earlier one.
    fn pending_now(&self) -> Option<&Hold> {
        let pending = |gate: &Gate| {
            let noted = self.gates.iter().find(|(number, _)| *number == gate.number);
            noted.is_some_and(|(_, note)| note.status == GateStatus::Pending)
        };
        let waits = |hold: &Hold, waiting: &Waiting| {
            !waiting.passed
                && !self.session.is_shut(&waiting.gate, hold.action())
                && self.engine.gate(&waiting.gate).is_some_and(|gate| {
                    pending(gate) && (waiting.reach == Reach::Session || lasts(gate))
                })
        };
        let mut holds = self.session.holds.iter();
        holds.find(|hold| hold.gates.iter().any(|waiting| waits(hold, waiting)))
    }

    /// The decision that a hold stands for.
    fn held_by(&self, hold: &Hold) -> Decided {
        let open: Vec<&Waiting> = hold.gates.iter().filter(|it| !it.passed).collect();
        let shut = open
            .iter()
            .find(|waiting| self.session.is_shut(&waiting.gate, hold.action()));
        if let Some(waiting) = shut {
            let gate = self.label(&waiting.gate);
            return Decided::new(Decision::Deny, format!("checkpoint `{gate}` is shut"));
        }
        let gates: Vec<String> = open
            .iter()
            .map(|waiting| format!("`{}`", self.label(&waiting.gate)))
            .collect();
        let what = if gates.len() == 1 {
            "checkpoint"
        } else {
            "checkpoints"
        };
        let mut decided = Decided::new(
            Decision::Hold,
            format!("{what} {} must be answered first", gates.join(", ")),
        );
        decided.hold = Some(hold.hold_id.clone());
        decided
    }

    fn hold(&self, id: &HoldId) -> Option<&Hold> {
        self.session.holds.iter().find(|hold| hold.hold_id == *id)
    }

    /// A gate's name as people see it.
    fn label(&self, name: &str) -> Arc<str> {
        self.engine
            .gate(name)
            .map_or_else(|| name.into(), |gate| Arc::clone(&gate.label))
    }

    fn record(&mut self, kind: &'static str, body: Value) {
        self.records.push(Record { kind, body });
    }

    /// Tells the stewards who want to know; of one atlas, or of all.
    fn notify(
        &mut self,
        trigger: NotificationTrigger,
        atlas: Option<usize>,
        data: impl Fn() -> Value,
    ) {
        for (number, found) in self.engine.atlases.iter().enumerate() {
            if atlas.is_none_or(|atlas| atlas == number) {
                self.notices
                    .extend(Notice::of(&found.manifest, trigger, &data));
            }
        }
    }
}
