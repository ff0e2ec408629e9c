//! Delivering what waits: at least once, each time later, and not for ever.
//!
//! A notice is claimed before it is sent, by moving the time at which it is
//! due again past the longest that sending takes. So no two processes send it
//! at once, and one that dies leaves it to the next. A process that dies after
//! it has sent leaves it, too: stewards may hear twice, with the same `id`.

use std::collections::HashMap;

use safepoint_model::{Digest, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, query_one};
use safepoint_trail::{Actor, Draft, Kind, Stream};
use serde::Deserialize;
use serde_json::json;

use super::post::{Message, NotDelivered, Poster};
use crate::https::shown_origin;
use crate::{Control, ControlError};

/// How often a delivery is tried.
const MOST_ATTEMPTS: i64 = 10;

/// How long a claim lasts. Far longer than sending may take.
const CLAIM_MICROS: i64 = 120_000_000;

/// What notices are signed for.
const PURPOSE: &str = "safepoint-notification/v1";

/// What came of a round of deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// How many arrived.
    pub arrived: u64,
    /// How many will be tried again.
    pub waiting: u64,
    /// How many were given up, which the trail tells.
    pub given_up: u64,
}

/// A notice that this process is to send.
struct Claim {
    id: String,
    webhook: String,
    body: String,
    /// With this one.
    attempts: i64,
    /// When the round began. A clock that is set back must not make it due in this round again.
    began: Timestamp,
}

/// What the trail says of a notice that was given up.
#[derive(Deserialize)]
struct Told {
    #[serde(rename = "type")]
    kind: String,
    subject: String,
}

impl Control {
    /// Whether anything is due for delivery. One look at an index.
    pub fn has_due_notices(&self) -> Result<bool, ControlError> {
        let now = self.around.clock.now();
        let found = self.trail.store().read(|sql| oldest(sql, now))?;
        Ok(found.is_some())
    }

    /// When the next notice is due; `None` when all are delivered.
    pub fn next_notice(&self) -> Result<Option<Timestamp>, ControlError> {
        let due = self.trail.store().read(|sql| {
            query_one(
                sql,
                "SELECT due FROM control_notices ORDER BY due LIMIT 1",
                &[],
                |row| row.integer(0),
            )
        })?;
        Ok(due.map(Timestamp::from_micros))
    }

    /// Tries once to deliver everything that is due.
    pub fn deliver(&self, poster: &dyn Poster) -> Result<Delivered, ControlError> {
        let began = self.around.clock.now();
        let mut delivered = Delivered::default();
        // Webhooks at which nobody was: a queue must not wait for each notice anew.
        let mut silent: HashMap<String, String> = HashMap::new();
        while let Some(claim) = self.claim(began)? {
            let sent = match silent.get(&claim.webhook) {
                _ if claim.attempts > MOST_ATTEMPTS => Err(NotDelivered::Refused(
                    "whoever delivered it never came back".to_owned(),
                )),
                Some(reason) => Err(NotDelivered::Unreachable(reason.clone())),
                None => poster.post(&claim.webhook, &self.signed(&claim)),
            };
            match sent {
                Ok(()) => {
                    self.forget(&claim)?;
                    delivered.arrived += 1;
                }
                Err(NotDelivered::Refused(reason)) => {
                    self.give_up(&claim, &reason)?;
                    delivered.given_up += 1;
                }
                Err(NotDelivered::Failed(reason) | NotDelivered::Unreachable(reason))
                    if claim.attempts >= MOST_ATTEMPTS =>
                {
                    self.give_up(&claim, &reason)?;
                    delivered.given_up += 1;
                }
                Err(NotDelivered::Failed(_)) => {
                    self.put_off(&claim)?;
                    delivered.waiting += 1;
                }
                Err(NotDelivered::Unreachable(reason)) => {
                    self.put_off(&claim)?;
                    silent.insert(claim.webhook, reason);
                    delivered.waiting += 1;
                }
            }
        }
        Ok(delivered)
    }

