//! Trust: kept for each boundary, begun at nothing, lost at once.
//!
//! Trust in one boundary says nothing about another. It grows only by evidence
//! that is recorded, and that the rules name; the first violation takes all of
//! it away. Every change is a new version. A program or a workflow is trusted for its content:
//! with other content under the same name nothing of it counts.

use std::fmt;
use std::str::FromStr;

use safepoint_model::{Digest, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Executable, OutsideKind, OutsideTarget};

/// What trust is about: `tool:/usr/bin/git`, `path:/srv/site`, `specialist:reviewer`,
/// `provider:acme`, `workflow:release`; and what may be reached outside the fence, with the
/// workspace or the session it is for: `host:example.org:443 in /srv/site`,
/// `socket:/run/docker.sock in ses_…`, `file:/srv/shared.log in /srv/site`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Boundary {
    kind: &'static str,
    name: String,
}

/// A text that is not a boundary.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "`{0}` is not a boundary: write `tool:`, `path:`, `specialist:`, `provider:` or `workflow:` and a name, or `host:`, `socket:` or `file:`, a target, ` in ` and a workspace"
)]
pub struct BoundaryError(String);

const KINDS: [&str; 8] = [
    "tool",
    "path",
    "specialist",
    "provider",
    "workflow",
    "host",
    "socket",
    "file",
];

/// What stands between a target outside the fence and where it may be reached from.
const FROM: &str = " in ";

/// How a workspace, one on another machine, and a session begin. What follows an ` in ` that
/// belongs to the target begins otherwise, or it could not be told apart.
const PLACES: [char; 3] = ['/', '@', 's'];

impl Boundary {
    /// A program, by where it lies.
    pub fn tool(path: &str) -> Self {
        Self {
            kind: "tool",
            name: path.to_owned(),
        }
    }

    /// A directory.
    pub fn path(path: &str) -> Self {
        Self {
            kind: "path",
            name: path.to_owned(),
        }
    }

    /// Whose model or service acts.
    pub fn provider(name: &str) -> Self {
        Self {
            kind: "provider",
            name: name.to_owned(),
        }
    }

    /// A workflow.
    pub fn workflow(name: &str) -> Self {
        Self {
            kind: "workflow",
            name: name.to_owned(),
        }
    }
}

impl Boundary {
    /// A target outside the fence, for what runs in a workspace or in a session.
    pub fn outside(target: &OutsideTarget, place: &str) -> Result<Self, BoundaryError> {
        format!("{}:{}{FROM}{place}", target.kind.boundary(), target.name).parse()
    }

    /// The target outside the fence and the workspace or session it is for, if it is one.
    pub fn outside_target(&self) -> Option<(OutsideTarget, &str)> {
        let kind = OutsideKind::ALL
            .into_iter()
            .find(|it| it.boundary() == self.kind)?;
        // Targets have no ` in ` in them, places may.
        let (name, place) = self.name.split_once(FROM)?;
        let name = name.to_owned();
        Some((OutsideTarget { kind, name }, place))
    }

    /// Where the program lies, if it is one.
    pub fn program(&self) -> Option<&str> {
        (self.kind == "tool").then_some(self.name.as_str())
    }

    /// The workflow's name, if it is one.
    pub fn workflow_name(&self) -> Option<&str> {
        (self.kind == "workflow").then_some(self.name.as_str())
    }
}

impl FromStr for Boundary {
    type Err = BoundaryError;

    fn from_str(text: &str) -> Result<Self, BoundaryError> {
        let wrong = || BoundaryError(text.chars().take(200).collect());
        let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
        let kind = KINDS
            .iter()
            .find(|known| **known == kind)
            .ok_or_else(wrong)?;
        if OutsideKind::ALL
            .into_iter()
            .any(|it| it.boundary() == *kind)
        {
            let (target, place) = name.split_once(FROM).ok_or_else(wrong)?;
            // One in the target would leave open where that ends.
            if target.is_empty() || !place.starts_with(PLACES) {
                return Err(wrong());
            }
        }
        let plain =
            !name.trim().is_empty() && name.len() <= 4096 && !name.chars().any(char::is_control);
        match plain {
            true => Ok(Self {
                kind,
                name: name.to_owned(),
            }),
            false => Err(wrong()),
        }
    }
}

