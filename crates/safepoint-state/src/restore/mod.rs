//! Going back: plan, verify, secure, journal, apply, verify again, record.
//!
//! ```text
//! look ─ what is there now is itself checkpointed
//!   └ plan ─ what differs from what is wanted
//!       └ journal "staging" ─ contents are read, checked and put beside the tree
//!           └ journal "applying" ─ renames and removals, each repeatable
//!               └ look again ─ is it what it should be?
//!                   └ record, in one transaction ─ and the journal goes
//! ```
//!
//! Killed before "applying", the next command throws away what was put beside
//! the tree, which is untouched. Killed after it, the next command goes on. Where
//! somebody else changed what was to be replaced, what was done is taken back, and
//! their change stays.

mod apply;
mod back;
mod beginning;
mod carry_out;
mod check;
mod displace;
mod empty;
mod failure;
mod hold_git;
mod journal;
mod look;
mod onward;
mod outcome;
mod owner;
mod parts;
mod plan;
mod put;
mod recover;
mod remains;
mod salvage;
mod secrets;
mod shelf;
mod spare;
mod stage;
mod unclose;
mod write;

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use safepoint_model::{ActionId, Digest, Expiry, Span, Timestamp};
use safepoint_store::fault;

use crate::bring::Incoming;
use crate::capture::Capture;
use crate::lock::Hold;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::scan::{MixedTrees, Progress, Sink};
use crate::scope::Scope;
use crate::seal::Identity;
use crate::snapshot::{self, Action, Note, Origin, Record, Snapshot, SnapshotId, SnapshotType};
use crate::state::{State, Workspace};
use crate::tree::{Change, Trees};
use crate::{ContentId, StateError, checkpoint, git_state, linked, own, undo};
pub(crate) use back::BACK_OUT;
pub(crate) use journal::{Extent, Journal, Mutating, Phase, Told, directory as journals};
pub(crate) use outcome::restore_root_mode;
pub use parts::PartChange;
pub(crate) use plan::{ContentOf, Plan, identical, renumber};
pub(crate) use put::{put_files, put_new_files};
pub use recover::{End, Recovered, Remedy, Unfinished, is_unfinished};
pub(crate) use secrets::bring_back as bring_secrets_back;
pub(crate) use shelf::{file as stash_file, newest as newest_stash, with_what_was_taken};
pub(crate) use spare::spare;
use unclose::Unclosed;
pub(crate) use unclose::open_root;

/// What is wanted.
#[derive(Clone, Debug)]
pub enum Goal<'a> {
    /// Everything in `scope` as it was in the snapshot.
    Snapshot {
        /// Which.
        snapshot: &'a Snapshot,
        /// Only these files of it.
        scope: Scope,
        /// Only these of its databases and states.
        parts: Vec<Part>,
    },
    /// What one action did taken out; what came later stays.
    Without {
        /// Which.
        action: &'a Action,
        /// `undo`, or `redo` when it takes back a going back.
        verb: &'static str,
    },
    /// The work of another directory brought into this one.
    Brought(&'a Incoming<'a>),
}

/// What would be done.
#[derive(Clone, Debug)]
pub struct Preview {
    /// Every path that would change.
    pub changes: Vec<Change>,
    /// What would stay although the snapshot does not have it.
    pub kept: Vec<Note>,
    /// What could not be brought back, and why.
    pub not_restored: Vec<Note>,
    /// Databases and states that would change.
    pub parts: Vec<PartChange>,
    /// What else is to be known.
    pub warnings: Vec<String>,
    /// What would be written that is nowhere yet: files that are put together.
    pub contents: HashMap<ContentId, Vec<u8>>,
}

/// What was done.
#[derive(Clone, Debug)]
pub struct Restored {
    /// The action that this is in the log.
    pub action: ActionId,
    /// What was there before: `redo` brings it back.
    pub before: SnapshotId,
    /// What is there now.
    pub after: SnapshotId,
    /// Every path that changed.
    pub changes: Vec<Change>,
    /// Databases and states that changed.
    pub parts: Vec<Part>,
    /// The hash of what was there before.
    pub pre_hash: Digest,
    /// The hash of what is there now.
    pub post_hash: Digest,
    /// Whether looking again found exactly what was wanted.
    pub matches: bool,
    /// What was there before and could not be brought back, and why.
    pub not_restored: Vec<Note>,
    /// What else is to be known.
    pub warnings: Vec<String>,
}

