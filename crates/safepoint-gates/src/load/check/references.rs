//! References to capabilities, contexts and gates, and what nobody refers to.

use std::collections::HashSet;

use super::{Names, extensions, similar};
use crate::atlas::{AtlasManifest, CheckpointTrigger, Runner};
use crate::load::finding::Findings;
use crate::load::shape::below;
use crate::load::suggest::{nearest, shown};

/// The moment when guidance ends that is not a gate.
const SESSION_END: &str = "session-end";

pub(super) fn check(atlas: &AtlasManifest, names: &Names<'_>, findings: &mut Findings) {
    let mut checker = Checker { names, findings };
    for (index, gate) in atlas.checkpoints.iter().enumerate() {
        let field = |name: &str| format!("/checkpoints/{index}/{name}");
        if let Some(ids) = gate.trigger.capabilities() {
            checker.capabilities(ids, &|| field("trigger/capability_ids"));
        }
        checker.capabilities(&gate.unlock_capabilities, &|| field("unlock_capabilities"));
        checker.capabilities(&gate.lock_capabilities, &|| field("lock_capabilities"));
        checker.contexts(&gate.inject_contexts, &|| field("inject_contexts"));
        let end = gate
            .guidance
            .as_ref()
            .and_then(|it| it.expires_after.as_deref());
        if let Some(end) = end
            && end != SESSION_END
            && !names.checkpoints.contains(end)
        {
            let near = similar(end, &names.checkpoints, checker.findings);
            let hint = match near.or_else(|| nearest(end, [SESSION_END].into_iter())) {
                Some(name) => format!("did you mean `{}`?", shown(name)),
                None => format!("name a gate of this atlas, or `{SESSION_END}`"),
            };
            let message = format!(
                "guidance ends after `{}`, and no gate is called so",
                shown(end)
            );
            checker
                .findings
                .error(field("guidance/expires_after"), message, hint);
        }
    }
    config(atlas, &mut checker);
}

fn config(atlas: &AtlasManifest, checker: &mut Checker<'_, '_, '_>) {
    let Some(config) = &atlas.checkpoint_config else {
        return;
    };
    let root = "/checkpoint_config";
    let plain = [
        ("session_start", &config.session_start),
        ("explicit_request", &config.explicit_request),
        ("error_occurred", &config.error_occurred),
        ("session_end", &config.session_end),
    ];
    for (name, section) in plain {
        if let Some(section) = section {
            checker.contexts(&section.inject_contexts, &|| {
                format!("{root}/{name}/inject_contexts")
            });
        }
    }
    let lists = [
        (
            "risk_threshold",
            config.risk_threshold.as_ref().map(|it| &it.inject_contexts),
        ),
        (
            "time_interval",
            config.time_interval.as_ref().map(|it| &it.inject_contexts),
        ),
        (
            "count_interval",
            config.count_interval.as_ref().map(|it| &it.inject_contexts),
        ),
    ];
    for (name, contexts) in lists {
        if let Some(contexts) = contexts {
            checker.contexts(contexts, &|| format!("{root}/{name}/inject_contexts"));
        }
    }
    if let Some(section) = &config.keyword_match {
        for (words, contexts) in &section.mappings.0 {
            checker.contexts(contexts, &|| {
                below(&format!("{root}/keyword_match/mappings"), words)
            });
        }
    }
    let sections = [
        ("action_pre", &config.action_pre),
        ("action_post", &config.action_post),
    ];
    for (name, section) in sections {
        for (pattern, mapping) in section.iter().flat_map(|section| &section.mappings.0) {
            checker.contexts(&mapping.inject_contexts, &|| {
                let mapping = below(&format!("{root}/{name}/mappings"), pattern);
                format!("{mapping}/inject_contexts")
            });
        }
    }
}

struct Checker<'n, 'a, 'f> {
    names: &'n Names<'a>,
    findings: &'f mut Findings,
}

impl Checker<'_, '_, '_> {
    fn capabilities(&mut self, ids: &[String], pointer: &dyn Fn() -> String) {
        dangling(
            self.findings,
            "capability",
            ids,
            &self.names.capabilities,
            pointer,
        );
    }

    fn contexts(&mut self, ids: &[String], pointer: &dyn Fn() -> String) {
        dangling(self.findings, "context", ids, &self.names.contexts, pointer);
    }
}

fn dangling(
    findings: &mut Findings,
    what: &str,
    ids: &[String],
    known: &HashSet<&str>,
    pointer: &dyn Fn() -> String,
) {
    for (index, id) in ids.iter().enumerate() {
        if known.contains(id.as_str()) {
            continue;
        }
        let section = match what {
            "capability" => "capabilities",
            _ => "context_blocks",
        };
        let hint = match similar(id, known, findings) {
            Some(name) => format!("did you mean `{}`?", shown(name)),
            None => format!("define it under `{section}`"),
        };
        let message = format!("{what} `{}` does not exist", shown(id));
        findings.error(format!("{}/{index}", pointer()), message, hint);
    }
}

pub(super) fn warn(atlas: &AtlasManifest, names: &Names<'_>, findings: &mut Findings) {
    let unlocked: HashSet<&str> = atlas
        .checkpoints
        .iter()
        .filter(|gate| gate.enabled)
        .flat_map(|gate| &gate.unlock_capabilities)
        .map(String::as_str)
        .collect();
    for (index, gate) in atlas.checkpoints.iter().enumerate() {
        for (place, id) in gate.lock_capabilities.iter().enumerate() {
            if names.capabilities.contains(id.as_str()) && !unlocked.contains(id.as_str()) {
                findings.warning(
                    format!("/checkpoints/{index}/lock_capabilities/{place}"),
                    format!("capability `{}` is locked here, and no gate unlocks it", shown(id)),
                    "once locked it stays so for the session; add `unlock_capabilities` to a gate if that is not meant",
                );
            }
        }
        if let CheckpointTrigger::Custom { trigger_id, .. } = &gate.trigger
            && !names.extensions.contains(trigger_id.as_str())
        {
            // What names its code by itself needs no extension.
            if let Some(code) = Runner::inline(trigger_id) {
                if let Runner::Cel(expression) = code {
                    let pointer = format!("/checkpoints/{index}/trigger/trigger_id");
                    let given = [extensions::OF_TRIGGERS];
                    extensions::cel(&expression, &given, &pointer, findings);
                }
                continue;
            }
            findings.warning(
                format!("/checkpoints/{index}/trigger/trigger_id"),
                format!(
                    "no extension defines `{}`, so this gate is always raised",
                    shown(trigger_id)
                ),
                "define it under `extensions`, or write `cel:…`, `wasm:…` or `https://…`",
            );
        }
    }
}
