//! Integration of directories: what would be changed, and changing it.

use std::collections::{BTreeMap, BTreeSet};

use safepoint_state::path::{self, TreePath};
use safepoint_state::tree::Change;
use safepoint_state::{
    Arrival, ContentId, Errand, FileConflict, HeldDirectory, Incoming, Resolution, Sides, Snapshot,
    State, StateError, is_rule,
};
use safepoint_store::fault;
use safepoint_trail::Actor;

use super::begin::ToBring;
use super::{Choice, Conflict, ConflictType, Integration, Strategy};
use crate::place::Place;
use crate::record::Record;
use crate::{Progress, ProgressError};

/// The directory that work is brought to, and the action that this is.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    /// The states of directories.
    pub state: &'a State,
    /// The directory of the parent, which the work was made from.
    pub origin: &'a safepoint_state::Workspace,
    /// The action by which it is changed.
    pub errand: &'a Errand,
    /// Paths in it that say what agents may do, besides those that always do: its atlases.
    pub rules: &'a [TreePath],
}

/// A directory that is to be changed now. While this is held, nobody takes it for cut off.
#[derive(Debug)]
pub struct Bringing {
    /// What it is for.
    pub integration: Integration,
    /// The directory that the work was done in.
    pub place: Place,
    /// What that began with.
    pub base: Snapshot,
    /// The state that the record stands for.
    pub work: Snapshot,
    /// What was decided, path by path.
    pub resolutions: BTreeMap<TreePath, Resolution>,
    /// What was there when it was.
    pub shown: BTreeMap<TreePath, ContentId>,
    /// The action.
    pub errand: Errand,
    pub(super) _held: HeldDirectory,
}

impl Bringing {
    /// What [`State::bring`] is to be asked for.
    pub fn incoming(&self) -> Incoming<'_> {
        Incoming {
            base: &self.base,
            work: &self.work,
            errand: &self.errand,
            resolutions: &self.resolutions,
            shown: &self.shown,
        }
    }
}

/// What a look at directories gave.
#[derive(Default)]
pub(super) struct Looked {
    pub(super) conflicts: Vec<Conflict>,
    /// What has to be brought, if anything has.
    pub(super) bring: Option<ToBring>,
}

impl Progress {
    /// Compares the work with what is in the parent's directory now.
    pub(super) fn look(
        &self,
        place: &Place,
        record: &Record,
        strategy: Strategy,
        ground: Option<&Ground<'_>>,
    ) -> Result<Looked, ProgressError> {
        let nothing = (&BTreeMap::new(), &BTreeMap::new());
        self.look_again(place, record, strategy, nothing, ground)
    }

    /// The same, after some of it was decided.
    pub(super) fn look_again(
        &self,
        place: &Place,
        record: &Record,
        strategy: Strategy,
        (resolutions, shown): (
            &BTreeMap<TreePath, Resolution>,
            &BTreeMap<TreePath, ContentId>,
        ),
        ground: Option<&Ground<'_>>,
    ) -> Result<Looked, ProgressError> {
        let refused = |why: String| Err(ProgressError::Unfit(why));
        let Some(ground) = ground else {
            let id = &place.workspace;
            return refused(format!(
                "`{id}` has a directory: the one it was made from is needed"
            ));
        };
        let origin = self.brought_to(place)?;
        if ground.origin.root != origin {
            let (here, origin) = (ground.origin.root.display(), origin.display());
            return refused(format!("the work belongs to `{origin}`, not to `{here}`"));
        }
        let made = self.made_from(place, &origin)?;
        if !ground
            .state
            .is_origin(made.workspace.as_str(), ground.origin)?
        {
            let (origin, path) = (origin.display(), place.path.display());
            return refused(format!(
                "`{origin}` is not the directory that the work was made from: another one is in its place; bring that one back there, or move this one away and roll back to a checkpoint of that one, or take the files from `{path}`"
            ));
        }
        let Some(snapshot) = &record.snapshot else {
            return refused(format!(
                "`{}` does not say which state it stands for",
                record.id
            ));
        };
        let Some(held) = ground.state.hold_isolated(place.workspace.as_str())? else {
            return Err(ProgressError::State(StateError::Busy {
                what: format!("the directory of `{}`", place.workspace),
            }));
        };
        let base = ground.state.find(place.base.as_str())?;
        let work = ground.state.find(snapshot.as_str())?;
        let incoming = Incoming {
            base: &base,
            work: &work,
            errand: ground.errand,
            resolutions,
            shown,
        };
        let progress = safepoint_state::Progress::default();
        let arrival = ground.state.arrival(ground.origin, &incoming, &progress)?;
        let mut conflicts: Vec<Conflict> = arrival.conflicts.iter().map(unfitting).collect();
        let changed = changed_rules(&arrival, ground.rules);
        conflicts.retain(|one| !one.raw.as_ref().is_some_and(|path| changed.contains(path)));
        conflicts.extend(changed.iter().map(|path| rule(path)));
        if strategy == Strategy::Evaluated {
            let decided = |path: &TreePath| {
                resolutions.contains_key(path)
                    || arrival.conflicts.iter().any(|one| one.path == *path)
            };
            let fitting = arrival.merged.iter().filter(|(path, _)| !decided(path));
            let why = "both sides changed it, in lines that fit";
            conflicts.extend(fitting.map(|(path, ours)| overlap(path, true, why, Some(*ours))));
        }
        let nothing = arrival.changes.is_empty() && conflicts.is_empty();
        Ok(Looked {
            conflicts,
            bring: (!nothing).then(|| (place.clone(), base, work, held)),
        })
    }

