//! Operators: people with a key, who decide.

use safepoint_model::Timestamp;
use safepoint_trail::note::{NoteError, PublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Somebody who may decide.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Operator {
    /// The version of this form.
    pub format: u32,
    /// Their name, which is the name of their key.
    pub name: String,
    /// The public key, in C2SP's verifier-key form.
    pub key: String,
    /// Where the private half is.
    pub held: OperatorKey,
    /// Since when.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// When they were removed. Their decisions stay verifiable.
    #[schemars(with = "Option<String>")]
    pub removed: Option<Timestamp>,
}

/// Where the private half of a key is.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OperatorKey {
    /// In a file that only its owner reads.
    File,
    /// In an SSH agent.
    SshAgent,
}

impl Operator {
    /// The public key.
    pub fn public(&self) -> Result<PublicKey, NoteError> {
        self.key.parse()
    }
}
