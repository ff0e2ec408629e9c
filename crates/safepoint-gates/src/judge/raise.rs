//! Which gates an event raises, in which order, and what then waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use safepoint_model::HoldId;
use serde_json::{Value, json};

use super::{Refusal, Step};
use crate::atlas::{CheckpointMode, CheckpointTrigger, NotificationTrigger};
use crate::engine::Gate;
use crate::resolution::{Dropped, GateNote, GateStatus};
use crate::session::{Cause, Hold, Reach, Waiting};

impl<'a> Step<'a> {
    /// Raises gates: the most important first, ties as they were written. The
    /// hold that comes of it, if one does.
    pub(super) fn raise(
        &mut self,
        numbers: Vec<u32>,
        cause: Cause,
        reach: Reach,
        data: Value,
    ) -> Option<HoldId> {
        let engine = self.engine;
        let mut numbers = numbers;
        numbers.sort_unstable();
        numbers.dedup();
        let mut gates: Vec<&Gate> = numbers
            .iter()
            .filter_map(|number| engine.gates.get(*number as usize))
            .collect();
        gates.sort_by_key(|gate| (Reverse(gate.priority), gate.number));
        self.keep_to_budget(&mut gates);

        let mut waiting = Vec::new();
        for gate in gates {
            let reach = if fires_for_all(gate) {
                Reach::Session
            } else {
                reach
            };
            self.mark_interval(gate);
            waiting.extend(self.raise_one(gate, &cause, reach, &data));
        }
        if matches!(cause, Cause::Request { .. }) && self.blocked_now().is_some() {
            // It is denied: its own questions would be asked in vain.
            waiting.retain(|waiting| waiting.reach == Reach::Session);
        }
        if waiting.is_empty() {
            return None;
        }
        let hold_id = self.facts.hold_id.clone();
        for waiting in &waiting {
            let body = json!({
                "checkpoint_id": self.label(&waiting.gate),
                "reason": "Required question not answered",
                "blocked_action": data.get("action_id"),
                "hold_id": hold_id,
            });
            self.record("CheckpointBlocked", body);
        }
        self.session.holds.push(Hold {
            hold_id: hold_id.clone(),
            since: self.facts.now,
            cause,
            gates: waiting,
        });
        Some(hold_id)
    }

    /// Raises one gate; what then waits for it.
    fn raise_one(
        &mut self,
        gate: &'a Gate,
        cause: &Cause,
        reach: Reach,
        data: &Value,
    ) -> Option<Waiting> {
        let action = match cause {
            Cause::Request { action, .. } | Cause::Report { action, .. } => Some(action.as_str()),
            _ => None,
        };
        self.sync |= gate.definition.force_sync_trace;
        let body = json!({
            "checkpoint_id": gate.label,
            "atlas_id": self.engine.atlas_id(gate.atlas),
            "checkpoint_type": gate.definition.trigger.name(),
            "mode": gate.definition.mode,
            "priority": gate.priority,
            "trigger_data": data,
        });
        self.record("CheckpointTriggered", body);
        self.notify(
            NotificationTrigger::CheckpointTriggered,
            Some(gate.atlas),
            || json!({"checkpoint_id": gate.label, "trigger_data": data}),
        );
        if gate.definition.mode == CheckpointMode::Observational {
            self.note(gate, GateStatus::Recorded);
            return None;
        }
        if self.session.is_shut(&gate.name, action) {
            self.note(gate, GateStatus::Blocked);
            self.record(
                "CheckpointBlocked",
                json!({"checkpoint_id": gate.label, "reason": "it is shut", "blocked_action": action}),
            );
            return None;
        }
        if !gate.asks() {
            self.note(gate, GateStatus::Passed);
            self.pass(gate);
            return None;
        }
        self.note(gate, GateStatus::Pending);
        // One that waits already for everything waits once. One that only some
        // request waits for does not: everything else would get past it.
        let waits = |waiting: &Waiting| {
            *waiting.gate == *gate.name
                && !waiting.passed
                && (waiting.reach == Reach::Session || lasts(gate))
        };
        let holds = &self.session.holds;
        if matches!(
            cause,
            Cause::Start {} | Cause::Input {} | Cause::Ask {} | Cause::Report { .. }
        ) && holds.iter().any(|hold| hold.gates.iter().any(waits))
        {
            return None;
        }
        Some(Waiting {
            gate: gate.name.to_string(),
            reach,
            passed: false,
            answered: BTreeSet::new(),
            failed: self.failed_before(gate, action),
        })
    }

    /// The attempts that have failed at a gate where it waits already, for the
    /// same action: asking once more must not give new ones.
    fn failed_before(&self, gate: &Gate, action: Option<&str>) -> BTreeMap<String, u32> {
        self.session
            .holds
            .iter()
            .filter(|hold| lasts(gate) || hold.action() == action)
            .flat_map(|hold| &hold.gates)
            .find(|waiting| *waiting.gate == *gate.name)
            .map(|waiting| waiting.failed.clone())
            .unwrap_or_default()
    }

    /// Leaves out what the budget has no room for: advisory gates first, the
    /// least important first, blocking ones never.
    fn keep_to_budget(&mut self, gates: &mut Vec<&'a Gate>) {
        for atlas in 0..self.engine.atlases.len() {
            let Some(most) = self.engine.budget(atlas).max_checkpoints_per_input else {
                continue;
            };
            let mut count = gates.iter().filter(|gate| gate.atlas == atlas).count() as u64;
            for mode in [CheckpointMode::Advisory, CheckpointMode::Observational] {
                while count > most {
                    let place = gates
                        .iter()
                        .rposition(|gate| gate.atlas == atlas && gate.definition.mode == mode);
                    let Some(place) = place else { break };
                    let gate = gates.remove(place);
                    self.drop_gate(gate, "max_checkpoints_per_input");
                    count -= 1;
                }
            }
        }
    }