    /// The notice that has been due longest, with `began` as the last moment
    /// that counts: what is put off meanwhile is left to the next round.
    fn claim(&self, began: Timestamp) -> Result<Option<Claim>, ControlError> {
        let now = self.around.clock.now().max(began);
        let until = now.saturating_add_micros(CLAIM_MICROS);
        let claimed =
            self.trail
                .store()
                .write(Durability::Async, |sql| -> Result<_, StoreError> {
                    let Some(mut claim) = oldest(sql, began)? else {
                        return Ok(None);
                    };
                    claim.attempts += 1;
                    set_due(sql, &claim, until)?;
                    Ok(Some(claim))
                })?;
        Ok(claimed)
    }

    fn signed(&self, claim: &Claim) -> Message {
        let time = self.around.clock.now().as_micros().div_euclid(1_000_000);
        let digest = Digest::of_parts(&[claim.body.as_bytes()]);
        let signature = self.trail.sign(PURPOSE, &format!("{time}\n{digest}\n"));
        let key = self.trail.key().id();
        Message {
            signature: format!("ed25519;keyid={key};t={time};sig={signature}"),
            body: claim.body.clone(),
        }
    }

    fn forget(&self, claim: &Claim) -> Result<(), ControlError> {
        self.trail
            .store()
            .write(Durability::Async, |sql| delete(sql, claim))?;
        Ok(())
    }

    /// Each time twice as long.
    fn put_off(&self, claim: &Claim) -> Result<(), ControlError> {
        let wait = 1_000_000_i64 << claim.attempts.clamp(0, 16);
        let now = self.around.clock.now().max(claim.began);
        let due = now.saturating_add_micros(wait);
        self.trail
            .store()
            .write(Durability::Async, |sql| set_due(sql, claim, due))?;
        Ok(())
    }

    /// Drops a notice, and says so in the trail of its session.
    fn give_up(&self, claim: &Claim, reason: &str) -> Result<(), ControlError> {
        let told: Result<Told, _> = serde_json::from_str(&claim.body);
        let (stream, kind) = match told {
            Ok(Told { kind, subject }) => (subject.parse().ok(), Some(kind)),
            Err(_) => (None, None),
        };
        let prepared = self.trail.prepare(Draft {
            stream: stream.unwrap_or_else(Stream::store),
            actor: Actor::safepoint(),
            kind: Kind::fixed("NotificationFailed").into(),
            action_id: None,
            body: json!({
                "notification_id": claim.id,
                "type": kind,
                "webhook": shown_origin(&claim.webhook),
                "attempts": claim.attempts.min(MOST_ATTEMPTS),
                "reason": reason,
            }),
        })?;
        self.trail
            .write(Durability::Async, |writing| -> Result<_, ControlError> {
                // Another process may have been done with it first.
                if delete(writing.sql(), claim)? {
                    writing.append_prepared(prepared)?;
                }
                Ok(())
            })
    }
}

fn oldest(sql: &mut dyn Sql, now: Timestamp) -> Result<Option<Claim>, StoreError> {
    query_one(
        sql,
        "SELECT id, webhook, body, attempts FROM control_notices WHERE due <= ?1 ORDER BY due, id LIMIT 1",
        &[Value::Integer(now.as_micros())],
        |row| {
            Ok(Claim {
                id: row.text(0)?.to_owned(),
                webhook: row.text(1)?.to_owned(),
                body: row.text(2)?.to_owned(),
                attempts: row.integer(3)?,
                began: now,
            })
        },
    )
}

fn set_due(sql: &mut dyn Sql, claim: &Claim, due: Timestamp) -> Result<(), StoreError> {
    sql.execute(
        "UPDATE control_notices SET due = ?2, attempts = ?3 WHERE id = ?1",
        &[
            Value::Text(&claim.id),
            Value::Integer(due.as_micros()),
            Value::Integer(claim.attempts),
        ],
    )
    .map(drop)
}

/// Whether it was still there.
fn delete(sql: &mut dyn Sql, claim: &Claim) -> Result<bool, StoreError> {
    sql.execute(
        "DELETE FROM control_notices WHERE id = ?1",
        &[Value::Text(&claim.id)],
    )
    .map(|deleted| deleted > 0)
}
