//! What a command works with: settings, paths, and the trail when it asks for it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use safepoint_store::{Blobs, Options, Store};
use safepoint_trail::{Actor, LostStore, Surroundings, Trail};

use crate::cli::Global;
use crate::console::Console;
use crate::error::CliError;
use crate::paths::Paths;
use crate::settings::{MANAGED, Settings, Sources};
use crate::world::{Environment, SystemClock, SystemEntropy};

/// One command at work.
pub(crate) struct Context {
    pub(crate) console: Console,
    pub(crate) environment: Environment,
    pub(crate) paths: Paths,
    pub(crate) settings: Settings,
    /// The directory the command works in.
    pub(crate) directory: PathBuf,
    /// Whether to take questions as answered with yes.
    pub(crate) yes: bool,
}

impl Context {
    /// Reads the environment and the settings. Opens nothing.
    pub(crate) fn new(global: &Global) -> Result<Self, CliError> {
        let environment = Environment::read().map_err(|error| CliError::File {
            action: "find",
            path: ".".into(),
            error,
        })?;
        let directory = match &global.directory {
            None => environment.directory.clone(),
            Some(directory) => environment.directory.join(directory),
        };
        if !directory.is_dir() {
            return Err(CliError::NotFound {
                what: "directory",
                name: directory.display().to_string(),
            });
        }
        let paths = Paths::find(&environment)?;
        let settings = Settings::load(&Sources {
            managed: MANAGED.as_ref(),
            store_flag: global.store.as_deref(),
            environment: &environment,
            paths: &paths,
            workspace: &directory,
        })?;
        Ok(Self {
            console: global.console(),
            environment,
            paths,
            settings,
            directory,
            yes: global.yes,
        })
    }

    /// Opens the store and its trail, and makes them where there are none.
    pub(crate) fn trail(&self) -> Result<Trail, CliError> {
        self.trail_or(LostStore::Refuse)
    }

    /// The same, with a say in what happens to an empty store that was not empty before.
    pub(crate) fn trail_or(&self, lost_store: LostStore) -> Result<Trail, CliError> {
        let options = Options {
            lock_timeout: Duration::from_micros(self.settings.lock_timeout.value.as_micros()),
        };
        let store = Store::open(&self.settings.store.value, options)?;
        Ok(Trail::open(
            Arc::new(store),
            &self.surroundings(lost_store),
        )?)
    }

    fn surroundings(&self, lost_store: LostStore) -> Surroundings {
        Surroundings {
            keys: self.paths.data.join("keys"),
            witnesses: self.paths.state.join("witness"),
            blobs: Blobs::new(self.paths.data.join("blobs")),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            lost_store,
        }
    }

    /// The file that an `--out` means; `None` for standard output. Links are
    /// followed, and only a regular file is ever replaced.
    pub(crate) fn output(&self, out: Option<&Path>) -> Result<Option<PathBuf>, CliError> {
        let Some(out) = out.filter(|out| *out != Path::new("-")) else {
            return Ok(None);
        };
        let path = self.directory.join(out);
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(Some(path)); // nothing is there yet
        }
        let regular = std::fs::metadata(&path).is_ok_and(|found| found.is_file());
        match std::fs::canonicalize(&path) {
            Ok(found) if regular => Ok(Some(found)),
            _ => Err(CliError::Invalid {
                message: format!("`{}` is not a regular file", path.display()),
                suggestion: "without `--out` everything goes to standard output",
            }),
        }
    }

    /// The person at the terminal, as the trail names them.
    pub(crate) fn actor(&self) -> Result<Actor, CliError> {
        let name: String = self
            .environment
            .user
            .chars()
            .map(|c| {
                if c.is_whitespace() || c.is_control() {
                    '_'
                } else {
                    c
                }
            })
            .take(100)
            .collect();
        format!("user:{name}")
            .parse()
            .map_err(|error: safepoint_trail::NameError| CliError::Usage(error.to_string()))
    }
}
