//! An action that somebody else carries out, seen from both sides: the state
//! before it, and what it changed.
//!
//! The command itself is none of our business here, and no lock is held while
//! it runs: it may take hours, and may call us itself.

use safepoint_model::{ActionId, Timestamp};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Kind, Writing};
use serde_json::json;

use crate::capture::Capture;
use crate::collect::UNDO_GRACE_MICROS;
use crate::git::index;
use crate::lock::Hold;
use crate::objects::Reader;
use crate::path::{self, TreePath};
use crate::scan::Progress;
use crate::scope::Scope;
use crate::share::Share;
use crate::snapshot::{self, Action, Sealed, Selection, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind};
use crate::{ContentId, StateError, omitted, record};

/// So many checkpoints are looked through for what they hold encrypted.
const MAX_LOOKED_AT: u32 = 20;

/// What is known of an action that somebody else carries out.
#[derive(Clone, Debug)]
pub struct Errand {
    /// Its name.
    pub id: ActionId,
    /// In which session.
    pub session: Option<String>,
    /// What, in the words of policies.
    pub action: String,
    /// What, in a sentence.
    pub summary: String,
    /// What was decided about it.
    pub decision: String,
    /// The action that left running what did it.
    pub left_by: Option<ActionId>,
}

/// What an action changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Where, relative to the workspace.
    pub path: TreePath,
    /// How.
    pub kind: ChangeKind,
}

impl State {
    /// The state before an action: the latest checkpoint, if nothing has happened since and
    /// it still authorises something; otherwise a new one, read back.
    pub fn before(
        &self,
        workspace: &Workspace,
        action: &ActionId,
        progress: &Progress,
    ) -> Result<Snapshot, StateError> {
        match self.before_once(workspace, action, progress) {
            // As with any checkpoint: what cannot be read any more is stored anew.
            Err(StateError::Damaged { .. } | StateError::Missing { .. }) => {
                self.objects()?.heal()?;
                self.before_once(workspace, action, progress)
            }
            other => other,
        }
    }

    fn before_once(
        &self,
        workspace: &Workspace,
        action: &ActionId,
        progress: &Progress,
    ) -> Result<Snapshot, StateError> {
        let _look = self.hold_look(&workspace.root)?;
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        // Open until the record is written: `gc` collects what no record refers to.
        let objects = self.objects()?;
        let (capture, size) = self.look_and_keep(workspace, &objects, progress)?;
        fault::point("action.looked");
        let mut now = self.automatic(
            workspace,
            &Scope::everything(),
            &capture,
            format!("before {action}"),
        )?;
        self.carry_sealed(&mut now)?;
        if let Some(latest) = self.latest_like(&now)? {
            self.verify_with(&objects, &latest)?;
            return Ok(latest);
        }
        now.record.size = size;
        let others = self.writes_of_others(&workspace.root, Some(action), None)?;
        let observed = self.account(&objects, &mut now, others)?;
        self.verify_with(&objects, &now)?;
        fault::point("checkpoint.stored");
        self.record(&now, observed.as_ref())?;
        Ok(now)
    }

    /// Takes what recent checkpoints hold encrypted, and is still as it was then, into a state.
    pub(crate) fn carry_sealed(&self, now: &mut Snapshot) -> Result<(), StateError> {
        if now.record.sensitive.is_empty() {
            return Ok(());
        }
        let recent = self.list(&Selection {
            workspace: Some(now.workspace.clone()),
            limit: Some(MAX_LOOKED_AT),
        })?;
        for earlier in recent.iter().filter(|it| !it.record.sealed.is_empty()) {
            let now = &mut now.record;
            let is_wanted = |one: &&Sealed| {
                let mark = now.mark(&one.path);
                mark.is_some()
                    && mark == earlier.record.mark(&one.path)
                    && !now.holds_sealed(&one.path)
            };
            let sealed = earlier.record.sealed.iter().filter(is_wanted);
            let sealed: Vec<Sealed> = sealed.cloned().collect();
            if !sealed.is_empty() && self.is_as_told(earlier)? {
                now.sealed.extend(sealed);
            }
        }
        Ok(())
    }

    /// The latest checkpoint, where it brings back all of a state.
    pub(crate) fn latest_like(&self, now: &Snapshot) -> Result<Option<Snapshot>, StateError> {
        let latest = self.list(&Selection {
            workspace: Some(now.workspace.clone()),
            limit: Some(1),
        })?;
        match latest.into_iter().next() {
            Some(latest)
                if is_good(&latest, self.now())
                    && !latest.record.untold
                    && is_same(&latest, now)
                    && self.is_as_told(&latest)? =>
            {
                Ok(Some(latest))
            }
            _ => Ok(None),
        }
    }

