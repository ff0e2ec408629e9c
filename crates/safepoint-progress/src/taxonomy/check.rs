//! Everything that can be wrong with a taxonomy whose shape is right.

use std::collections::BTreeSet;

use safepoint_model::text;

use super::document::{Action, Document, Role};
use super::{PROTOCOL_VERSIONS, Problem};
use crate::role::{BASE_TYPES, BaseRole, Name};

/// Types of messages that are always there.
const BASE_ENVELOPES: [&str; 3] = ["directive", "feedback", "query"];

/// All problems, without their places.
pub(super) fn problems(document: &Document) -> Vec<Problem> {
    let mut found = Found::default();
    head(document, &mut found);
    let roles: BTreeSet<&str> = BaseRole::ALL
        .iter()
        .map(|role| role.as_str())
        .chain(document.roles.iter().map(|role| role.name.as_str()))
        .collect();
    let types: BTreeSet<&str> = BASE_TYPES
        .into_iter()
        .chain(
            document
                .checkpoint_types
                .iter()
                .map(|kind| kind.name.as_str()),
        )
        .collect();

    let base_roles: Vec<&str> = BaseRole::ALL.iter().map(|role| role.as_str()).collect();
    unique(
        "roles",
        &base_roles,
        document.roles.iter().map(|role| &role.name),
        &mut found,
    );
    unique(
        "envelope_types",
        &BASE_ENVELOPES,
        document.envelope_types.iter().map(|kind| &kind.name),
        &mut found,
    );
    unique(
        "checkpoint_types",
        &BASE_TYPES,
        document.checkpoint_types.iter().map(|kind| &kind.name),
        &mut found,
    );
    for (place, role) in document.roles.iter().enumerate() {
        derived(
            &format!("/roles/{place}"),
            role,
            document,
            &types,
            &mut found,
        );
    }
    for (place, kind) in document.checkpoint_types.iter().enumerate() {
        let at = format!("/checkpoint_types/{place}");
        if kind.permitted_roles.is_empty() {
            let message = format!("no role may create the type `{}`; name one", kind.name);
            found.add(format!("{at}/permitted_roles"), message);
        }
        for (place, role) in kind.permitted_roles.iter().enumerate() {
            let at = format!("{at}/permitted_roles/{place}");
            known_role(at.clone(), role, &roles, &mut found);
            if role.base() == Some(BaseRole::Coordinator) {
                found.add(
                    at,
                    "the coordinator creates no checkpoints of any type".to_owned(),
                );
            }
        }
        for (place, field) in kind.required_fields.iter().enumerate() {
            if field.trim().is_empty() {
                let message = "a required field has no name".to_owned();
                found.add(format!("{at}/required_fields/{place}"), message);
            }
        }
    }
    for (place, kind) in document.envelope_types.iter().enumerate() {
        let at = format!("/envelope_types/{place}/permissions");
        if kind.permissions.is_empty() {
            let message = format!(
                "nobody may send the envelope `{}`; name a permission",
                kind.name
            );
            found.add(at.clone(), message);
        }
        for (place, permission) in kind.permissions.iter().enumerate() {
            known_role(
                format!("{at}/{place}/sender_role"),
                &permission.sender_role,
                &roles,
                &mut found,
            );
            known_role(
                format!("{at}/{place}/receiver_role"),
                &permission.receiver_role,
                &roles,
                &mut found,
            );
        }
    }
    found.0
}

#[derive(Default)]
struct Found(Vec<Problem>);

impl Found {
    fn add(&mut self, pointer: String, message: String) {
        self.0.push(Problem {
            message,
            pointer,
            line: None,
            column: None,
        });
    }
}

fn head(document: &Document, found: &mut Found) {
    for (field, value) in [("id", &document.id), ("version", &document.version)] {
        if value.trim().is_empty() {
            found.add(format!("/{field}"), format!("`{field}` is empty"));
        }
    }
    if !PROTOCOL_VERSIONS.contains(&document.protocol_version.as_str()) {
        let written = text::line(&document.protocol_version).text;
        let message = format!("`protocol_version` is `{written}`, and only `0.1` is known");
        found.add("/protocol_version".to_owned(), message);
    }
    if document.signal_types.is_some() {
        let message = "signals are a closed set; take `signal_types` out".to_owned();
        found.add("/signal_types".to_owned(), message);
    }
}

fn unique<'a>(list: &str, base: &[&str], names: impl Iterator<Item = &'a Name>, found: &mut Found) {
    let mut seen = BTreeSet::new();
    for (place, name) in names.enumerate() {
        let at = format!("/{list}/{place}/name");
        if base.contains(&name.as_str()) {
            found.add(at, format!("`{name}` is a base name; choose another"));
        } else if !seen.insert(name) {
            found.add(at, format!("`{name}` is there twice; choose another name"));
        }
    }
}

fn derived(at: &str, role: &Role, document: &Document, types: &BTreeSet<&str>, found: &mut Found) {
    let message = match role.extends.base() {
        Some(BaseRole::Worker | BaseRole::Observer) => None,
        Some(BaseRole::Coordinator) => {
            Some("no role extends the coordinator; extend `worker` or `observer`".to_owned())
        }
        None if document
            .roles
            .iter()
            .any(|other| other.name == role.extends) =>
        {
            Some(format!(
                "`{}` is itself derived; extend `worker` or `observer`",
                role.extends
            ))
        }
        None => Some(format!(
            "there is no role `{}`; extend `worker` or `observer`",
            role.extends
        )),
    };
    if let Some(message) = message {
        found.add(format!("{at}/extends"), message);
    }
    for (list, capabilities) in [("add", &role.add), ("remove", &role.remove)] {
        for (place, capability) in capabilities.iter().enumerate() {
            if capability.action == Action::Create {
                known_type(
                    format!("{at}/{list}/{place}"),
                    &capability.target,
                    types,
                    found,
                );
            }
        }
    }
    let instead = role
        .instead
        .as_ref()
        .and_then(|instead| instead.checkpoint_types.as_deref());
    for (place, kind) in instead.unwrap_or_default().iter().enumerate() {
        known_type(
            format!("{at}/override/checkpoint_types/{place}"),
            kind,
            types,
            found,
        );
    }
}

fn known_role(at: String, role: &Name, roles: &BTreeSet<&str>, found: &mut Found) {
    if !roles.contains(role.as_str()) {
        found.add(at, format!("there is no role `{role}`"));
    }
}

fn known_type(at: String, kind: &str, types: &BTreeSet<&str>, found: &mut Found) {
    if !types.contains(kind) {
        let shown = text::line(kind).text;
        found.add(
            at,
            format!("there is no checkpoint type `{shown}`; register it"),
        );
    }
}
