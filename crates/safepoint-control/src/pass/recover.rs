//! What was cut off: an action whose process is gone before it said how it ended.
//!
//! Nobody knows how far it came. It is recorded as `unknown`, with what changed, and is
//! never run again by itself.

use std::path::{Path, PathBuf};

use safepoint_authority::{Denial, Permit};
use safepoint_model::{ActionId, SessionId, Timestamp};
use safepoint_state::{Errand, RunningStates, Share, StateError};
use safepoint_store::{Durability, Sql};
use safepoint_trail::{Actor, Draft, Kind, Stream, Writing};
use serde_json::json;

use super::documents::Running;
use super::outbox::Ending;
use super::visit::is_alive;
use super::{Bench, CallKind, Leave, Passage, Visitor};
use crate::{Control, ControlError, kept};

/// This process, and when it was started: numbers are given out again.
pub fn this_process() -> (u32, u64) {
    let id = std::process::id();
    (id, started(id).unwrap_or(0))
}

/// When a process was started, in ticks since the machine was. None where there is none, or only
/// its parent has not noticed yet that it ended.
pub(super) fn started(process: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in parentheses, may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let has_ended = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.parse().ok();
    started.filter(|_| !has_ended)
}

/// The process that started another one.
pub(super) fn parent(process: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// An action whose process is gone before it said how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CutOff {
    /// Where.
    pub workspace: PathBuf,
    /// What it was, in a sentence.
    pub summary: String,
    /// Whether there is a checkpoint of the state before it. What has none wrote nothing, or is a
    /// change that is recorded by itself.
    pub has_checkpoint: bool,
}

impl Control {
    /// Whether this process was started, however indirectly, by an action that is running:
    /// then it belongs to an agent, and decides nothing.
    pub fn is_within_an_action(&self) -> Result<bool, ControlError> {
        Ok(self.session_above()?.is_some())
    }

    /// The states before the actions of this machine that are being carried out, and which
    /// action that is: without such a state, what its action did could not be taken back.
    pub fn states_before_running(&self, sql: &mut dyn Sql) -> Result<RunningStates, ControlError> {
        let running: Vec<Running> = kept::open_if(sql, Running::is_here)?;
        let named = |it: Running| Some((it.before?.parse().ok()?, it.action_id));
        Ok(running.into_iter().filter_map(named).collect())
    }

    /// What is being carried out in a workspace of this machine and may change it: each action
    /// and its summary.
    pub fn running_in(&self, workspace: &Path) -> Result<Vec<(ActionId, String)>, ControlError> {
        let here = crate::world::text(workspace)?;
        let changes = |it: &Running| {
            it.is_here() && it.workspace == here && it.before.is_some() && !it.is_agent()
        };
        let store = self.trail.store();
        let running: Vec<Running> = store.read(|sql| kept::open_if(sql, changes))?;
        let alive = running.into_iter().filter(|it| is_alive(it.process));
        Ok(alive.map(|it| (it.action_id, it.summary)).collect())
    }

    /// What was cut off on this machine and is not recorded yet.
    pub fn cut_off(&self) -> Result<Vec<CutOff>, ControlError> {
        let store = self.trail.store();
        let is_cut_off = |it: &Running| it.is_here() && it.is_cut_off();
        let cut_off: Vec<Running> = store.read(|sql| kept::open_if(sql, is_cut_off))?;
        let named = |it: Running| CutOff {
            workspace: it.workspace.into(),
            has_checkpoint: it.before.is_some(),
            summary: it.summary,
        };
        Ok(cut_off.into_iter().map(named).collect())
    }

    /// The session of the action that has started this process, however indirectly.
    pub fn session_above(&self) -> Result<Option<SessionId>, ControlError> {
        let store = self.trail.store();
        let running: Vec<Running> = store.read(|sql| kept::open_if(sql, Running::is_here))?;
        let mut process = Some(std::process::id());
        while let Some(id) = process.filter(|id| *id > 1) {
            let begun = started(id).unwrap_or(0);
            let mut above = running.iter();
            if let Some(it) = above.find(|it| it.starts_from() == Some((id, begun))) {
                let session = it.agent_session.as_ref().unwrap_or(&it.session_id);
                return Ok(Some(session.clone()));
            }
            process = parent(id);
        }
        Ok(None)
    }
}

