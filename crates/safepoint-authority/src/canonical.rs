//! The canonical form of an action: everything that decides what happens, and nothing else.
//!
//! It is made before anything is judged. A yes is given to its fingerprint, so
//! whatever would make another thing happen must change it, and the order of
//! keys must not. `docs/formats/action.md` has the same in words, with vectors.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_model::{Digest, Frame, SessionId, json};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::denial::DenialCode;
use crate::{Reversibility, Risk, SideEffect};

/// The version of this form.
pub(crate) const SCHEMA: u32 = 1;

/// The most bytes of a canonical form.
const LARGEST: usize = 4 << 20;

/// Everything that decides what an action does.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Canonical {
    /// The version of this form.
    pub schema: u32,
    /// What would act.
    pub tool: Tool,
    /// The built-in actions it comes to, in order.
    pub actions: BTreeSet<String>,
    /// The words of the command; the operations of a change, each as canonical JSON.
    pub argv: Vec<String>,
    /// Where it runs.
    pub directory: Directory,
    /// The variables it gets, each with a keyed digest in place of its value.
    pub environment: BTreeMap<String, String>,
    /// Every path it names.
    pub paths: Vec<NamedPath>,
    /// The machines it talks to.
    pub hosts: BTreeSet<String>,
    /// What it reads from standard input.
    pub input: Input,
    /// The kinds of effect it has.
    pub side_effects: BTreeSet<SideEffect>,
    /// Whether it can be taken back.
    pub reversibility: Reversibility,
    /// What cannot be taken back.
    pub remainder: BTreeSet<String>,
    /// How much is at stake.
    pub risk: Risk,
    /// The session it belongs to.
    #[schemars(with = "String")]
    pub session_id: SessionId,
    /// Whose model or service proposes it, where that is known.
    pub provider: Option<String>,
    /// The workspace it is about.
    pub workspace: Workspace,
    /// What it is judged under: a digest of all that decides.
    #[schemars(with = "String")]
    pub policy_version: Digest,
    /// The atlases among that.
    pub atlases: Vec<AtlasPin>,
}

/// What would act.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// `exec` for a command, `mutate` for a change under a checkpoint, `CLIENT/TOOL` for a tool
    /// that a client uses itself.
    pub name: String,
    /// The program, if one is started.
    pub executable: Option<Executable>,
    /// The interpreters that the scripts it starts name after `#!`, each with the interpreter
    /// of its own, in the order in which the kernel finds them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interpreters: Vec<Executable>,
}

impl Tool {
    /// What trust in the program is for: its content, then its interpreters.
    pub fn content(&self) -> Vec<Executable> {
        let program = self.executable.iter();
        program.chain(&self.interpreters).cloned().collect()
    }

    /// Whether a client uses it itself.
    pub fn is_a_clients(&self) -> bool {
        self.name.contains('/')
    }
}

/// A program, by what it is.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Executable {
    /// Where it lies, without links.
    pub path: String,
    /// The digest of its content.
    #[schemars(with = "String")]
    pub digest: Digest,
}

/// The directory a command runs in.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Directory {
    /// Where it is, without links.
    pub path: String,
    /// Which one it is.
    pub identity: Identity,
}

/// What makes a file or directory this one, whatever it is called.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The file system.
    pub device: u64,
    /// The file in it.
    pub inode: u64,
}

/// The workspace an action is about.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Workspace {
    /// Where it is, without links.
    pub path: String,
}

/// A path that an action names, and what is there now.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(deny_unknown_fields)]
pub struct NamedPath {
    /// Where, absolute; links on the way there are resolved, the last name is not.
    pub path: String,
    /// How it is touched: `read`, `write`, `delete`, `metadata`, `execute`, the gravest; or
    /// `scratch`, for what comes and goes in a temporary folder.
    pub role: String,
    /// Whether it lies in the workspace.
    pub inside: bool,
    /// What is there.
    pub preimage: Preimage,
}

/// What is at a path.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Preimage {
    /// Nothing.
    Absent {},
    /// A file.
    File {
        /// Which file system.
        device: u64,
        /// Which file.
        inode: u64,
        /// Its permission bits.
        mode: u32,
        /// The digest of its content.
        #[schemars(with = "String")]
        digest: Digest,
    },
    /// A symbolic link.
    Link {
        /// Where it leads.
        target: String,
        /// What it leads to, where that is a file that is used.
        #[schemars(with = "Option<String>")]
        digest: Option<Digest>,
    },
    /// A directory.
    Directory {
        /// Which file system.
        device: u64,
        /// Which directory.
        inode: u64,
        /// A digest of the names in it and below, with sizes and times; `None` when there are too many.
        #[schemars(with = "Option<String>")]
        listing: Option<Digest>,
    },
    /// A device, a socket, a pipe.
    Special {
        /// Which file system.
        device: u64,
        /// Which one.
        inode: u64,
    },
    /// It depends on what happens: the words as they are written.
    Unknown {},
}

/// What a command reads from standard input.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Nothing.
    None {},
    /// Whatever is at the terminal or the pipe it is started with.
    Inherited {},
    /// These bytes.
    Bytes {
        /// Their digest.
        #[schemars(with = "String")]
        digest: Digest,
        /// How many.
        length: u64,
    },
}

