//! What a command works with: settings, paths, and the trail when it asks for it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use safepoint_control::Control;
use safepoint_control::pass::Desk;
use safepoint_model::WorkspaceId;
use safepoint_progress::{Place, Presence, Progress};
use safepoint_state::git::Git;
use safepoint_state::{End, Patterns, Provider, Rules, State, Workspace};
use safepoint_store::{Blobs, Depot, Options, Store};
use safepoint_trail::{Actor, LostStore, Surroundings, Trail};

use crate::cli::Global;
use crate::console::{Console, Mode, Printed, count};
use crate::error::CliError;
use crate::paths::{Paths, find_upwards};
use crate::settings::{MANAGED, Origin, Setting, Settings, Sources};
use crate::world::{Environment, SystemClock, SystemEntropy};

/// What a command does about a directory that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingDirectory {
    /// It has nothing to do there.
    Refuse,
    /// It may be what brings it back.
    Allow,
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
}

impl Context {
    /// Reads the environment and the settings. Opens nothing.
    pub(crate) fn new(global: &Global, missing: MissingDirectory) -> Result<Self, CliError> {
        Self::of(global, missing, environment()?)
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
        self.settings = Settings::load(&Sources {
            managed: MANAGED.as_ref(),
            store_flag: self.store_given.as_deref(),
            environment: &self.environment,
            paths: &self.paths,
            workspace: directory,
        })?;
        Ok(())
    }

    /// The same, and exactly that directory is the workspace.
    pub(crate) fn move_to_root(&mut self, directory: &Path) -> Result<(), CliError> {
        self.move_to(directory)?;
        self.directory_is_named = true;
        Ok(())
    }

    /// The directory of an agent's workspace, under the settings of the one that it was made
    /// from: its agent can write its own. Whoever asks over a connection did not name it: it
    /// is where we made it.
    pub(crate) fn directory_of(&mut self, place: &Place) -> Result<Workspace, CliError> {
        if place.origin.is_dir() {
            self.move_to(&place.origin)?;
        }
        self.under_rules(&place.path)
    }

    /// Opens the store and its trail, and makes them where there are none.
    pub(crate) fn trail(&self) -> Result<Trail, CliError> {
        self.trail_or(LostStore::Refuse)
    }

    /// The same, with a say in what happens to an empty store that was not empty before.
    pub(crate) fn trail_or(&self, lost_store: LostStore) -> Result<Trail, CliError> {
        if let Some(served) = &self.served {
            return Ok(served.trail.clone());
        }
        let options = Options {
            lock_timeout: Duration::from_micros(self.settings.lock_timeout.value.as_micros()),
        };
        let store = Store::open(&self.settings.store.value, options)?;
        Ok(Trail::open(
            Arc::new(store),
            &self.surroundings(lost_store)?,
        )?)
    }

    /// The atlases that are named for here, and by whom: an administrator's always, then the
    /// project's, or else the user's own.
    pub(crate) fn named_atlases(&self) -> Result<Vec<Setting<PathBuf>>, CliError> {
        let settings = &self.settings;
        let (origin, own) = match settings.project.atlases.as_slice() {
            [] => (Origin::User, settings.user_atlases.clone()),
            named => {
                let beside = self.beside_project_file()?;
                let named = named.iter().map(|path| beside.join(path));
                (Origin::Project, named.collect())
            }
        };
        let of = |origin| move |value| Setting { value, origin };
        let managed = settings.managed_atlases.iter().cloned();
        let managed = managed.map(of(Origin::Managed));
        Ok(managed.chain(own.into_iter().map(of(origin))).collect())
    }

    /// The atlases that apply here.
    pub(crate) fn atlases(&self) -> Result<Vec<PathBuf>, CliError> {
        let named = self.named_atlases()?;
        for atlas in named.iter().filter(|it| it.origin == Origin::Project) {
            self.keep_inside(&self.beside_project_file()?, &atlas.value)?;
        }
        Ok(named.into_iter().map(|atlas| atlas.value).collect())
    }

