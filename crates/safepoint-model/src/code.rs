//! The tables of exit codes and error codes: one place, so that documents and
//! programs agree.

use std::fmt;

/// How a command ended. The number is the exit code of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It did what was asked.
    Done = 0,
    /// It could not, or what it checked does not hold.
    Failed = 1,
    /// A gate, a policy or a person said no.
    Denied = 2,
    /// It was interrupted, or ran out of time.
    Interrupted = 3,
    /// A dry run found that it would be denied.
    WouldBeDenied = 4,
    /// The store or the control plane is unavailable.
    Unavailable = 5,
    /// An identity or a key is missing or wrong.
    Identity = 6,
    /// The command line or an input is invalid.
    Usage = 7,
    /// Something named does not exist.
    NotFound = 8,
    /// Something else got there first.
    Conflict = 9,
}

impl Exit {
    /// All of them, in order.
    pub const ALL: [Self; 10] = [
        Self::Done,
        Self::Failed,
        Self::Denied,
        Self::Interrupted,
        Self::WouldBeDenied,
        Self::Unavailable,
        Self::Identity,
        Self::Usage,
        Self::NotFound,
        Self::Conflict,
    ];

    /// What it means, in a few words.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed, or what was checked does not hold",
            Self::Denied => "denied",
            Self::Interrupted => "interrupted or timed out",
            Self::WouldBeDenied => "a dry run would be denied",
            Self::Unavailable => "store or control plane unavailable",
            Self::Identity => "an identity or key is missing or wrong",
            Self::Usage => "usage error or invalid input",
            Self::NotFound => "not found",
            Self::Conflict => "conflict",
        }
    }
}

