//! How a workspace was left after a change that failed. It is looked at, and never taken for
//! granted: what others did meanwhile is named, and so is what nobody can bring back.

use std::collections::BTreeSet;

use safepoint_model::{ActionId, Timestamp};

use super::{Mutation, Secured, Seen, Verdict};
use crate::objects::Objects;
use crate::omitted::Lapse;
use crate::path::{self, TreePath};
use crate::snapshot::{Note, Snapshot, SnapshotId};
use crate::state::{State, Workspace};
use crate::tree::{Change, ChangeKind};
use crate::unheld::is_cache;
use crate::{StateError, record};

/// A change that was not made, or was taken back.
#[derive(Clone, Debug)]
pub struct Failed {
    /// Why.
    pub error: StateError,
    /// The targets before, as far as it had come.
    pub previous: Vec<Seen>,
    /// When that was read.
    pub captured: Option<Timestamp>,
    /// What was checked, where it came to that.
    pub verdict: Option<Verdict>,
    /// The action under which the trail tells of it.
    pub action: Option<ActionId>,
    /// The state before it.
    pub before: Option<Snapshot>,
    /// How the workspace was left.
    pub aftermath: Aftermath,
}

impl From<StateError> for Box<Failed> {
    fn from(error: StateError) -> Self {
        Self::new(Failed {
            error,
            previous: Vec::new(),
            captured: None,
            verdict: None,
            action: None,
            before: None,
            aftermath: Aftermath::default(),
        })
    }
}

/// So many paths are named in a sentence.
const MAX_NAMED: usize = 100;

/// How a workspace was left after a change that failed.
#[derive(Clone, Debug, Default)]
pub struct Aftermath {
    /// What the change wrote and is still there, as it is now.
    pub standing: Vec<Change>,
    /// What else is not as it was before the change, and is left alone.
    pub beside: Vec<String>,
    /// What was taken back although nobody can tell who wrote it.
    pub taken_back: Vec<Change>,
    /// Databases and states that were brought back as a whole although somebody else may have
    /// changed them too.
    pub parts_taken_back: Vec<String>,
    /// Databases of which only the rows of the change were taken back: others have written there.
    pub parts_shared: Vec<String>,
    /// Databases and states that are as the change left them, since others have written there and
    /// it cannot be taken out without their work; and why.
    pub parts_left: Vec<Note>,
    /// The checkpoint that has what was there before it was taken back.
    pub safety: Option<SnapshotId>,
    /// What is gone, changed or new, and no checkpoint brings back.
    pub not_restored: Vec<Note>,
    /// The same in sentences, and what else is to be known.
    pub warnings: Vec<String>,
    /// Why what the change wrote could not be taken back.
    pub(super) error: Option<StateError>,
    /// Why it could not be seen whether anything else changed.
    pub(super) unseen: Option<String>,
}

impl State {
    /// Compares what is there now with the state before, but for `own`, which is known.
    pub(super) fn compare_with_before(
        &self,
        workspace: &Workspace,
        (secured, objects): (&Secured, &Objects),
        own: &BTreeSet<TreePath>,
        aftermath: &mut Aftermath,
    ) {
        let now = self
            .look_stored(workspace, &secured.scope, objects)
            .and_then(|capture| {
                let reason = format!("after {}", secured.action);
                self.automatic(workspace, &secured.scope, &capture, reason)
            });
        let compared = now.and_then(|now| {
            let changes = changes_between(objects, &secured.before, &now)?;
            Ok((now, changes))
        });
        let (now, changes) = match compared {
            Ok(compared) => compared,
            Err(error) => {
                aftermath.unseen = Some(error.to_string());
                return;
            }
        };
        let is_standing = |path: &TreePath| aftermath.standing.iter().any(|it| it.path == *path);
        let is_felt = |change: &Change| match (&change.from, &change.to) {
            // Names that shared a file are files of their own once one of them was brought back.
            (Some(from), Some(to)) if change.kind() == ChangeKind::Metadata => {
                !from.same_metadata(to)
            }
            _ => change.kind() != ChangeKind::Time,
        };
        let others = changes
            .iter()
            .filter(|change| is_felt(change) && !own.contains(&change.path))
            .filter(|change| !is_standing(&change.path));
        let mut beside: Vec<String> = others.map(|it| path::display(&it.path)).collect();
        let writer = objects.writer();
        for part in &secured.before.record.parts {
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            match now {
                Ok(now) if now.is_same(part) => {}
                // One that cannot be looked at is not known to be as it was.
                Ok(_) | Err(_) => beside.push(part.subject.name()),
            }
        }
        let before = &secured.before.record;
        for (note, lapse) in before.lapses_until(&now.record, &objects.reader()) {
            if matches!(lapse, Lapse::Made | Lapse::Hidden) && !is_cache(note) {
                aftermath.not_restored.push(lapse.note(note));
            }
        }
        aftermath.beside = beside;
    }

    /// What is gone or changed of what the state before does not hold, or holds encrypted only.
    pub(super) fn find_lost(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        aftermath: &mut Aftermath,
    ) {
        let before = &secured.before;
        for (note, lapse) in before.record.lapses(&workspace.root, &secured.scope) {
            if is_cache(note) && lapse == Lapse::Changed {
                continue; // that is what it is for
            }
            if !before.record.holds_sealed(&note.path) {
                aftermath.not_restored.push(lapse.note(note));
                continue;
            }
            aftermath.beside.push(note.path.clone());
            let (path, id, what) = (&note.path, &before.id, lapse.as_str());
            aftermath.warnings.push(format!(
                "`{path}` is left as it is now ({what}): {id} holds it encrypted as it was, and `safepoint rollback {id} -- ./{path}` brings it back"
            ));
        }
    }
}

