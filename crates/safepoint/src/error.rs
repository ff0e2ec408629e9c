//! Errors as people and programs see them: the one map from every error to its
//! code, its place and what to do next.

mod control;
mod progress;

use std::error::Error;
use std::path::PathBuf;

use safepoint_authority::DenialCode;
use safepoint_control::{ControlError, HttpsError};
use safepoint_database::{AddressError, DatabaseError};
use safepoint_model::yaml::YamlError;
use safepoint_model::{Code, Exit};
use safepoint_progress::ProgressError;
use safepoint_state::{Ending, StateError};
use safepoint_store::{LocationError, StoreError};
use safepoint_trail::TrailError;
use safepoint_trail::cosign::WitnessError;
use safepoint_trail::proof::ProofError;
use serde::Serialize;

/// Everything a command can fail with.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error("{message}")]
    Invalid {
        message: String,
        suggestion: &'static str,
    },
    #[error("neither `SAFEPOINT_HOME` nor `HOME` is set, so there is no place to keep anything")]
    NoHome,
    #[error("there is no {what} `{name}`")]
    NotFound { what: &'static str, name: String },
    #[error("the settings in `{}` cannot be read: {error}", path.display())]
    Settings { path: PathBuf, error: YamlError },
    #[error(transparent)]
    Location(#[from] LocationError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Trail(#[from] TrailError),
    #[error(transparent)]
    State(#[from] StateError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Progress(#[from] ProgressError),
    /// A taxonomy is wrong: everything about it is shown.
    #[error("`{}` is not a taxonomy that can be used: {}", .0.path.display(), .0.first())]
    Taxonomy(Box<TaxonomyFault>),
    /// A checkpoint that was not made: its reply says so, beside the error.
    #[error(transparent)]
    Checkpoint(Box<CliError>),
    /// It may not be done, or not yet.
    #[error("{}", .0.reason)]
    Denied(Box<safepoint_authority::Denial>),
    /// What failed has a reply all the same, which is printed beside the error.
    #[error("{}", .0.error)]
    WithReply(Box<FailedReply>),
    #[error(transparent)]
    Proof(#[from] ProofError),
    /// A service that was named on the command line has no answer.
    #[error("the {what} cannot be reached")]
    Service {
        what: &'static str,
        #[source]
        error: HttpsError,
    },
    /// It has one, and it is no.
    #[error("the collector does not take spans: {0}")]
    Collector(String),
    #[error(transparent)]
    Witness(#[from] WitnessError),
    #[error("cannot {action} `{}`", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    #[error(transparent)]
    Out(StoreError),
    #[error("the output cannot be written")]
    Output(#[from] std::io::Error),
    #[error("the output cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

/// What is wrong with a taxonomy.
#[derive(Debug)]
pub(crate) struct TaxonomyFault {
    pub(crate) path: PathBuf,
    pub(crate) problems: Vec<safepoint_progress::taxonomy::Problem>,
    /// Each with its line, for people.
    pub(crate) shown: Vec<String>,
}

impl TaxonomyFault {
    fn first(&self) -> &str {
        self.problems
            .first()
            .map_or("", |problem| problem.message.as_str())
    }

    /// `FILE:LINE:COLUMN` of the first.
    fn place(&self) -> String {
        let path = self.path.display();
        let first = self.problems.first();
        match first.and_then(|first| first.line.zip(first.column)) {
            Some((line, column)) => format!("{path}:{line}:{column}"),
            None => path.to_string(),
        }
    }
}

/// An error, and the reply that is printed beside it.
#[derive(Debug)]
pub(crate) struct FailedReply {
    pub(crate) error: CliError,
    /// The fields of the reply.
    pub(crate) reply: serde_json::Map<String, serde_json::Value>,
}

/// An error as it is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    name: &'static str,
    pub(crate) message: String,
    location: Option<String>,
    pub(crate) suggestion: Option<String>,
    #[serde(skip)]
    pub(crate) causes: Vec<String>,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

impl CliError {
    /// Whether it only means that nobody reads the output any more (`| head`).
    pub(crate) fn is_closed_pipe(&self) -> bool {
        let kind = match self {
            Self::Output(error) => Some(error.kind()),
            Self::Json(error) => error.io_error_kind(),
            _ => None,
        };
        kind == Some(std::io::ErrorKind::BrokenPipe)
    }

    /// The error as it is shown.
    pub(crate) fn problem(&self) -> Problem {
        if let Self::WithReply(failure) = self {
            return failure.error.problem(); // with its causes
        }
        let (code, location, suggestion) = explain(self);
        let mut causes = Vec::new();
        let mut source = self.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            // Some libraries repeat the source in their own message.
            if causes
                .last()
                .is_none_or(|last: &String| !last.ends_with(&text))
            {
                causes.push(text);
            }
            source = cause.source();
        }
        Problem {
            code: code.code(),
            name: code.name(),
            message: self.to_string(),
            location,
            suggestion,
            causes,
            exit: code.exit(),
        }
    }
}

/// Code, place and suggestion.
type Explanation = (Code, Option<String>, Option<String>);

fn explain(error: &CliError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    let place = |path: &PathBuf| Some(path.display().to_string());
    match error {
        CliError::Usage(_) => (
            Code::Usage,
            None,
            hint("`safepoint help` lists the commands"),
        ),
        CliError::Invalid { suggestion, .. } => (Code::InvalidInput, None, hint(suggestion)),
        CliError::NoHome => (
            Code::Usage,
            None,
            hint("set `SAFEPOINT_HOME` to a directory of your own"),
        ),
        CliError::NotFound { name, .. } => (
            Code::NotFound,
            Some(name.clone()),
            hint("check the spelling"),
        ),
        CliError::Settings { path, error } => (
            Code::SettingsInvalid,
            Some(match (error.line, error.column) {
                (Some(line), Some(column)) => format!("{}:{line}:{column}", path.display()),
                _ => path.display().to_string(),
            }),
            hint("the keys are described in docs/settings.md"),
        ),
        CliError::Location(_) => (
            Code::InvalidInput,
            None,
            hint("for example `--store sqlite:/path/to/store.db`"),
        ),
        CliError::Store(error) => explain_store(error),
        CliError::Trail(error) => explain_trail(error),
        CliError::State(error) => explain_state(error),
        CliError::Control(error) => control::explain(error),
        CliError::Progress(error) => progress::explain(error),
        CliError::Taxonomy(fault) => (
            Code::TaxonomyInvalid,
            Some(fault.place()),
            hint("nothing was made; docs/workspaces.md tells what a taxonomy looks like"),
        ),
        CliError::Checkpoint(error) => explain(error),
        CliError::Denied(denial) => {
            let waits = matches!(
                denial.code,
                DenialCode::ApprovalRequired | DenialCode::QuestionsPending
            );
            (
                match waits {
                    true => Code::ApprovalRequired,
                    false => Code::ConstraintViolated,
                },
                denial.hold_id.as_ref().map(ToString::to_string),
                Some(denial.next.clone()).filter(|next| !next.is_empty()),
            )
        }
        CliError::WithReply(failure) => explain(&failure.error),
        CliError::Proof(_) => (
            Code::ProofInvalid,
            None,
            hint("ask for the proof again, and check that the key is that of its trail"),
        ),
        CliError::Service { .. } | CliError::Collector(_) => (
            Code::ServiceFailed,
            None,
            hint("check the address; what was sent can be sent again, since ids stay the same"),
        ),
        CliError::Witness(error) => (Code::WitnessRefused, None, hint(explain_witness(error))),
        CliError::File { path, error, .. } => {
            let code = match error.kind() {
                std::io::ErrorKind::NotFound => Code::NotFound,
                _ => Code::InvalidInput,
            };
            (
                code,
                place(path),
                hint("check the path and its permissions"),
            )
        }
        CliError::Out(error) => {
            let (_, location, _) = explain_store(error);
            (
                Code::Output,
                location,
                hint("check the path and its permissions"),
            )
        }
        CliError::Output(_) | CliError::Json(_) => (Code::Output, None, None),
    }
}

fn explain_store(error: &StoreError) -> Explanation {
    let (code, suggestion) = match error {
        StoreError::Location(_) => (
            Code::InvalidInput,
            "for example `--store sqlite:/path/to/store.db`",
        ),
        StoreError::Locked { .. } => (
            Code::StoreLocked,
            "wait for the other process to end, then try again",
        ),
        StoreError::ReadOnly { .. } => (
            Code::StoreReadOnly,
            "make it writable, or choose another store with `--store`",
        ),
        StoreError::Full { .. } => (
            Code::StoreFull,
            "make room on that disk, then try again: nothing was half-written",
        ),
        StoreError::Corrupted { .. } => (
            Code::StoreCorrupted,
            "restore the store from a backup; `safepoint trail verify` then tells whether it is whole",
        ),
        StoreError::Foreign { .. } => (
            Code::StoreForeign,
            "choose another file or database with `--store`",
        ),
        StoreError::Newer { .. } => (Code::StoreNewer, "use the newer Safepoint for this store"),
        StoreError::Unreachable { .. } => (
            Code::StoreUnreachable,
            "check the address, and that the server runs",
        ),
        StoreError::Unconfirmed { .. } => (
            Code::StoreUnconfirmed,
            "look whether it is there before you do it again: `safepoint trail list --last 20`",
        ),
        StoreError::File { .. } | StoreError::Statement { .. } | StoreError::Column { .. } => {
            (Code::StoreFailed, "the cause above says what failed")
        }
        StoreError::DepotRefused { .. } => (
            Code::DepotRefused,
            "nothing was changed: check the credentials in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, and what they may do",
        ),
        StoreError::DepotForeign { .. } => (
            Code::DepotForeign,
            "nothing was changed: give each store a bucket or a prefix of its own in `SAFEPOINT_OBJECTS`",
        ),
        StoreError::DepotUnsafe { .. } => (
            Code::DepotUnsafe,
            "nothing was changed: use a server that heeds `If-None-Match` when an object is put",
        ),
        StoreError::LeaseLost { .. } => (
            Code::StoreLocked,
            "nothing is lost: the other process goes on with it",
        ),
        StoreError::AfterCommit(_) => (
            Code::StoreUnconfirmed,
            "it is in the trail all the same; mend the cause above, and the next write catches up",
        ),
        StoreError::Seal(_) => (
            Code::TrailTampered,
            "`safepoint trail verify` names the first bad entry",
        ),
    };
    let location = match error {
        StoreError::Locked { place, .. }
        | StoreError::ReadOnly { place, .. }
        | StoreError::Full { place, .. }
        | StoreError::Corrupted { place, .. }
        | StoreError::Foreign { place }
        | StoreError::Newer { place, .. }
        | StoreError::Unreachable { place, .. }
        | StoreError::Unconfirmed { place, .. }
        | StoreError::DepotRefused { place, .. }
        | StoreError::DepotForeign { place, .. }
        | StoreError::DepotUnsafe { place, .. }
        | StoreError::Statement { place, .. } => Some(place.clone()),
        StoreError::File { path, .. } => Some(path.display().to_string()),
        StoreError::Location(_)
        | StoreError::Column { .. }
        | StoreError::LeaseLost { .. }
        | StoreError::AfterCommit(_)
        | StoreError::Seal(_) => None,
    };
    (code, location, Some(suggestion.to_owned()))
}

fn explain_witness(error: &WitnessError) -> &'static str {
    match error {
        WitnessError::OtherSize(_) => {
            "it is more than this trail has, or changes all the time: `safepoint trail verify` checks the trail"
        }
        WitnessError::Fork | WitnessError::NotConsistent => {
            "`safepoint trail verify` checks this trail; ask the witness's operator what it has seen"
        }
        WitnessError::UnknownLog | WitnessError::UnknownKey => {
            "`safepoint trail head --json` prints the key that its operator needs"
        }
        WitnessError::Status(_) | WitnessError::Shape(_) => {
            "check that the address is the one below which the witness has `add-checkpoint`"
        }
        WitnessError::Unsigned(_) => "check that `--key` is the key of this witness",
    }
}

fn explain_trail(error: &TrailError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        TrailError::Store(error) => explain_store(error),
        TrailError::Tampered(bad) => (
            Code::TrailTampered,
            Some(
                bad.id
                    .clone()
                    .unwrap_or_else(|| format!("entry {}", bad.seq)),
            ),
            hint(
                "`safepoint trail verify` checks all of it; nothing is signed on top of an end that cannot be trusted",
            ),
        ),
        TrailError::KeyMissing { path, .. } => (
            Code::KeyMissing,
            Some(path.display().to_string()),
            hint("copy the key file from the machine that began this trail"),
        ),
        TrailError::KeyUnreadable { path, .. } => (
            Code::KeyMissing,
            Some(path.display().to_string()),
            hint("make it readable for yourself, and for nobody else"),
        ),
        TrailError::KeyInvalid { path, .. } => (
            Code::KeyInvalid,
            Some(path.display().to_string()),
            hint("restore the key file from a backup"),
        ),
        TrailError::KeyOther { path, .. } => (
            Code::KeyInvalid,
            Some(path.display().to_string()),
            hint(
                "nothing was changed: all machines that share a store need the same key file in `SAFEPOINT_KEY`",
            ),
        ),
        TrailError::StoreLost { place, .. } => (
            Code::StoreLost,
            Some(place.clone()),
            hint(
                "restore it from a backup, or run `safepoint init --start-anew` to begin a new trail that records the loss",
            ),
        ),
        TrailError::Tiles { path, .. } => (
            Code::InvalidInput,
            Some(path.display().to_string()),
            hint("name an empty directory, or one that holds tiles of this trail"),
        ),
        TrailError::Body(_) => (
            Code::InvalidInput,
            None,
            hint("numbers must be finite and integers within ±(2^53 − 1)"),
        ),
        TrailError::ReservedField => (
            Code::InvalidInput,
            None,
            hint("give the field another name"),
        ),
        TrailError::Head(_) => (
            Code::TrailTampered,
            None,
            hint("`safepoint trail verify` says what is wrong"),
        ),
        TrailError::NotFound(what) => (
            Code::NotFound,
            Some(what.clone()),
            hint("`safepoint trail list` shows what there is"),
        ),
        TrailError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        TrailError::Entropy(_) => (Code::Internal, None, None),
    }
}

fn explain_state(error: &StateError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        StateError::File { path, error, .. } => explain_file(path, error),
        StateError::Damaged { path, .. } => (
            Code::StoreCorrupted,
            Some(path.display().to_string()),
            hint(
                "restore the object store from a backup; `safepoint verify ID` tells which checkpoints are whole",
            ),
        ),
        StateError::Missing { id } => (
            Code::StoreCorrupted,
            Some(id.to_string()),
            hint("restore the object store from a backup"),
        ),
        StateError::Unrestorable { id, .. } => (
            Code::RollbackFailed,
            Some(id.clone()),
            hint(
                "the tree is untouched; `safepoint list` shows other checkpoints, `safepoint verify ID` tells whether one is whole",
            ),
        ),
        StateError::Torn { path } => (
            Code::FileUnstable,
            Some(path.display().to_string()),
            hint(
                "wait until the program that writes it is done, or leave it out with `exclude` in safepoint.yaml",
            ),
        ),
        StateError::Changed { paths } => (
            Code::FileUnstable,
            paths.first().map(|path| path.display().to_string()),
            hint("look at what was changed there, and do it again"),
        ),
        StateError::EmptyScope { scope } => (
            Code::ScopeEmpty,
            Some(scope.clone()),
            hint(if scope.starts_with("state:") {
                "check the spelling, or give it a value: `safepoint checkpoint --state NAME=JSON`"
            } else if scope.contains("://") {
                "check the spelling: the server knows no such database"
            } else {
                "check the spelling; a scope is relative to the directory you are in"
            }),
        ),
        StateError::BadScope { scope, .. } => (
            Code::ScopeInvalid,
            Some(scope.clone()),
            hint("a scope is a file, a directory or a pattern inside the workspace"),
        ),
        StateError::NotFound { name, .. } => (
            Code::NotFound,
            Some(name.clone()),
            hint("`safepoint list` shows the checkpoints, `safepoint log` the actions"),
        ),
        StateError::Ambiguous { prefix, .. } => (
            Code::Ambiguous,
            Some(prefix.clone()),
            hint("give more of its characters"),
        ),
        StateError::Expired { id, .. } => (
            Code::CheckpointExpired,
            Some(id.clone()),
            hint("it can still be restored: add `--expired`"),
        ),
        StateError::Conflict { conflicts } => (
            Code::Conflict,
            conflicts
                .first()
                .map(|conflict| safepoint_state::path::display(&conflict.path)),
            hint(
                "nothing was changed; undo the later change first, or roll back the whole file with `safepoint rollback ID PATH`",
            ),
        ),
        StateError::Busy { .. } => (
            Code::Busy,
            None,
            hint("wait for the other process to end, then try again"),
        ),
        StateError::CapReached { .. } => (
            Code::StoreCapReached,
            None,
            hint("`safepoint gc` gives space back; `object_cap` in your settings raises the cap"),
        ),
        StateError::OtherWorkspace { theirs, .. } => (
            Code::OtherWorkspace,
            Some(theirs.display().to_string()),
            hint("leave out `-C` to restore it where it was made"),
        ),
        StateError::NotIdentical { .. } => (
            Code::RollbackFailed,
            None,
            hint("`safepoint redo` brings back what was there before"),
        ),
        StateError::Unsupported(_) => (Code::Unsupported, None, None),
        StateError::NotCollected => (
            Code::Unsupported,
            None,
            hint("nothing was changed: what is in the bucket stays there"),
        ),
        StateError::NoLeave { .. } => (Code::ConstraintViolated, None, None),
        StateError::CheckpointRequired { checkpoint, .. } => (
            Code::CheckpointRequired,
            Some(checkpoint.clone()).filter(|given| !given.is_empty()),
            hint(
                "nothing was changed; `safepoint checkpoint` makes one, or add `--auto-checkpoint`",
            ),
        ),
        StateError::OutOfReach { target } => (
            Code::CheckpointRequired,
            Some(target.clone()),
            hint("nothing was changed; name something inside the workspace and its checkpoint"),
        ),
        StateError::Protected { path, .. } => (
            Code::ConstraintViolated,
            Some(path.clone()),
            hint("nothing was changed"),
        ),
        StateError::BadTarget { target, .. } => (
            Code::TargetInvalid,
            Some(target.clone()),
            hint("a target is a path, `state:NAME`, or the address of a database"),
        ),
        StateError::Inapplicable {
            target, suggestion, ..
        } => (
            Code::OperationFailed,
            Some(target.clone()),
            Some(match suggestion.is_empty() {
                true => "nothing was changed".to_owned(),
                false => format!("nothing was changed; {suggestion}"),
            }),
        ),
        StateError::TargetLocked { path } => (
            Code::TargetLocked,
            Some(path.display().to_string()),
            hint("nothing was changed; try again when the other process releases its lock"),
        ),
        StateError::CommandFailed {
            command, ending, ..
        } => (
            stopped(*ending).unwrap_or(Code::CommandFailed),
            Some(command.clone()),
            hint("what it had done inside the scope was rolled back"),
        ),
        StateError::CheckFailed { check, ending, .. } => (
            stopped(*ending).unwrap_or(Code::VerificationFailed),
            Some(check.clone()),
            hint(
                "everything is as it was, and the checkpoint is still good; `--keep-failed` keeps such a change",
            ),
        ),
        StateError::SideEffects { paths } => (
            Code::ConstraintViolated,
            paths.first().cloned(),
            hint("everything is as it was; without `--strict` this is only told"),
        ),
        StateError::Database(error) => explain_database(error),
        StateError::Provider {
            key,
            command,
            ending,
            ..
        } => (
            stopped(*ending).unwrap_or(Code::ProviderFailed),
            Some(format!("state:{key}")),
            Some(format!("run `{command}` by hand to see what is wrong")),
        ),
        StateError::Git(_) => (
            Code::GitFailed,
            None,
            hint("`--type file_backup` does without git"),
        ),
        StateError::Seal(_) => (
            Code::SealFailed,
            None,
            hint("give the key with `--identity FILE`"),
        ),
        StateError::Store(error) => explain_store(error),
        StateError::Trail(error) => explain_trail(error),
        StateError::Entropy(_) => (Code::Internal, None, None),
    }
}

/// The code of a program that did not end by itself, whatever it was for.
fn stopped(ending: Ending) -> Option<Code> {
    match ending {
        Ending::ByItself => None,
        Ending::Interrupted => Some(Code::Interrupted),
        Ending::TimedOut => Some(Code::TimedOut),
    }
}

fn explain_database(error: &DatabaseError) -> Explanation {
    let hint = |text: &str| Some(text.to_owned());
    match error {
        DatabaseError::Address(AddressError::Password) => (
            Code::InvalidInput,
            None,
            hint(
                "leave it out, and set `PGPASSWORD` or `MYSQL_PWD`, or write it into `~/.pgpass` or `~/.my.cnf`; or name a variable that holds the address: `env:DATABASE_URL`",
            ),
        ),
        DatabaseError::Address(_) => (
            Code::InvalidInput,
            None,
            hint("behind `#` some tables can be named: `postgres://me@host/shop#users,audit.*`"),
        ),
        DatabaseError::Unreachable { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("check the address, and that the server runs"),
        ),
        DatabaseError::Refused { address, .. } => (
            Code::DatabaseRefused,
            Some(address.clone()),
            hint("set `PGPASSWORD` or `MYSQL_PWD`, or write it into `~/.pgpass` or `~/.my.cnf`"),
        ),
        DatabaseError::Lost { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("the database is as it was; try again when the server answers"),
        ),
        DatabaseError::MissingTool { tool, package } => (
            Code::ToolMissing,
            Some(tool.clone()),
            Some(format!("install it: `apt-get install {package}`")),
        ),
        DatabaseError::OldTool { tool, server, .. } => (
            Code::ToolMissing,
            Some(tool.clone()),
            Some(format!(
                "install the version that belongs to {server}, or a newer one"
            )),
        ),
        DatabaseError::Tool { tool, .. } => (
            Code::DatabaseFailed,
            Some(tool.clone()),
            hint("the database is as it was"),
        ),
        DatabaseError::Locked { address } => (
            Code::DatabaseLocked,
            Some(address.clone()),
            hint("nothing was changed; try again when the other connection is done"),
        ),
        DatabaseError::NotFound { name, .. } => (
            Code::ScopeEmpty,
            Some(name.clone()),
            hint("check the spelling"),
        ),
        DatabaseError::Sql { .. } | DatabaseError::PartlyKept { .. } => {
            (Code::OperationFailed, None, hint("everything is as it was"))
        }
        DatabaseError::Unsupported { address, .. }
        | DatabaseError::NotIdentical { address, .. } => (
            Code::DatabaseFailed,
            Some(address.clone()),
            hint("the database is as it was"),
        ),
        DatabaseError::File { path, error, .. } => explain_file(path, error),
        DatabaseError::Kept(_) => (Code::StoreFailed, None, None),
    }
}

fn explain_file(path: &std::path::Path, error: &std::io::Error) -> Explanation {
    use std::io::ErrorKind;
    let (code, hint) = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => (
            Code::StoreFull,
            "make room on that disk, then try again: nothing was half-written",
        ),
        ErrorKind::ReadOnlyFilesystem => (
            Code::StoreReadOnly,
            "make it writable, or work on a copy that is",
        ),
        ErrorKind::PermissionDenied => (
            Code::FileFailed,
            "check who may read and write it, or leave it out with `exclude` in safepoint.yaml",
        ),
        _ => (Code::FileFailed, "the cause above says what failed"),
    };
    (
        code,
        Some(path.display().to_string()),
        Some(hint.to_owned()),
    )
}