/// An atlas that an action is judged under.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct AtlasPin {
    /// Its name.
    pub atlas_id: String,
    /// Its version.
    pub version: String,
    /// The digest of everything in it.
    #[schemars(with = "String")]
    pub digest: Digest,
}

/// Why a text is not a canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// It is not strict JSON of this shape.
    #[error("it is not the canonical form of an action")]
    Read(#[from] json::ReadAsError),
    /// It cannot be written as canonical JSON.
    #[error("the action has no canonical form")]
    Write(#[from] json::WriteError),
    /// It is of another version.
    #[error("the form has version {0}; this Safepoint knows version {SCHEMA}")]
    Version(u32),
}

impl Canonical {
    /// The version of this form.
    pub const SCHEMA: u32 = SCHEMA;

    /// Reads a canonical form. Anything that two readers could see differently is refused.
    pub fn read(text: &[u8]) -> Result<Self, CanonicalError> {
        let limits = json::Limits {
            bytes: LARGEST,
            ..json::Limits::default()
        };
        let form: Self = json::read_as(text, limits)?;
        if form.schema != SCHEMA {
            return Err(CanonicalError::Version(form.schema));
        }
        Ok(form)
    }

    /// The bytes of it: RFC 8785.
    pub fn bytes(&self) -> Result<Vec<u8>, CanonicalError> {
        Ok(json::canonical_of(self)?)
    }

    /// What a yes is bound to.
    pub fn fingerprint(&self) -> Result<Digest, CanonicalError> {
        Ok(Frame::new("safepoint/action")
            .number(u64::from(self.schema))
            .field(&self.bytes()?)
            .digest())
    }

    /// Whether it starts something whose effects its words do not tell.
    pub fn runs_anything(&self) -> bool {
        let anything = ["process.exec", "shell.opaque"];
        anything.iter().any(|it| self.actions.contains(*it))
    }

    /// What makes it the same wish, whatever the world looks like: by this an approval is
    /// found again, and then compared in full.
    pub fn wish(&self) -> Digest {
        let mut frame = Frame::new("safepoint/wish/v1");
        frame
            .field(self.workspace.path.as_bytes())
            .field(self.tool.name.as_bytes())
            .field(self.directory.path.as_bytes());
        for word in &self.argv {
            frame.field(word.as_bytes());
        }
        frame.digest()
    }
}

/// What the world has changed since `approved`, as the code of a denial; `None` if nothing.
pub fn changed(approved: &Canonical, now: &Canonical) -> Option<DenialCode> {
    if approved == now {
        return None;
    }
    if approved.policy_version != now.policy_version || approved.atlases != now.atlases {
        return Some(DenialCode::PolicyChanged);
    }
    if approved.session_id != now.session_id || approved.workspace != now.workspace {
        return Some(DenialCode::LineageMismatch);
    }
    let programs =
        |form: &Canonical| (form.tool.executable.clone(), form.tool.interpreters.clone());
    if programs(approved) != programs(now) {
        return Some(DenialCode::ExecutableChanged);
    }
    if approved.directory != now.directory {
        return Some(DenialCode::DirectoryChanged);
    }
    if approved.environment != now.environment {
        return Some(DenialCode::EnvironmentChanged);
    }
    if approved.input != now.input {
        return Some(DenialCode::InputChanged);
    }
    if approved.paths != now.paths {
        return Some(paths_changed(&approved.paths, &now.paths));
    }
    Some(DenialCode::FingerprintMismatch)
}

/// What the world has changed, in words for whoever asks. Of variables, only the names: they
/// may hold secrets.
pub fn changed_how(code: DenialCode, approved: &Canonical, now: &Canonical) -> String {
    let meaning = code.meaning();
    if code != DenialCode::EnvironmentChanged {
        return meaning.to_owned();
    }
    let (one, other) = (&approved.environment, &now.environment);
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ = names
        .into_iter()
        .filter(|name| one.get(*name) != other.get(*name));
    let told: Vec<String> = differ
        .map(
            |name| match (one.contains_key(name), other.contains_key(name)) {
                (true, false) => format!("`{name}` is gone"),
                (false, true) => format!("`{name}` is new"),
                _ => format!("`{name}` is another"),
            },
        )
        .collect();
    format!("{meaning}: {}", told.join(", "))
}

/// Whether the same places hold something else, or the names lead elsewhere.
fn paths_changed(approved: &[NamedPath], now: &[NamedPath]) -> DenialCode {
    let same_names = approved.len() == now.len()
        && approved
            .iter()
            .zip(now)
            .all(|(one, other)| one.path == other.path && one.role == other.role);
    if !same_names {
        return DenialCode::PathIdentityChanged;
    }
    let is_other = |(one, other): (&NamedPath, &NamedPath)| {
        one.preimage.identity() != other.preimage.identity()
    };
    match approved.iter().zip(now).any(is_other) {
        true => DenialCode::PathIdentityChanged,
        false => DenialCode::TargetChanged,
    }
}

impl Preimage {
    /// What stays the same when only the content changes. A file that an editor saved by
    /// renaming another over it is the same place with another content.
    fn identity(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Absent {} => ("absent", None),
            Self::File { .. } => ("file", None),
            Self::Link { target, .. } => ("link", Some(target)),
            Self::Directory { .. } => ("directory", None),
            Self::Special { .. } => ("special", None),
            Self::Unknown {} => ("unknown", None),
        }
    }
}
