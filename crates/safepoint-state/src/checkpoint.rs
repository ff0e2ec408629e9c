//! Making a snapshot: look, store, read back, record.
//!
//! The objects are durable and have been read back before the record and its
//! trail entry are committed together. Killed at any instant there is a whole
//! snapshot or none, and objects that nothing refers to.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_model::{Expiry, Timestamp};
use safepoint_store::{fault, regular};

use crate::capture::Capture;
use crate::git::stash::{self, Shelf, Stash};
use crate::listing::{count_lines, last_modified, list_files};
use crate::lock::Hold;
use crate::objects::Writer;
use crate::own;
use crate::own_directory::OwnDirectory;
use crate::part::{self, Subject, WantedPart};
use crate::path::TreePath;
use crate::refusal::{refuse_empty, refuse_missing, refuse_unreadable};
use crate::scan::{self, Progress};
use crate::scope::{Cover, Scope};
use crate::seal::{self, Recipient};
use crate::snapshot::{self, FORMAT, Origin, Record, Sealed, Snapshot, SnapshotId, SnapshotType};
use crate::state::{State, Workspace};
use crate::{ContentId, StateError};

/// What kind of snapshot is wanted.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// Which files it covers.
    pub scope: &'a Scope,
    /// Which databases and states.
    pub parts: Vec<WantedPart>,
    /// Why it is made.
    pub reason: Option<String>,
    /// How it is kept; by default what fits the workspace.
    pub kind: Option<SnapshotType>,
    /// Until when it authorises anything.
    pub expiry: Expiry,
    /// Who wants it.
    pub origin: Origin,
    /// To whom secrets are encrypted; without anybody they are not captured.
    pub seal_to: &'a [Recipient],
}

/// A snapshot that was made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The commit of its entry in `git stash list`.
    pub stash: Option<String>,
    /// The reference under which git has it otherwise.
    pub reference: Option<String>,
    /// What is to be known besides.
    pub warnings: Vec<String>,
    /// The paths of its files, unless there are very many.
    pub files: Option<Vec<TreePath>>,
    /// How many lines its files have, where they are few and small.
    pub lines: Option<u64>,
    /// When a file in it was last changed, unless there are very many.
    pub last_modified: Option<Timestamp>,
    /// Whether git has uncommitted changes in the scope, where that was looked at.
    pub uncommitted: Option<bool>,
}

impl State {
    /// Makes a snapshot of what `wanted` says.
    pub fn checkpoint(
        &self,
        workspace: &Workspace,
        wanted: &Wanted<'_>,
        progress: &Progress,
    ) -> Result<Made, StateError> {
        let made = match self.checkpoint_once(workspace, wanted, progress) {
            // What the store held of it cannot be read any more: it is forgotten, and
            // stored anew from the files, which heals older checkpoints too.
            Err(StateError::Damaged { .. } | StateError::Missing { .. }) => self
                .objects()
                .and_then(|objects| objects.heal())
                .and_then(|_| self.checkpoint_once(workspace, wanted, progress)),
            other => other,
        };
        // One that fails where there has been none leaves no trace of us.
        if let (Err(error), Origin::Asked, true) =
            (&made, wanted.origin, own::has_log(&workspace.root))
        {
            own::log(
                &workspace.root,
                self.now(),
                &own::Operation {
                    name: "checkpoint",
                    reason: wanted.reason.as_deref(),
                    outcome: &format!("failed: {error}"),
                    ..own::Operation::default()
                },
            );
        }
        made
    }

