//! `safepoint workspace decline` and `safepoint workspace remove`.

use safepoint_model::Exit;
use safepoint_progress::integrate::Declined;
use safepoint_progress::state::State;
use safepoint_progress::{Unheld, remove_apart};
use schemars::JsonSchema;
use serde::Serialize;

use super::document::state_word;
use super::open;
use super::state::{StateReply, print_state};
use crate::commands::checkpoint::NoteDocument;
use crate::console::{BAD, FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace decline`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// It is to be done again, in a new workspace
    #[arg(long)]
    revise: bool,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let how = match arguments.revise {
        true => Declined::Revise,
        false => Declined::Rejected,
    };
    progress.decline(&id, how, &context.actor()?)?;
    print_state(context, StateReply::of(&progress.workspace(&id)?))
}

/// Arguments of `workspace remove`
#[derive(Debug, clap::Args)]
pub(crate) struct RemoveArguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// Also where it has work that no checkpoint holds, such as secrets: that is lost
    #[arg(long)]
    discard: bool,
}

/// What `workspace remove` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RemoveReply {
    workspace_id: String,
    /// Where it stands.
    #[schemars(with = "String")]
    state: State,
    /// The checkpoint that holds what was in the directory; null where it was gone already.
    checkpoint_id: Option<String>,
    /// Work that no checkpoint holds, and that is gone.
    discarded: Vec<NoteDocument>,
}

pub(crate) fn remove(context: &mut Context, arguments: &RemoveArguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let Some(place) = progress.place(&id)? else {
        return Err(CliError::Invalid {
            message: format!("`{id}` has no directory of its own"),
            suggestion: "`safepoint workspace create --isolated` makes one with it",
        });
    };
    let state = context.state()?;
    let directory = context.directory_of(&place)?;
    let unheld = match arguments.discard {
        true => Unheld::Discard,
        false => Unheld::Keep,
    };
    let by = context.actor()?;
    let removed = remove_apart(&progress, &state, &directory, &id, unheld, &by)?;
    let reply = RemoveReply {
        workspace_id: id.to_string(),
        state: progress.workspace(&id)?.state,
        checkpoint_id: removed.checkpoint.map(|checkpoint| checkpoint.to_string()),
        discarded: removed.discarded.iter().map(Into::into).collect(),
    };
    context.console.value(&reply, |reply| {
        let mut shown = format!(
            "{STRONG}{}{STRONG:#}  {}\n",
            reply.workspace_id,
            state_word(reply.state)
        );
        if let Some(checkpoint) = &reply.checkpoint_id {
            shown.push_str(&format!(
                "{FAINT}checkpoint{FAINT:#}  {checkpoint}  {FAINT}(`safepoint show {checkpoint}` tells what it holds){FAINT:#}\n"
            ));
        }
        for note in &reply.discarded {
            shown.push_str(&format!("{BAD}discarded{BAD:#}   {}\n", note.shown()));
        }
        shown
    })?;
    Ok(Exit::Done)
}
