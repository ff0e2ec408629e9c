//! `safepoint workspace state` and `safepoint workspace migrate`.

use safepoint_model::Exit;
use safepoint_progress::Workspace;
use safepoint_progress::state::State;
use schemars::JsonSchema;
use serde::Serialize;

use super::create::{CreateReply, print};
use super::document::state_word;
use super::{One, open};
use crate::console::STRONG;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace state`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// Where it is to go: active, blocked, suspended or failed; integrations do the rest
    state: State,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What `workspace state` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct StateReply {
    workspace_id: String,
    /// Where it stands now.
    #[schemars(with = "String")]
    state: State,
    /// Where a pause will end.
    #[schemars(with = "Option<String>")]
    former: Option<State>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let reason = arguments.reason.as_deref();
    let standing = progress.move_to(&id, arguments.state, reason, &context.actor()?)?;
    let reply = StateReply {
        workspace_id: id.to_string(),
        state: standing.state,
        former: standing.former,
    };
    print_state(context, reply)
}

impl StateReply {
    pub(super) fn of(workspace: &Workspace) -> Self {
        Self {
            workspace_id: workspace.workspace_id.to_string(),
            state: workspace.state,
            former: workspace.former,
        }
    }
}

pub(super) fn print_state(context: &mut Context, reply: StateReply) -> Result<Exit, CliError> {
    context.console.value(&reply, |reply| {
        format!(
            "{STRONG}{}{STRONG:#}  {}\n",
            reply.workspace_id,
            state_word(reply.state)
        )
    })?;
    Ok(Exit::Done)
}

pub(crate) fn migrate(context: &mut Context, arguments: &One) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let created = progress.migrate(&id, &context.actor()?)?;
    let place = progress.place(&id)?;
    let reply = CreateReply {
        workspace_id: created.workspace_id.to_string(),
        token: created.token,
        path: place.map(|place| place.path.display().to_string()),
        left_out: Vec::new(),
    };
    print(context, &reply)?;
    Ok(Exit::Done)
}
