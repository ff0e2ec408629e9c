//! An envelope: a bounded scope in which a session goes on without asking.
//!
//! Whatever lies outside it in any way makes a hold, which says exactly what is
//! new. Nothing ever widens an envelope but a decision.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_model::{Timestamp, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Canonical, NamedPath, SideEffect};

/// A bounded scope.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    /// The actions, each by name or with `*` for the rest of it.
    pub actions: BTreeSet<String>,
    /// The directories and files, absolute: each with all that is below it.
    #[serde(default)]
    pub paths: BTreeSet<String>,
    /// The kinds of effect.
    pub side_effects: BTreeSet<SideEffect>,
    /// The machines.
    #[serde(default)]
    pub hosts: BTreeSet<String>,
    /// How often it may still be used; as often as one likes without it.
    #[serde(default)]
    pub uses: Option<u32>,
    /// Until when.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub expires_at: Option<Timestamp>,
}

/// Why a text is not an envelope.
#[derive(Debug, thiserror::Error)]
pub enum EnvelopeError {
    /// It is not strict JSON of this shape.
    #[error("it is not an envelope")]
    Read(#[from] json::ReadAsError),
    /// It has a path that is not absolute and plain.
    #[error("the path `{0}` is not absolute, or has `.` or `..` in it")]
    Path(String),
    /// It is empty.
    #[error("it names no actions, so it allows nothing")]
    Empty,
    /// A pattern would mean everything.
    #[error("`{0}` stands for all actions; name the group, such as `file.*`")]
    TooWide(String),
}

/// What is new about an action, beside what an envelope allows.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ScopeDelta {
    /// Actions it does not name.
    pub actions: BTreeSet<String>,
    /// Paths it does not reach.
    pub paths: BTreeSet<String>,
    /// Effects it does not have.
    pub side_effects: BTreeSet<SideEffect>,
    /// Machines it does not know.
    pub hosts: BTreeSet<String>,
    /// Whether it is used up.
    pub used_up: bool,
    /// Whether it has expired.
    pub expired: bool,
}

impl ScopeDelta {
    /// Whether nothing is new.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Envelope {
    /// Reads an envelope, strictly.
    pub fn read(text: &str) -> Result<Self, EnvelopeError> {
        let envelope: Self = json::read_as(text.as_bytes(), json::Limits::default())?;
        envelope.check()?;
        Ok(envelope)
    }

    /// Whether it can be one.
    pub fn check(&self) -> Result<(), EnvelopeError> {
        if self.actions.is_empty() {
            return Err(EnvelopeError::Empty);
        }
        for pattern in &self.actions {
            let group = pattern.strip_suffix('*').unwrap_or(pattern);
            if group.is_empty() || group.contains('*') || group == "." {
                return Err(EnvelopeError::TooWide(pattern.clone()));
            }
        }
        for path in &self.paths {
            let plain = |part: std::path::Component<'_>| {
                use std::path::Component::{Normal, RootDir};
                matches!(part, Normal(_) | RootDir)
            };
            if !path.starts_with('/') || !Path::new(path).components().all(plain) {
                return Err(EnvelopeError::Path(path.clone()));
            }
        }
        Ok(())
    }

    /// What is new about an action. It fits if nothing is.
    pub fn delta(&self, action: &Canonical, now: Timestamp) -> ScopeDelta {
        let actions = action.actions.iter();
        let actions = actions.filter(|name| !self.actions.iter().any(|known| covers(known, name)));
        // Merely reading widens nothing; what it must not read is an action of its own.
        let paths = action.paths.iter().filter(|named| named.role != "read");
        // What lies in the workspace and is outside all the same leads there by a link: where to,
        // its name does not tell.
        let leads_out = |named: &NamedPath| {
            !named.inside && Path::new(&named.path).starts_with(&action.workspace.path)
        };
        let paths = paths.filter(|named| {
            leads_out(named) || !self.paths.iter().any(|known| reaches(known, &named.path))
        });
        ScopeDelta {
            actions: actions.cloned().collect(),
            paths: paths.map(|named| named.path.clone()).collect(),
            side_effects: &action.side_effects - &self.side_effects,
            hosts: &action.hosts - &self.hosts,
            used_up: self.uses == Some(0),
            expired: self.expires_at.is_some_and(|end| end <= now),
        }
    }

    /// The same after one more use.
    pub fn used(mut self) -> Self {
        self.uses = self.uses.map(|uses| uses.saturating_sub(1));
        self
    }
}

fn covers(pattern: &str, action: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(group) => action.starts_with(group),
        None => pattern == action,
    }
}

fn reaches(known: &str, path: &str) -> bool {
    Path::new(path).starts_with(known)
}
