//! What is seen of a supervised tree, and who is asked about what no rule names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Gate, Observation, Refusal};

/// More is not recorded of one tree: what is written from then on is not known.
const MAX_PATH_BYTES: usize = 64 << 20;
/// More refusals, hosts or sockets are not recorded.
const MAX_TARGETS: usize = 1000;

/// The record of one supervised tree.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Mutex<Seen>,
    gate: Option<Arc<dyn Gate>>,
}

#[derive(Debug, Default)]
struct Seen {
    observation: Observation,
    path_bytes: usize,
}

impl Seen {
    /// Whether there is room for one more path.
    fn takes(&mut self, path: &Path) -> bool {
        self.path_bytes += path.as_os_str().len();
        let has_room = self.path_bytes <= MAX_PATH_BYTES;
        self.observation.written.is_complete &= has_room;
        has_room
    }
}

impl Watch {
    pub(super) fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        Self {
            seen: Mutex::default(),
            gate,
        }
    }

    pub(super) fn seen(&self) -> Observation {
        self.lock().observation.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
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
        insert(&mut self.lock().observation.refused, refused);
    }

    pub(super) fn reach_host(&self, host: String) {
        insert(&mut self.lock().observation.hosts, host);
    }

    pub(super) fn reach_socket(&self, path: PathBuf) {
        insert(&mut self.lock().observation.sockets, path);
    }

    pub(super) fn write_path(&self, path: PathBuf) {
        let mut seen = self.lock();
        if !seen.observation.written.paths.contains(&path) && seen.takes(&path) {
            seen.observation.written.paths.insert(path);
        }
    }

    pub(super) fn write_tree(&self, path: PathBuf) {
        let mut seen = self.lock();
        if !seen.observation.written.trees.contains(&path) && seen.takes(&path) {
            seen.observation.written.trees.insert(path);
        }
    }

    /// Something was written, and nobody knows where.
    pub(super) fn lose_track(&self) {
        self.lock().observation.written.is_complete = false;
    }
}

fn insert<T: Ord>(targets: &mut BTreeSet<T>, target: T) {
    if targets.len() < MAX_TARGETS {
        targets.insert(target);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_33_a_record_that_grows_too_large_says_that_it_is_not_complete() {
        let watch = Watch::new(None);
        let long = "x".repeat(1 << 20);
        for number in 0..70 {
            watch.write_path(PathBuf::from(format!("/{number}/{long}")));
        }
        let seen = watch.seen();
        assert!(!seen.written.is_complete && seen.written.paths.len() == 63);
        watch.write_path(PathBuf::from("/0"));
        assert_eq!(watch.seen().written.paths.len(), 63);
    }
}
