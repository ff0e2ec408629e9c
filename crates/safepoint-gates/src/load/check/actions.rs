//! Actions: every place that names one, by name or by pattern.

use std::collections::HashSet;

use crate::atlas::{AtlasManifest, CheckpointTrigger};
use crate::load::finding::Findings;
use crate::load::shape::below;
use crate::load::suggest::shown;
use crate::pattern::Pattern;
use crate::schema::is_simple;

/// What a shell line, a tool call or a command is turned into.
pub(super) const BUILT_IN: [&str; 24] = [
    "agent.delegate",
    "db.drop",
    "db.read",
    "db.write",
    "file.chmod",
    "file.delete",
    "file.move",
    "file.read",
    "file.write",
    "git.commit",
    "git.fetch",
    "git.push",
    "git.read",
    "git.rewrite",
    "net.fetch",
    "net.send",
    "package.install",
    "package.publish",
    "process.exec",
    "process.kill",
    "secret.read",
    "shell.opaque",
    "system.change",
    "workspace.integrate",
];

/// Built in as well, and never an agent's.
const CONTROL: &str = "safepoint.control";

/// The tools of MCP servers have names that no atlas lists.
const MCP: &str = "mcp.";

/// Why an action is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::load) enum Role {
    /// It belongs to a capability.
    Capability,
    /// It raises a gate, before or after.
    Trigger,
    /// Passing a gate allows it.
    Allow,
    /// Passing a gate denies it.
    Deny,
    /// A policy is about it.
    Policy,
    /// It calls for a context.
    Context,
    /// It is a key of `checkpoint_config`.
    Config,
}

/// A place that names actions.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Reference<'a> {
    pub(in crate::load) text: &'a str,
    pub(in crate::load) role: Role,
    /// The place of the owner in its list.
    pub(in crate::load) owner: usize,
    list: &'static str,
    field: &'static str,
    index: usize,
}

impl Reference<'_> {
    pub(in crate::load) fn pointer(&self) -> String {
        match self.role {
            Role::Config => below(
                &format!("/checkpoint_config/{}/mappings", self.field),
                self.text,
            ),
            _ => format!(
                "/{}/{}/{}/{}",
                self.list, self.owner, self.field, self.index
            ),
        }
    }
}

/// Shows every place that names actions, in the order of the file.
pub(in crate::load) fn visit<'a>(atlas: &'a AtlasManifest, mut see: impl FnMut(Reference<'a>)) {
    let mut all = |role, list, owner, field, texts: &'a [String]| {
        for (index, text) in texts.iter().enumerate() {
            see(Reference {
                text,
                role,
                owner,
                list,
                field,
                index,
            });
        }
    };
    for (owner, it) in atlas.capabilities.iter().enumerate() {
        all(
            Role::Capability,
            "capabilities",
            owner,
            "actions",
            &it.actions,
        );
    }
    for (owner, it) in atlas.checkpoints.iter().enumerate() {
        let list = "checkpoints";
        if let CheckpointTrigger::ActionPre { patterns }
        | CheckpointTrigger::ActionPost { patterns } = &it.trigger
        {
            all(Role::Trigger, list, owner, "trigger/patterns", patterns);
        }
        all(Role::Allow, list, owner, "allow_actions", &it.allow_actions);
        all(Role::Deny, list, owner, "deny_actions", &it.deny_actions);
    }
    for (owner, it) in atlas.context_blocks.iter().enumerate() {
        all(
            Role::Context,
            "context_blocks",
            owner,
            "actions",
            &it.actions,
        );
    }
    for (owner, it) in atlas.policies.iter().enumerate() {
        all(Role::Policy, "policies", owner, "actions", &it.actions);
    }
    let Some(config) = &atlas.checkpoint_config else {
        return;
    };
    let sections = [
        ("action_pre", &config.action_pre),
        ("action_post", &config.action_post),
    ];
    for (field, section) in sections {
        for (text, _) in section.iter().flat_map(|section| &section.mappings.0) {
            let (role, list) = (Role::Config, "");
            see(Reference {
                text,
                role,
                owner: 0,
                list,
                field,
                index: 0,
            });
        }
    }
}

/// The names an atlas knows: those it defines, those it refers to, and those built in.
pub(super) fn known(atlas: &AtlasManifest) -> HashSet<&str> {
    let mut known: HashSet<&str> = BUILT_IN.into_iter().chain([CONTROL]).collect();
    known.extend(atlas.actions.iter().map(|it| it.action_id.as_str()));
    visit(atlas, |reference| {
        if !reference.text.contains('*') {
            known.insert(reference.text);
        }
    });
    known
}

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    visit(atlas, |reference| {
        if let Err(error) = Pattern::parse(reference.text) {
            let hint =
                "write names like `ticket.delete`, and patterns like `ticket.*` or `*.delete`";
            if reference.role == Role::Config {
                findings.key_error(reference.pointer(), error.to_string(), hint);
            } else {
                findings.error(reference.pointer(), error.to_string(), hint);
            }
        }
    });
    for (index, action) in atlas.actions.iter().enumerate() {
        let id = action.action_id.as_str();
        if id.contains('*') {
            findings.error(
                format!("/actions/{index}/action_id"),
                format!("`{}` is a pattern, and an action has one name", shown(id)),
                "define each action by itself",
            );
        } else if let Err(error) = Pattern::parse(id) {
            let pointer = format!("/actions/{index}/action_id");
            if !findings.has_error_at(&pointer) {
                findings.error(pointer, error.to_string(), "write it like `ticket.delete`");
            }
        }
        let schemas = [
            ("parameters_schema", &action.parameters_schema),
            ("returns_schema", &action.returns_schema),
        ];
        for (field, schema) in schemas {
            if let Some(schema) = schema
                && !is_simple(schema)
                && let Err(error) = crate::load::validator(schema)
            {
                findings.error(
                    format!("/actions/{index}/{field}"),
                    format!("this is not a JSON Schema: {}", shown(&error)),
                    None,
                );
            }
        }
    }
}

/// Whether an action needs no definition.
fn is_built_in(action: &str) -> bool {
    BUILT_IN.contains(&action) || action == CONTROL || action.starts_with(MCP)
}

pub(super) fn warn(atlas: &AtlasManifest, findings: &mut Findings) {
    let mut told: HashSet<&str> = atlas
        .actions
        .iter()
        .map(|it| it.action_id.as_str())
        .collect();
    visit(atlas, |reference| {
        let name = reference.text;
        if name.contains('*') || is_built_in(name) || Pattern::parse(name).is_err() {
            return;
        }
        if told.insert(name) {
            let message = format!("action `{}` is not defined", shown(name));
            let hint = "it is taken as an action of low risk with any parameters; define it under `actions`";
            if reference.role == Role::Config {
                findings.key_warning(reference.pointer(), message, hint);
            } else {
                findings.warning(reference.pointer(), message, hint);
            }
        }
    });
}
