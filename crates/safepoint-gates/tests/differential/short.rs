//! The naive evaluator: the gates of `checkpoint_config`, written out.

use safepoint_gates::{
    ActionMapping, AtlasManifest, CheckpointQuestion, CheckpointTrigger, StewardCheckpointDef,
};

/// The gates of `checkpoint_config`, written out.
pub(crate) fn short_gates(atlas: &AtlasManifest) -> Vec<StewardCheckpointDef> {
    let Some(config) = atlas.checkpoint_config.clone() else {
        return Vec::new();
    };
    let mut gates = Vec::new();
    let mut add = |id: String, trigger, contexts: &[String], enabled| {
        let mut gate =
            StewardCheckpointDef::new(id, "", trigger).inject_contexts(contexts.to_vec());
        gate.enabled = enabled;
        gates.push(gate);
    };
    if let Some(it) = config.session_start {
        add(
            "checkpoint_config.session_start".into(),
            CheckpointTrigger::SessionStart {},
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.keyword_match {
        for (words, contexts) in &it.mappings.0 {
            let trigger = CheckpointTrigger::Keyword {
                patterns: vec![words.clone()],
                case_sensitive: it.case_sensitive,
                match_mode: it.match_mode,
            };
            add(
                format!("checkpoint_config.keyword_match.{words}"),
                trigger,
                contexts,
                it.enabled,
            );
        }
    }
    if let Some(it) = config.risk_threshold {
        add(
            "checkpoint_config.risk_threshold".into(),
            CheckpointTrigger::RiskThreshold {
                min_tier: it.min_tier,
            },
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.time_interval {
        add(
            "checkpoint_config.time_interval".into(),
            CheckpointTrigger::TimeInterval {
                seconds: it.seconds,
            },
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.count_interval {
        add(
            "checkpoint_config.count_interval".into(),
            CheckpointTrigger::CountInterval {
                actions: it.actions,
            },
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.explicit_request {
        add(
            "checkpoint_config.explicit_request".into(),
            CheckpointTrigger::ExplicitRequest {},
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.error_occurred {
        add(
            "checkpoint_config.error_occurred".into(),
            CheckpointTrigger::ErrorOccurred {},
            &it.inject_contexts,
            it.enabled,
        );
    }
    if let Some(it) = config.session_end {
        add(
            "checkpoint_config.session_end".into(),
            CheckpointTrigger::SessionEnd {},
            &it.inject_contexts,
            it.enabled,
        );
    }
    let pre = |patterns| CheckpointTrigger::ActionPre { patterns };
    let post = |patterns| CheckpointTrigger::ActionPost { patterns };
    for (name, section, kind) in [
        (
            "action_pre",
            config.action_pre,
            &pre as &dyn Fn(Vec<String>) -> CheckpointTrigger,
        ),
        ("action_post", config.action_post, &post),
    ] {
        let Some(section) = section else { continue };
        for (pattern, mapping) in &section.mappings.0 {
            gates.push(short_action(
                name,
                pattern,
                mapping,
                kind(vec![pattern.clone()]),
                section.enabled,
            ));
        }
    }
    gates
}

fn short_action(
    section: &str,
    pattern: &str,
    mapping: &ActionMapping,
    trigger: CheckpointTrigger,
    enabled: bool,
) -> StewardCheckpointDef {
    let id = format!("checkpoint_config.{section}.{pattern}");
    let mut gate =
        StewardCheckpointDef::new(id, "", trigger).inject_contexts(mapping.inject_contexts.clone());
    if mapping.require_confirmation {
        gate = gate
            .blocking()
            .with_question(CheckpointQuestion::acknowledgment("confirm", "Confirm it."));
    }
    gate.enabled = enabled;
    gate
}
