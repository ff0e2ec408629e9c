//! Targets: whom operators have told, kept as documents, changed by an operator's signed word.

use std::collections::BTreeSet;

use safepoint_model::{Digest, Timestamp};
use safepoint_store::{Durability, Sql, StoreError, Value, query_one};
use safepoint_trail::{Draft, Kind, Stream, end};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::vault::{Kept as Secrets, Vault};
use super::{Secret, letter};
use crate::https::{Reach, check_address, shown_origin_as_named};
use crate::kept::{self, Kept};
use crate::pass::{Desk, Word};
use crate::{Control, ControlError};

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $word)] $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The word for it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

words! {
    /// How a target is told.
    Channel {
        /// A signed CloudEvent.
        Webhook = "webhook",
        /// A message to a chat room, in the form that Slack takes.
        Slack = "slack",
        /// The bell of the terminal in which somebody watches.
        Desktop = "desktop",
    }
}

words! {
    /// What a target is told about.
    Topic {
        /// Something waits for a person.
        Holds = "holds",
        /// What was decided, by a person or by silence.
        Decisions = "decisions",
        /// Something is not as it should be.
        Incidents = "incidents",
        /// A workspace is near or past a limit.
        Budget = "budget",
        /// A workspace has conflicts.
        Workspaces = "workspaces",
        /// A permit was issued, used or revoked.
        Permits = "permits",
    }
}

impl Topic {
    /// What is told where nothing else is said: all but each use of a permit.
    pub fn usual() -> BTreeSet<Self> {
        let all = Self::ALL.iter().copied();
        all.filter(|topic| *topic != Self::Permits).collect()
    }
}

/// Somebody who is told. Where exactly, and with which secret, is not in here.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The version of this form.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// How it is told.
    pub channel: Channel,
    /// What about.
    pub on: BTreeSet<Topic>,
    /// Scheme, host and port of its address. The rest may be secret.
    pub origin: Option<String>,
    /// Whether it may lie in a private network or on this machine.
    pub allow_private: bool,
    /// What its secrets are known by.
    #[schemars(with = "Option<String>")]
    pub sealed: Option<Digest>,
    /// Since when.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// Until when, if it is told no more.
    #[schemars(with = "Option<String>")]
    pub removed: Option<Timestamp>,
}

impl Kept for Target {
    const KIND: &'static str = "target";
    const WHAT: &'static str = "target";

    fn id(&self) -> String {
        self.name.clone()
    }
    fn time(&self) -> Timestamp {
        self.since
    }
    fn is_open(&self) -> bool {
        self.removed.is_none()
    }
}

impl Target {
    pub(super) fn reach(&self) -> Reach {
        match self.allow_private {
            true => Reach::AsNamed,
            false => Reach::Public,
        }
    }
}

/// A target that is to be.
pub struct NewTarget {
    /// Its name.
    pub name: String,
    /// How it is told.
    pub channel: Channel,
    /// What about.
    pub on: BTreeSet<Topic>,
    /// Where; nowhere for the bell.
    pub url: Option<String>,
    /// What it shares with us, if it is a webhook.
    pub secret: Option<Secret>,
    /// The certificates that are trusted there, in PEM form; without them the usual ones.
    pub authority: Option<String>,
    /// Whether it may lie in a private network or on this machine.
    pub allow_private: bool,
}

impl NewTarget {
    /// What an operator signs: all of it but the secrets.
    pub fn says(&self) -> String {
        let on: Vec<&str> = self.on.iter().map(|topic| topic.as_str()).collect();
        format!(
            "notify add {} {} {} {} {}",
            self.name,
            self.channel.as_str(),
            on.join(","),
            self.origin().unwrap_or_default(),
            if self.allow_private {
                "private"
            } else {
                "public"
            },
        )
    }

    fn origin(&self) -> Option<String> {
        self.url.as_deref().map(shown_origin_as_named)
    }

    /// Whether it can be one at all.
    fn check(&self) -> Result<(), ControlError> {
        let refused = |reason: String| ControlError::Target {
            name: self.name.clone(),
            reason,
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let good = (1..=64).contains(&self.name.len())
            && self.name.chars().all(plain)
            && !self.name.starts_with('.');
        if !good {
            let reason =
                "a name has up to 64 letters, digits, `-`, `_` or `.`, and begins with no dot";
            return Err(refused(reason.to_owned()));
        }
        if self.on.is_empty() {
            return Err(refused("it is told about nothing".to_owned()));
        }
        let reach = match self.allow_private {
            true => Reach::AsNamed,
            false => Reach::Public,
        };
        match (self.channel, &self.url, &self.secret) {
            (Channel::Desktop, None, None) => Ok(()),
            (Channel::Slack, Some(url), None) | (Channel::Webhook, Some(url), Some(_)) => {
                check_address(url, reach).map_err(|error| refused(error.to_string()))
            }
            (Channel::Webhook, Some(_), None) => Err(refused(
                "a webhook is signed, and needs a secret: `--secret-file FILE`".to_owned(),
            )),
            _ => Err(refused(
                "an address is for webhooks and chat rooms, a secret for webhooks alone".to_owned(),
            )),
        }
    }
}

/// How far a target was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The place in the trail from which on it is still to be told.
    pub next: u64,
    /// How often what comes next was tried.
    pub attempts: i64,
    /// Not before this moment; while somebody sends, when they are given up.
    pub due: Timestamp,
}