/// Defines [`Code`] from one table.
macro_rules! codes {
    ($($variant:ident, $code:literal, $name:literal, $exit:ident, $meaning:literal;)*) => {
        /// What kind of error it is. Stable: scripts may depend on code and name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code {
            $(#[doc = $meaning] $variant,)*
        }

        impl Code {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The short code, such as `S502`.
            pub const fn code(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The name, such as `STORE_LOCKED`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The exit code of a command that ends with it.
            pub const fn exit(self) -> Exit {
                match self { $(Self::$variant => Exit::$exit,)* }
            }

            /// What it means, in a sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

codes! {
    Internal, "X101", "INTERNAL", Failed, "something that should not be possible";
    Output, "X102", "OUTPUT", Failed, "the output could not be written";
    TrailTampered, "T101", "TRAIL_TAMPERED", Failed, "the trail is not what it was";
    ProofInvalid, "T102", "PROOF_INVALID", Failed, "a proof does not prove what it claims";
    RecordTampered, "T103", "RECORD_TAMPERED", Failed, "a checkpoint in a chain is not what was written";
    WitnessRefused, "T104", "WITNESS_REFUSED", Failed, "a witness did not cosign the head of the trail";
    StateTampered, "T105", "STATE_TAMPERED", Failed, "a checkpoint or an action is not the one that the trail tells of";
    CheckpointRequired, "F501", "CHECKPOINT_REQUIRED", Denied, "a change needs a valid checkpoint, and has none";
    ApprovalRequired, "F502", "APPROVAL_REQUIRED", Denied, "a change needs a person's approval, and has none";
    RollbackFailed, "F503", "ROLLBACK_FAILED", Failed, "a checkpoint cannot be restored; the tree is untouched";
    ConstraintViolated, "F504", "CONSTRAINT_VIOLATED", Denied, "a change would break a rule that was set for it";
    ProvenanceMissing, "F505", "PROVENANCE_MISSING", Failed, "where something came from cannot be shown";
    CheckpointExpired, "F506", "CHECKPOINT_EXPIRED", Denied, "the checkpoint has expired";
    FileUnstable, "F507", "FILE_UNSTABLE", Failed, "a file goes on changing while it is read";
    FileFailed, "F508", "FILE_FAILED", Failed, "a file or directory cannot be read or written";
    Unsupported, "F509", "UNSUPPORTED", Failed, "something that a checkpoint cannot hold";
    GitFailed, "F510", "GIT_FAILED", Failed, "git could not do its part";
    OperationFailed, "F511", "OPERATION_FAILED", Failed, "an operation does not fit what is there; nothing was changed";
    TargetLocked, "F512", "TARGET_LOCKED", Failed, "another program has locked what is to be changed; nothing was changed";
    VerificationFailed, "F513", "VERIFICATION_FAILED", Failed, "a change did not hold, and was rolled back";
    CommandFailed, "F514", "COMMAND_FAILED", Failed, "a command that was the change failed, and what it did was rolled back";
    DatabaseFailed, "F515", "DATABASE_FAILED", Failed, "a database cannot be captured, changed or brought back; it is as it was";
    ToolMissing, "F516", "TOOL_MISSING", Failed, "a program that is needed is missing or too old";
    ProviderFailed, "F517", "PROVIDER_FAILED", Failed, "the commands that own a state failed";
    AtlasChanged, "F518", "ATLAS_CHANGED", Denied, "an atlas is no longer what its session began with";
    RateLimited, "F519", "RATE_LIMITED", Denied, "it was asked for too often";
    SessionTampered, "F520", "SESSION_TAMPERED", Denied, "a session in the store is not the one that the trail tells of";
    Interrupted, "H301", "INTERRUPTED", Interrupted, "a check, a command or a provider was interrupted; what a change had done was rolled back";
    TimedOut, "H302", "TIMED_OUT", Interrupted, "a check, a command or a provider took too long; what a change had done was rolled back";
    StoreUnreachable, "S501", "STORE_UNREACHABLE", Unavailable, "nothing answers at the store's address";
    StoreLocked, "S502", "STORE_LOCKED", Unavailable, "another process holds the store";
    StoreReadOnly, "S503", "STORE_READ_ONLY", Unavailable, "the store may not be written";
    StoreFull, "S504", "STORE_FULL", Unavailable, "no space is left on a file system that is needed: the store's or another";
    StoreCorrupted, "S505", "STORE_CORRUPTED", Unavailable, "what is stored cannot be read";
    StoreNewer, "S506", "STORE_NEWER", Unavailable, "a newer Safepoint has written the store";
    StoreForeign, "S507", "STORE_FOREIGN", Unavailable, "the file or database is not a Safepoint store";
    StoreLost, "S508", "STORE_LOST", Unavailable, "the store is empty, but its trail was not";
    StoreFailed, "S509", "STORE_FAILED", Unavailable, "a statement or a file operation failed";
    StoreUnconfirmed, "S510", "STORE_UNCONFIRMED", Unavailable, "the change is recorded, or may be: its commit could not be confirmed";
    StoreCapReached, "S511", "STORE_CAP_REACHED", Unavailable, "the object store may not grow any more";
    ServiceFailed, "S512", "SERVICE_FAILED", Unavailable, "a service that was named does not answer, or does not take what it is sent";
    DepotRefused, "S513", "DEPOT_REFUSED", Identity, "the server of the shared objects does not know us, or does not let us";
    DepotForeign, "S514", "DEPOT_FOREIGN", Unavailable, "the shared objects belong to another store";
    DepotUnsafe, "S515", "DEPOT_UNSAFE", Unavailable, "the server of the shared objects writes over what is there";
    KeyMissing, "I601", "KEY_MISSING", Identity, "the key that signs the trail is not here";
    KeyInvalid, "I602", "KEY_INVALID", Identity, "a key file holds something else";
    DatabaseRefused, "I604", "DATABASE_REFUSED", Identity, "a database does not let us in";
    SealFailed, "I603", "SEAL_FAILED", Identity, "a secret cannot be encrypted or decrypted";
    SignatureInvalid, "I605", "SIGNATURE_INVALID", Identity, "a signature is missing, broken, or of somebody else";
    AccessDenied, "I606", "ACCESS_DENIED", Identity, "a key is missing, or not one that is let in";
    AuthenticationFailed, "I607", "AUTHENTICATION_FAILED", Identity, "a token is not that of the agent of the workspace";
    Usage, "U701", "USAGE", Usage, "the command line is not understood";
    InvalidInput, "U702", "INVALID_INPUT", Usage, "an input is not what it should be";
    SettingsInvalid, "U703", "SETTINGS_INVALID", Usage, "a settings file is wrong";
    Ambiguous, "U704", "AMBIGUOUS", Usage, "the beginning of an id fits more than one";
    ScopeEmpty, "U705", "SCOPE_EMPTY", Usage, "a scope matches nothing";
    ScopeInvalid, "U706", "SCOPE_INVALID", Usage, "a scope cannot be used";
    TargetInvalid, "U707", "TARGET_INVALID", Usage, "a target cannot be one";
    AtlasInvalid, "U708", "ATLAS_INVALID", Usage, "an atlas cannot be used";
    TaxonomyInvalid, "U709", "TAXONOMY_INVALID", Usage, "a taxonomy cannot be used";
    NotFound, "N801", "NOT_FOUND", NotFound, "something named does not exist";
    Conflict, "C901", "CONFLICT", Conflict, "a later change stands in the way";
    Busy, "C902", "BUSY", Conflict, "another process is at work on the same thing";
    SessionState, "C905", "SESSION_STATE", Conflict, "a session is not where this could be done";
    WorkspaceState, "C906", "WORKSPACE_STATE", Conflict, "a workspace or a task is not where this could be done";
    DatabaseLocked, "C904", "DATABASE_LOCKED", Conflict, "another connection has the database locked";
    OtherWorkspace, "C903", "OTHER_WORKSPACE", Conflict, "the checkpoint belongs to another directory";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code(), self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_02_every_code_and_name_is_used_once() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(seen.insert(code.code()), "{code}");
            assert!(seen.insert(code.name()), "{code}");
            assert_ne!(code.exit(), Exit::Done, "{code}");
        }
    }

    #[test]
    fn su_02_exit_codes_are_those_of_the_contract() {
        let numbers: Vec<u8> = Exit::ALL.iter().map(|exit| *exit as u8).collect();
        assert_eq!(numbers, (0..=9).collect::<Vec<u8>>());
        assert_eq!(Code::Usage.exit() as u8, 7);
    }
}
