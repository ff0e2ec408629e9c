//! The shape of an atlas: its tree against its JSON Schema.
//!
//! Only the words that the schema of an atlas is made of are known here. This
//! runs after the types have refused, to list everything and to name it well;
//! what it overlooks is still told in the words of the types.

pub(super) mod scalar;

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::finding::Findings;
use super::schema;
use super::suggest::{nearest, one_of, shown};
use super::tree::{NodeId, Tree, What};
use super::{Place, Problem, Severity};

/// How many values are looked at. Aliases can make a short text very long.
const MOST: usize = 1_000_000;

/// How deep values lie inside each other; an alias can stand within itself.
const DEEPEST: usize = 80;

/// Lists what is wrong with the shape. What comes back is the atlas with the
/// names of its fields and its words put right, if nothing else was wrong.
pub(super) fn walk(tree: &Tree, json: bool, findings: &mut Findings) -> Option<Value> {
    let mut walk = Walk {
        tree,
        schema: schema::shared(),
        findings,
        room: MOST,
        depth: 0,
        strict: json,
        repaired: true,
    };
    let value = walk.value(tree.root(), schema::shared(), "", None);
    walk.repaired.then_some(value)
}

struct Walk<'a> {
    tree: &'a Tree,
    schema: &'a Value,
    findings: &'a mut Findings,
    room: usize,
    depth: usize,
    /// Whether `300` is never a text, nor `"300"` a number.
    strict: bool,
    repaired: bool,
}

impl<'a> Walk<'a> {
    /// Looks at one value. `key` is what stands before it.
    fn value(
        &mut self,
        id: NodeId,
        schema: &'a Value,
        pointer: &str,
        key: Option<NodeId>,
    ) -> Value {
        let room = self.room.checked_sub(1).filter(|_| self.depth < DEEPEST);
        let (Some(room), Some(node)) = (room, self.tree.node(id)) else {
            self.repaired = false;
            return Value::Null;
        };
        self.room = room;
        self.depth += 1;
        let schema = self.resolve(schema);
        let at = self.at(id, key);
        let value = match &node.what {
            What::Scalar { text, plain } => self.scalar(text, *plain, schema, pointer, at),
            What::List(items) => self.list(items, schema, pointer, at),
            What::Map(entries, _) => self.map(entries, schema, pointer, at),
            What::Alias(_) => Value::Null,
        };
        self.depth -= 1;
        value
    }

    fn list(
        &mut self,
        items: &[NodeId],
        schema: &'a Value,
        pointer: &str,
        at: Option<Place>,
    ) -> Value {
        let Some(schema) = self.branch(schema, "array") else {
            return self.unexpected("a list", schema, pointer, at);
        };
        let inner = schema.get("items").unwrap_or(&Value::Bool(true));
        let items = items.iter().enumerate();
        Value::Array(
            items
                .map(|(index, item)| self.value(*item, inner, &format!("{pointer}/{index}"), None))
                .collect(),
        )
    }

    fn map(
        &mut self,
        entries: &[(NodeId, NodeId)],
        schema: &'a Value,
        pointer: &str,
        at: Option<Place>,
    ) -> Value {
        let unique = self.unique(entries, pointer);
        let schema = match self.tagged(schema) {
            None => schema,
            Some(kinds) => match self.kind(kinds, &unique, pointer, at) {
                Some(kind) => {
                    let strict = std::mem::replace(&mut self.strict, true);
                    // The word was looked at; one that is misspelled is not told of twice.
                    let rest: Vec<_> = unique.into_iter().filter(|it| it.1 != "type").collect();
                    let known = tag(kind).map(|name| ("type".to_owned(), name.into()));
                    let known = known.into_iter().collect();
                    let value = self.fields(&rest, kind, known, pointer, at);
                    self.strict = strict;
                    return value;
                }
                None => return Value::Null,
            },
        };
        match self.branch(schema, "object") {
            None => self.unexpected("a mapping", schema, pointer, at),
            Some(schema) => self.fields(&unique, schema, Map::new(), pointer, at),
        }
    }

