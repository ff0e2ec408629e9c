//! What was answered to whom: a request that comes again under the same key is answered
//! again, and not done again.
//!
//! A key is taken before anything is done. One that was taken and never answered belongs to
//! a server that died: nobody knows how far it came, so it is not done again either.
//!
//! Answers may hold tokens, so they are sealed under a key that is made from the key of the
//! trail: whoever has the database alone cannot read them.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use safepoint_model::{Digest, Frame, Span, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, query_one};

use crate::{Control, ControlError};

/// How many old answers are forgotten with each new one.
const FORGET_AT_ONCE: i64 = 100;

/// The length of a nonce.
const NONCE: usize = 12;

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
                "SELECT digest, status, sealed FROM control_replies WHERE caller = ?1 AND key = ?2 AND time > ?3",
                &[
                    Value::Text(caller),
                    Value::Text(key),
                    Value::Integer(since.as_micros()),
                ],
                |row| {
                    let reply = match row.bytes(2)? {
                        None => None,
                        Some(sealed) => Some((row.integer(1)?, sealed.to_vec())),
                    };
                    Ok((row.text(0)?.to_owned(), reply))
                },
            )?;
            match found {
                Some((theirs, _)) if theirs != digest.to_string() => Ok(Begun::Other),
                Some((_, Some((status, sealed)))) => {
                    let status = u16::try_from(status).unwrap_or(500);
                    let body = self.open_reply(&about(caller, key, status), &sealed);
                    // One that cannot be opened was not written here: it is not done again.
                    Ok(body.map_or(Begun::Taken, |body| {
                        Begun::Answered(StoredReply { status, body })
                    }))
                }
                Some((_, None)) => Ok(Begun::Taken),
                None => {
                    sql.execute(
                        "INSERT INTO control_replies (caller, key, digest, time) VALUES (?1, ?2, ?3, ?4) \
                         ON CONFLICT (caller, key) DO UPDATE SET digest = excluded.digest, time = excluded.time, status = NULL, sealed = NULL",
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
        let sealed = self.seal_reply(&about(caller, key, reply.status), &reply.body)?;
        store.write(Durability::Sync, |sql| {
            sql.execute(
                "UPDATE control_replies SET status = ?3, sealed = ?4 WHERE caller = ?1 AND key = ?2",
                &[
                    Value::Text(caller),
                    Value::Text(key),
                    Value::Integer(i64::from(reply.status)),
                    Value::Blob(&sealed),
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
                "DELETE FROM control_replies WHERE caller = ?1 AND key = ?2 AND sealed IS NULL",
                &[Value::Text(caller), Value::Text(key)],
            )?;
            Ok(())
        })
    }
}

impl Control {
    fn reply_cipher(&self) -> ChaCha20Poly1305 {
        let secret = self.trail.derive_secret("safepoint/replies/v1");
        ChaCha20Poly1305::new(secret.as_bytes().into())
    }

    /// A fresh nonce, and behind it what is sealed.
    fn seal_reply(&self, about: &Digest, body: &str) -> Result<Vec<u8>, ControlError> {
        let mut sealed = vec![0; NONCE];
        self.around.entropy.fill(&mut sealed)?;
        let payload = Payload {
            msg: body.as_bytes(),
            aad: about.as_bytes(),
        };
        let text = self
            .reply_cipher()
            .encrypt(Nonce::from_slice(&sealed), payload)
            .map_err(|_| ControlError::Meanwhile("the answer is too long to be kept"))?;
        sealed.extend(text);
        Ok(sealed)
    }

    fn open_reply(&self, about: &Digest, sealed: &[u8]) -> Option<String> {
        let (nonce, text) = sealed.split_at_checked(NONCE)?;
        let payload = Payload {
            msg: text,
            aad: about.as_bytes(),
        };
        let body = self
            .reply_cipher()
            .decrypt(Nonce::from_slice(nonce), payload)
            .ok()?;
        String::from_utf8(body).ok()
    }
}

/// What an answer is the answer to: none stands in for another.
fn about(caller: &str, key: &str, status: u16) -> Digest {
    Frame::new("safepoint/reply/v1")
        .field(caller.as_bytes())
        .field(key.as_bytes())
        .field(&status.to_be_bytes())
        .digest()
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
