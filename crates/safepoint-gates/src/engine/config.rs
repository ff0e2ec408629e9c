//! `checkpoint_config`, as the gates it stands for.

use crate::atlas::{
    AtlasManifest, CheckpointConfig, CheckpointQuestion, CheckpointTrigger, KeywordSection,
    PlainSection, StewardCheckpointDef,
};

/// The gates that the configuration of `manifest` stands for.
///
/// They are gates like all others, with names that say where they come from.
pub(super) fn gates(manifest: &AtlasManifest) -> Vec<StewardCheckpointDef> {
    let Some(config) = &manifest.checkpoint_config else {
        return Vec::new();
    };
    let mut gates = Vec::new();
    let plain = [
        (&config.session_start, CheckpointTrigger::SessionStart {}),
        (
            &config.explicit_request,
            CheckpointTrigger::ExplicitRequest {},
        ),
        (&config.error_occurred, CheckpointTrigger::ErrorOccurred {}),
        (&config.session_end, CheckpointTrigger::SessionEnd {}),
    ];
    for (section, trigger) in plain {
        if let Some(PlainSection {
            enabled: true,
            inject_contexts,
        }) = section
        {
            gates.push(advisory(None, trigger, inject_contexts));
        }
    }
    if let Some(section) = config.keyword_match.as_ref().filter(|it| it.enabled) {
        gates.extend(keywords(section));
    }
    gates.extend(actions(config));
    if let Some(section) = config.risk_threshold.as_ref().filter(|it| it.enabled) {
        let trigger = CheckpointTrigger::RiskThreshold {
            min_tier: section.min_tier,
        };
        let mut gate = advisory(None, trigger, &section.inject_contexts);
        gate.force_sync_trace = section.require_sync_trace;
        gates.push(gate);
    }
    if let Some(section) = config.time_interval.as_ref().filter(|it| it.enabled) {
        let trigger = CheckpointTrigger::TimeInterval {
            seconds: section.seconds,
        };
        gates.push(advisory(None, trigger, &section.inject_contexts));
    }
    if let Some(section) = config.count_interval.as_ref().filter(|it| it.enabled) {
        let trigger = CheckpointTrigger::CountInterval {
            actions: section.actions,
        };
        gates.push(advisory(None, trigger, &section.inject_contexts));
    }
    gates
}

fn keywords(section: &KeywordSection) -> impl Iterator<Item = StewardCheckpointDef> {
    section.mappings.0.iter().map(|(words, contexts)| {
        let trigger = CheckpointTrigger::KeywordMatch {
            patterns: vec![words.clone()],
            case_sensitive: section.case_sensitive,
            match_mode: section.match_mode,
        };
        advisory(Some(words), trigger, contexts)
    })
}

fn actions(config: &CheckpointConfig) -> Vec<StewardCheckpointDef> {
    let mut gates = Vec::new();
    let sections = [(&config.action_pre, true), (&config.action_post, false)];
    for (section, is_before) in sections {
        let Some(section) = section.as_ref().filter(|section| section.enabled) else {
            continue;
        };
        for (pattern, mapping) in &section.mappings.0 {
            let patterns = vec![pattern.clone()];
            let trigger = match is_before {
                true => CheckpointTrigger::ActionPre { patterns },
                false => CheckpointTrigger::ActionPost { patterns },
            };
            let mut gate = advisory(Some(pattern), trigger, &mapping.inject_contexts);
            if mapping.require_confirmation {
                gate = gate
                    .blocking()
                    .with_question(CheckpointQuestion::acknowledgment(
                        "confirm",
                        format!("I understand what `{pattern}` does, and confirm that I want it."),
                    ));
            }
            gates.push(gate);
        }
    }
    gates
}

fn advisory(
    key: Option<&str>,
    trigger: CheckpointTrigger,
    contexts: &[String],
) -> StewardCheckpointDef {
    let section = trigger.name();
    let id = match key {
        None => format!("checkpoint_config.{section}"),
        Some(key) => format!("checkpoint_config.{section}.{key}"),
    };
    StewardCheckpointDef::new(id.clone(), id, trigger)
        .advisory()
        .inject_contexts(contexts.to_vec())
}
