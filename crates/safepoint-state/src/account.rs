//! The account of a look at a workspace: each change since the last one is somebody's.
//!
//! What an action did is recorded with its end. What has changed besides is a person's, most
//! often, and is recorded by whoever looks next, as an action that was observed. So that nothing
//! is told twice and nothing by nobody, one process looks at a time ([`State::hold_look`]), and
//! only after its look asks what else goes on: what such an action has written, it will tell
//! itself. Where nobody sees what an action writes, the rest is left to the first look after it;
//! the states until then are marked (`untold`), and no base for a comparison.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use safepoint_fence::Writes;
use safepoint_model::ActionId;

use crate::StateError;
use crate::lock::{self, Hold};
use crate::objects::Objects;
use crate::path::TreePath;
use crate::record;
use crate::scope::Scope;
use crate::share::{LinkedShare, Share};
use crate::snapshot::{self, Action, Selection, Snapshot};
use crate::state::State;
use crate::tree::{self, Entry};

/// So many states are looked through at first, and so many at most, for one to compare with.
const LOOKED_THROUGH: [u32; 2] = [20, 2000];

/// An action that goes on in a workspace, and may write there.
#[derive(Clone, Debug)]
pub struct OpenAction {
    /// Its name.
    pub id: ActionId,
    /// How it is known what it writes.
    pub writes: OpenWrites,
}

/// How it is known what an action writes that goes on.
#[derive(Clone, Debug)]
pub enum OpenWrites {
    /// It has named all of it: these paths and what is below.
    Named(Vec<TreePath>),
    /// The supervisor of this action keeps it. Where there is no journal, nobody knows.
    JournalOf(ActionId),
    /// Its supervisor keeps it. Where there is no journal, what it starts tells of itself.
    JournalOrNothing,
}

/// Says what goes on in a workspace.
pub type OpenActions = Arc<dyn Fn(&Path) -> Result<Vec<OpenAction>, StateError> + Send + Sync>;

/// What others are known to have written, and will tell themselves.
pub(crate) struct OthersWrites {
    paths: BTreeSet<TreePath>,
    /// Directories that were moved or removed as a whole.
    trees: Vec<TreePath>,
    /// These, and what is below.
    named: Vec<TreePath>,
    /// Whether something goes on of which nobody knows what it writes.
    is_unseen: bool,
}

/// What changed since the last look, and no action is known to have done.
pub(crate) struct Observed {
    /// The state that there would be without it, where no checkpoint is that.
    pub(crate) known: Option<Snapshot>,
    pub(crate) action: Action,
}

impl OthersWrites {
    /// Adds what an action that ends now tells itself.
    pub(crate) fn add_own(&mut self, share: &Share, changed: impl Iterator<Item = TreePath>) {
        self.paths.extend(changed);
        match share {
            Share::Observed { paths, .. } => self.paths.extend(paths.iter().cloned()),
            Share::Only(paths) => self.named.extend(paths.iter().cloned()),
            Share::All | Share::Without(_) => {}
        }
    }

    fn add(&mut self, root: &Path, written: &Writes) {
        if let Share::Observed { paths, trees, .. } = Share::of_writes(root, written) {
            self.paths.extend(paths);
            self.trees.extend(trees);
        }
    }

    /// Whether something goes on of which nobody knows what it writes.
    pub(crate) fn is_unseen(&self) -> bool {
        self.is_unseen
    }

    fn is_empty(&self) -> bool {
        self.paths.is_empty() && self.trees.is_empty() && self.named.is_empty()
    }
}

impl State {
    /// Waits until nobody else looks at the workspace to record what has changed, and keeps it so.
    /// It is taken before [`Self::hold`].
    pub(crate) fn hold_look(&self, workspace: &Path) -> Result<File, StateError> {
        let path = self.lock_path(workspace)?.with_extension("look");
        let what = format!("`{}`", workspace.display());
        lock::take(&path, Hold::Alone, self.around.lock_timeout, &what)
    }