    /// Leaves out a gate, and says so.
    pub(super) fn drop_gate(&mut self, gate: &Gate, reason: &'static str) {
        self.record(
            "CheckpointDropped",
            json!({"checkpoint_id": gate.label, "reason": reason}),
        );
        self.dropped.push(Dropped {
            checkpoint_id: gate.label.to_string(),
            context_id: None,
            reason: reason.into(),
        });
    }

    /// Notes how a gate stands, once.
    pub(super) fn note(&mut self, gate: &Gate, status: GateStatus) {
        let atlas_id = self.engine.atlas_id(gate.atlas);
        let known = self
            .gates
            .iter_mut()
            .find(|(number, _)| *number == gate.number);
        if let Some((_, note)) = known {
            note.status = status;
            return;
        }
        let note = GateNote {
            checkpoint_id: gate.label.to_string(),
            atlas_id: atlas_id.to_owned(),
            gate_type: gate.definition.trigger.name().into(),
            mode: gate.definition.mode,
            priority: gate.priority,
            status,
        };
        self.gates.push((gate.number, note));
    }

    /// A gate of this step that stays shut.
    pub(super) fn blocked_now(&self) -> Option<String> {
        self.gates
            .iter()
            .find(|(_, note)| note.status == GateStatus::Blocked)
            .map(|(_, note)| note.checkpoint_id.clone())
    }

    /// The gates of these capabilities that have not been passed.
    pub(super) fn capability_gates(&self, capabilities: &[u32]) -> Vec<u32> {
        capabilities
            .iter()
            .filter_map(|number| self.engine.moments.capabilities.get(number))
            .flatten()
            .filter(|number| !self.is_passed(**number))
            .copied()
            .collect()
    }

    /// Whether a gate is behind us for the rest of the session.
    pub(super) fn is_passed(&self, number: u32) -> bool {
        let gate = self.engine.gates.get(number as usize);
        gate.is_some_and(|gate| self.session.passed.contains(&*gate.name))
    }

    /// Time gates whose next interval has come. Each is raised once an interval.
    pub(super) fn due_times(&self) -> Vec<u32> {
        self.due(&self.engine.moments.times)
    }

    /// Count gates whose next interval has come.
    pub(super) fn due_counts(&self) -> Vec<u32> {
        self.due(&self.engine.moments.counts)
    }

    fn due(&self, gates: &[(u64, u32)]) -> Vec<u32> {
        let numbers = gates.iter().map(|(_, number)| *number);
        let is_due = |number: &u32| {
            let gate = self.engine.gates.get(*number as usize);
            gate.is_some_and(|gate| {
                let last = self.session.intervals.get(&*gate.name).copied();
                self.interval(gate) > Some(last.unwrap_or(0))
            })
        };
        numbers.filter(is_due).collect()
    }

    /// The interval that a time gate or a count gate is in.
    fn interval(&self, gate: &Gate) -> Option<u64> {
        match gate.definition.trigger {
            CheckpointTrigger::TimeInterval { seconds } => {
                let elapsed = self.facts.now.as_micros() - self.session.started.as_micros();
                let elapsed = u64::try_from(elapsed).unwrap_or(0) / 1_000_000;
                Some(elapsed / seconds.max(1))
            }
            CheckpointTrigger::CountInterval { actions } => {
                Some(self.session.actions / actions.max(1))
            }
            _ => None,
        }
    }

    /// Remembers the interval in which a gate is raised. One that the budget left
    /// out is not raised, and stays due.
    fn mark_interval(&mut self, gate: &Gate) {
        if let Some(interval) = self.interval(gate) {
            let name = gate.name.to_string();
            self.session.intervals.insert(name, interval);
        }
    }

    /// The gate that somebody raises by name.
    pub(super) fn askable(&self, id: &str) -> Result<u32, Refusal> {
        let gate = match self.engine.gates_called(id).as_slice() {
            [] => return Err(Refusal::UnknownGate(id.to_owned())),
            [gate] => *gate,
            several => {
                return Err(Refusal::Ambiguous {
                    id: id.to_owned(),
                    among: several.iter().map(|gate| gate.name.to_string()).collect(),
                });
            }
        };
        match gate.definition.trigger {
            CheckpointTrigger::Interactive {} | CheckpointTrigger::ExplicitRequest {} => {
                Ok(gate.number)
            }
            _ => Err(Refusal::NotRaisedByAsking(id.to_owned())),
        }
    }
}

/// Whether passing the gate once is enough for the session.
pub(super) fn lasts(gate: &Gate) -> bool {
    matches!(
        gate.definition.trigger,
        CheckpointTrigger::SessionStart {}
            | CheckpointTrigger::Interactive {}
            | CheckpointTrigger::CapabilityAccess { .. }
            | CheckpointTrigger::CapabilityGate { .. }
    )
}

/// Whether everything waits for the gate, whatever raised it. Otherwise asking
/// for something else would be a way past it.
fn fires_for_all(gate: &Gate) -> bool {
    matches!(
        gate.definition.trigger,
        CheckpointTrigger::TimeInterval { .. } | CheckpointTrigger::CountInterval { .. }
    )
}
