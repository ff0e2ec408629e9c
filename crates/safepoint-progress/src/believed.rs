//! Whether a row that is about to be used was told of: one lookup in the trail for each.
//!
//! A row that somebody adds behind our back has no entry of its own. The last one of a
//! workspace is believed only when it follows the one before it, and the entry at its place
//! is of this workspace and says the same. Whether that entry was signed is for `verify`.
//! Rows that are the same in every column as when they were believed last are believed again,
//! unless something came to nothing since, and the entry with it.

use std::collections::BTreeSet;

use safepoint_model::{Digest, Timestamp, WorkspaceId};
use safepoint_store::Sql;
use safepoint_trail::{Entry, Stream, entry_at, newest_of, page_of};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::ProgressError;
use crate::agent::agent_mark;
use crate::integrate::{Choice, Integration, Settling};
use crate::progress::Progress;
use crate::state::{Standing, State};
use crate::table::{self, StoredRecord};

/// So many entries are read at once.
const PAGE: u32 = 500;

#[derive(Deserialize)]
struct MoveSaid {
    to: State,
    timestamp: Timestamp,
}

#[derive(Deserialize)]
struct BindingSaid {
    agent: Digest,
    timestamp: Timestamp,
}

#[derive(Deserialize)]
struct DecisionSaid {
    conflict: String,
    resolution_strategy: Settling,
    resolution: Option<Choice>,
    timestamp: Timestamp,
}

fn tampered(what: &'static str, id: &WorkspaceId) -> ProgressError {
    ProgressError::Tampered {
        what,
        id: id.to_string(),
    }
}

impl Progress {
    /// Where a workspace stands, and after how many moves, as the trail tells it.
    pub(crate) fn proved_standing(
        &self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
    ) -> Result<(Standing, i64), ProgressError> {
        let found = (self.trail.undone(), table::newest_moves(sql, id)?);
        let rows = &found.1;
        let Some(last) = rows.first() else {
            return Ok((Standing::NEW, 0));
        };
        let standing = Standing {
            state: table::parsed(&last.state, 0)?,
            former: match &last.former {
                Some(former) => Some(table::parsed(former, 0)?),
                None => None,
            },
        };
        let number = last.number;
        if self.moves.is_known(id, &found) {
            return Ok((standing, number));
        }
        let before = rows.get(1).map(|row| (row.number, row.entry));
        let said: Option<MoveSaid> =
            self.said(sql, id, &["workspace_state_changed"], last.entry)?;
        let same = said.is_some_and(|said| {
            said.to.as_str() == last.state && said.timestamp.as_micros() == last.time
        });
        if !same || !follows((last.number, last.entry), before) {
            return Err(tampered("state of", id));
        }
        self.moves.remember(id, found);
        Ok((standing, number))
    }

    /// The end of a chain, if it is the last record that the trail tells of: one that was taken
    /// away behind our back is not built past.
    pub(crate) fn proved_head(
        &self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
    ) -> Result<Option<StoredRecord>, ProgressError> {
        let head = table::head(sql, id)?;
        let told = newest_of(sql, &Stream::from(id), "checkpoint_created")?;
        let told = told.map(|entry| i64::try_from(entry.seq).unwrap_or(i64::MAX));
        match head.as_ref().map(|head| head.entry) == told {
            true => Ok(head),
            false => Err(tampered("chain of", id)),
        }
    }

    /// The digest of the token that counts, as the trail tells it.
    pub(crate) fn proved_binding(
        &self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
    ) -> Result<Option<Digest>, ProgressError> {
        let found = (self.trail.undone(), table::newest_bindings(sql, id)?);
        let rows = &found.1;
        let Some(last) = rows.first() else {
            return Ok(None);
        };
        let digest = last.digest.as_deref().map(Digest::from_slice);
        let digest = digest.and_then(Result::ok);
        if self.bindings.is_known(id, &found) {
            return Ok(digest);
        }
        let before = rows.get(1).map(|row| (row.number, row.entry));
        let kinds = ["agent_bound", "workspace_created"];
        let said: Option<BindingSaid> = self.said(sql, id, &kinds, last.entry)?;
        let same = said.is_some_and(|said| {
            digest.as_ref().map(agent_mark) == Some(said.agent)
                && said.timestamp.as_micros() == last.time
        });
        if !same || !follows((last.number, last.entry), before) {
            return Err(tampered("agent of", id));
        }
        self.bindings.remember(id, found);
        Ok(digest)
    }

