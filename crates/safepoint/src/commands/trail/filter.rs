//! The options by which entries are chosen.

use safepoint_model::{Clock, Span, Timestamp};
use safepoint_trail::{FieldFilter, Query, Trail};

use crate::error::CliError;
use crate::world::SystemClock;

/// Which entries
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only of this session: its id, or the beginning of it
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Only of this workspace: its id, or the beginning of it
    #[arg(long, value_name = "WORKSPACE")]
    workspace: Option<String>,
    /// Only of this action: its id, or the beginning of it
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only of this kind
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
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

impl Filter {
    /// The query these options make. Beginnings of ids are looked up in `trail`.
    pub(crate) fn query(&self, trail: &Trail) -> Result<Query, CliError> {
        let streams = [&self.session, &self.workspace]
            .into_iter()
            .flatten()
            .map(|name| trail.find_stream(name))
            .collect::<Result<_, _>>()?;
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
                .collect::<Result<_, _>>()?,
            from: 0,
        })
    }
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