impl fmt::Display for Boundary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

impl Serialize for Boundary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Boundary {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// How much a boundary is trusted, the least first.
#[derive(
    Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Not at all. Where everything begins.
    Untrusted,
    /// Enough for what the rules say.
    Trusted,
    /// Enough to go without checkpoints.
    Elevated,
}

impl Level {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Trusted => "trusted",
            Self::Elevated => "elevated",
        }
    }
}

/// What is known about one boundary.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Trust {
    /// The version of this form.
    pub format: u32,
    /// What it is about.
    #[schemars(with = "String")]
    pub boundary: Boundary,
    /// How much.
    pub level: Level,
    /// Goes up with every change.
    pub version: u64,
    /// How often what the rules name as evidence was seen since the last violation.
    pub evidence: u32,
    /// Why it is as it is.
    pub reason: String,
    /// Under which rules.
    #[schemars(with = "Option<String>")]
    pub policy_version: Option<Digest>,
    /// Since when.
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// What is trusted: of a program its content, then its interpreters if it is a script; of a
    /// workflow its file.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Executable>,
}

impl Trust {
    /// A boundary that nobody knows yet.
    pub fn new(boundary: Boundary, now: Timestamp) -> Self {
        Self {
            format: 1,
            boundary,
            level: Level::Untrusted,
            version: 0,
            evidence: 0,
            reason: "nothing is known of it".to_owned(),
            policy_version: None,
            since: now,
            content: Vec::new(),
        }
    }

    /// How much a workflow is trusted whose file has this digest, wherever the file lies.
    pub fn level_for_digest(&self, digest: &Digest) -> Level {
        match self.content.iter().any(|it| it.digest == *digest) {
            true => self.level,
            false => Level::Untrusted,
        }
    }

    /// How much it counts for this content of the program: nothing, unless it was given to it.
    pub fn level_for(&self, content: &[Executable]) -> Level {
        match self.content == content && !content.is_empty() {
            true => self.level,
            false => Level::Untrusted,
        }
    }

    /// The same about this content: what was known of other content is gone.
    pub fn about(self, content: &[Executable]) -> Self {
        if self.content == content {
            return self;
        }
        Self {
            content: content.to_vec(),
            level: Level::Untrusted,
            evidence: 0,
            ..self
        }
    }

    fn next(self, level: Level, reason: String, now: Timestamp) -> Self {
        Self {
            level,
            version: self.version + 1,
            reason,
            since: now,
            ..self
        }
    }

    /// An operator trusts it, up to `level`.
    pub fn granted(self, level: Level, reason: String, now: Timestamp) -> Self {
        self.next(level, reason, now)
    }

    /// An operator trusts it no more.
    pub fn revoked(self, reason: String, now: Timestamp) -> Self {
        Self {
            evidence: 0,
            ..self.next(Level::Untrusted, reason, now)
        }
    }

    /// It did something it should not have. There is no grace.
    pub fn violated(self, what: String, now: Timestamp) -> Self {
        self.revoked(what, now)
    }

    /// It did what was approved. With `enough` such it is trusted; the rules say how many.
    pub fn proven(self, enough: Option<u32>, policy_version: Digest, now: Timestamp) -> Self {
        let Some(enough) = enough else { return self };
        let evidence = self.evidence.saturating_add(1);
        let grown = self.level == Level::Untrusted && evidence >= enough.max(1);
        let level = if grown { Level::Trusted } else { self.level };
        let reason = format!("{evidence} approved actions went well");
        Self {
            evidence,
            policy_version: Some(policy_version),
            ..self.next(level, reason, now)
        }
    }
}
