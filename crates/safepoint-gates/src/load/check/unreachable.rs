//! Gates that are never raised, and settings that change nothing. A session may begin
//! under them all the same; whoever checks an atlas wants to know.

use std::collections::HashSet;

use super::actions::known;
use crate::atlas::{AtlasManifest, CheckpointTrigger};
use crate::load::finding::Findings;
use crate::load::shape::below;
use crate::load::suggest::shown;
use crate::pattern::{Pattern, PatternSet};

pub(in crate::load) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    let empty: HashSet<&str> = atlas
        .capabilities
        .iter()
        .filter(|capability| capability.actions.is_empty())
        .map(|capability| capability.capability_id.as_str())
        .collect();
    let idle = idle_patterns(atlas);
    for (index, gate) in atlas.checkpoints.iter().enumerate() {
        let id = shown(&gate.checkpoint_id);
        if !gate.enabled {
            findings.key_warning(
                format!("/checkpoints/{index}/enabled"),
                format!("gate `{id}` is switched off"),
                "it is never raised; leave it out, or say `enabled: true`",
            );
            continue;
        }
        let never = |findings: &mut Findings, field: &str, why: String, hint: &str| {
            let pointer = format!("/checkpoints/{index}/trigger/{field}");
            findings.error(pointer, format!("gate `{id}` is never raised: {why}"), hint);
        };
        match &gate.trigger {
            CheckpointTrigger::CapabilityAccess { capability_ids }
            | CheckpointTrigger::CapabilityGate { capability_ids } => {
                if capability_ids.is_empty() {
                    let why = "it names no capability".to_owned();
                    never(findings, "capability_ids", why, "name one");
                }
                for (place, capability) in capability_ids.iter().enumerate() {
                    if empty.contains(capability.as_str()) {
                        let pointer =
                            format!("/checkpoints/{index}/trigger/capability_ids/{place}");
                        let message = format!(
                            "capability `{}` has no actions, so none raises gate `{id}`",
                            shown(capability)
                        );
                        findings.error(pointer, message, "list its actions under `capabilities`");
                    }
                }
            }
            CheckpointTrigger::ActionPre { patterns }
            | CheckpointTrigger::ActionPost { patterns } => {
                if patterns.is_empty() {
                    let why = "it names no action".to_owned();
                    never(findings, "patterns", why, "name one; `*` stands for all");
                }
                for (place, pattern) in patterns.iter().enumerate() {
                    if idle.contains(pattern.as_str()) {
                        let message = format!("`{}` stands for no known action", shown(pattern));
                        let hint = "define the actions it is meant for under `actions`";
                        let pointer = format!("/checkpoints/{index}/trigger/patterns/{place}");
                        findings.error(pointer, message, hint);
                    }
                }
            }
            CheckpointTrigger::Keyword { patterns, .. }
            | CheckpointTrigger::KeywordMatch { patterns, .. }
                if patterns.is_empty() =>
            {
                let why = "it names no words".to_owned();
                never(findings, "patterns", why, "name some");
            }
            _ => {}
        }
    }
    policy_checks(atlas, findings);
}

/// The patterns of triggers that stand for no action that could be asked for.
fn idle_patterns(atlas: &AtlasManifest) -> HashSet<&str> {
    let mut patterns = Vec::new();
    let open = open_patterns(atlas);
    for gate in &atlas.checkpoints {
        if let CheckpointTrigger::ActionPre { patterns: texts }
        | CheckpointTrigger::ActionPost { patterns: texts } = &gate.trigger
        {
            let closed = |text: &&str| closed(text) && !open.iter().any(|it| overlap(it, text));
            patterns.extend(texts.iter().map(String::as_str).filter(closed));
        }
    }
    patterns.sort_unstable();
    patterns.dedup();
    if patterns.is_empty() {
        return HashSet::new();
    }
    let parsed: Vec<Option<Pattern>> = patterns
        .iter()
        .map(|text| Pattern::parse(text).ok())
        .collect();
    let numbered = (0_u32..)
        .zip(&parsed)
        .filter_map(|(number, pattern)| Some((pattern.clone()?, number)));
    let set = PatternSet::new(numbered);
    let mut used = HashSet::new();
    let mut found = Vec::new();
    for action in known(atlas) {
        found.clear();
        set.matching(action, &mut found);
        used.extend(found.iter().copied());
    }
    (0_u32..)
        .zip(patterns)
        .zip(parsed)
        // A pattern that cannot be one is an error already.
        .filter(|((number, _), pattern)| pattern.is_some() && !used.contains(number))
        .map(|((_, text), _)| text)
        .collect()
}

/// Patterns that make more actions known than have names.
fn open_patterns(atlas: &AtlasManifest) -> Vec<&str> {
    let capabilities = atlas.capabilities.iter().flat_map(|it| &it.actions);
    let policies = atlas.policies.iter().flat_map(|it| &it.actions);
    let gates = atlas.checkpoints.iter().flat_map(|it| &it.allow_actions);
    let texts = capabilities.chain(policies).chain(gates);
    texts
        .map(String::as_str)
        .filter(|text| text.contains('*'))
        .collect()
}

/// Whether two patterns may stand for the same action, as far as their first segments tell.
fn overlap(one: &str, other: &str) -> bool {
    let first = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
    let (one, other) = (first(one), first(other));
    one == other || one.contains('*') || other.contains('*')
}

/// Whether a pattern stands only for actions whose names are known: the tools
/// of MCP servers are not, and `*.delete` could stand for one of them.
fn closed(pattern: &str) -> bool {
    let first = pattern.split('.').next().unwrap_or_default();
    pattern.contains('*') && !first.contains('*') && first != "mcp"
}

fn policy_checks(atlas: &AtlasManifest, findings: &mut Findings) {
    let Some(config) = &atlas.checkpoint_config else {
        return;
    };
    let sections = [
        ("action_pre", &config.action_pre),
        ("action_post", &config.action_post),
    ];
    for (name, section) in sections {
        for (pattern, mapping) in section.iter().flat_map(|section| &section.mappings.0) {
            if mapping.require_policy_check {
                let mapping = below(&format!("/checkpoint_config/{name}/mappings"), pattern);
                findings.key_warning(
                    format!("{mapping}/require_policy_check"),
                    "`require_policy_check` changes nothing: policies are always checked"
                        .to_owned(),
                    "leave it out",
                );
            }
        }
    }
}
