//! Why something may not be done now, in words that programs can act on.

use safepoint_model::{ActionId, Digest, HoldId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! denial_codes {
    ($($variant:ident, $name:literal, $meaning:literal;)*) => {
        /// Why something may not be done now. Stable: scripts may depend on the names.
        #[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
        pub enum DenialCode {
            $(#[doc = $meaning] #[serde(rename = $name)] $variant,)*
        }

        impl DenialCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

denial_codes! {
    ApprovalRequired, "APPROVAL_REQUIRED", "a person must approve it first";
    QuestionsPending, "QUESTIONS_PENDING", "a steward's questions wait for answers";
    PolicyDenied, "POLICY_DENIED", "a gate or a policy says no";
    OperatorDenied, "OPERATOR_DENIED", "an operator said no";
    SessionHalted, "SESSION_HALTED", "an operator has halted the session";
    ControlForbidden, "CONTROL_FORBIDDEN", "it touches Safepoint itself, which no agent may";
    ClassUndeclared, "CLASS_UNDECLARED", "it has an effect that was not declared";
    ModeRefused, "MODE_REFUSED", "the mode of checkpoints that was asked for is refused";
    TargetChanged, "TARGET_CHANGED", "what it would touch is no longer what was approved";
    PathIdentityChanged, "PATH_IDENTITY_CHANGED", "a path leads to something else than was approved";
    ExecutableChanged, "EXECUTABLE_CHANGED", "the program is no longer the one that was approved";
    DirectoryChanged, "DIRECTORY_CHANGED", "the working directory is not the one that was approved";
    EnvironmentChanged, "ENVIRONMENT_CHANGED", "its variables are not those that were approved";
    InputChanged, "INPUT_CHANGED", "its standard input is not the one that was approved";
    PolicyChanged, "POLICY_CHANGED", "it is judged under other rules than when it was approved";
    TrustReset, "TRUST_RESET", "trust that the approval rested on is gone";
    PermitConsumed, "PERMIT_CONSUMED", "the permit has been used";
    PermitExpired, "PERMIT_EXPIRED", "the permit or the hold has expired";
    PermitRevoked, "PERMIT_REVOKED", "an operator has revoked the permit";
    LineageMismatch, "LINEAGE_MISMATCH", "the permit was given to another session or workspace";
    FingerprintMismatch, "FINGERPRINT_MISMATCH", "it is not exactly what was approved";
    OutcomeUnknown, "OUTCOME_UNKNOWN", "an earlier run was cut off, and nobody saw how far it came";
    SessionEnded, "SESSION_ENDED", "its session ended before anybody decided";
    TimedOut, "TIMED_OUT", "nobody decided in time";
}

/// A denial, for whoever asked.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Denial {
    /// Why, for programs.
    pub code: DenialCode,
    /// What waits for a decision, if anything does.
    #[schemars(with = "Option<String>")]
    pub hold_id: Option<HoldId>,
    /// What a yes would be bound to.
    #[schemars(with = "Option<String>")]
    pub fingerprint: Option<Digest>,
    /// The action.
    #[schemars(with = "Option<String>")]
    pub action_id: Option<ActionId>,
    /// The rules that say so.
    pub policy_basis: Vec<crate::Basis>,
    /// Why, for people.
    pub reason: String,
    /// How to proceed.
    pub next: String,
}
