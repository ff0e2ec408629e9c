//! A request as Cedar sees it.
//!
//! Parameters have no fixed shape, and Cedar's records do. So they are
//! flattened into tags: `{"options": {"force": true}, "files": ["a"]}` becomes
//! `options.force` with `"true"` and `files.0` with `"a"`. What is too much
//! for that is an error, which the caller makes a denial; nothing is left out.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::str::FromStr;

use cedar_policy::{
    Context, Entities, Entity, EntityId, EntityTypeName, EntityUid, Request, RestrictedExpression,
};
use serde_json::Value;

use super::CedarRequest;
use crate::atlas::RiskTier;

/// How deep parameters may nest.
const MAX_DEPTH: usize = 32;
/// How many parameters there may be, flattened.
const MAX_PARAMETERS: usize = 1_024;

/// The types of entities, parsed once.
#[derive(Debug)]
pub(super) struct Names {
    agent: EntityTypeName,
    action: EntityTypeName,
    session: EntityTypeName,
    texts: EntityUid,
    numbers: EntityUid,
}

impl Names {
    /// The names of the schema.
    pub(super) fn new() -> Result<Self, String> {
        let name = |name: &str| EntityTypeName::from_str(name).map_err(|error| error.to_string());
        let id = EntityId::new("parameters");
        Ok(Self {
            agent: name("Agent")?,
            action: name("Action")?,
            session: name("Session")?,
            texts: EntityUid::from_type_name_and_id(name("Texts")?, id.clone()),
            numbers: EntityUid::from_type_name_and_id(name("Numbers")?, id),
        })
    }

    /// The request, and the entities that it refers to.
    pub(super) fn build(&self, request: &CedarRequest<'_>) -> Result<(Request, Entities), String> {
        let mut flat = Flat::default();
        flat.add(String::new(), request.parameters, MAX_DEPTH)?;
        let json = serde_json::to_string(request.parameters).map_err(|error| error.to_string())?;
        let entity = |uid: &EntityUid, tags: BTreeMap<String, RestrictedExpression>| {
            Entity::new_with_tags(uid.clone(), [], [], tags).map_err(|error| error.to_string())
        };
        let entities = Entities::from_entities(
            [
                entity(&self.texts, flat.texts)?,
                entity(&self.numbers, flat.numbers)?,
            ],
            None,
        )
        .map_err(|error| error.to_string())?;
        let context = Context::from_pairs([
            ("action".to_owned(), string(request.action)),
            ("session".to_owned(), string(request.session)),
            ("risk".to_owned(), string(request.risk.as_str())),
            (
                "risk_level".to_owned(),
                RestrictedExpression::new_long(level(request.risk)),
            ),
            (
                "unlocked".to_owned(),
                RestrictedExpression::new_set(request.unlocked.iter().map(|name| string(name))),
            ),
            (
                "parameters".to_owned(),
                RestrictedExpression::new_entity_uid(self.texts.clone()),
            ),
            (
                "numbers".to_owned(),
                RestrictedExpression::new_entity_uid(self.numbers.clone()),
            ),
            (
                "parameters_json".to_owned(),
                RestrictedExpression::new_string(json),
            ),
        ])
        .map_err(|error| error.to_string())?;
        // Not checked against the schema: it does not declare actions that no
        // policy names. The tests check that what is built here fits it.
        let request = Request::new(
            uid(&self.agent, request.principal),
            uid(&self.action, request.action),
            uid(&self.session, request.session),
            context,
            None,
        )
        .map_err(|error| error.to_string())?;
        Ok((request, entities))
    }
}

fn uid(name: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(name.clone(), EntityId::new(id))
}

fn string(text: &str) -> RestrictedExpression {
    RestrictedExpression::new_string(text.to_owned())
}

/// The number of a tier, so that policies can compare.
fn level(risk: RiskTier) -> i64 {
    match risk {
        RiskTier::Low => 0,
        RiskTier::Medium => 1,
        RiskTier::High => 2,
        RiskTier::Critical => 3,
    }
}

/// Parameters, by path.
#[derive(Default)]
struct Flat {
    texts: BTreeMap<String, RestrictedExpression>,
    numbers: BTreeMap<String, RestrictedExpression>,
}

impl Flat {
    fn add(&mut self, path: String, value: &Value, depth: usize) -> Result<(), String> {
        let below = depth
            .checked_sub(1)
            .ok_or_else(|| format!("the parameters nest deeper than {MAX_DEPTH}"))?;
        let child = |name: &str| match path.as_str() {
            "" => name.to_owned(),
            parent => format!("{parent}.{name}"),
        };
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.add(child(name), member, below)?;
                }
                return Ok(());
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.add(child(&index.to_string()), item, below)?;
                }
                return Ok(());
            }
            // What is not given, and what is nothing, are the same to a policy.
            Value::Null => return Ok(()),
            Value::Number(number) => {
                if let Some(number) = number.as_i64() {
                    let number = RestrictedExpression::new_long(number);
                    self.numbers.insert(path.clone(), number);
                }
            }
            Value::String(_) | Value::Bool(_) => {}
        }
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // `{"a.b": 1, "a": {"b": 2}}` would let one hide the other.
        match self.texts.entry(path) {
            Entry::Occupied(entry) => Err(format!(
                "two parameters would both be `{}`",
                safepoint_model::text::line(entry.key()).text
            )),
            Entry::Vacant(entry) => {
                entry.insert(RestrictedExpression::new_string(text));
                if self.texts.len() > MAX_PARAMETERS {
                    return Err(format!("there are more than {MAX_PARAMETERS} parameters"));
                }
                Ok(())
            }
        }
    }
}
