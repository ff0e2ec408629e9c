//! `safepoint workspace verify`.

use safepoint_model::{Exit, text};
use safepoint_progress::{Fault, VerifiedFiles};
use schemars::JsonSchema;
use serde::Serialize;

use super::{One, open};
use crate::console::{BAD, FAINT, GOOD, count};
use crate::context::Context;
use crate::error::CliError;

/// What `workspace verify` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct VerifyReply {
    workspace_id: String,
    /// Whether the chain is what was written.
    valid: bool,
    /// How many checkpoints hold.
    checked: u64,
    /// How many entries of the trail were compared.
    entries: u64,
    /// How many checkpoints of files were read and hashed again.
    files_read: u64,
    /// How many checkpoints of files are not here: collected after they expired, or kept on
    /// another machine.
    files_absent: u64,
    /// The first thing that does not hold.
    #[schemars(with = "Option<FaultDocument>")]
    first_bad: Option<Fault>,
}

/// Something that is not what was written.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FaultDocument {
    /// `trail_entry`, `workspace`, `move`, `binding`, `checkpoint`, `signal`, `delivery`, `meter`,
    /// `place`, `removed_place`, `integration`, `integration_action`, `conflict`, `resolution`,
    /// `integration_end`, `task`, `task_move` or `dependency`.
    subject: String,
    /// Which of its kind in this workspace, from 1.
    number: u64,
    /// Its id, as far as it is known.
    id: Option<String>,
    /// What is wrong.
    reason: String,
}

pub(crate) fn run(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let found = progress.verify(&id)?;
    let has_files = found.valid
        && progress
            .log(&id)?
            .iter()
            .any(|record| record.snapshot.is_some());
    let files = match has_files {
        true => progress.verify_files(&context.state()?, &id)?,
        false => VerifiedFiles::default(),
    };
    let reply = VerifyReply {
        workspace_id: id.to_string(),
        valid: found.valid && files.first_bad.is_none(),
        checked: found.checked,
        entries: found.entries,
        files_read: files.read,
        files_absent: files.absent,
        first_bad: found.first_bad.or(files.first_bad),
    };
    context.console.value(&reply, show)?;
    Ok(match reply.valid {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn show(reply: &VerifyReply) -> String {
    let checked = count(reply.checked, "checkpoint", "checkpoints");
    match &reply.first_bad {
        None => {
            let entries = count(reply.entries, "entry", "entries");
            let files = match (reply.files_read, reply.files_absent) {
                (0, 0) => String::new(),
                (read, absent) => format!(
                    "{FAINT}      files: {read} read and hashed again, {absent} not here{FAINT:#}\n"
                ),
            };
            format!(
                "{GOOD}good{GOOD:#}  {checked}: content, proofs and order, as {entries} of the trail tell\n{files}"
            )
        }
        Some(bad) => {
            let id = bad.id.as_deref().map(|id| text::line(id).text);
            let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
            format!(
                "{BAD}bad{BAD:#}   {} {}{id}: {}\n{FAINT}      before it: {checked}, as written{FAINT:#}\n",
                bad.subject, bad.number, bad.reason
            )
        }
    }
}
