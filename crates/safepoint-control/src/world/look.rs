//! What is at the paths that an action names.

use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use safepoint_authority::{Directory, Identity, NamedPath, Preimage, Role, Touch, Where};
use safepoint_model::{Digest, Frame};
use safepoint_store::regular;

use super::{digest_of, text};
use crate::ControlError;

/// A file that is only read, and is larger than this, is known by its identity, size and times.
const LARGEST_READ: u64 = 16 << 20;
/// A directory with more names than this below it is known by itself alone.
const MOST_NAMES: usize = 20_000;

/// The directory a command runs in.
pub(crate) fn directory(path: &Path) -> Result<Directory, ControlError> {
    let metadata = std::fs::metadata(path).map_err(|error| ControlError::File {
        path: path.to_owned(),
        error,
    })?;
    Ok(Directory {
        path: text(path)?,
        identity: Identity {
            device: metadata.dev(),
            inode: metadata.ino(),
        },
    })
}

/// What a touch names, and what is there now. Reading something unknown is left out: it
/// changes nothing, and what must not be read is an action of its own.
pub(crate) fn named(touch: &Touch, workspace: &Path) -> Result<Option<NamedPath>, ControlError> {
    let role = touch.role;
    let (path, below) = match &touch.place {
        Where::Exact(path) => (path, false),
        Where::Below(path) => (path, true),
        Where::Unknown(_) if role == Role::Read => return Ok(None),
        Where::Unknown(words) => {
            return Ok(Some(NamedPath {
                path: words.clone(),
                role: word(role).to_owned(),
                inside: false,
                preimage: Preimage::Unknown {},
            }));
        }
    };
    let resolved = resolve(path);
    Ok(Some(NamedPath {
        inside: within(workspace, &resolved) && !leads_outside(workspace, &resolved, role),
        preimage: preimage(&resolved, role, below)?,
        path: shown(&resolved),
        role: word(role).to_owned(),
    }))
}

/// A path as text. Bytes that are no text are spelled out, so that nobody takes one name
/// for another.
fn shown(path: &Path) -> String {
    match path.to_str() {
        Some(text) => text.to_owned(),
        None => safepoint_state::path::display(path.as_os_str().as_bytes()),
    }
}

/// Whether a path lies in a directory, itself included.
fn within(workspace: &Path, path: &Path) -> bool {
    path.starts_with(workspace)
}

/// Writing through a link changes what it leads to.
fn leads_outside(workspace: &Path, path: &Path, role: Role) -> bool {
    let follows = matches!(role, Role::Write | Role::Metadata);
    let metadata = path.symlink_metadata();
    // A file with several names changes under all of them, wherever they are.
    if follows && metadata.is_ok_and(|it| it.is_file() && it.nlink() > 1) {
        return true;
    }
    let is_link = || path.symlink_metadata().is_ok_and(|it| it.is_symlink());
    if !follows || !is_link() {
        return false;
    }
    match std::fs::canonicalize(path) {
        Ok(target) => !within(workspace, &target),
        // A link that leads nowhere yet would make what it names.
        Err(_) => true,
    }
}

/// The path with links on the way resolved; the last name is kept as it is.
fn resolve(path: &Path) -> PathBuf {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return path.to_owned();
    };
    existing(parent).join(name)
}

/// As much of a path as exists, without links; the rest as it is written.
fn existing(path: &Path) -> PathBuf {
    if let Ok(real) = std::fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.components().next_back()) {
        (Some(parent), Some(Component::Normal(name))) => existing(parent).join(name),
        _ => path.to_owned(),
    }
}

