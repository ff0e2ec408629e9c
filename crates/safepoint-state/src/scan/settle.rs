//! Whether what was looked at held still.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use rustix::fs::{AtFlags, statat};
use safepoint_model::Timestamp;

use super::names::open_beneath;
use super::read;
use super::stat::Found;
use super::walk::{Walk, lock};
use crate::StateError;
use crate::path::{self, TreePath};
use crate::tree::Moment;

/// A file counts as quiet when it was last changed so long before it was read.
/// File systems keep time in steps of up to a hundredth of a second.
const QUIET: Duration = Duration::from_millis(12);

impl Walk<'_> {
    /// Reads the restless files once more, now that a change would show.
    /// Returns one that has changed: then all is looked at again.
    pub(super) fn settle(&self, root: BorrowedFd<'_>) -> Result<Option<TreePath>, StateError> {
        let restless = std::mem::take(&mut *lock(&self.restless));
        let Some(latest) = restless.iter().map(|(.., changed)| *changed).max() else {
            return Ok(None);
        };
        // A clock that was set back must not make this wait for hours.
        for _ in 0..10 {
            if was_quiet(latest, self.request.clock.now()) {
                break;
            }
            std::thread::sleep(QUIET / 4);
        }
        let changed = restless.par_iter().map(|(path, content, changed)| {
            let (parent, name) = path::split(path);
            let directory = open_beneath(root, parent)?;
            let still = match directory {
                Some(directory) => read::digest_and_state(directory.as_fd(), name, path)?,
                None => None,
            };
            let same =
                still.is_some_and(|(found, now)| found == *content && now.changed == *changed);
            Ok::<_, StateError>((!same).then(|| path.clone()))
        });
        let changed: Vec<_> = changed.collect::<Result<_, _>>()?;
        Ok(changed.into_iter().flatten().next())
    }

    /// A directory in which names came or went since it was listed.
    pub(super) fn changed_directory(&self, root: BorrowedFd<'_>) -> Option<TreePath> {
        let visited = std::mem::take(&mut *lock(&self.visited));
        visited.into_iter().find_map(|(path, changed)| {
            let name = if path.is_empty() {
                b".".as_slice()
            } else {
                &path
            };
            let now = statat(root, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            (Found::of(&now).changed != changed).then_some(path)
        })
    }
}

/// Whether a file had been quiet when it was read at `read`.
pub(super) fn was_quiet(changed: Moment, read: Timestamp) -> bool {
    let quiet = i64::try_from(QUIET.as_micros()).unwrap_or(i64::MAX);
    let micros = changed
        .seconds
        .saturating_mul(1_000_000)
        .saturating_add(i64::from(changed.nanos / 1_000));
    micros.saturating_add(quiet) < read.as_micros()
}

pub(super) fn moment(time: Timestamp) -> Moment {
    Moment {
        seconds: time.as_micros().div_euclid(1_000_000),
        nanos: u32::try_from(time.as_micros().rem_euclid(1_000_000) * 1_000).unwrap_or(0),
    }
}
