//! Working in a workspace alone, and moving only names that nobody relies on.
//!
//! A client's own file tool writes by a path, in its own process, after that was judged. While it
//! does, nothing may make its path lead elsewhere: neither programs behind a fence nor we
//! ([`safepoint_fence::Freeze`]). The lock of the workspace is not held while that is waited for,
//! since whoever ends the tool's call needs it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use safepoint_fence::{NameMove, NameMoveStart, StandingFreeze, find_freeze};

use crate::git::linked_places;
use crate::known_git::Caller;
use crate::lock::Hold;
use crate::own_directory::OwnDirectory;
use crate::state::State;
use crate::{StateError, own};

/// How long an agent's command waits: the tool may be one of its own client's, which asks a
/// person meanwhile.
const AGENT_PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks whether a freeze has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// Nobody else works in a workspace, and nobody relies on where its names lead.
#[derive(Debug)]
pub(crate) struct Exclusive {
    _lock: File,
    _names: Option<NameMove>,
}

impl State {
    /// Waits until nobody else works in the workspace, and until no name of it has to stay where
    /// it is, and keeps it so.
    pub(crate) fn hold_alone(&self, workspace: &Path) -> Result<Exclusive, StateError> {
        let mut looks = self.patience().as_millis() / LOOK_INTERVAL.as_millis();
        loop {
            let lock = self.hold(workspace, Hold::Alone)?;
            let freeze = match self.begin_name_move(workspace)? {
                Ok(names) => {
                    OwnDirectory::clear_way(workspace, own::CHECKPOINTS)?;
                    return Ok(Exclusive {
                        _lock: lock,
                        _names: names,
                    });
                }
                Err(freeze) => freeze,
            };
            drop(lock);
            let mut freeze = Some(freeze);
            while let Some(standing) = freeze {
                if looks == 0 {
                    return Err(frozen(workspace, &standing));
                }
                looks -= 1;
                std::thread::sleep(LOOK_INTERVAL);
                freeze = self.freeze_of(workspace)?;
            }
        }
    }

    /// Waits until no name there has to stay where it is, and keeps it so. For a directory that
    /// nobody else works in.
    pub(crate) fn hold_names(&self, directory: &Path) -> Result<Option<NameMove>, StateError> {
        let mut looks = self.patience().as_millis() / LOOK_INTERVAL.as_millis();
        loop {
            match self.begin_name_move(directory)? {
                Ok(names) => return Ok(names),
                Err(freeze) if looks == 0 => return Err(frozen(directory, &freeze)),
                Err(_) => looks -= 1,
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// The same without waiting, for whoever ends what was cut off there.
    pub(crate) fn try_hold_names(&self, directory: &Path) -> Result<Option<NameMove>, StateError> {
        let begun = self.begin_name_move(directory)?;
        let names = begun.map_err(|freeze| frozen(directory, &freeze))?;
        OwnDirectory::clear_way(directory, own::CHECKPOINTS)?;
        Ok(names)
    }

    fn patience(&self) -> Duration {
        match self.caller {
            Caller::Agent => AGENT_PATIENCE.min(self.around.lock_timeout),
            Caller::Person => self.around.lock_timeout,
        }
    }

    fn begin_name_move(
        &self,
        directory: &Path,
    ) -> Result<Result<Option<NameMove>, StandingFreeze>, StateError> {
        let Some(freezes) = &self.freezes else {
            return Ok(Ok(None));
        };
        let begun = NameMove::begin(freezes, &places(directory));
        match begun.map_err(|error| StateError::file("use", freezes, error))? {
            NameMoveStart::Begun(names) => Ok(Ok(Some(names))),
            NameMoveStart::Frozen(freeze) => Ok(Err(freeze)),
        }
    }

    fn freeze_of(&self, workspace: &Path) -> Result<Option<StandingFreeze>, StateError> {
        let Some(freezes) = &self.freezes else {
            return Ok(None);
        };
        let found = find_freeze(freezes, &places(workspace));
        found.map_err(|error| StateError::file("list", freezes, error))
    }
}

/// Where names move when a directory is gone back in: in itself, and in what git keeps of it
/// elsewhere.
fn places(directory: &Path) -> Vec<PathBuf> {
    let mut places = vec![directory.to_owned()];
    places.extend(linked_places(directory, &[]));
    places
}

fn frozen(workspace: &Path, freeze: &StandingFreeze) -> StateError {
    let keeper = freeze.scope.as_ref().and_then(|scope| scope.keeper);
    let keeper = keeper.map(|(process, _)| {
        let name = std::fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
        match name.trim_end() {
            "" => format!("process {process}"),
            name => format!("`{name}`, process {process}"),
        }
    });
    StateError::Frozen {
        workspace: workspace.to_owned(),
        keeper: keeper.unwrap_or_else(|| "an agent's client".to_owned()),
    }
}
