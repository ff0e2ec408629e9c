//! The workspaces of one store: opened, found, listed.
//!
//! Nothing is updated: where a workspace stands is the last of its moves.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use safepoint_model::{Clock, Entropy, Span, TaskId, Timestamp, WorkspaceId};
use safepoint_store::Sql;
use safepoint_trail::{Mark, Trail, Writing};
use serde::Serialize;

use crate::judged::{Heads, Judged};
use crate::known::KnownWorkspaces;
use crate::meter::{Budget, Tolerance};
use crate::role::Name;
use crate::state::State;
use crate::table::{self, Made, StoredBinding, StoredMove};
use crate::taxonomy::Taxonomy;
use crate::{COMPONENT, ProgressError};

/// The workspaces of one store.
#[derive(Clone)]
pub struct Progress {
    pub(crate) trail: Trail,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) tolerance: Tolerance,
    pub(crate) heads: Heads,
    /// The newest moves and bindings of workspaces, which the trail was found to tell of, and how
    /// often something had come to nothing then.
    pub(crate) moves: Judged<(u64, Vec<StoredMove>)>,
    pub(crate) bindings: Judged<(u64, Vec<StoredBinding>)>,
    /// Parents that can take signals and have nothing waiting for them, as of a mark.
    pub(crate) heard: Judged<Mark>,
    pub(crate) known: KnownWorkspaces,
    taxonomies: Arc<Mutex<HashMap<WorkspaceId, ReadTaxonomy>>>,
}

/// The text of a taxonomy, and what it says.
type ReadTaxonomy = (String, Arc<Taxonomy>);

/// How many taxonomies to remember before starting over.
const TAXONOMIES_REMEMBERED: usize = 64;

/// A workspace as it is now.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workspace {
    /// Its identifier.
    pub workspace_id: WorkspaceId,
    /// The root of its tree.
    pub run: WorkspaceId,
    /// The one above it.
    pub parent: Option<WorkspaceId>,
    /// Its role, which never changes.
    pub role: Name,
    /// What it was told to do.
    pub directive: Option<String>,
    /// What it may take.
    #[serde(skip_serializing_if = "Budget::is_empty")]
    pub budget: Budget,
    /// How long it may be at work before it fails.
    pub timeout: Option<Span>,
    /// The task that it is or was for.
    pub task: Option<TaskId>,
    /// Where it stands.
    pub state: State,
    /// Why, if somebody said so: what it is blocked by, or how it failed.
    pub reason: Option<String>,
    /// Where a pause will end.
    pub former: Option<State>,
    /// When it was made.
    pub created: Timestamp,
}

impl Workspace {
    pub(crate) fn read(sql: &mut dyn Sql, made: Made) -> Result<Self, ProgressError> {
        let (standing, _) = table::standing(sql, &made.id)?;
        let task = table::task_of(sql, &made.id)?;
        let reason = table::last_reason(sql, &made.id)?;
        Ok(Self {
            workspace_id: made.id,
            run: made.run,
            parent: made.parent,
            role: made.role,
            directive: made.directive,
            budget: made.budget,
            timeout: made.timeout,
            task,
            state: standing.state,
            reason,
            former: standing.former,
            created: made.created,
        })
    }
}

impl Progress {
    /// The workspaces in the store of `trail`.
    pub fn open(
        trail: Trail,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Result<Self, ProgressError> {
        trail.store().migrate(&COMPONENT)?;
        Ok(Self {
            trail,
            clock,
            entropy,
            tolerance: Tolerance::default(),
            heads: Heads::default(),
            moves: Judged::default(),
            bindings: Judged::default(),
            heard: Judged::default(),
            known: KnownWorkspaces::default(),
            taxonomies: Arc::default(),
        })
    }

    /// The workspace of this id.
    pub fn workspace(&self, id: &WorkspaceId) -> Result<Workspace, ProgressError> {
        self.trail.store().read(|sql| {
            let made = table::made(sql, id)?;
            Workspace::read(sql, made)
        })
    }

    /// All workspaces, the oldest first.
    pub fn workspaces(&self) -> Result<Vec<Workspace>, ProgressError> {
        self.trail.store().read(|sql| {
            let all = table::all_made(sql)?;
            all.into_iter()
                .map(|made| Workspace::read(sql, made))
                .collect()
        })
    }

    /// The taxonomy of a run. Its text is read each time, and what it says only once.
    pub(crate) fn taxonomy(
        &self,
        sql: &mut dyn Sql,
        run: &WorkspaceId,
    ) -> Result<Arc<Taxonomy>, ProgressError> {
        let text = table::taxonomy_text(sql, run)?;
        let known = || {
            self.taxonomies
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((same, taxonomy)) = known().get(run)
            && *same == text
        {
            return Ok(Arc::clone(taxonomy));
        }
        let taxonomy = Arc::new(table::read_taxonomy(run, &text)?);
        let mut known = known();
        if known.len() >= TAXONOMIES_REMEMBERED {
            known.clear();
        }
        known.insert(run.clone(), (text, Arc::clone(&taxonomy)));
        Ok(taxonomy)
    }

    /// The present, and later than everything that is recorded. The next entry bears it.
    pub(crate) fn moment(&self, writing: &mut Writing<'_>) -> Result<Timestamp, ProgressError> {
        Ok(writing.moment())
    }
}
