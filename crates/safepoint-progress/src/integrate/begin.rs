//! The first step of an integration: what is chosen, whether it may be, and what is in its way.

use std::collections::BTreeSet;

use safepoint_state::{HeldDirectory, State};
use safepoint_store::{Durability, Sql, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::end::is_stale;
use super::tree::Looked;
use super::{
    Bringing, Conflict, ConflictType, Ground, Integration, Mode, Step, Strategy, Wish, taker,
};
use crate::chain::opened;
use crate::error::without_nul;
use crate::moves::living_children;
use crate::place::Place;
use crate::record::{Confidence, Record};
use crate::role::BaseRole;
use crate::state::State as WorkspaceState;
use crate::table::{self, Made, StoredRecord};
use crate::{Progress, ProgressError};

/// What an integration is about.
pub(super) struct Chosen {
    pub(super) made: Made,
    pub(super) target: Made,
    pub(super) stored: StoredRecord,
    pub(super) place: Option<Place>,
}

impl Progress {
    /// Begins an integration: the record is chosen and proved, and what it would change is
    /// compared with what is there. Nothing outside the store is touched.
    pub fn prepare(
        &self,
        wish: &Wish<'_>,
        ground: Option<&Ground<'_>>,
        by: &Actor,
    ) -> Result<Step, ProgressError> {
        for finding in wish.findings {
            without_nul("a finding", Some(&finding.description))?;
        }
        let state: Option<&State> = ground.map(|ground| ground.state);
        let (chosen, record) = self.choose_proved(wish, state, by)?;
        fault::point("integrate.proved");
        let taxonomy = self
            .trail
            .store()
            .read(|sql| table::taxonomy(sql, &chosen.made.run))?;
        let read_only = record.kind == "observation"
            || taxonomy.base_of(&chosen.made.role) == Some(BaseRole::Observer);
        let mut looked = match (&chosen.place, read_only) {
            (_, true) => Looked::default(),
            (Some(place), false) => self.look(place, &record, wish.strategy, ground)?,
            (None, false) => Looked {
                conflicts: self.overlaps(&chosen, &record, wish.strategy)?,
                ..Looked::default()
            },
        };
        looked
            .conflicts
            .extend(wish.findings.iter().map(|finding| Conflict {
                id: String::new(),
                kind: finding.kind,
                path: None,
                raw: None,
                mergeable: false,
                description: finding.description.clone(),
                ours: None,
                resolution: None,
            }));
        self.start(wish, &record, looked, ground, by)
    }

    /// Whether what would be taken over is what was written. If it is not, that is recorded,
    /// and nothing of it is taken over: for whoever stumbled over it before it could begin.
    pub fn prove_chosen(
        &self,
        wish: &Wish<'_>,
        state: Option<&State>,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        self.choose_proved(wish, state, by).map(drop)
    }

    fn choose_proved(
        &self,
        wish: &Wish<'_>,
        state: Option<&State>,
        by: &Actor,
    ) -> Result<(Chosen, Record), ProgressError> {
        let chosen = match self.trail.store().read(|sql| choose(sql, wish))? {
            Ok(chosen) => chosen,
            // What it lacks may have been taken away behind our back.
            Err(why) => {
                return Err(match self.faulty(wish.source)? {
                    Some(found) => found.into(),
                    None => self.refused(wish, why, by)?,
                });
            }
        };
        self.trail.store().read(|sql| {
            self.proved_standing(sql, &chosen.made.id)?;
            self.proved_standing(sql, &chosen.target.id)
        })?;
        let proved = match self.proved_whole(&chosen, state)? {
            Ok(record) => self.faulty(wish.source)?.map_or(Ok(record), Err),
            found => found,
        };
        match proved {
            Ok(record) => Ok((chosen, record)),
            Err(found) => {
                self.violated(wish, &chosen.target.id, by)?;
                Err(found.into())
            }
        }
    }

    /// Records that it begins, with what was found.
    fn start(
        &self,
        wish: &Wish<'_>,
        record: &Record,
        mut looked: Looked,
        ground: Option<&Ground<'_>>,
        by: &Actor,
    ) -> Result<Step, ProgressError> {
        let conflicts = std::mem::take(&mut looked.conflicts);
        let brings = looked.bring.is_some() && conflicts.is_empty();
        let action = ground.filter(|_| brings).map(|ground| &ground.errand.id);
        let begun = self.trail.write(Durability::Sync, |writing| {
            let chosen = match choose(writing.sql(), wish)? {
                Ok(chosen) if chosen.stored.id == record.id.as_str() => chosen,
                Ok(_) => {
                    let why = "another checkpoint has become the newest final one; ask again";
                    let why = unfit(why.to_owned());
                    return Ok(Err(self.refuse_in(writing, wish, why, by)?));
                }
                Err(why) => return Ok(Err(self.refuse_in(writing, wish, why, by)?)),
            };
            self.abort_stale(writing, &chosen.target.id, by)?;
            let started = self.moment(writing)?;
            let one = Integration {
                source: wish.source.clone(),
                target: chosen.target.id.clone(),
                turn: table::next_turn(writing.sql(), &chosen.target.id)?,
                mode: wish.mode,
                strategy: wish.strategy,
                checkpoint_ref: record.id.clone(),
                started,
                actions: Vec::new(),
                conflicts: Vec::new(),
                result: None,
            };
            let mut rows = vec![table::integration_row(&one)];
            rows.extend(action.map(|action| table::action_row(&one, action)));
            let entry = writing.append(Draft {
                stream: Stream::from(wish.source),
                actor: by.clone(),
                kind: Kind::fixed("integration_started").into(),
                action_id: action.cloned(),
                body: json!({
                    "source": one.source, "target": one.target, "owner": by, "mode": one.mode,
                    "strategy": one.strategy, "checkpoint_ref": one.checkpoint_ref, "turn": one.turn,
                    "confidence": effective(wish.mode, record), "timestamp": started,
                    "rows": table::marks(&rows),
                }),
            })?;
            table::insert_rows(writing.sql(), &rows, entry.seq)?;
            if !conflicts.is_empty() {
                self.detect(writing, &one, &conflicts, by)?;
            } else if action.is_none() {
                self.finish(writing, &one, by)?;
            }
            Ok::<_, ProgressError>(Ok(again(writing, &one)?))
        })??;
        self.deliver()?;
        fault::point("integrate.started");
        Ok(match (looked.bring, ground) {
            _ if begun.result.is_some() => Step::Done(begun),
            (Some((place, base, work, held)), Some(ground)) if brings => {
                Step::Bring(Box::new(Bringing {
                    integration: begun,
                    place,
                    base,
                    work,
                    resolutions: std::collections::BTreeMap::new(),
                    shown: std::collections::BTreeMap::new(),
                    errand: ground.errand.clone(),
                    _held: held,
                }))
            }
            _ => Step::Conflicted(begun),
        })
    }

    /// What others have changed of the same, by what records say of themselves.
    fn overlaps(
        &self,
        chosen: &Chosen,
        record: &Record,
        strategy: Strategy,
    ) -> Result<Vec<Conflict>, ProgressError> {
        if strategy == Strategy::Direct {
            return Ok(Vec::new());
        }
        let plain = |path: &String| path.trim_start_matches("./").to_owned();
        let mine: BTreeSet<String> = record.payload.files_changed.iter().map(plain).collect();
        let mut found: BTreeSet<String> = BTreeSet::new();
        self.trail.store().read(|sql| {
            let taken = table::taken_over_since(sql, &chosen.target.id, chosen.made.created)?;
            for (source, id) in taken {
                for stored in table::chain(sql, &source)? {
                    if stored.id == id {
                        let other = opened(&source, &stored)?;
                        let theirs: BTreeSet<String> =
                            other.payload.files_changed.iter().map(plain).collect();
                        found.extend(mine.intersection(&theirs).cloned());
                    }
                }
            }
            Ok::<_, ProgressError>(())
        })?;
        Ok(found
            .into_iter()
            .map(|path| Conflict {
                id: String::new(),
                kind: ConflictType::ContentOverlap,
                raw: Some(path.clone().into_bytes()),
                path: Some(path),
                mergeable: false,
                description: "it was changed by work that was taken over since".to_owned(),
                ours: None,
                resolution: None,
            })
            .collect())
    }

    /// Records conflicts, and that the workspace has them.
    pub(super) fn detect(
        &self,
        writing: &mut Writing<'_>,
        one: &Integration,
        conflicts: &[Conflict],
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let known = i64::try_from(again(writing, one)?.conflicts.len()).unwrap_or(i64::MAX);
        for (number, conflict) in (known + 1..).zip(conflicts) {
            let row = [table::conflict_row(one, number, conflict)];
            let entry = writing.append(Draft {
                stream: Stream::from(&one.source),
                actor: by.clone(),
                kind: Kind::fixed("conflict_detected").into(),
                action_id: None,
                body: json!({
                    "workspace_id": one.source, "conflict": format!("c{number}"), "mode": one.mode,
                    "conflict_type": conflict.kind, "resources": [conflict.path],
                    "description": conflict.description, "ours": conflict.ours, "rows": table::marks(&row),
                }),
            })?;
            table::insert_rows(writing.sql(), &row, entry.seq)?;
        }
        let made = table::made(writing.sql(), &one.source)?;
        let (standing, _) = table::standing(writing.sql(), &one.source)?;
        if standing.state == WorkspaceState::Integrating {
            let reason = Some("conflict_detected");
            self.transition(
                writing,
                &made,
                WorkspaceState::Conflicted,
                reason,
                by.clone(),
            )?
            .map_err(ProgressError::from)?;
        }
        Ok(())
    }

    fn refused(
        &self,
        wish: &Wish<'_>,
        why: ProgressError,
        by: &Actor,
    ) -> Result<ProgressError, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            self.refuse_in(writing, wish, why, by)
        })
    }

    fn refuse_in(
        &self,
        writing: &mut Writing<'_>,
        wish: &Wish<'_>,
        why: ProgressError,
        by: &Actor,
    ) -> Result<ProgressError, ProgressError> {
        let timestamp = self.moment(writing)?;
        writing.append(Draft {
            stream: Stream::from(wish.source),
            actor: by.clone(),
            kind: Kind::fixed("integration_refused").into(),
            action_id: None,
            body: json!({
                "source": wish.source, "mode": wish.mode, "strategy": wish.strategy,
                "reason": why.to_string(), "timestamp": timestamp,
            }),
        })?;
        Ok(why)
    }
}

