//! Putting everything that will be needed beside the tree, before the tree is touched.
//!
//! Contents are read from the store and hashed on the way, and get their
//! modes, times and attributes here. What remains to be done afterwards is
//! renaming. A damaged store, a full disk or a missing permission shows here,
//! when nothing has happened yet.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, FileType, Mode, Timespec, Timestamps, XattrFlags, chownat, fchmod, fremovexattr,
    fsetxattr, fstat, linkat, mkdirat, mknodat, symlinkat, syncfs, utimensat,
};
use rustix::io::Errno;
use safepoint_store::{durable, fault};

use super::owner;
use super::write::{or_file, write_file};
use crate::objects::Reader;
use crate::own_directory::OwnDirectory;
use crate::path::{self, TreePath};
use crate::tree::{Attributes, Change, Entry, Moment, Node, Special};
use crate::{ContentId, StateError, own, scan};

/// Up to so many files are synced one by one; more by syncing the file system.
const FEW: usize = 32;

/// The directory beside the tree, among our own.
const STAGING: &str = ".staging";

/// Where that is.
pub(super) fn directory(workspace: &Path) -> PathBuf {
    workspace.join(own::CHECKPOINTS).join(STAGING)
}

/// Which file, on which file system.
pub(super) type Inode = (u64, u64);

/// What lies ready, by the path it is for.
pub(super) struct Staged {
    pub(super) handle: OwnedFd,
    /// What is put in place by itself, and its name here.
    pub(super) names: HashMap<TreePath, String>,
    /// What is inside a new directory, which is put in place as a whole.
    pub(super) inside: HashSet<TreePath>,
    /// The files that were read back and hashed after they were written.
    pub(super) proven: HashMap<TreePath, Inode>,
    /// What cannot be made again.
    pub(super) impossible: Vec<(TreePath, Special)>,
}

impl Staged {
    /// Whether something lies ready for a path.
    pub(super) fn has(&self, path: &[u8]) -> bool {
        self.names.contains_key(path) || self.inside.contains(path)
    }
}

/// Removes the directory with whatever an earlier attempt left in it.
pub(super) fn clear(workspace: &Path) -> Result<(), StateError> {
    // What is there under our name and is not ours is not ours to remove.
    let Ok(Some(checkpoints)) = OwnDirectory::find(workspace, own::CHECKPOINTS) else {
        return Ok(());
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "nothing is in it but copies of what is stored; links are not followed"
    )]
    match std::fs::remove_dir_all(checkpoints.at(STAGING)) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        // A file or a pipe of somebody's who has guessed the name.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => {
            Ok(durable::remove(&checkpoints.at(STAGING))?)
        }
        Err(error) => Err(StateError::file("delete", directory(workspace), error)),
    }
}

/// Where things lie ready. A directory that is not there at all is built here
/// with all that is in it, and then takes one rename.
struct Layout<'c> {
    workspace: &'c Path,
    /// The file system that things lie ready on.
    file_system: u64,
    /// How many changes there are.
    count: usize,
    /// New directories that are put in place as a whole, and their names here.
    whole: HashMap<&'c [u8], String>,
}

enum Spot {
    /// By itself, under this name.
    Alone(String),
    /// Inside a new directory, at this path.
    Inside(Vec<u8>),
    /// Nowhere: a directory that is made in its place.
    Made,
}

/// So many things lie ready in one directory.
const SHELF: usize = 128;

/// The file that names what the things are for, in their order.
pub(super) const PATHS: &str = "paths";

/// What is put ready as the `number`th of so many.
pub(super) fn name(number: usize, count: usize) -> String {
    match count > SHELF {
        true => format!("{:x}/{:x}", number / SHELF, number % SHELF),
        false => format!("{number:x}"),
    }
}

/// Longer paths are walked by handles, not named at once.
const LONGEST: usize = 2000;

impl<'c> Layout<'c> {
    fn spot(&mut self, number: usize, change: &'c Change) -> Spot {
        if let Some((top, name)) = self.around(&change.path) {
            let rest = change.path.get(top.len()..).unwrap_or_default();
            if rest.len() < LONGEST {
                return Spot::Inside([name.as_bytes(), rest].concat());
            }
            return Spot::Alone(self.name(number));
        }
        let name = self.name(number);
        let new =
            change.from.is_none() && change.to.as_ref().is_some_and(|to| to.subtree().is_some());
        let whole = new && self.is_near(&change.path);
        if whole {
            self.whole.insert(change.path.as_slice(), name.clone());
        }
        if new && !whole {
            return Spot::Made;
        }
        Spot::Alone(name)
    }