impl Control {
    /// Those who are told, the oldest first.
    pub fn targets(&self) -> Result<Vec<Target>, ControlError> {
        self.trail.store().read(|sql| kept::open(sql))
    }

    /// The one of this name.
    pub fn target(&self, name: &str) -> Result<Target, ControlError> {
        self.trail.store().read(|sql| active(sql, name))
    }

    /// How far a target was told.
    pub fn standing(&self, target: &Target) -> Result<Option<Standing>, ControlError> {
        let found = self.trail.store().read(|sql| standing(sql, &target.name))?;
        Ok(found)
    }
}

impl Desk<'_> {
    /// Somebody is told from now on, by the word of an operator. What was before is not told.
    pub fn add_target(
        &self,
        new: &NewTarget,
        vault: &Vault,
        word: &Word,
    ) -> Result<Target, ControlError> {
        new.check()?;
        let around = &self.control.around;
        if let Ok(known) = self.control.target(&new.name) {
            return Err(ControlError::Target {
                name: known.name,
                reason: "there is one of this name already; remove it first".to_owned(),
            });
        }
        let sealed = match &new.url {
            None => None,
            Some(url) => {
                let secrets = Secrets {
                    url: url.clone(),
                    secret: new.secret.clone(),
                    authority: new.authority.clone(),
                };
                Some(vault.put(&new.name, &secrets, &*around.entropy)?)
            }
        };
        let target = Target {
            format: 1,
            name: new.name.clone(),
            channel: new.channel,
            on: new.on.clone(),
            origin: new.origin(),
            allow_private: new.allow_private,
            sealed,
            since: around.clock.now(),
            removed: None,
        };
        self.control.trail.write(Durability::Sync, |writing| {
            self.check(writing, word, &new.says())?;
            let known: Option<Target> = kept::get(writing.sql(), &target.name)?;
            if known.is_some_and(|known| known.removed.is_none()) {
                return Err(ControlError::Meanwhile("somebody added it first"));
            }
            kept::put(writing, &target)?;
            writing.append(Draft {
                stream: Stream::store(),
                actor: word.actor(),
                kind: Kind::fixed("notification_target_added").into(),
                action_id: None,
                body: json!({
                    "target": target.name, "channel": target.channel, "on": target.on,
                    "origin": target.origin, "word": word.note(),
                }),
            })?;
            let next = end(writing.sql())?;
            begin(writing.sql(), &target.name, next)?;
            Ok(target.clone())
        })
    }

    /// Somebody is told no more, by the word of an operator.
    pub fn remove_target(
        &self,
        name: &str,
        vault: &Vault,
        word: &Word,
    ) -> Result<Target, ControlError> {
        let now = self.control.around.clock.now();
        let removed = self.control.trail.write(Durability::Sync, |writing| {
            let target = Target {
                removed: Some(now),
                ..active(writing.sql(), name)?
            };
            self.check(writing, word, &format!("notify remove {name}"))?;
            kept::put(writing, &target)?;
            writing.append(Draft {
                stream: Stream::store(),
                actor: word.actor(),
                kind: Kind::fixed("notification_target_removed").into(),
                action_id: None,
                body: json!({"target": target.name, "word": word.note()}),
            })?;
            writing.sql().execute(
                "DELETE FROM control_tellings WHERE target = ?1",
                &[Value::Text(name)],
            )?;
            Ok::<_, ControlError>(target)
        })?;
        // Last: what is still told while this goes on must be able to end.
        vault.remove(name)?;
        Ok(removed)
    }

    /// Tells a target that it is one, now, and says how that went.
    pub fn try_target(
        &self,
        name: &str,
        telling: &super::Telling<'_>,
    ) -> Result<Result<(), letter::NotTaken>, ControlError> {
        let target = self.control.target(name)?;
        let secrets = telling.vault.get(&target)?;
        let letter = self.control.trial(&target, &secrets)?;
        Ok(telling.carrier.carry(&letter))
    }
}

fn active(sql: &mut dyn Sql, name: &str) -> Result<Target, ControlError> {
    let target: Option<Target> = kept::get(sql, name)?;
    target
        .filter(|target| target.removed.is_none())
        .ok_or_else(|| ControlError::NotFound {
            what: "target",
            name: name.to_owned(),
        })
}

fn begin(sql: &mut dyn Sql, name: &str, next: u64) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO control_tellings (target, next, attempts, due, claim) VALUES (?1, ?2, 0, 0, '') \
         ON CONFLICT (target) DO UPDATE SET next = excluded.next, attempts = 0, due = 0, claim = ''",
        &[
            Value::Text(name),
            Value::Integer(i64::try_from(next).unwrap_or(i64::MAX)),
        ],
    )
    .map(drop)
}

pub(super) fn standing(sql: &mut dyn Sql, name: &str) -> Result<Option<Standing>, StoreError> {
    query_one(
        sql,
        "SELECT next, attempts, due FROM control_tellings WHERE target = ?1",
        &[Value::Text(name)],
        |row| {
            Ok(Standing {
                next: u64::try_from(row.integer(0)?).unwrap_or(0),
                attempts: row.integer(1)?,
                due: Timestamp::from_micros(row.integer(2)?),
            })
        },
    )
}
