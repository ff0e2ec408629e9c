//! The words in which an action is weighed: what kind of effect it has, whether it can be
//! taken back, and how much is at stake.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of effect. An action may have several; one that is not declared is denied.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum SideEffect {
    /// It looks at something.
    Read,
    /// It changes something.
    Write,
    /// It runs a program.
    Exec,
    /// It talks to another machine.
    Network,
    /// It sees a credential.
    Secret,
    /// It lets another agent act.
    Delegate,
}

impl SideEffect {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Exec => "exec",
            Self::Network => "network",
            Self::Secret => "secret",
            Self::Delegate => "delegate",
        }
    }
}

/// Whether an action can be taken back, the worst last.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Reversibility {
    /// A verified checkpoint covers every effect, or there is none.
    Reversible,
    /// All but a named remainder.
    Partly,
    /// Not at all.
    Irreversible,
    /// Nobody knows. Treated as not at all.
    Unknown,
}

impl Reversibility {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Reversible => "reversible",
            Self::Partly => "partly",
            Self::Irreversible => "irreversible",
            Self::Unknown => "unknown",
        }
    }

    /// Whether one confirmation is not enough.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Irreversible | Self::Unknown)
    }
}

/// How much is at stake, the least first.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, Hash, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Little.
    Low,
    /// Something.
    Medium,
    /// Much.
    High,
    /// Everything.
    Critical,
}

impl Risk {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}