    /// What is put ready as the `number`th. A directory with very many names is slow.
    fn name(&self, number: usize) -> String {
        name(number, self.count)
    }

    /// The new directory that a path is in. Others may sort between it and the path:
    /// `a.txt` stands between `a` and `a/b`.
    fn around(&self, path: &[u8]) -> Option<(&'c [u8], &String)> {
        let mut above = path::split(path).0;
        while !above.is_empty() {
            if let Some((top, name)) = self.whole.get_key_value(above) {
                return Some((top, name));
            }
            above = path::split(above).0;
        }
        None
    }

    /// Whether a path is on the same file system, so that a directory can be renamed there.
    fn is_near(&self, path: &[u8]) -> bool {
        let parent = self.workspace.join(path::as_path(path::split(path).0));
        rustix::fs::stat(&parent).is_ok_and(|stat| stat.st_dev == self.file_system)
    }
}

/// A file whose content is still to be written: its name here, and what it is for.
type Waiting<'c> = (Vec<u8>, &'c Change, &'c Entry);

/// Puts everything ready that `changes`, which are sorted by path, need.
pub(super) fn prepare(
    workspace: &Path,
    changes: &[Change],
    reader: &Reader<'_>,
) -> Result<Staged, StateError> {
    prepare_like(workspace, None, changes, reader)
}

