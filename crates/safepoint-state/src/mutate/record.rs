//! The beginning and the end of a change: the intent in trail and journal, then
//! the outcome in one transaction, or the way back.

use std::collections::BTreeSet;

use safepoint_model::ActionId;
use safepoint_store::{Durability, fault};
use safepoint_trail::{FixedKind, Kind};
use serde_json::{Value, json};

use super::act::{Acted, Planned};
use super::place::Target;
use super::verdict::{Checked, Outcome, Verdict, Weight};
use super::{Beside, FailedCheck, Found, Mutated, Mutation, Operation, Secured, Seen, seen};
use crate::capture::Capture;
use crate::objects::Objects;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::restore::{Extent, Journal, Mutating};
use crate::run::{self, Ran, Run, What, Whole};
use crate::scan::Progress;
use crate::scope::{Cover, Scope};
use crate::snapshot::{self, Action, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind};
use crate::{Ending, StateError, own, record};

/// What is known when all is done and looked at.
pub(super) struct Concluded {
    acted: Acted,
    capture: Capture,
    parts: Vec<Part>,
    changes: Vec<Change>,
    beside: Vec<TreePath>,
    verdict: Verdict,
}

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
        parts: Vec<Part>,
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
        let same = capture.files.tree == checkpoint.record.files.tree
            && parts.len() == checkpoint.record.parts.len()
            && parts.iter().all(known)
            && record::notable_changes(&reader, checkpoint, &before)?.is_empty();
        if same {
            return Ok(checkpoint.clone());
        }
        before.record.parts = parts;
        before.record.size = grown;
        let observed = self.observed(&reader, &before)?;
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
        let only_files = first.is_some()
            && secured.steps.iter().all(|found| {
                !matches!(
                    found.step.operation,
                    Operation::Sql { .. } | Operation::State { .. } | Operation::Command { .. }
                )
            });
        let (scope, extent) = match (first, only_files) {
            (Some(planned), true) => {
                let paths: BTreeSet<&TreePath> = planned.paths().collect();
                (
                    Scope::of_paths(paths).narrowed(&secured.scope),
                    Extent::Known,
                )
            }
            _ => (secured.scope.clone(), Extent::Unknown),
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
        let journal = self.journal_of_mutation(
            workspace,
            &scope,
            &secured.before,
            &secured.action,
            summary(secured),
            Mutating {
                checkpoint: secured.checkpoint.id.clone(),
                extent,
            },
        )?;
        journal.write(&self.journal_directory())?;
        Ok(journal)
    }

    /// Looks at what is there now, and checks whether that is what was meant.
    pub(super) fn conclude(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        objects: &Objects,
        acted: Acted,
    ) -> Result<Concluded, (StateError, Option<Verdict>)> {
        let bare = |error: StateError| (error, None);
        let mut verdict = Verdict {
            checks: vec![Checked {
                name: "checkpoint_whole",
                target: secured.checkpoint.id.to_string(),
                outcome: Outcome::Pass,
                expected: "a checkpoint that can be restored".to_owned(),
                actual: format!("sha256:{}", secured.checkpoint.hash()),
                weight: Weight::Decides,
            }],
            possible: 4,
            ending: Ending::ByItself,
        };
        for (query, said) in &acted.queries {
            verdict.possible += 1;
            verdict.checks.push(Checked {
                name: "query",
                target: query.clone(),
                outcome: Outcome::Pass,
                expected: "one row, true".to_owned(),
                actual: said.clone(),
                weight: Weight::Decides,
            });
        }
        if let Some(line) = mutation.check {
            let (check, ending) = self.user_check(workspace, mutation, line);
            verdict.checks.push(check);
            verdict.ending = ending;
        }
        fault::point("mutate.checked");
        let capture = self
            .look_stored(workspace, &secured.scope, objects)
            .map_err(bare)?;
        let writer = objects.writer();
        let mut parts = Vec::new();
        for part in &secured.before.record.parts {
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            parts.push(now.map_err(bare)?);
        }
        writer.finish().map_err(bare)?;
        let reader = objects.reader();
        let mut after = secured.before.clone();
        (after.record.files, after.record.git) = (capture.files, capture.git);
        let changes = record::notable_changes(&reader, &secured.before, &after).map_err(bare)?;
        let beside = beside(&changes, &acted.meant);
        // Of a command or of SQL nobody knows what it is to lead to; a state was read back.
        let is_state = |found: &Found| matches!(found.step.operation, Operation::State { .. });
        if acted.wanted.is_some() || secured.steps.iter().all(is_state) {
            let check = target_check(&reader, &acted, &capture, &secured.scope);
            verdict.checks.push(check.map_err(bare)?);
        }
        verdict.checks.push(beside_check(&beside, mutation.beside));
        let concluded = Concluded {
            acted,
            capture,
            parts,
            changes,
            beside,
            verdict,
        };
        if concluded.verdict.outcome() != Outcome::Pass && mutation.failed == FailedCheck::RollBack
        {
            let failed =
                concluded.verdict.checks.iter().find(|check| {
                    check.weight == Weight::Decides && check.outcome != Outcome::Pass
                });
            let error = match failed {
                Some(check) if check.name == "nothing_else_changed" => StateError::SideEffects {
                    paths: concluded
                        .beside
                        .iter()
                        .map(|path| path::display(path))
                        .collect(),
                },
                Some(check) => StateError::CheckFailed {
                    check: check.target.clone(),
                    why: check.actual.clone(),
                    ending: match check.name {
                        "command" => concluded.verdict.ending,
                        _ => Ending::ByItself,
                    },
                },
                None => StateError::CheckFailed {
                    check: "nothing".to_owned(),
                    why: "it could not be told whether the change holds".to_owned(),
                    ending: Ending::ByItself,
                },
            };
            return Err((error, Some(concluded.verdict)));
        }
        Ok(concluded)
    }

    fn user_check(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        line: &str,
    ) -> (Checked, Ending) {
        let ran = run::run(&Run {
            what: What::Shell(line),
            directory: &workspace.root,
            variables: &self.around.variables,
            input: None,
            limit: mutation.check_limit,
            whole: Whole::No,
        });
        let ending = ran.as_ref().map(Ran::ending).unwrap_or_default();
        let (outcome, actual) = match ran {
            Ok(ran) if ran.succeeded() => (Outcome::Pass, "exit status: 0".to_owned()),
            Ok(ran) => (Outcome::Fail, ran.failure()),
            Err(error) => (Outcome::Inconclusive, error.to_string()),
        };
        let check = Checked {
            name: "command",
            target: line.to_owned(),
            outcome,
            expected: "exit status: 0".to_owned(),
            actual,
            weight: Weight::Decides,
        };
        (check, ending)
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
            capture,
            parts,
            changes,
            beside,
            verdict,
        } = concluded;
        let action = &secured.action;
        let mut after = self.automatic(
            workspace,
            &secured.scope,
            &capture,
            format!("after {action}"),
        )?;
        after.id = journal.after.clone();
        after.record.parts = parts;
        let held = verdict.outcome() == Outcome::Pass;
        let row = Action {
            id: action.clone(),
            workspace: workspace.root.clone(),
            time: self.now(),
            session: None,
            action: action_name(secured),
            summary: summary(secured),
            decision: Some("allow".to_owned()),
            outcome: if held { "ok" } else { "unverified" }.to_owned(),
            before: secured.before.id.clone(),
            after: after.id.clone(),
            undoes: None,
        };
        let body = json!({
            "checkpoint_id": secured.checkpoint.id,
            "before": row.before,
            "after": row.after,
            "outcome": row.outcome,
            "changes": record::summarise_changes(&changes),
            "paths": changes.iter().take(100).map(|it| path::display(&it.path)).collect::<Vec<_>>(),
            "verdict": verdict.outcome(),
        });
        self.trail.write(Durability::Sync, |writing| {
            self.record_in(writing, &after)?;
            snapshot::insert_action(writing.sql(), &row)?;
            if !snapshot::spend(writing.sql(), &secured.checkpoint.id, action)? {
                return Err(StateError::CheckpointRequired {
                    checkpoint: secured.checkpoint.id.to_string(),
                    why: "it was used up meanwhile".to_owned(),
                });
            }
            let kind = Kind::fixed("mutation_done");
            writing.append(self.draft(&workspace.root, kind, Some(action), body))?;
            Ok(())
        })?;
        fault::point("mutate.recorded");
        journal.remove(&self.journal_directory())?;
        own::log(
            &workspace.root,
            self.now(),
            "mutate",
            &secured.checkpoint.id,
            Some(&row.summary),
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
                    state: seen::state_of(&reader, &capture.files, &after.record.parts, target)?,
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
            verdict,
            lines: acted.lines,
            structure: acted.structure,
            output: acted.output,
            warnings: acted.warnings,
        })
    }

    /// After a failure: as it was before, and the checkpoint is still good.
    pub(super) fn take_back(
        &self,
        workspace: &Workspace,
        secured: &Secured,
        objects: &Objects,
        journal: &Journal,
        error: &StateError,
        progress: &Progress,
    ) -> Result<(), StateError> {
        let known =
            |sql: &mut dyn safepoint_store::Sql| snapshot::action_exists(sql, &secured.action);
        if self.trail.store().read(known)? {
            return Ok(()); // it is recorded: what failed came after that, and is told
        }
        let touched = self.is_touched(workspace);
        if touched {
            self.back_out(workspace, objects, journal, progress)?;
        } else {
            self.drop_mutation(workspace, journal)?;
        }
        let why = error.to_string();
        self.record_failure(
            workspace,
            &secured.action,
            &secured.checkpoint.id,
            &why,
            touched,
        )
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
            Ok(())
        })
    }

    /// Tells the trail that a change was not kept.
    pub(crate) fn record_failure(
        &self,
        workspace: &Workspace,
        action: &ActionId,
        checkpoint: &snapshot::SnapshotId,
        why: &str,
        rolled_back: bool,
    ) -> Result<(), StateError> {
        let kind: FixedKind = Kind::fixed("mutation_failed");
        let body = json!({
            "checkpoint_id": checkpoint, "why": why, "rolled_back": rolled_back,
        });
        self.trail.write(Durability::Sync, |writing| {
            writing.append(self.draft(&workspace.root, kind, Some(action), body))?;
            Ok(())
        })
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

/// The change in a sentence.
fn summary(secured: &Secured) -> String {
    let mut sentences = secured
        .steps
        .iter()
        .map(|found| match &found.step.description {
            Some(text) => text.clone(),
            None => format!("{} {}", found.step.operation.name(), found.target.name()),
        });
    let first = sentences.next().unwrap_or_default();
    match sentences.count() {
        0 => first,
        more => format!("{first}, and {more} more"),
    }
}

/// What changed and was not meant to: neither a target, nor in one, nor a directory above one.
fn beside(changes: &[Change], meant: &BTreeSet<TreePath>) -> Vec<TreePath> {
    changes
        .iter()
        .filter(|change| change.is_notable() && change.kind() != ChangeKind::Time)
        .filter(|change| {
            let near = |path: &TreePath| path::is_within(&change.path, path);
            !meant.iter().any(near)
        })
        .map(|change| change.path.clone())
        .collect()
}

/// Whether the targets are what the operations lead to.
fn target_check(
    trees: &dyn tree::Trees,
    acted: &Acted,
    capture: &Capture,
    scope: &Scope,
) -> Result<Checked, StateError> {
    let mut wrong = Vec::new();
    if let Some(wanted) = &acted.wanted {
        // A directory above, of which the scope has only a part, keeps what it is.
        let covered = |path: &&TreePath| scope.cover(path) == Cover::Everything;
        for path in acted.meant.iter().filter(covered) {
            let entry = |root| tree::find(trees, Some(root), path);
            let (wanted, found) = (entry(wanted)?, entry(&capture.files)?);
            let same = match (&wanted, &found) {
                (Some(a), Some(b)) => tree::same_content(&a.node, &b.node) && a.mode == b.mode,
                (a, b) => a.is_none() == b.is_none(),
            };
            if !same {
                wrong.push(path::display(path));
            }
        }
    }
    let targets: Vec<String> = acted.meant.iter().map(|path| path::display(path)).collect();
    Ok(Checked {
        name: "target_as_meant",
        target: targets.join(", "),
        outcome: if wrong.is_empty() {
            Outcome::Pass
        } else {
            Outcome::Fail
        },
        expected: "read back as the operation left it".to_owned(),
        actual: match wrong.is_empty() {
            true => "the same".to_owned(),
            false => format!("{} changed again", wrong.join(", ")),
        },
        weight: Weight::Decides,
    })
}

fn beside_check(beside: &[TreePath], meaning: Beside) -> Checked {
    let shown: Vec<String> = beside
        .iter()
        .take(20)
        .map(|path| path::display(path))
        .collect();
    Checked {
        name: "nothing_else_changed",
        target: "the scope of the checkpoint".to_owned(),
        outcome: if beside.is_empty() {
            Outcome::Pass
        } else {
            Outcome::Fail
        },
        expected: "no other change".to_owned(),
        actual: match beside.is_empty() {
            true => "none".to_owned(),
            false => shown.join(", "),
        },
        weight: match meaning {
            Beside::Tell => Weight::Tells,
            Beside::Fail => Weight::Decides,
        },
    }
}
