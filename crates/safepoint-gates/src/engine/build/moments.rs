//! When what is raised: each gate and each context at its moment.

use std::collections::HashMap;
use std::sync::Arc;

use super::Builder;
use crate::atlas::{CheckpointTrigger, InjectMode, MatchMode};
use crate::engine::Moments;
use crate::keyword::{KeywordRule, KeywordSet};
use crate::pattern::PatternSet;

impl Builder {
    pub(super) fn moments(&mut self, capability_names: &HashMap<Arc<str>, u32>) -> Moments {
        let mut moments = Moments::default();
        let mut before = Vec::new();
        let mut after = Vec::new();
        let mut rules = Vec::new();
        let mut name = String::new();
        let gates = std::mem::take(&mut self.gates);
        for gate in &gates {
            let number = gate.number;
            match &gate.definition.trigger {
                CheckpointTrigger::SessionStart {} => moments.start.push(number),
                CheckpointTrigger::Interactive {} => {}
                CheckpointTrigger::CapabilityAccess { capability_ids }
                | CheckpointTrigger::CapabilityGate { capability_ids } => {
                    let atlas_id = gate.name.strip_suffix(&*gate.definition.checkpoint_id);
                    for id in capability_ids {
                        name.clear();
                        name.push_str(atlas_id.unwrap_or_default());
                        name.push_str(id);
                        if let Some(capability) = capability_names.get(name.as_str()) {
                            let gates = moments.capabilities.entry(*capability).or_default();
                            gates.push(number);
                        }
                    }
                }
                CheckpointTrigger::RiskThreshold { min_tier } => {
                    moments.risks.push((*min_tier, number));
                }
                CheckpointTrigger::ActionPre { patterns } => {
                    let pointer = || format!("/checkpoints/{number}/trigger/patterns");
                    for text in patterns {
                        before.extend(self.pattern(text, pointer).map(|it| (it, number)));
                    }
                }
                CheckpointTrigger::ActionPost { patterns } => {
                    let pointer = || format!("/checkpoints/{number}/trigger/patterns");
                    for text in patterns {
                        after.extend(self.pattern(text, pointer).map(|it| (it, number)));
                    }
                }
                CheckpointTrigger::Keyword {
                    patterns,
                    case_sensitive,
                    match_mode,
                }
                | CheckpointTrigger::KeywordMatch {
                    patterns,
                    case_sensitive,
                    match_mode,
                } => {
                    moments.word_gates.push(number);
                    rules.push(KeywordRule {
                        patterns,
                        match_mode: *match_mode,
                        case_sensitive: *case_sensitive,
                    });
                }
                CheckpointTrigger::TimeInterval { seconds } => {
                    moments.times.push((*seconds, number));
                }
                CheckpointTrigger::CountInterval { actions } => {
                    moments.counts.push((*actions, number));
                }
                CheckpointTrigger::ExplicitRequest {} => moments.explicit.push(number),
                CheckpointTrigger::ErrorOccurred {} => moments.error.push(number),
                CheckpointTrigger::SessionEnd {} => moments.end.push(number),
                CheckpointTrigger::Custom { .. } => moments.custom.push(number),
            }
        }
        moments.risks.sort_by_key(|(least, _)| *least);
        moments.before = PatternSet::new(before);
        moments.after = PatternSet::new(after);
        match KeywordSet::new(&rules) {
            Ok(words) => moments.words = words,
            Err(error) => {
                let gate = moments.word_gates.get(error.rule).copied().unwrap_or(0);
                let pointer = format!("/checkpoints/{gate}/trigger/patterns/{}", error.index);
                self.problem(error.to_string(), &pointer);
            }
        }
        drop(rules);
        self.gates = gates;
        self.context_moments(&mut moments);
        moments
    }

    fn context_moments(&mut self, moments: &mut Moments) {
        let contexts = std::mem::take(&mut self.contexts);
        let mut rules = Vec::new();
        let mut patterns = Vec::new();
        for (number, context) in (0..).zip(&contexts) {
            let block = &context.block;
            match block.inject_mode {
                InjectMode::OnDemand | InjectMode::EveryTime => {}
                InjectMode::Always => moments.context_start.push(number),
                InjectMode::RiskBased => {
                    let least = block.min_tier.unwrap_or(crate::atlas::RiskTier::High);
                    moments.context_risks.push((least, number));
                }
                InjectMode::OnMatch => {
                    if !block.keywords.is_empty() {
                        moments.word_contexts.push(number);
                        rules.push(KeywordRule {
                            patterns: &block.keywords,
                            match_mode: MatchMode::Any,
                            case_sensitive: false,
                        });
                    }
                    for text in &block.actions {
                        let pointer = || format!("/context_blocks/{number}/actions");
                        patterns.extend(self.pattern(text, pointer).map(|it| (it, number)));
                    }
                }
            }
        }
        moments.context_actions = PatternSet::new(patterns);
        match KeywordSet::new(&rules) {
            Ok(words) => moments.context_words = words,
            Err(error) => self.problem(error.to_string(), "/context_blocks"),
        }
        drop(rules);
        self.contexts = contexts;
    }
}
