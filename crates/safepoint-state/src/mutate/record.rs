//! The beginning and the end of a change: the intent in trail and journal, then
//! the outcome in one transaction, or the way back.

use std::collections::BTreeSet;

use safepoint_model::ActionId;
use safepoint_store::{Durability, fault};
use safepoint_trail::Kind;
use serde_json::{Value, json};

use super::act::Planned;
use super::check::Concluded;
use super::place::Target;
use super::verdict::Outcome;
use super::{Found, Mutated, Mutation, Secured, Seen, seen};
use crate::capture::Capture;
use crate::objects::{Objects, Reader};
use crate::omitted::MAX_TOLD;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::restore::{Extent, Journal, Mutating, Told};
use crate::scope::Scope;
use crate::snapshot::{self, Action, Sealed, Snapshot};
use crate::state::{State, Workspace};
use crate::{Changed, StateError, own, record, tree};

impl State {
    /// The state before: the checkpoint itself, unless something has happened since.
    #[expect(
        clippy::too_many_arguments,
        reason = "each is one thing it is made from"
    )]
    pub(super) fn state_before(
        &self,
        workspace: &Workspace,
        checkpoint: &Snapshot,
        scope: &Scope,
        capture: &Capture,
        (parts, sealed): (Vec<Part>, Vec<Sealed>),
        grown: u64,
        action: &ActionId,
    ) -> Result<Snapshot, StateError> {
        let mut before = self.automatic(workspace, scope, capture, format!("before {action}"))?;
        let objects = self.objects()?;
        let reader = objects.reader();
        let known = |part: &Part| {
            let mut then = checkpoint.record.parts.iter();
            then.any(|it| it.subject == part.subject && it.is_same(part))
        };
        // The stash entry of the checkpoint itself is a change of git's that means nothing.
        let (old, new) = (&checkpoint.record, &before.record);
        let same = capture.files.tree == old.files.tree
            && old.scope == new.scope
            && old.linked == new.linked
            && (&old.left_out, &old.sensitive, &old.marks)
                == (&new.left_out, &new.sensitive, &new.marks)
            && sealed.iter().all(|one| old.sealed.contains(one))
            && parts.len() == old.parts.len()
            && parts.iter().all(known)
            && record::notable_changes(&reader, checkpoint, &before)?.is_empty();
        if same {
            return Ok(checkpoint.clone());
        }
        before.record.parts = parts;
        before.record.sealed = sealed;
        before.record.size = grown;
        let others = self.writes_of_others(&workspace.root, Some(action), None)?;
        let observed = self.account(&objects, &mut before, others)?;
        self.record(&before, observed.as_ref())?;
        Ok(before)
    }

    /// Says in the trail and on disk what is about to be done.
    pub(super) fn begin(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        first: &Option<Planned>,
    ) -> Result<Journal, StateError> {
        let on_files = |found: &Found| found.step.operation.is_on_files();
        let only_files = secured.steps.iter().all(on_files);
        let (scope, extent, wanted) = match (first, only_files) {
            (Some(planned), true) => {
                let paths: BTreeSet<&TreePath> = planned.paths().collect();
                (
                    Scope::of_paths(paths).narrowed(&secured.scope),
                    Extent::Known,
                    Some(Box::new(secured.with_files(planned.files))),
                )
            }
            _ => (secured.scope.clone(), Extent::Unknown, None),
        };
        let body = json!({
            "checkpoint_id": secured.checkpoint.id,
            "before": secured.before.id,
            "operations": operations(secured),
            "verify": mutation.check,
        });
        self.trail.write(Durability::Sync, |writing| {
            let kind = Kind::fixed("mutation_started");
            writing.append(self.draft(&workspace.root, kind, Some(&secured.action), body))?;
            Ok::<_, StateError>(())
        })?;
        let mut journal = self.journal_of_mutation(
            workspace,
            &scope,
            &secured.before,
            &secured.action,
            self.summary(secured),
            Mutating {
                checkpoint: secured.checkpoint.id.clone(),
                extent,
                wanted,
                left: Vec::new(),
            },
        )?;
        journal.errand = Some(Told {
            session: secured.given.session.clone(),
            action: action_name(secured),
            decision: secured.given.decision.clone(),
        });
        journal.write(&self.journal_directory())?;
        Ok(journal)
    }

    /// Records the change and uses the checkpoint up, in one transaction.
    pub(super) fn keep(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        objects: &Objects,
        concluded: Concluded,
        journal: &Journal,
    ) -> Result<Mutated, StateError> {
        let Concluded {
            acted,
            present,
            changes,
            beside,
            lost,
            verdict,
        } = concluded;
        let action = &secured.action;
        let is_shared = |part: &Part| {
            let left = acted.part_left(&part.subject);
            left.is_some_and(|left| !left.is_same(part))
        };
        let is_any_shared = present.record.parts.iter().any(is_shared);
        let others = (!beside.is_empty() || is_any_shared) && !secured.has_command();
        let mut after = match others {
            true => self.own_part_of_change(secured, objects, &acted, &present)?,
            false => present.clone(),
        };
        after.id = journal.after.clone();
        after.record.untold = others || secured.before.record.untold;
        let held = verdict.outcome() == Outcome::Pass;
        let row = Action {
            id: action.clone(),
            workspace: workspace.root.clone(),
            time: self.now(),
            session: secured.given.session.clone(),
            action: action_name(secured),
            summary: self.summary(secured),
            decision: Some(secured.given.decision.clone()),
            outcome: if held { "ok" } else { "unverified" }.to_owned(),
            before: secured.before.id.clone(),
            after: after.id.clone(),
            undoes: None,
        };
        let body = json!({
            "row": snapshot::of_action(&row),
            "checkpoint_id": secured.checkpoint.id,
            "before": row.before,
            "after": row.after,
            "outcome": row.outcome,
            "changes": record::summarise_changes(&changes),
            "paths": changes.iter().take(100).map(|it| path::display(&it.path)).collect::<Vec<_>>(),
            "verdict": verdict.outcome(),
            "unheld": lost
                .iter()
                .filter(|lost| !lost.is_sealed)
                .map(|lost| &lost.note)
                .take(MAX_TOLD)
                .collect::<Vec<_>>(),
            "beside": beside.iter().take(100).map(|it| path::display(it)).collect::<Vec<_>>(),
        });
        self.trail.write(Durability::Sync, |writing| {
            self.record_in(writing, &after)?;
            if !snapshot::spend(writing.sql(), &secured.checkpoint.id, action)? {
                return Err(StateError::CheckpointRequired {
                    checkpoint: secured.checkpoint.id.to_string(),
                    why: "it was used up meanwhile".to_owned(),
                });
            }
            let kind = Kind::fixed("mutation_done");
            let entry = writing.append(self.draft(&workspace.root, kind, Some(action), body))?;
            snapshot::insert_action(writing.sql(), &row, entry.seq)
        })?;
        fault::point("mutate.recorded");
        if others {
            // What others did meanwhile is not this action's. Where it cannot be recorded now,
            // the next look finds it.
            let _ = self.record_others(objects, action, &after, present);
        }
        journal.remove(&self.journal_directory())?;
        own::mark_used(&secured.checkpoint, action);
        let targets = secured.target_names();
        own::log(
            &workspace.root,
            self.now(),
            &own::Operation {
                name: "mutate",
                checkpoint: Some(secured.checkpoint.id.as_str()),
                action: Some(action.as_str()),
                targets: &targets,
                reason: Some(&row.summary),
                outcome: &row.outcome,
            },
        );
        let reader = objects.reader();
        let verified = self.now();
        let new = secured
            .steps
            .iter()
            .map(|found| {
                let target = &found.target;
                Ok(Seen {
                    target: target.name(),
                    state: seen::state_of(
                        &reader,
                        &after.record.files,
                        &after.record.parts,
                        target,
                    )?,
                })
            })
            .collect::<Result<Vec<_>, StateError>>()?;
        Ok(Mutated {
            action: action.clone(),
            checkpoint: secured.checkpoint.id.clone(),
            parts: self.part_changes_between(&secured.before, &after)?,
            before: secured.before.clone(),
            after: after.id,
            previous: secured.previous.clone(),
            captured: secured.captured,
            new,
            verified,
            changes,
            beside,
            secrets: lost
                .iter()
                .filter(|lost| lost.is_sealed && secured.has_command())
                .map(|lost| Changed {
                    path: lost.path.clone(),
                    kind: lost.kind,
                })
                .collect(),
            not_restorable: lost
                .iter()
                .filter(|lost| !lost.is_sealed)
                .map(|lost| lost.note.clone())
                .collect(),
            verdict,
            lines: acted.lines,
            structure: acted.structure,
            output: acted.output,
            warnings: late_warnings(&reader, secured)
                .unwrap_or_default() // the change is recorded, and stays so
                .into_iter()
                .chain(acted.warnings)
                .chain(lost.iter().map(|lost| lost.warning.clone()))
                .collect(),
        })
    }

    /// Tells the trail of a change that was not even begun.
    pub(super) fn record_refusal(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        error: &StateError,
    ) -> Result<(), StateError> {
        let body = json!({
            "checkpoint_id": secured.checkpoint.id,
            "before": secured.before.id,
            "operations": operations(secured),
            "why": error.to_string(),
            "rolled_back": false,
        });
        self.trail.write(Durability::Sync, |writing| {
            let kind = Kind::fixed("mutation_failed");
            writing.append(self.draft(&workspace.root, kind, Some(&secured.action), body))?;
            Ok::<_, StateError>(())
        })?;
        let checkpoint = secured.checkpoint.id.as_str();
        let (action, targets) = (Some(&secured.action), secured.target_names());
        self.log_refusal(workspace, (checkpoint, action), &targets, error);
        Ok(())
    }
}

