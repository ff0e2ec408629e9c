//! `safepoint workspace checkpoint`: an agent adds to the chain of its workspace.

use safepoint_model::{Exit, text};
use safepoint_progress::record::Record;
use safepoint_progress::rejection::Rejection;
use safepoint_progress::{Place, checkpoint_in};
use safepoint_state::Standing;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{RecordDocument, confidence_word, status_word};
use super::{Credential, open};
use crate::commands::checkpoint::NoteDocument;
use crate::commands::outside;
use crate::console::{BAD, FAINT, GOOD, STRONG, WARNING};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace checkpoint`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    #[command(flatten)]
    credential: Credential,
    /// The checkpoint as JSON or YAML: type, payload, intent, parent, status, confidence; @FILE for a file, - for standard input
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    body: String,
    /// The same key with the same body gives the first result again
    #[arg(long, value_name = "KEY")]
    request_key: Option<String>,
}

/// What `workspace checkpoint` prints: one of the two.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointReply {
    /// The checkpoint that was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RecordDocument>")]
    checkpoint: Option<Record>,
    /// What was made or changed in the directory and is not in the checkpoint: secrets, and
    /// what is left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    not_covered: Vec<NoteDocument>,
    /// Why none was.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<RejectionDocument>")]
    rejected: Option<Rejection>,
}

/// Why a checkpoint was not made.
#[derive(Serialize, JsonSchema)]
struct RejectionDocument {
    /// `invalid_structure`, `invalid_type`, `permission_denied`, `workspace_not_active` or `invalid_parent`.
    reason: String,
    /// What exactly, so that it can be done better.
    detail: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let token = arguments.credential.read(context)?;
    let body = outside::json_or_yaml(context, &arguments.body)?;
    let (progress, id) = open(context, &arguments.workspace)?;
    let key = arguments.request_key.as_deref();
    let place = progress.place(&id)?;
    let outcome = match &place {
        None => progress.checkpoint(&id, &token, &body, key, None)?,
        Some(place) => {
            let state = context.state()?;
            let directory = context.directory_of(place)?;
            checkpoint_in(&progress, &state, &directory, &id, &token, &body, key)?
        }
    };
    let (reply, exit) = match outcome {
        Ok(record) => (
            CheckpointReply {
                not_covered: not_covered(context, place.as_ref(), &record)?,
                checkpoint: Some(record),
                rejected: None,
            },
            Exit::Done,
        ),
        Err(rejection) => (
            CheckpointReply {
                checkpoint: None,
                not_covered: Vec::new(),
                rejected: Some(rejection),
            },
            Exit::Denied,
        ),
    };
    context.console.value(&reply, show)?;
    Ok(exit)
}

/// What somebody made or changed in the directory of a checkpoint that it does not hold. Where
/// the directory is gone, or another, nobody can tell, and everything that was left out is named.
pub(super) fn not_covered(
    context: &mut Context,
    place: Option<&Place>,
    record: &Record,
) -> Result<Vec<NoteDocument>, CliError> {
    let Some(snapshot) = &record.snapshot else {
        return Ok(Vec::new());
    };
    let state = context.state()?;
    let snapshot = state.find(snapshot.as_str())?;
    let standing = match place {
        Some(place) => state.standing(place.workspace.as_str(), &place.path)?,
        None => Standing::Gone,
    };
    let notes = match place {
        Some(place) if standing == Standing::Made => {
            state.unheld(&context.directory_of(place)?, &snapshot.record)?
        }
        _ => snapshot.record.not_covered(),
    };
    Ok(notes.iter().map(Into::into).collect())
}

/// One line for each path that is not covered.
pub(super) fn lines_of(not_covered: &[NoteDocument]) -> String {
    let line = |note: &NoteDocument| format!("{WARNING}not held{WARNING:#}  {}\n", note.shown());
    not_covered.iter().map(line).collect()
}

fn show(reply: &CheckpointReply) -> String {
    if let Some(record) = &reply.checkpoint {
        let said = format!(
            "{GOOD}recorded{GOOD:#}  {STRONG}{}{STRONG:#}  {}, {} confidence  {FAINT}{}{FAINT:#}\n",
            record.id,
            status_word(record.status),
            confidence_word(record.confidence),
            text::line(&record.intent).text,
        );
        return said + &lines_of(&reply.not_covered);
    }
    reply
        .rejected
        .as_ref()
        .map_or_else(String::new, |rejected| {
            format!(
                "{BAD}rejected{BAD:#}  {STRONG}{}{STRONG:#}: {}\n",
                rejected.reason,
                text::line(&rejected.detail).text,
            )
        })
}
