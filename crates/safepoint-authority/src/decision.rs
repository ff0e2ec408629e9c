//! What an operator decided: a statement about one hold and one fingerprint, signed.
//!
//! The statement is canonical JSON on one line, and the signature is a C2SP
//! signed note over it: anybody with the operator's public key can check it,
//! without us.

use safepoint_model::{ActionId, Digest, HoldId, Timestamp, json};
use safepoint_trail::note::{NoteError, PublicKey};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Envelope;

/// What kind of statement it is, and in which version.
const PURPOSE: &str = "safepoint/decision/v1";

/// The five ways in which a hold can end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// It goes on, under the envelope there is.
    Continue,
    /// It goes on, under another envelope.
    Modify,
    /// It goes on, and every further step asks.
    PerStep,
    /// It does not go on.
    Deny,
    /// Nothing goes on until an operator acts.
    Halt,
}

impl Choice {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Continue => "continue",
            Self::Modify => "modify",
            Self::PerStep => "per_step",
            Self::Deny => "deny",
            Self::Halt => "halt",
        }
    }

    /// Whether it lets the action through.
    pub const fn is_yes(self) -> bool {
        matches!(self, Self::Continue | Self::Modify | Self::PerStep)
    }
}

/// How long a yes to a host, a socket or a file outside the fence lasts, where that is longer
/// than once.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionScope {
    /// As long as the session.
    Session,
    /// In every session of the same workspace, until an operator takes it back.
    Project,
}

impl DecisionScope {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Project => "project",
        }
    }
}

/// What an operator decided.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    /// What kind of statement it is.
    pub statement: String,
    /// About which hold.
    #[schemars(with = "String")]
    pub hold_id: HoldId,
    /// About which action.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// The fingerprint that was displayed.
    #[schemars(with = "String")]
    pub fingerprint: Digest,
    /// What was decided.
    pub choice: Choice,
    /// The envelope that goes with it.
    pub envelope: Option<Envelope>,
    /// How long it lasts; once without it. Decisions from before there were scopes have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<DecisionScope>,
    /// The word of the second confirmation.
    pub confirm: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Who decided.
    pub operator: String,
    /// When.
    #[schemars(with = "String")]
    pub time: Timestamp,
}

/// A decision with the signature of its operator: a C2SP signed note.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(transparent)]
pub struct SignedDecision(String);

/// Why a decision does not count.
#[derive(Debug, thiserror::Error)]
pub enum DecisionError {
    /// The signature is missing or wrong.
    #[error("the signature does not belong to the decision")]
    Signature(#[from] NoteError),
    /// The statement is not one.
    #[error("what is signed is not a decision")]
    Statement,
    /// It cannot be written.
    #[error("the decision cannot be written")]
    Write(#[from] json::WriteError),
}

impl Decision {
    /// The statement's kind.
    pub fn purpose() -> String {
        PURPOSE.to_owned()
    }

    /// The text that is signed: one line.
    pub fn to_text(&self) -> Result<String, DecisionError> {
        let bytes = json::canonical_of(self)?;
        let text = String::from_utf8(bytes).map_err(|_| DecisionError::Statement)?;
        Ok(format!("{text}\n"))
    }
}

impl SignedDecision {
    /// A decision with its signature under it.
    pub fn new(note: String) -> Self {
        Self(note)
    }

    /// The note.
    pub fn note(&self) -> &str {
        &self.0
    }

    /// The decision, if `key` has signed it.
    pub fn open(&self, key: &PublicKey) -> Result<Decision, DecisionError> {
        read(key.open(&self.0)?)
    }

    /// The decision, by whomever. Only to find out whose signature to look for.
    pub fn claimed(&self) -> Result<Decision, DecisionError> {
        let (text, _) = self.0.split_once("\n\n").ok_or(DecisionError::Statement)?;
        read(&format!("{text}\n"))
    }
}

fn read(text: &str) -> Result<Decision, DecisionError> {
    let decision: Decision = json::read_as(text.trim_end().as_bytes(), json::Limits::default())
        .map_err(|_| DecisionError::Statement)?;
    match decision.statement == PURPOSE {
        true => Ok(decision),
        false => Err(DecisionError::Statement),
    }
}