    /// What others have written by now, to be asked after a look: whatever is there of them by
    /// then is in it. `own` is the action that looks; `left_by` the one whose programs it is of.
    pub(crate) fn writes_of_others(
        &self,
        root: &Path,
        own: Option<&ActionId>,
        left_by: Option<&ActionId>,
    ) -> Result<OthersWrites, StateError> {
        let mut others = OthersWrites {
            paths: BTreeSet::new(),
            trees: Vec::new(),
            named: Vec::new(),
            is_unseen: false,
        };
        let open = match &self.open_actions {
            Some(open_actions) => open_actions(root)?,
            None => Vec::new(),
        };
        for action in open.iter().filter(|it| Some(&it.id) != own) {
            let supervised = match &action.writes {
                OpenWrites::Named(paths) => {
                    others.named.extend(paths.iter().cloned());
                    continue;
                }
                OpenWrites::JournalOf(supervised) => supervised,
                OpenWrites::JournalOrNothing => &action.id,
            };
            match (&action.writes, self.seen_writes(supervised)) {
                (_, Some(written)) => others.add(root, &written),
                (OpenWrites::JournalOrNothing, None) => {}
                (_, None) => others.is_unseen = true,
            }
        }
        for action in self.late_actions() {
            if Some(&action) != left_by {
                others.add(root, &self.late_writes(&action));
            }
        }
        Ok(others)
    }

    /// What has changed since the last look, and neither an action has told nor one of these
    /// will. Marks the present state where that cannot be said.
    pub(crate) fn account(
        &self,
        objects: &Objects,
        present: &mut Snapshot,
        others: OthersWrites,
    ) -> Result<Option<Observed>, StateError> {
        present.record.untold = others.is_unseen;
        if others.is_unseen {
            return Ok(None);
        }
        match self.observe(objects, present, others) {
            // That an old checkpoint is damaged must not keep a new one from being made.
            Err(StateError::Damaged { .. } | StateError::Missing { .. }) => Ok(None),
            other => other,
        }
    }

    fn observe(
        &self,
        objects: &Objects,
        present: &Snapshot,
        others: OthersWrites,
    ) -> Result<Option<Observed>, StateError> {
        let Some((base, is_latest)) = self.told_base(present)? else {
            return Ok(None);
        };
        if !self.is_as_told(&base)? {
            return Ok(None); // as with a damaged one
        }
        let mut told = base.clone();
        if !is_latest {
            let edits = self.told_since(objects, &base)?;
            self.put_told(objects, &mut told, edits)?;
        }
        if !others.is_empty() {
            let share = Share::Observed {
                paths: others.paths,
                trees: others.trees,
                linked: LinkedShare::Own,
            };
            told = self.own_part(objects, &told, present, &share)?;
            if !others.named.is_empty() {
                told = self.own_part(objects, &told, present, &Share::Only(others.named))?;
            }
        }
        let changes = record::observed_changes(&objects.reader(), &told, present)?;
        if changes.is_empty() {
            return Ok(None);
        }
        let is_base = (told.record.files, told.record.git) == (base.record.files, base.record.git)
            && told.record.root_mode == base.record.root_mode;
        let known = match is_base {
            true => None,
            false => {
                let mut known = present.clone();
                known.id = snapshot::SnapshotId::generate(self.now(), &*self.around.entropy)?;
                known.expiry = crate::restore::automatic_expiry(self.now());
                known.record.origin = snapshot::Origin::Automatic;
                known.record.files = told.record.files;
                known.record.git = told.record.git;
                known.record.root_mode = told.record.root_mode;
                known.record.keep_sealed_of(&told.record, |_| true);
                known.record.sealed = told.record.sealed;
                known.record.untold = true;
                known.record.parts = Vec::new();
                known.record.reason = Some(format!("before what {} shows", present.id));
                Some(known)
            }
        };
        let before = known.as_ref().unwrap_or(&base);
        let action = self.observed_action(before, present, &changes)?;
        Ok(Some(Observed { known, action }))
    }

    /// The newest state that all of what a look covers can be compared with, and whether nothing
    /// was recorded after it.
    fn told_base(&self, present: &Snapshot) -> Result<Option<(Snapshot, bool)>, StateError> {
        let scope = Scope::stored(&present.record.scope)?;
        let fits = |one: &Snapshot| {
            !one.record.untold
                && (one.record.scope.is_empty()
                    || one.record.scope == present.record.scope
                    || Scope::stored(&one.record.scope).is_ok_and(|it| scope.is_covered_by(&it)))
        };
        for limit in LOOKED_THROUGH {
            let recent = self.list(&Selection {
                workspace: Some(present.workspace.clone()),
                limit: Some(limit),
            })?;
            if let Some(place) = recent.iter().position(fits) {
                let base = recent.into_iter().nth(place);
                return Ok(base.map(|base| (base, place == 0)));
            }
        }
        Ok(None)
    }

