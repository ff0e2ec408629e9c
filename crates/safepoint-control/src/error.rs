//! What can go wrong with a session.

use std::path::PathBuf;

use safepoint_authority::{CanonicalError, DecisionError, HoldError, PermitError};
use safepoint_gates::Refusal;
use safepoint_gates::load::Problem;
use safepoint_model::{ActionId, EntropyError};
use safepoint_state::StateError;
use safepoint_store::StoreError;
use safepoint_trail::TrailError;
use safepoint_trail::note::NoteError;

/// Why a step was not taken. Nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// A file cannot be read.
    #[error("cannot read `{}`", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// An atlas is wrong.
    #[error("`{}` is not an atlas that can be used: {}", path.display(), first(problems))]
    Atlas {
        /// Which file.
        path: PathBuf,
        /// Its text, for showing where.
        text: String,
        /// Everything that is wrong with it.
        problems: Vec<Problem>,
    },
    /// A module cannot be used.
    #[error("the code `{}` cannot be used: {reason}", path.display())]
    Module {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An atlas is no longer what the session began with.
    #[error("the atlas `{}` has changed since the session began", path.display())]
    AtlasChanged {
        /// Which file.
        path: PathBuf,
    },
    /// A signature is missing, broken, or of somebody else.
    #[error("the signature of `{}` will not do: {reason}", path.display())]
    Signature {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// A key cannot be used.
    #[error("`{}` is not a key that signs", path.display())]
    Key {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        error: NoteError,
    },
    /// The atlas is not for this caller.
    #[error("the atlas `{atlas_id}` is not for you: {reason}")]
    Access {
        /// Which atlas.
        atlas_id: String,
        /// Why.
        reason: &'static str,
    },
    /// The caller asks for too much.
    #[error("the atlas `{atlas_id}` allows no more than {most} sessions a day")]
    TooManySessions {
        /// Which atlas.
        atlas_id: String,
        /// How many it allows.
        most: u64,
    },
    /// There is no such thing.
    #[error("there is no {what} `{name}`")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// The beginning of an id fits more than one.
    #[error("`{prefix}` is the beginning of {count} {what}s")]
    Ambiguous {
        /// What kind of thing.
        what: &'static str,
        /// The beginning.
        prefix: String,
        /// How many.
        count: usize,
    },
    /// The engine would not take the event.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The outcome of a request cannot be reported.
    #[error("the outcome of `{id}` cannot be reported: {reason}")]
    NotReportable {
        /// Which request.
        id: ActionId,
        /// Why.
        reason: &'static str,
    },
    /// What is in the store is not what the trail tells of.
    #[error("the {what} `{id}` was changed behind our back")]
    Tampered {
        /// What kind of thing.
        what: &'static str,
        /// Which one.
        id: String,
    },
    /// Stewards' services ask for ever.
    #[error("the steward's services were asked {0} times, and there is still no answer")]
    Endless(usize),
    /// What is in the store cannot be read.
    #[error("the {what} `{id}` cannot be read")]
    Unreadable {
        /// What kind of thing.
        what: &'static str,
        /// Which one.
        id: String,
        /// Why.
        #[source]
        error: serde_json::Error,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The trail failed.
    #[error(transparent)]
    Trail(#[from] TrailError),
    /// The state failed.
    #[error(transparent)]
    State(#[from] StateError),
    /// A proposal cannot be one.
    #[error("{reason}")]
    Proposal {
        /// Why.
        reason: String,
    },
    /// The action has no canonical form.
    #[error(transparent)]
    Canonical(#[from] CanonicalError),
    /// A decision does not count.
    #[error(transparent)]
    Decision(#[from] DecisionError),
    /// A decision does not fit the hold.
    #[error(transparent)]
    Hold(#[from] HoldError),
    /// A permit cannot be changed.
    #[error("the permit `{id}` cannot be revoked: {reason}")]
    Permit {
        /// Which one.
        id: String,
        /// Why.
        reason: PermitError,
    },
    /// Nobody may decide here, or not this one.
    #[error("{reason}")]
    Operator {
        /// Why.
        reason: String,
    },
    /// Somebody cannot be told, or not like this.
    #[error("the target `{name}` cannot be used: {reason}")]
    Target {
        /// Which one.
        name: String,
        /// Why.
        reason: String,
    },
    /// A session is not judged under the rules of the workspace.
    #[error(
        "the session `{session}` is not judged under `{atlas}`, which applies to this workspace"
    )]
    Weaker {
        /// Which session.
        session: String,
        /// The atlas that it lacks.
        atlas: String,
    },
    /// Another hold of the same session came first.
    #[error("holds are decided one after another, and `{first}` of the same session came first")]
    OutOfTurn {
        /// The one that is to be decided now.
        first: safepoint_model::HoldId,
    },
    /// An agent wants to decide.
    #[error("an agent cannot decide about its own actions")]
    AgentDecides,
    /// The permit or the hold was settled by somebody else meanwhile.
    #[error("somebody else was faster: {0}")]
    Meanwhile(&'static str),
    /// A program cannot be started.
    #[error("cannot start `{program}`")]
    Start {
        /// Which one.
        program: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A name is given to one token only.
    #[error("there is a token `{name}` already, or there was one")]
    TokenExists {
        /// Which one.
        name: String,
    },
    /// A signature that was made elsewhere does not fit.
    #[error("the signature will not do: {reason}")]
    SignedElse {
        /// Why.
        reason: &'static str,
    },
    /// The server that judges cannot be asked.
    #[error("the server cannot be asked: {reason}")]
    Unreachable {
        /// Why.
        reason: String,
    },
    /// The server that judges answers with something that cannot be used.
    #[error("the server's answer cannot be used: {reason}")]
    Elsewhere {
        /// Why.
        reason: String,
    },
    /// The server that judges refuses.
    #[error("{message}")]
    Refuses {
        /// Its code.
        code: String,
        /// What it says.
        message: String,
        /// Where, as it says.
        location: Option<String>,
        /// What it advises.
        suggestion: Option<String>,
    },
    /// No random bytes.
    #[error(transparent)]
    Entropy(#[from] EntropyError),
}

fn first(problems: &[Problem]) -> String {
    problems
        .first()
        .map_or_else(String::new, |problem| problem.message.clone())
}