    /// Changes the directory, and concludes. For whoever has nobody to stand in between.
    pub fn carry_out(
        &self,
        ground: &Ground<'_>,
        bringing: &Bringing,
        by: &Actor,
    ) -> Result<Integration, ProgressError> {
        self.still_wanted(bringing, by)?;
        let progress = safepoint_state::Progress::default();
        let incoming = bringing.incoming();
        match ground.state.bring(ground.origin, &incoming, &progress) {
            Ok(_) => {
                fault::point("integrate.brought");
                self.conclude(&bringing.integration, by)
            }
            Err(error) => self.fell_through(ground.state, bringing, error, by),
        }
    }

    /// After the directory could not be changed: conflicts that came up meanwhile are
    /// recorded; anything else leaves the work where it was, to be tried again.
    pub fn fell_through(
        &self,
        state: &State,
        bringing: &Bringing,
        error: StateError,
        by: &Actor,
    ) -> Result<Integration, ProgressError> {
        let one = &bringing.integration;
        if state.has_recorded(&bringing.errand.id)? {
            return self.conclude(one, by); // it was done all the same
        }
        if let StateError::Conflict { conflicts } = &error {
            let found: Vec<Conflict> = conflicts.iter().map(unfitting).collect();
            return self.found_later(one, &found, by);
        }
        if one.conflicts.is_empty() {
            self.give_up(one, "directory_not_changed", by)?;
        }
        Err(error.into())
    }

    /// What stands on each side of these conflicts; `None` where one is not about a path.
    pub fn sides(
        &self,
        ground: &Ground<'_>,
        one: &Integration,
        conflicts: &[&Conflict],
    ) -> Result<Vec<Option<Sides>>, ProgressError> {
        let nothing = || Ok(conflicts.iter().map(|_| None).collect());
        let Some(place) = self.place(&one.source)? else {
            return nothing();
        };
        let record = self.record_of(&one.source, &one.checkpoint_ref)?;
        let Some(snapshot) = record.and_then(|record| record.snapshot) else {
            return nothing();
        };
        let base = ground.state.find(place.base.as_str())?;
        let work = ground.state.find(snapshot.as_str())?;
        let incoming = Incoming {
            base: &base,
            work: &work,
            errand: ground.errand,
            resolutions: &BTreeMap::new(),
            shown: &BTreeMap::new(),
        };
        let paths: Vec<&TreePath> = conflicts.iter().filter_map(|it| it.raw.as_ref()).collect();
        let progress = safepoint_state::Progress::default();
        let found = ground
            .state
            .sides(ground.origin, &incoming, &paths, &progress)?;
        let mut found = found.into_iter();
        let each = conflicts.iter();
        Ok(each
            .map(|it| it.raw.as_ref().and_then(|_| found.next()))
            .collect())
    }
}

/// What of the work would change what agents may do.
///
/// It is never taken over: whoever wants it writes it.
pub fn changed_rules(arrival: &Arrival, rules: &[TreePath]) -> BTreeSet<TreePath> {
    let touched = |path: &TreePath, stays: bool| {
        let mut rules = rules.iter();
        is_rule(path)
            || rules
                .any(|rule| path::is_within(path, rule) || (!stays && path::is_within(rule, path)))
    };
    let is_directory =
        |change: &&Change| change.to.as_ref().is_some_and(|to| to.subtree().is_some());
    let changes = arrival.changes.iter();
    let changed = changes.filter(|change| touched(&change.path, is_directory(change)));
    let conflicts = arrival.conflicts.iter();
    let conflicts = conflicts.filter(|one| touched(&one.path, one.below.is_none()));
    changed
        .map(|change| &change.path)
        .chain(conflicts.map(|one| &one.path))
        .cloned()
        .collect()
}

fn rule(path: &[u8]) -> Conflict {
    Conflict {
        kind: ConflictType::ConstraintBreach,
        ..overlap(
            path,
            false,
            "it says what agents may do: keep `ours`, and write it yourself where it is wanted",
            None,
        )
    }
}

impl Integration {
    /// What was decided, as the directory takes it.
    pub fn resolutions(&self) -> BTreeMap<TreePath, Resolution> {
        let decided = self.conflicts.iter().filter_map(|conflict| {
            let resolved = conflict.resolution.as_ref()?;
            let resolution = match resolved.choice {
                Some(Choice::Ours) => Resolution::Ours,
                Some(Choice::Theirs) => Resolution::Theirs,
                Some(Choice::Content) => {
                    Resolution::Content(resolved.content.clone().unwrap_or_default())
                }
                Some(Choice::Merged) | None => Resolution::Merged,
            };
            Some((conflict.raw.clone()?, resolution))
        });
        decided.collect()
    }
}

/// What a directory cannot put together.
fn unfitting(one: &FileConflict) -> Conflict {
    let why = match one.below.as_ref().map(Vec::len) {
        None | Some(0) => one.why.clone(),
        Some(_) => format!("{}; it is decided with all that is below it", one.why),
    };
    overlap(&one.path, false, &why, one.ours)
}

fn overlap(path: &[u8], mergeable: bool, why: &str, ours: Option<ContentId>) -> Conflict {
    Conflict {
        id: String::new(),
        kind: ConflictType::ContentOverlap,
        path: Some(path::display(path)),
        raw: Some(path.to_vec()),
        mergeable,
        description: why.to_owned(),
        ours,
        resolution: None,
    }
}
