//! The tables of sessions.

use std::collections::HashMap;
use std::path::PathBuf;

use safepoint_gates::{Judgement, Outcome, Rate, Session};
use safepoint_model::{ActionId, Digest, Frame, SessionId, Timestamp};
use safepoint_store::{Row, Sql, StoreError, Value, query_all, query_one};
use safepoint_trail::{Stream, newest_of};
use serde::{Deserialize, Serialize};

use crate::ControlError;

/// Where the atlases of a session were read from, in the order of its pins.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sources {
    pub(crate) paths: Vec<PathBuf>,
}

/// A request, as it is kept.
pub(super) struct KeptRequest {
    pub(super) action: String,
    pub(super) decision: String,
    pub(super) outcome: Option<String>,
}

/// The kind of the entry that ends each step: what the session is from then on.
pub(super) const STATE: &str = "SessionState";

/// What such an entry tells.
#[derive(Deserialize, Serialize)]
pub(super) struct StateEntry {
    digest: Digest,
}

/// The entry that belongs to a session as it is now.
pub(super) fn state_entry(
    session: &Session,
    sources: &Sources,
) -> Result<StateEntry, ControlError> {
    let (state, sources) = (write(session)?, to_json(sources, &session.session_id)?);
    Ok(StateEntry {
        digest: digest(&state, &sources),
    })
}

fn digest(state: &str, sources: &str) -> Digest {
    Frame::new("safepoint/session/v1")
        .field(state.as_bytes())
        .field(sources.as_bytes())
        .digest()
}

pub(super) fn insert(
    sql: &mut dyn Sql,
    session: &Session,
    sources: &Sources,
) -> Result<(), ControlError> {
    let (state, sources) = (write(session)?, to_json(sources, &session.session_id)?);
    sql.execute(
        "INSERT INTO control_sessions (id, started, ended, sources, state) VALUES (?1, ?2, ?3, ?4, ?5)",
        &[
            Value::Text(session.session_id.as_str()),
            Value::Integer(session.started.as_micros()),
            session.ended.map(Timestamp::as_micros).into(),
            Value::Text(&sources),
            Value::Text(&state),
        ],
    )?;
    Ok(())
}

pub(super) fn update(sql: &mut dyn Sql, session: &Session) -> Result<(), ControlError> {
    let state = write(session)?;
    sql.execute(
        "UPDATE control_sessions SET ended = ?2, state = ?3 WHERE id = ?1",
        &[
            Value::Text(session.session_id.as_str()),
            session.ended.map(Timestamp::as_micros).into(),
            Value::Text(&state),
        ],
    )?;
    Ok(())
}

pub(super) fn read(sql: &mut dyn Sql, id: &SessionId) -> Result<(Session, Sources), ControlError> {
    let found = query_one(
        sql,
        "SELECT state, sources FROM control_sessions WHERE id = ?1",
        &[Value::Text(id.as_str())],
        |row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())),
    )?;
    let Some((state, sources)) = found else {
        return Err(ControlError::NotFound {
            what: "session",
            name: id.to_string(),
        });
    };
    // Whoever can write to this table must not be able to pass gates by it.
    let entry = newest_of(sql, &Stream::from(id), STATE)?;
    let told = entry.and_then(|entry| serde_json::from_str::<StateEntry>(&entry.body).ok());
    if told.is_none_or(|told| told.digest != digest(&state, &sources)) {
        return Err(ControlError::Tampered {
            what: "session",
            id: id.to_string(),
        });
    }
    Ok((from_json(&state, id)?, from_json(&sources, id)?))
}

/// The one session whose id begins with `prefix`.
pub(super) fn find(sql: &mut dyn Sql, prefix: &str) -> Result<SessionId, ControlError> {
    let plain = |c: u8| c.is_ascii_alphanumeric() || c == b'_';
    let mut found: Vec<String> = Vec::new();
    if !prefix.is_empty() && prefix.bytes().all(plain) {
        let end = format!("{prefix}\u{7f}");
        found = query_all(
            sql,
            "SELECT id FROM control_sessions WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 21",
            &[Value::Text(prefix), Value::Text(&end)],
            |row| row.text(0).map(str::to_owned),
        )?;
    }
    match found.as_slice() {
        [id] => id.parse().map_err(|_| ControlError::NotFound {
            what: "session",
            name: prefix.to_owned(),
        }),
        [] => Err(ControlError::NotFound {
            what: "session",
            name: prefix.to_owned(),
        }),
        several => Err(ControlError::Ambiguous {
            what: "session",
            prefix: prefix.to_owned(),
            count: several.len(),
        }),
    }
}

/// Sessions, the newest first.
pub(super) fn list(sql: &mut dyn Sql, most: u32) -> Result<Vec<Session>, ControlError> {
    let rows = query_all(
        sql,
        "SELECT id, state FROM control_sessions ORDER BY started DESC LIMIT ?1",
        &[Value::Integer(i64::from(most))],
        |row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())),
    )?;
    rows.into_iter()
        .map(|(id, state)| {
            serde_json::from_str(&state).map_err(|error| ControlError::Unreadable {
                what: "session",
                id,
                error,
            })
        })
        .collect()
}

/// Remembers what was decided about a request.
pub(super) fn keep_request(
    sql: &mut dyn Sql,
    judgement: &Judgement,
    id: &ActionId,
    action: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO control_requests (id, session_id, time, action, decision) VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (id) DO UPDATE SET decision = excluded.decision",
        &[
            Value::Text(id.as_str()),
            Value::Text(judgement.session.session_id.as_str()),
            Value::Integer(now.as_micros()),
            Value::Text(action),
            Value::Text(judgement.resolution.decision.as_str()),
        ],
    )
    .map(drop)
}