/// What differs that people care about, with what was done to repositories.
pub(super) fn changes_between(
    objects: &Objects,
    before: &Snapshot,
    after: &Snapshot,
) -> Result<Vec<Change>, StateError> {
    let reader = objects.reader();
    let mut changes = record::notable_changes(&reader, before, after)?;
    record::add_repository_changes(&reader, before, after, &mut changes)?;
    Ok(changes)
}

impl Aftermath {
    /// Puts what it is into sentences.
    pub(super) fn tell(&mut self, mutation: &Mutation<'_>, secured: &Secured) {
        let mut told = Vec::new();
        let standing = match &self.error {
            None => "was changed by somebody else after the change wrote it, and is left as it is",
            Some(_) => "is still there as the change left it",
        };
        for change in &self.standing {
            told.push(format!("`{}` {standing}", path::display(&change.path)));
        }
        let why = match (secured.has_command(), mutation.check) {
            (false, Some(_)) => {
                "its check or somebody else changed it meanwhile, and it is left as it is"
            }
            _ => "it is left as it is",
        };
        for name in self.beside.iter().take(MAX_NAMED) {
            let begin = format!("`{name}` is left");
            let parts = self.parts_left.iter().map(|note| &note.path);
            let is_part = parts.chain(&self.parts_shared).any(|part| part == name);
            if !is_part && !self.warnings.iter().any(|it| it.starts_with(&begin)) {
                told.push(format!(
                    "`{name}` is not as it was before the change: {why}"
                ));
            }
        }
        if self.beside.len() > MAX_NAMED {
            let more = self.beside.len() - MAX_NAMED;
            told.push(format!(
                "{more} more are not as they were before the change"
            ));
        }
        if let (Some(safety), false) = (&self.safety, self.taken_back.is_empty()) {
            let one = |change: &Change| {
                let name = path::display(&change.path);
                format!("`{name}` ({})", change.kind().as_str())
            };
            let mut names: Vec<String> = self.taken_back.iter().take(MAX_NAMED).map(one).collect();
            if let more @ 1.. = self.taken_back.len().saturating_sub(MAX_NAMED) {
                names.push(format!("{more} more"));
            }
            told.push(format!(
                "taken back with the command, whoever wrote it: {}; {safety} has what was there: `safepoint rollback {safety} -- PATH` brings it back",
                names.join(", ")
            ));
        }
        for name in &self.parts_taken_back {
            if let Some(safety) = &self.safety {
                told.push(format!(
                    "`{name}` was brought back as a whole: what others have written there since the change went with it; {safety} has what was there: `safepoint rollback {safety} '{name}'` brings it back"
                ));
            }
        }
        for name in &self.parts_shared {
            told.push(format!(
                "`{name}` is left with what others have written there since: only the rows of the change were taken back"
            ));
        }
        for note in &self.parts_left {
            let (name, id) = (&note.path, &secured.before.id);
            told.push(format!(
                "`{name}` is left as it is, with what the change wrote: others have written there since ({}); `safepoint rollback {id} '{name}'` makes it what it was before the change, and takes their work with it",
                note.why
            ));
        }
        for note in &self.not_restored {
            told.push(format!("`{}` is not as it was: {}", note.path, note.why));
        }
        if let Some(why) = &self.unseen {
            told.push(format!(
                "whether anything else changed meanwhile could not be seen: {why}"
            ));
        }
        self.warnings.splice(0..0, told);
    }

    /// What differs from before the change, in a sentence; `None` where nothing does.
    fn difference(&self) -> Option<String> {
        let quoted = |name: &String| format!("`{name}`");
        let beside: Vec<String> = self.beside.iter().map(quoted).collect();
        let lost: Vec<String> = self
            .not_restored
            .iter()
            .map(|note| quoted(&note.path))
            .collect();
        let mut sentences = Vec::new();
        if !beside.is_empty() {
            let names = crate::error::shortened(&beside);
            sentences.push(format!("changed meanwhile and left as it is: {names}"));
        }
        if !self.parts_taken_back.is_empty() {
            let parts: Vec<String> = self.parts_taken_back.iter().map(quoted).collect();
            let names = crate::error::shortened(&parts);
            sentences.push(format!(
                "taken back with the change, what others have written there since: {names}"
            ));
        }
        if !self.parts_left.is_empty() {
            let parts: Vec<String> = self.parts_left.iter().map(|it| quoted(&it.path)).collect();
            let names = crate::error::shortened(&parts);
            sentences.push(format!(
                "not taken back, since others have written to the same rows or structure: {names}"
            ));
        }
        if !lost.is_empty() {
            let names = crate::error::shortened(&lost);
            sentences.push(format!(
                "not brought back, as no checkpoint holds it: {names}"
            ));
        }
        if let Some(why) = &self.unseen {
            sentences.push(format!(
                "whether anything else changed meanwhile could not be seen: {why}"
            ));
        }
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }
}

impl StateError {
    /// The same error, which says what of the change is still there, and what else differs.
    pub(super) fn still_there(self, aftermath: &Aftermath) -> Self {
        let names = |change: &Change| format!("`{}`", path::display(&change.path));
        let paths: Vec<String> = aftermath.standing.iter().map(names).collect();
        let why = match &aftermath.error {
            None if paths.is_empty() => None,
            None => Some("somebody else has changed it since, and that is left alone".to_owned()),
            Some(error) => Some(format!("it could not be taken back: {error}")),
        };
        let error = match why {
            None => self,
            Some(why) => Self::StillThere {
                error: Box::new(self),
                paths,
                why,
            },
        };
        match aftermath.difference() {
            None => error,
            Some(difference) => Self::NotAsBefore {
                error: Box::new(error),
                difference,
            },
        }
    }
}
