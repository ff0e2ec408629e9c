//! The only place that reads the world: clock, randomness, environment, user.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the one place that reads the world"
)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use safepoint_model::{Clock, Entropy, EntropyError, Timestamp};

/// The machine's wall clock.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        // Before 1970 there is no meaningful answer; the trail's clock never goes back anyway.
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
}

/// The operating system's generator.
pub(crate) struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        getrandom::fill(bytes).map_err(|error| EntropyError(error.to_string()))
    }
}

/// The variables that say how the program is set, and nothing about who uses it.
const SETTINGS: [&str; 10] = [
    "SAFEPOINT_CHECKPOINT",
    "SAFEPOINT_HOLD_TIMEOUT",
    "SAFEPOINT_HOME",
    "SAFEPOINT_HOOK_WAIT",
    "SAFEPOINT_KEY",
    "SAFEPOINT_LOCK_TIMEOUT",
    "SAFEPOINT_OBJECTS",
    "SAFEPOINT_OBJECT_CAP",
    "SAFEPOINT_PUBLIC_URL",
    "SAFEPOINT_STORE",
];

/// What is read of the environment, all at once.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    /// Where the command was started.
    pub(crate) directory: PathBuf,
    /// Who started it.
    pub(crate) user: String,
    variables: Vec<(OsString, OsString)>,
}

/// The file that runs now.
pub(crate) fn this_program() -> std::io::Result<PathBuf> {
    std::env::current_exe()
}

/// A variable of this process, if it is text.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl Environment {
    /// The environment of this process.
    pub(crate) fn read() -> std::io::Result<Self> {
        let directory = match std::env::current_dir() {
            // The directory may have been deleted under us: its name is enough to bring it back.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::env::var_os("PWD").map(PathBuf::from).ok_or(error)?
            }
            other => other?,
        };
        Ok(Self {
            directory,
            user: user_name(),
            variables: std::env::vars_os().collect(),
        })
    }

    /// An environment that a test makes up.
    #[cfg(test)]
    pub(crate) fn of(directory: &std::path::Path, variables: &[(&str, &str)]) -> Self {
        Self {
            directory: directory.to_owned(),
            user: "tester".to_owned(),
            variables: variables
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }

    /// The same for a command that a server runs: its settings hold, and nothing else that it
    /// was started with says who asks. An agent that asks is one, whatever it asks for.
    pub(crate) fn for_server(&self, agent: Option<&str>) -> Self {
        let mut served = self.clone();
        served.variables.retain(|(name, _)| {
            let name = name.to_string_lossy();
            !name.starts_with("SAFEPOINT_") || SETTINGS.contains(&&*name)
        });
        let mark = agent.map(|agent| ("SAFEPOINT_AGENT".into(), agent.into()));
        served.variables.extend(mark);
        served
    }

    /// All variables, to be handed on to git.
    pub(crate) fn variables(&self) -> Vec<(OsString, OsString)> {
        self.variables.clone()
    }

    /// A variable that is set and not empty.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables
            .iter()
            .find(|(known, value)| known == name && !value.is_empty())
            .map(|(_, value)| PathBuf::from(value))
    }

    /// The same as text; what is not Unicode is taken as not set.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.path(name)?.into_os_string().into_string().ok()
    }
}

/// The home of the user this process runs as, as the system knows it. Not `$HOME`, which
/// anybody can set.
pub(crate) fn home_of_user() -> Option<PathBuf> {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = users.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let own = fields.get(2) == Some(&uid.as_str());
        fields.get(5).filter(|_| own).map(PathBuf::from)
    });
    home.filter(|home| home.is_absolute())
}

/// The name of the user this process runs as. Not `$USER`, which anybody can set.
fn user_name() -> String {
    let uid = rustix::process::getuid().as_raw().to_string();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| format!("uid-{uid}"))
}