    /// What the action changed, as far as it is its own. It is recorded, with whatever `beside`
    /// writes, in one transaction.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing that is told of an action"
    )]
    pub fn after<
        E: From<StateError> + From<safepoint_trail::TrailError> + From<safepoint_store::StoreError>,
    >(
        &self,
        workspace: &Workspace,
        before: &Snapshot,
        errand: &Errand,
        outcome: &str,
        share: &Share,
        progress: &Progress,
        beside: impl FnOnce(&mut Writing<'_>, &[Changed]) -> Result<(), E>,
    ) -> Result<Vec<Changed>, E> {
        let _look = self.hold_look(&workspace.root)?;
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        // A workspace that nobody may enter has no way back and no next action.
        let closed = crate::restore::open_root(&workspace.root)?;
        if let (Some(_), Some(mode)) = (closed, before.record.root_mode) {
            crate::restore::restore_root_mode(workspace, Some(mode))?;
        }
        // Open until the record is written: `gc` collects what no record refers to.
        let objects = self.objects()?;
        let (capture, size) = self.look_and_keep(workspace, &objects, progress)?;
        fault::point("action.looked");
        let mut after = self.automatic(
            workspace,
            &Scope::everything(),
            &capture,
            format!("after {}", errand.id),
        )?;
        after.record.size = size;
        self.carry_sealed(&mut after)?;
        // What others have begun to write by now they tell themselves.
        let root = &workspace.root;
        let mut others = self.writes_of_others(root, Some(&errand.id), errand.left_by.as_ref())?;
        // What stands there now, of whoever; what is this action's own is shown apart from it.
        let (began, mut after, mut present) = match share {
            Share::All => (None, after, None),
            Share::Only(_) | Share::Without(_) | Share::Observed { .. } => {
                let began = self.beginning(&objects, before, &after, share)?;
                let from = began.as_ref().unwrap_or(before);
                let own = self.own_part(&objects, from, &after, share)?;
                (began, own, Some(after))
            }
        };
        let from = began.as_ref().unwrap_or(before);
        let changes = record::changes_by_action(&objects.reader(), from, &after)?;
        others.add_own(share, changes.iter().map(|change| change.path.clone()));
        let rest = match &mut present {
            Some(present) => self.account(&objects, present, others)?,
            None => {
                after.record.untold = others.is_unseen();
                None
            }
        };
        // Where all that is there is its own, one record is enough.
        let (after, present) = match present {
            Some(present) if rest.is_none() && is_same(&after, &present) => (present, None),
            Some(present) => {
                after.record.untold = true;
                (after, Some(present))
            }
            None => (after, None),
        };
        let seen = present.as_ref().unwrap_or(&after);
        let mut unheld = before.record.lapsed_until(&seen.record, &objects.reader());
        let made = |change: &&Change| change.from.is_none();
        let made: Vec<&Change> = changes.iter().filter(made).collect();
        unheld.retain(|note| {
            let path = crate::scope::unescape(&note.path);
            // What lies too deep to be seen being written lies in what the action made.
            let is_own =
                share.has_part_of(&path) || made.iter().any(|it| path::is_within(&path, &it.path));
            // What is held encrypted comes back, and is among the changes.
            is_own && !before.record.holds_sealed(&note.path)
        });
        unheld.truncate(omitted::MAX_TOLD);
        // What no change shows is to be taken back all the same, or told that it cannot. What may
        // not be read can be opened again, and is taken back then.
        let did_something = !changes.is_empty()
            || unheld.iter().any(omitted::is_lost)
            || seen.record.has_closed_since(&before.record)
            || self.index_differs(&objects.reader(), from, &after)?;
        let row = Action {
            id: errand.id.clone(),
            workspace: workspace.root.clone(),
            time: self.now(),
            session: errand.session.clone(),
            action: errand.action.clone(),
            summary: errand.summary.clone(),
            decision: Some(errand.decision.clone()),
            outcome: outcome.to_owned(),
            before: from.id.clone(),
            after: match did_something {
                true => after.id.clone(),
                false => from.id.clone(),
            },
            undoes: None,
        };
        let body = json!({
            "row": snapshot::of_action(&row),
            "before": row.before, "after": row.after, "outcome": outcome,
            "changes": record::summarise_changes(&changes),
            "unheld": unheld,
            "opened_with_mode": closed.map(|mode| format!("{mode:03o}")),
            "paths": changes.iter().take(100).map(|it| path::display(&it.path)).collect::<Vec<_>>(),
        });
        let changed: Vec<Changed> = changes.iter().map(Changed::of).collect();
        self.trail.write(Durability::Sync, |writing| {
            if snapshot::is_recorded(&self.trail, writing.sql(), &errand.id)? {
                // Another process was faster, and whoever calls sees by what.
                return beside(writing, &changed);
            }
            if let Some(began) = &began {
                self.record_in(writing, began)?;
            }
            if did_something {
                self.record_in(writing, &after)?;
            }
            // The next look is compared with what is there.
            if let Some(present) = &present {
                self.record_look(writing, present, rest.as_ref())?;
            }
            let kind = Kind::fixed("action_done");
            let entry =
                writing.append(self.draft(&workspace.root, kind, Some(&errand.id), body))?;
            snapshot::insert_action(writing.sql(), &row, entry.seq)?;
            beside(writing, &changed)
        })?;
        // While nobody else looks: what changes there from now on is somebody else's.
        if let Some(action) = &errand.left_by {
            self.end_late_journal(action);
        }
        Ok(changed)
    }

    /// Whether what is staged differs: not if git has only looked at the files anew.
    fn index_differs(
        &self,
        reader: &Reader<'_>,
        before: &Snapshot,
        after: &Snapshot,
    ) -> Result<bool, StateError> {
        let differ =
            |one: Option<ContentId>, other: Option<ContentId>| -> Result<bool, StateError> {
                if one == other {
                    return Ok(false);
                }
                let staged = |id: Option<ContentId>| match id {
                    Some(id) => Ok::<_, StateError>(index::staged(&reader.read(id)?)),
                    None => Ok(Some(Vec::new())),
                };
                match (staged(one)?, staged(other)?) {
                    (Some(one), Some(other)) => Ok(one != other),
                    _ => Ok(true), // nobody can say
                }
            };
        if let (Some(one), Some(other)) = (&before.record.linked, &after.record.linked)
            && differ(one.index, other.index)?
        {
            return Ok(true);
        }
        let (Some(one), Some(other)) = (&before.record.git, &after.record.git) else {
            return Ok(false);
        };
        let changes = tree::changes(reader, Some(one), Some(other), &Scope::everything())?;
        let content = |side: &Option<tree::Entry>| match side.as_ref().map(|entry| &entry.node) {
            Some(tree::Node::File { content, .. }) => Some(*content),
            _ => None,
        };
        for change in changes
            .iter()
            .filter(|it| crate::git_state::is_index(&it.path))
        {
            if differ(content(&change.from), content(&change.to))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What an action did that no checkpoint holds, beside what tools build again.
    pub fn lost_by(&self, action: &ActionId) -> Result<Vec<snapshot::Note>, StateError> {
        let found = self
            .trail
            .store()
            .read(|sql| snapshot::find_action_said(&self.trail, sql, action.as_str()));
        match found {
            Ok((_, said)) => Ok(said.unheld.into_iter().filter(omitted::is_lost).collect()),
            Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Looks at everything, and keeps what makes the next look quick.
    pub(crate) fn look_and_keep(
        &self,
        workspace: &Workspace,
        objects: &crate::objects::Objects,
        progress: &Progress,
    ) -> Result<(Capture, u64), StateError> {
        let validity = self.validity(workspace, objects)?;
        let everything = Scope::everything();
        let writer = objects.writer();
        let (capture, source) = self.capture(workspace, &everything, objects, &writer, progress)?;
        let size = writer.finish()?;
        // A cache that cannot be written makes the next look slower, and nothing else.
        let _ = self.remember(workspace, &everything, validity, &capture, source);
        Ok((capture, size))
    }
}

impl Changed {
    fn of(change: &Change) -> Self {
        Self {
            path: change.path.clone(),
            kind: change.kind(),
        }
    }
}

fn is_good(latest: &Snapshot, now: Timestamp) -> bool {
    // No lock is held while the action runs, and it may take long: what would expire meanwhile
    // could be collected before the action is recorded.
    let end = now.saturating_add_micros(UNDO_GRACE_MICROS);
    !latest.is_expired(end) && latest.record.scope.is_empty() && latest.record.parts.is_empty()
}

/// Whether two snapshots bring back the same, git state and secrets included.
fn is_same(latest: &Snapshot, now: &Snapshot) -> bool {
    let (one, other) = (&latest.record, &now.record);
    one.files == other.files
        && one.git == other.git
        && one.linked == other.linked
        && one.root_mode == other.root_mode
        && one.left_out == other.left_out
        && one.sensitive == other.sensitive
        && one.marks == other.marks
        && other.sealed.iter().all(|it| one.sealed.contains(it))
}
