//! What a record carries: three fields that are always there, and those that its type asks for.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

/// The work product of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Payload {
    /// Paths below the root of the workspace.
    pub files_changed: Vec<String>,
    /// The substance, or a summary of it. Nobody looks inside.
    pub content: String,
    /// References to what was produced. Neither fetched nor checked.
    pub artifacts: Vec<Value>,
    /// Fields that the type asks for, and others.
    pub more: BTreeMap<String, Value>,
}

impl Payload {
    /// Whether a field that a type asks for is there, and says something.
    pub fn has(&self, field: &str) -> bool {
        match field {
            "files_changed" => !self.files_changed.is_empty(),
            "content" => !self.content.is_empty(),
            "artifacts" => !self.artifacts.is_empty(),
            other => self.more.get(other).is_some_and(|value| !value.is_null()),
        }
    }
}

impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3 + self.more.len()))?;
        map.serialize_entry("files_changed", &self.files_changed)?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("artifacts", &self.artifacts)?;
        for (name, value) in &self.more {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A payload that may leave it to its directory to say which files changed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Loose {
    pub(super) payload: Payload,
    pub(super) names_files: bool,
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Loose;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a payload with `files_changed`, `content` and `artifacts`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                let (mut files_changed, mut content, mut artifacts) = (None, None, None);
                let mut more = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "files_changed" => files_changed = Some(map.next_value()?),
                        "content" => content = Some(map.next_value()?),
                        "artifacts" => artifacts = Some(map.next_value()?),
                        _ => {
                            more.insert(name, map.next_value()?);
                        }
                    }
                }
                Ok(Loose {
                    names_files: files_changed.is_some(),
                    payload: Payload {
                        files_changed: files_changed.unwrap_or_default(),
                        content: content.ok_or_else(|| A::Error::missing_field("content"))?,
                        artifacts: artifacts.ok_or_else(|| A::Error::missing_field("artifacts"))?,
                        more,
                    },
                })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let loose = Loose::deserialize(deserializer)?;
        match loose.names_files {
            true => Ok(loose.payload),
            false => Err(D::Error::missing_field("files_changed")),
        }
    }
}
