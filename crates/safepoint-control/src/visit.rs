//! Visits: people who have shown their token to a page, and whose browsers have a cookie for it.
//! They are in the store, so that every server of it knows them.
//!
//! The cookie is 32 random bytes, and is kept nowhere. Its row is found by a digest of it, and
//! has the token, sealed under a key that is made from the cookie. So a cookie and its row are
//! the two halves of a token that was shown, and each time the token itself is asked about: one
//! that was revoked or exchanged ends its visits at every server at once.
//!
//! What somebody gets who has the database:
//!
//! - Who reads a row learns when somebody came and was last there. Neither the digest nor what
//!   is sealed opens anything, and there is nothing to guess in 256 random bits.
//! - Who writes one signs nobody in: it would have to hold a token, and tokens are not in the
//!   database. A row is sealed together with its times, so none goes on for longer than it
//!   should, and under its own cookie, so none is worth anything in another's place.
//! - Who deletes one signs somebody out. Who puts a deleted one back helps only a browser that
//!   still has the cookie, and until the times that are sealed with it are over.
//! - Who has a cookie besides has that visit; and, with its row, the token. That is why rows of
//!   visits that are over are deleted and not marked.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{ChaCha20Poly1305, KeyInit, Nonce};
use safepoint_model::{Digest, Frame, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, query_one};

use crate::token::{Secret, Token};
use crate::{Control, ControlError};

const MINUTE: i64 = 60 * 1_000_000;
/// A visit ends after so long without a request.
const IDLE: i64 = 30 * MINUTE;
/// A visit ends after so long in any case.
const LONGEST: i64 = 8 * 60 * MINUTE;
/// A visit that goes on is written down so often, and no more: looking costs no write.
const NOTED: i64 = MINUTE;
/// So many visits are kept; the ones that were quiet longest go first.
const MOST: i64 = 1_000;

/// Who asks: a visit lasts for as long as a person does something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// Somebody is there.
    Person,
    /// An open page asks by itself, and nobody need be there.
    Page,
}

/// What a browser shows.
struct Cookie(Digest);

/// A row.
struct Visit {
    sealed: Vec<u8>,
    began: Timestamp,
    latest: Timestamp,
}

impl Control {
    /// Begins a visit of whoever shows this token, and says what their cookie is; `None` where
    /// the token opens nothing.
    pub fn begin_visit(&self, shown: &str) -> Result<Option<Secret>, ControlError> {
        if self.token_of(shown)?.is_none() {
            return Ok(None);
        }
        let secret = Secret::generate("", &*self.around.entropy)?;
        let cookie = Cookie::read(secret.reveal());
        let cookie = cookie.ok_or(ControlError::Meanwhile("no cookie could be made"))?;
        let now = self.around.clock.now();
        let visit = cookie.seal(shown, now, now)?;
        // A power cut may take it: then they sign in again.
        self.trail.store().write(Durability::Async, |sql| {
            forget(sql, now)?;
            sql.execute(
                "DELETE FROM control_visits WHERE cookie NOT IN \
                 (SELECT cookie FROM control_visits ORDER BY latest DESC, cookie LIMIT ?1)",
                &[Value::Integer(MOST - 1)],
            )?;
            sql.execute(
                "INSERT INTO control_visits (cookie, sealed, began, latest) VALUES (?1, ?2, ?3, ?4)",
                &[
                    Value::Blob(cookie.digest().as_bytes()),
                    Value::Blob(&visit.sealed),
                    Value::Integer(visit.began.as_micros()),
                    Value::Integer(visit.latest.as_micros()),
                ],
            )?;
            Ok::<_, ControlError>(())
        })?;
        Ok(Some(secret))
    }

    /// The token of whoever shows this cookie, if the visit goes on and the token is good.
    pub fn visit(&self, cookie: &str, asker: Asker) -> Result<Option<Token>, ControlError> {
        let Some(cookie) = Cookie::read(cookie) else {
            return Ok(None);
        };
        let now = self.around.clock.now();
        let store = self.trail.store();
        let Some(visit) = store.read(|sql| find(sql, &cookie))? else {
            return Ok(None);
        };
        let shown = cookie.open(&visit).filter(|_| visit.is_alive(now));
        let token = match &shown {
            Some(shown) => self.token_of(shown)?,
            None => None,
        };
        // Neither write is needed for the answer. Without the one, what is over stays over;
        // without the other, the visit ends sooner.
        match (&token, &shown) {
            (Some(_), Some(shown)) if asker == Asker::Person && visit.is_to_be_noted(now) => {
                drop(self.note_visit(&cookie, shown, &visit, now));
            }
            (Some(_), _) => {}
            (None, _) => drop(self.forget_visit(&cookie, Durability::Async)),
        }
        Ok(token)
    }

    /// Ends a visit, at every server.
    pub fn end_visit(&self, cookie: &str) -> Result<(), ControlError> {
        match Cookie::read(cookie) {
            Some(cookie) => self.forget_visit(&cookie, Durability::Sync),
            None => Ok(()),
        }
    }

