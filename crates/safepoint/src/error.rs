//! Errors as people and programs see them: the one map from every error to its
//! code, its place and what to do next.

mod control;
mod database;
mod file;
mod progress;
mod state;
mod store;
mod trail;

use std::error::Error;
use std::path::PathBuf;

use safepoint_authority::DenialCode;
use safepoint_control::{ControlError, HttpsError};
use safepoint_model::yaml::YamlError;
use safepoint_model::{Code, Exit};
use safepoint_progress::ProgressError;
use safepoint_state::StateError;
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
    #[error(
        "this was recorded of `{}`, which looks as if it had been moved here, and nothing was touched",
        from.display()
    )]
    Moved { from: PathBuf },
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
    /// A signal ended it while it waited for somebody to decide.
    #[error("interrupted while it waited for a decision: nothing was run")]
    Interrupted,
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
    pub(crate) name: &'static str,
    pub(crate) message: String,
    location: Option<String>,
    pub(crate) suggestion: Option<String>,
    #[serde(skip)]
    pub(crate) causes: Vec<String>,
    #[serde(skip)]
    pub(crate) exit: Exit,
}

/// An error with its causes, on one line.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    told
}

impl CliError {
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
        CliError::Interrupted => (
            Code::Interrupted,
            None,
            hint("`safepoint hold list` shows what still waits; then run the same command again"),
        ),
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
        CliError::Moved { from } => (
            Code::OtherWorkspace,
            Some(from.display().to_string()),
            Some(format!(
                "`{}` goes on with its history here",
                crate::context::adopting(from)
            )),
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
        CliError::Store(error) => store::explain(error),
        CliError::Trail(error) => trail::explain(error),
        CliError::State(error) => state::explain(error),
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
        CliError::Witness(error) => (
            Code::WitnessRefused,
            None,
            hint(trail::explain_witness(error)),
        ),
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
            let (_, location, _) = store::explain(error);
            (
                Code::Output,
                location,
                hint("check the path and its permissions"),
            )
        }
        CliError::Output(_) | CliError::Json(_) => (Code::Output, None, None),
    }
}
