//! Making a snapshot: look, store, read back, record.
//!
//! The objects are durable and have been read back before the record and its
//! trail entry are committed together. Killed at any instant there is a whole
//! snapshot or none, and objects that nothing refers to.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_model::{Expiry, Timestamp};
use safepoint_store::fault;

use crate::capture::Capture;
use crate::git::Repository;
use crate::git::stash::{self, Shelf, Stash};
use crate::lock::Hold;
use crate::objects::{Reader, Writer};
use crate::own;
use crate::part::{self, Subject, WantedPart};
use crate::path::TreePath;
use crate::scan::{self, Progress};
use crate::scope::{Cover, Scope};
use crate::seal::{self, Recipient};
use crate::snapshot::{self, FORMAT, Origin, Record, Sealed, Snapshot, SnapshotId, SnapshotType};
use crate::state::{State, Workspace};
use crate::tree::{self, Entry, Node, Trees};
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

/// A file, a link or something else in a checkpoint.
#[derive(Clone, Debug)]
pub struct ListedFile {
    /// Where it is.
    pub path: TreePath,
    /// What it is.
    pub entry: Entry,
}

impl ListedFile {
    /// What it is, in a word: `file`, `symlink` or `special`.
    pub fn kind(&self) -> &'static str {
        match &self.entry.node {
            Node::File { .. } => "file",
            Node::Symlink { .. } => "symlink",
            Node::Directory(_) => "directory",
            Node::Special { .. } => "special",
        }
    }

    /// How many bytes it has.
    pub fn size(&self) -> Option<u64> {
        match &self.entry.node {
            Node::File { size, .. } => Some(*size),
            _ => None,
        }
    }

    /// The hash of its content, with the name of the algorithm. The store names contents by it,
    /// so nothing is read for it.
    pub fn hash(&self) -> Option<String> {
        match &self.entry.node {
            Node::File { content, .. } => Some(format!("blake3:{content}")),
            _ => None,
        }
    }

    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "path": crate::path::display(&self.path),
            "type": self.kind(),
            "size": self.size(),
            "hash": self.hash(),
        })
    }
}

/// So many paths are listed; of more only the number is told.
const MOST_LISTED: u64 = 5_000;

/// Lines are counted of so many files, and of so many bytes.
const MAX_COUNTED_FILES: u64 = 200;
const MAX_COUNTED_BYTES: u64 = 1 << 20;

impl State {
    /// Makes a snapshot of what `wanted` says.
    pub fn checkpoint(
        &self,
        workspace: &Workspace,
        wanted: &Wanted<'_>,
        progress: &Progress,
    ) -> Result<Made, StateError> {
        match self.checkpoint_once(workspace, wanted, progress) {
            // What the store held of it cannot be read any more: it is forgotten, and
            // stored anew from the files, which heals older checkpoints too.
            Err(StateError::Damaged { .. } | StateError::Missing { .. }) => {
                self.objects()?.heal()?;
                self.checkpoint_once(workspace, wanted, progress)
            }
            other => other,
        }
    }

