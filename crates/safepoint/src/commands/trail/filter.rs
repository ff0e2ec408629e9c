//! The options by which entries are chosen.

use safepoint_control::pass::JOINED;
use safepoint_model::{Clock, SessionId, Span, Timestamp};
use safepoint_store::Flow;
use safepoint_trail::{FieldFilter, Query, Stream, Trail};
use serde::Deserialize;

use crate::error::CliError;
use crate::world::SystemClock;

/// Which entries
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only of this session: its id, or the beginning of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only of this workspace, and of sessions in its directory: its id, or the beginning of it
    #[arg(long, value_name = "WORKSPACE")]
    workspace: Option<String>,
    /// Only of this action: its id, or the beginning of it
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
    /// Only checkpoints of this: `state` for files, databases and states, `record` for records of
    /// work in a workspace
    #[arg(long, value_name = "SUBJECT", value_enum)]
    subject: Option<CheckpointSubject>,
    /// Only by this actor
    #[arg(long, value_name = "ACTOR")]
    actor: Option<String>,
    /// Only since then: an RFC 3339 time, or how long ago (90s, 24h, 7d)
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only before then
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only with this in the body: FIELD=VALUE, FIELD being a name or names joined by dots
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    fields: Vec<String>,
}

/// What `checkpoint_created` tells of, as the body of such an entry says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum CheckpointSubject {
    /// Restorable state: files, databases, states
    State,
    /// A record of work in a workspace
    Record,
}

impl CheckpointSubject {
    fn to_field(self) -> FieldFilter {
        let value = match self {
            Self::State => "state",
            Self::Record => "record",
        };
        FieldFilter {
            path: vec!["subject".to_owned()],
            value: value.to_owned(),
        }
    }
}

impl Filter {
    /// The query these options make. Beginnings of ids are looked up in `trail`.
    pub(crate) fn query(&self, trail: &Trail) -> Result<Query, CliError> {
        let mut streams = Vec::new();
        if let Some(name) = &self.session {
            streams.push(trail.find_stream(name)?);
        }
        if let Some(name) = &self.workspace {
            let workspace = trail.find_stream(name)?;
            streams.extend(sessions_in(trail, &workspace)?);
            streams.push(workspace);
        }
        let action = self.action.as_deref();
        Ok(Query {
            streams,
            action: action.map(|id| trail.find_action(id)).transpose()?,
            kind: self.kind.clone(),
            actor: self.actor.clone(),
            since: self.since.as_deref().map(moment).transpose()?,
            until: self.until.as_deref().map(moment).transpose()?,
            fields: self
                .fields
                .iter()
                .map(|text| field(text))
                .chain(self.subject.map(|subject| Ok(subject.to_field())))
                .collect::<Result<_, _>>()?,
            from: 0,
        })
    }
}

/// The sessions that acted in the directory of an agent's workspace.
fn sessions_in(trail: &Trail, workspace: &Stream) -> Result<Vec<Stream>, CliError> {
    #[derive(Deserialize)]
    struct Joined {
        session_id: SessionId,
    }
    let joined = Query {
        streams: vec![workspace.clone()],
        kind: Some(JOINED.to_owned()),
        ..Query::default()
    };
    let mut sessions: Vec<Stream> = Vec::new();
    trail.entries(&joined, |entry| -> Result<Flow, CliError> {
        if let Ok(Joined { session_id }) = serde_json::from_str(&entry.body) {
            let session = Stream::from(&session_id);
            if !sessions.contains(&session) {
                sessions.push(session);
            }
        }
        Ok(Flow::More)
    })?;
    Ok(sessions)
}

fn field(text: &str) -> Result<FieldFilter, CliError> {
    FieldFilter::parse(text).ok_or_else(|| CliError::Invalid {
        message: format!("`--where {text}` is not of the form FIELD=VALUE"),
        suggestion: "for example `--where decision=deny` or `--where result.code=0`",
    })
}

/// A time, or a span before now.
pub(in crate::commands) fn moment(text: &str) -> Result<Timestamp, CliError> {
    if let Ok(time) = Timestamp::parse(text) {
        return Ok(time);
    }
    let span: Span = text.parse().map_err(|_| CliError::Invalid {
        message: format!("`{text}` is neither a time nor a length of time"),
        suggestion: "write `2026-11-15T07:30:00Z`, or how long ago: `90s`, `24h`, `7d`",
    })?;
    let micros = i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    Ok(SystemClock.now().saturating_add_micros(-micros))
}
