//! What a command works with: settings, paths, and the trail when it asks for it.

mod databases;
mod moved;
mod open;
mod place;

pub(crate) use moved::adopting;
pub(crate) use place::real_path;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use safepoint_database::ServerPlace;
use safepoint_progress::Presence;
use safepoint_state::Access;
use safepoint_trail::{Actor, Trail};

use crate::cli::Global;
use crate::console::{Console, Mode, Printed};
use crate::error::CliError;
use crate::paths::{Paths, find_upwards};
use crate::settings::{MANAGED, Settings, Sources};
use crate::world::Environment;

/// What a command does about a directory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingDirectory {
    /// It has nothing to do there.
    Refuse,
    /// It may be what brings it back.
    Allow,
    /// It tells of a directory of which something is recorded.
    Recorded,
}

/// What a command has from the server that runs it, and would otherwise have of its own.
pub(crate) struct Served {
    /// The store that is open already.
    pub(crate) trail: Trail,
    /// Who asked.
    pub(crate) actor: Actor,
    /// The operator whose token was shown, if it was one's. Only their signature counts.
    pub(crate) operator: Option<String>,
    /// What stands for standard input.
    pub(crate) input: Vec<u8>,
    /// In which form it is to be printed.
    pub(crate) mode: Mode,
}

/// One command at work.
pub(crate) struct Context {
    pub(crate) console: Console,
    pub(crate) environment: Environment,
    pub(crate) paths: Paths,
    pub(crate) settings: Settings,
    /// The directory the command works in.
    pub(crate) directory: PathBuf,
    /// Whether that directory was named, rather than the one the command was started in.
    directory_is_named: bool,
    /// The store that was named on the command line.
    pub(crate) store_given: Option<String>,
    /// Whether to take questions as answered with yes.
    pub(crate) yes: bool,
    /// The agent client that we work for, if it is one and not a person.
    agent: Option<String>,
    /// Our mark beside the store, while we work on the chains.
    presence: Option<Presence>,
    /// The server that runs it, if it is no process of its own.
    served: Option<Served>,
    /// Whether the command changes anything.
    pub(crate) access: Access,
    /// Whether it has been said what was cut off.
    told_unfinished: bool,
    /// Whether the command comes between two halves of an action, or says itself which directory
    /// the workspace is.
    pub(crate) keeps_footing: bool,
    /// The directory of which it has been said that its history is of another.
    told_footing: Option<PathBuf>,
    /// Where the workspace was before it was moved, while nobody has said that it was.
    unadopted: Option<PathBuf>,
    /// The servers of databases that were opened for this command.
    opened_databases: Arc<Mutex<Vec<ServerPlace>>>,
}

impl Context {
    /// Reads the environment and the settings. Opens nothing.
    pub(crate) fn new(global: &Global, missing: MissingDirectory) -> Result<Self, CliError> {
        let context = Self::of(global, missing, environment()?)?;
        if missing == MissingDirectory::Recorded && !context.directory.is_dir() {
            context.refuse_unrecorded()?;
        }
        Ok(context)
    }

    /// The same for an agent client that works in `directory`.
    pub(crate) fn of_agent(
        global: &Global,
        directory: &Path,
        agent: &str,
    ) -> Result<Self, CliError> {
        let mut environment = environment()?;
        directory.clone_into(&mut environment.directory);
        let context = Self::of(global, MissingDirectory::Refuse, environment)?;
        Ok(Self {
            agent: Some(agent.to_owned()),
            ..context
        })
    }

    fn of(
        global: &Global,
        missing: MissingDirectory,
        environment: Environment,
    ) -> Result<Self, CliError> {
        let directory = match &global.directory {
            None => environment.directory.clone(),
            Some(directory) => environment.directory.join(directory),
        };
        if missing == MissingDirectory::Refuse && !directory.is_dir() {
            return Err(CliError::NotFound {
                what: "directory",
                name: directory.display().to_string(),
            });
        }
        // Who says that it is an agent is one, and may say which.
        let agent = environment.text("SAFEPOINT_AGENT");
        let agent = agent.filter(|name| name != "1");
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
            directory_is_named: global.directory.is_some(),
            directory,
            store_given: global.store.clone(),
            yes: global.yes,
            agent,
            presence: None,
            served: None,
            access: Access::Writing,
            told_unfinished: false,
            keeps_footing: false,
            told_footing: None,
            unadopted: None,
            opened_databases: Arc::default(),
        })
    }

    /// A command that a server runs for somebody, in `directory`. What it prints goes to `printed`.
    pub(crate) fn of_server(
        global: &Global,
        environment: Environment,
        directory: &Path,
        served: Served,
        printed: Printed,
    ) -> Result<Self, CliError> {
        let mut environment = environment;
        directory.clone_into(&mut environment.directory);
        let file = find_upwards(directory, "safepoint.yaml");
        if let Some(file) = file.filter(|file| file.is_symlink()) {
            return Err(CliError::Invalid {
                message: format!(
                    "`{}` is a link, which a server does not follow",
                    file.display()
                ),
                suggestion: "put the file itself there",
            });
        }
        let context = Self::of(global, MissingDirectory::Refuse, environment)?;
        Ok(Self {
            console: Console::printing_to(printed, served.mode),
            served: Some(served),
            // Exactly there: nothing is looked for above or elsewhere.
            directory_is_named: true,
            // Nobody is there to be asked.
            yes: false,
            ..context
        })
    }

    /// The server that runs it, if one does.
    pub(crate) fn served(&self) -> Option<&Served> {
        self.served.as_ref()
    }

    /// Standard input, up to a byte more than `most`.
    pub(crate) fn input(&self, most: u64) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let most = most.saturating_add(1);
        match &self.served {
            Some(served) => served.input.as_slice().take(most).read_to_end(&mut bytes),
            None => std::io::stdin().take(most).read_to_end(&mut bytes),
        }?;
        Ok(bytes)
    }

    /// Works in another directory from now on, under the settings that apply there.
    pub(crate) fn move_to(&mut self, directory: &Path) -> Result<(), CliError> {
        if !directory.is_dir() {
            return Err(CliError::NotFound {
                what: "directory",
                name: directory.display().to_string(),
            });
        }
        directory.clone_into(&mut self.directory);
        self.settings = self.settings_now()?;
        Ok(())
    }

    /// The settings as they are in their files by now.
    fn settings_now(&self) -> Result<Settings, CliError> {
        Settings::load(&Sources {
            managed: MANAGED.as_ref(),
            store_flag: self.store_given.as_deref(),
            environment: &self.environment,
            paths: &self.paths,
            workspace: &self.directory,
        })
    }

    /// The same, and exactly that directory is the workspace.
    pub(crate) fn move_to_root(&mut self, directory: &Path) -> Result<(), CliError> {
        self.move_to(directory)?;
        self.directory_is_named = true;
        Ok(())
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

    /// The person at the terminal, or the agent's client, as the trail names them.
    pub(crate) fn actor(&self) -> Result<Actor, CliError> {
        if let Some(served) = &self.served {
            return Ok(served.actor.clone());
        }
        if let Some(agent) = &self.agent {
            return named_actor(&format!("agent:{agent}"));
        }
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
        named_actor(&format!("user:{name}"))
    }
}

fn named_actor(name: &str) -> Result<Actor, CliError> {
    name.parse()
        .map_err(|error: safepoint_trail::NameError| CliError::Usage(error.to_string()))
}

fn environment() -> Result<Environment, CliError> {
    Environment::read().map_err(|error| CliError::File {
        action: "find",
        path: ".".into(),
        error,
    })
}
