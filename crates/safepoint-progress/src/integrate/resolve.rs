//! Conflicts, decided one by one; and the way on when the last one is.

use std::collections::BTreeMap;

use safepoint_model::WorkspaceId;
use safepoint_state::path::TreePath;
use safepoint_state::{ContentId, Resolution};
use safepoint_store::{Durability, Flow, fault};
use safepoint_trail::{Actor, Draft, Kind, Query, Stream, Writing};
use serde_json::json;

use super::begin::{again, number_of};
use super::{Bringing, Choice, Conflict, Ground, Integration, Mode, Resolved, Settling, Step};
use crate::state::State as WorkspaceState;
use crate::{Progress, ProgressError, table};

/// What is decided about one conflict.
#[derive(Clone, Debug)]
pub struct Resolve<'a> {
    /// Which: `c1`, `c2` …
    pub conflict: &'a str,
    /// By whom, and in what way.
    pub strategy: Settling,
    /// What becomes of it.
    pub choice: Option<Choice>,
    /// What is put in its place, with [`Choice::Content`].
    pub content: Option<&'a [u8]>,
}

impl Progress {
    /// Every integration of a workspace, the last one last, with its conflicts.
    pub fn integrations(&self, source: &WorkspaceId) -> Result<Vec<Integration>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, source)?;
            Ok(table::integrations_of(sql, source)?)
        })
    }

    /// The one that a workspace is in the middle of.
    pub fn open_integration(
        &self,
        source: &WorkspaceId,
    ) -> Result<Option<Integration>, ProgressError> {
        let all = self.integrations(source)?;
        Ok(all.into_iter().find(|one| one.result.is_none()))
    }

    /// Decides one conflict. When the agent has to do it again, the workspace fails.
    ///
    /// What was decided can be decided anew while the integration is open. Nothing that was
    /// written is taken away: the conflict is there once more, under a new name, and the later
    /// decision counts.
    ///
    /// After the last one [`Progress::resume`] goes on; where there is no directory to
    /// change, the integration has ended with it.
    pub fn resolve(
        &self,
        source: &WorkspaceId,
        decision: &Resolve<'_>,
        by: &Actor,
    ) -> Result<Integration, ProgressError> {
        self.drop_stale(source, by)?;
        if self.open_integration(source)?.is_some() {
            self.still_holds(source, by)?;
        }
        let resolved = self.trail.write(Durability::Sync, |writing| {
            let one = open(writing, source)?;
            let (number, conflict) = found(&one, decision)?;
            let (number, conflict) = match &conflict.resolution {
                None => (number, conflict.clone()),
                Some(_) => self.open_again(writing, &one, conflict, by)?,
            };
            let resolved = Resolved {
                strategy: decision.strategy,
                choice: decision.choice,
                content: decision.content.map(<[u8]>::to_vec),
            };
            self.settle_conflict(writing, &one, number, &conflict, &resolved, by)?;
            if decision.strategy == Settling::Rework {
                match one.mode {
                    Mode::Salvage => self.abort(writing, &one, "revision_required", by)?,
                    Mode::Normal => {
                        let made = table::made(writing.sql(), source)?;
                        let reason = Some("revision_required");
                        self.transition(
                            writing,
                            &made,
                            WorkspaceState::Failed,
                            reason,
                            by.clone(),
                        )?
                        .map_err(ProgressError::from)?;
                    }
                }
                return again(writing, &one);
            }
            let now = again(writing, &one)?;
            self.prove_decisions(writing.sql(), &now)?;
            if now.is_settled() && table::place(writing.sql(), source)?.is_none() {
                self.finish(writing, &now, by)?;
            }
            again(writing, &one)
        })?;
        fault::point("integrate.resolved");
        self.deliver()?;
        Ok(resolved)
    }

    /// Goes on after the last conflict was decided: compares once more, with the decisions.
    pub fn resume_integration(
        &self,
        source: &WorkspaceId,
        ground: &Ground<'_>,
        by: &Actor,
    ) -> Result<Step, ProgressError> {
        let refused = |why: String| Err(ProgressError::Unfit(why));
        self.drop_stale(source, by)?;
        let Some(one) = self.open_integration(source)? else {
            return refused(format!("`{source}` is not being integrated"));
        };
        self.still_holds(source, by)?;
        if !one.is_settled() {
            return Ok(Step::Conflicted(one));
        }
        self.trail
            .store()
            .read(|sql| self.prove_decisions(sql, &one))?;
        let Some(place) = self.place(source)? else {
            return refused(format!("`{source}` has no directory that could be brought"));
        };
        let chain = self.log(source)?;
        let Some(record) = chain.iter().find(|it| it.id == one.checkpoint_ref) else {
            return Err(ProgressError::Tampered {
                what: "checkpoint",
                id: one.checkpoint_ref.to_string(),
            });
        };
        let decided = one.resolutions();
        let shown = self.shown(&one)?;
        let about = (&decided, &shown);
        let looked = self.look_again(&place, record, one.strategy, about, Some(ground))?;
        if let Some(why) = impossible(&one, about, &looked.conflicts) {
            return refused(why);
        }
        if !looked.conflicts.is_empty() {
            let found = self.found_later(&one, &looked.conflicts, by)?;
            return Ok(Step::Conflicted(found));
        }
        let Some((place, base, work, held)) = looked.bring else {
            return Ok(Step::Done(self.conclude(&one, by)?));
        };
        let integration = self.trail.write(Durability::Sync, |writing| {
            let now = open(writing, source)?;
            let row = [table::action_row(&now, &ground.errand.id)];
            let timestamp = self.moment(writing)?;
            let entry = writing.append(Draft {
                stream: Stream::from(source),
                actor: by.clone(),
                kind: Kind::fixed("integration_resumed").into(),
                action_id: Some(ground.errand.id.clone()),
                body: json!({
                    "source": now.source, "target": now.target, "mode": now.mode, "turn": now.turn,
                    "timestamp": timestamp, "rows": table::marks(&row),
                }),
            })?;
            table::insert_rows(writing.sql(), &row, entry.seq)?;
            again(writing, &now)
        })?;
        fault::point("integrate.resumed");
        Ok(Step::Bring(Box::new(Bringing {
            integration,
            place,
            base,
            work,
            resolutions: decided,
            shown,
            errand: ground.errand.clone(),
            _held: held,
        })))
    }

    /// The same conflict once more, with nothing decided.
    fn open_again(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        conflict: &Conflict,
        by: &Actor,
    ) -> Result<(i64, Conflict), ProgressError> {
        let anew = Conflict {
            description: format!("`{}` is decided anew", conflict.id),
            resolution: None,
            ..conflict.clone()
        };
        self.detect(writing, one, std::slice::from_ref(&anew), by)?;
        let now = again(writing, one)?;
        let last = now.conflicts.into_iter().next_back();
        let named = last.and_then(|last| Some((number_of(&last.id)?, last)));
        named.ok_or_else(|| ProgressError::NotFound {
            what: "conflict",
            name: conflict.id.clone(),
        })
    }

    /// Gives up what cannot end any more, so that nothing is decided or written for it.
    fn drop_stale(&self, source: &WorkspaceId, by: &Actor) -> Result<(), ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            self.abort_stale(writing, source, by)
        })
    }

    /// What was there when each conflict was found, as the trail has it. Of several about
    /// one path the last one counts, as with decisions.
    fn shown(&self, one: &Integration) -> Result<BTreeMap<TreePath, ContentId>, ProgressError> {
        let query = Query {
            streams: vec![Stream::from(&one.source)],
            kind: Some("conflict_detected".to_owned()),
            since: Some(one.started),
            ..Query::default()
        };
        let mut told: BTreeMap<String, ContentId> = BTreeMap::new();
        self.trail
            .entries(&query, |entry| -> Result<_, ProgressError> {
                let body: serde_json::Value =
                    serde_json::from_str(&self.trail.body(&entry)?).unwrap_or_default();
                let text = |name: &str| body.get(name).and_then(|value| value.as_str());
                let ours = text("ours").and_then(|ours| ours.parse().ok());
                if let (Some(conflict), Some(ours)) = (text("conflict"), ours) {
                    told.insert(conflict.to_owned(), ours);
                }
                Ok(Flow::More)
            })?;
        let mut shown = BTreeMap::new();
        for conflict in &one.conflicts {
            if let (Some(path), Some(ours)) = (&conflict.raw, told.get(&conflict.id)) {
                shown.insert(path.clone(), *ours);
            }
        }
        Ok(shown)
    }

    /// Records conflicts that came up after the first look.
    pub(super) fn found_later(
        &self,
        one: &Integration,
        conflicts: &[Conflict],
        by: &Actor,
    ) -> Result<Integration, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let now = open(writing, &one.source)?;
            self.detect(writing, &now, conflicts, by)?;
            again(writing, &now)
        })
    }

    /// Refuses work whose agent said that it is done, or in which conflicts were found.
    pub fn decline(
        &self,
        source: &WorkspaceId,
        revise: Declined,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let reason = match revise {
            Declined::Rejected => "rejected",
            Declined::Revise => "revision_required",
        };
        let standing = self.workspace(source)?.state;
        if !matches!(
            standing,
            WorkspaceState::Integrating | WorkspaceState::Conflicted
        ) {
            let why =
                format!("`{source}` is {standing}: there is no result that could be declined");
            return Err(ProgressError::Unfit(why));
        }
        self.move_to(source, WorkspaceState::Failed, Some(reason), by)?;
        Ok(())
    }

    pub(super) fn settle_conflict(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        number: i64,
        conflict: &Conflict,
        resolved: &Resolved,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let time = self.moment(writing)?;
        let row = [table::resolution_row(one, number, resolved, time)];
        let failed = matches!(resolved.strategy, Settling::Rework | Settling::Timeout);
        let entry = writing.append(Draft {
            stream: Stream::from(&one.source),
            actor: by.clone(),
            kind: Kind::fixed("conflict_resolved").into(),
            action_id: None,
            body: json!({
                "workspace_id": one.source, "conflict": conflict.id, "mode": one.mode,
                "conflict_type": conflict.kind, "resolution_strategy": resolved.strategy,
                "resolution": resolved.choice, "outcome": if failed { "failed" } else { "resolved" },
                "timestamp": time, "rows": table::marks(&row),
            }),
        })?;
        table::insert_rows(writing.sql(), &row, entry.seq)?;
        Ok(())
    }
}

