//! Snapshots of one user: where everything is, and who may work when.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use safepoint_database::{Address, DatabaseError};
use safepoint_model::{ActionId, Clock, Entropy, Timestamp};
use safepoint_store::{Durability, durable};
use safepoint_trail::{Actor, Draft, FixedKind, Stream, Trail};
use serde_json::Value;

use crate::account::OpenActions;
use crate::git::Git;
use crate::known_git::Caller;
use crate::lock::{self, Hold};
use crate::moved::Ledger;
use crate::objects::{self, Objects};
use crate::part::{Provider, Subject};
use crate::scan::Rules;
use crate::scan::cache::{Cache, Validity};
use crate::snapshot::{self, Action, COMPONENT, Said, Selection, Snapshot, SnapshotId, Source};
use crate::{ContentId, StateError};

/// Everything snapshots need besides a trail.
#[derive(Clone)]
pub struct Surroundings {
    /// Where objects and caches are kept.
    pub data: PathBuf,
    /// Where journals and locks are kept.
    pub state: PathBuf,
    /// Where watchers are reached.
    pub runtime: PathBuf,
    /// The wall clock.
    pub clock: Arc<dyn Clock>,
    /// Random bytes.
    pub entropy: Arc<dyn Entropy>,
    /// Git, if there is one.
    pub git: Option<Git>,
    /// How long to wait for another process.
    pub lock_timeout: Duration,
    /// How many bytes the object store may have.
    pub cap: Option<u64>,
    /// Who does it.
    pub actor: Actor,
    /// The variables of the user's process, for programs that are run for them.
    pub variables: Vec<(OsString, OsString)>,
    /// Where the programs of databases are searched for, if not along the `PATH` among them.
    pub program_path: Option<OsString>,
}

impl Surroundings {
    /// A directory for what does not fit in memory.
    pub(crate) fn scratch(&self) -> Result<PathBuf, StateError> {
        let scratch = self.data.join("scratch");
        durable::create_directory(&scratch)?;
        Ok(scratch)
    }

    /// What reaching a database needs.
    pub(crate) fn access(&self) -> Result<safepoint_database::Access, StateError> {
        let mut variables: BTreeMap<_, _> = self.variables.iter().cloned().collect();
        if let Some(path) = &self.program_path {
            variables.insert("PATH".into(), path.clone());
        }
        Ok(safepoint_database::Access {
            variables,
            scratch: self.scratch()?,
            lock_timeout: self.lock_timeout,
        })
    }
}

/// A directory that snapshots are made of.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its path, absolute and without links.
    pub root: PathBuf,
    /// What is not captured.
    pub rules: Rules,
    /// The commands that own states, by the names of the states.
    pub providers: BTreeMap<String, Provider>,
}

impl Workspace {
    /// The same without the files of databases that are captured by themselves: two ways
    /// back for one thing would get into each other's way.
    pub(crate) fn without<'s>(
        &self,
        subjects: impl IntoIterator<Item = &'s Subject>,
    ) -> Result<Self, StateError> {
        let mut patterns = self.rules.patterns().clone();
        let known = patterns.exclude.len();
        for subject in subjects {
            let Subject::Database { address, .. } = subject else {
                continue;
            };
            let Some(file) = address.file() else { continue };
            for end in ["", "-wal", "-shm", "-journal"] {
                let mut path = file.as_os_str().to_owned();
                path.push(end);
                patterns.leave_out(&self.root, path.as_ref());
            }
        }
        if patterns.exclude.len() == known {
            return Ok(self.clone());
        }
        Ok(Self {
            rules: Rules::new(patterns)?,
            ..self.clone()
        })
    }
}

/// How a database may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseReach {
    /// The directory that its file has to lie in.
    pub within: Option<PathBuf>,
    /// Whether nothing is done by it that no savepoint takes back.
    pub is_kept_inside: bool,
}

/// Says how a database may be reached, or why it may not.
pub type DatabaseCheck = Arc<dyn Fn(&Address) -> Result<DatabaseReach, String> + Send + Sync>;

