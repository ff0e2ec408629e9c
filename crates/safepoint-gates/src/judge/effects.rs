//! What passing a gate brings: contexts, guidance, capabilities, actions.

use std::cmp::Reverse;

use serde_json::json;

use super::Step;
use super::raise::lasts;
use crate::atlas::InjectMode;
use crate::engine::{Capability, Context, Gate, qualified};
use crate::resolution::{CheckpointAction, ContextNote, Dropped, Why};
use crate::session::Grant;

impl<'a> Step<'a> {
    /// Passes a gate, and applies what it brings, in this order: contexts,
    /// guidance, unlock, lock, allow, deny.
    pub(super) fn pass(&mut self, gate: &'a Gate) -> Vec<CheckpointAction> {
        let definition = &gate.definition;
        let mut actions = vec![CheckpointAction::Proceed];
        if lasts(gate) {
            self.session.passed.insert(gate.name.to_string());
        }
        let mut injected = Vec::new();
        for id in &definition.inject_contexts {
            if let Some(label) = self.give(gate, id) {
                actions.push(CheckpointAction::InjectContext {
                    context_id: label.clone(),
                });
                injected.push(label);
            }
        }
        self.guide(gate, &mut actions);
        let atlas_id = self.engine.atlas_id(gate.atlas).to_owned();
        for id in &definition.unlock_capabilities {
            let name = qualified(&atlas_id, id);
            self.session.locked.remove(&name);
            self.session.unlocked.insert(name);
            self.record(
                "CapabilityUnlocked",
                json!({"capability_id": id, "checkpoint_id": gate.label}),
            );
            actions.push(CheckpointAction::UnlockCapability {
                capability_id: id.clone(),
            });
        }
        for id in &definition.lock_capabilities {
            let name = qualified(&atlas_id, id);
            self.session.unlocked.remove(&name);
            self.session.locked.insert(name);
            self.record(
                "CapabilityLocked",
                json!({"capability_id": id, "checkpoint_id": gate.label}),
            );
            actions.push(CheckpointAction::LockCapability {
                capability_id: id.clone(),
            });
        }
        for pattern in &definition.allow_actions {
            grant(&mut self.session.allowed, gate, pattern);
            let pattern = pattern.clone();
            actions.push(CheckpointAction::AllowActions { pattern });
        }
        for pattern in &definition.deny_actions {
            grant(&mut self.session.denied, gate, pattern);
            let pattern = pattern.clone();
            actions.push(CheckpointAction::DenyActions { pattern });
        }
        self.record(
            "CheckpointPassed",
            json!({
                "checkpoint_id": gate.label,
                "unlocked_capabilities": definition.unlock_capabilities,
                "locked_capabilities": definition.lock_capabilities,
                "injected_contexts": injected,
                "allowed_actions": definition.allow_actions,
                "denied_actions": definition.deny_actions,
            }),
        );
        actions
    }

    /// Puts a gate's guidance in force, and ends what it ends.
    fn guide(&mut self, gate: &'a Gate, actions: &mut Vec<CheckpointAction>) {
        let engine = self.engine;
        let ends = |name: &String| {
            engine.gate(name).is_some_and(|old| {
                let until = old
                    .definition
                    .guidance
                    .as_ref()
                    .and_then(|guidance| guidance.expires_after.as_deref());
                old.atlas == gate.atlas && until == Some(gate.definition.checkpoint_id.as_str())
            })
        };
        self.session.guidance.retain(|name| !ends(name));
        let Some(guidance) = &gate.definition.guidance else {
            return;
        };
        if guidance.append {
            self.session.guidance.retain(|name| **name != *gate.name);
        } else {
            self.session.guidance.clear();
        }
        self.session.guidance.push(gate.name.to_string());
        self.record(
            "GuidanceInjected",
            json!({"checkpoint_id": gate.label, "format": guidance.format, "labels": guidance.labels}),
        );
        actions.push(CheckpointAction::InjectGuidance {
            guidance: guidance.clone(),
        });
    }

    /// Gives a context that a gate names, unless the agent has it or the budget is used up.
    fn give(&mut self, gate: &Gate, id: &str) -> Option<String> {
        let name = qualified(self.engine.atlas_id(gate.atlas), id);
        let context = self.engine.context(&name)?;
        let again = context.block.inject_mode == InjectMode::EveryTime;
        if self.session.contexts.contains(&name) && !again {
            return None;
        }
        // What a blocking gate brings counts, but is never left out.
        if !gate.is_blocking() && !self.has_room_for(context) {
            self.leave_out(gate.label.to_string(), context);
            return None;
        }
        self.give_now(context);
        Some(context.label.clone())
    }

    /// Gives contexts that no gate names: their own modes call for them. The
    /// most important first, ties as they were written.
    pub(super) fn give_by_themselves(&mut self, mut numbers: Vec<u32>) {
        let priority = |number: &u32| {
            let context = self.engine.contexts.get(*number as usize);
            context.map(|context| Reverse(context.block.priority))
        };
        numbers.sort_by_key(|number| (priority(number), *number));
        numbers.dedup();
        for number in numbers {
            self.give_by_itself(number);
        }
    }

    fn give_by_itself(&mut self, number: u32) {
        let Some(context) = self.engine.contexts.get(number as usize) else {
            return;
        };
        if self.session.contexts.contains(&*context.name) {
            return;
        }
        if self.has_room_for(context) {
            self.give_now(context);
        } else {
            self.leave_out(String::new(), context);
        }
    }

    fn has_room_for(&self, context: &Context) -> bool {
        let size = context.block.content.len() as u64;
        let given = self.context_bytes.get(&context.atlas).copied().unwrap_or(0);
        let budget = self.engine.budget(context.atlas);
        budget
            .max_context_injection_size
            .is_none_or(|most| given + size <= most)
            && self
                .engine
                .contexts_per_session(context.atlas)
                .is_none_or(|most| {
                    let atlas = qualified(self.engine.atlas_id(context.atlas), "");
                    let given = self.session.contexts.iter();
                    (given.filter(|name| name.starts_with(&atlas)).count() as u64) < most
                })
    }

    fn give_now(&mut self, context: &Context) {
        let size = context.block.content.len() as u64;
        *self.context_bytes.entry(context.atlas).or_default() += size;
        self.session.contexts.insert(context.name.to_string());
        self.record(
            "ContextInjected",
            json!({"context_id": context.label, "size": size}),
        );
        self.contexts.push(ContextNote {
            context_id: context.label.clone(),
            content: context.block.content.clone(),
        });
    }

    fn leave_out(&mut self, gate: String, context: &Context) {
        let reason = "max_context_injection_size";
        self.record(
            "ContextDropped",
            json!({"context_id": context.label, "checkpoint_id": gate, "reason": reason}),
        );
        self.dropped.push(Dropped {
            checkpoint_id: gate,
            context_id: Some(context.label.clone()),
            reason: reason.into(),
        });
    }

    /// Whether a capability is open: what a gate unlocks is locked until then.
    pub(super) fn is_open(&self, capability: &Capability) -> bool {
        !self.session.locked.contains(&*capability.name)
            && (capability.key.is_none() || self.session.unlocked.contains(&*capability.name))
    }

    pub(super) fn why_locked(&self, capability: &Capability) -> Why {
        Why::Locked(capability.label.clone(), capability.key.clone())
    }
}

fn grant(grants: &mut Vec<Grant>, gate: &Gate, pattern: &str) {
    let grant = Grant {
        pattern: pattern.to_owned(),
        gate: gate.name.to_string(),
    };
    if !grants.contains(&grant) {
        grants.push(grant);
    }
}
