//! Actions that a client carries out itself: how they are told apart, how they end, and
//! what each of several at once has changed.

use std::path::Path;

use safepoint_authority::{Deed, NamedPath, Undo};
use safepoint_clients::Ended;
use safepoint_gates::Resolution;
use safepoint_model::{ActionId, SessionId, json as strict};
use safepoint_state::path::{self, TreePath};
use safepoint_state::{Changed, Errand, Share, StateError};
use safepoint_store::Durability;
use serde_json::{Value, json};

use super::asked::Reported;
use super::cover::is_change;
use super::documents::Running;
use super::file_tool::{FileTarget, StrayWrite, with_stray};
use super::outbox::Ending;
use super::proposal::CallKind;
use super::recover::{parent, started};
use super::{Passage, Visitor};
use crate::{ControlError, kept};

/// So many actions before one are looked at for what ran beside it.
const MOST_BESIDE: u32 = 16;

/// Programs that only pass on what others say.
const BETWEEN: [&str; 8] = ["sh", "bash", "dash", "zsh", "ash", "fish", "busybox", "env"];

/// What came of a client's call.
#[derive(Debug)]
pub struct Finished {
    /// Its session.
    pub session_id: SessionId,
    /// The action.
    pub action_id: ActionId,
    /// How it ended.
    pub outcome: &'static str,
    /// What it changed.
    pub changes: Vec<Changed>,
    /// What the gates say to that.
    pub resolution: Option<Resolution>,
    /// Where what a file tool wrote is not found.
    pub stray: Vec<StrayWrite>,
}

/// Whether a program of this name only passes on what others say.
pub fn is_between(name: &str) -> bool {
    BETWEEN.contains(&name)
}

/// The process of the client that has started us, through shells and this program itself or not.
pub fn client_process() -> (u32, u64) {
    let program = |process: &str| std::fs::read_link(format!("/proc/{process}/exe")).ok();
    let ours = program("self");
    let is_ours = |process: u32| ours.is_some() && program(&process.to_string()) == ours;
    let mut process = parent(std::process::id()).unwrap_or(1);
    while let Ok(name) = std::fs::read_to_string(format!("/proc/{process}/comm"))
        && (is_between(name.trim_end()) || is_ours(process))
        && let Some(above) = parent(process).filter(|above| *above > 1)
    {
        process = above;
    }
    (process, started(process).unwrap_or(0))
}

/// All that some deeds change, as paths in the workspace, if that is known before.
pub(super) fn claims(deeds: &[Deed], named: &[Vec<NamedPath>]) -> Option<Vec<String>> {
    let known = |deed: &Deed| matches!(deed.undo, Undo::NotNeeded | Undo::Touched);
    if !deeds.iter().all(known) {
        return None;
    }
    let mut claims = Vec::new();
    for path in named.iter().flatten().filter(|path| is_change(&path.role)) {
        if path.preimage == (safepoint_authority::Preimage::Unknown {}) {
            return None;
        }
        claims.push(path.path.clone());
    }
    claims.sort();
    claims.dedup();
    Some(claims)
}

