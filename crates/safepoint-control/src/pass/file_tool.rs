//! A client's own file tool: it acts outside the fence, by a path, in the client's process.
//!
//! What is let through is a path as it was seen, to be written or read. So that it still leads
//! there when the tool uses it, no name moves behind a fence that can write there, whichever
//! workspace it is of, from a last look before the tool to its end ([`Freeze`]), and Safepoint's
//! own commands move none there ([`safepoint_fence::NameMove`]); after a write it is looked where
//! it went. Descriptors that are open already do not matter: they lead nowhere. What is held back
//! is what makes a path lead elsewhere; contents may be written all the while. Links of the kernel,
//! such as that to the working directory of a process, lead elsewhere without a name that moves:
//! a path over one is refused.
//!
//! A client that `safepoint run` keeps is behind the fence itself, and needs none of this.

use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use safepoint_authority::{DenialCode, NamedPath, Role, Touch, Where};
use safepoint_fence::{Freeze, FreezeScope, Frozen};
use safepoint_store::regular;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::cover::is_change;
use super::documents::Running;
use super::proposal::CallKind;
use super::{Act, Bench, Leave, Passage, Proposal, Standing, Visitor};
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

/// Where freezes are asked for, in the directory of what sessions share. A workspace can lie in
/// another one, so all of them have one place.
pub fn freezer_of(registry: &Path) -> PathBuf {
    registry.join("freezes")
}

impl Passage<'_> {
    /// The freeze of a call, if it is one of a tool that uses files by their paths, outside every
    /// fence.
    fn freeze_of(&self, visitor: &Visitor) -> Option<Freeze> {
        if !visitor.kind.uses_paths() || self.is_within {
            return None;
        }
        self.freeze_named(visitor)
    }

    /// What must not move for a call of a file tool.
    fn freeze_scope(&self, proposal: &Proposal, leave: &Leave, visitor: &Visitor) -> FreezeScope {
        let named = exact_paths(&proposal.act).map(Path::to_owned);
        let real = leave
            .canonical
            .paths
            .iter()
            .map(|it| PathBuf::from(&it.path));
        let places = [self.workspace.root.clone()].into_iter();
        FreezeScope {
            places: places.chain(named).chain(real).collect(),
            keeper: Some(visitor.process),
        }
    }

    /// A client that goes on with another call may never tell the end of one before. What is
    /// frozen for that stays so for a short time only.
    pub(super) fn let_earlier_freezes_expire(&self, visitor: &Visitor) -> Result<(), ControlError> {
        let earlier = |running: &Running| {
            let other = running.visitor.as_ref()?;
            let is_of_client = other.client == visitor.client
                && other.session == visitor.session
                && other.agent == visitor.agent;
            let is_earlier = is_of_client && other.call != visitor.call;
            is_earlier.then(|| self.freeze_of(other)).flatten()
        };
        for freeze in self.open_here()?.iter().filter_map(earlier) {
            freeze.let_expire().map_err(|error| ControlError::File {
                path: self.workspace.root.clone(),
                error,
            })?;
        }
        Ok(())
    }

    /// Lets names move again that a call relied on.
    pub(super) fn thaw(&self, visitor: Option<&Visitor>) {
        if let Some(freeze) = visitor.and_then(|it| self.freeze_named(it)) {
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
        let visitor = proposal.visitor.as_ref();
        let freeze = visitor.and_then(|it| Some((it, self.freeze_of(it)?)));
        let Some((visitor, freeze)) = freeze else {
            return Ok(None);
        };
        let scope = self.freeze_scope(proposal, leave, visitor);
        let found = match freeze.begin(&scope) {
            Ok(Frozen::Yes) => self.moved_target(proposal, leave),
            Ok(Frozen::NoAnswer) => Ok(Some(
                "a program that this workspace still runs, or a command of Safepoint's own, keeps moving files: nobody can tell where the path leads when it is written".to_owned(),
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

/// The paths that a tool is given.
fn exact_paths(act: &Act) -> impl Iterator<Item = &Path> {
    let deeds = match act {
        Act::Tool { understood, .. } => understood.deeds.as_slice(),
        Act::Command(_) | Act::Agent(_) | Act::Change { .. } => &[],
    };
    let touches = deeds.iter().flat_map(|deed| &deed.touches);
    touches.filter_map(|touch| match &touch.place {
        Where::Exact(path) => Some(path.as_path()),
        Where::Below(_) | Where::Unknown(_) => None,
    })
}

/// Refuses a file tool's path that leads over a link of the kernel, such as `/proc/PID/cwd`: what
/// that leads to changes without a name that moves, and is another for whoever follows it.
pub(super) fn refuse_kernel_links(proposal: &Proposal) -> Result<(), ControlError> {
    let is_file_tool = |it: &Visitor| it.kind.uses_paths();
    if !proposal.visitor.as_ref().is_some_and(is_file_tool) {
        return Ok(());
    }
    for path in exact_paths(&proposal.act) {
        if leads_over_kernel_link(path)? || leads_over_kernel_link(&lexical(path))? {
            return Err(ControlError::Proposal {
                reason: format!(
                    "`{}` leads over a link in `/proc`, or one that leads nowhere yet, and where that leads can change at any time: name the file by its own path",
                    path.display()
                ),
            });
        }
    }
    Ok(())
}

/// A path as programs write it that take `..` apart by words.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

fn leads_over_kernel_link(path: &Path) -> Result<bool, ControlError> {
    // What is not there yet is made in the nearest directory that is.
    for above in path.ancestors() {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        match openat2(
            CWD,
            above,
            flags,
            Mode::empty(),
            ResolveFlags::NO_MAGICLINKS,
        ) {
            Ok(_) => return Ok(false),
            Err(Errno::LOOP) => return Ok(true),
            // A link to a process that is still to come. Of the last name the judgement takes care.
            Err(Errno::NOENT) if above != path && above.is_symlink() => return Ok(true),
            Err(Errno::NOENT | Errno::NOTDIR) => {}
            // A kernel without this call has no fence either, and nothing is frozen.
            Err(Errno::NOSYS) => return Ok(false),
            Err(error) => {
                return Err(ControlError::File {
                    path: path.to_owned(),
                    error: error.into(),
                });
            }
        }
    }
    Ok(false)
}

/// Whether one of these texts stands in a file. Clients may write other line ends.
fn contains_one(path: &Path, texts: &[String]) -> bool {
    let is_small = std::fs::metadata(path).is_ok_and(|it| it.len() <= MAX_SEARCHED_BYTES);
    let content = match is_small {
        true => regular::read(path, MAX_SEARCHED_BYTES).ok(),
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