impl Secured {
    /// What is changed, as people name it.
    pub(super) fn target_names(&self) -> Vec<String> {
        self.steps.iter().map(|it| it.target.name()).collect()
    }
}

/// What is to be done to what, as the trail tells it.
fn operations(secured: &Secured) -> Vec<Value> {
    let one = |found: &Found| {
        json!({
            "type": found.step.operation.name(),
            // Where it really is, whoever reads this and from wherever.
            "target": match &found.target {
                Target::Place(place) => place.shown(),
                Target::Part(subject) => subject.name(),
            },
            "description": found.step.description,
        })
    };
    secured.steps.iter().map(one).collect()
}

fn action_name(secured: &Secured) -> String {
    let mut names = secured
        .steps
        .iter()
        .map(|found| found.step.operation.action());
    let first = names.next().unwrap_or("file.write");
    match names.all(|name| name == first) {
        true => first.to_owned(),
        false => "batch".to_owned(),
    }
}

impl State {
    /// The change in a sentence, without the secrets that the words of a command may have.
    fn summary(&self, secured: &Secured) -> String {
        let mut sentences = secured
            .steps
            .iter()
            .map(|found| found.step.sentence(&found.target.name()));
        let first = sentences.next().unwrap_or_default();
        self.redacted(&match sentences.count() {
            0 => first,
            more => format!("{first}, and {more} more"),
        })
    }

