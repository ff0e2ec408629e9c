//! Why a record was not created: five reasons, and the detail that helps.

use serde::Serialize;

use crate::words::words;

words! {
    /// What is wrong, in the order in which it is looked for.
    Reason, "reason for a rejection":
    /// Something is missing or malformed.
    InvalidStructure = "invalid_structure",
    /// The type is neither a base type nor registered.
    InvalidType = "invalid_type",
    /// The role does not create this type.
    PermissionDenied = "permission_denied",
    /// The workspace is not active.
    WorkspaceNotActive = "workspace_not_active",
    /// The parent is not the head of the chain.
    InvalidParent = "invalid_parent",
}

/// A record that was not created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Rejection {
    /// What is wrong.
    pub reason: Reason,
    /// The same, so that whoever asked can do it better.
    pub detail: String,
}

impl Rejection {
    pub(crate) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }

    pub(crate) fn structure(detail: impl Into<String>) -> Self {
        Self::new(Reason::InvalidStructure, detail)
    }
}