impl Passage<'_> {
    /// Ends what was cut off in this workspace.
    pub fn recover(&self) -> Result<Vec<String>, ControlError> {
        let store = self.control.trail.store();
        let here = crate::world::text(&self.workspace.root)?;
        let cut_here = |it: &Running| it.is_here() && it.workspace == here;
        let mut told = Vec::new();
        for cut in store.read(|sql| kept::open_if(sql, cut_here))? {
            if !cut.is_cut_off() {
                continue; // somebody is at it
            }
            told.push(cut.summary.clone());
            self.record_unknown(cut)?;
        }
        self.record_cut_off_late_writes()?;
        self.sweep_write_journals()?;
        Ok(told)
    }

    /// Removes what supervisors kept of actions whose end is recorded by now.
    fn sweep_write_journals(&self) -> Result<(), ControlError> {
        let store = self.control.trail.store();
        for action in self.state.write_journals() {
            let running: Option<Running> = store.read(|sql| kept::get(sql, action.as_str()))?;
            if running.is_some_and(|it| it.ended) {
                self.state.end_write_journal(&action);
            }
        }
        Ok(())
    }

    /// What of the changes is the own part of an action that was cut off: what its processes were
    /// seen to write, or what it names. Whatever else has changed since may be a person's.
    pub(super) fn share_of_cut_off(&self, cut: &Running) -> Result<Share, ControlError> {
        let is_file_tool = |it: &Visitor| it.kind == CallKind::Files;
        if cut.claims.is_some() && cut.visitor.as_ref().is_some_and(is_file_tool) {
            return self.share_of(cut);
        }
        let root = &self.workspace.root;
        Ok(self.state.share_of_cut_off(root, &cut.action_id))
    }

    pub(super) fn record_unknown(&self, cut: Running) -> Result<(), ControlError> {
        let errand = Errand {
            id: cut.action_id.clone(),
            session: Some(
                cut.agent_session
                    .as_ref()
                    .unwrap_or(&cut.session_id)
                    .to_string(),
            ),
            action: cut.action.clone(),
            summary: cut.summary.clone(),
            decision: cut.decision.clone(),
            left_by: None,
        };
        let before = match &cut.before {
            None => None,
            Some(id) => match self.state.find(id) {
                Ok(snapshot) => Some(snapshot),
                // It is told all the same; only what changed cannot be.
                Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => None,
                Err(error) => return Err(error.into()),
            },
        };
        let end = |writing: &mut Writing<'_>| -> Result<(), ControlError> {
            let still: Option<Running> = kept::get(writing.sql(), cut.action_id.as_str())?;
            if still.is_none_or(|still| still.ended) {
                return Err(ControlError::Meanwhile("it has been ended"));
            }
            self.end(
                writing,
                &cut,
                Ending::new("unknown", json!({"why": "it was cut off"})),
            )
        };
        let done = match before {
            Some(before) => self
                .state
                .after(
                    self.workspace,
                    &before,
                    &errand,
                    "unknown",
                    &self.share_of_cut_off(&cut)?,
                    self.progress,
                    |writing, _| end(writing),
                )
                .map(drop),
            None => self.control.trail.write(Durability::Sync, end),
        };
        match done {
            Err(ControlError::Meanwhile(_)) => Ok(()), // another process was faster
            other => other,
        }?;
        self.state.end_write_journal(&cut.action_id);
        if let Some(session) = &cut.agent_session {
            self.end_session_of_agent(session)?;
        }
        self.send();
        Ok(())
    }

    /// Writes how an action ended: what ran, its permit, and the outcome. Where it was judged
    /// elsewhere, it is to be told there too.
    pub(super) fn end(
        &self,
        writing: &mut Writing<'_>,
        running: &Running,
        ending: Ending<'_>,
    ) -> Result<(), ControlError> {
        if self.far.is_some() {
            kept::put(writing, &self.unsent(running, &ending))?;
        }
        let bench = self.bench()?;
        bench.end(writing, running, ending.outcome, ending.body)
    }

    /// Leave that was not used after all: nothing was run.
    pub(super) fn never_ran(&self, leave: &Leave, denial: &Denial) -> Result<(), ControlError> {
        self.control.trail.write(Durability::Sync, |writing| {
            let running: Option<Running> = kept::get(writing.sql(), leave.action_id.as_str())?;
            if let Some(running) = running {
                let ending = Ending::new("not_run", json!({"denial": denial}));
                self.end(writing, &running, ending)?;
            }
            Ok::<(), ControlError>(())
        })?;
        self.send();
        Ok(())
    }

    /// What runs under a leave.
    pub(super) fn running(
        &self,
        writing: &mut Writing<'_>,
        leave: &Leave,
    ) -> Result<Running, ControlError> {
        kept::get(writing.sql(), leave.action_id.as_str())?
            .ok_or(ControlError::Meanwhile("it is no longer known to run"))
    }

    /// The present moment.
    pub(super) fn now(&self) -> Timestamp {
        self.control.around.clock.now()
    }
}

impl Bench<'_> {
    /// Writes how an action ended: what ran, its permit, and the outcome.
    pub(super) fn end(
        &self,
        writing: &mut Writing<'_>,
        running: &Running,
        outcome: &str,
        mut body: serde_json::Value,
    ) -> Result<(), ControlError> {
        let now = self.control.around.clock.now();
        kept::put(
            writing,
            &Running {
                ended: true,
                until: Some(now),
                outcome: Some(outcome.to_owned()),
                ..running.clone()
            },
        )?;
        if let Some(id) = &running.permit_id
            && let Some(permit) = kept::get::<Permit>(writing.sql(), id.as_str())?
            && let Ok(consumed) = permit.consume(outcome, now)
        {
            kept::put(writing, &consumed)?;
        }
        if let Some(fields) = body.as_object_mut() {
            fields.insert("outcome".to_owned(), json!(outcome));
            fields.insert("permit_id".to_owned(), json!(running.permit_id));
        }
        self.join(writing, &running.session_id, &mut body)?;
        writing.append(Draft {
            stream: Stream::from(&running.session_id),
            actor: Actor::safepoint(),
            kind: Kind::fixed("action_ended").into(),
            action_id: Some(running.action_id.clone()),
            body,
        })?;
        Ok(())
    }
}
