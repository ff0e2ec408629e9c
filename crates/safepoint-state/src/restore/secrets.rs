//! Bringing back secrets that were captured encrypted.
//!
//! They are decrypted before the tree is touched: a wrong key, or none, shows
//! when nothing has happened yet.

use std::io::Read;
use std::path::Path;

use safepoint_store::durable::{self, Access};

use crate::objects::Reader;
use crate::omitted::mark_of;
use crate::path::{self, TreePath};
use crate::scope::{Cover, Scope, unescape};
use crate::seal::{self, Identity};
use crate::snapshot::{Record, Sealed};
use crate::tree::{Change, Entry, Moment, Node};
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
    /// When an action is taken back: what it left in place.
    pub(super) instead_of: Option<&'a [Sealed]>,
    /// The records before and after that action. What it did not touch is left alone, and what
    /// is as it left it is replaced, though nobody sealed that.
    pub(super) around: Option<(&'a Record, &'a Record)>,
    pub(super) scope: &'a Scope,
}

impl Wanted<'_> {
    /// Whether the action that is taken back did not touch a secret.
    fn is_untouched(&self, path: &str) -> bool {
        self.around.is_some_and(|(before, after)| {
            let mark = before.mark(path);
            mark.is_some() && mark == after.mark(path)
        })
    }

    /// Whether a secret is exactly as the action that is taken back left it.
    fn is_as_left(&self, path: &str, workspace: &Path) -> bool {
        self.around.is_some_and(|(_, after)| {
            let full = workspace.join(path::as_path(&unescape(path)));
            mark_of(&full).as_deref() == after.mark(path)
        })
    }
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
            let is_left = match put.iter().find(|one| one.path == sealed.path) {
                Some(put) => {
                    let put = seal::open(&reader.read(put.content)?, identities)?;
                    if *put == *plain {
                        continue; // the action did not touch it
                    }
                    present.as_ref().is_some_and(|present| *present == *put)
                }
                None if wanted.is_untouched(&sealed.path) => continue,
                // One that somebody has removed since stays removed.
                None => wanted.is_as_left(&sealed.path, workspace),
            };
            if !is_left {
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

/// What a roll back to a checkpoint will say of the secrets that it replaces or brings back, where
/// the key is there. Without it, only their marks tell.
pub(super) fn foreseen(workspace: &Path, wanted: &Record, scope: &Scope) -> Vec<String> {
    let one = |sealed: &Sealed| {
        let path = unescape(&sealed.path);
        let full = workspace.join(path::as_path(&path));
        let present = mark_of(&full);
        let is_meant = scope.cover(&path) == Cover::Everything;
        let differs = present.as_deref() != wanted.mark(&sealed.path);
        (is_meant && differs).then(|| replacement(&path, present.is_some()))
    };
    wanted.sealed.iter().filter_map(one).collect()
}

/// What becomes of a secret that is not as a checkpoint holds it.
fn replacement(path: &[u8], is_there: bool) -> String {
    let path = path::display(path);
    match is_there {
        true => format!(
            "`{path}` was changed since then: the one that the checkpoint holds encrypted takes its place"
        ),
        false => format!(
            "`{path}` was removed since then: the one that the checkpoint holds encrypted comes back"
        ),
    }
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

/// Puts secrets back that something destroyed, whatever is in their place now. Says what could
/// not be.
pub(crate) fn bring_back(
    workspace: &Path,
    sealed: &[Sealed],
    identities: &[Identity],
    reader: &Reader<'_>,
) -> Result<Vec<String>, StateError> {
    let wanted = Wanted {
        sealed,
        instead_of: None,
        around: None,
        scope: &Scope::everything(),
    };
    open(workspace, &wanted, identities, reader)?.put(workspace)
}

impl Secrets {
    /// What is said of those that a roll back to a checkpoint replaces, or brings back: it may
    /// have been a person who changed or removed them since.
    pub(super) fn told(&self) -> Vec<String> {
        let one = |one: &Opened| replacement(&one.path, one.present.is_some());
        self.opened.iter().map(one).collect()
    }

    /// What they will be, as a list of changes shows it. Nothing tells of their content.
    pub(super) fn changes(&self) -> Vec<Change> {
        let one = |one: &Opened| {
            let entry = |content: ContentId| Entry {
                name: path::split(&one.path).1.to_vec(),
                mode: one.mode,
                owner: 0,
                group: 0,
                modified: one.modified,
                attributes: Vec::new(),
                node: Node::File {
                    size: 0,
                    content,
                    sparse: false,
                    link: None,
                },
            };
            Change {
                path: one.path.clone(),
                from: one.present.map(|_| entry(ContentId::of(b"before"))),
                to: Some(entry(ContentId::of(b"after"))),
                relinked: false,
            }
        };
        self.opened.iter().map(one).collect()
    }

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
