//! Bringing back secrets that were captured encrypted.
//!
//! They are decrypted before the tree is touched: a wrong key, or none, shows
//! when nothing has happened yet.

use std::io::Read;
use std::path::Path;

use safepoint_store::durable::{self, Access};

use crate::objects::Reader;
use crate::path::{self, TreePath};
use crate::scope::{Cover, Scope, unescape};
use crate::seal::{self, Identity};
use crate::snapshot::Sealed;
use crate::tree::Moment;
use crate::{ContentId, StateError};

/// Secrets that lie ready, in memory alone.
#[derive(Default)]
pub(super) struct Secrets {
    opened: Vec<Opened>,
    pub(super) warnings: Vec<String>,
}

struct Opened {
    path: TreePath,
    plain: Plain,
    mode: u32,
    modified: Moment,
    /// What is replaced; `None` when nothing is.
    present: Option<ContentId>,
}

/// Wiped from memory when it is no longer needed.
type Plain = seal::Plain;

/// Which secrets are wanted, and what must still be there to be replaced.
pub(super) struct Wanted<'a> {
    pub(super) sealed: &'a [Sealed],
    /// When a going back is taken back: what it had put in place.
    pub(super) instead_of: Option<&'a [Sealed]>,
    pub(super) scope: &'a Scope,
}

/// Decrypts what is wanted and is not there already.
pub(super) fn open(
    workspace: &Path,
    wanted: &Wanted<'_>,
    identities: &[Identity],
    reader: &Reader<'_>,
) -> Result<Secrets, StateError> {
    let mut secrets = Secrets::default();
    for sealed in wanted.sealed {
        let path = unescape(&sealed.path);
        if wanted.scope.cover(&path) != Cover::Everything {
            continue;
        }
        if identities.is_empty() {
            secrets.warnings.push(format!(
                "`{}` was captured encrypted, and is not restored without the key",
                sealed.path
            ));
            continue;
        }
        let plain = seal::open(&reader.read(sealed.content)?, identities)?;
        let present = read_regular(&workspace.join(path::as_path(&path)));
        if present.as_ref().is_some_and(|present| *present == **plain) {
            continue;
        }
        if let Some(put) = wanted.instead_of {
            let put = put.iter().find(|one| one.path == sealed.path);
            let put = match put {
                Some(put) => Some(seal::open(&reader.read(put.content)?, identities)?),
                None => None,
            };
            if present.as_deref() != put.as_ref().map(|put| put.as_slice()) {
                let path = &sealed.path;
                let warning = format!("`{path}` has been changed since, and is left as it is");
                secrets.warnings.push(warning);
                continue;
            }
        }
        secrets.opened.push(Opened {
            path,
            plain,
            mode: sealed.mode,
            modified: sealed.modified,
            present: present.map(|present| ContentId::of(&present)),
        });
    }
    Ok(secrets)
}

/// What a regular file holds. A link is not followed, and a pipe is not waited for.
fn read_regular(path: &Path) -> Option<Vec<u8>> {
    use rustix::fs::{CWD, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = std::fs::File::from(rustix::fs::openat(CWD, path, flags, Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    file.read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

impl Secrets {
    /// Puts them in place.
    pub(super) fn put(mut self, workspace: &Path) -> Result<Vec<String>, StateError> {
        let no_follow = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        for one in self.opened {
            let full = workspace.join(path::as_path(&one.path));
            let failed = |error: rustix::io::Errno| StateError::file("change", &full, error);
            if read_regular(&full).map(|now| ContentId::of(&now)) != one.present {
                let path = path::display(&one.path);
                let warning = format!("`{path}` was changed meanwhile, and is left as it is");
                self.warnings.push(warning);
                continue;
            }
            // The directory has the time it should have: it keeps it.
            let above = full.parent().unwrap_or(workspace);
            let kept = rustix::fs::stat(above).ok();
            durable::write(&full, &one.plain, Access::Private)?;
            rustix::fs::chmod(&full, rustix::fs::Mode::from_raw_mode(one.mode)).map_err(failed)?;
            let times = super::stage::times(one.modified);
            rustix::fs::utimensat(rustix::fs::CWD, &full, &times, no_follow).map_err(failed)?;
            if let Some(kept) = kept {
                let times = super::stage::times(Moment {
                    seconds: kept.st_mtime,
                    nanos: u32::try_from(kept.st_mtime_nsec).unwrap_or(0),
                });
                rustix::fs::utimensat(rustix::fs::CWD, above, &times, no_follow).map_err(failed)?;
            }
        }
        Ok(self.warnings)
    }
}