/// The snapshots in one store.
pub struct State {
    pub(crate) trail: Trail,
    pub(crate) around: Surroundings,
    pub(crate) access: Access,
    /// The session that what is rolled back here belongs to.
    pub(crate) session: Option<String>,
    /// For whom it works.
    pub(crate) caller: Caller,
    /// Where clients' file tools say that no name may move, if they do.
    pub(crate) freezes: Option<PathBuf>,
    /// Which databases may be reached; all of them without one.
    pub(crate) databases: Option<DatabaseCheck>,
    /// What goes on in a workspace besides, as whoever starts it knows.
    pub(crate) open_actions: Option<OpenActions>,
    /// Which histories are of other directories than their paths say, once it was asked.
    pub(crate) ledger: OnceLock<Ledger>,
}

/// Whether a command changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It does: it ends what was cut off before it begins.
    Writing,
    /// It only looks: it neither finishes nor takes back what was cut off.
    Reading,
}

impl State {
    /// Opens the snapshots that `trail`'s store records.
    pub fn open(trail: Trail, around: Surroundings) -> Result<Self, StateError> {
        trail.store().migrate(&COMPONENT)?;
        Ok(Self {
            trail,
            around,
            access: Access::Writing,
            session: None,
            caller: Caller::Person,
            freezes: None,
            databases: None,
            open_actions: None,
            ledger: OnceLock::new(),
        })
    }

    /// The same, for a command with this access.
    #[must_use]
    pub fn with_access(self, access: Access) -> Self {
        Self { access, ..self }
    }

    /// The same, for a command of an agent in this session.
    #[must_use]
    pub fn with_session(self, session: Option<String>) -> Self {
        Self { session, ..self }
    }

    /// The same, for an agent or for a person.
    #[must_use]
    pub fn with_caller(self, caller: Caller) -> Self {
        Self { caller, ..self }
    }

    /// The same, moving no name on which a client's file tool relies; that is said in this
    /// directory.
    #[must_use]
    pub fn with_freezes(self, directory: PathBuf) -> Self {
        let freezes = Some(directory);
        Self { freezes, ..self }
    }

    /// The same, with databases reached as this says.
    #[must_use]
    pub fn with_database_check(self, databases: DatabaseCheck) -> Self {
        Self {
            databases: Some(databases),
            ..self
        }
    }

    /// The same, with what goes on in workspaces told by this.
    #[must_use]
    pub fn with_open_actions(self, open_actions: OpenActions) -> Self {
        Self {
            open_actions: Some(open_actions),
            ..self
        }
    }

    /// Refuses a database that may not be reached, and says how it may be.
    pub(crate) fn check_database(&self, address: &Address) -> Result<DatabaseReach, StateError> {
        let checked = self.databases.as_ref().map(|check| check(address));
        match checked {
            Some(Err(why)) => Err(StateError::from(DatabaseError::Unsupported {
                address: address.to_string(),
                why,
            })),
            Some(Ok(reach)) => Ok(reach),
            None => Ok(DatabaseReach::default()),
        }
    }

    /// The trail that tells of them.
    pub fn trail(&self) -> &Trail {
        &self.trail
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.around.clock.now()
    }

    fn object_options(&self) -> Result<objects::Options, StateError> {
        let shared = match self.trail.depot() {
            Some(depot) => {
                let store = Arc::clone(self.trail.store());
                Some(objects::Shared::open(Arc::clone(depot), store)?)
            }
            None => None,
        };
        Ok(objects::Options {
            lock_timeout: self.around.lock_timeout,
            cap: self.around.cap,
            entropy: Arc::clone(&self.around.entropy),
            shared,
        })
    }

    /// The object store, for reading and adding.
    pub fn objects(&self) -> Result<Objects, StateError> {
        ready_threads();
        Objects::open(&self.objects_directory(), &self.object_options()?)
    }

