//! What a killed process had taken out of a tree and not looked at yet.
//!
//! Beside the tree lies nothing but what is stored; unless somebody changed a file in the
//! instant in which it was taken out, and nobody lived to put it back. Then it is the only
//! copy there is, and goes back to where it was. Nothing is deleted here.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, statat};
use safepoint_store::regular;

use super::displace::{self, Places};
use super::stage;
use crate::objects::Reader;
use crate::scan::stat::Found;
use crate::scan::{open_beneath, read_back};
use crate::{StateError, path};

/// Puts back what is beside the tree and nowhere else.
pub(super) fn salvage(workspace: &Path, reader: &Reader<'_>) -> Result<(), StateError> {
    let directory = stage::directory(workspace);
    let Ok(paths) = regular::read(&directory.join(stage::PATHS), u64::MAX) else {
        return Ok(()); // nothing was ever put there
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |path: &Path| {
        openat(CWD, path, flags, Mode::empty())
            .map_err(|error| StateError::file("open", path, error))
    };
    let (beside, root) = (open(&directory)?, open(workspace)?);
    let paths: Vec<&[u8]> = paths.split(|byte| *byte == 0).collect();
    for (number, path) in paths.iter().enumerate() {
        for name in [displace::gone(number), stage::name(number, paths.len())] {
            if is_stored(beside.as_fd(), name.as_bytes(), reader)? {
                continue;
            }
            let (parent, target) = path::split(path);
            // Where its directory is gone, the first one above it has to do.
            let parent = open_beneath(root.as_fd(), parent)?;
            let parent = parent.as_ref().map_or(root.as_fd(), AsFd::as_fd);
            let kept = [target, b".kept-by-safepoint"].concat();
            let target = match is_stored(parent, target, reader)? {
                true => target,
                false => kept.as_slice(), // that too is the only copy
            };
            let at = Places {
                beside: beside.as_fd(),
                name: &name,
                parent,
                target,
            };
            displace::give_back(at).map_err(|error| {
                StateError::file("write", workspace.join(path::as_path(path)), error)
            })?;
        }
    }
    Ok(())
}

/// Whether nothing is lost when this is. What is no file holds nothing.
fn is_stored(
    directory: BorrowedFd<'_>,
    name: &[u8],
    reader: &Reader<'_>,
) -> Result<bool, StateError> {
    let Ok(stat) = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(true);
    };
    if !Found::of(&stat).is_file() {
        return Ok(true);
    }
    let Some((content, ..)) = read_back(directory, name, name, &mut Vec::new())? else {
        return Ok(false);
    };
    match reader.find(content) {
        Ok(_) => Ok(true),
        Err(StateError::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
