//! Moves: a workspace goes from state to state, and may be given to another agent.
//!
//! Each is one transaction with the entries that tell of it. A move that there
//! is not is refused, and recorded too.

use safepoint_model::WorkspaceId;
use safepoint_store::{Durability, Sql, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::ProgressError;
use crate::agent::{agent_mark, new_token, token_digest};
use crate::begin::Created;
use crate::error::without_nul;
use crate::meter::Dimension;
use crate::progress::Progress;
use crate::state::{IllegalMove, Standing, State};
use crate::table::{self, Made};
use crate::tell::protocol;

/// Why a workspace moves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cause<'a> {
    /// In a word.
    pub(crate) reason: Option<&'a str>,
    /// The limit that was passed, if it was one.
    pub(crate) dimension: Option<Dimension>,
}

impl Progress {
    /// Moves a workspace, as its coordinator. A move that there is not is refused and recorded,
    /// and so is one that only the agent or an integration makes.
    pub fn move_to(
        &self,
        id: &WorkspaceId,
        to: State,
        reason: Option<&str>,
        by: &Actor,
    ) -> Result<Standing, ProgressError> {
        without_nul("a reason", reason)?;
        let moved = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            let (before, _) = table::standing(writing.sql(), id)?;
            if before.moved_to(to).is_ok()
                && let Some(why) = not_by_hand(writing, &made, to)?
            {
                self.refuse_move(writing, &made, (before.state, to), reason, by)?;
                return Ok::<_, ProgressError>(Err(ProgressError::Unfit(why)));
            }
            let moved = self.transition(writing, &made, to, reason, by.clone())?;
            Ok(moved.map_err(ProgressError::from))
        })?;
        // It may have become able to take what waits for it. The move is made all the same.
        let _ = self.deliver_to(id);
        moved
    }

    /// Records that a move was asked for that nobody makes by hand.
    fn refuse_move(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        (from, to): (State, State),
        reason: Option<&str>,
        by: &Actor,
    ) -> Result<(), ProgressError> {
        let time = self.moment(writing)?;
        writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: by.clone(),
            kind: Kind::fixed("workspace_state_refused").into(),
            action_id: None,
            body: json!({
                "workspace": made.id, "from": from, "to": to, "reason": reason, "timestamp": time,
            }),
        })?;
        Ok(())
    }

    /// Gives a workspace to another agent: the old token stops counting, then there is a new one.
    pub fn migrate(&self, id: &WorkspaceId, by: &Actor) -> Result<Created, ProgressError> {
        let token = new_token(&*self.entropy)?;
        let moved = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            let (before, _) = self.proved_standing(writing.sql(), id)?;
            if let Err(refused) =
                self.transition(writing, &made, State::Migrating, None, by.clone())?
            {
                return Ok(Err(refused));
            }
            let time = self.moment(writing)?;
            let agent = token_digest(id, &token);
            let entry = writing.append(Draft {
                stream: Stream::from(id),
                actor: by.clone(),
                kind: Kind::fixed("agent_bound").into(),
                action_id: None,
                body: json!({"workspace": id, "agent": agent_mark(&agent), "timestamp": time}),
            })?;
            table::bind(writing.sql(), id, Some(&agent), time, entry.seq)?;
            self.transition(writing, &made, before.state, Some("migrated"), by.clone())
        })?;
        moved?;
        let _ = self.deliver_to(id); // as above
        Ok(Created {
            workspace_id: id.clone(),
            token,
        })
    }

    /// Makes or refuses a move inside the present transaction, and records either.
    pub(crate) fn transition(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        to: State,
        reason: Option<&str>,
        by: Actor,
    ) -> Result<Result<Standing, IllegalMove>, ProgressError> {
        let cause = Cause {
            reason,
            dimension: None,
        };
        self.transition_for(writing, made, to, cause, by)
    }

    /// The same, with all there is to say of why.
    pub(crate) fn transition_for(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        to: State,
        cause: Cause<'_>,
        by: Actor,
    ) -> Result<Result<Standing, IllegalMove>, ProgressError> {
        let reason = cause.reason;
        let (before, number) = self.proved_standing(writing.sql(), &made.id)?;
        let time = self.moment(writing)?;
        let moved = before.moved_to(to);
        let by_whom = by.clone();
        let kind = match moved {
            Ok(_) => Kind::fixed("workspace_state_changed"),
            Err(_) => Kind::fixed("workspace_state_refused"),
        };
        let meter = match moved {
            Ok(_) => vec![self.meter_move(writing, made, (before.state, to), time)?],
            Err(_) => Vec::new(),
        };
        let mut body = json!({
            "workspace": made.id, "from": before.state, "to": to, "reason": reason, "timestamp": time,
            "rows": table::marks(&meter),
        });
        if let (Some(dimension), Some(fields)) = (cause.dimension, body.as_object_mut()) {
            fields.insert("budget_dimension".to_owned(), json!(dimension));
        }
        let entry = writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: by,
            kind: kind.into(),
            action_id: None,
            body,
        })?;
        fault::point("progress.move.recorded");
        if let Ok(standing) = moved {
            let id = &made.id;
            table::insert_move(
                writing.sql(),
                id,
                number + 1,
                standing,
                reason,
                time,
                entry.seq,
            )?;
            fault::point("progress.move.kept");
            table::insert_rows(writing.sql(), &meter, entry.seq)?;
            self.follow(writing, &made.id, to, reason)?;
        }
        if moved.is_ok() && to == State::Failed {
            self.abort_open(writing, &made.id, reason, &by_whom)?;
            for child in table::children(writing.sql(), &made.id)? {
                let (standing, _) = table::standing(writing.sql(), &child.id)?;
                if !standing.state.is_terminal() {
                    self.transition(
                        writing,
                        &child,
                        State::Failed,
                        Some("parent_failed"),
                        protocol(),
                    )?
                    .map_err(ProgressError::from)?;
                }
            }
        }
        Ok(moved)
    }
}

/// Those directly below a workspace that have not ended, the oldest first.
pub(crate) fn living_children(
    sql: &mut dyn Sql,
    id: &WorkspaceId,
) -> Result<Vec<WorkspaceId>, ProgressError> {
    let mut living = Vec::new();
    for child in table::children(sql, id)? {
        let (standing, _) = table::standing(sql, &child.id)?;
        if !standing.state.is_terminal() {
            living.push(child.id);
        }
    }
    Ok(living)
}

/// Why a move that there is is not the coordinator's to make. A root has nobody above it that
/// could take it over, so its coordinator says itself when it is done.
fn not_by_hand(
    writing: &mut Writing<'_>,
    made: &Made,
    to: State,
) -> Result<Option<String>, ProgressError> {
    let id = &made.id;
    Ok(match (to, &made.parent) {
        (State::Integrating, Some(_)) => Some(format!(
            "`{id}` is integrating when its agent says `complete`; without that it can be failed, and salvaged"
        )),
        (State::Closed, Some(_)) => Some(format!(
            "`{id}` is closed when its work is taken over: integrate it, or decline it"
        )),
        (State::Closed, None) => {
            let living = living_children(writing.sql(), id)?;
            living.first().map(|child| {
                format!("`{id}` is not done while `{child}` below it has not ended: integrate that, or fail it")
            })
        }
        (State::Conflicted, _) => Some(format!(
            "only an integration finds that the work of `{id}` does not fit"
        )),
        _ => None,
    })
}