/// In what way a result is declined. Either way the workspace fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Declined {
    /// It is not wanted.
    Rejected,
    /// It has to be done again, in a new workspace.
    Revise,
}

fn open(writing: &mut Writing<'_>, source: &WorkspaceId) -> Result<Integration, ProgressError> {
    let found = table::open_integrations_with(writing.sql(), source)?;
    let mut own = found.into_iter().filter(|one| one.source == *source);
    own.next()
        .ok_or_else(|| ProgressError::Unfit(format!("`{source}` is not being integrated")))
}

/// Why what was decided cannot be done, though nothing has changed since. To ask the same again
/// would lead nowhere: something has to be moved out of the way, or decided anew.
fn impossible(
    one: &Integration,
    (decided, shown): (
        &BTreeMap<TreePath, Resolution>,
        &BTreeMap<TreePath, ContentId>,
    ),
    found: &[Conflict],
) -> Option<String> {
    let (path, conflict) = found.iter().find_map(|conflict| {
        let path = conflict.raw.as_ref()?;
        let same = conflict.ours.is_some() && shown.get(path) == conflict.ours.as_ref();
        (same && decided.contains_key(path)).then_some((path, conflict))
    })?;
    let mut asked = one.conflicts.iter().rev();
    let asked = asked.find(|it| it.raw.as_ref() == Some(path))?;
    let choice = asked.resolution.as_ref()?.choice?;
    Some(format!(
        "`{}` was decided for `{choice}`, and `{}` cannot be replaced: {}; move that away and `safepoint workspace resolve {}` goes on, or decide `{}` for `ours`",
        asked.id,
        crate::record::shown_path(conflict.path.as_deref().unwrap_or_default()),
        conflict.description,
        one.source,
        asked.id,
    ))
}

