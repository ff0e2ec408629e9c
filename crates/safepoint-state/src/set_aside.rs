//! Names that Safepoint needs, and that something else has: it gets another name.
//!
//! Whoever works in a workspace can put a pipe or a link where Safepoint has files and directories
//! of its own. That keeps nobody from going back, and nothing is lost.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, RenameFlags, renameat_with, statat};
use rustix::io::Errno;

/// So many things are set aside in one directory.
const MAX_SET_ASIDE: u32 = 1000;

/// Gives what has this name in a directory another one, unless it is of this type. The end of the
/// name stays. Names move by it: only for whoever may move them.
pub(crate) fn set_aside(directory: impl AsFd, name: &str, wanted: FileType) -> std::io::Result<()> {
    let directory = directory.as_fd();
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) if FileType::from_raw_mode(found.st_mode) == wanted => return Ok(()),
        Ok(_) => {}
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() => (stem, format!(".{end}")),
        _ => (name, String::new()),
    };
    for number in 1..=MAX_SET_ASIDE {
        let aside = format!("{stem}.set-aside-{number}{end}");
        match renameat_with(directory, name, directory, &aside, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            other => return Ok(other?),
        }
    }
    Err(Errno::EXIST.into())
}