impl Passage<'_> {
    /// Records how a client's call ended, and what it changed. `None` when no such call is
    /// known to go on.
    pub fn finish(
        &self,
        visitor: &Visitor,
        ended: Ended,
        result: Value,
        targets: &[FileTarget],
    ) -> Result<Option<Finished>, ControlError> {
        let finished = self.finish_frozen(visitor, ended, result, targets);
        self.thaw(Some(visitor));
        finished
    }

    fn finish_frozen(
        &self,
        visitor: &Visitor,
        ended: Ended,
        result: Value,
        targets: &[FileTarget],
    ) -> Result<Option<Finished>, ControlError> {
        let same = |running: &Running| running.visitor.as_ref().is_some_and(|it| it.is(visitor));
        let Some(running) = self.open_here()?.into_iter().find(same) else {
            return self.performed(visitor);
        };
        // It goes on behind the fence, or is about to, and tells itself how it ends.
        let about_to = visitor.in_background && running.line.is_some() && !running.is_unfenced;
        if about_to || running.performer.is_some_and(is_alive) {
            return Ok(None);
        }
        if running.performer.is_some() && !running.is_unfenced {
            // What ran it was killed, and the client does not know how far it came.
            self.record_unknown(running)?;
            return self.performed(visitor);
        }
        let (outcome, why) = match ended {
            Ended::Ok => ("ok", None),
            Ended::Error => ("error", None),
            Ended::Unsaid => ("unknown", Some("the client does not say how it ended")),
        };
        // One that failed, or does not say, need not have written anything.
        let stray = match ended {
            Ended::Ok if visitor.kind == CallKind::Files => self.stray_writes(&running, targets)?,
            _ => Vec::new(),
        };
        let (outcome, why) = match stray.first() {
            Some(_) => ("unknown", Some("it is not known where it wrote")),
            None => (outcome, why),
        };
        let body = with_stray(json!({"client": visitor.client, "why": why}), &stray);
        let report = Reported {
            well: !matches!(ended, Ended::Error) && stray.is_empty(),
            result: self.summary_of(&result)?,
        };
        let share = self.share_of(&running)?;
        let changes = match self.end_of(&running, outcome, body, &report, &share, &stray) {
            Err(ControlError::Meanwhile(_)) => return Ok(None),
            other => other?,
        };
        let resolution = self.told_to_gates(&running, report)?;
        Ok(Some(Finished {
            session_id: running.session_id,
            action_id: running.action_id,
            outcome,
            changes,
            resolution,
            stray,
        }))
    }

    /// What is kept of what a tool gave back: how much it was, and a keyed digest. Anything can be
    /// in it, the values of variables and whole files.
    fn summary_of(&self, result: &Value) -> Result<Option<Value>, ControlError> {
        let text = match result {
            Value::Null => return Ok(None),
            Value::String(text) => text.clone(),
            other => {
                let bytes = strict::canonical(other).map_err(|error| ControlError::Proposal {
                    reason: format!("what came of it cannot be written down exactly: {error}"),
                })?;
                String::from_utf8_lossy(&bytes).into_owned()
            }
        };
        let digest = self.control.trail.mark_variable("result", &text);
        Ok(Some(json!({"bytes": text.len(), "digest": digest})))
    }

    /// What came of a call that has told its end itself, behind the fence.
    fn performed(&self, visitor: &Visitor) -> Result<Option<Finished>, ControlError> {
        let store = self.control.trail.store();
        let recent: Vec<Running> = store.read(|sql| kept::newest(sql, MOST_BESIDE))?;
        let same = |running: &Running| {
            let mine = running.visitor.as_ref().is_some_and(|it| it.is(visitor));
            mine && running.ended && running.is_here() && running.performer.is_some()
        };
        let Some(running) = recent.into_iter().find(same) else {
            return Ok(None);
        };
        let resolution = self.show(&running.session_id)?;
        Ok(Some(Finished {
            session_id: running.session_id,
            action_id: running.action_id,
            outcome: "told",
            changes: Vec::new(),
            resolution: Some(resolution),
            stray: Vec::new(),
        }))
    }

    /// Calls of this client, or of one of its sub-agents, that nobody will tell the end of.
    pub fn give_up_on(
        &self,
        visitor: &Visitor,
        everyone: bool,
    ) -> Result<Vec<ActionId>, ControlError> {
        let mut given_up = Vec::new();
        for running in self.open_here()? {
            let mine = running.visitor.as_ref().is_some_and(|it| {
                it.client == visitor.client
                    && it.session == visitor.session
                    && (everyone || it.agent == visitor.agent)
            });
            if mine && !running.performer.is_some_and(is_alive) {
                given_up.push(running.action_id.clone());
                self.thaw(running.visitor.as_ref());
                self.record_unknown(running)?;
            }
        }
        Ok(given_up)
    }

    /// Whether a tool of this client's session goes on that the client waits for.
    pub fn waits_for_tool(&self, visitor: &Visitor) -> Result<bool, ControlError> {
        let open = self.open_here()?;
        let is_waited_for = |running: &Running| {
            running.visitor.as_ref().is_some_and(|it| {
                it.client == visitor.client && it.session == visitor.session && !it.in_background
            })
        };
        Ok(open.iter().any(is_waited_for))
    }

    /// Lets the gates know how an action ended. It has ended: a session that cannot be told
    /// does not undo that.
    pub(super) fn told_to_gates(
        &self,
        running: &Running,
        report: Reported,
    ) -> Result<Option<Resolution>, ControlError> {
        if self.far.is_some() {
            return Ok(self.send_about(&running.action_id));
        }
        let (session, action) = (&running.session_id, &running.action_id);
        let said = self
            .control
            .report(session, action, report.outcome(), report.result);
        match said {
            Ok(judgement) => Ok(Some(judgement.resolution)),
            Err(error @ (ControlError::Store(_) | ControlError::Trail(_))) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Records the end of an action that a client has begun. Where a write went astray, somebody
    /// has to look before anything else is done.
    pub(super) fn end_of(
        &self,
        running: &Running,
        outcome: &str,
        body: Value,
        report: &Reported,
        share: &Share,
        stray: &[StrayWrite],
    ) -> Result<Vec<Changed>, ControlError> {
        let end = |writing: &mut safepoint_trail::Writing<'_>,
                   changes: &[Changed]|
         -> Result<(), ControlError> {
            let still: Option<Running> = kept::get(writing.sql(), running.action_id.as_str())?;
            let ending = Ending {
                report: Some(report.clone()),
                changes,
                ..Ending::new(outcome, body)
            };
            match still {
                Some(still) if !still.ended => {
                    let still = Running {
                        reach: running.reach.clone(),
                        effect: running.effect.clone(),
                        ..still
                    };
                    if self.far.is_none() {
                        self.bench()?.distrust(writing, &still, stray)?;
                    }
                    self.end(writing, &still, ending)
                }
                _ => Err(ControlError::Meanwhile("it has been ended")),
            }
        };
        let before = match &running.before {
            Some(id) => self.state.find(id)?,
            None => {
                let write = |writing: &mut safepoint_trail::Writing<'_>| end(writing, &[]);
                self.control.trail.write(Durability::Sync, write)?;
                return Ok(Vec::new());
            }
        };
        let errand = Errand {
            id: running.action_id.clone(),
            session: Some(running.session_id.to_string()),
            action: running.action.clone(),
            summary: running.summary.clone(),
            decision: running.decision.clone(),
            left_by: None,
        };
        self.state.after(
            self.workspace,
            &before,
            &errand,
            outcome,
            share,
            self.progress,
            |writing, changes| {
                self.notice(writing, running, changes)?;
                end(writing, changes)
            },
        )
    }

    /// What is going on in this workspace, the oldest first.
    pub(super) fn open_here(&self) -> Result<Vec<Running>, ControlError> {
        let here = crate::world::text(&self.workspace.root)?;
        let store = self.control.trail.store();
        store.read(|sql| kept::open_if(sql, |it: &Running| it.is_here() && it.workspace == here))
    }

    /// Which changes are an action's own.
    pub(super) fn share_of_action(&self, action: &ActionId) -> Result<Share, ControlError> {
        let store = self.control.trail.store();
        match store.read(|sql| kept::get::<Running>(sql, action.as_str()))? {
            Some(running) => self.share_of(&running),
            None => Ok(Share::All),
        }
    }

    /// The same. Of a call that an agent makes behind the agent's own fence, what the agent was
    /// seen to write.
    pub(super) fn share_of(&self, running: &Running) -> Result<Share, ControlError> {
        let others = match self.share_beside(running)? {
            Share::All => Vec::new(),
            Share::Without(others) => others,
            share => return Ok(share),
        };
        let agent = self
            .open_here()?
            .into_iter()
            .find(|it| it.is_agent_of(running));
        let written = agent.and_then(|it| self.state.seen_writes(&it.action_id));
        let root = &self.workspace.root;
        Ok(
            match written.map(|written| Share::of_writes(root, &written)) {
                Some(Share::Observed {
                    mut paths,
                    trees,
                    linked,
                }) => {
                    paths.retain(|path| !others.iter().any(|it| path::is_within(path, it)));
                    Share::Observed {
                        paths,
                        trees,
                        linked,
                    }
                }
                _ if others.is_empty() => Share::All,
                _ => Share::Without(others),
            },
        )
    }

    /// All of them, unless others ran beside it. Then those are its own that it named before, or
    /// that no other named and no other has told of.
    fn share_beside(&self, running: &Running) -> Result<Share, ControlError> {
        // All that an agent's calls did is the agent's.
        if running.is_agent() {
            return Ok(Share::All);
        }
        // A client's own file tool changes what it names, whoever was there before or beside it.
        let is_file_tool = running.visitor.as_ref();
        let is_file_tool = is_file_tool.is_some_and(|it| it.kind == CallKind::Files);
        if let (true, Some(claims)) = (is_file_tool, &running.claims) {
            return Ok(Share::Only(in_tree(&self.workspace.root, claims)));
        }
        let store = self.control.trail.store();
        let recent: Vec<Running> = store.read(|sql| kept::newest(sql, MOST_BESIDE))?;
        let beside = |other: &&Running| {
            other.action_id != running.action_id
                && !other.is_agent()
                && other.is_here()
                && other.workspace == running.workspace
                && other.until.is_none_or(|until| until >= running.time)
        };
        let beside: Vec<&Running> = recent.iter().filter(beside).collect();
        // One that changes nothing takes nothing away.
        let beside: Vec<&Running> = beside
            .into_iter()
            .filter(|other| other.before.is_some())
            .collect();
        let called = self.called_meanwhile(running)?;
        if beside.is_empty() && called.is_empty() {
            return Ok(Share::All);
        }
        let root = &self.workspace.root;
        if let Some(claims) = &running.claims {
            return Ok(Share::Only(in_tree(root, claims)));
        }
        // What was told of the workspace itself is its mode, and not all that is in it.
        let below = |paths: Vec<TreePath>| paths.into_iter().filter(|path| !path.is_empty());
        let mut others: Vec<TreePath> = below(called).collect();
        for other in beside {
            match &other.claims {
                Some(claims) => others.extend(in_tree(root, claims)),
                None if other.ended => others.extend(below(self.told_by(&other.action_id)?)),
                // It will tell what it has written.
                None => others.extend(self.written_so_far(&other.action_id)),
            }
        }
        Ok(Share::Without(others))
    }

    /// What an action that goes on was seen to write.
    fn written_so_far(&self, action: &ActionId) -> Vec<TreePath> {
        let written = self.state.seen_writes(action).unwrap_or_default();
        match Share::of_writes(&self.workspace.root, &written) {
            Share::Observed { paths, .. } => {
                paths.into_iter().filter(|it| !it.is_empty()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What was recorded meanwhile as an action of its own: a line can have us roll back, undo
    /// or change something, and that is told already.
    fn called_meanwhile(&self, running: &Running) -> Result<Vec<TreePath>, ControlError> {
        if running.visitor.is_none() {
            return Ok(Vec::new());
        }
        let actions = self.state.actions(&self.workspace.root, MOST_BESIDE)?;
        let mut paths = Vec::new();
        for action in actions.iter().take_while(|it| it.time >= running.time) {
            if !action.is_observed() && action.id != running.action_id {
                paths.extend(self.told_by(&action.id)?);
            }
        }
        Ok(paths)
    }

    /// What an action that has ended changed.
    fn told_by(&self, action: &ActionId) -> Result<Vec<TreePath>, ControlError> {
        let told = || {
            let action = self.state.find_action(action.as_str())?;
            let before = self.state.find(action.before.as_str())?;
            let after = self.state.find(action.after.as_str())?;
            self.state.changes_between(&before, &after)
        };
        match told() {
            Ok(changes) => Ok(changes.into_iter().map(|change| change.path).collect()),
            // Somebody else's row is no reason to keep an action from ending.
            Err(StateError::NotFound { .. } | StateError::Tampered { .. }) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Visitor {
    /// Whether it is the same call.
    fn is(&self, other: &Self) -> bool {
        self.client == other.client && self.session == other.session && self.call == other.call
    }
}

pub(super) fn is_alive(process: (u32, u64)) -> bool {
    started(process.0) == Some(process.1)
}

/// Paths as the trees of this workspace name them.
pub(super) fn in_tree(root: &Path, paths: &[String]) -> Vec<TreePath> {
    use std::os::unix::ffi::OsStrExt;
    let relative = |path: &String| Path::new(path).strip_prefix(root).ok().map(Path::to_owned);
    let paths = paths.iter().filter_map(relative);
    paths
        .map(|path| path.as_os_str().as_bytes().to_vec())
        .collect()
}