/// The same, with files cloned from those in `like` that hold the same.
pub(super) fn prepare_like(
    workspace: &Path,
    like: Option<&Path>,
    changes: &[Change],
    reader: &Reader<'_>,
) -> Result<Staged, StateError> {
    clear(workspace)?;
    let staging = OwnDirectory::reclaim(workspace, own::CHECKPOINTS)?.inside(STAGING)?;
    let directory = staging.path().to_owned();
    let paths: Vec<&[u8]> = changes.iter().map(|it| it.path.as_slice()).collect();
    durable::write(
        &staging.at(PATHS),
        &paths.join(&0),
        durable::Access::Private,
    )?;
    let mut staged = Staged {
        handle: staging.into_handle(),
        names: HashMap::new(),
        inside: HashSet::new(),
        proven: HashMap::new(),
        impossible: Vec::new(),
    };
    let beside = staged.handle.as_fd();
    let mut contents: Vec<(ContentId, Waiting<'_>)> = Vec::new();
    let mut links: HashMap<(u64, ContentId), Vec<u8>> = HashMap::new();
    let mut linked = Vec::new();
    let mut layout = Layout {
        workspace,
        file_system: fstat(beside)
            .map_err(|error| StateError::file("read", &directory, error))?
            .st_dev,
        count: changes.len(),
        whole: HashMap::new(),
    };
    if changes.len() > SHELF {
        for shelf in 0..=changes.len() / SHELF {
            mkdirat(beside, format!("{shelf:x}"), Mode::from_raw_mode(0o700))
                .map_err(|error| StateError::file("create", &directory, error))?;
        }
    }
    for (number, change) in changes.iter().enumerate() {
        let Some(entry) = change.to.as_ref().filter(|_| needs_content(change)) else {
            continue;
        };
        let spot = layout.spot(number, change);
        let name = match &spot {
            Spot::Alone(name) => name.clone().into_bytes(),
            Spot::Inside(path) => path.clone(),
            Spot::Made => continue,
        };
        let failed =
            |action, error: Errno| StateError::file(action, path::as_path(&change.path), error);
        match &entry.node {
            Node::File { content, link, .. } => {
                match link.and_then(|link| links.get(&(link, *content))) {
                    Some(first) => linked.push((first.clone(), name.clone())),
                    None => {
                        links.extend(link.map(|link| ((link, *content), name.clone())));
                        contents.push((*content, (name, change, entry)));
                    }
                }
            }
            Node::Symlink { target } => symlink(beside, &name, target, entry)
                .map_err(|error| failed("create the link", error))?,
            Node::Special {
                kind: Special::Fifo,
                ..
            } => {
                fifo(beside, &name, entry).map_err(|error| failed("create the pipe", error))?;
            }
            Node::Special { kind, .. } => {
                staged.impossible.push((change.path.clone(), *kind));
                continue;
            }
            Node::Directory(_) => match change.from {
                None => mkdirat(beside, name.as_slice(), Mode::from_raw_mode(0o700))
                    .map_err(|error| failed("create the directory", error))?,
                Some(_) => continue, // something else stands there, and must go first
            },
        }
        match spot {
            Spot::Alone(name) => {
                staged.names.insert(change.path.clone(), name);
            }
            Spot::Inside(_) => {
                staged.inside.insert(change.path.clone());
            }
            Spot::Made => {}
        }
    }
    let few = contents.len() <= FEW;
    let proven = Mutex::new(HashMap::new());
    reader.each(contents, |(name, change, entry), content| {
        let model = like.map(|like| like.join(path::as_path(&change.path)));
        let inode = write_file(beside, &name, entry, content, (few, model.as_deref()))
            .map_err(|error| or_file(error, &directory.join(path::as_path(&name))))?;
        let mut proven = proven.lock().unwrap_or_else(PoisonError::into_inner);
        proven.insert(change.path.clone(), inode);
        Ok(())
    })?;
    staged.proven = proven.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (first, name) in linked {
        linkat(
            beside,
            first.as_slice(),
            beside,
            name.as_slice(),
            AtFlags::empty(),
        )
        .map_err(|error| StateError::file("link", directory.join(path::as_path(&name)), error))?;
    }
    if !few {
        syncfs(beside).map_err(|error| StateError::file("sync", &directory, error))?;
    }
    fault::point("restore.staged");
    Ok(staged)
}

/// Whether a change is made by putting something new in place.
pub(super) fn needs_content(change: &Change) -> bool {
    let Some(to) = &change.to else { return false };
    match &change.from {
        _ if change.relinked => true,
        None => true,
        Some(from) => !crate::tree::same_content(&from.node, &to.node),
    }
}
fn symlink(
    directory: BorrowedFd<'_>,
    name: &[u8],
    target: &[u8],
    entry: &Entry,
) -> Result<(), Errno> {
    symlinkat(target, directory, name)?;
    metadata_of_link(directory, name, entry)
}

fn fifo(directory: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> Result<(), Errno> {
    mknodat(
        directory,
        name,
        FileType::Fifo,
        Mode::from_raw_mode(entry.mode),
        0,
    )?;
    rustix::fs::chmodat(
        directory,
        name,
        Mode::from_raw_mode(entry.mode),
        AtFlags::empty(),
    )?;
    metadata_of_link(directory, name, entry)
}

fn metadata_of_link(directory: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> Result<(), Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    owner::give((entry.owner, entry.group), |owner, group| {
        chownat(directory, name, owner, group, flags)
    })?;
    utimensat(directory, name, &times(entry.modified), flags)
}

/// Sets the time of the last change, and leaves the time of the last access.
pub(super) fn times(modified: Moment) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: modified.seconds,
            tv_nsec: modified.nanos.into(),
        },
    }
}

/// Makes the extended attributes of an open file what they should be.
pub(super) fn set_attributes(handle: BorrowedFd<'_>, wanted: &Attributes) -> Result<(), Errno> {
    match change_attributes(handle, wanted) {
        // They are written only where the content may be written, even by the owner.
        Err(Errno::ACCESS) => {
            let mode = Mode::from_raw_mode(fstat(handle)?.st_mode & 0o7777);
            fchmod(handle, mode | Mode::WUSR)?;
            let changed = change_attributes(handle, wanted);
            fchmod(handle, mode)?;
            changed
        }
        other => other,
    }
}

fn change_attributes(handle: BorrowedFd<'_>, wanted: &Attributes) -> Result<(), Errno> {
    let present = scan::attributes(handle)?;
    for (name, _) in present.iter().filter(|(name, _)| scan::is_kept(name)) {
        if !wanted.iter().any(|(known, _)| known == name) {
            fremovexattr(handle, name.as_slice())?;
        }
    }
    for (name, value) in wanted {
        if !present.contains(&(name.clone(), value.clone())) {
            fsetxattr(handle, name.as_slice(), value, XattrFlags::empty())?;
        }
    }
    Ok(())
}