/// A person has allowed what the rules left to them.
pub(crate) fn allow_request(sql: &mut dyn Sql, id: &ActionId) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE control_requests SET decision = 'allow' WHERE id = ?1 AND decision = 'requires_approval'",
        &[Value::Text(id.as_str())],
    )
    .map(drop)
}

/// The session in which a request was made.
pub(super) fn session_of_request(
    sql: &mut dyn Sql,
    id: &ActionId,
) -> Result<Option<SessionId>, ControlError> {
    let found = query_one(
        sql,
        "SELECT session_id FROM control_requests WHERE id = ?1",
        &[Value::Text(id.as_str())],
        |row| row.text(0).map(str::to_owned),
    )?;
    let read = |name: String| {
        let read = name.parse();
        read.map_err(|_| ControlError::NotFound {
            what: "session",
            name,
        })
    };
    found.map(read).transpose()
}

pub(super) fn request(
    sql: &mut dyn Sql,
    session: &SessionId,
    id: &ActionId,
) -> Result<Option<KeptRequest>, StoreError> {
    query_one(
        sql,
        "SELECT action, decision, outcome FROM control_requests WHERE id = ?1 AND session_id = ?2",
        &[Value::Text(id.as_str()), Value::Text(session.as_str())],
        |row| {
            Ok(KeptRequest {
                action: row.text(0)?.to_owned(),
                decision: row.text(1)?.to_owned(),
                outcome: row.optional_text(2)?.map(str::to_owned),
            })
        },
    )
}

/// The request whose outcome can be reported now.
pub(super) fn reportable(
    sql: &mut dyn Sql,
    session: &SessionId,
    id: &ActionId,
) -> Result<KeptRequest, ControlError> {
    let kept = request(sql, session, id)?.ok_or_else(|| ControlError::NotFound {
        what: "request",
        name: id.to_string(),
    })?;
    let refused = |reason| ControlError::NotReportable {
        id: id.clone(),
        reason,
    };
    if kept.outcome.is_some() {
        return Err(refused("it has been reported before"));
    }
    if kept.decision != "allow" {
        return Err(refused("it was never allowed"));
    }
    Ok(kept)
}

pub(super) fn keep_outcome(
    sql: &mut dyn Sql,
    id: &ActionId,
    outcome: Outcome,
) -> Result<(), StoreError> {
    let outcome = match outcome {
        Outcome::Ok => "ok",
        Outcome::Error => "error",
    };
    sql.execute(
        "UPDATE control_requests SET outcome = ?2 WHERE id = ?1",
        &[Value::Text(id.as_str()), Value::Text(outcome)],
    )
    .map(drop)
}

/// How often each limit was used in the window that ends now.
pub(super) fn uses(
    sql: &mut dyn Sql,
    rates: &[Rate],
    principal: &str,
    now: Timestamp,
) -> Result<HashMap<String, u64>, StoreError> {
    let mut counts = HashMap::new();
    for rate in rates {
        let since = window_start(rate, now);
        let count = query_one(
            sql,
            "SELECT COUNT(*) FROM control_uses WHERE rate = ?1 AND principal = ?2 AND time > ?3",
            &[
                Value::Text(&rate.name),
                Value::Text(principal),
                Value::Integer(since),
            ],
            |row: &dyn Row| row.integer(0),
        )?;
        let count = u64::try_from(count.unwrap_or(0)).unwrap_or(u64::MAX);
        counts.insert(rate.name.clone(), count);
    }
    Ok(counts)
}

/// Counts a use of these limits, and forgets uses that no window reaches any more.
pub(super) fn use_up(
    sql: &mut dyn Sql,
    rates: &[Rate],
    used: &[String],
    principal: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    for rate in rates.iter().filter(|rate| used.contains(&rate.name)) {
        sql.execute(
            "DELETE FROM control_uses WHERE rate = ?1 AND principal = ?2 AND time <= ?3",
            &[
                Value::Text(&rate.name),
                Value::Text(principal),
                Value::Integer(window_start(rate, now)),
            ],
        )?;
        sql.execute(
            "INSERT INTO control_uses (rate, principal, time) VALUES (?1, ?2, ?3)",
            &[
                Value::Text(&rate.name),
                Value::Text(principal),
                Value::Integer(now.as_micros()),
            ],
        )?;
    }
    Ok(())
}

fn window_start(rate: &Rate, now: Timestamp) -> i64 {
    let window = i64::try_from(rate.window_seconds)
        .unwrap_or(i64::MAX)
        .saturating_mul(1_000_000);
    now.as_micros().saturating_sub(window)
}

fn write(session: &Session) -> Result<String, ControlError> {
    to_json(session, &session.session_id)
}

fn to_json<T: Serialize>(value: &T, id: &SessionId) -> Result<String, ControlError> {
    serde_json::to_string(value).map_err(|error| ControlError::Unreadable {
        what: "session",
        id: id.to_string(),
        error,
    })
}

fn from_json<T: for<'de> Deserialize<'de>>(text: &str, id: &SessionId) -> Result<T, ControlError> {
    serde_json::from_str(text).map_err(|error| ControlError::Unreadable {
        what: "session",
        id: id.to_string(),
        error,
    })
}
