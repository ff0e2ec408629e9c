//! A permit: leave to do one exact action, once.
//!
//! issued → reserved → consumed, or void. It is reserved, durably, before the
//! effect begins: whoever finds it reserved and nobody at work knows that
//! something may have happened, and never does it again.

use std::collections::BTreeMap;

use safepoint_model::{ActionId, Digest, HoldId, PermitId, SessionId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::denial::DenialCode;

/// What came of an action when nobody saw.
const UNKNOWN: &str = "unknown";

/// Leave to do one exact action, once.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Permit {
    /// The version of this form.
    pub format: u32,
    /// Its name.
    #[schemars(with = "String")]
    pub permit_id: PermitId,
    /// The approval it comes from.
    #[schemars(with = "String")]
    pub hold_id: HoldId,
    /// The action it is for.
    #[schemars(with = "String")]
    pub action_id: ActionId,
    /// The session it was given to.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// The wish it is found by: see [`Canonical::wish`](crate::Canonical::wish).
    #[schemars(with = "String")]
    pub wish: Digest,
    /// The exact form that was approved.
    #[schemars(with = "String")]
    pub fingerprint: Digest,
    /// The rules it was approved under.
    #[schemars(with = "String")]
    pub policy_version: Digest,
    /// The versions of the trust it rests on, by boundary.
    pub trust: BTreeMap<String, u64>,
    /// When it was issued.
    #[schemars(with = "String")]
    pub issued: Timestamp,
    /// Until when it is good.
    #[schemars(with = "String")]
    pub expires_at: Timestamp,
    /// Where it stands.
    pub state: PermitState,
}

/// Where a permit stands.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(tag = "is", rename_all = "snake_case", deny_unknown_fields)]
pub enum PermitState {
    /// It can be used.
    Issued {},
    /// Somebody is using it, or was.
    Reserved {
        /// Since when.
        #[schemars(with = "String")]
        at: Timestamp,
    },
    /// It was used.
    Consumed {
        /// When.
        #[schemars(with = "String")]
        at: Timestamp,
        /// What came of it: `ok`, `error`, or `unknown` when nobody saw.
        outcome: String,
    },
    /// It can no longer be used, and never was.
    Void {
        /// When it became so.
        #[schemars(with = "String")]
        at: Timestamp,
        /// Why.
        code: DenialCode,
    },
}

/// Why a permit cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.meaning())]
pub struct PermitError(pub DenialCode);

impl Permit {
    /// Takes it for use, if it is good now.
    pub fn reserve(
        &self,
        trust: &BTreeMap<String, u64>,
        now: Timestamp,
    ) -> Result<Self, PermitError> {
        let refused = |code| Err(PermitError(code));
        match &self.state {
            PermitState::Issued {} => {}
            PermitState::Reserved { .. } => return refused(DenialCode::OutcomeUnknown),
            // Whoever was cut off left this behind, and must be told so.
            PermitState::Consumed { outcome, .. } if outcome == UNKNOWN => {
                return refused(DenialCode::OutcomeUnknown);
            }
            PermitState::Consumed { .. } => return refused(DenialCode::PermitConsumed),
            PermitState::Void { code, .. } => return refused(*code),
        }
        if self.expires_at <= now {
            return refused(DenialCode::PermitExpired);
        }
        let is_same = |(boundary, version): (&String, &u64)| trust.get(boundary) == Some(version);
        if !self.trust.iter().all(is_same) {
            return refused(DenialCode::TrustReset);
        }
        Ok(self.with(PermitState::Reserved { at: now }))
    }

    /// It was used, and this came of it.
    pub fn consume(&self, outcome: &str, now: Timestamp) -> Result<Self, PermitError> {
        match self.state {
            PermitState::Reserved { .. } => Ok(self.with(PermitState::Consumed {
                at: now,
                outcome: outcome.to_owned(),
            })),
            _ => Err(PermitError(DenialCode::PermitConsumed)),
        }
    }

    /// It must not be used any more. One that is in use cannot be called back.
    pub fn cancel(&self, code: DenialCode, now: Timestamp) -> Result<Self, PermitError> {
        match &self.state {
            PermitState::Issued {} => Ok(self.with(PermitState::Void { at: now, code })),
            PermitState::Void { code, .. } => Err(PermitError(*code)),
            _ => Err(PermitError(DenialCode::PermitConsumed)),
        }
    }

    fn with(&self, state: PermitState) -> Self {
        Self {
            state,
            ..self.clone()
        }
    }
}
