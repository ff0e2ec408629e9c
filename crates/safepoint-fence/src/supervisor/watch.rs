//! What is seen of a supervised tree, and who is asked about what no rule names.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Gate, Observation, Refusal};

/// The record of one supervised tree.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Mutex<Observation>,
    gate: Option<Arc<dyn Gate>>,
}

impl Watch {
    pub(super) fn new(gate: Option<Arc<dyn Gate>>) -> Self {
        Self {
            seen: Mutex::new(Observation::default()),
            gate,
        }
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
        self.lock().written.paths.insert(path);
    }

    pub(super) fn write_tree(&self, path: PathBuf) {
        self.lock().written.trees.insert(path);
    }

    /// Something was written, and nobody knows where.
    pub(super) fn lose_track(&self) {
        self.lock().written.is_complete = false;
    }
}
