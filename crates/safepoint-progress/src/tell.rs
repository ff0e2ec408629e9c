//! Signals: emitted in the transaction that they tell of, delivered in another.
//!
//! So a parent that cannot be told does not keep its child from working, and
//! what was cut off in between is delivered by whoever comes next.

use safepoint_model::{SignalId, WorkspaceId};
use safepoint_store::Durability;
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::agent::actor;
use crate::progress::Progress;
use crate::signal::{Signal, SignalType, may_emit};
use crate::table::{self, Made};
use crate::{ProgressError, Workspace};

impl Progress {
    /// Emits a signal for the agent of a workspace, and makes the move that it asks for.
    ///
    /// One that comes too late is recorded and changes nothing.
    pub fn emit(
        &self,
        id: &WorkspaceId,
        token: &str,
        kind: SignalType,
        reason: Option<&str>,
        about: Option<&str>,
    ) -> Result<Signal, ProgressError> {
        if kind.needs_reason() && reason.is_none_or(|reason| reason.trim().is_empty()) {
            return Err(ProgressError::Refused(format!(
                "the signal `{kind}` needs a reason"
            )));
        }
        let signal = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            if let Err(error) = self.authenticate(writing, &made, token, "signal_emit")? {
                return Ok(Err(error));
            }
            let taxonomy = table::taxonomy(writing.sql(), &made.run)?;
            let permitted = taxonomy
                .base_of(&made.role)
                .is_some_and(|base| may_emit(base, kind));
            if !permitted {
                let detail = format!("the role `{}` does not emit the signal `{kind}`", made.role);
                writing.append(Draft {
                    stream: Stream::from(id),
                    actor: actor(&made.role),
                    kind: Kind::fixed("permission_denied").into(),
                    action_id: None,
                    body: json!({"workspace": id, "signal": kind, "role": made.role}),
                })?;
                return Ok(Err(ProgressError::Refused(detail)));
            }
            let signal = self.tell(writing, &made, actor(&made.role), kind, reason, about)?;
            let (standing, _) = table::standing(writing.sql(), id)?;
            if let Some(to) = kind.asks_for()
                && standing.moved_to(to).is_ok()
            {
                self.transition(writing, &made, to, reason, actor(&made.role))?
                    .map_err(ProgressError::from)?;
            }
            Ok::<_, ProgressError>(Ok(signal))
        })??;
        self.deliver()?;
        Ok(signal)
    }

    /// Emits a signal inside the present transaction.
    pub(crate) fn tell(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        by: Actor,
        kind: SignalType,
        reason: Option<&str>,
        about: Option<&str>,
    ) -> Result<Signal, ProgressError> {
        let timestamp = self.moment(writing)?;
        let signal = Signal {
            id: SignalId::new(timestamp, &*self.entropy)?,
            from: made.id.clone(),
            kind,
            reason: reason.map(str::to_owned),
            about: about.map(str::to_owned),
            timestamp,
            delivered_to: made.parent.clone(),
            delivered_at: None,
        };
        table::insert_signal(writing.sql(), &signal)?;
        writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: by,
            kind: Kind::fixed("signal_emitted").into(),
            action_id: None,
            body: json!({
                "signal_id": signal.id, "from": signal.from, "type": kind,
                "reason": signal.reason, "ref": signal.about, "timestamp": timestamp,
            }),
        })?;
        Ok(signal)
    }

    /// Delivers what waits, as far as parents can take it, and says how much that was.
    ///
    /// In order for each source, and each once, whoever else does the same.
    pub fn deliver(&self) -> Result<usize, ProgressError> {
        let nothing = self
            .trail
            .store()
            .read(|sql| Ok::<_, ProgressError>(table::waiting(sql)?.is_empty()))?;
        if nothing {
            return Ok(0);
        }
        self.trail.write(Durability::Sync, |writing| {
            let mut delivered = 0;
            for signal in table::waiting(writing.sql())? {
                let Some(parent) = &signal.delivered_to else {
                    continue;
                };
                let (standing, _) = table::standing(writing.sql(), parent)?;
                if standing.state.holds_signals() || standing.state.is_terminal() {
                    continue;
                }
                let time = self.moment(writing)?;
                table::insert_delivery(writing.sql(), &signal.id, time)?;
                writing.append(Draft {
                    stream: Stream::from(parent),
                    actor: protocol(),
                    kind: Kind::fixed("signal_delivered").into(),
                    action_id: None,
                    body: json!({
                        "signal_id": signal.id, "from": signal.from,
                        "delivered_to": parent, "delivered_at": time,
                    }),
                })?;
                delivered += 1;
            }
            Ok(delivered)
        })
    }

    /// What a workspace emitted and was told, in order.
    pub fn signals(&self, id: &WorkspaceId) -> Result<Vec<Signal>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            Ok(table::signals_of(sql, id)?)
        })
    }

    /// The workspaces below `id`, the oldest first.
    pub fn children(&self, id: &WorkspaceId) -> Result<Vec<Workspace>, ProgressError> {
        self.trail.store().read(|sql| {
            let children = table::children(sql, id)?;
            children
                .into_iter()
                .map(|made| Workspace::read(sql, made))
                .collect()
        })
    }
}

/// The runtime, where the rules themselves act.
pub(crate) fn protocol() -> Actor {
    "protocol".parse().unwrap_or_else(|_| Actor::safepoint())
}