    /// A text without what looks like a secret.
    pub(super) fn redacted(&self, text: &str) -> String {
        let mut text = Value::String(text.to_owned());
        self.trail.redact(&mut text);
        text.as_str().unwrap_or_default().to_owned()
    }
}

/// Targets that somebody had changed after the checkpoint was made. Rolling back to the checkpoint
/// takes those changes back too, which whoever made it late may not expect.
fn late_warnings(reader: &Reader<'_>, secured: &Secured) -> Result<Vec<String>, StateError> {
    let (then, now) = (&secured.checkpoint, &secured.before);
    if then.id == now.id {
        return Ok(Vec::new());
    }
    let mut warnings = Vec::new();
    for found in &secured.steps {
        let is_changed = match &found.target {
            Target::Place(place) => {
                let old = tree::find(reader, Some(&then.record.files), &place.path)?;
                let new = tree::find(reader, Some(&now.record.files), &place.path)?;
                old.map(|entry| entry.node) != new.map(|entry| entry.node)
            }
            Target::Part(subject) => {
                let part_of = |snapshot: &Snapshot| {
                    let mut parts = snapshot.record.parts.iter();
                    parts.find(|part| part.subject == *subject).cloned()
                };
                match (part_of(then), part_of(now)) {
                    (Some(old), Some(new)) => !old.is_same(&new),
                    (old, new) => old.is_some() != new.is_some(),
                }
            }
        };
        if is_changed {
            warnings.push(format!(
                "`{}` was changed after checkpoint {} was made: that change is kept in {}, and rolling back to the former takes it back too; make the checkpoint before the first change",
                found.target.name(),
                then.id,
                now.id
            ));
        }
    }
    warnings.dedup();
    Ok(warnings)
}
