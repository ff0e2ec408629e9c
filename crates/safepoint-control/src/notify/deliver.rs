//! Telling targets what is due: each in order, one at a time, at least once, not for ever.
//!
//! What comes next for a target is claimed before it is sent, by moving the moment at which
//! it is due again past the longest that sending takes. So no two processes send it at once,
//! and one that dies leaves it to the next, who sends it with the same id.

use std::time::Duration;

use safepoint_model::{EntryId, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream};
use serde_json::json;

use super::target::standing;
use super::vault::Kept;
use super::webhook::Links;
use super::{Again, Carrier, Channel, Letter, Target, Told, Vault, follow, retry, slack, webhook};
use crate::{Control, ControlError};

/// How long a claim lasts. Far longer than sending may take.
const CLAIM_MICROS: i64 = 120_000_000;

/// When something was not taken for so long it is given up, with all that is as old.
const GIVE_UP_MICROS: i64 = 24 * 3_600_000_000;

/// After so many attempts it is given up whatever its age: whoever carries it dies of it.
const MOST_ATTEMPTS: i64 = 200;

/// How many messages one target gets in one round, so that others have their turn.
const MOST_AT_ONCE: usize = 100;

/// How far a target may lie behind when nothing is to be told, before that is written down.
const LAG: u64 = 1_000;

/// With what targets are told.
pub struct Telling<'a> {
    /// Where their secrets lie.
    pub vault: &'a Vault,
    /// Who carries messages.
    pub carrier: &'a dyn Carrier,
    /// Where the page for people is, if there is one.
    pub page: Option<&'a str>,
}

/// What came of a round.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TellingReport {
    /// How many messages arrived.
    pub arrived: u64,
    /// How many targets are to be tried again.
    pub waiting: u64,
    /// How many messages were given up, which the trail tells.
    pub given_up: u64,
    /// Targets that cannot be told from here, and why.
    pub unusable: Vec<(String, String)>,
}

/// What this process is to tell a target.
struct Claim {
    told: Told,
    /// What marks it as ours.
    token: String,
    /// With this one.
    attempts: i64,
}

impl Control {
    /// Whether any target is to be told something now.
    pub fn has_something_to_tell(&self) -> Result<bool, ControlError> {
        let now = self.around.clock.now();
        Ok(self.next_telling()?.is_some_and(|due| due <= now))
    }

    /// When a target is next to be told something; `None` when all know everything.
    pub fn next_telling(&self) -> Result<Option<Timestamp>, ControlError> {
        let mut next = None;
        for target in self.targets()?.iter().filter(|target| is_sent(target)) {
            let due = self.trail.store().read(|sql| {
                let Some(standing) = standing(sql, &target.name)? else {
                    return Ok(None);
                };
                let wanted = |topic| target.on.contains(&topic);
                let (told, _) = follow(sql, &self.trail, standing.next, &wanted)?;
                Ok::<_, ControlError>(told.map(|_| standing.due))
            })?;
            next = match (next, due) {
                (Some(one), Some(other)) => Some(std::cmp::min::<Timestamp>(one, other)),
                (one, other) => one.or(other),
            };
        }
        Ok(next)
    }

    /// Tries once to tell every target what is due.
    pub fn tell(&self, telling: &Telling<'_>) -> Result<TellingReport, ControlError> {
        let began = self.around.clock.now();
        let mut report = TellingReport::default();
        for target in self.targets()?.iter().filter(|target| is_sent(target)) {
            match telling.vault.get(target) {
                Ok(kept) => self.tell_one(target, &kept, telling, began, &mut report)?,
                Err(ControlError::Target { name, reason }) => report.unusable.push((name, reason)),
                Err(error) => return Err(error),
            }
        }
        Ok(report)
    }