    /// Where the project's file lies, which may be above the workspace: a repository inside a
    /// project is judged by the project's rules.
    fn beside_project_file(&self) -> Result<PathBuf, CliError> {
        let file = find_upwards(&self.directory, "safepoint.yaml");
        match file.as_deref().and_then(Path::parent) {
            Some(beside) => Ok(beside.to_owned()),
            None => Ok(self.workspace()?.root),
        }
    }

    /// Refuses a file that a project names and that lies elsewhere, where a server asks: agents
    /// write projects, and what is wrong with a file tells what is in it.
    fn keep_inside(&self, project: &Path, path: &Path) -> Result<(), CliError> {
        let real = |path: &Path| std::fs::canonicalize(path);
        let outside = || match (real(project), real(path)) {
            (Ok(project), Ok(path)) => !path.starts_with(project),
            _ => false, // it is not there, which is told by whoever reads it
        };
        match self.served.is_some() && outside() {
            true => Err(CliError::Invalid {
                message: format!(
                    "`{}` is not inside the project that names it",
                    path.display()
                ),
                suggestion: "at a server the atlases of a project lie in the project",
            }),
            false => Ok(()),
        }
    }

    /// Opens the sessions.
    pub(crate) fn control(&self) -> Result<Control, CliError> {
        Ok(Control::open(self.trail()?, self.control_surroundings()?)?)
    }

    fn control_surroundings(&self) -> Result<safepoint_control::Surroundings, CliError> {
        Ok(safepoint_control::Surroundings {
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            actor: self.actor()?,
            caller: Box::new(safepoint_control::Https::new()),
        })
    }

    /// Opens the sessions and the snapshots of one store.
    pub(crate) fn control_and_state(&mut self) -> Result<(Control, State), CliError> {
        let state = self.state()?;
        let control = Control::open(state.trail().clone(), self.control_surroundings()?)?;
        Ok((control, state))
    }

    /// Opens the workspaces of agents and their chains, and brings to its end what others
    /// left undone.
    pub(crate) fn progress(&mut self) -> Result<Progress, CliError> {
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let progress = Progress::open(self.trail()?, clock, entropy)?;
        if self.served.is_some() {
            // The server came in once, for all that it is asked.
            progress.tick()?;
            return Ok(progress);
        }
        let present = self.paths.state.join("present");
        let presence = Presence::enter(&present, &SystemEntropy)?;
        if let Some(recovered) = progress.resume(&presence)? {
            let told = recovered.signals_requeued;
            let told = count(told, "signal was", "signals were");
            self.console.say(&format!(
                "recovered: a process was cut off here; {told} delivered"
            ));
        }
        self.presence = Some(presence);
        for id in progress.tick()? {
            self.console
                .say(&format!("`{id}` ran out of its time, and has failed"));
        }
        Ok(progress)
    }

    /// Our mark beside the store, for whoever goes on when this context is gone.
    pub(crate) fn stay(&mut self) -> Option<Presence> {
        self.presence.take()
    }

