//! What the agent is shown.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::raise::lasts;
use super::rights::Grants;
use super::{Decided, Step};
use crate::atlas::{Condition, GuidanceFormat};
use crate::engine::{Capability, Gate, KnownAction};
use crate::resolution::{
    ActionNote, Capabilities, Decision, GateStatus, GuidanceNote, Judgement, QuestionNote,
    Resolution, Why,
};
use crate::session::{Hold, Reach, Waiting};

/// What can be said of an action that nobody has asked for.
static NOTHING_KNOWN: BTreeSet<Condition> = BTreeSet::new();

/// What the session may do, ready to be asked about every action.
struct Rights<'s> {
    denied: Grants<'s>,
    allowed: Grants<'s>,
    /// Whether each capability is open.
    open: &'s [bool],
}

impl<'a> Step<'a> {
    /// Everything that comes out of the step.
    pub(super) fn judgement(mut self, decided: Decided) -> Judgement {
        let waiting = self.waiting(decided.hold.as_ref());
        for (hold, place) in &waiting {
            self.note_waiting(place, hold.action());
        }
        let mut gates = std::mem::take(&mut self.gates);
        gates.sort_by_key(|(number, note)| (Reverse(note.priority), *number));
        let open = self.open();
        let (allowed_actions, denied_actions) = self.actions(&open);
        let resolution = Resolution {
            decision: decided.decision,
            reason: decided.reason,
            allowed_actions,
            denied_actions,
            checkpoints: gates.into_iter().map(|(_, note)| note).collect(),
            questions: self.questions(&waiting),
            contexts: self.contexts,
            guidance: guidance(self.engine, &self.session.guidance),
            capabilities: capabilities(self.engine, &open),
            policies: self.policies,
            dropped: self.dropped,
            warnings: self.warnings,
            hold_id: decided.hold,
        };
        Judgement {
            session: self.session,
            resolution,
            validation: decided.validation,
            request_id: decided.request_id,
            records: self.records,
            sync: self.sync,
            uses: match decided.decision {
                Decision::Deny => Vec::new(),
                _ => self.uses,
            },
            notices: self.notices,
        }
    }

    /// What waits for answers here: in the hold of this step, for the whole session, or anywhere.
    fn waiting(&self, own: Option<&safepoint_model::HoldId>) -> Vec<(Hold, Waiting)> {
        let mut found: Vec<(Hold, Waiting)> = Vec::new();
        // Of several in which the same gate waits, that of this step is the one to be answered.
        let is_own = |hold: &&Hold| own == Some(&hold.hold_id);
        let holds = self.session.holds.iter();
        let others = self.session.holds.iter().filter(|hold| !is_own(hold));
        for hold in holds.filter(is_own).chain(others) {
            for place in hold.gates.iter().filter(|place| !place.passed) {
                let here =
                    self.shows_all || own == Some(&hold.hold_id) || place.reach == Reach::Session;
                let known = found.iter().any(|(_, other)| other.gate == place.gate);
                if here && !known {
                    found.push((hold.clone(), place.clone()));
                }
            }
        }
        let order = |name: &str| {
            self.engine
                .gate(name)
                .map(|gate| (Reverse(gate.priority), gate.number))
        };
        found.sort_by_key(|(_, place)| order(&place.gate));
        found
    }

    /// Notes a gate that waits, or waited.
    pub(super) fn note_waiting(&mut self, place: &Waiting, action: Option<&str>) {
        let engine = self.engine;
        let Some(gate) = engine.gate(&place.gate) else {
            return;
        };
        let status = match place.passed {
            true => GateStatus::Passed,
            false if self.session.is_shut(&gate.name, action) => GateStatus::Blocked,
            false => GateStatus::Pending,
        };
        self.note(gate, status);
    }

    fn questions(&self, waiting: &[(Hold, Waiting)]) -> Vec<QuestionNote> {
        let mut notes = Vec::new();
        for (hold, place) in waiting {
            if self.session.is_shut(&place.gate, hold.action()) {
                continue;
            }
            if let Some(gate) = self.engine.gate(&place.gate) {
                let hold_id = self.is_in_several(gate).then(|| hold.hold_id.clone());
                let questions = questions_of(gate, place);
                notes.extend(questions.map(|note| QuestionNote {
                    hold_id: hold_id.clone(),
                    ..note
                }));
            }
        }
        notes
    }

    /// Whether an answer to a gate must say which hold it is for.
    fn is_in_several(&self, gate: &Gate) -> bool {
        let waits = |hold: &&Hold| {
            let mut places = hold.gates.iter();
            let here = places.any(|place| place.gate == *gate.name && !place.passed);
            here && !self.session.is_shut(&gate.name, hold.action())
        };
        !lasts(gate) && self.session.holds.iter().filter(waits).count() > 1
    }