    /// Refuses an integration with a decision that nobody has told of.
    pub(crate) fn prove_decisions(
        &self,
        sql: &mut dyn Sql,
        one: &Integration,
    ) -> Result<(), ProgressError> {
        let times = table::decided(sql, one)?;
        if times.is_empty() {
            return Ok(());
        }
        // It is told in the same stream, since this integration began.
        let stream = Stream::from(&one.source);
        let mut told = BTreeSet::new();
        let mut from = 0;
        loop {
            let page = page_of(sql, &stream, from, PAGE)?;
            let Some(last) = page.last().map(|entry| entry.seq) else {
                break;
            };
            let about = |entry: &&Entry| entry.kind.as_str() == "conflict_resolved";
            for entry in page.iter().filter(about) {
                let body = self.trail.whole_body(&entry.body)?;
                let Ok(said) = serde_json::from_str::<DecisionSaid>(&body) else {
                    continue;
                };
                if said.timestamp >= one.started {
                    told.insert((
                        said.conflict,
                        said.resolution_strategy.as_str(),
                        said.resolution.map(Choice::as_str),
                        said.timestamp.as_micros(),
                    ));
                }
            }
            from = last.saturating_add(1);
        }
        for conflict in &one.conflicts {
            let Some(resolved) = &conflict.resolution else {
                continue;
            };
            let time = times.get(&conflict.id).copied().unwrap_or(-1);
            let decided = (
                conflict.id.clone(),
                resolved.strategy.as_str(),
                resolved.choice.map(Choice::as_str),
                time,
            );
            if !told.contains(&decided) {
                return Err(tampered("decision about a conflict of", &one.source));
            }
        }
        Ok(())
    }

    /// What the entry at a place says, if it is one of these kinds and of this workspace.
    fn said<T: DeserializeOwned>(
        &self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
        kinds: &[&str],
        place: i64,
    ) -> Result<Option<T>, ProgressError> {
        let entry = match u64::try_from(place) {
            Ok(place) => entry_at(sql, place)?,
            Err(_) => None,
        };
        let right = entry.filter(|entry| {
            kinds.contains(&entry.kind.as_str()) && entry.stream == Stream::from(id)
        });
        match right {
            Some(entry) => Ok(serde_json::from_str(&self.trail.whole_body(&entry.body)?).ok()),
            None => Ok(None),
        }
    }
}

/// Whether a row comes right after another, and was told of later: else an old entry would
/// do for a new row.
fn follows(last: (i64, i64), before: Option<(i64, i64)>) -> bool {
    match before {
        Some((number, entry)) => last.0 == number + 1 && last.1 > entry,
        None => last.0 == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Given;
    use crate::begin::Beginning;
    use crate::taxonomy::Taxonomy;
    use safepoint_store::Durability;
    use std::sync::Arc;
    use testkit::{Seeded, append, on_every_store};

    on_every_store! {
        fn pr_13_a_row_is_judged_again_when_what_told_of_it_came_to_nothing(room: Room) {
            let trail = room.trail();
            let entropy = Arc::new(Seeded::new(1));
            let progress = Progress::open(trail.clone(), room.clock.clone(), entropy).unwrap();
            let ada: safepoint_trail::Actor = "user:ada".parse().unwrap();
            let beginning = Beginning::Root(&Taxonomy::empty());
            let given = Given { directive: Some("lead"), ..Given::default() };
            let id = progress.create(&beginning, &given, &ada).unwrap().workspace_id;

            let mut judged = None;
            let undone = trail.write(Durability::Sync, |writing| {
                let made = table::made(writing.sql(), &id)?;
                progress.transition(writing, &made, State::Suspended, None, ada.clone())?.unwrap();
                progress.proved_standing(writing.sql(), &id)?;
                judged = table::newest_moves(writing.sql(), &id)?.into_iter().next();
                Err::<(), _>(ProgressError::Refused("on purpose".to_owned()))
            });
            assert!(matches!(undone, Err(ProgressError::Refused(_))), "{undone:?}");

            // Something else is told at the place of its entry, and somebody adds the same row.
            let row = judged.unwrap();
            while append(&trail, "sess_other", 1).seq < u64::try_from(row.entry).unwrap() {}
            room.tamper(&format!(
                "INSERT INTO progress_moves (workspace, number, state, former, time, entry) \
                 VALUES ('{id}', {}, '{}', {}, {}, {})",
                row.number,
                row.state,
                row.former.as_ref().map_or("NULL".to_owned(), |former| format!("'{former}'")),
                row.time,
                row.entry,
            ));
            let seen = trail.store().read(|sql| Ok::<_, ProgressError>(table::newest_moves(sql, &id)?));
            assert_eq!(seen.unwrap().first(), Some(&row));
            let believed = trail.store().read(|sql| progress.proved_standing(sql, &id));
            assert!(matches!(believed, Err(ProgressError::Tampered { .. })), "{believed:?}");
        }
    }
}