/// States that are made by themselves are kept for so long, unless somebody pins them.
const AUTOMATIC_LIFE: &str = "30d";

impl State {
    /// Says what would be done, and does nothing.
    pub fn preview(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        progress: &Progress,
    ) -> Result<Preview, StateError> {
        self.refuse_other_directory(workspace, goal)?;
        let workspace = &workspace.without(&self.subjects_of(goal)?)?;
        let _held = self.hold(&workspace.root, Hold::Shared)?;
        let objects = self.objects()?;
        let fresh = Mutex::new(HashMap::new());
        let sink = Sink::Memory(&fresh);
        let scope = self.scope_of(goal)?;
        let held = self.states_of(goal)?;
        let mut capture = self.look_for(workspace, &scope, &objects, &held, &sink, progress)?;
        let unclosed = Unclosed::of(self, &workspace.root, goal, &scope, &capture)?;
        unclosed.foresee(&mut capture);
        let reader = objects.reader();
        let trees = MixedTrees {
            fresh: &fresh,
            stored: &reader,
        };
        let contents = Mutex::new(HashMap::new());
        let sink = Sink::Plan {
            trees: &fresh,
            contents: &contents,
        };
        let plan = self.plan(
            workspace, goal, &scope, &trees, &reader, &capture, &unclosed, &sink,
        )?;
        let writer = objects.writer();
        let (now, then) = self.parts_of(workspace, goal, &writer, &mut Vec::new())?;
        writer.finish()?;
        // What is in there is seen when it is opened.
        if unclosed.is_empty() {
            self.refuse_empty(workspace, goal, &plan, (&now, &then))?;
        }
        let now_linked = self.capture_linked(workspace, &scope)?;
        let (wanted_linked, unmoved) = self.linked_after(goal, &scope, now_linked.as_ref())?;
        let mut not_restored = self.not_restored(workspace, goal, (&scope, &capture), &plan)?;
        not_restored.retain(|note| !unclosed.covers(note));
        not_restored.extend(unmoved);
        if now_linked.is_none() && !plan.changes.iter().any(|change| change.path == b".git") {
            not_restored.extend(wanted_linked.as_ref().map(|_| linked::is_gone()));
        }
        let mut warnings = self.doubts(goal)?;
        if let Goal::Snapshot { snapshot, .. } = goal {
            warnings.extend(secrets::foreseen(&workspace.root, &snapshot.record, &scope));
        }
        let present = self.automatic(workspace, &scope, &capture, String::new())?;
        let root_mode = root_mode_after(goal, &scope, &plan);
        let wanted = Record {
            root_mode,
            ..present.record.clone()
        };
        let mut changes: Vec<Change> = present.record.root_change(&wanted).into_iter().collect();
        changes.extend(plan.changes);
        let stored = self.objects()?;
        changes.extend(linked::changes(
            &stored.reader(),
            now_linked.as_ref(),
            wanted_linked.as_ref(),
        )?);
        Ok(Preview {
            not_restored,
            changes,
            kept: plan.kept,
            parts: self.part_changes(&objects, now.iter().zip(&then))?,
            warnings,
            contents: contents
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        })
    }

    /// Does it, and leaves it to [`Self::restore`] to log a failure.
    fn restore_unlogged(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        identities: &[Identity],
        progress: &Progress,
    ) -> Result<Restored, StateError> {
        self.refuse_other_directory(workspace, goal)?;
        let made = own::missing(&workspace.root);
        own::create(&workspace.root)?;
        let restored = self.restore_there(workspace, goal, identities, progress, !made.is_empty());
        if restored.is_err() && !self.is_cut_off(&workspace.root) {
            own::remove_empty(&made);
        }
        restored
    }

