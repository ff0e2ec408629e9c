//! What programs write that an action left running: it is theirs, and is recorded when they end.
//! Until then a look at the workspace must not take it for somebody else's.
//!
//! Whoever supervises such programs keeps a file for each action, with the paths that they have
//! written since the action ended, each followed by a zero byte, and holds a lock on it. A file
//! that nobody holds is left over.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use safepoint_store::durable;

use crate::path::TreePath;
use crate::state::State;

/// For so long after its last word a file counts that nobody holds any more.
const GRACE: Duration = Duration::from_secs(10);

/// Larger files are cut: what is beyond is nobody's.
const MAX_FILE_BYTES: u64 = 16 << 20;

fn late_directory(runtime: &Path) -> PathBuf {
    runtime.join("late")
}

impl State {
    /// Where these files lie.
    pub fn late_directory(&self) -> PathBuf {
        late_directory(&self.around.runtime)
    }

    /// The paths in a workspace that programs have written which an action left running.
    pub(crate) fn late_paths(&self, root: &Path) -> Vec<TreePath> {
        let mut paths = Vec::new();
        let directory = late_directory(&self.around.runtime);
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(file) = File::open(entry.path()) else {
                continue;
            };
            match flock(&file, FlockOperation::NonBlockingLockShared) {
                Err(Errno::WOULDBLOCK) => {}
                // What it wrote may be captured already, and its own record not be looked at.
                Ok(()) if is_recent(&file) => {}
                Ok(()) => {
                    let _ = durable::remove(&entry.path());
                    continue;
                }
                Err(_) => continue,
            }
            let mut bytes = Vec::new();
            if file.take(MAX_FILE_BYTES).read_to_end(&mut bytes).is_err() {
                continue;
            }
            let written = bytes.split(|byte| *byte == 0).filter_map(|path| {
                let path = Path::new(std::ffi::OsStr::from_bytes(path));
                let relative = path.strip_prefix(root).ok()?;
                Some(relative.as_os_str().as_bytes().to_vec())
            });
            paths.extend(written.filter(|path| !path.is_empty()));
        }
        paths
    }
}

fn is_recent(file: &File) -> bool {
    let modified = file.metadata().and_then(|it| it.modified());
    let age = modified.ok().and_then(|it| it.elapsed().ok());
    age.is_some_and(|age| age < GRACE)
}
