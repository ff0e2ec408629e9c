//! Where a command works: the workspace and its rules, and what of ours lies around it.

use std::path::{Path, PathBuf};

use safepoint_progress::Place;
use safepoint_state::{Patterns, Provider, Rules, Workspace};
use safepoint_store::Location;

use super::Context;
use crate::error::CliError;
use crate::paths::{Paths, find_upwards};
use crate::settings::{Origin, Setting, Settings};

impl Context {
    /// The directory of an agent's workspace, under the settings of the one that it was made
    /// from: its agent can write its own. Whoever asks over a connection did not name it: it
    /// is where we made it.
    pub(crate) fn directory_of(&mut self, place: &Place) -> Result<Workspace, CliError> {
        if place.origin.is_dir() {
            self.move_to(&place.origin)?;
        }
        self.under_rules(&place.path)
    }

    /// The atlases that are named for here, and by whom: an administrator's always, then the
    /// project's, or else the user's own.
    pub(crate) fn named_atlases(&self) -> Result<Vec<Setting<PathBuf>>, CliError> {
        self.named_in(&self.settings)
    }

    fn named_in(&self, settings: &Settings) -> Result<Vec<Setting<PathBuf>>, CliError> {
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
        self.checked(self.named_atlases()?)
    }

    /// The atlases that apply here by now, whatever the settings said when this command began.
    pub(crate) fn atlases_now(&self) -> Result<Vec<PathBuf>, CliError> {
        self.checked(self.named_in(&self.settings_now()?)?)
    }

    fn checked(&self, named: Vec<Setting<PathBuf>>) -> Result<Vec<PathBuf>, CliError> {
        for atlas in named.iter().filter(|it| it.origin == Origin::Project) {
            self.keep_inside(&self.beside_project_file()?, &atlas.value)?;
        }
        Ok(named.into_iter().map(|atlas| atlas.value).collect())
    }