    fn checkpoint_once(
        &self,
        workspace: &Workspace,
        wanted: &Wanted<'_>,
        progress: &Progress,
    ) -> Result<Made, StateError> {
        let subjects = wanted.parts.iter().map(|part| &part.subject);
        let workspace = &workspace.without(subjects)?;
        let _look = self.hold_look(&workspace.root)?;
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        refuse_missing(workspace, wanted.scope)?;
        let (kind, mut warnings) = self.choose(workspace, wanted)?;
        let objects = self.objects()?;
        let validity = self.validity(workspace, &objects)?;
        let writer = objects.writer();
        let (mut capture, source) =
            self.capture(workspace, wanted.scope, &objects, &writer, progress)?;
        if wanted.origin == Origin::Asked {
            refuse_unreadable(workspace, &capture)?;
        }
        let no_files = wanted.scope.is_nothing();
        if wanted.kind == Some(SnapshotType::FileBackup) || no_files {
            capture.git = None;
        }
        if !wanted.scope.is_everything() && !no_files && capture.is_hollow() {
            return Err(StateError::EmptyScope {
                scope: wanted.scope.given().join(" "),
            });
        }
        let sealed = seal_secrets(workspace, wanted.seal_to, &capture, &writer)?;
        let wanted_parts = part::in_order(wanted.parts.clone())?;
        let (parts, notes) = self.capture_parts(workspace, &wanted_parts, &writer)?;
        warnings.extend(notes);
        let size = writer.finish()?;
        warnings.extend(refuse_empty(&objects.reader(), wanted, &capture)?);
        warnings.extend(self.warnings(&capture, &sealed));
        if !no_files {
            warnings.extend(self.outside_warning(workspace, wanted.scope));
        }
        let mut snapshot = Snapshot {
            id: SnapshotId::generate(self.now(), &*self.around.entropy)?,
            workspace: workspace.root.clone(),
            created: self.now(),
            expiry: wanted.expiry,
            pinned: false,
            spent: None,
            record: Record {
                format: FORMAT,
                kind,
                origin: wanted.origin,
                reason: wanted.reason.clone(),
                scope: wanted.scope.to_stored(),
                files: capture.files,
                root_mode: (!no_files).then(|| root_mode(workspace)).flatten(),
                git: capture.git,
                linked: match capture.git {
                    Some(_) => self.capture_linked(workspace, wanted.scope)?,
                    None => None,
                },
                git_head: self.head(workspace).filter(|_| !no_files),
                git_common: self.common_dir_outside(workspace, kind, wanted.origin),
                left_out: capture.left_out(),
                sensitive: capture.sensitive(),
                marks: capture.marks(&workspace.root),
                sealed,
                special: capture.special(),
                parts,
                warnings: warnings.clone(),
                untold: false,
                size,
            },
        };
        let reader = objects.reader();
        let others = self.writes_of_others(&workspace.root, None, None)?;
        let observed = self.account(&objects, &mut snapshot, others)?;
        // It rests on what was stored before as well.
        self.verify_with(&objects, &snapshot)?;
        fault::point("checkpoint.stored");
        if wanted.origin == Origin::Asked {
            // A workspace that cannot be written shows here, before anything is recorded.
            match OwnDirectory::make(&workspace.root, own::CHECKPOINTS) {
                // Only the manifest lies there.
                Ok(_) | Err(StateError::NotOurs { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        fault::point("checkpoint.prepared");
        self.record_with(&snapshot, observed.as_ref(), &wanted_parts)?;
        fault::point("checkpoint.recorded");
        // The snapshot is there: what follows is a convenience and cannot undo it.
        let listed = match wanted.origin {
            Origin::Asked => list_files(&reader, &snapshot)?,
            Origin::Automatic => None,
        };
        if wanted.origin == Origin::Asked
            && let Err(error) = own::write_manifest(&snapshot, listed.as_deref())
        {
            warnings.push(format!("the manifest cannot be written: {error}"));
        }
        fault::point("checkpoint.manifest");
        if let Err(error) = self.remember(workspace, wanted.scope, validity, &capture, source) {
            warnings.push(format!(
                "the cache cannot be written, so the next checkpoint is slower: {error}"
            ));
        }
        own::log(
            &snapshot.workspace,
            self.now(),
            &own::Operation {
                name: "checkpoint",
                checkpoint: Some(snapshot.id.as_str()),
                reason: snapshot.record.reason.as_deref(),
                outcome: "ok",
                ..own::Operation::default()
            },
        );
        let (mut stash, mut reference, mut uncommitted) = (None, None, None);
        if kind == SnapshotType::GitStash && wanted.origin == Origin::Asked {
            // `git stash pop` takes the newest entry: only who names the type gets one.
            let name = git_reference(&snapshot.id);
            let shelf = match wanted.kind {
                Some(SnapshotType::GitStash) => Shelf::List,
                _ => Shelf::Reference(&name),
            };
            let scope = wanted.scope;
            let made = self.stash(workspace, &snapshot, &capture, scope, shelf, &mut warnings);
            uncommitted = made.as_ref().map(|it| matches!(it, Stash::Made { .. }));
            let commit = made.and_then(|it| match it {
                Stash::Made { commit } | Stash::Clean { commit } => Some(commit),
                Stash::Impossible { .. } => None,
            });
            match shelf {
                Shelf::List => stash = commit,
                Shelf::Reference(name) => reference = commit.map(|_| name.to_owned()),
            }
        }
        Ok(Made {
            stash,
            reference,
            warnings,
            lines: listed
                .as_deref()
                .and_then(|files| count_lines(&reader, &snapshot, files)),
            last_modified: listed.as_deref().and_then(last_modified),
            uncommitted,
            files: listed.map(|files| files.into_iter().map(|it| it.path).collect()),
            snapshot,
        })
    }

    /// Which type fits, and what is to be said about that.
    fn choose(
        &self,
        workspace: &Workspace,
        wanted: &Wanted<'_>,
    ) -> Result<(SnapshotType, Vec<String>), StateError> {
        let is_git = workspace.root.join(".git").symlink_metadata().is_ok();
        let no_files = wanted.scope.is_nothing();
        let has = |database: bool| {
            let fits =
                |part: &WantedPart| matches!(part.subject, Subject::Database { .. }) == database;
            wanted.parts.iter().any(fits)
        };
        let unsuitable = |why: &str| {
            Err(StateError::BadScope {
                scope: wanted.kind.map_or("", SnapshotType::as_str).to_owned(),
                why: why.to_owned(),
            })
        };
        match wanted.kind {
            Some(SnapshotType::StateSnapshot) if !has(false) => {
                unsuitable("there is no state in the scope")
            }
            Some(SnapshotType::DatabaseSavepoint) if !has(true) => {
                unsuitable("there is no database in the scope")
            }
            Some(kind @ (SnapshotType::StateSnapshot | SnapshotType::DatabaseSavepoint)) => {
                Ok((kind, Vec::new()))
            }
            Some(_) if no_files => unsuitable("there is no file in the scope"),
            None if no_files && has(true) => Ok((SnapshotType::DatabaseSavepoint, Vec::new())),
            None if no_files => Ok((SnapshotType::StateSnapshot, Vec::new())),
            Some(SnapshotType::FileBackup) => Ok((SnapshotType::FileBackup, Vec::new())),
            Some(SnapshotType::GitStash) if !is_git => {
                unsuitable("the workspace is not a git work tree")
            }
            _ if is_git && self.around.git.is_none() => Ok((
                SnapshotType::FileBackup,
                vec!["git is not installed, so there is no stash entry; the files and the git directory are captured all the same".into()],
            )),
            // That it is left alone is said elsewhere.
            _ if is_git && self.foreign_warning(workspace).is_some() => {
                Ok((SnapshotType::FileBackup, Vec::new()))
            }
            _ if is_git => Ok((SnapshotType::GitStash, Vec::new())),
            _ => Ok((SnapshotType::FileBackup, Vec::new())),
        }
    }

    /// Git may keep the state of a work tree elsewhere. Of a part of the work tree it is not
    /// captured then.
    fn outside_warning(&self, workspace: &Workspace, scope: &Scope) -> Option<String> {
        if let Some(foreign) = self.foreign_warning(workspace) {
            return Some(foreign);
        }
        let repository = self.repository(workspace)?;
        let is_captured =
            repository.git_dir().starts_with(&workspace.root) || scope.is_everything();
        let outside = !is_captured;
        outside.then(|| {
            format!(
                "git keeps the state of this work tree in `{}`: `HEAD`, index and branches are not captured, only the files",
                repository.git_dir().display()
            )
        })
    }

    /// Where the repository lies in which git is to keep something of the checkpoint, unless it
    /// is in the workspace: when that is gone, nothing else says so.
    fn common_dir_outside(
        &self,
        workspace: &Workspace,
        kind: SnapshotType,
        origin: Origin,
    ) -> Option<String> {
        if kind != SnapshotType::GitStash || origin != Origin::Asked {
            return None;
        }
        let repository = self.repository(workspace)?;
        let common_dir = repository.common_dir();
        let is_outside = !common_dir.starts_with(&workspace.root);
        is_outside.then(|| shown(common_dir))
    }

    fn head(&self, workspace: &Workspace) -> Option<String> {
        let repository = self.repository(workspace)?;
        let head = repository.head();
        Some(match head {
            crate::git::Head::Branch { name, commit } => {
                format!("{name} {}", commit.as_deref().unwrap_or("(no commit yet)"))
            }
            crate::git::Head::Detached { commit } => format!("(detached) {commit}"),
        })
    }

    fn warnings(&self, capture: &Capture, sealed: &[Sealed]) -> Vec<String> {
        let mut warnings = Vec::new();
        let named = |notes: &[snapshot::Note]| {
            let names: Vec<&str> = notes
                .iter()
                .take(10)
                .map(|note| note.path.as_str())
                .collect();
            let more = notes.len().saturating_sub(names.len());
            let names = names.join(", ");
            if more == 0 {
                names
            } else {
                format!("{names} and {more} more")
            }
        };
        let sensitive = capture.sensitive();
        if !sensitive.is_empty() && sealed.is_empty() {
            warnings.push(format!(
                "sensitive files are not captured, and will not be restored: {}",
                named(&sensitive)
            ));
        }
        let left_out = capture.left_out();
        if !left_out.is_empty() {
            warnings.push(format!("left out: {}", named(&left_out)));
        }
        if let Some(path) = &capture.scan.restless {
            let path = crate::path::display(path);
            warnings.push(format!(
                "names kept coming and going in `{path}`: what was moved meanwhile may be missing"
            ));
        }
        let special = capture.special();
        if !special.is_empty() {
            warnings.push(format!(
                "recorded, but without content (pipes, sockets, devices): {}",
                named(&special)
            ));
        }
        warnings
    }

    /// Puts the state where plain git can find it too.
    fn stash(
        &self,
        workspace: &Workspace,
        snapshot: &Snapshot,
        capture: &Capture,
        scope: &Scope,
        shelf: Shelf<'_>,
        warnings: &mut Vec<String>,
    ) -> Option<Stash> {
        let missing = match shelf {
            Shelf::List => "no stash entry",
            Shelf::Reference(_) => "no reference for plain git",
        };
        let git = self.around.git.as_ref()?;
        let repository = self.repository(workspace)?;
        let secret = |path: &[u8]| {
            crate::sensitive::by_name(path).is_some()
                || capture
                    .scan
                    .sensitive
                    .iter()
                    .any(|(known, _)| known == path)
        };
        let wanted = |path: &[u8]| scope.cover(path) == Cover::Everything;
        let label = stash_label(snapshot);
        match stash::create_on(git, &repository, shelf, &label, &secret, &wanted) {
            Ok(made @ (Stash::Made { .. } | Stash::Clean { .. })) => Some(made),
            Ok(Stash::Impossible { why }) => {
                warnings.push(format!("{missing}: {why}"));
                None
            }
            Err(error) => {
                warnings.push(format!("{missing}: {error}"));
                None
            }
        }
    }
}

/// The message of a checkpoint's entry in the list of stashes.
pub(crate) fn stash_label(snapshot: &Snapshot) -> String {
    let reason = snapshot.record.reason.as_deref().unwrap_or("");
    format!("checkpoint:{}:{reason}", snapshot.id)
}

/// The reference under which git has a checkpoint that is in no list of stashes.
pub(crate) fn git_reference(id: &SnapshotId) -> String {
    format!("refs/safepoint/checkpoints/{id}")
}

/// Encrypts the secrets that were found, and stores them so.
pub(crate) fn seal_secrets(
    workspace: &Workspace,
    recipients: &[Recipient],
    capture: &Capture,
    writer: &Writer<'_>,
) -> Result<Vec<Sealed>, StateError> {
    if recipients.is_empty() {
        return Ok(Vec::new());
    }
    let mut sealed = Vec::new();
    for (path, _) in &capture.scan.sensitive {
        let full = workspace.root.join(crate::path::as_path(path));
        sealed.push(seal_file(&full, path, recipients, writer)?);
    }
    Ok(sealed)
}

/// Encrypts one secret, and stores it so.
pub(crate) fn seal_file(
    full: &Path,
    path: &[u8],
    recipients: &[Recipient],
    writer: &Writer<'_>,
) -> Result<Sealed, StateError> {
    let plain =
        regular::read(full, u64::MAX).map_err(|error| StateError::file("read", full, error))?;
    let stat = rustix::fs::lstat(full).map_err(|error| StateError::file("read", full, error))?;
    let found = scan::stat::Found::of(&stat);
    let cipher = seal::seal(&plain, recipients)?;
    let content = ContentId::of(&cipher);
    writer.add(content, cipher)?;
    Ok(Sealed {
        path: crate::path::display(path),
        content,
        mode: found.mode,
        modified: found.modified,
    })
}

/// The mode of the workspace itself.
pub(crate) fn root_mode(workspace: &Workspace) -> Option<u32> {
    let stat = rustix::fs::stat(&workspace.root).ok()?;
    Some(scan::stat::Found::of(&stat).mode)
}

/// A workspace's path for people.
pub(crate) fn shown(workspace: &Path) -> String {
    crate::path::display(workspace.as_os_str().as_bytes())
}
