//! Names: whether they can be one, and whether they stand for one thing.

use std::collections::HashMap;

use crate::atlas::{ATLAS_VERSION, AtlasManifest};
use crate::load::finding::Findings;
use crate::load::suggest::shown;

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    if atlas.atlas_version != ATLAS_VERSION {
        findings.error(
            "/atlas_version".to_owned(),
            format!(
                "version `{}` of the atlas format is not known",
                shown(&atlas.atlas_version)
            ),
            format!("this program reads `{ATLAS_VERSION}`"),
        );
    }
    one(&atlas.atlas_id, "atlas", "/atlas_id", findings);
    if let Some(steward) = &atlas.steward {
        one(&steward.id, "steward", "/steward/id", findings);
    }
    let gates = atlas.checkpoints.iter();
    let contexts = atlas.context_blocks.iter();
    let actions = atlas.actions.iter();
    many(
        "checkpoint",
        gates.map(|it| &it.checkpoint_id),
        |index| format!("/checkpoints/{index}/checkpoint_id"),
        findings,
    );
    many(
        "capability",
        atlas.capabilities.iter().map(|it| &it.capability_id),
        |index| format!("/capabilities/{index}/capability_id"),
        findings,
    );
    many(
        "context",
        contexts.map(|it| &it.context_id),
        |index| format!("/context_blocks/{index}/context_id"),
        findings,
    );
    many(
        "policy",
        atlas.policies.iter().map(|it| &it.policy_id),
        |index| format!("/policies/{index}/policy_id"),
        findings,
    );
    many(
        "action",
        actions.map(|it| &it.action_id),
        |index| format!("/actions/{index}/action_id"),
        findings,
    );
    many(
        "extension",
        atlas.extensions.iter().map(|it| &it.extension_id),
        |index| format!("/extensions/{index}/extension_id"),
        findings,
    );
    for (gate_index, gate) in atlas.checkpoints.iter().enumerate() {
        many(
            "question",
            gate.questions.iter().map(|it| &it.question_id),
            |index| format!("/checkpoints/{gate_index}/questions/{index}/question_id"),
            findings,
        );
    }
    // The name of a test is a sentence, so only doubles count.
    unique(
        "test",
        atlas.tests.iter().map(|it| &it.name),
        |index| format!("/tests/{index}/name"),
        findings,
    );
}

fn many<'a>(
    what: &str,
    ids: impl Iterator<Item = &'a String> + Clone,
    pointer: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    for (index, id) in ids.clone().enumerate() {
        if fault(id).is_some() {
            one(id, what, &pointer(index), findings);
        }
    }
    unique(what, ids, pointer, findings);
}

fn unique<'a>(
    what: &str,
    ids: impl Iterator<Item = &'a String>,
    pointer: impl Fn(usize) -> String,
    findings: &mut Findings,
) {
    // Most gates ask one thing: nothing to compare, and nothing to allocate.
    if ids.size_hint().1.is_some_and(|most| most < 2) {
        return;
    }
    let mut first = HashMap::new();
    for (index, id) in ids.enumerate() {
        let earlier = *first.entry(id).or_insert(index);
        if earlier != index && fault(id).is_none() {
            findings.error(
                pointer(index),
                format!("{what} `{}` is defined twice", shown(id)),
                format!("the first one is at `{}`", pointer(earlier)),
            );
        }
    }
}

fn one(id: &str, what: &str, pointer: &str, findings: &mut Findings) {
    if let Some(fault) = fault(id) {
        findings.error(
            pointer.to_owned(),
            format!("`{}` cannot name this {what}: {fault}", shown(id)),
            "use letters, digits, `.`, `-` and `_`",
        );
    }
}

/// Why `id` cannot be a name.
fn fault(id: &str) -> Option<&'static str> {
    if id.is_empty() {
        Some("it is empty")
    } else if id.chars().any(char::is_whitespace) {
        Some("it has white space in it")
    } else if id.chars().any(char::is_control) {
        Some("it has a control character in it")
    } else if id.len() > 256 {
        Some("it is longer than 256 bytes")
    } else {
        None
    }
}