    fn restore_there(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        identities: &[Identity],
        progress: &Progress,
        was_gone: bool,
    ) -> Result<Restored, StateError> {
        let workspace = &workspace.without(&self.subjects_of(goal)?)?;
        let _held = self.hold_alone(&workspace.root)?;
        self.refuse_unfinished(&workspace.root)?;
        let mut unclosed = Unclosed::default().with_root(open_root(&workspace.root)?);
        let restored = self.restore_held(
            workspace,
            goal,
            identities,
            was_gone,
            &mut unclosed,
            progress,
        );
        if restored.is_err() {
            unclosed.close(&workspace.root);
        }
        restored
    }

    /// The same, while nobody else goes back there.
    fn restore_held(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        identities: &[Identity],
        was_gone: bool,
        unclosed: &mut Unclosed,
        progress: &Progress,
    ) -> Result<Restored, StateError> {
        let objects = self.objects()?;
        let scope = self.scope_of(goal)?;
        if let Goal::Snapshot { snapshot, .. } = goal {
            self.verify_with(&objects, snapshot)
                .map_err(|error| unrestorable(snapshot, error))?;
        }
        // What is there now.
        let writer = objects.writer();
        let capture = {
            let sink = Sink::Store(&writer);
            let held = self.states_of(goal)?;
            let look = || self.look_for(workspace, &scope, &objects, &held, &sink, progress);
            let capture = look()?;
            let found = Unclosed::of(self, &workspace.root, goal, &scope, &capture)?;
            let closed = found.with_root(unclosed.root());
            *unclosed = closed;
            match unclosed.is_empty() {
                true => capture,
                false => {
                    unclosed.open(&workspace.root)?;
                    look()?
                }
            }
        };
        let (wanted_secrets, put_secrets) = self.sealed_of(goal)?;
        let recipients: Vec<_> = match wanted_secrets.is_empty() {
            true => Vec::new(),
            false => identities.iter().map(Identity::recipient).collect(),
        };
        let sealed = checkpoint::seal_secrets(workspace, &recipients, &capture, &writer)?;
        let mut warnings = self.doubts(goal)?;
        let (now, then) = self.parts_of(workspace, goal, &writer, &mut warnings)?;
        let mut grown = writer.finish()?;
        if let Goal::Without { action, .. } = goal {
            let after = self.find(action.after.as_str())?.record;
            unclosed.complete(&after, &capture, &scope, &objects)?;
        }
        // What is wanted.
        let reader = objects.reader();
        let writer = objects.writer();
        let (plan, files, git) = {
            let sink = Sink::Store(&writer);
            let told = |error| match goal {
                Goal::Snapshot { snapshot, .. } => unrestorable(snapshot, error),
                Goal::Without { .. } | Goal::Brought(_) => error,
            };
            let plan = self
                .plan(
                    workspace, goal, &scope, &reader, &reader, &capture, unclosed, &sink,
                )
                .map_err(told)?;
            let (files, git) = plan
                .outcome(&reader, &capture, &mut |id, bytes| {
                    writer.add_tree(id, bytes)
                })
                .map_err(told)?;
            (plan, files, git)
        };
        grown += writer.finish()?;
        self.refuse_empty(workspace, goal, &plan, (&now, &then))?;
        let mut before = self.automatic(
            workspace,
            &scope,
            &capture,
            format!("before {}", describe(goal)),
        )?;
        before.record.sealed = sealed;
        before.record.parts = now;
        before.record.size = grown;
        unclosed.amend_before(&mut before.record, &objects)?;
        let mut after = self.automatic(
            workspace,
            &scope,
            &capture,
            format!("after {}", describe(goal)),
        )?;
        (after.record.files, after.record.git) = (files, git);
        let now_linked = before.record.linked.as_ref();
        let (wanted_linked, unmoved) = self.linked_after(goal, &scope, now_linked)?;
        after.record.linked = wanted_linked;
        after.record.parts = then;
        after.record.root_mode = root_mode_after(goal, &scope, &plan).or(after.record.root_mode);
        if let (Goal::Without { action, .. }, true) = (goal, was_gone) {
            let before = self.find(action.before.as_str())?;
            after.record.root_mode = before.record.root_mode.or(after.record.root_mode);
        }
        if !identities.is_empty() {
            after.record.sealed.clone_from(&wanted_secrets);
        }
        let around = match goal {
            Goal::Without { action, .. } => Some((
                self.find(action.before.as_str())?.record,
                self.find(action.after.as_str())?.record,
            )),
            Goal::Snapshot { .. } | Goal::Brought(_) => None,
        };
        let secrets = secrets::open(
            &workspace.root,
            &secrets::Wanted {
                sealed: &wanted_secrets,
                instead_of: put_secrets.as_deref(),
                around: around.as_ref().map(|(before, after)| (before, after)),
                scope: &scope,
            },
            identities,
            &reader,
        )?;
        if matches!(goal, Goal::Snapshot { .. }) {
            warnings.extend(secrets.told());
        }
        let others = self.writes_of_others(&workspace.root, None, None)?;
        let observed = self.account(&objects, &mut before, others)?;
        after.record.untold = before.record.untold;
        self.record(&before, observed.as_ref())?;
        fault::point("restore.secured");
        let journal = self.journal(workspace, goal, &scope, &before, &after)?;
        let mut restored =
            self.carry_out(workspace, &objects, &plan, journal, secrets, progress)?;
        restored.warnings.splice(0..0, warnings);
        let mut notes = self.not_restored(workspace, goal, (&scope, &capture), &plan)?;
        notes.retain(|note| !unclosed.covers(note));
        notes.extend(unmoved);
        notes.append(&mut restored.not_restored);
        restored.not_restored = notes;
        Ok(restored)
    }

