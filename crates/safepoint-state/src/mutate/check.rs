//! Whether a change holds: the targets are what was meant, nothing else changed, and the
//! user's own check passes. It never changes anything itself.

use std::collections::BTreeSet;
use std::path::Path;

use safepoint_store::fault;

use super::act::Acted;
use super::aftermath::changes_between;
use super::verdict::{Checked, Outcome, Verdict, Weight};
use super::{Beside, FailedCheck, Found, Mutation, Operation, Secured};
use crate::capture::Capture;
use crate::objects::Objects;
use crate::omitted::Lapse;
use crate::path::{self, TreePath};
use crate::run::Ran;
use crate::scope::{Cover, Scope, unescape};
use crate::snapshot::{Note, Record, Snapshot};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, ChangeKind};
use crate::unheld::is_cache;
use crate::{Ending, StateError};

/// What is known when all is done and looked at.
pub(super) struct Concluded {
    pub(super) acted: Acted,
    /// What is there now.
    pub(super) present: Snapshot,
    /// What the change itself changed.
    pub(super) changes: Vec<Change>,
    /// What else changed.
    pub(super) beside: Vec<TreePath>,
    /// What is gone or changed that cannot be brought back, or only with a key.
    pub(super) lost: Vec<Lost>,
    pub(super) verdict: Verdict,
}

/// What became of something that is in no tree of a checkpoint.
pub(super) struct Lost {
    pub(super) path: TreePath,
    pub(super) kind: ChangeKind,
    pub(super) note: Note,
    pub(super) warning: String,
    /// Whether the state before holds it encrypted.
    pub(super) is_sealed: bool,
    /// Whether the change must not stand with it.
    weight: Weight,
}