/// How sure one may be of it: what a failed workspace left is never more than uncertain.
fn effective(mode: Mode, record: &Record) -> Confidence {
    match mode {
        Mode::Normal => record.confidence,
        Mode::Salvage => Confidence::Low,
    }
}

/// The same integration, as the store has it now.
pub(super) fn again(
    writing: &mut Writing<'_>,
    one: &Integration,
) -> Result<Integration, ProgressError> {
    let found = table::integration(writing.sql(), &one.target, one.turn)?;
    found.ok_or_else(|| ProgressError::NotFound {
        what: "integration of workspace",
        name: one.source.to_string(),
    })
}

/// Which record it is, or why there is none.
fn choose(
    sql: &mut dyn Sql,
    wish: &Wish<'_>,
) -> Result<Result<Chosen, ProgressError>, ProgressError> {
    let id = wish.source;
    let made = table::made(sql, id)?;
    if made.parent.is_none() {
        return Ok(Err(unfit(format!(
            "`{id}` is a root: there is nothing that could take it over"
        ))));
    }
    let Some(target) = taker::of(sql, &made)?.target else {
        return Ok(Err(unfit(format!(
            "everything above `{id}` has ended: nothing is left that could take it over"
        ))));
    };
    if let Some(why) = in_the_way(sql, wish, &target)? {
        return Ok(Err(why));
    }
    let newest_final = table::newest_final(sql, id)?;
    let stored = match (wish.mode, wish.record) {
        (Mode::Normal, wanted) => {
            let Some(newest) = newest_final else {
                return Ok(Err(unfit(format!(
                    "`{id}` has no final checkpoint: fail it, and salvage what can be used of it"
                ))));
            };
            if wanted.is_some_and(|wanted| wanted.as_str() != newest.id) {
                return Ok(Err(unfit(format!(
                    "only the newest final checkpoint of `{id}` is integrated, which is `{}`",
                    newest.id
                ))));
            }
            newest
        }
        (Mode::Salvage, None) => match newest_final {
            Some(newest) => newest,
            None => match table::head(sql, id)? {
                Some(head) => head,
                None => {
                    return Ok(Err(unfit(format!(
                        "`{id}` has no checkpoint that could be salvaged"
                    ))));
                }
            },
        },
        (Mode::Salvage, Some(wanted)) => {
            let mut chain = table::chain(sql, id)?.into_iter();
            match chain.find(|stored| stored.id == wanted.as_str()) {
                Some(stored) => stored,
                None => return Ok(Err(unfit(format!("`{wanted}` is no checkpoint of `{id}`")))),
            }
        }
    };
    let place = table::place(sql, id)?;
    Ok(Ok(Chosen {
        made,
        target,
        stored,
        place,
    }))
}

