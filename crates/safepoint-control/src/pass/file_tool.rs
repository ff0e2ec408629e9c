//! A client's own file tool: it acts outside the fence, by a path, in the client's process.
//!
//! What is let through is a path as it was seen. So that it still leads there when the tool uses
//! it, no name moves behind a fence of this workspace from a last look before the tool to its end
//! ([`Freeze`]); and afterwards it is looked where the write went. Descriptors that are open
//! already do not matter: they lead nowhere. What is held back is what makes a path lead
//! elsewhere; contents may be written all the while.
//!
//! A client that `safepoint run` keeps is behind the fence itself, and needs none of this.

use std::path::{Path, PathBuf};

use safepoint_authority::{DenialCode, NamedPath, Role, Touch, Where};
use safepoint_fence::{Freeze, Frozen};
use safepoint_model::Digest;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cover::is_change;
use super::documents::Running;
use super::proposal::CallKind;
use super::{Bench, Leave, Passage, Proposal, Standing, Visitor};
use crate::{ControlError, kept, world};

/// Larger files are not searched for what was written.
const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// What a file tool was to do with one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileTarget {
    /// The path as the client names it, absolute.
    pub path: PathBuf,
    /// Texts of which one stands in the file afterwards; none where that is not known.
    pub texts: Vec<String>,
}

/// A path at which the write of a file tool is not found.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct StrayWrite {
    /// The path as the client named it.
    pub path: String,
    /// Where it leads by now.
    pub leads_to: String,
    /// Why it is taken for stray.
    pub why: String,
}

/// Where freezes of a workspace are asked for, in the directory of what sessions share.
pub fn freezer_of(registry: &Path, root: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let digest = Digest::of_parts(&[b"safepoint/freezer/v1", root.as_os_str().as_bytes()]);
    registry.join("freezes").join(digest.to_string())
}

impl Passage<'_> {
    /// The freeze of a call, if it is one of a file tool that acts outside every fence.
    fn freeze_of(&self, visitor: &Visitor) -> Option<Freeze> {
        if visitor.kind != CallKind::Files || self.is_within {
            return None;
        }
        let supervision = self.fence.as_ref()?.supervision.as_ref()?;
        let parts = [&visitor.client, &visitor.session, &visitor.call];
        let name = Digest::of_parts(&parts.map(|part| part.as_bytes()));
        let directory = supervision.freezer.as_deref()?;
        Some(Freeze::new(directory, &name.to_string()))
    }

    /// Lets names move again that the call of a file tool relied on.
    pub(super) fn thaw(&self, visitor: Option<&Visitor>) {
        if let Some(freeze) = visitor.and_then(|it| self.freeze_of(it)) {
            freeze.end();
        }
    }

    /// Freezes what is named by a file tool that has leave, and looks once more where it leads.
    /// The answer says why the leave is withdrawn; the freeze stands if it is not.
    pub(super) fn freeze_targets(
        &self,
        proposal: &Proposal,
        leave: &Leave,
    ) -> Result<Option<(DenialCode, String)>, ControlError> {
        let freeze = proposal.visitor.as_ref().and_then(|it| self.freeze_of(it));
        let Some(freeze) = freeze else {
            return Ok(None);
        };
        let found = match freeze.begin() {
            Ok(Frozen::Yes) => self.moved_target(proposal, leave),
            Ok(Frozen::NoAnswer) => Ok(Some(
                "a program that this workspace still runs keeps moving files: nobody can tell where the path leads when it is written".to_owned(),
            )),
            Err(error) => Err(ControlError::File {
                path: self.workspace.root.clone(),
                error,
            }),
        };
        match found {
            Ok(None) => Ok(None),
            Ok(Some(reason)) => {
                freeze.end();
                Ok(Some((DenialCode::PathIdentityChanged, reason)))
            }
            Err(error) => {
                freeze.end();
                Err(error)
            }
        }
    }

    /// Why the targets are not where they were judged to be, if they are not.
    fn moved_target(
        &self,
        proposal: &Proposal,
        leave: &Leave,
    ) -> Result<Option<String>, ControlError> {
        let seen = self.see(proposal)?;
        let mut now = self.without_tokens(seen.named.concat())?;
        now.sort();
        now.dedup();
        let places = |paths: &[NamedPath]| -> Vec<(String, bool)> {
            let places = paths.iter().map(|it| (it.path.clone(), it.inside));
            let mut places: Vec<_> = places.collect();
            places.sort();
            places.dedup();
            places
        };
        let (then, now) = (places(&leave.canonical.paths), places(&now));
        let moved = now.iter().find(|place| !then.contains(place));
        let moved = moved.or_else(|| then.iter().find(|place| !now.contains(place)));
        Ok(moved
            .map(|(path, _)| format!("{}: `{path}`", DenialCode::PathIdentityChanged.meaning())))
    }

    /// The targets of a file tool where what it wrote is not found.
    pub(super) fn stray_writes(
        &self,
        running: &Running,
        targets: &[FileTarget],
    ) -> Result<Vec<StrayWrite>, ControlError> {
        let mut stray = Vec::new();
        for target in targets {
            let now = self.look_at(&target.path, Role::Write)?;
            let removed = self.look_at(&target.path, Role::Delete)?;
            let is_same = |then: &&NamedPath| {
                let now = if then.role == "delete" {
                    &removed
                } else {
                    &now
                };
                then.path == now.path && then.inside == now.inside
            };
            let why = match running.targets.iter().find(is_same) {
                None => "it leads somewhere else than when it was let through",
                Some(then) if then.preimage != now.preimage => continue,
                Some(_) if contains_one(&target.path, &target.texts) => continue,
                Some(_) => "what was written does not stand there",
            };
            stray.push(StrayWrite {
                path: target.path.display().to_string(),
                leads_to: now.path,
                why: why.to_owned(),
            });
        }
        Ok(stray)
    }

    fn look_at(&self, path: &Path, role: Role) -> Result<NamedPath, ControlError> {
        let touch = Touch {
            place: Where::Exact(path.to_owned()),
            role,
        };
        let named = world::named(&touch, &self.workspace.root)?;
        let named = named.ok_or_else(|| ControlError::Proposal {
            reason: format!("`{}` names no file", path.display()),
        })?;
        self.without_tokens(named)
    }
}

