//! Sensitive files that outlive a program of a change: before it runs they are captured
//! encrypted, so that what it destroys can be brought back byte for byte.

use std::path::Path;

use super::{Mutation, Secured};
use crate::capture::Capture;
use crate::checkpoint::seal_file;
use crate::objects::Objects;
use crate::omitted::Lapse;
use crate::path;
use crate::restore::bring_secrets_back;
use crate::scope::unescape;
use crate::seal::{Identity, Recipient};
use crate::share::Share;
use crate::snapshot::{Record, Sealed, Snapshot, SnapshotId};
use crate::state::{State, Workspace};
use crate::{StateError, tree};

/// A sensitive file that is longer is not sealed before a program runs, and named when it is lost.
const MAX_SEALED_BYTES: u64 = 64 << 20;

/// Keys for sensitive files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sealing<'a> {
    /// For whom they are encrypted; for nobody when there is none, and then they are not captured.
    pub recipients: &'a [Recipient],
    /// What opens them again.
    pub identities: &'a [Identity],
}

impl State {
    /// Captures the sensitive files before a program of a change runs. A checkpoint that holds
    /// them as they are is as good.
    pub(super) fn seal_before(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        checkpoint: &Snapshot,
        capture: &Capture,
        objects: &Objects,
    ) -> Result<Vec<Sealed>, StateError> {
        let record = &checkpoint.record;
        let marks = capture.marks(&workspace.root);
        let is_held = |path: &str| {
            let now = marks.iter().find(|mark| mark.path == path);
            record.sealed.iter().any(|sealed| sealed.path == path)
                && record.mark(path) == now.map(|now| now.mark.as_str())
        };
        let sensitive = capture.sensitive();
        if sensitive.iter().all(|note| is_held(&note.path)) {
            let held = |sealed: &&Sealed| sensitive.iter().any(|note| note.path == sealed.path);
            return Ok(record.sealed.iter().filter(held).cloned().collect());
        }
        self.seal_present(workspace, mutation, capture, objects)
    }

    /// Captures the sensitive files that are there, encrypted. One that cannot be read is named
    /// when it is lost, and keeps no change from being made.
    pub(super) fn seal_present(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        capture: &Capture,
        objects: &Objects,
    ) -> Result<Vec<Sealed>, StateError> {
        let recipients = mutation.sealing.recipients;
        let mut sealed = Vec::new();
        if recipients.is_empty() || capture.scan.sensitive.is_empty() {
            return Ok(sealed);
        }
        let writer = objects.writer();
        for (path, _) in &capture.scan.sensitive {
            let full = workspace.root.join(path::as_path(path));
            if is_short_file(&full)
                && let Ok(one) = seal_file(&full, path, recipients, &writer)
            {
                sealed.push(one);
            }
        }
        writer.finish()?;
        Ok(sealed)
    }

    /// Keeps what a command left of the sensitive files that it changed, before they are
    /// brought back. Without it only those that are gone are.
    pub(super) fn keep_changed_secrets(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        objects: &Objects,
        capture: &Capture,
    ) -> Result<Option<SnapshotId>, StateError> {
        let before = &secured.before.record;
        let lapses = before.lapses(&workspace.root, &secured.scope);
        let is_changed = lapses
            .iter()
            .any(|(note, lapse)| *lapse == Lapse::Changed && before.holds_sealed(&note.path));
        if !is_changed {
            return Ok(None);
        }
        let reason = format!("left by {}, which failed", secured.action);
        let mut found = self.automatic(workspace, &secured.scope, capture, reason)?;
        found.record.sealed = self.seal_present(workspace, mutation, capture, objects)?;
        found.record.untold = true;
        self.record(&found, None)?;
        Ok(Some(found.id))
    }

    /// Brings back the sensitive files that the state before holds encrypted: those that are
    /// gone, and, where what replaced them is kept in `kept`, those that were changed; only the
    /// change's own where that is known. Says what could not be.
    pub(super) fn bring_secrets_back(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        objects: &Objects,
        (kept, share): (Option<&SnapshotId>, Option<&Share>),
    ) -> Vec<String> {
        let before = &secured.before.record;
        let kept = kept.and_then(|id| self.find(id.as_str()).ok());
        let reader = objects.reader();
        let is_kept = |path: &str| {
            kept.as_ref().is_some_and(|kept| {
                let file = tree::find(&reader, Some(&kept.record.files), &unescape(path));
                kept.record.holds_sealed(path) || matches!(file, Ok(Some(_)))
            })
        };
        let is_own = |path: &str| share.is_none_or(|share| share.has_path(&unescape(path)));
        let wanted: Vec<Sealed> = before
            .lapses(&workspace.root, &secured.scope)
            .iter()
            .filter(|(note, _)| is_own(&note.path))
            .filter(|(note, lapse)| match lapse {
                Lapse::Gone => true,
                Lapse::Changed => is_kept(&note.path),
                Lapse::Made | Lapse::Hidden | Lapse::Closed => false,
            })
            .filter_map(|(note, _)| before.sealed.iter().find(|it| it.path == note.path))
            .cloned()
            .collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        let identities = mutation.sealing.identities;
        match bring_secrets_back(&workspace.root, &wanted, identities, &reader) {
            Ok(mut told) => {
                let left = before.lapses(&workspace.root, &secured.scope);
                let is_left = |path: &str| left.iter().any(|(note, _)| note.path == path);
                let back = wanted.iter().filter(|one| !is_left(&one.path));
                told.extend(back.map(|one| {
                    let (path, id) = (&one.path, &secured.before.id);
                    format!("`{path}` was brought back as {id} holds it, whoever changed it")
                }));
                told
            }
            Err(error) => vec![format!(
                "encrypted files were not brought back: {error}; `safepoint rollback {}` does it with the key",
                secured.before.id
            )],
        }
    }
}

impl Record {
    /// Whether it holds a sensitive file, encrypted.
    pub(crate) fn holds_sealed(&self, path: &str) -> bool {
        self.sealed.iter().any(|sealed| sealed.path == path)
    }
}

fn is_short_file(full: &Path) -> bool {
    let found = full.symlink_metadata();
    found.is_ok_and(|found| found.is_file() && found.len() <= MAX_SEALED_BYTES)
}