    /// Refuses what would put the state of one directory into another that took its place.
    fn refuse_other_directory(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
    ) -> Result<(), StateError> {
        let (recorded, entry) = match goal {
            Goal::Snapshot { snapshot, .. } => {
                let (recorded, said) = self.find_said(&snapshot.id)?;
                (recorded.workspace, said.entry)
            }
            Goal::Without { action, .. } => {
                let (recorded, said) = self
                    .trail
                    .store()
                    .read(|sql| snapshot::find_action_said(&self.trail, sql, action.id.as_str()))?;
                (recorded.workspace, said.entry)
            }
            Goal::Brought(_) => return Ok(()),
        };
        self.refuse_former(&workspace.root, &recorded, entry)
    }

    fn scope_of(&self, goal: &Goal<'_>) -> Result<Scope, StateError> {
        match goal {
            Goal::Snapshot {
                snapshot, scope, ..
            } => {
                refuse_part_of_repository(scope)?;
                Ok(Scope::stored(&snapshot.record.scope)?.narrowed(scope))
            }
            Goal::Without { action, .. } => {
                let before = self.find(action.before.as_str())?;
                let after = self.find(action.after.as_str())?;
                let scope = Scope::stored(&before.record.scope)?;
                Ok(scope.narrowed(&Scope::stored(&after.record.scope)?))
            }
            Goal::Brought(incoming) => incoming.scope(),
        }
    }

    /// The secrets that a goal wants back, and, when it takes a going back back,
    /// those that it had put in place.
    fn sealed_of(
        &self,
        goal: &Goal<'_>,
    ) -> Result<(Vec<snapshot::Sealed>, Option<Vec<snapshot::Sealed>>), StateError> {
        match goal {
            Goal::Snapshot { snapshot, .. } => Ok((snapshot.record.sealed.clone(), None)),
            Goal::Without { action, .. } => {
                let before = self.find(action.before.as_str())?;
                let after = self.find(action.after.as_str())?;
                Ok((before.record.sealed, Some(after.record.sealed)))
            }
            Goal::Brought(_) => Ok((Vec::new(), None)),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing the plan is made from"
    )]
    fn plan(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        scope: &Scope,
        trees: &dyn Trees,
        reader: &crate::objects::Reader<'_>,
        present: &Capture,
        unclosed: &Unclosed,
        sink: &Sink<'_>,
    ) -> Result<Plan, StateError> {
        let undoing = undo::Undoing {
            trees,
            reader,
            workspace: &workspace.root,
            present,
            root_mode: unclosed.root().or(checkpoint::root_mode(workspace)),
            scope,
            now: self.now(),
        };
        match goal {
            Goal::Snapshot { snapshot, .. } => plan::identical(
                trees,
                reader,
                &workspace.root,
                present,
                &snapshot.record,
                scope,
                sink,
            ),
            Goal::Without { action, .. } => {
                let before = self.find(action.before.as_str())?;
                let after = self.find(action.after.as_str())?;
                let contested = self.contested(trees, action, (&before, &after))?;
                let after = unclosed.amend_after(after.record);
                undoing.plan(&before.record, &after, &contested, sink)
            }
            Goal::Brought(incoming) => {
                let aside = self.aside_of(workspace, incoming, trees)?;
                undoing.bring(incoming, &aside, sink)
            }
        }
    }