fn unfit(why: String) -> ProgressError {
    ProgressError::Unfit(why)
}

/// Why what is wished cannot begin now.
fn in_the_way(
    sql: &mut dyn Sql,
    wish: &Wish<'_>,
    target: &Made,
) -> Result<Option<ProgressError>, ProgressError> {
    let id = wish.source;
    let (standing, _) = table::standing(sql, id)?;
    let state = standing.state;
    let why = match (wish.mode, state) {
        (Mode::Normal, WorkspaceState::Integrating) | (Mode::Salvage, WorkspaceState::Failed) => {
            None
        }
        (Mode::Normal, WorkspaceState::Failed) => Some(format!(
            "`{id}` is failed: what can be used of it is salvaged"
        )),
        (Mode::Normal, WorkspaceState::Conflicted) => Some(format!(
            "`{id}` has conflicts: they are resolved one by one, or it is failed"
        )),
        (Mode::Normal, _) => Some(format!(
            "`{id}` is {state}: it is integrated when its agent has said that it is complete"
        )),
        (Mode::Salvage, _) => Some(format!(
            "`{id}` is {state}: only a failed workspace is salvaged"
        )),
    };
    if why.is_some() {
        return Ok(why.map(unfit));
    }
    if wish.mode == Mode::Salvage && wish.strategy != Strategy::Evaluated {
        let why = "what a failed workspace left is only integrated with the strategy `evaluated`";
        return Ok(Some(ProgressError::Invalid(why.to_owned())));
    }
    if wish.strategy != Strategy::Evaluated && !wish.findings.is_empty() {
        let why = "only the strategy `evaluated` takes findings";
        return Ok(Some(ProgressError::Invalid(why.to_owned())));
    }
    if wish.mode == Mode::Normal
        && let Some(child) = living_children(sql, id)?.first()
    {
        return Ok(Some(unfit(format!(
            "`{child}` below `{id}` has not ended: integrate it first, or fail it"
        ))));
    }
    for one in table::open_integrations_with(sql, &target.id)? {
        if one.target == target.id && !is_stale(sql, &one)? {
            return Ok(Some(unfit(format!(
                "`{}` is taking over `{}`: one after the other; `safepoint workspace resolve {}` goes on with it, and `safepoint workspace recover` ends it where it was cut off",
                one.target, one.source, one.source
            ))));
        }
    }
    Ok(None)
}

/// What is needed to change a directory.
pub(super) type ToBring = (
    Place,
    safepoint_state::Snapshot,
    safepoint_state::Snapshot,
    HeldDirectory,
);

/// The number of a conflict by its name.
pub(super) fn number_of(name: &str) -> Option<i64> {
    name.strip_prefix('c')?.parse().ok()
}