    /// The paths that actions of a session told which were recorded after a state.
    pub fn paths_told_since(
        &self,
        base: &Snapshot,
        session: Option<&str>,
    ) -> Result<Vec<TreePath>, StateError> {
        let objects = self.objects()?;
        let told = self.told_by_actions_since(&objects, base, |action| {
            action.session.as_deref() == session
        })?;
        Ok(told.files.into_keys().chain(told.git.into_keys()).collect())
    }

    /// What actions told that were recorded after a state: what stands at each path by them, and
    /// whether the last of them was observed.
    pub(crate) fn told_since(
        &self,
        objects: &Objects,
        base: &Snapshot,
    ) -> Result<ToldEdits, StateError> {
        self.told_by_actions_since(objects, base, |_| true)
    }

    fn told_by_actions_since(
        &self,
        objects: &Objects,
        base: &Snapshot,
        counts: impl Fn(&Action) -> bool,
    ) -> Result<ToldEdits, StateError> {
        let (_, said) = self.find_said(&base.id)?;
        let sources = self.sources(&base.workspace)?;
        let actions = self
            .trail
            .store()
            .read(|sql| snapshot::actions_after(sql, &sources, said.entry))?;
        let reader = objects.reader();
        let mut edits = ToldEdits::default();
        for action in actions.into_iter().filter(|it| counts(it)) {
            let found = self
                .find_said(&action.after)
                .and_then(|(after, told)| Ok((after, told, self.find(action.before.as_str())?)));
            let (after, before) = match found {
                // The state has it: it was recorded together with that.
                Ok((_, told, _)) if told.entry <= said.entry => continue,
                Ok((after, _, before)) => (after, before),
                // Somebody else's row is no reason to keep an action from ending.
                Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => continue,
                Err(error) => return Err(error),
            };
            let (old, new) = (&before.record, &after.record);
            let scope = Scope::stored(&old.scope)?.narrowed(&Scope::stored(&new.scope)?);
            let by = match action.is_observed() {
                true => ToldBy::Nobody,
                false => ToldBy::Action,
            };
            for change in tree::changes(&reader, Some(&old.files), Some(&new.files), &scope)? {
                edits.files.insert(change.path, (change.to, by));
            }
            if let (Some(old), Some(new)) = (&old.git, &new.git) {
                for change in tree::changes(&reader, Some(old), Some(new), &scope)? {
                    edits.git.insert(change.path, (change.to, by));
                }
            }
            if let (Some(old), Some(new)) = (old.root_mode, new.root_mode)
                && old != new
            {
                edits.root_mode = Some(new);
            }
        }
        Ok(edits)
    }

    /// A state with what was told since put in its place.
    pub(crate) fn put_told(
        &self,
        objects: &Objects,
        state: &mut Snapshot,
        edits: ToldEdits,
    ) -> Result<(), StateError> {
        let reader = objects.reader();
        let writer = objects.writer();
        let put = |tree: &tree::Subtree, edits: BTreeMap<TreePath, (Option<Entry>, ToldBy)>| {
            let edits = edits.into_iter().map(|(path, (entry, _))| (path, entry));
            tree::edit(&reader, Some(tree), edits, &mut |id, bytes| {
                writer.add_tree(id, bytes)
            })
        };
        if !edits.files.is_empty() {
            state.record.files = put(&state.record.files, edits.files)?;
        }
        if let (Some(git), false) = (&state.record.git, edits.git.is_empty()) {
            state.record.git = Some(put(git, edits.git)?);
        }
        writer.finish()?;
        state.record.root_mode = edits.root_mode.or(state.record.root_mode);
        Ok(())
    }
}

/// Who told a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ToldBy {
    /// An action did it.
    Action,
    /// It was observed.
    Nobody,
}

/// What actions told that were recorded after a state.
#[derive(Default)]
pub(crate) struct ToldEdits {
    pub(crate) files: BTreeMap<TreePath, (Option<Entry>, ToldBy)>,
    pub(crate) git: BTreeMap<TreePath, (Option<Entry>, ToldBy)>,
    pub(crate) root_mode: Option<u32>,
}