    /// A snapshot of what was captured that nobody asked for.
    pub(crate) fn automatic(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        capture: &Capture,
        reason: String,
    ) -> Result<Snapshot, StateError> {
        let now = self.now();
        Ok(Snapshot {
            id: SnapshotId::generate(now, &*self.around.entropy)?,
            workspace: workspace.root.clone(),
            created: now,
            expiry: automatic_expiry(now),
            pinned: false,
            spent: None,
            record: Record {
                format: snapshot::FORMAT,
                kind: if scope.is_nothing() {
                    SnapshotType::DatabaseSavepoint
                } else if capture.scan.git.is_empty() {
                    SnapshotType::FileBackup
                } else {
                    SnapshotType::GitStash
                },
                origin: Origin::Automatic,
                reason: Some(reason),
                scope: scope.to_stored(),
                files: capture.files,
                root_mode: checkpoint::root_mode(workspace),
                git: capture.git,
                linked: self.capture_linked(workspace, scope)?,
                git_head: None,
                git_common: None,
                left_out: capture.left_out(),
                sensitive: capture.sensitive(),
                marks: capture.marks(&workspace.root),
                sealed: Vec::new(),
                special: capture.special(),
                parts: Vec::new(),
                warnings: Vec::new(),
                untold: false,
                size: 0,
            },
        })
    }
}

/// When a state that was made by itself expires.
pub fn automatic_expiry(now: Timestamp) -> Expiry {
    let life: Option<Span> = AUTOMATIC_LIFE.parse().ok();
    life.and_then(|life| life.after(now))
        .map_or(Expiry::Never, Expiry::At)
}

/// Refuses to bring back a part of a repository: what it says would no longer fit together.
fn refuse_part_of_repository(scope: &Scope) -> Result<(), StateError> {
    let is_part = |path: &&TreePath| git_state::inside(path).is_some_and(|it| !it.is_empty());
    match scope.paths().find(is_part) {
        None => Ok(()),
        Some(path) => Err(StateError::BadScope {
            scope: path::display(path),
            why: format!(
                "it is a part of a repository, which goes back as a whole: name `{}`",
                path::display(git_state::directory(path).unwrap_or(path))
            ),
        }),
    }
}

/// The mode that the workspace itself gets; `None` where it keeps the one it has.
fn root_mode_after(goal: &Goal<'_>, scope: &Scope, plan: &Plan) -> Option<u32> {
    match goal {
        Goal::Snapshot { snapshot, .. } if scope.is_everything() => snapshot.record.root_mode,
        Goal::Snapshot { .. } | Goal::Brought(_) => None,
        Goal::Without { .. } => plan.root_mode,
    }
}

fn describe(goal: &Goal<'_>) -> String {
    match goal {
        Goal::Snapshot { snapshot, .. } => format!("roll back to {}", snapshot.id),
        Goal::Without { action, verb } => format!("{verb} of {} ({})", action.id, action.summary),
        Goal::Brought(incoming) => incoming.errand.summary.clone(),
    }
}

fn unrestorable(snapshot: &Snapshot, error: StateError) -> StateError {
    match error {
        StateError::Damaged { .. } | StateError::Missing { .. } => StateError::Unrestorable {
            id: snapshot.id.to_string(),
            error: Box::new(error),
        },
        other => other,
    }
}
