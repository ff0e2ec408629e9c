//! Workspaces with a directory of their own: made, looked at for each record, and removed.
//!
//! Here the store of workspaces and the state of directories meet. A directory is there
//! before the store knows of it; one that the store never got to know is cleared away.

use std::collections::BTreeSet;

use safepoint_model::{ActionId, WorkspaceId};
use safepoint_state::path;
use safepoint_state::scope::Scope;
use safepoint_state::tree::ChangeKind;
use safepoint_state::{
    Note, Origin, Snapshot, SnapshotId, Standing, State, StateError, Wanted, automatic_expiry,
};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream};
use serde_json::json;

use crate::create::is_usable_key;
use crate::place::{Place, PlaceKind, Seen};
use crate::record::{self, Record};
use crate::rejection::Rejection;
use crate::{Beginning, Created, Given, Progress, ProgressError, table};

/// A new workspace, and the directory that was made for it.
#[derive(Clone, Debug)]
pub struct Apart {
    /// The workspace, with its token.
    pub created: Created,
    /// Its directory.
    pub place: Place,
    /// What is not in it of the one that it was made from, but for what git ignores.
    pub left_out: Vec<Note>,
}

/// So many actions are looked through for those that made a record.
const MOST_ACTIONS: u32 = 10_000;

/// Makes a workspace with a directory of its own, from what is in `origin` now.
pub fn create_apart(
    progress: &Progress,
    state: &State,
    origin: &safepoint_state::Workspace,
    beginning: &Beginning<'_>,
    given: &Given<'_>,
    by: &Actor,
) -> Result<Apart, ProgressError> {
    if let Beginning::Below(parent, _) = beginning
        && let Some(above) = progress.place(parent)?
        && above.path == origin.root
    {
        require_made(
            state,
            &above,
            &format!("nothing is made from it: fail `{parent}`"),
        )?;
    }
    let id = WorkspaceId::generate(&*progress.entropy)?;
    let isolated = state.isolate(origin, id.as_str(), &safepoint_state::Progress::default())?;
    let place = Place {
        workspace: id.clone(),
        path: isolated.workspace.root.clone(),
        kind: match isolated.how {
            safepoint_state::Apart::Worktree => PlaceKind::Worktree,
            safepoint_state::Apart::Copy => PlaceKind::Copy,
        },
        origin: origin.root.clone(),
        base: isolated.base.id.clone(),
    };
    fault::point("apart.made");
    let given = Given {
        place: Some(&place),
        ..given.clone()
    };
    match progress.create(beginning, &given, by) {
        Ok(created) => Ok(Apart {
            created,
            place,
            left_out: isolated.left_out,
        }),
        Err(error) => {
            drop(isolated);
            // Otherwise it is found by whoever clears up.
            let _ = state.remove_isolated(id.as_str());
            Err(error)
        }
    }
}

/// Creates a record in a workspace with a directory: what changed, and the state that it
/// stands for, are taken from there.
pub fn checkpoint_in(
    progress: &Progress,
    state: &State,
    directory: &safepoint_state::Workspace,
    id: &WorkspaceId,
    token: &str,
    body: &[u8],
    request_key: Option<&str>,
) -> Result<Result<Record, Rejection>, ProgressError> {
    progress.admit(id, token, "checkpoint_create")?;
    let Some(place) = progress.place(id)? else {
        return progress.checkpoint(id, token, body, request_key, None);
    };
    if directory.root != place.path {
        let why = format!(
            "`{}` is not the directory of `{id}`",
            directory.root.display()
        );
        return Err(ProgressError::Invalid(why));
    }
    require_made(
        state,
        &place,
        &format!("fail `{id}`, and salvage what its checkpoints have"),
    )?;
    // What is bound to be rejected, or was answered before, needs no look at the directory.
    if progress.is_settled(id, body, request_key)? {
        return progress.checkpoint(id, token, body, request_key, None);
    }
    let head = progress.head(id)?;
    let before = match head.as_ref().and_then(|head| head.snapshot.as_ref()) {
        Some(snapshot) => state.find(snapshot.as_str())?,
        None => state.find(place.base.as_str())?,
    };
    let wanted = Wanted {
        scope: &Scope::everything(),
        parts: Vec::new(),
        reason: Some(format!("work of {id}")),
        kind: None,
        expiry: automatic_expiry(state.now()),
        origin: Origin::Automatic,
        seal_to: &[],
    };
    let made = state.checkpoint(directory, &wanted, &safepoint_state::Progress::default())?;
    fault::point("record.seen");
    let seen = Seen {
        since: head.map(|head| head.id),
        files_changed: files_changed(state, directory, &before, &made.snapshot)?,
        not_covered: made.snapshot.record.not_covered(),
        snapshot: made.snapshot.id,
        actions: actions_since(progress, state, id, &place, &before)?,
    };
    progress.checkpoint(id, token, body, request_key, Some(&seen))
}

