//! `safepoint atlas replay`.

use std::path::PathBuf;

use safepoint_control::{AtlasFile, Change, Played};
use safepoint_model::{Clock, Exit, Span, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, STRONG, count};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `atlas replay`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The atlases to judge under
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// How far back, such as 7d; everything without it
    #[arg(long, value_name = "SPAN")]
    since: Option<Span>,
    /// Also sessions that were under atlases with another id
    #[arg(long)]
    all: bool,
}

/// What `atlas replay` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ReplayReply {
    /// How many sessions were played.
    sessions: usize,
    /// How many were left out, since they were under atlases with another id.
    skipped: usize,
    /// How many requests were judged again.
    requests: usize,
    /// Those that would be judged otherwise, the oldest first.
    changes: Vec<ChangedRequest>,
}

/// A request that would be judged otherwise.
#[derive(Serialize, JsonSchema)]
struct ChangedRequest {
    session_id: String,
    request_id: String,
    /// When it was made.
    time: String,
    action_id: String,
    /// What was decided.
    before: String,
    /// What would be.
    after: String,
    /// Why.
    reason: String,
}

impl From<Change> for ChangedRequest {
    fn from(change: Change) -> Self {
        Self {
            session_id: change.session_id,
            request_id: change.request_id,
            time: change.time.to_string(),
            action_id: change.action,
            before: change.before,
            after: change.after,
            reason: change.reason,
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let atlases = arguments
        .files
        .iter()
        .map(|path| AtlasFile::read(&context.directory.join(path)))
        .collect::<Result<Vec<_>, _>>()?;
    let now = SystemClock.now();
    let since = arguments.since.map(|span| {
        now.saturating_add_micros(-i64::try_from(span.as_micros()).unwrap_or(i64::MAX))
    });
    let played = match arguments.all {
        true => Played::All,
        false => Played::SameAtlas,
    };
    let replay = context.control()?.replay(&atlases, since, played)?;
    let reply = ReplayReply {
        sessions: replay.sessions,
        skipped: replay.skipped,
        requests: replay.requests,
        changes: replay
            .changes
            .into_iter()
            .map(ChangedRequest::from)
            .collect(),
    };
    context.console.value(&reply, show)?;
    Ok(Exit::Done)
}

fn show(reply: &ReplayReply) -> String {
    let mut shown = String::new();
    let width = reply
        .changes
        .iter()
        .map(|change| change.action_id.chars().count())
        .max()
        .unwrap_or(0)
        .min(40);
    for change in &reply.changes {
        shown.push_str(&format!(
            "{FAINT}{}{FAINT:#}  {STRONG}{:<width$}{STRONG:#}  {} → {}  {FAINT}{}{FAINT:#}\n",
            change.time.get(..19).unwrap_or(&change.time),
            text::line(&change.action_id).text,
            change.before,
            change.after,
            text::line(&change.reason).text,
        ));
    }
    let judged = count(reply.requests as u64, "request", "requests");
    let sessions = count(reply.sessions as u64, "session", "sessions");
    shown.push_str(&match reply.changes.len() {
        0 => format!("{judged} in {sessions}: nothing would change\n"),
        changes => format!("{judged} in {sessions}: {changes} would be judged otherwise\n"),
    });
    if reply.skipped > 0 {
        let skipped = count(reply.skipped as u64, "session was", "sessions were");
        shown.push_str(&format!(
            "{FAINT}{skipped} under other atlases; `--all` plays them too{FAINT:#}\n"
        ));
    }
    shown
}