    fn tell_one(
        &self,
        target: &Target,
        kept: &Kept,
        telling: &Telling<'_>,
        began: Timestamp,
        report: &mut TellingReport,
    ) -> Result<(), ControlError> {
        for _ in 0..MOST_AT_ONCE {
            let Some(claim) = self.claim_telling(target, began)? else {
                return Ok(());
            };
            fault::point("notify.claimed");
            if claim.attempts > MOST_ATTEMPTS {
                let reason = "whoever delivered it never came back";
                report.given_up += self.give_up_telling(target, &claim, reason)?;
                continue;
            }
            let sent =
                telling
                    .carrier
                    .carry(&self.letter_to(target, kept, &claim.told, telling.page)?);
            fault::point("notify.sent");
            let Err(failed) = sent else {
                self.settle_telling(target, &claim.token, claim.told.entry.seq + 1)?;
                fault::point("notify.marked");
                report.arrived += 1;
                continue;
            };
            let too_old = self.is_old(claim.told.entry.time);
            match failed.again {
                Again::Later(asked) if !too_old => {
                    self.put_off_telling(target, &claim, asked, began)?;
                    report.waiting += 1;
                    return Ok(());
                }
                _ => report.given_up += self.give_up_telling(target, &claim, &failed.reason)?,
            }
        }
        Ok(())
    }

    fn is_old(&self, time: Timestamp) -> bool {
        time.saturating_add_micros(GIVE_UP_MICROS) <= self.around.clock.now()
    }

    /// What comes next for a target, if it is due and nobody else is at it.
    fn claim_telling(
        &self,
        target: &Target,
        began: Timestamp,
    ) -> Result<Option<Claim>, ControlError> {
        let found = self.trail.store().read(|sql| {
            let Some(standing) = standing(sql, &target.name)? else {
                return Ok(None);
            };
            if standing.due > began {
                return Ok(None);
            }
            let wanted = |topic| target.on.contains(&topic);
            let (told, end) = follow(sql, &self.trail, standing.next, &wanted)?;
            Ok::<_, ControlError>(Some((standing, told, end)))
        })?;
        let Some((standing, told, end)) = found else {
            return Ok(None);
        };
        let Some(told) = told else {
            if end.saturating_sub(standing.next) > LAG {
                self.move_on(target, standing.next, end)?;
            }
            return Ok(None);
        };
        // A row that somebody put into the trail is told to nobody.
        if !self.trail.is_genuine(&told.entry)? {
            return Err(ControlError::Tampered {
                what: "entry",
                id: told.entry.id.to_string(),
            });
        }
        let now = self.around.clock.now().max(began);
        let until = now.saturating_add_micros(CLAIM_MICROS);
        let token = EntryId::new(now, &*self.around.entropy)?.to_string();
        let ours = self
            .trail
            .store()
            .write(Durability::Async, |sql| -> Result<_, StoreError> {
                sql.execute(
                    "UPDATE control_tellings SET due = ?4, attempts = attempts + 1, claim = ?5 \
                     WHERE target = ?1 AND next = ?2 AND due = ?3",
                    &[
                        Value::Text(&target.name),
                        place(standing.next),
                        Value::Integer(standing.due.as_micros()),
                        Value::Integer(until.as_micros()),
                        Value::Text(&token),
                    ],
                )
                .map(|changed| changed > 0)
            })?;
        Ok(ours.then(|| Claim {
            told,
            token,
            attempts: standing.attempts + 1,
        }))
    }

    fn letter_to(
        &self,
        target: &Target,
        kept: &Kept,
        told: &Told,
        page: Option<&str>,
    ) -> Result<Letter, ControlError> {
        let links = Links::of(told, page);
        let now = self.around.clock.now();
        match target.channel {
            Channel::Slack | Channel::Desktop => Ok(slack::letter(told, target, kept, &links, now)),
            Channel::Webhook => webhook::letter(told, &self.trail, target, kept, &links, now)
                .map_err(|error| ControlError::Unreadable {
                    what: "entry",
                    id: told.entry.id.to_string(),
                    error,
                }),
        }
    }

