//! `safepoint rollback`: makes the workspace, or a part of it, identical to a checkpoint.

use std::ffi::OsString;
use std::path::PathBuf;

use safepoint_model::{Clock, Exit};
use safepoint_state::scope::{Cover, Scope};
use safepoint_state::{Goal, Part, Snapshot, StateError, Workspace, manifest_path};

use super::outside;
use super::restoring::{self, Beside};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `rollback`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which checkpoint; the beginning of its id is enough
    id: String,
    /// Only these files, directories or patterns
    paths: Vec<OsString>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Restore it although it has expired
    #[arg(long)]
    expired: bool,
    /// The age key for sensitive files that were captured encrypted
    #[arg(long, value_name = "FILE")]
    identity: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let snapshot = state.find(&arguments.id)?;
    if snapshot.is_expired(SystemClock.now()) && !arguments.expired {
        return Err(StateError::Expired {
            id: snapshot.id.to_string(),
            expiry: snapshot.expiry.to_string(),
        }
        .into());
    }
    let workspace = workspace_of(context, &snapshot)?;
    let here =
        std::fs::canonicalize(&context.directory).unwrap_or_else(|_| context.directory.clone());
    let here = if here.starts_with(&workspace.root) {
        here
    } else {
        workspace.root.clone()
    };
    let objects = state.objects()?;
    let reader = objects.reader();
    let captured = |path: &[u8]| {
        let found = safepoint_state::tree::entry_at(&reader, &snapshot.record.files, path);
        found.is_ok_and(|found| found.is_some()) || snapshot.record.seals(path)
    };
    let chosen = outside::split(context, &arguments.paths)?;
    let parts = chosen_parts(&snapshot, &chosen, arguments.paths.is_empty())?;
    for part in &parts {
        outside::check_part(context, &part.subject)?;
    }
    let scope = match chosen.paths.is_empty() && !arguments.paths.is_empty() {
        true => Scope::nothing(),
        false => Scope::parse_among(&workspace.root, &here, &chosen.paths, &captured)?,
    };
    refuse_unknown(&state, &snapshot, &workspace, &scope)?;
    let goal = Goal::Snapshot {
        snapshot: &snapshot,
        scope,
        parts,
    };
    restoring::run(
        context,
        &state,
        &workspace,
        &goal,
        arguments.dry_run,
        arguments.identity.as_deref(),
        Beside::default(),
    )
}

/// The databases and states that are meant: all of them, or those that were named.
fn chosen_parts(
    snapshot: &Snapshot,
    chosen: &outside::Chosen,
    all: bool,
) -> Result<Vec<Part>, CliError> {
    let known = &snapshot.record.parts;
    if all {
        return Ok(known.clone());
    }
    chosen
        .subjects
        .iter()
        .map(|subject| {
            let found = known
                .iter()
                .find(|part| part.subject.name() == subject.name());
            found.cloned().ok_or_else(|| {
                CliError::State(StateError::EmptyScope {
                    scope: subject.name(),
                })
            })
        })
        .collect()
}

/// Where a snapshot is restored: where it was made, or, when that directory was
/// moved, where its manifest is now.
pub(super) fn workspace_of(context: &Context, snapshot: &Snapshot) -> Result<Workspace, CliError> {
    if let Ok(here) = context.workspace() {
        if here.root == snapshot.workspace || manifest_path(&here.root, &snapshot.id).exists() {
            return Ok(here);
        }
        // To whoever asks a server it is not there, and nor is its path.
        context.keep_to(&snapshot.workspace, "checkpoint")?;
        if context.names_directory() {
            return Err(StateError::OtherWorkspace {
                id: snapshot.id.to_string(),
                theirs: snapshot.workspace.clone(),
                here: here.root,
            }
            .into());
        }
    }
    context.workspace_at(&snapshot.workspace)
}

/// A path that neither the checkpoint nor the workspace has is a mistake.
fn refuse_unknown(
    state: &safepoint_state::State,
    snapshot: &Snapshot,
    workspace: &Workspace,
    scope: &Scope,
) -> Result<(), CliError> {
    let objects = state.objects()?;
    let reader = objects.reader();
    let checkpointed = Scope::stored(&snapshot.record.scope)?;
    for path in scope.paths() {
        if checkpointed.cover(path) == Cover::Nothing {
            return Err(StateError::EmptyScope {
                scope: safepoint_state::path::display(path),
            }
            .into());
        }
        let there = workspace.root.join(safepoint_state::path::as_path(path));
        // One that is damaged is told of by the roll back itself.
        let captured = safepoint_state::tree::entry_at(&reader, &snapshot.record.files, path);
        if snapshot.record.seals(path) {
            continue;
        }
        if there.symlink_metadata().is_err()
            && let Some(note) = snapshot.record.note_of(path)
        {
            return Err(StateError::NotHeld {
                path: safepoint_state::path::display(path),
                why: note.why.clone(),
            }
            .into());
        }
        if captured.is_ok_and(|captured| captured.is_none()) && there.symlink_metadata().is_err() {
            return Err(StateError::EmptyScope {
                scope: safepoint_state::path::display(path),
            }
            .into());
        }
    }
    Ok(())
}
