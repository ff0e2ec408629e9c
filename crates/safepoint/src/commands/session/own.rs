//! Which sessions an agent may have to do with: its own.

use std::collections::BTreeSet;

use safepoint_control::Control;
use safepoint_model::SessionId;

use crate::context::Context;
use crate::error::CliError;

/// The sessions of the agent that calls: the one it works in, and those of the client that has
/// started it. `None` for a person, who has to do with all.
pub(in crate::commands) fn sessions(
    context: &Context,
    control: &Control,
) -> Result<Option<BTreeSet<String>>, CliError> {
    // Over a server, what whoever asks may reach is said by its token: no process here is theirs.
    if !context.is_agent() || context.served().is_some() {
        return Ok(None);
    }
    let of_client = control.sessions_of_client()?;
    let mut sessions: BTreeSet<String> = of_client.iter().map(ToString::to_string).collect();
    sessions.extend(context.environment.text("SAFEPOINT_SESSION"));
    Ok(Some(sessions))
}

/// The session whose id begins like this, if whoever calls may have to do with it.
pub(super) fn find(
    context: &Context,
    control: &Control,
    prefix: &str,
) -> Result<SessionId, CliError> {
    let session = control.find(prefix)?;
    match sessions(context, control)? {
        Some(own) if !own.contains(session.as_str()) => Err(CliError::NotFound {
            what: "session of this agent",
            name: prefix.to_owned(),
        }),
        _ => Ok(session),
    }
}
