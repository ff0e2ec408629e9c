//! What a roll back or an undo cannot bring back, and why.

use safepoint_store::Flow;
use safepoint_trail::Query;

use super::{Goal, Plan};
use crate::capture::Capture;
use crate::scope::Scope;
use crate::snapshot::{Action, Note};
use crate::state::{State, Workspace};
use crate::{StateError, omitted};

/// Where that is of which no checkpoint says more.
const BEYOND: &str = "beyond the checkpoint";

/// What an entry says about whether an action can be taken back.
#[derive(serde::Deserialize)]
struct ToldEffect {
    reversibility: Option<String>,
    remainder: Option<Vec<String>>,
}

impl State {
    /// What a goal wants back and cannot have: what no checkpoint holds, and what stays as it is.
    pub(super) fn not_restored(
        &self,
        workspace: &Workspace,
        goal: &Goal<'_>,
        (scope, present): (&Scope, &Capture),
        plan: &Plan,
    ) -> Result<Vec<Note>, StateError> {
        let mut notes = match goal {
            Goal::Snapshot { snapshot, .. } => {
                let record = &snapshot.record;
                let now = [present.left_out(), present.sensitive()].concat();
                let mut notes = record.lapsed(&workspace.root, scope);
                let objects = self.objects()?;
                let trees = objects.reader();
                notes.extend(omitted::made_since(record, &trees, now.iter(), scope));
                notes
            }
            Goal::Without { action, verb } => {
                let mut notes = self.lapsed_by(action, &workspace.root)?;
                if *verb == "undo" {
                    notes.extend(self.uncovered_by(action)?);
                }
                notes
            }
            Goal::Brought(_) => return Ok(Vec::new()),
        };
        notes.extend(plan.unrestored.iter().cloned());
        notes.sort_by(|a, b| a.path.cmp(&b.path));
        notes.dedup_by(|a, b| a.path == b.path && (a.why == b.why || a.path != BEYOND));
        Ok(notes)
    }

    /// What nothing covered of an action: as it turned out, where that was seen, and otherwise as
    /// it was known before it began.
    fn uncovered_by(&self, action: &Action) -> Result<Vec<Note>, StateError> {
        let ended = self.told_of(action, "action_ended")?;
        let ended = ended.into_iter().flatten();
        let measured: Vec<ToldEffect> = ended.filter(|it| it.reversibility.is_some()).collect();
        let told = match measured.is_empty() {
            false => measured.into_iter().map(Some).collect(),
            true => self.told_of(action, "action_intended")?,
        };
        let mut notes = Vec::new();
        for effect in told {
            let Some(effect) = effect.filter(|it| it.reversibility.is_some()) else {
                notes.push(Note {
                    path: BEYOND.to_owned(),
                    why: "what was known of it before it began cannot be read".to_owned(),
                });
                continue;
            };
            // What is only left out was looked at: it is told where it is gone or has changed.
            let rest = effect.remainder.unwrap_or_default().into_iter();
            let rest = rest.filter(|why| !why.contains("` is not in the checkpoint: "));
            if effect.reversibility.as_deref() != Some("reversible") {
                notes.extend(rest.map(|why| Note {
                    path: BEYOND.to_owned(),
                    why,
                }));
            }
        }
        Ok(notes)
    }

    /// What the entries of one kind say of an action; nothing where one cannot be read.
    fn told_of(&self, action: &Action, kind: &str) -> Result<Vec<Option<ToldEffect>>, StateError> {
        let query = Query {
            action: Some(action.id.to_string()),
            kind: Some(kind.to_owned()),
            ..Query::default()
        };
        let mut entries = Vec::new();
        self.trail.entries(&query, |entry| {
            entries.push(entry);
            Ok::<_, StateError>(Flow::More)
        })?;
        let mut told = Vec::new();
        for entry in entries {
            let body = self.trail.whole_body(&entry.body)?;
            told.push(serde_json::from_str(&body).ok());
        }
        Ok(told)
    }
}
