//! Where things lie outside the workspace: the XDG directories, or all of them
//! under `SAFEPOINT_HOME`.

use std::path::{Path, PathBuf};

use safepoint_model::Digest;

use crate::error::CliError;
use crate::world::Environment;

/// The directories of one user.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// Settings that people write.
    pub(crate) config: PathBuf,
    /// What must not be lost: store, blobs, keys.
    pub(crate) data: PathBuf,
    /// What vouches for it from outside: copies of heads.
    pub(crate) state: PathBuf,
    /// What may vanish with a restart: sockets.
    pub(crate) runtime: PathBuf,
    /// What tools of agents keep for themselves. It is theirs, and not out of their reach.
    pub(crate) caches: PathBuf,
}

impl Paths {
    /// The directories that this environment names.
    pub(crate) fn find(environment: &Environment) -> Result<Self, CliError> {
        if let Some(home) = environment.path("SAFEPOINT_HOME") {
            let home = environment.directory.join(home);
            return Ok(Self {
                config: home.join("config"),
                data: home.join("data"),
                state: home.join("state"),
                runtime: home.join("runtime"),
                caches: home.join("caches"),
            });
        }
        let home = environment.path("HOME").ok_or(CliError::NoHome)?;
        let xdg = |variable: &str, default: &str| {
            environment
                .path(variable)
                .filter(|path| path.is_absolute()) // the XDG specification: a relative one is ignored
                .unwrap_or_else(|| home.join(default))
                .join("safepoint")
        };
        let state = xdg("XDG_STATE_HOME", ".local/state");
        // It is writable behind the fence, so no variable says where it is.
        let user = crate::world::home_of_user();
        let user = user.as_ref().unwrap_or(&home);
        Ok(Self {
            config: xdg("XDG_CONFIG_HOME", ".config"),
            data: xdg("XDG_DATA_HOME", ".local/share"),
            runtime: environment
                .path("XDG_RUNTIME_DIR")
                .map_or_else(|| state.join("run"), |path| path.join("safepoint")),
            caches: user.join(".cache/safepoint/agents"),
            state,
        })
    }

    /// The database, where no other store is chosen.
    pub(crate) fn default_store(&self) -> PathBuf {
        self.data.join("store.db")
    }

    /// The database of what this machine remembers itself, where a server is the store.
    pub(crate) fn store_beside(&self, url: &str) -> PathBuf {
        let name = Digest::of_parts(&[url.as_bytes()]).to_string();
        let short: String = name.chars().take(16).collect();
        self.data.join(format!("server-{short}.db"))
    }

    /// The user's own settings.
    pub(crate) fn user_settings(&self) -> PathBuf {
        self.config.join("config.yaml")
    }
}

/// The nearest directory from `start` upwards that holds `name`.
pub(crate) fn find_upwards(start: &Path, name: &str) -> Option<PathBuf> {
    start
        .ancestors()
        .map(|directory| directory.join(name))
        .find(|path| path.is_file())
}
