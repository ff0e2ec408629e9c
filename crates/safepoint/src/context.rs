//! What a command works with: settings, paths, and the trail when it asks for it.

mod cut_off;
mod databases;
mod moved;
mod open;
mod place;

pub(crate) use moved::adopting;
pub(crate) use place::real_path;

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use safepoint_database::ServerPlace;
use safepoint_progress::Presence;
use safepoint_state::Access;
use safepoint_trail::{Actor, Trail};

use crate::cli::Global;
use crate::commands::agents::PINNED_ROOT;
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
    /// The workspace, where that is known and not looked for.
    root: Option<PathBuf>,
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
    /// The same of actions.
    told_cut_off: bool,
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
        let root = pinned_root(&environment);
        if let Some(root) = &root {
            refuse_moved_root(root)?;
            refuse_outside(root, &directory)?;
        }
        let paths = Paths::find(&environment)?;
        let settings = Settings::load(&Sources {
            managed: MANAGED.as_ref(),
            store_flag: global.store.as_deref(),
            environment: &environment,
            paths: &paths,
            workspace: root.as_deref().unwrap_or(&directory),
        })?;
        Ok(Self {
            console: global.console(),
            environment,
            paths,
            settings,
            directory_is_named: global.directory.is_some(),
            directory,
            root,
            store_given: global.store.clone(),
            yes: global.yes,
            agent,
            presence: None,
            served: None,
            access: Access::Writing,
            told_unfinished: false,
            told_cut_off: false,
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
            root: None,
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
        self.root = None;
        self.settings = self.settings_now()?;
        Ok(())
    }

    /// Works in this workspace from now on, under the settings that apply there. It is known,
    /// and nothing is searched for: whoever works there can take away what marks it, or put a
    /// link in its place.
    pub(crate) fn pin_root(&mut self, root: &Path) -> Result<(), CliError> {
        refuse_moved_root(root)?;
        if refuse_outside(root, &self.directory).is_err() {
            root.clone_into(&mut self.directory);
        }
        self.root = Some(root.to_owned());
        self.settings = self.settings_now()?;
        Ok(())
    }

    /// Whether the workspace is known, and is not looked for.
    pub(crate) fn is_root_pinned(&self) -> bool {
        self.root.is_some()
    }

    /// Refuses a place that is not in the workspace, where that is pinned.
    pub(crate) fn refuse_outside_root(&self, place: &Path) -> Result<(), CliError> {
        match &self.root {
            Some(root) => refuse_outside(root, place),
            None => Ok(()),
        }
    }

    /// Where settings and rules are looked for, from there upwards.
    fn rules_place(&self) -> &Path {
        self.root.as_deref().unwrap_or(&self.directory)
    }

    /// The settings as they are in their files by now.
    fn settings_now(&self) -> Result<Settings, CliError> {
        Settings::load(&Sources {
            managed: MANAGED.as_ref(),
            store_flag: self.store_given.as_deref(),
            environment: &self.environment,
            paths: &self.paths,
            workspace: self.rules_place(),
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

/// The workspace that this program has set for what it runs for an agent. Anybody can set a
/// variable; that this program has started us, nobody can.
fn pinned_root(environment: &Environment) -> Option<PathBuf> {
    let root = environment.path(PINNED_ROOT)?;
    is_started_by_us(environment).then_some(root)
}

/// Whether this program has started us for an agent. A variable alone does not tell: an agent
/// sets what it likes.
pub(crate) fn is_started_by_us(environment: &Environment) -> bool {
    let file = |process: &str| std::fs::metadata(format!("/proc/{process}/exe")).ok();
    let same = |one: &std::fs::Metadata, other: &std::fs::Metadata| {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    };
    // The process that waits for us runs this program too.
    let place = 1 + usize::from(crate::detach::is_child());
    let ancestors = safepoint_fence::ancestors(std::process::id());
    let above = ancestors.get(place).map(|process| process.pid.to_string());
    let ours = file("self").zip(above.and_then(|process| file(&process)));
    environment.path("SAFEPOINT_AGENT").is_some()
        && ours.is_some_and(|(one, other)| same(&one, &other))
}

/// Refuses a workspace that is not a directory at its own path any more.
fn refuse_moved_root(root: &Path) -> Result<(), CliError> {
    let is_there = root.is_dir();
    match is_there && std::fs::canonicalize(root).is_ok_and(|real| real == root) {
        true => Ok(()),
        false if is_there => Err(CliError::Invalid {
            message: format!("`{}` is a link by now", root.display()),
            suggestion: "the workspace is the directory that was there when the session began",
        }),
        false => Err(CliError::NotFound {
            what: "directory",
            name: root.display().to_string(),
        }),
    }
}

fn refuse_outside(root: &Path, place: &Path) -> Result<(), CliError> {
    match real_path(place).starts_with(root) {
        true => Ok(()),
        false => Err(CliError::Invalid {
            message: format!(
                "this agent works in `{}`, and `{}` is not there",
                root.display(),
                place.display()
            ),
            suggestion: "call it from inside the workspace",
        }),
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