/// The conflict that a decision is about, if it can be decided so.
fn found<'a>(
    one: &'a Integration,
    decision: &Resolve<'_>,
) -> Result<(i64, &'a Conflict), ProgressError> {
    let invalid = |why: String| Err(ProgressError::Invalid(why));
    let name = decision.conflict;
    let conflict = one.conflicts.iter().find(|one| one.id == name);
    let (Some(conflict), Some(number)) = (conflict, number_of(name)) else {
        return Err(ProgressError::NotFound {
            what: "conflict",
            name: safepoint_model::text::line(name).text.to_string(),
        });
    };
    match (decision.strategy, decision.choice) {
        (Settling::Timeout, _) => invalid("only time itself runs out".to_owned()),
        (Settling::Rework, None) => Ok((number, conflict)),
        (Settling::Rework, Some(_)) => {
            invalid("work that is done again leaves nothing to choose".to_owned())
        }
        (_, None) => invalid(format!(
            "say what becomes of `{name}`: `ours`, `theirs`, `merged` or a content"
        )),
        (_, Some(choice)) if conflict.is_rule() && choice != Choice::Ours => {
            Err(ProgressError::Refused(format!(
                "`{}` says what agents may do, and no integration changes that: decide `{name}` for `ours`, and write it yourself where it is wanted",
                crate::record::shown_path(conflict.path.as_deref().unwrap_or_default())
            )))
        }
        (_, Some(Choice::Merged)) if conflict.raw.is_some() && !conflict.mergeable => {
            invalid(format!("the changes of `{name}` do not fit line by line"))
        }
        (_, Some(Choice::Content)) if conflict.raw.is_none() => invalid(format!(
            "`{name}` is not about a path, so there is no place for a content: decide it for `ours` or `theirs`"
        )),
        (_, Some(Choice::Content)) if decision.content.is_none() => {
            invalid(format!("the content for `{name}` is missing"))
        }
        (_, Some(choice)) if choice != Choice::Content && decision.content.is_some() => invalid(
            format!("a content for `{name}` goes with the choice `content` alone"),
        ),
        _ => Ok((number, conflict)),
    }
}
