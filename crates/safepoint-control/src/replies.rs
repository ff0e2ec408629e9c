//! What was answered to whom: a request that comes again under the same key is answered
//! again, and not done again.
//!
//! A key is taken before anything is done. One that was taken and never answered belongs to
//! a server that died: nobody knows how far it came, so it is not done again either.

use safepoint_model::{Digest, Span, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, query_one};

use crate::{Control, ControlError};

/// How many old answers are forgotten with each new one.
const FORGET_AT_ONCE: i64 = 100;

/// An answer that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredReply {
    /// The status.
    pub status: u16,
    /// The document.
    pub body: String,
}

/// What is known of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Nothing: it is taken now.
    New,
    /// It was answered so.
    Answered(StoredReply),
    /// Somebody took it, and has not answered yet.
    Taken,
    /// It was taken for another request.
    Other,
}

impl Control {
    /// Takes a key for a request, or says what came of it before.
    pub fn begin_reply(
        &self,
        caller: &str,
        key: &str,
        digest: Digest,
        life: Span,
    ) -> Result<Begun, ControlError> {
        let now = self.around.clock.now();
        let life = i64::try_from(life.as_micros()).unwrap_or(i64::MAX);
        let since = now.saturating_add_micros(-life);
        let store = self.trail.store();
        store.write(Durability::Sync, |sql| {
            forget(sql, since)?;
            let found = query_one(
                sql,
                "SELECT digest, status, body FROM control_replies WHERE caller = ?1 AND key = ?2 AND time > ?3",
                &[
                    Value::Text(caller),
                    Value::Text(key),
                    Value::Integer(since.as_micros()),
                ],
                |row| {
                    let body = row.optional_text(2)?.map(str::to_owned);
                    let reply = match body {
                        None => None,
                        Some(body) => Some(StoredReply {
                            status: u16::try_from(row.integer(1)?).unwrap_or(500),
                            body,
                        }),
                    };
                    Ok((row.text(0)?.to_owned(), reply))
                },
            )?;
            match found {
                Some((theirs, _)) if theirs != digest.to_string() => Ok(Begun::Other),
                Some((_, Some(reply))) => Ok(Begun::Answered(reply)),
                Some((_, None)) => Ok(Begun::Taken),
                None => {
                    sql.execute(
                        "INSERT INTO control_replies (caller, key, digest, time) VALUES (?1, ?2, ?3, ?4) \
                         ON CONFLICT (caller, key) DO UPDATE SET digest = excluded.digest, time = excluded.time, status = NULL, body = NULL",
                        &[
                            Value::Text(caller),
                            Value::Text(key),
                            Value::Text(&digest.to_string()),
                            Value::Integer(now.as_micros()),
                        ],
                    )?;
                    Ok(Begun::New)
                }
            }
        })
    }

    /// Keeps what was answered.
    pub fn keep_reply(
        &self,
        caller: &str,
        key: &str,
        reply: &StoredReply,
    ) -> Result<(), ControlError> {
        let store = self.trail.store();
        store.write(Durability::Sync, |sql| {
            sql.execute(
                "UPDATE control_replies SET status = ?3, body = ?4 WHERE caller = ?1 AND key = ?2",
                &[
                    Value::Text(caller),
                    Value::Text(key),
                    Value::Integer(i64::from(reply.status)),
                    Value::Text(&reply.body),
                ],
            )?;
            Ok(())
        })
    }

    /// Gives a key back, where it is certain that nothing was done.
    pub fn drop_reply(&self, caller: &str, key: &str) -> Result<(), ControlError> {
        let store = self.trail.store();
        store.write(Durability::Sync, |sql| {
            sql.execute(
                "DELETE FROM control_replies WHERE caller = ?1 AND key = ?2 AND body IS NULL",
                &[Value::Text(caller), Value::Text(key)],
            )?;
            Ok(())
        })
    }
}

fn forget(sql: &mut dyn Sql, since: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "DELETE FROM control_replies WHERE (caller, key) IN \
         (SELECT caller, key FROM control_replies WHERE time <= ?1 ORDER BY time LIMIT ?2)",
        &[
            Value::Integer(since.as_micros()),
            Value::Integer(FORGET_AT_ONCE),
        ],
    )
    .map(drop)
}
