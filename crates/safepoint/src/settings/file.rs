//! One settings file: `safepoint.yaml` in a project, `config.yaml` of a user,
//! or the managed one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use safepoint_model::{Span, yaml};
use safepoint_store::regular;
use serde::{Deserialize, Serialize};

use super::Size;
use super::network::{NetworkSection, ServiceEntry};
use crate::error::CliError;
use crate::world::Environment;

/// The longest settings file.
const LARGEST: u64 = 1 << 20;

/// When an agent's actions are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CheckpointMode {
    /// Before every action.
    Always,
    /// Where policy says so.
    Policy,
    /// Nowhere; policy may refuse that.
    Never,
}

/// The keys of a settings file. All are optional; an unknown one is an error.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) store: Option<String>,
    /// Where objects are shared with other machines.
    pub(crate) objects: Option<String>,
    /// The one key file of a deployment.
    pub(crate) key: Option<PathBuf>,
    /// The file with the token for a store that is a server.
    pub(crate) server_token_file: Option<PathBuf>,
    /// The certificates to trust when a server is asked, and no others.
    pub(crate) server_ca: Option<PathBuf>,
    pub(crate) lock_timeout: Option<Span>,
    pub(crate) checkpoint: Option<CheckpointMode>,
    pub(crate) hold_timeout: Option<Span>,
    /// How long a client's hook waits for an operator.
    pub(crate) hook_wait: Option<Span>,
    /// How large the object store may grow.
    pub(crate) object_cap: Option<Size>,
    /// Where people reach the page of `safepoint serve`.
    pub(crate) public_url: Option<String>,
    /// To whom secrets are encrypted.
    #[serde(default)]
    pub(crate) seal_to: Vec<String>,
    /// The steward's files.
    #[serde(default)]
    pub(crate) atlases: Vec<PathBuf>,
    /// What checkpoints leave out, beside the usual caches.
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// What they take although it is a cache.
    #[serde(default)]
    pub(crate) include: Vec<String>,
    /// Hosts that agents may reach.
    pub(crate) network: Option<NetworkSection>,
    /// Services of this machine, or of a private network, that agents may reach.
    #[serde(default)]
    pub(crate) services: Vec<ServiceEntry>,
    /// Commands that capture and restore state outside the files.
    #[serde(default)]
    pub(crate) state_providers: BTreeMap<String, StateProvider>,
}

/// How one piece of outside state is captured and restored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StateProvider {
    /// Prints the state on standard output.
    pub(crate) capture: String,
    /// Takes it back on standard input.
    pub(crate) restore: String,
}

impl File {
    /// Reads and checks a file; `None` when there is none. One that is there
    /// and cannot be read is an error: it may be what forbids something.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, CliError> {
        let text = match regular::read_text(path, LARGEST) {
            Ok(text) => text,
            // Below a file there is none either.
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(error) => {
                return Err(CliError::File {
                    action: "read",
                    path: path.to_owned(),
                    error,
                });
            }
        };
        if text.trim().is_empty() {
            return Ok(Some(Self::default()));
        }
        yaml::read_as(&text)
            .map(Some)
            .map_err(|error| CliError::Settings {
                path: path.to_owned(),
                error,
            })
    }

    /// The same settings from variables.
    pub(crate) fn from_environment(environment: &Environment) -> Result<Self, CliError> {
        let span = |name: &str| -> Result<Option<Span>, CliError> {
            let Some(text) = environment.text(name) else {
                return Ok(None);
            };
            text.parse().map(Some).map_err(|error| CliError::Invalid {
                message: format!("`{name}`: {error}"),
                suggestion: "a length of time is written like `30s`, `15m` or `2h`",
            })
        };
        let checkpoint = match environment.text("SAFEPOINT_CHECKPOINT").as_deref() {
            None => None,
            Some("always") => Some(CheckpointMode::Always),
            Some("policy") => Some(CheckpointMode::Policy),
            Some("never") => Some(CheckpointMode::Never),
            Some(other) => {
                return Err(CliError::Invalid {
                    message: format!("`SAFEPOINT_CHECKPOINT` cannot be `{other}`"),
                    suggestion: "it is `always`, `policy` or `never`",
                });
            }
        };
        let object_cap = match environment.text("SAFEPOINT_OBJECT_CAP") {
            None => None,
            Some(text) => Some(text.parse().map_err(|error| CliError::Invalid {
                message: format!("`SAFEPOINT_OBJECT_CAP`: {error}"),
                suggestion: "a size is written like `500MiB` or `20GiB`",
            })?),
        };
        Ok(Self {
            object_cap,
            store: environment.text("SAFEPOINT_STORE"),
            objects: environment.text("SAFEPOINT_OBJECTS"),
            key: environment.path("SAFEPOINT_KEY"),
            server_token_file: environment.path("SAFEPOINT_SERVER_TOKEN_FILE"),
            server_ca: environment.path("SAFEPOINT_SERVER_CA"),
            lock_timeout: span("SAFEPOINT_LOCK_TIMEOUT")?,
            checkpoint,
            hold_timeout: span("SAFEPOINT_HOLD_TIMEOUT")?,
            hook_wait: span("SAFEPOINT_HOOK_WAIT")?,
            public_url: environment.text("SAFEPOINT_PUBLIC_URL"),
            ..Self::default()
        })
    }
}