    /// What the session may and may not ask for.
    fn actions(&self, open: &[bool]) -> (Vec<ActionNote>, Vec<ActionNote>) {
        let rights = Rights {
            denied: Grants::new(self.engine, &self.session.denied),
            allowed: Grants::new(self.engine, &self.session.allowed),
            open,
        };
        let mut allowed = Vec::with_capacity(self.engine.actions.len());
        let mut denied = Vec::new();
        let everything = self.everything_waits();
        for action in &self.engine.actions {
            let why = match &everything {
                Some(why) => Err(why.clone()),
                None => self.may_ask(action, &rights),
            };
            let note = |reason| ActionNote {
                action_id: action.id.clone(),
                reason,
            };
            match why {
                Ok(reason) => allowed.push(note(reason)),
                Err(reason) => denied.push(note(reason)),
            }
        }
        (allowed, denied)
    }

    /// Whether each capability is open.
    fn open(&self) -> Vec<bool> {
        let capabilities = self.engine.capabilities.iter();
        capabilities.map(|it| self.is_open(it)).collect()
    }

    /// Why nothing at all may be asked for.
    fn everything_waits(&self) -> Option<Why> {
        if self.session.ended.is_some() {
            return Some(Why::Ended);
        }
        self.session.holds.iter().find_map(|hold| {
            let place = hold
                .gates
                .iter()
                .find(|place| place.reach == Reach::Session && !place.passed)?;
            let gate = self.engine.gate(&place.gate)?;
            let label = gate.label.clone();
            Some(match self.session.is_shut(&gate.name, hold.action()) {
                true => Why::Shut(label),
                false => Why::Waits(label),
            })
        })
    }

    /// Whether the session may ask for an action, as far as that can be said without its parameters.
    fn may_ask(&self, action: &KnownAction, rights: &Rights<'_>) -> Result<Why, Why> {
        if let Some(grant) = rights.denied.about(&action.id, &action.profile).next() {
            return Err(Why::DeniedByGate(self.label(&grant.gate)));
        }
        let mut approval = None;
        for number in &action.profile.policies {
            let Some(policy) = self.engine.policies.get(*number as usize) else {
                continue;
            };
            let risk = action.profile.risk;
            match policy
                .always()
                .or_else(|| policy.on_risk(risk))
                .filter(|_| policy.counts(&NOTHING_KNOWN))
            {
                Some(Decision::Deny) => return Err(Why::DeniedByPolicy(policy.reason.clone())),
                Some(Decision::RequiresApproval) => approval = Some(policy.reason.clone()),
                _ => {}
            }
        }
        let is_open = |capability: &Capability| {
            let place = capability.number as usize;
            rights.open.get(place).copied().unwrap_or_default()
        };
        let why = self.may(
            &action.id,
            &action.profile,
            &NOTHING_KNOWN,
            &rights.allowed,
            is_open,
        )?;
        if let Some(reason) = approval {
            return Err(Why::NeedsApproval(reason));
        }
        Ok(match &action.asks {
            Some(gate) => Why::Asks(gate.clone()),
            None => why,
        })
    }
}

fn questions_of<'q>(gate: &'q Gate, place: &'q Waiting) -> impl Iterator<Item = QuestionNote> + 'q {
    let open = gate
        .questions
        .iter()
        .filter(|question| !place.answered.contains(&question.definition.question_id));
    open.map(|question| {
        let definition = &question.definition;
        let failed = place.failed.get(&definition.question_id).copied();
        let (min, max) = definition.bounds();
        QuestionNote {
            checkpoint_id: gate.label.to_string(),
            question_id: definition.question_id.clone(),
            question: definition.question.clone(),
            response_type: definition.response_type.name().into(),
            required: definition.required,
            hint: definition.hint.clone(),
            options: definition.choices().to_vec(),
            min,
            max,
            schema: definition.answer_schema().cloned(),
            attempts_left: question.attempts().saturating_sub(failed.unwrap_or(0)),
            hold_id: None,
        }
    })
}

/// The guidance in force: instructions of the system first, then by priority.
fn guidance(engine: &crate::Engine, names: &[String]) -> Vec<GuidanceNote> {
    let mut notes: Vec<GuidanceNote> = names
        .iter()
        .filter_map(|name| {
            let gate = engine.gate(name)?;
            let guidance = gate.definition.guidance.as_ref()?;
            Some(GuidanceNote {
                checkpoint_id: gate.label.to_string(),
                format: guidance.format,
                content: guidance.content.clone(),
                priority: guidance.priority,
                labels: guidance.labels.clone(),
            })
        })
        .collect();
    notes.sort_by_key(|note| {
        let system = note.format == GuidanceFormat::SystemInstruction;
        (Reverse(system), Reverse(note.priority))
    });
    notes
}

fn capabilities(engine: &crate::Engine, open: &[bool]) -> Capabilities {
    let mut shown = Capabilities::default();
    for (capability, open) in engine.capabilities.iter().zip(open) {
        let list = match open {
            true => &mut shown.unlocked,
            false => &mut shown.locked,
        };
        list.push(capability.label.to_string());
    }
    shown
}