    /// Where the project's file lies, which may be above the workspace: a repository inside a
    /// project is judged by the project's rules.
    fn beside_project_file(&self) -> Result<PathBuf, CliError> {
        let file = find_upwards(self.rules_place(), "safepoint.yaml");
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

    /// Where everything of ours lies: no agent touches it.
    pub(crate) fn own_places(&self) -> Vec<PathBuf> {
        let Paths {
            config,
            data,
            state,
            runtime,
            caches: _, // agents write there
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

    /// What nobody but an operator changes: the same places, also by the names that lead to
    /// them over links, and the files of a store that was put elsewhere.
    pub(crate) fn guarded_places(&self, root: &Path) -> Vec<PathBuf> {
        let mut places = self.own_places_around(root);
        let Paths {
            config,
            data,
            state,
            runtime,
            caches: _, // agents write there
        } = &self.paths;
        let named = [config, data, state, runtime].into_iter().cloned();
        let named = named.chain(self.store_files());
        let around = |place: &PathBuf| {
            let real = std::fs::canonicalize(place);
            root.starts_with(place) || real.is_ok_and(|real| root.starts_with(real))
        };
        for place in named.filter(|place| !around(place)) {
            if !places.contains(&place) {
                places.push(place);
            }
        }
        places
    }

    /// The files of a SQLite store that does not lie with the rest of ours.
    pub(crate) fn store_files(&self) -> Vec<PathBuf> {
        let Location::Sqlite(file) = &self.settings.store.value else {
            return Vec::new();
        };
        let file = self.environment.directory.join(file);
        let file = std::fs::canonicalize(&file).unwrap_or(file);
        let beside = |end: &str| {
            let mut name = file.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        ["", "-wal", "-shm", "-journal"].map(beside).to_vec()
    }

    /// The workspace: the directory that was named, or the nearest one upwards that is one.
    pub(crate) fn workspace(&self) -> Result<Workspace, CliError> {
        self.workspace_at(&self.workspace_root()?)
    }

    pub(super) fn workspace_root(&self) -> Result<PathBuf, CliError> {
        if let Some(root) = &self.root {
            return Ok(root.clone());
        }
        let start = real_path(&self.directory);
        let is_missing = start.symlink_metadata().is_err();
        let known = match is_missing && self.served.is_none() {
            true => self.nearest_known(&start),
            false => None,
        };
        if self.directory_is_named {
            // One that is there was not meant by a name of something that is not.
            let gone = known.filter(|known| known.symlink_metadata().is_err());
            return Ok(gone.unwrap_or(start));
        }
        match (self.find_workspace(&start), known) {
            // What was deleted belonged to the nearest, whether or not that is still there.
            (Ok(found), Some(known)) if found.starts_with(&known) && is_marked(&found) => Ok(found),
            (_, Some(known)) => Ok(known),
            (found, None) => found,
        }
    }

    /// Refuses a directory that is not there and of which nothing is recorded.
    pub(super) fn refuse_unrecorded(&self) -> Result<(), CliError> {
        let root = self.workspace_root()?;
        match self.nearest_known(&root) == Some(root) {
            true => Ok(()),
            false => Err(CliError::NotFound {
                what: "directory",
                name: self.directory.display().to_string(),
            }),
        }
    }

    /// The nearest directory upwards of which something is recorded.
    fn nearest_known(&self, start: &Path) -> Option<PathBuf> {
        let trail = self.trail().ok()?;
        safepoint_state::nearest_recorded(&trail, start).ok()?
    }

    /// Whether an agent calls, through a hook, the fence's broker or an MCP server.
    pub(crate) fn is_agent(&self) -> bool {
        self.environment.path("SAFEPOINT_AGENT").is_some()
    }

    /// Whether it is an agent's client, or a server, that asks, or an agent.
    pub(crate) fn speaks_for_agent(&self) -> bool {
        self.is_agent() || self.agent.is_some() || self.served.is_some()
    }

    /// Whether all workspaces are looked at, if that is asked for: by no agent, whose own is the
    /// one that it works in.
    pub(crate) fn looks_everywhere(&self, asked: bool) -> Result<bool, CliError> {
        match asked && self.is_agent() {
            true => Err(CliError::Invalid {
                message: "an agent sees the workspace that it works in".to_owned(),
                suggestion: "leave out `--all-workspaces`",
            }),
            false => Ok(asked),
        }
    }

    /// Whether a directory was named with `-C`.
    pub(crate) fn names_directory(&self) -> bool {
        self.directory_is_named
    }

    /// Whether whoever asks may have to do with this workspace. Over a server: only with the
    /// one that they named, which it has checked. An agent: only with the one that it works in.
    /// Whoever is at a terminal may with all.
    pub(crate) fn keep_to(&self, workspace: &Path, what: &'static str) -> Result<(), CliError> {
        let may = match (self.served.is_some(), self.is_agent()) {
            (true, _) => std::fs::canonicalize(&self.directory).is_ok_and(|here| here == workspace),
            (false, true) => self.workspace_root()? == workspace,
            (false, false) => true,
        };
        match may {
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
        self.refuse_unadopted(root)?;
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
        let may_run = self.may_run_providers()?;
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
                .filter(|_| may_run)
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

    /// Whether programs that the project's file names are run: for no agent, also for one that
    /// does not say that it is one.
    fn may_run_providers(&self) -> Result<bool, CliError> {
        let are_there = !self.settings.project.state_providers.is_empty();
        if !are_there || self.served.is_some() || self.is_agent() {
            return Ok(false);
        }
        Ok(!self.control()?.is_within_an_action()?)
    }

    fn find_workspace(&self, start: &Path) -> Result<PathBuf, CliError> {
        let home = self.environment.path("HOME");
        // A home directory or a whole disk is never meant without being named.
        let too_wide = |path: &Path| path.parent().is_none() || home.as_deref() == Some(path);
        if let Some(found) = start
            .ancestors()
            .take_while(|path| !too_wide(path))
            .find(|path| is_marked(path))
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
}

/// Whether something in a directory says that it is a workspace.
fn is_marked(path: &Path) -> bool {
    [".checkpoints", "safepoint.yaml", ".git"]
        .iter()
        .any(|name| path.join(name).symlink_metadata().is_ok())
}

/// So many links that lead to nothing are followed.
const MAX_LINKS: u32 = 40;

/// A path without links, as far as it is there: a directory that was deleted keeps its name.
pub(crate) fn real_path(path: &Path) -> PathBuf {
    without_links(path, MAX_LINKS)
}

fn without_links(path: &Path, most: u32) -> PathBuf {
    let mut missing = Vec::new();
    for above in path.ancestors() {
        if let Ok(real) = std::fs::canonicalize(above) {
            return missing
                .iter()
                .rev()
                .fold(real, |real, name| real.join(name));
        }
        // A link to what was deleted stands for that.
        if let (Ok(target), Some(beside), 1..) = (above.read_link(), above.parent(), most) {
            let target = beside.join(target);
            let rest = missing.iter().rev().collect::<PathBuf>();
            return without_links(&target.join(rest), most - 1);
        }
        match above.file_name() {
            Some(name) => missing.push(name.to_owned()),
            None => break,
        }
    }
    path.to_owned()
}