    /// Forgets the visits that are over, whose cookies nobody shows any more.
    pub fn forget_visits(&self) -> Result<(), ControlError> {
        let now = self.around.clock.now();
        let store = self.trail.store();
        let over = format!("SELECT began FROM control_visits WHERE {OVER} LIMIT 1");
        let some = store.read(|sql| query_one(sql, &over, &ends(now), |row| row.integer(0)))?;
        if some.is_some() {
            store.write(Durability::Async, |sql| forget(sql, now))?;
        }
        Ok(())
    }

    fn forget_visit(&self, cookie: &Cookie, durability: Durability) -> Result<(), ControlError> {
        let key = cookie.digest();
        self.trail.store().write(durability, |sql| {
            sql.execute(
                "DELETE FROM control_visits WHERE cookie = ?1",
                &[Value::Blob(key.as_bytes())],
            )?;
            Ok(())
        })
    }

    /// Writes down that somebody is still there. One that was ended meanwhile stays ended, and
    /// of two servers the later one counts.
    fn note_visit(
        &self,
        cookie: &Cookie,
        shown: &str,
        visit: &Visit,
        now: Timestamp,
    ) -> Result<(), ControlError> {
        let noted = cookie.seal(shown, visit.began, now)?;
        self.trail.store().write(Durability::Async, |sql| {
            sql.execute(
                "UPDATE control_visits SET sealed = ?2, latest = ?3 WHERE cookie = ?1 AND latest < ?3",
                &[
                    Value::Blob(cookie.digest().as_bytes()),
                    Value::Blob(&noted.sealed),
                    Value::Integer(noted.latest.as_micros()),
                ],
            )?;
            Ok(())
        })
    }
}

impl Visit {
    fn is_alive(&self, now: Timestamp) -> bool {
        now < self.began.saturating_add_micros(LONGEST)
            && now < self.latest.saturating_add_micros(IDLE)
    }

    fn is_to_be_noted(&self, now: Timestamp) -> bool {
        now >= self.latest.saturating_add_micros(NOTED)
    }
}

impl Cookie {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self)
    }

    /// What its row is found by.
    fn digest(&self) -> Digest {
        Frame::new("safepoint/visit/v1")
            .field(self.0.as_bytes())
            .digest()
    }

    /// Seals a token together with the times of its visit.
    fn seal(
        &self,
        shown: &str,
        began: Timestamp,
        latest: Timestamp,
    ) -> Result<Visit, ControlError> {
        let times = times(began, latest);
        let payload = Payload {
            msg: shown.as_bytes(),
            aad: times.as_bytes(),
        };
        let sealed = self.cipher().encrypt(&nonce(latest), payload);
        Ok(Visit {
            sealed: sealed.map_err(|_| ControlError::Meanwhile("no visit could be sealed"))?,
            began,
            latest,
        })
    }

    /// The token of a row that was sealed under this cookie, with these times.
    fn open(&self, visit: &Visit) -> Option<String> {
        let times = times(visit.began, visit.latest);
        let payload = Payload {
            msg: &visit.sealed,
            aad: times.as_bytes(),
        };
        let opened = self.cipher().decrypt(&nonce(visit.latest), payload).ok()?;
        String::from_utf8(opened).ok()
    }

    fn cipher(&self) -> ChaCha20Poly1305 {
        let mut frame = Frame::new("safepoint/visit-key/v1");
        let key = frame.field(self.0.as_bytes()).digest();
        ChaCha20Poly1305::new(key.as_bytes().into())
    }
}

/// Under one key the same token is sealed again only with a later time, so this never says two
/// things.
fn nonce(latest: Timestamp) -> Nonce {
    let mut nonce = Nonce::default();
    let (time, _) = nonce.split_at_mut(8);
    time.copy_from_slice(&latest.as_micros().to_be_bytes());
    nonce
}

fn times(began: Timestamp, latest: Timestamp) -> Frame {
    let mut frame = Frame::new("safepoint/visit-times/v1");
    frame
        .field(&began.as_micros().to_be_bytes())
        .field(&latest.as_micros().to_be_bytes());
    frame
}

/// Which visits are over, by [`ends`].
const OVER: &str = "began <= ?1 OR latest <= ?2";

fn ends(now: Timestamp) -> [Value<'static>; 2] {
    [LONGEST, IDLE].map(|life| Value::Integer(now.saturating_add_micros(-life).as_micros()))
}

fn forget(sql: &mut dyn Sql, now: Timestamp) -> Result<(), StoreError> {
    let over = format!("DELETE FROM control_visits WHERE {OVER}");
    sql.execute(&over, &ends(now)).map(drop)
}

fn find(sql: &mut dyn Sql, cookie: &Cookie) -> Result<Option<Visit>, StoreError> {
    query_one(
        sql,
        "SELECT sealed, began, latest FROM control_visits WHERE cookie = ?1",
        &[Value::Blob(cookie.digest().as_bytes())],
        |row| {
            Ok(Visit {
                sealed: row.blob(0)?.to_owned(),
                began: Timestamp::from_micros(row.integer(1)?),
                latest: Timestamp::from_micros(row.integer(2)?),
            })
        },
    )
}
