//! Every mistake of a taxonomy whose shape is wrong somewhere, so that whoever wrote it sees
//! them at once.
//!
//! It is only asked when the document was refused already: nothing is ever accepted here.

use std::collections::BTreeSet;

use safepoint_model::{text, yaml};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::document::Refused;
use super::{Document, PROTOCOL_VERSIONS, Problem, check};
use crate::object::Object;

const HEAD: [&str; 3] = ["id", "version", "protocol_version"];
const ROLE: &[&str] = &[
    "name",
    "description",
    "extends",
    "add",
    "remove",
    "override",
];
const ENVELOPE: &[&str] = &["name", "description", "permissions"];
const RECORD: &[&str] = &["name", "description", "permitted_roles", "required_fields"];

/// All that is wrong with it, without places; nothing where it cannot be read at all.
pub(super) fn problems(text: &str) -> Vec<Problem> {
    let Ok(Value::Object(members)) = yaml::read_as::<Value>(text).map(scalars) else {
        return Vec::new();
    };
    let mut found = Found::default();
    let mut document = Document::default();
    let lists = ["roles", "envelope_types", "checkpoint_types"];
    for key in members.keys() {
        let known = HEAD.contains(&key.as_str()) || lists.contains(&key.as_str());
        if !known && key != "signal_types" {
            found.unknown("", key);
        }
    }
    for (field, place) in HEAD.into_iter().zip([
        &mut document.id,
        &mut document.version,
        &mut document.protocol_version,
    ]) {
        match members.get(field) {
            Some(Value::String(written)) => written.clone_into(place),
            other => {
                found.add(
                    format!("/{field}"),
                    match other {
                        None => format!("missing field `{field}`"),
                        Some(_) => format!("`{field}` is not a text"),
                    },
                );
                // It is told of once.
                *place = PROTOCOL_VERSIONS
                    .first()
                    .map_or_else(String::new, |it| (*it).to_owned());
            }
        }
    }
    document.signal_types = members.get("signal_types").map(|_| Refused);
    let roles = found.items(&members, "roles", ROLE, &mut document.roles);
    let envelopes = found.items(
        &members,
        "envelope_types",
        ENVELOPE,
        &mut document.envelope_types,
    );
    let types = found.items(
        &members,
        "checkpoint_types",
        RECORD,
        &mut document.checkpoint_types,
    );
    let numbers = [
        ("roles", roles),
        ("envelope_types", envelopes),
        ("checkpoint_types", types),
    ];
    for mut problem in check::problems(&document) {
        // What is only missing because it could not be read is told of where it stands.
        let follows = |name: &String| problem.message.contains(&format!("`{name}`"));
        if problem.message.starts_with("there is no") && found.unread.iter().any(follows) {
            continue;
        }
        problem.pointer = renumbered(&problem.pointer, &numbers);
        found.problems.push(problem);
    }
    found.problems
}

#[derive(Default)]
struct Found {
    problems: Vec<Problem>,
    /// Names of what could not be read.
    unread: BTreeSet<String>,
}

impl Found {
    fn add(&mut self, pointer: String, message: String) {
        self.problems.push(Problem {
            message: text::line(&message).text,
            pointer,
            line: None,
            column: None,
        });
    }

    fn unknown(&mut self, at: &str, key: &str) {
        let pointer = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
        self.add(pointer, format!("unknown field `{key}`"));
    }

    /// Reads the items of a list one by one, and says at which number each good one stands.
    fn items<T: DeserializeOwned>(
        &mut self,
        members: &Map<String, Value>,
        list: &str,
        fields: &[&str],
        good: &mut Vec<T>,
    ) -> Vec<usize> {
        let mut numbers = Vec::new();
        let items = match members.get(list) {
            None => return numbers,
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.add(format!("/{list}"), format!("`{list}` is not a list"));
                return numbers;
            }
        };
        for (number, item) in items.iter().enumerate() {
            let at = format!("/{list}/{number}");
            let mut item = item.clone();
            if let Value::Object(fields_of) = &mut item {
                let strange = fields_of
                    .keys()
                    .filter(|key| !fields.contains(&key.as_str()));
                let strange: Vec<String> = strange.cloned().collect();
                for key in strange {
                    self.unknown(&at, &key);
                    fields_of.remove(&key);
                }
            }
            match Object::<T>::deserialize(&item) {
                Ok(Object(read)) => {
                    good.push(read);
                    numbers.push(number);
                }
                Err(error) => {
                    self.add(at, error.to_string());
                    let name = item.get("name").and_then(Value::as_str);
                    self.unread.extend(name.map(str::to_owned));
                }
            }
        }
        numbers
    }
}

/// Everything in a taxonomy is a text; what looks like a number is one too.
fn scalars(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::String(number.to_string()),
        Value::Bool(truth) => Value::String(truth.to_string()),
        Value::Array(items) => Value::Array(items.into_iter().map(scalars).collect()),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(members.map(|(key, value)| (key, scalars(value))).collect())
        }
        other => other,
    }
}

/// A pointer into the good items alone, as one into the document.
fn renumbered(pointer: &str, numbers: &[(&str, Vec<usize>)]) -> String {
    let mut parts: Vec<String> = pointer.split('/').map(str::to_owned).collect();
    let known = numbers
        .iter()
        .find(|(list, _)| parts.get(1).is_some_and(|part| part == list));
    if let (Some((_, places)), Some(part)) = (known, parts.get_mut(2))
        && let Some(place) = part.parse::<usize>().ok().and_then(|it| places.get(it))
    {
        *part = place.to_string();
    }
    parts.join("/")
}