impl State {
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
            // Nothing has run since then.
            let left = acted.part_left(&part.subject);
            if let (Some(left), false) = (left, mutation.runs_program()) {
                parts.push(left.clone());
                continue;
            }
            let now = self.capture_part(workspace, &part.subject, &writer, &mut Vec::new());
            parts.push(now.map_err(bare)?);
        }
        writer.finish().map_err(bare)?;
        let present = || -> Result<Snapshot, StateError> {
            let reason = format!("after {}", secured.action);
            let mut present = self.automatic(workspace, &secured.scope, &capture, reason)?;
            present.record.parts = parts;
            if mutation.runs_program() {
                let sealed = self.seal_present(workspace, mutation, &capture, objects)?;
                present.record.sealed = sealed;
            }
            Ok(present)
        };
        let present = present().map_err(bare)?;
        let reader = objects.reader();
        let all = changes_between(objects, &secured.before, &present).map_err(bare)?;
        let (changes, beside) = match secured.has_command() {
            true => {
                let beside = beside(&all, &acted.meant);
                (all, beside)
            }
            false => {
                let is_ours = |change: &Change| acted.written.contains(&change.path);
                let (ours, others): (Vec<Change>, Vec<Change>) = all.into_iter().partition(is_ours);
                let felt = others.iter().filter(|it| it.kind() != ChangeKind::Time);
                let parts = secured.before.record.parts.iter().filter(|part| {
                    let mut now = present.record.parts.iter();
                    let is_same = now.any(|it| it.subject == part.subject && it.is_same(part));
                    !is_same && !secured.has_target(&part.subject)
                });
                let parts = parts.map(|part| part.subject.name().into_bytes());
                (ours, felt.map(|it| it.path.clone()).chain(parts).collect())
            }
        };
        let lost = find_lost(&workspace.root, &reader, &secured.before, &present.record);
        // What is in no tree is another change all the same.
        let mut beside = beside;
        let is_within = |path: &[u8]| acted.meant.iter().any(|it| path::is_within(path, it));
        let others = lost
            .iter()
            .filter(|lost| !secured.has_command() || !is_within(&lost.path));
        beside.extend(others.map(|lost| lost.path.clone()));
        // Of a command or of SQL nobody knows what it is to lead to; a state was read back.
        let is_state = |found: &Found| matches!(found.step.operation, Operation::State { .. });
        if acted.wanted.is_some() || secured.steps.iter().all(is_state) {
            let check = target_check(&reader, &acted, &capture, &secured.scope);
            verdict.checks.push(check.map_err(bare)?);
        }
        verdict.checks.push(beside_check(&beside, mutation.beside));
        if let Some(check) = lost_check(&lost) {
            verdict.possible += 1;
            verdict.checks.push(check);
        }
        let concluded = Concluded {
            acted,
            present,
            changes,
            beside,
            lost,
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
                Some(check) if check.name == NOTHING_LOST => StateError::Lost {
                    paths: concluded
                        .lost
                        .iter()
                        .filter(|lost| lost.weight == Weight::Decides)
                        .map(|lost| lost.note.path.clone())
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

/// The name of the check that nothing is lost that no checkpoint holds.
const NOTHING_LOST: &str = "nothing_lost";

/// What a program took away, changed or made although no checkpoint holds it.
fn find_lost(root: &Path, trees: &dyn tree::Trees, before: &Snapshot, after: &Record) -> Vec<Lost> {
    let mut lost = Vec::new();
    for (note, lapse) in before.record.lapses_until(after, trees) {
        let full = root.join(path::as_path(&unescape(&note.path)));
        let lapse = match lapse {
            // What is no longer sensitive is captured, as it is now.
            Lapse::Gone if full.symlink_metadata().is_ok() => Lapse::Changed,
            other => other,
        };
        let is_cache = is_cache(note);
        if is_cache && lapse != Lapse::Gone {
            continue; // that is what it is for
        }
        let is_sealed = before.record.holds_sealed(&note.path);
        let (path, id, what) = (&note.path, &before.id, lapse.as_str());
        let warning = match (lapse, is_sealed) {
            (Lapse::Made, _) => {
                format!("`{path}` is new, and no checkpoint holds it: {}", note.why)
            }
            (Lapse::Hidden, false) => format!(
                "`{path}` stays as it is now, and no checkpoint holds that: {}; {id} holds it as it was",
                note.why
            ),
            (_, true) => format!(
                "`{path}` is no longer there as it was ({what}): {id} holds it encrypted, and `safepoint rollback {id} -- ./{path}` brings it back"
            ),
            (_, false) => format!(
                "`{path}` is no longer there as it was ({what}), and no checkpoint holds it: {}",
                note.why
            ),
        };
        let is_excluded = note.why == crate::scan::EXCLUDED && lapse == Lapse::Changed;
        lost.push(Lost {
            path: unescape(path),
            kind: match lapse {
                Lapse::Gone => ChangeKind::Deleted,
                Lapse::Changed | Lapse::Hidden | Lapse::Closed => ChangeKind::Modified,
                Lapse::Made => ChangeKind::Created,
            },
            note: lapse.note(note),
            warning,
            is_sealed,
            weight: match (is_sealed || is_cache || is_excluded, lapse) {
                // Nothing is gone with it.
                (true, _) | (false, Lapse::Made | Lapse::Hidden) => Weight::Tells,
                (false, _) => Weight::Decides,
            },
        });
    }
    lost
}

/// Whether something is lost for good. Nothing is said where nothing is.
fn lost_check(lost: &[Lost]) -> Option<Checked> {
    let decides = |lost: &&Lost| lost.weight == Weight::Decides;
    let names: Vec<&str> = lost
        .iter()
        .filter(decides)
        .take(20)
        .map(|lost| lost.note.path.as_str())
        .collect();
    (!names.is_empty()).then(|| Checked {
        name: NOTHING_LOST,
        target: "what no checkpoint holds".to_owned(),
        outcome: Outcome::Fail,
        expected: "there as it was".to_owned(),
        actual: format!("changed or gone: {}", names.join(", ")),
        weight: Weight::Decides,
    })
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
