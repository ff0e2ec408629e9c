//! Who is at work on a store: how a killed process is told from one that ended.
//!
//! Each process has a file of its own in a directory, locked while it runs and
//! removed when it ends. A file that nobody holds belongs to a process that was
//! cut off. The files say nothing about what is kept, and losing them loses
//! nothing: recovery itself never depends on them.

use std::fs::File;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock, fstat};
use safepoint_model::{Entropy, SessionId};
use safepoint_store::{StoreError, durable};

use crate::ProgressError;

/// The mark of this process.
#[derive(Debug)]
pub struct Presence {
    path: PathBuf,
    /// Locked until it is closed.
    _file: File,
    cut_off: Vec<PathBuf>,
}

impl Presence {
    /// Says that this process is here, and looks who was cut off.
    pub fn enter(directory: &Path, entropy: &dyn Entropy) -> Result<Self, ProgressError> {
        durable::create_directory(directory)?;
        let cut_off = left_behind(directory)?;
        let name = SessionId::generate(entropy)?;
        // Under another name until it is locked, so that nobody takes it for left behind.
        let (new, path) = (
            directory.join(format!(".{name}")),
            directory.join(name.as_str()),
        );
        let entered = || -> std::io::Result<File> {
            let file = create(&new)?;
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            rename(&new, &path)?;
            Ok(file)
        };
        let file = entered().map_err(|error| StoreError::file("create", &path, error))?;
        Ok(Self {
            path,
            _file: file,
            cut_off,
        })
    }

    /// Whether a process was found that did not come to its end.
    pub fn found_cut_off(&self) -> bool {
        !self.cut_off.is_empty()
    }

    /// What they left has been brought to its end: their marks go.
    pub(crate) fn settle(&self) -> Result<(), ProgressError> {
        for path in &self.cut_off {
            match durable::remove(path) {
                Ok(()) => {}
                Err(_) if !path.exists() => {} // somebody else was faster
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Left behind, it makes the next one look for what is not there.
        let _ = durable::remove(&self.path);
    }
}

/// The marks that nobody holds.
fn left_behind(directory: &Path) -> Result<Vec<PathBuf>, ProgressError> {
    let fail = |error| StoreError::file("read", directory, error);
    let mut found = Vec::new();
    for item in std::fs::read_dir(directory).map_err(fail)? {
        let path = item.map_err(fail)?.path();
        let is_mark = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.parse::<SessionId>().is_ok());
        // One that is gone by now has ended.
        let Some(file) = File::open(&path).ok().filter(|_| is_mark) else {
            continue;
        };
        let free = flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let there = fstat(&file).is_ok_and(|stat| stat.st_nlink > 0);
        if free && there {
            found.push(path);
        }
    }
    Ok(found)
}

#[expect(
    clippy::disallowed_methods,
    reason = "an empty file that is locked before it gets its name"
)]
fn create(path: &Path) -> std::io::Result<File> {
    File::create_new(path)
}

#[expect(clippy::disallowed_methods, reason = "as above; no content to be lost")]
fn rename(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::rename(from, to)
}