/// The files that differ between two states of a directory, as they are shown. What git
/// ignores there is output, and nobody's work; submodules have repositories of their own.
fn files_changed(
    state: &State,
    directory: &safepoint_state::Workspace,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<String>, ProgressError> {
    let changes = state.changes_between(before, after)?;
    let aside = state.aside(directory, &changes)?;
    let inside_git = |path: &[u8]| path::names(path).any(|name| name == b".git");
    let is_directory = |side: &Option<safepoint_state::tree::Entry>| {
        side.as_ref().is_none_or(|entry| entry.subtree().is_some())
    };
    Ok(changes
        .iter()
        .filter(|change| change.kind() != ChangeKind::Time && !inside_git(&change.path))
        .filter(|change| aside.why(&change.path).is_none())
        // Directories come and go with what is in them.
        .filter(|change| !(is_directory(&change.from) && is_directory(&change.to)))
        .map(|change| path::display(&change.path))
        .collect())
}

/// The actions in a directory that no earlier record names, the oldest first.
fn actions_since(
    progress: &Progress,
    state: &State,
    id: &WorkspaceId,
    place: &Place,
    before: &Snapshot,
) -> Result<Vec<ActionId>, ProgressError> {
    let told: BTreeSet<ActionId> = progress
        .log(id)?
        .into_iter()
        .flat_map(|record| record.actions)
        .collect();
    let mut found = Vec::new();
    for action in state.actions(&place.path, MOST_ACTIONS)?.into_iter().rev() {
        if action.time < before.created || told.contains(&action.id) {
            continue;
        }
        match state.has_recorded(&action.id) {
            Ok(true) => found.push(action.id),
            // No record names what the trail does not tell of.
            Ok(false) | Err(StateError::Tampered { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// Refuses where a directory is not the one that was made; `next` is what to do then.
fn require_made(state: &State, place: &Place, next: &str) -> Result<(), ProgressError> {
    match state.standing(place.workspace.as_str(), &place.path)? {
        Standing::Made => Ok(()),
        Standing::Another => Err(another(place, next)),
        Standing::Gone => {
            let (id, path) = (&place.workspace, place.path.display());
            let why = format!("the directory of `{id}` is gone: there is no `{path}`; {next}");
            Err(ProgressError::Refused(why))
        }
    }
}

fn another(place: &Place, next: &str) -> ProgressError {
    let (id, path) = (&place.workspace, place.path.display());
    ProgressError::Refused(format!(
        "`{path}` is not the directory that was made for `{id}`: another one is in its place; {next}"
    ))
}

/// What becomes of work in a directory that no checkpoint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheld {
    /// The directory stays.
    Keep,
    /// It goes with the directory.
    Discard,
}

/// A directory that was removed.
#[derive(Clone, Debug)]
pub struct Removed {
    /// The checkpoint that holds what was in it; none where it was gone already.
    pub checkpoint: Option<SnapshotId>,
    /// Work that went with it.
    pub discarded: Vec<Note>,
}

/// Removes the directory of a workspace that has ended. What is in it is a checkpoint first;
/// what no checkpoint can hold stays, unless it is to be discarded.
pub fn remove_apart(
    progress: &Progress,
    state: &State,
    directory: &safepoint_state::Workspace,
    id: &WorkspaceId,
    unheld: Unheld,
    by: &Actor,
) -> Result<Removed, ProgressError> {
    // A state that nobody told of lets nobody take a directory away.
    let standing = progress.trail.store().read(|sql| {
        table::made(sql, id)?;
        progress.proved_standing(sql, id)
    })?;
    let standing = standing.0.state;
    let Some(place) = progress.place(id)? else {
        return Err(ProgressError::NotFound {
            what: "directory of workspace",
            name: id.to_string(),
        });
    };
    if !standing.is_terminal() {
        let why =
            format!("`{id}` is {standing}: its directory is removed when it is closed or failed");
        return Err(ProgressError::Unfit(why));
    }
    let mut removed = Removed {
        checkpoint: None,
        discarded: Vec::new(),
    };
    if directory.root != place.path {
        let why = format!(
            "`{}` is not the directory of `{id}`",
            directory.root.display()
        );
        return Err(ProgressError::Invalid(why));
    }
    let found = state.standing(id.as_str(), &place.path)?;
    if found == Standing::Another {
        return Err(another(
            &place,
            "move that away or delete it yourself, then remove again",
        ));
    }
    if found == Standing::Made {
        let wanted = Wanted {
            scope: &Scope::everything(),
            parts: Vec::new(),
            reason: Some(format!("before the directory of {id} was removed")),
            kind: None,
            expiry: automatic_expiry(state.now()),
            origin: Origin::Automatic,
            seal_to: &[],
        };
        let made = state.checkpoint(directory, &wanted, &safepoint_state::Progress::default())?;
        let lost = state.unheld(directory, &made.snapshot.record)?;
        if unheld == Unheld::Keep && !lost.is_empty() {
            return Err(ProgressError::Unheld {
                id: id.to_string(),
                paths: lost,
            });
        }
        removed.checkpoint = Some(made.snapshot.id);
        removed.discarded = lost;
    }
    progress.trail.write(Durability::Sync, |writing| {
        if table::is_removed(writing.sql(), id)? {
            return Ok(());
        }
        let time = progress.moment(writing)?;
        let row = [table::removed_row(id, time)];
        let entry = writing.append(Draft {
            stream: Stream::from(id),
            actor: by.clone(),
            kind: Kind::fixed("workspace_directory_removed").into(),
            action_id: None,
            body: json!({"workspace": id, "timestamp": time, "rows": table::marks(&row)}),
        })?;
        table::insert_rows(writing.sql(), &row, entry.seq)?;
        Ok::<_, ProgressError>(())
    })?;
    fault::point("apart.forgotten");
    state.remove_isolated(id.as_str())?;
    Ok(removed)
}

impl Progress {
    /// Clears away directories that the store does not know of, or that were to be removed.
    pub fn clear_apart(&self, state: &State) -> Result<usize, ProgressError> {
        let mut is_known = |name: &str| {
            let Ok(id) = name.parse::<WorkspaceId>() else {
                return Ok(true); // not ours to judge
            };
            self.trail
                .store()
                .read(|sql| Ok(table::place(sql, &id)?.is_some() && !table::is_removed(sql, &id)?))
        };
        let removed = state.clear_isolated::<ProgressError>(&mut is_known)?;
        Ok(removed.len())
    }

    /// Whether the outcome of a request is known without a look at the directory.
    fn is_settled(
        &self,
        id: &WorkspaceId,
        body: &[u8],
        request_key: Option<&str>,
    ) -> Result<bool, ProgressError> {
        let Ok(asked) = record::read(body, id, record::Files::NamedOrSeen) else {
            return Ok(true);
        };
        if request_key.is_some_and(|key| !is_usable_key(key)) {
            return Ok(true);
        }
        self.trail.store().read(|sql| {
            if let Some(key) = request_key
                && table::keyed(sql, id, key)?.is_some()
            {
                return Ok(true);
            }
            let (standing, _) = table::standing(sql, id)?;
            let head = table::head(sql, id)?.map(|head| head.id);
            Ok(standing.state != crate::state::State::Active || asked.parent != head)
        })
    }
}
