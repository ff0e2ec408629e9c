//! The taxonomy as it is written.

use std::collections::BTreeMap;

use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use crate::object;
use crate::role::Name;
use crate::words::words;

/// The whole document.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Document {
    /// What it is called.
    pub id: String,
    /// Which version of it this is.
    pub version: String,
    /// For which version of the protocol it is written.
    pub protocol_version: String,
    /// Roles that extend base roles.
    #[serde(default, deserialize_with = "object::list")]
    pub roles: Vec<Role>,
    /// Types of messages, which are checked and not used here.
    #[serde(default, deserialize_with = "object::list")]
    pub envelope_types: Vec<EnvelopeType>,
    /// Types of records.
    #[serde(default, deserialize_with = "object::list")]
    pub checkpoint_types: Vec<RecordType>,
    /// Signals are a closed set: anything here is refused.
    #[serde(default, skip_serializing)]
    pub(super) signal_types: Option<Refused>,
}

/// A field that may not be there, whatever is in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused;

impl<'de> Deserialize<'de> for Refused {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

/// A role that extends a base role.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Its name.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// `worker` or `observer`.
    pub extends: Name,
    /// What it may do besides.
    #[serde(default)]
    pub add: Vec<Capability>,
    /// What it may not do.
    #[serde(default)]
    pub remove: Vec<Capability>,
    /// What it may do instead.
    #[serde(default, rename = "override", deserialize_with = "object::maybe")]
    pub instead: Option<Instead>,
}

/// What stands in place of the base role's.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Instead {
    /// The types of records that it creates, and no others.
    #[serde(default)]
    pub checkpoint_types: Option<Vec<String>>,
}

words! {
    /// What a capability is about.
    Action, "action":
    /// Send a message.
    Send = "send",
    /// Receive a message.
    Receive = "receive",
    /// Read a workspace.
    Read = "read",
    /// Create a record.
    Create = "create",
}

/// Something that a role may do: `{action: create, target: review}`, or shorter `create: review`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capability {
    /// What is done.
    pub action: Action,
    /// With what.
    pub target: String,
}

impl Capability {
    /// The type of record whose creation this is about.
    pub fn created_type(&self) -> Option<&str> {
        (self.action == Action::Create).then_some(self.target.as_str())
    }
}

impl<'de> Deserialize<'de> for Capability {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut fields = BTreeMap::<String, String>::deserialize(deserializer)?;
        let (action, target) = match (fields.remove("action"), fields.remove("target")) {
            (Some(action), Some(target)) if fields.is_empty() => (action, target),
            (None, None) if fields.len() == 1 => fields
                .pop_first()
                .ok_or_else(|| D::Error::custom("a capability is empty"))?,
            _ => {
                return Err(D::Error::custom(
                    "a capability has an `action` and a `target`, or is written like `create: review`",
                ));
            }
        };
        let action = action.parse().map_err(D::Error::custom)?;
        Ok(Self { action, target })
    }
}

/// A type of message.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct EnvelopeType {
    /// Its name.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Who may send it to whom.
    #[serde(deserialize_with = "object::list")]
    pub permissions: Vec<Permission>,
}

/// One way that a message may go.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Permission {
    /// Who sends.
    pub sender_role: Name,
    /// Who receives.
    pub receiver_role: Name,
}

/// A type of record.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RecordType {
    /// Its name.
    pub name: Name,
    /// What it is for.
    #[serde(default)]
    pub description: Option<String>,
    /// Who may create it.
    pub permitted_roles: Vec<Name>,
    /// Fields that its payload must have.
    #[serde(default)]
    pub required_fields: Vec<String>,
}
