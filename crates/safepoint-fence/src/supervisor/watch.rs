//! What is seen of a supervised tree, and who is asked about what no rule names.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Gate, Observation, Refusal, Writes};

/// The record of one supervised tree.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Mutex<Observation>,
    /// Where new paths are told, while what was left running is watched.
    late: Mutex<Option<File>>,
    gate: Option<Arc<dyn Gate>>,
}

impl Watch {
    pub(super) fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        Self {
            seen: Mutex::new(Observation::default()),
            late: Mutex::new(None),
            gate,
        }
    }

    /// Begins the record of what is written from now on. Files that are open for writing are
    /// part of it: nothing is seen of how they are written.
    pub(super) fn begin_late(&self, file: File) -> Writes {
        let mut seen = self.lock();
        let written = std::mem::take(&mut seen.written);
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        *late = Some(file);
        seen.written.paths = open_for_writing(&written.paths);
        for path in &seen.written.paths {
            tell_late(&mut late, path);
        }
        written
    }

    pub(super) fn seen(&self) -> Observation {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Observation> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something that no rule names. What is refused is recorded.
    pub(super) fn admit(&self, wanted: Refusal) -> bool {
        let is_admitted = self.gate.as_ref().is_some_and(|gate| gate.admit(&wanted));
        if !is_admitted {
            self.refuse(wanted);
        }
        is_admitted
    }

    /// Whether a file may be written now.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.may_write(path))
    }

    pub(super) fn refuse(&self, refused: Refusal) {
        self.lock().refused.insert(refused);
    }

    pub(super) fn reach_host(&self, host: String) {
        self.lock().hosts.insert(host);
    }

    pub(super) fn reach_socket(&self, path: PathBuf) {
        self.lock().sockets.insert(path);
    }

    pub(super) fn write_path(&self, path: PathBuf) {
        let mut seen = self.lock();
        if !seen.written.paths.contains(&path) {
            self.tell_late(&path);
            seen.written.paths.insert(path);
        }
    }

    pub(super) fn write_tree(&self, path: PathBuf) {
        let mut seen = self.lock();
        if !seen.written.trees.contains(&path) {
            self.tell_late(&path);
            seen.written.trees.insert(path);
        }
    }

    fn tell_late(&self, path: &Path) {
        let mut late = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        tell_late(&mut late, path);
    }

    /// Something was written, and nobody knows where.
    pub(super) fn lose_track(&self) {
        self.lock().written.is_complete = false;
    }
}

/// Adds a path to the file, with a zero byte after it.
fn tell_late(late: &mut Option<File>, path: &Path) {
    if let Some(file) = late {
        let mut bytes = path.as_os_str().as_bytes().to_vec();
        bytes.push(0);
        // What cannot be told now is recorded at the end all the same.
        let _ = file.write_all(&bytes);
    }
}

/// Those of these files that some process of this user has open for writing.
fn open_for_writing(paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut open = BTreeSet::new();
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let own = std::process::id().to_string();
    let processes = entries("/proc".into()).map(|it| it.file_name());
    let processes =
        processes.filter(|name| name.as_bytes().iter().all(u8::is_ascii_digit) && *name != *own);
    for process in processes {
        let place = Path::new("/proc").join(process);
        for descriptor in entries(place.join("fd")) {
            let Ok(path) = std::fs::read_link(descriptor.path()) else {
                continue;
            };
            let information = place.join("fdinfo").join(descriptor.file_name());
            if paths.contains(&path) && is_open_for_writing(&information) {
                open.insert(path);
            }
        }
    }
    open
}

fn is_open_for_writing(information: &Path) -> bool {
    let text = std::fs::read_to_string(information).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|it| i32::from_str_radix(it.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}
