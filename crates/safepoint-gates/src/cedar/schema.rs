//! What policies can speak of: the schema that they are validated against.
//!
//! The names of actions are open, and Cedar wants every action declared. So
//! the schema is made for one policy set: each action that its text names is
//! declared, and one more that stands for all others. They all have the same
//! context, so what holds for one holds for any that a request may bring. This
//! never decides anything.

use std::collections::BTreeSet;

use cedar_policy::{PolicySet, Schema};
use safepoint_model::text;

use super::{CedarError, mistake};

/// The types, and the context of every action.
pub(super) const TYPES: &str = r#"
entity Agent;
entity Session;
entity Texts tags String;
entity Numbers tags Long;
type Request = {
  "action": String,
  "session": String,
  "risk": String,
  "risk_level": Long,
  "unlocked": Set<String>,
  "parameters": Texts,
  "numbers": Numbers,
  "parameters_json": String,
};
"#;

/// The action that stands for those that no policy names.
const ANY_OTHER: &str = "(any other action)";
/// The most actions that one policy set may name.
const MAX_ACTIONS: usize = 256;

/// The schema of requests, for the actions that `policies` name.
pub(super) fn schema_for(policies: &PolicySet) -> Result<Schema, Vec<CedarError>> {
    let mut actions = BTreeSet::from([ANY_OTHER.to_owned()]);
    let mut errors = Vec::new();
    for policy in policies.policies() {
        for literal in policy.entity_literals() {
            if literal.type_name().to_string() != "Action" {
                continue;
            }
            let id: &str = literal.id().unescaped();
            let name = id.to_owned();
            if name.contains('*') && actions.insert(name.clone()) {
                errors.push(mistake(
                    format!(
                        "`Action::\"{}\"` is one action of that very name, not a pattern: write `when {{ context.action like \"…\" }}`",
                        text::shorten(&text::line(&name).text, 100)
                    ),
                    None,
                ));
            }
            actions.insert(name);
        }
    }
    if actions.len() > MAX_ACTIONS {
        errors.push(mistake(
            format!("the policies name more than {MAX_ACTIONS} actions: use `context.action like`"),
            None,
        ));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let names: Vec<String> = actions.iter().map(|name| quoted(name)).collect();
    let source = format!(
        "{TYPES}\naction {} appliesTo {{ principal: [Agent], resource: [Session], context: Request }};\n",
        names.join(", ")
    );
    Schema::from_cedarschema_str(&source)
        .map(|(schema, _warnings)| schema)
        .map_err(|error| vec![mistake(text::line(&error.to_string()).text, None)])
}

/// A name as a string of a schema.
fn quoted(name: &str) -> String {
    let escaped: String = name
        .chars()
        .map(|character| match character {
            '"' | '\\' => format!("\\{character}"),
            ' '..='~' => character.to_string(),
            _ => format!("\\u{{{:x}}}", u32::from(character)),
        })
        .collect();
    format!("\"{escaped}\"")
}