    /// The object store, for nobody else meanwhile.
    pub(crate) fn objects_alone(&self) -> Result<Objects, StateError> {
        ready_threads();
        Objects::open_alone(&self.objects_directory(), &self.object_options()?)
    }

    fn objects_directory(&self) -> PathBuf {
        // Each trail has its own: what one store refers to, another knows nothing of,
        // and would collect.
        self.around.data.join("objects").join(self.trail_name())
    }

    /// A short name for the trail that is fit for files.
    pub(crate) fn trail_name(&self) -> String {
        let trail = ContentId::of(self.trail.key().to_string().as_bytes()).to_string();
        trail.chars().take(16).collect()
    }

    /// Waits until nobody rolls the workspace back, and keeps it so.
    pub(crate) fn hold(&self, workspace: &Path, hold: Hold) -> Result<File, StateError> {
        let path = self.lock_path(workspace)?;
        let what = format!("`{}`", workspace.display());
        let held = lock::take(&path, hold, self.around.lock_timeout, &what)?;
        if !self.is_cut_off(workspace) {
            return Ok(held);
        }
        // Whoever had the lock was killed half-way. What is there is ended first.
        drop(held);
        self.recover_for(Some(workspace))?;
        let held = lock::take(&path, hold, self.around.lock_timeout, &what)?;
        if self.access == Access::Writing {
            self.refuse_unfinished(workspace)?;
        }
        Ok(held)
    }

    pub(crate) fn lock_path(&self, workspace: &Path) -> Result<PathBuf, StateError> {
        let locks = self.around.state.join("locks");
        durable::create_directory(&locks)?;
        Ok(locks.join(format!("{}.lock", key(workspace))))
    }

    pub(crate) fn cache_path(&self, workspace: &Path) -> PathBuf {
        let name = format!("{}.stat", key(workspace));
        self.around.data.join("cache").join(name)
    }

    pub(crate) fn base_path(&self, workspace: &Path) -> PathBuf {
        let name = format!("{}.watch", key(workspace));
        self.around.data.join("cache").join(name)
    }

    pub(crate) fn journal_directory(&self) -> PathBuf {
        crate::restore::journals(&self.around.state)
    }

    pub(crate) fn validity(
        &self,
        workspace: &Workspace,
        objects: &Objects,
    ) -> Result<Validity, StateError> {
        Ok(Validity {
            generation: objects.generation()?,
            rules: workspace.rules.fingerprint(),
        })
    }

    pub(crate) fn cache(&self, workspace: &Workspace, validity: Validity) -> Cache {
        Cache::load(&self.cache_path(&workspace.root), validity)
    }

    /// One snapshot, by the beginning of its id.
    pub fn find(&self, prefix: &str) -> Result<Snapshot, StateError> {
        let found = self
            .trail
            .store()
            .read(|sql| snapshot::find_said(&self.trail, sql, prefix));
        let (mut snapshot, said) = found?;
        self.place_of_row(&mut snapshot.workspace, said.entry)?;
        Ok(snapshot)
    }

    /// The same, as it was recorded, with what else the trail says of it.
    pub(crate) fn find_said(&self, id: &SnapshotId) -> Result<(Snapshot, Said), StateError> {
        self.trail
            .store()
            .read(|sql| snapshot::find_said(&self.trail, sql, id.as_str()))
    }

    /// Snapshots, newest first.
    pub fn list(&self, selection: &Selection) -> Result<Vec<Snapshot>, StateError> {
        let sources = match &selection.workspace {
            Some(workspace) => Some(self.sources(workspace)?),
            None => None,
        };
        let found = self
            .trail
            .store()
            .read(|sql| snapshot::list_placed(sql, sources.as_deref(), selection.limit))?;
        let placed = found.into_iter().map(|(mut one, entry)| {
            self.place_of_row(&mut one.workspace, entry)?;
            Ok(one)
        });
        placed.collect()
    }

