//! The taxonomy: what an application adds to the base roles and types.
//!
//! It is read whole or not at all, and does not change while a run lasts. A
//! sound one is never parsed twice; of a bad one every mistake is listed, with
//! its place in the text.

mod check;
mod document;
mod places;
mod shape;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use safepoint_model::{json, yaml};

pub use document::{Capability, Document, EnvelopeType, Permission, RecordType, Role};

use crate::object::Object;
use crate::record::Payload;
use crate::rejection::{Reason, Rejection};
use crate::role::{BASE_TYPES, BaseRole, Name};

/// The versions of the protocol that a taxonomy may be written for.
pub const PROTOCOL_VERSIONS: [&str; 3] = ["0.1", "v0.1", "wacp-v0.1"];

/// Something wrong with a taxonomy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong, and what to do about it.
    pub message: String,
    /// Where in the document, as a JSON Pointer; empty where only a place is known.
    pub pointer: String,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The column, from 1, in characters.
    pub column: Option<usize>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, " at line {line} column {column}"),
            _ => Ok(()),
        }
    }
}

/// A taxonomy that can be used.
#[derive(Clone, Debug)]
pub struct Taxonomy {
    document: Document,
    roles: BTreeMap<Name, Effective>,
    types: BTreeMap<Name, RecordType>,
}

/// What a role amounts to.
#[derive(Clone, Debug)]
struct Effective {
    base: BaseRole,
    creates: BTreeSet<String>,
}

impl Taxonomy {
    /// The base roles and types, and nothing else.
    pub fn empty() -> Self {
        Self::of(Document::default())
    }

    /// Reads a taxonomy, in YAML or JSON, or lists everything that is wrong with it.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        let (mut problems, document) = match read_document(text) {
            Ok(document) => (check::problems(&document), Some(document)),
            Err(first) => match shape::problems(text) {
                all if all.len() > 1 => (all, None),
                _ => return Err(vec![first]),
            },
        };
        if let (true, Some(document)) = (problems.is_empty(), document) {
            return Ok(Self::of(document));
        }
        let places = places::of(text);
        for problem in &mut problems {
            if let Some((line, column)) = places::nearest(&places, &problem.pointer) {
                (problem.line, problem.column) = (Some(line), Some(column));
            }
        }
        problems.sort_by_key(|problem| (problem.line, problem.column));
        Err(problems)
    }

    fn of(document: Document) -> Self {
        let types: BTreeMap<Name, RecordType> = document
            .checkpoint_types
            .iter()
            .map(|kind| (kind.name.clone(), kind.clone()))
            .collect();
        let mut roles = BTreeMap::new();
        for base in BaseRole::ALL {
            let mut creates: BTreeSet<String> =
                base.creates().map(str::to_owned).into_iter().collect();
            creates.extend(types_for(&types, &Name::from(*base)));
            let effective = Effective {
                base: *base,
                creates,
            };
            roles.insert(Name::from(*base), effective);
        }
        for role in &document.roles {
            // What cannot be extended was refused before.
            if let Some(base) = role.extends.base() {
                let creates = role_creates(role, base, &types);
                roles.insert(role.name.clone(), Effective { base, creates });
            }
        }
        Self {
            document,
            roles,
            types,
        }
    }

    /// The document that it was read from.
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The base role of `role`, if there is such a role.
    pub fn base_of(&self, role: &Name) -> Option<BaseRole> {
        self.roles.get(role).map(|effective| effective.base)
    }

    /// Whether a record of type `kind` with this payload may be created by `role`.
    ///
    /// The type is looked at before the role, and what the type asks for is structure.
    pub fn permits(&self, role: &Name, kind: &str, payload: &Payload) -> Result<(), Rejection> {
        let shown = safepoint_model::text::line(kind).text;
        let registered = self.types.iter().find(|(name, _)| name.as_str() == kind);
        if registered.is_none() && !BASE_TYPES.contains(&kind) {
            let detail =
                format!("`{shown}` is neither `artifact` nor `observation` nor in the taxonomy");
            return Err(Rejection::new(Reason::InvalidType, detail));
        }
        let required = registered.map_or(&[][..], |(_, found)| &found.required_fields);
        if let Some(missing) = required.iter().find(|field| !payload.has(field)) {
            let missing = safepoint_model::text::line(missing).text;
            return Err(Rejection::structure(format!(
                "a checkpoint of type `{shown}` needs `payload.{missing}`"
            )));
        }
        let creates = self.roles.get(role).map(|effective| &effective.creates);
        if creates.is_some_and(|creates| creates.contains(kind)) {
            return Ok(());
        }
        let detail = format!("the role `{role}` does not create checkpoints of type `{shown}`");
        Err(Rejection::new(Reason::PermissionDenied, detail))
    }
}

/// The registered types that name `role`.
fn types_for<'a>(
    types: &'a BTreeMap<Name, RecordType>,
    role: &'a Name,
) -> impl Iterator<Item = String> + 'a {
    let named = move |(_, kind): &(&Name, &RecordType)| kind.permitted_roles.contains(role);
    types.iter().filter(named).map(|(name, _)| name.to_string())
}

/// What a derived role creates: base, then `remove`, then `add`; an override stands for itself.
///
/// A registered type counts only where it names the role, so both must agree.
fn role_creates(
    role: &Role,
    base: BaseRole,
    types: &BTreeMap<Name, RecordType>,
) -> BTreeSet<String> {
    let named: BTreeSet<String> = types_for(types, &role.name).collect();
    let agreed = |kind: &String| BASE_TYPES.contains(&kind.as_str()) || named.contains(kind);
    if let Some(instead) = role
        .instead
        .as_ref()
        .and_then(|other| other.checkpoint_types.as_ref())
    {
        return instead
            .iter()
            .filter(|kind| agreed(kind))
            .cloned()
            .collect();
    }
    let mut creates: BTreeSet<String> = base.creates().map(str::to_owned).into_iter().collect();
    creates.extend(named.iter().cloned());
    for removed in role.remove.iter().filter_map(Capability::created_type) {
        creates.remove(removed);
    }
    let added = role.add.iter().filter_map(Capability::created_type);
    creates.extend(added.map(str::to_owned).filter(agreed));
    creates
}

fn read_document(text: &str) -> Result<Document, Problem> {
    // JSON first where it may be: its reader says more exactly what is wrong.
    if text.trim_start().starts_with('{')
        && let Ok(Object(document)) = json::read_as(text.as_bytes(), json::Limits::default())
    {
        return Ok(document);
    }
    let read = yaml::read_as::<Object<Document>>(text);
    read.map(|object| object.0).map_err(|error| Problem {
        message: safepoint_model::text::line(&error.message).text,
        pointer: String::new(),
        line: error.line,
        column: error.column,
    })
}

#[cfg(test)]
mod tests;