    /// A message that only says that it arrived.
    pub(super) fn trial(&self, target: &Target, kept: &Kept) -> Result<Letter, ControlError> {
        let now = self.around.clock.now();
        let id = EntryId::new(now, &*self.around.entropy)?;
        Ok(match target.channel {
            Channel::Slack | Channel::Desktop => slack::trial(target, kept, now),
            Channel::Webhook => webhook::trial(id.as_str(), &self.trail, target, kept, now),
        })
    }

    /// It arrived: what comes behind it is next, at once.
    fn settle_telling(&self, target: &Target, token: &str, next: u64) -> Result<(), ControlError> {
        self.trail
            .store()
            .write(Durability::Async, |sql| go_on(sql, target, token, next))?;
        Ok(())
    }

    /// Nothing is to be told between here and there.
    fn move_on(&self, target: &Target, from: u64, to: u64) -> Result<(), ControlError> {
        self.trail
            .store()
            .write(Durability::Async, |sql| -> Result<_, StoreError> {
                sql.execute(
                    "UPDATE control_tellings SET next = ?3 WHERE target = ?1 AND next = ?2",
                    &[Value::Text(&target.name), place(from), place(to)],
                )
            })?;
        Ok(())
    }

    fn put_off_telling(
        &self,
        target: &Target,
        claim: &Claim,
        asked: Option<Duration>,
        began: Timestamp,
    ) -> Result<(), ControlError> {
        let wait = retry::wait(claim.attempts, asked, &*self.around.entropy)?;
        // A clock that is set back must not make it due in this round again.
        let now = self.around.clock.now().max(began);
        let due = now.saturating_add_micros(wait);
        self.trail.store().write(
            Durability::Async,
            |sql| -> Result<_, StoreError> {
                sql.execute(
                    "UPDATE control_tellings SET due = ?3, claim = '' WHERE target = ?1 AND claim = ?2",
                    &[
                        Value::Text(&target.name),
                        Value::Text(&claim.token),
                        Value::Integer(due.as_micros()),
                    ],
                )
            },
        )?;
        Ok(())
    }

    /// Drops a message, and with it all that are too old as well, and says so in the trail.
    fn give_up_telling(
        &self,
        target: &Target,
        claim: &Claim,
        reason: &str,
    ) -> Result<u64, ControlError> {
        self.trail
            .write(Durability::Async, |writing| -> Result<_, ControlError> {
                let wanted = |topic| target.on.contains(&topic);
                let (mut next, mut count) = (claim.told.entry.seq + 1, 1);
                while let (Some(told), behind) = follow(writing.sql(), &self.trail, next, &wanted)?
                {
                    if !self.is_old(told.entry.time) {
                        break;
                    }
                    (next, count) = (behind, count + 1);
                }
                // Another process may have been done with it first.
                if !go_on(writing.sql(), target, &claim.token, next)? {
                    return Ok(0);
                }
                writing.append(Draft {
                    stream: Stream::store(),
                    actor: Actor::safepoint(),
                    kind: Kind::fixed("NotificationFailed").into(),
                    action_id: None,
                    body: json!({
                        "notification_id": claim.told.entry.id,
                        "type": format!("dev.safepoint.{}", claim.told.event),
                        "target": target.name,
                        "origin": target.origin,
                        "attempts": claim.attempts.min(MOST_ATTEMPTS),
                        "dropped": count,
                        "reason": reason,
                    }),
                })?;
                Ok(count)
            })
    }
}

/// Whether something is sent to it: the bell rings where somebody watches.
fn is_sent(target: &Target) -> bool {
    target.channel != Channel::Desktop
}

/// Makes what is at `next` the next one, if the claim is still ours.
fn go_on(sql: &mut dyn Sql, target: &Target, token: &str, next: u64) -> Result<bool, StoreError> {
    sql.execute(
        "UPDATE control_tellings SET next = ?3, attempts = 0, due = 0, claim = '' \
         WHERE target = ?1 AND claim = ?2",
        &[Value::Text(&target.name), Value::Text(token), place(next)],
    )
    .map(|changed| changed > 0)
}

fn place(seq: u64) -> Value<'static> {
    Value::Integer(i64::try_from(seq).unwrap_or(i64::MAX))
}
