//! What of all that changed is the work of a change itself. Steps on files write paths that are
//! known; whatever else changed while its check ran is the work of others, and is recorded as
//! what nobody asked for.

use safepoint_model::ActionId;

use crate::StateError;
use crate::objects::Objects;
use crate::path;
use crate::scope::Scope;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::tree::{self, Change, ChangeKind, Entry, same_content};

use super::act::Acted;
use super::place::Target;
use super::{Found, Secured};

impl Secured {
    /// Whether a step is done to this database or state.
    pub(super) fn has_target(&self, subject: &crate::part::Subject) -> bool {
        let is_it = |found: &Found| matches!(&found.target, Target::Part(it) if it == subject);
        self.steps.iter().any(is_it)
    }
}

impl State {
    /// The state that there would be if only the steps of a change had written something.
    pub(super) fn own_part_of_change(
        &self,
        secured: &Secured,
        objects: &Objects,
        acted: &Acted,
        present: &Snapshot,
    ) -> Result<Snapshot, StateError> {
        let before = &secured.before.record;
        let reader = objects.reader();
        let everything = Scope::everything();
        let (from, to) = (Some(&before.files), Some(&present.record.files));
        let mut mine = Vec::new();
        for change in tree::changes(&reader, from, to, &everything)? {
            let is_above = || {
                acted
                    .written
                    .iter()
                    .any(|it| path::is_within(it, &change.path))
            };
            if acted.written.contains(&change.path) {
                let wanted = match &acted.wanted {
                    Some(wanted) => tree::find(&reader, Some(wanted), &change.path)?,
                    None => change.to.clone(),
                };
                let is_as_written = is_same(&wanted, &change.to);
                let entry = if is_as_written { change.to } else { wanted };
                mine.push((change.path, entry));
            } else if is_time_of_directory(&change) && is_above() {
                mine.push((change.path, change.to));
            }
        }
        let writer = objects.writer();
        let files = tree::edit(&reader, from, mine, &mut |id, bytes| {
            writer.add_tree(id, bytes)
        })?;
        writer.finish()?;
        let mut own = present.clone();
        own.record.files = files;
        own.record.git = before.git;
        own.record.root_mode = before.root_mode;
        own.record.linked.clone_from(&before.linked);
        own.record.marks.clone_from(&before.marks);
        own.record.left_out.clone_from(&before.left_out);
        own.record.sensitive.clone_from(&before.sensitive);
        own.record.sealed.clone_from(&before.sealed);
        for part in &mut own.record.parts {
            let mut known = before.parts.iter();
            let was = known.find(|it| it.subject == part.subject);
            let is_target = secured.has_target(&part.subject);
            let own = match acted.part_left(&part.subject) {
                Some(left) => Some(left),
                None => was.filter(|_| !is_target),
            };
            if let Some(own) = own {
                part.clone_from(own);
            }
        }
        Ok(own)
    }

    /// Records what is there besides a change, and that nobody asked for it.
    pub(super) fn record_others(
        &self,
        objects: &Objects,
        action: &ActionId,
        own: &Snapshot,
        mut present: Snapshot,
    ) -> Result<(), StateError> {
        // It comes after the state that the change alone led to.
        present.created = own.created.saturating_add_micros(1);
        let others = self.writes_of_others(&present.workspace, Some(action), None)?;
        let observed = self.account(objects, &mut present, others)?;
        self.record(&present, observed.as_ref())
    }
}

fn is_same(wanted: &Option<Entry>, found: &Option<Entry>) -> bool {
    match (wanted, found) {
        (Some(a), Some(b)) => same_content(&a.node, &b.node) && a.mode == b.mode,
        (a, b) => a.is_none() == b.is_none(),
    }
}

fn is_time_of_directory(change: &Change) -> bool {
    change.kind() == ChangeKind::Time && !change.is_notable()
}