    /// The operator's desk.
    pub(crate) fn desk<'c>(&self, control: &'c Control) -> Desk<'c> {
        Desk {
            control,
            permit_life: self.settings.hold_timeout.value,
        }
    }

    /// Where everything of ours lies: no agent touches it.
    pub(crate) fn own_places(&self) -> Vec<PathBuf> {
        let Paths {
            config,
            data,
            state,
            runtime,
        } = &self.paths;
        // What lets this machine in at a server is ours wherever it lies.
        let token = self.settings.server.iter().map(|it| &it.token_file.value);
        [config, data, state, runtime]
            .into_iter()
            .chain(&self.settings.key.value)
            .chain(token.filter(|file| file.exists()))
            .map(|place| std::fs::canonicalize(place).unwrap_or_else(|_| place.clone()))
            .collect()
    }

    /// The same for work in `root`. The directory of an agent's own workspace lies below our
    /// data: there everything else of ours is out of reach, and all other such directories.
    pub(crate) fn own_places_around(&self, root: &Path) -> Vec<PathBuf> {
        let own = self.own_places();
        let around = |place: &&PathBuf| root.starts_with(place);
        let Some(ours) = own.iter().find(around).cloned() else {
            return own;
        };
        let mut places: Vec<PathBuf> = own.into_iter().filter(|place| *place != ours).collect();
        // Down from our place to the directory, everything beside the way.
        let mut above = ours;
        while above != root {
            let beside = std::fs::read_dir(&above).into_iter().flatten().flatten();
            let beside: Vec<PathBuf> = beside.map(|entry| entry.path()).collect();
            let Some(next) = beside.iter().find(|path| root.starts_with(path)).cloned() else {
                break;
            };
            places.extend(beside.into_iter().filter(|path| *path != next));
            above = next;
        }
        places
    }

    /// The workspace of an agent whose directory `root` is. Only what lies below our own data
    /// is looked up.
    pub(crate) fn place_of(
        &self,
        root: &Path,
        trail: &Trail,
    ) -> Result<Option<WorkspaceId>, CliError> {
        let data = std::fs::canonicalize(&self.paths.data);
        if !data.is_ok_and(|data| root.starts_with(data)) {
            return Ok(None);
        }
        let (clock, entropy) = (Arc::new(SystemClock), Arc::new(SystemEntropy));
        let progress = Progress::open(trail.clone(), clock, entropy)?;
        Ok(progress.at(root)?.map(|place| place.workspace))
    }

    /// Ends what a crash cut off, if there is anything: whatever the command is, it
    /// must not work on a tree that is half-way.
    pub(crate) fn recover(&mut self) -> Result<(), CliError> {
        if safepoint_state::is_unfinished(&self.paths.state) {
            self.state()?;
        }
        Ok(())
    }

    /// Opens the snapshots, and ends what a crash cut off.
    pub(crate) fn state(&mut self) -> Result<State, CliError> {
        let trail = self.trail()?;
        let search = self.environment.path("PATH");
        let around = safepoint_state::Surroundings {
            data: self.paths.data.clone(),
            state: self.paths.state.clone(),
            runtime: self.paths.runtime.clone(),
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            git: Git::find(
                search.as_deref().map(Path::as_os_str),
                self.environment.variables(),
            ),
            lock_timeout: Duration::from_micros(self.settings.lock_timeout.value.as_micros()),
            cap: Some(self.settings.object_cap.value.0),
            actor: self.actor()?,
            variables: self.environment.variables(),
        };
        let state = State::open(trail, around)?;
        for recovered in state.recover()? {
            let place = recovered.workspace.display().to_string();
            let what = recovered.summary;
            match recovered.end {
                End::Finished => self.console.say(&format!(
                    "recovered: `{what}` was cut off in `{place}`, and is now finished"
                )),
                End::WithoutSecrets => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and is now finished but for the encrypted files: roll back once more"
                )),
                End::Dropped => self.console.say(&format!(
                    "recovered: `{what}` was cut off before it touched `{place}`, and was dropped"
                )),
                End::TakenBack => self.console.say(&format!(
                    "recovered: `{what}` was cut off in `{place}`, and what it had done was taken back"
                )),
                End::Changed(paths) => {
                    let named: Vec<String> = paths
                        .iter()
                        .take(5)
                        .map(|path| format!("`{}`", safepoint_state::path::display(path)))
                        .collect();
                    let more = paths.len().saturating_sub(named.len());
                    let named = match more {
                        0 => named.join(", "),
                        _ => format!("{} and {more} more", named.join(", ")),
                    };
                    self.console.warn(&format!(
                        "`{what}` was cut off in `{place}`; because somebody changed {named} since, it was not finished: what it had done elsewhere was taken back, and those changes were kept"
                    ));
                }
                End::Unknown => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and nobody saw how far it came: `safepoint log` shows what changed, `safepoint undo` takes it back"
                )),
                End::Failed(error) => self.console.warn(&format!(
                    "`{what}` was cut off in `{place}`, and cannot be finished yet: {error}"
                )),
            }
        }
        Ok(state)
    }

    /// The workspace: the directory that was named, or the nearest one upwards that is one.
    pub(crate) fn workspace(&self) -> Result<Workspace, CliError> {
        let start =
            std::fs::canonicalize(&self.directory).unwrap_or_else(|_| self.directory.clone());
        let root = if self.directory_is_named {
            start
        } else {
            self.find_workspace(&start)?
        };
        self.workspace_at(&root)
    }

    /// Whether a directory was named with `-C`.
    pub(crate) fn names_directory(&self) -> bool {
        self.directory_is_named
    }

    /// Whether a server lets whoever asks have to do with this workspace: only with the
    /// one that they named, which it has checked. Whoever is at a terminal may with all.
    pub(crate) fn keep_to(&self, workspace: &Path, what: &'static str) -> Result<(), CliError> {
        let here = std::fs::canonicalize(&self.directory);
        match self.served.is_none() || here.is_ok_and(|here| here == workspace) {
            true => Ok(()),
            false => Err(CliError::NotFound {
                what,
                name: "of another workspace".to_owned(),
            }),
        }
    }

    /// The workspace at `root`, with the rules of the settings.
    pub(crate) fn workspace_at(&self, root: &Path) -> Result<Workspace, CliError> {
        self.keep_to(root, "workspace")?;
        self.under_rules(root)
    }

    fn under_rules(&self, root: &Path) -> Result<Workspace, CliError> {
        let mut patterns = Patterns {
            exclude: self.settings.project.exclude.clone(),
            include: self.settings.project.include.clone(),
        };
        // What is ours is no part of the work, and reading our own store would drop its locks.
        let ours = [&self.paths.data, &self.paths.state, &self.paths.runtime];
        for directory in ours {
            let place = std::fs::canonicalize(directory);
            patterns.leave_out(root, place.as_ref().unwrap_or(directory));
        }
        Ok(Workspace {
            root: root.to_owned(),
            rules: Rules::new(patterns)?,
            // An agent can write the project's file, and what it names would run outside its fence;
            // at a server with the rights of the server, whoever asks.
            providers: self
                .settings
                .project
                .state_providers
                .iter()
                .filter(|_| self.served.is_none())
                .filter(|_| self.environment.path("SAFEPOINT_AGENT").is_none())
                .map(|(name, provider)| {
                    let provider = Provider {
                        capture: provider.capture.clone(),
                        restore: provider.restore.clone(),
                    };
                    (name.clone(), provider)
                })
                .collect(),
        })
    }

    fn find_workspace(&self, start: &Path) -> Result<PathBuf, CliError> {
        let home = self.environment.path("HOME");
        // A home directory or a whole disk is never meant without being named.
        let too_wide = |path: &Path| path.parent().is_none() || home.as_deref() == Some(path);
        let marked = |path: &&Path| {
            [".checkpoints", "safepoint.yaml", ".git"]
                .iter()
                .any(|name| path.join(name).symlink_metadata().is_ok())
        };
        if let Some(found) = start
            .ancestors()
            .take_while(|path| !too_wide(path))
            .find(marked)
        {
            return Ok(found.to_owned());
        }
        if too_wide(start) {
            return Err(CliError::Invalid {
                message: format!(
                    "`{}` is too wide to be a workspace by default",
                    start.display()
                ),
                suggestion: "change into a project, or name the directory with `-C`",
            });
        }
        Ok(start.to_owned())
    }

    fn surroundings(&self, lost_store: LostStore) -> Result<Surroundings, CliError> {
        let blobs = Blobs::new(self.paths.data.join("blobs"));
        let blobs = match &self.settings.objects.value {
            None => blobs,
            Some(address) => {
                let variables = |name: &str| self.environment.text(name);
                blobs.shared(Arc::new(Depot::open(address, &variables)?))
            }
        };
        Ok(Surroundings {
            keys: match &self.settings.key.value {
                Some(file) => file.clone(),
                None => self.paths.data.join("keys"),
            },
            witnesses: self.paths.state.join("witness"),
            blobs,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            lost_store,
        })
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
