//! Whether a change holds: the targets are what was meant, nothing else changed, and the
//! user's own check passes. It never changes anything itself.

use std::collections::BTreeSet;

use safepoint_store::fault;

use super::act::Acted;
use super::verdict::{Checked, Outcome, Verdict, Weight};
use super::{Beside, FailedCheck, Found, Mutation, Operation, Secured};
use crate::capture::Capture;
use crate::objects::Objects;
use crate::part::Part;
use crate::path::{self, TreePath};
use crate::run::Ran;
use crate::scope::{Cover, Scope};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind};
use crate::{Ending, StateError, record};

/// What is known when all is done and looked at.
pub(super) struct Concluded {
    pub(super) acted: Acted,
    pub(super) capture: Capture,
    pub(super) parts: Vec<Part>,
    pub(super) changes: Vec<Change>,
    pub(super) beside: Vec<TreePath>,
    pub(super) verdict: Verdict,
}

impl State {
    /// Looks at what is there now, and checks whether that is what was meant.
    pub(super) fn conclude(
        &self,
        workspace: &Workspace,
        mutation: &Mutation<'_>,
        secured: &Secured,
        objects: &Objects,
        mut acted: Acted,
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
            let (check, ending) = self.user_check(workspace, mutation, secured, line);
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
        acted
            .warnings
            .extend(gone_for_good(&secured.capture, &capture));
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
        secured: &Secured,
        line: &str,
    ) -> (Checked, Ending) {
        let ran = self.run_check(workspace, mutation, secured, line);
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
}

/// What a program took away although no checkpoint holds it.
fn gone_for_good(before: &Capture, after: &Capture) -> Vec<String> {
    let left = after.not_covered();
    let is_left = |path: &str| left.iter().any(|note| note.path == path);
    let gone = before.not_covered().into_iter();
    gone.filter(|note| !is_left(&note.path))
        .map(|note| {
            format!(
                "`{}` is no longer there as it was, and no checkpoint holds it: {}",
                note.path, note.why
            )
        })
        .collect()
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