impl Bench<'_> {
    /// Has somebody look before anything else is done in a session whose write went astray.
    pub(super) fn distrust(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        running: &Running,
        stray: &[StrayWrite],
    ) -> Result<(), ControlError> {
        let Some(first) = stray.first() else {
            return Ok(());
        };
        let session = &running.session_id;
        let standing: Standing = kept::get(writing.sql(), session.as_str())?
            .unwrap_or_else(|| Standing::new(session.clone(), self.now()));
        let distrusted = Standing {
            violated: Some(format!("{}: {}", first.path, first.why)),
            envelope: None,
            ..standing
        };
        kept::put(writing, &distrusted)
    }
}

/// What the trail says of writes that went astray.
pub(super) fn with_stray(mut body: Value, stray: &[StrayWrite]) -> Value {
    if let (Some(fields), false) = (body.as_object_mut(), stray.is_empty()) {
        fields.insert("stray_writes".to_owned(), json!(stray));
    }
    body
}

/// What the form of a file tool's call names, for the look afterwards.
pub(super) fn targets_of(visitor: Option<&Visitor>, named: &[NamedPath]) -> Vec<NamedPath> {
    let is_file_tool = visitor.is_some_and(|it| it.kind == CallKind::Files);
    let changed = named.iter().filter(|it| is_change(&it.role));
    match is_file_tool {
        true => changed.cloned().collect(),
        false => Vec::new(),
    }
}

/// Whether one of these texts stands in a file. Clients may write other line ends.
fn contains_one(path: &Path, texts: &[String]) -> bool {
    let is_small = std::fs::metadata(path).is_ok_and(|it| it.len() <= MAX_SEARCHED_BYTES);
    let content = match is_small {
        true => std::fs::read(path).ok(),
        false => None,
    };
    let Some(content) = content else {
        return false;
    };
    let plain = |text: &str| text.replace('\r', "");
    let content = plain(&String::from_utf8_lossy(&content));
    let is_there = |text: &String| match text.is_empty() {
        true => content.is_empty(),
        false => content.contains(plain(text).trim_end()),
    };
    texts.iter().any(is_there)
}
