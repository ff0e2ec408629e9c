//! Roles: the three base ones, and names of those derived from them.
//!
//! What a role may create is worked out from the taxonomy, in `taxonomy`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::words::words;

words! {
    /// A role that is always there.
    BaseRole, "base role":
    /// Directs and integrates; makes no records.
    Coordinator = "coordinator",
    /// Produces.
    Worker = "worker",
    /// Notices.
    Observer = "observer",
}

impl BaseRole {
    /// The type of record that it creates by itself.
    pub const fn creates(self) -> Option<&'static str> {
        match self {
            Self::Coordinator => None,
            Self::Worker => Some("artifact"),
            Self::Observer => Some("observation"),
        }
    }
}

/// The types of records that are always there.
pub const BASE_TYPES: [&str; 2] = ["artifact", "observation"];

/// The longest name of a role or type.
const LONGEST: usize = 64;

/// The name of a role, a type of record or a type of envelope.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

/// A text that cannot be a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a name: a lower-case letter, then at most 63 lower-case letters, digits, `-` or `_`",
    safepoint_model::text::line(found).text
)]
pub struct NameError {
    found: String,
}

impl Name {
    /// The text itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The base role of this name, if it is one.
    pub fn base(&self) -> Option<BaseRole> {
        self.0.parse().ok()
    }
}

impl From<BaseRole> for Name {
    fn from(role: BaseRole) -> Self {
        Self(role.as_str().to_owned())
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
        let begins = text.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && text.len() <= LONGEST && text.chars().all(plain) {
            return Ok(Self(text.to_owned()));
        }
        Err(NameError {
            found: text.chars().take(80).collect(),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}