    /// One action, by the beginning of its id.
    pub fn find_action(&self, prefix: &str) -> Result<Action, StateError> {
        let found = self
            .trail
            .store()
            .read(|sql| snapshot::find_action_said(&self.trail, sql, prefix));
        let (mut action, said) = found?;
        self.place_of_row(&mut action.workspace, said.entry)?;
        Ok(action)
    }

    /// Whether an action is recorded.
    pub fn has_recorded(&self, action: &ActionId) -> Result<bool, StateError> {
        self.trail
            .store()
            .read(|sql| snapshot::is_recorded(&self.trail, sql, action))
    }

    /// What happened in a workspace, newest first. To show: what is acted upon is found by its id.
    pub fn actions(&self, workspace: &Path, limit: u32) -> Result<Vec<Action>, StateError> {
        let sources = self.sources(workspace)?;
        self.placed_actions(Some(&sources), limit)
    }

    /// What happened in all workspaces, newest first.
    pub fn all_actions(&self, limit: u32) -> Result<Vec<Action>, StateError> {
        self.placed_actions(None, limit)
    }

    fn placed_actions(
        &self,
        sources: Option<&[Source]>,
        limit: u32,
    ) -> Result<Vec<Action>, StateError> {
        let found = self
            .trail
            .store()
            .read(|sql| snapshot::actions_placed(sql, sources, limit))?;
        let placed = found.into_iter().map(|(mut one, entry)| {
            self.place_of_row(&mut one.workspace, entry)?;
            Ok(one)
        });
        placed.collect()
    }

    /// Whether a directory is gone of which something is known.
    pub fn is_gone(&self, workspace: &Path) -> Result<bool, StateError> {
        let selection = Selection {
            workspace: Some(workspace.to_owned()),
            limit: Some(1),
        };
        Ok(workspace.symlink_metadata().is_err() && !self.list(&selection)?.is_empty())
    }

    /// Keeps a snapshot even when it has expired, or no longer.
    pub fn pin(&self, snapshot: &Snapshot, pinned: bool) -> Result<(), StateError> {
        let kind = if pinned {
            safepoint_trail::Kind::fixed("checkpoint_pinned")
        } else {
            safepoint_trail::Kind::fixed("checkpoint_unpinned")
        };
        self.trail.write(Durability::Sync, |writing| {
            snapshot::set_pinned(writing.sql(), &snapshot.id, pinned)?;
            let body = serde_json::json!({ "checkpoint_id": snapshot.id });
            writing.append(self.draft(&snapshot.workspace, kind, None, body))?;
            Ok(())
        })
    }

    /// An entry of the trail about a workspace.
    pub(crate) fn draft(
        &self,
        workspace: &Path,
        kind: FixedKind,
        action: Option<&ActionId>,
        mut body: Value,
    ) -> Draft {
        if let Value::Object(fields) = &mut body {
            let path = crate::path::display(workspace.as_os_str().as_bytes());
            fields.insert("workspace".to_owned(), Value::String(path));
        }
        Draft {
            stream: stream(workspace),
            actor: self.around.actor.clone(),
            kind: kind.into(),
            action_id: action.cloned(),
            body,
        }
    }
}

/// A short name for a workspace that is fit for files and streams.
pub(crate) fn key(workspace: &Path) -> String {
    ContentId::of(workspace.as_os_str().as_bytes())
        .to_string()
        .chars()
        .take(16)
        .collect()
}

/// The stream of the trail that tells of a workspace.
pub fn stream(workspace: &Path) -> Stream {
    format!("dir:{}", key(workspace))
        .parse()
        .unwrap_or_else(|_| Stream::store())
}

/// The threads that walk trees. Deep trees are walked by recursion, and threads that wait take
/// on other branches: their space is only named, and what is not used costs nothing. The
/// threads do cost, so there are none before the first tree.
fn ready_threads() {
    static READY: std::sync::Once = std::sync::Once::new();
    READY.call_once(|| {
        // That they are there already is no failure.
        let _ = rayon::ThreadPoolBuilder::new()
            .stack_size(512 << 20)
            .build_global();
    });
}
