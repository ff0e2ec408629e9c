//! `safepoint session list`.

use super::own;
use safepoint_gates::Session;
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// At most so many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Only those in which this one acts
    #[arg(long, value_name = "PRINCIPAL")]
    principal: Option<String>,
}

/// What `session list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionList {
    /// The newest first.
    sessions: Vec<SessionLine>,
}

/// One session.
#[derive(Serialize, JsonSchema)]
struct SessionLine {
    session_id: String,
    /// When it began.
    started: String,
    /// When it ended.
    ended: Option<String>,
    /// What it is for.
    goal: Option<String>,
    /// Who acts in it.
    principal: String,
    /// The atlases it is judged under.
    atlases: Vec<String>,
    /// How many holds are open.
    holds: usize,
}

impl From<&Session> for SessionLine {
    fn from(session: &Session) -> Self {
        let open = session.holds.iter().filter(|hold| !hold.is_cleared());
        Self {
            session_id: session.session_id.to_string(),
            started: session.started.to_string(),
            ended: session.ended.map(|time| time.to_string()),
            goal: session.goal.clone(),
            principal: session.principal.clone(),
            atlases: session
                .atlases
                .iter()
                .map(|pin| format!("{}@{}", pin.atlas_id, pin.version))
                .collect(),
            holds: open.count(),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let control = context.control()?;
    let mut sessions = match &arguments.principal {
        None => control.sessions(arguments.limit)?,
        Some(principal) => control.sessions_of(principal, arguments.limit)?,
    };
    if let Some(own) = own::sessions(context, &control)? {
        sessions.retain(|session| own.contains(session.session_id.as_str()));
    }
    let reply = SessionList {
        sessions: sessions.iter().map(SessionLine::from).collect(),
    };
    context.console.value(&reply, |reply| {
        let mut shown = String::new();
        for line in &reply.sessions {
            let state = match (&line.ended, line.holds) {
                (Some(_), _) => "ended".to_owned(),
                (None, 0) => "open".to_owned(),
                (None, holds) => format!("{holds} waiting"),
            };
            let goal = text::line(line.goal.as_deref().unwrap_or_default()).text;
            let atlases = text::line(&line.atlases.join(", ")).text;
            shown.push_str(&format!(
                "{STRONG}{}{STRONG:#}  {FAINT}{}{FAINT:#}  {state:<10}  {atlases}  {goal}\n",
                line.session_id,
                line.started.get(..19).unwrap_or(&line.started),
            ));
        }
        shown
    })?;
    Ok(Exit::Done)
}
