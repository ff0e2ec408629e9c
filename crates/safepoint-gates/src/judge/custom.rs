//! Triggers that a steward wrote in code. One that fails fires: fail closed.

use serde_json::{Value, json};

use super::Step;
use super::request::Asked;
use crate::atlas::CheckpointTrigger;
use crate::engine::Gate;
use crate::engine::Ran;

/// What code is given where there may be no parameters: `has(params.x)` fails on null, and a
/// trigger that fails is raised.
pub(super) fn object_or_empty(parameters: &Value) -> Value {
    match parameters {
        Value::Null => json!({}),
        given => given.clone(),
    }
}

impl<'a> Step<'a> {
    /// The custom gates that this event raises.
    pub(super) fn custom(
        &mut self,
        event: &str,
        input: Option<&str>,
        asked: Option<&Asked<'_>>,
    ) -> Vec<u32> {
        let engine = self.engine;
        let gates = engine
            .moments
            .custom
            .iter()
            .filter_map(|number| engine.gates.get(*number as usize));
        gates
            .filter(|gate| self.fires(gate, event, input, asked))
            .map(|gate| gate.number)
            .collect()
    }

    fn fires(
        &mut self,
        gate: &'a Gate,
        event: &str,
        input: Option<&str>,
        asked: Option<&Asked<'_>>,
    ) -> bool {
        let Some(code) = &gate.code else {
            return true; // nobody can say, so it is raised
        };
        let budget = self.engine.budget(gate.atlas).max_checkpoint_time_ms;
        if code.is_far() && budget.is_some_and(|most| self.facts.callback_time > most) {
            if !gate.is_blocking() {
                self.drop_gate(gate, "max_checkpoint_time_ms");
            }
            return gate.is_blocking();
        }
        let own = match &gate.definition.trigger {
            CheckpointTrigger::Custom { params, .. } => object_or_empty(params),
            _ => json!({}),
        };
        let given = json!({
            "event": event,
            "input": input.unwrap_or_default(),
            "action": asked.map(|asked| asked.action).unwrap_or_default(),
            "params": asked.map_or_else(|| json!({}), |asked| object_or_empty(asked.parameters)),
            "risk": asked.map(|asked| asked.risk).unwrap_or_default(),
            "trigger": own,
            "session": self.session_facts(),
        });
        match code.run(&given, self.facts) {
            Ran::Said(said) => said.yes,
            Ran::Wanted(callback) => {
                self.wanted.push(callback);
                false
            }
            Ran::Failed(error) => {
                self.extension_failed(gate, &error);
                true
            }
        }
    }

    /// What code is told about the session.
    pub(super) fn session_facts(&self) -> Value {
        let elapsed = self.facts.now.as_micros() - self.session.started.as_micros();
        json!({
            "id": self.session.session_id,
            "goal": self.session.goal.clone().unwrap_or_default(),
            "principal": self.session.principal,
            "actions": self.session.actions,
            "seconds": elapsed / 1_000_000,
            "unlocked": self.session.unlocked,
        })
    }

    pub(super) fn extension_failed(&mut self, gate: &Gate, error: &str) {
        self.record(
            "ExtensionFailed",
            json!({"checkpoint_id": gate.label, "error": error}),
        );
        self.warnings.push(format!(
            "an extension of checkpoint `{}` failed",
            gate.label
        ));
    }
}