    /// The entries with keys that can be told apart; the rest is reported.
    fn unique(
        &mut self,
        entries: &[(NodeId, NodeId)],
        pointer: &str,
    ) -> Vec<(NodeId, &'a str, NodeId)> {
        let mut first = HashMap::new();
        let mut unique = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let place = self.tree.place_of(*key);
            let Some(text) = self.tree.key(*key) else {
                self.fault(pointer, place, "a key must be a text".to_owned(), None);
                continue;
            };
            let below = below(pointer, text);
            if text == "<<" && !self.strict {
                let message = "merge keys (`<<`) are not read".to_owned();
                self.fault(
                    &below,
                    place,
                    message,
                    Some("write the fields out".to_owned()),
                );
                continue;
            }
            match first.insert(text, place) {
                None => unique.push((*key, text, *value)),
                Some(earlier) => {
                    let hint =
                        earlier.map(|place| format!("it stands on line {} already", place.line));
                    self.problem(
                        &below,
                        place,
                        format!("key `{}` occurs twice", shown(text)),
                        hint,
                    );
                    first.insert(text, earlier);
                }
            }
        }
        unique
    }

    /// Looks at the fields of a mapping, beside those that are known already.
    fn fields(
        &mut self,
        entries: &[(NodeId, &'a str, NodeId)],
        schema: &'a Value,
        mut value: Map<String, Value>,
        pointer: &str,
        at: Option<Place>,
    ) -> Value {
        let fields = schema.get("properties").and_then(Value::as_object);
        let others = schema
            .get("additionalProperties")
            .unwrap_or(&Value::Bool(true));
        let known = fields.into_iter().flat_map(|fields| fields.keys());
        let given: HashSet<&str> = entries.iter().map(|(_, text, _)| *text).collect();
        let mut free: Vec<&'a str> = known
            .map(String::as_str)
            .filter(|name| !given.contains(name) && !value.contains_key(*name))
            .collect();
        for (key, text, id) in entries {
            let below = below(pointer, text);
            if let Some(field) = fields.and_then(|fields| fields.get(*text)) {
                let field = self.value(*id, field, &below, Some(*key));
                value.insert((*text).to_owned(), field);
            } else if others != &Value::Bool(false) {
                let other = self.value(*id, others, &below, Some(*key));
                value.insert((*text).to_owned(), other);
            } else if let Some(name) = self.unknown(*key, text, &free, &below)
                && let Some(field) = fields.and_then(|fields| fields.get(name))
            {
                free.retain(|free| *free != name);
                let field = self.value(*id, field, &below, Some(*key));
                value.insert(name.to_owned(), field);
            }
        }
        self.missing(schema, &value, pointer, at);
        if let Some(most) = schema.get("maxProperties").and_then(Value::as_u64)
            && entries.len() as u64 > most
        {
            let message = format!("{} fields are given where one is expected", entries.len());
            self.fault(pointer, at, message, None);
        }
        Value::Object(value)
    }

    /// Reports a field that does not exist; comes back with the one that may be meant.
    fn unknown(
        &mut self,
        key: NodeId,
        text: &str,
        free: &[&'a str],
        pointer: &str,
    ) -> Option<&'a str> {
        let meant = nearest(text, free.iter().copied());
        let hint = match meant {
            Some(name) => format!("did you mean `{name}`?"),
            None if free.is_empty() => "leave it out".to_owned(),
            None => format!("what can stand here is {}", one_of(free.iter().copied())),
        };
        let place = self.tree.place_of(key);
        let message = format!("unknown field `{}`", shown(text));
        self.problem(pointer, place, message, Some(hint));
        meant
    }

    fn missing(
        &mut self,
        schema: &Value,
        value: &Map<String, Value>,
        pointer: &str,
        at: Option<Place>,
    ) {
        let required = schema.get("required").and_then(Value::as_array);
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            if !value.contains_key(name) {
                let field = schema.get("properties").and_then(|fields| fields.get(name));
                let purpose = field
                    .and_then(|field| field.get("description"))
                    .and_then(Value::as_str);
                let hint = purpose.map(|purpose| format!("`{name}`: {}", first_line(purpose)));
                self.fault(pointer, at, format!("field `{name}` is missing"), hint);
            }
        }
        if schema.get("minProperties").is_some() && value.is_empty() {
            let fields = schema.get("properties").and_then(Value::as_object);
            let names = fields.into_iter().flat_map(|fields| fields.keys());
            let hint = format!("name one of {}", one_of(names.map(String::as_str)));
            self.fault(pointer, at, "nothing is named here".to_owned(), Some(hint));
        }
    }

    /// The alternatives of a schema whose `type` field says which it is.
    fn tagged(&self, schema: &'a Value) -> Option<&'a [Value]> {
        let kinds = schema.get("oneOf")?.as_array()?;
        kinds
            .iter()
            .all(|kind| tag(kind).is_some())
            .then_some(kinds)
    }

    /// The alternative that the `type` field names, or that may be meant.
    fn kind(
        &mut self,
        kinds: &'a [Value],
        entries: &[(NodeId, &str, NodeId)],
        pointer: &str,
        at: Option<Place>,
    ) -> Option<&'a Value> {
        let names = kinds.iter().filter_map(tag);
        let Some((key, _, id)) = entries.iter().find(|(_, text, _)| *text == "type") else {
            let hint = format!("name one of {}", one_of(names));
            self.fault(
                pointer,
                at,
                "field `type` is missing".to_owned(),
                Some(hint),
            );
            return None;
        };
        let given = self.tree.key(*id);
        let named = |name: &str| kinds.iter().find(|kind| tag(kind) == Some(name));
        if let Some(found) = given.and_then(named) {
            return Some(found);
        }
        let place = self.at(*id, Some(*key));
        let meant = self.unknown_value(given, names, &below(pointer, "type"), place);
        meant.and_then(named)
    }

    /// Reports a value that is none of `names`; comes back with the one that may be meant.
    fn unknown_value<'n>(
        &mut self,
        given: Option<&str>,
        names: impl Iterator<Item = &'n str> + Clone,
        pointer: &str,
        at: Option<Place>,
    ) -> Option<&'n str> {
        let message = match given {
            Some("") | None => "one of a few words is expected here".to_owned(),
            Some(given) => format!("`{}` is not known here", shown(given)),
        };
        let list = one_of(names.clone());
        let meant = given.and_then(|given| nearest(given, names));
        match meant {
            Some(name) => {
                let hint = format!("did you mean `{name}`? It is one of {list}");
                self.problem(pointer, at, message, Some(hint));
            }
            None => self.fault(pointer, at, message, Some(format!("it is one of {list}"))),
        }
        meant
    }

    /// What `schema` says itself or in one of its alternatives about values of this type.
    fn branch(&self, schema: &'a Value, kind: &str) -> Option<&'a Value> {
        let schema = self.resolve(schema);
        if is_anything(schema) || has_type(schema, kind) {
            return Some(schema);
        }
        let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"));
        let alternatives = alternatives.and_then(Value::as_array)?;
        alternatives
            .iter()
            .find_map(|schema| self.branch(schema, kind))
    }

    fn resolve(&self, schema: &'a Value) -> &'a Value {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| self.schema.pointer(pointer));
        target.unwrap_or(schema)
    }

    fn unexpected(
        &mut self,
        found: &str,
        schema: &'a Value,
        pointer: &str,
        at: Option<Place>,
    ) -> Value {
        let expected = self.expected(schema);
        self.fault(
            pointer,
            at,
            format!("expected {expected}, found {found}"),
            None,
        );
        Value::Null
    }

    fn at(&self, id: NodeId, key: Option<NodeId>) -> Option<Place> {
        match key {
            Some(key) if self.tree.is_blank(id) => self.tree.place_of(key),
            _ => self.tree.place_of(id),
        }
    }

    /// A problem after which the rest cannot be judged.
    fn fault(
        &mut self,
        pointer: &str,
        place: Option<Place>,
        message: String,
        hint: Option<String>,
    ) {
        self.repaired = false;
        self.problem(pointer, place, message, hint);
    }

    fn problem(
        &mut self,
        pointer: &str,
        place: Option<Place>,
        message: String,
        hint: Option<String>,
    ) {
        self.findings.push(Problem {
            severity: Severity::Error,
            message,
            hint,
            pointer: pointer.to_owned(),
            place,
        });
    }
}

/// `pointer` and one step more.
pub(super) fn below(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

fn tag(kind: &Value) -> Option<&str> {
    kind.get("properties")?.get("type")?.get("const")?.as_str()
}

fn is_anything(schema: &Value) -> bool {
    let says = ["type", "enum", "const", "oneOf", "anyOf"];
    !says.iter().any(|word| schema.get(word).is_some())
}

fn has_type(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(given)) => given == kind,
        Some(Value::Array(given)) => given.iter().any(|given| given == kind),
        _ => false,
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