    fn checkpoint_once(
        &self,
        workspace: &Workspace,
        wanted: &Wanted<'_>,
        progress: &Progress,
    ) -> Result<Made, StateError> {
        let subjects = wanted.parts.iter().map(|part| &part.subject);
        let workspace = &workspace.without(subjects)?;
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
        let snapshot = Snapshot {
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
                left_out: capture.left_out(),
                sensitive: capture.sensitive(),
                marks: capture.marks(&workspace.root),
                sealed,
                special: capture.special(),
                parts,
                warnings: warnings.clone(),
                size,
            },
        };
        let reader = objects.reader();
        let observed = self.observed(&reader, &snapshot)?;
        // It rests on what was stored before as well.
        self.verify_with(&objects, &snapshot)?;
        fault::point("checkpoint.stored");
        if wanted.origin == Origin::Asked {
            // A workspace that cannot be written shows here, before anything is recorded.
            own::prepare(&own::checkpoints(&workspace.root))?;
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
            "checkpoint",
            snapshot.id.as_str(),
            snapshot.record.reason.as_deref(),
            "ok",
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
            _ if is_git => Ok((SnapshotType::GitStash, Vec::new())),
            _ => Ok((SnapshotType::FileBackup, Vec::new())),
        }
    }

    /// Git may keep the state of a work tree elsewhere. Of a part of the work tree it is not
    /// captured then.
    fn outside_warning(&self, workspace: &Workspace, scope: &Scope) -> Option<String> {
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

    pub(crate) fn repository(&self, workspace: &Workspace) -> Option<Repository> {
        let git = self.around.git.as_ref()?;
        Repository::open(git, &workspace.root).ok().flatten()
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

/// Who asks for a checkpoint is told of a file that may not be read, and decides about it. What
/// is made around an action leaves such a file out: it must not stop the way back.
fn refuse_unreadable(workspace: &Workspace, capture: &Capture) -> Result<(), StateError> {
    let mut left_out = capture.scan.left_out.iter();
    match left_out.find(|one| one.why == crate::left_out::UNREADABLE) {
        Some(one) => Err(StateError::file(
            "read",
            workspace.root.join(crate::path::as_path(&one.path)),
            std::io::ErrorKind::PermissionDenied,
        )),
        None => Ok(()),
    }
}

/// What a scope names must be there, before anything is looked at.
fn refuse_missing(workspace: &Workspace, scope: &Scope) -> Result<(), StateError> {
    for path in scope.paths() {
        let full = workspace.root.join(crate::path::as_path(path));
        if full.symlink_metadata().is_err() {
            return Err(StateError::EmptyScope {
                scope: crate::path::display(path),
            });
        }
    }
    Ok(())
}

/// A scope that names something must find it, each thing it names. What is there and is not
/// captured is a warning where something else is captured.
fn refuse_empty(
    trees: &dyn Trees,
    wanted: &Wanted<'_>,
    capture: &Capture,
) -> Result<Vec<String>, StateError> {
    let scope = wanted.scope;
    let mut warnings = Vec::new();
    if scope.is_everything() {
        return Ok(warnings);
    }
    let is_hollow =
        capture.files.files == 0 && capture.scan.git.is_empty() && wanted.parts.is_empty();
    let mut tell = |refusal: StateError| match is_hollow {
        true => Err(refusal),
        false => {
            warnings.push(format!("not captured: {refusal}"));
            Ok(())
        }
    };
    let scan = &capture.scan;
    for path in scope.paths() {
        let shown = crate::path::display(path);
        let because = |why: String| StateError::BadScope {
            scope: shown.clone(),
            why,
        };
        if let Some((_, reason)) = scan.sensitive.iter().find(|(known, _)| known == path) {
            if wanted.seal_to.is_empty() {
                let reason = reason.as_str();
                tell(because(format!(
                    "it is sensitive ({reason}): add `--seal-sensitive`"
                )))?;
            }
            continue;
        }
        if let Some(omitted) = scan.left_out.iter().find(|one| one.path == *path) {
            let why = &omitted.why;
            tell(because(format!(
                "it is left out ({why}): name it under `include` in safepoint.yaml"
            )))?;
            continue;
        }
        let is_git = scan.git.iter().any(|(known, _)| known == path);
        if !is_git && tree::find(trees, Some(&capture.files), path)?.is_none() {
            return Err(StateError::EmptyScope { scope: shown });
        }
    }
    let files = all_files(trees, &capture.files)?;
    match scope.unmatched_pattern(&files) {
        Some(pattern) => Err(StateError::EmptyScope { scope: pattern }),
        None => Ok(warnings),
    }
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
    let plain = std::fs::read(full).map_err(|error| StateError::file("read", full, error))?;
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

/// All files, unless there are very many.
fn list_files(
    trees: &dyn Trees,
    snapshot: &Snapshot,
) -> Result<Option<Vec<ListedFile>>, StateError> {
    if snapshot.record.files.files > MOST_LISTED {
        return Ok(None);
    }
    all_entries(trees, &snapshot.record.files).map(Some)
}

/// How many lines the files have, where that costs little; `None` where it does not, or where
/// some content is no text.
fn count_lines(reader: &Reader<'_>, snapshot: &Snapshot, files: &[ListedFile]) -> Option<u64> {
    let root = &snapshot.record.files;
    if root.files > MAX_COUNTED_FILES || root.bytes > MAX_COUNTED_BYTES {
        return None;
    }
    let mut lines = 0;
    for file in files {
        if let Node::File { content, .. } = file.entry.node {
            let mut last = b'\n';
            let counted = reader.find(content).ok()?.copy(&mut |bytes| {
                lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
                last = bytes.last().copied().unwrap_or(last);
                Ok(())
            });
            counted.ok()?;
            lines += u64::from(last != b'\n');
        }
    }
    Some(lines)
}

/// When one of the files was last changed.
fn last_modified(files: &[ListedFile]) -> Option<Timestamp> {
    let latest = files.iter().map(|file| file.entry.modified).max()?;
    let micros = latest.seconds.checked_mul(1_000_000)?;
    Some(Timestamp::from_micros(micros))
}

/// The mode of the workspace itself.
pub(crate) fn root_mode(workspace: &Workspace) -> Option<u32> {
    let stat = rustix::fs::stat(&workspace.root).ok()?;
    Some(scan::stat::Found::of(&stat).mode)
}

/// The paths of everything but directories, sorted.
pub fn all_files(trees: &dyn Trees, root: &tree::Subtree) -> Result<Vec<TreePath>, StateError> {
    let found = all_entries(trees, root)?;
    Ok(found.into_iter().map(|file| file.path).collect())
}

/// Everything but directories, sorted by path.
pub fn all_entries(trees: &dyn Trees, root: &tree::Subtree) -> Result<Vec<ListedFile>, StateError> {
    let mut found = Vec::new();
    let mut waiting = vec![(TreePath::new(), root.tree)];
    while let Some((directory, tree)) = waiting.pop() {
        for entry in trees.tree(tree)? {
            let path = crate::path::join(&directory, &entry.name);
            match entry.node {
                Node::Directory(subtree) => waiting.push((path, subtree.tree)),
                _ => found.push(ListedFile { path, entry }),
            }
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// A workspace's path for people.
pub(crate) fn shown(workspace: &Path) -> String {
    crate::path::display(workspace.as_os_str().as_bytes())
}