fn preimage(path: &Path, role: Role, below: bool) -> Result<Preimage, ControlError> {
    let failed = |error| ControlError::File {
        path: path.to_owned(),
        error,
    };
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(Preimage::Absent {});
        }
        // Where we may not look the command may not either, unless it is more than we are.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(match role {
                Role::Write | Role::Delete | Role::Metadata => Preimage::Unknown {},
                _ => Preimage::Absent {},
            });
        }
        Err(error) => return Err(failed(error)),
    };
    let (device, inode) = (metadata.dev(), metadata.ino());
    let kind = metadata.file_type();
    if kind.is_symlink() {
        let target = std::fs::read_link(path).map_err(failed)?;
        let used = std::fs::metadata(path).is_ok_and(|it| it.is_file());
        let digest = match used {
            true => Some(content(path, role).map_err(failed)?),
            false => None,
        };
        return Ok(Preimage::Link {
            target: shown(&target),
            digest,
        });
    }
    if kind.is_file() {
        return Ok(Preimage::File {
            device,
            inode,
            mode: metadata.mode() & 0o7777,
            digest: content(path, role).map_err(failed)?,
        });
    }
    if kind.is_dir() {
        let changes = matches!(role, Role::Write | Role::Delete | Role::Metadata);
        // Making something in a directory does not depend on what else is in it.
        let deep = changes && (below || role != Role::Write);
        let listing = match deep {
            true => listing(path).map_err(failed)?,
            false => None,
        };
        return Ok(Preimage::Directory {
            device,
            inode,
            listing,
        });
    }
    Ok(Preimage::Special { device, inode })
}

/// The digest of a file's content.
fn content(path: &Path, role: Role) -> std::io::Result<Digest> {
    let file = match regular::open(path) {
        Ok(file) => file,
        // What we cannot read the command cannot either: it will fail, or change it blindly.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Ok(Frame::new("safepoint/unreadable/v1").digest());
        }
        Err(error) => return Err(error),
    };
    let metadata = file.metadata()?;
    if role == Role::Read && metadata.len() > LARGEST_READ {
        return Ok(digest_of_identity(&metadata));
    }
    digest_of(file)
}

/// What a large file is known by: which one it is, its size and its times.
fn digest_of_identity(metadata: &Metadata) -> Digest {
    Frame::new("safepoint/large/v1")
        .number(metadata.dev())
        .number(metadata.ino())
        .number(metadata.len())
        .field(&metadata.mtime().to_be_bytes())
        .field(&metadata.mtime_nsec().to_be_bytes())
        .field(&metadata.ctime().to_be_bytes())
        .field(&metadata.ctime_nsec().to_be_bytes())
        .digest()
}

/// The digest of an interpreter that only the system's owner changes: some are as large as
/// all that a command reads otherwise.
pub(super) fn digest_of_system(file: File) -> std::io::Result<Digest> {
    let metadata = file.metadata()?;
    match metadata.len() > LARGEST_READ {
        true => Ok(digest_of_identity(&metadata)),
        false => digest_of(file),
    }
}

/// A digest of the names in a directory and below, with kinds, sizes and times; `None` when
/// there are too many to look at.
fn listing(path: &Path) -> std::io::Result<Option<Digest>> {
    use std::os::unix::ffi::OsStrExt;
    let mut frame = Frame::new("safepoint/listing/v1");
    let mut seen = 0;
    let mut left = vec![path.to_owned()];
    while let Some(place) = left.pop() {
        let mut entries: Vec<std::fs::DirEntry> = match std::fs::read_dir(&place) {
            Ok(entries) => entries.flatten().collect(),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
            Err(error) => return Err(error),
        };
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            if seen > MOST_NAMES {
                return Ok(None);
            }
            let metadata = entry.metadata()?;
            let below = entry.path();
            let relative = below.strip_prefix(path).unwrap_or(&below);
            frame
                .field(relative.as_os_str().as_bytes())
                .number(u64::from(metadata.mode()))
                .number(metadata.ino());
            if metadata.is_dir() {
                left.push(below);
            } else {
                frame
                    .number(metadata.len())
                    .field(&metadata.mtime().to_be_bytes())
                    .field(&metadata.mtime_nsec().to_be_bytes());
            }
        }
    }
    Ok(Some(frame.digest()))
}

fn word(role: Role) -> &'static str {
    match role {
        Role::Read => "read",
        Role::Write => "write",
        Role::Delete => "delete",
        Role::Metadata => "metadata",
        Role::Execute => "execute",
    }
}
