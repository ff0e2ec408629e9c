//! Signals: emitted in the transaction that they tell of. Delivered they are in another.

use safepoint_model::{SignalId, WorkspaceId};
use safepoint_store::{Durability, fault};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use crate::agent::actor;
use crate::deliver::Handing;
use crate::emitted::Emission;
use crate::error::without_nul;
use crate::progress::Progress;
use crate::signal::{Signal, SignalType, may_emit, move_asked};
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
        without_nul("a reason", reason)?;
        without_nul("what a signal is about", about)?;
        if kind.needs_reason() && reason.is_none_or(|reason| reason.trim().is_empty()) {
            return Err(ProgressError::Invalid(format!(
                "the signal `{kind}` needs a reason"
            )));
        }
        let signal = self.trail.write(Durability::Sync, |writing| {
            let made = table::made(writing.sql(), id)?;
            let agent = self.proved_binding(writing.sql(), id)?;
            if let Err(error) = self.authenticate(writing, &made, agent, token, "signal_emit")? {
                return Ok(Err(error));
            }
            let taxonomy = self.taxonomy(writing.sql(), &made.run)?;
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
            // What comes after the time is up is late, whether somebody looked or not.
            self.time_out_now(writing, &made)?;
            let signal = self.tell(writing, &made, actor(&made.role), kind, reason, about)?;
            let (standing, _) = self.proved_standing(writing.sql(), id)?;
            if let Some(to) = move_asked(standing, kind) {
                self.transition(writing, &made, to, reason, actor(&made.role))?
                    .map_err(ProgressError::from)?;
            }
            Ok::<_, ProgressError>(Ok(signal))
        })??;
        fault::point("progress.signal.acknowledged");
        // Emitted it is, whether or not it can be delivered now: an error would have it emitted
        // twice. The move may also have made this workspace able to hear its own children.
        let _ = self.deliver();
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
        let emission = self.utter(writing, made, by, kind, reason, about)?;
        self.hand_over(writing, &emission, &mut Handing::InLine)?;
        Ok(emission.signal)
    }

    /// The same for one who sees to it afterwards that its parent gets it.
    pub(crate) fn utter(
        &self,
        writing: &mut Writing<'_>,
        made: &Made,
        by: Actor,
        kind: SignalType,
        reason: Option<&str>,
        about: Option<&str>,
    ) -> Result<Emission, ProgressError> {
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
        let entry = writing.append(Draft {
            stream: Stream::from(&made.id),
            actor: by,
            kind: Kind::fixed("signal_emitted").into(),
            action_id: None,
            body: json!({
                "signal_id": signal.id, "from": signal.from, "type": kind,
                "reason": signal.reason, "ref": signal.about, "timestamp": timestamp,
            }),
        })?;
        fault::point("progress.signal.recorded");
        let entry = entry.seq;
        Ok(Emission { entry, signal })
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
