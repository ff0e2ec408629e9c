//! Running a shell line of an agent client behind the fence, in the client's place.

use std::ffi::OsStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use safepoint_fence::{HostRule, Observation, Supervisor};
use safepoint_model::{ActionId, SessionId};
use safepoint_state::Share;
use safepoint_store::{Durability, fault};
use safepoint_trail::Writing;
use serde_json::json;

use super::asked::Reported;
use super::attend::{Stop, ended_code};
use super::confine::WidenedFence;
use super::cover::{Holes, Net};
use super::documents::Running;
use super::effect;
use super::late::{LateFile, LeftRunning};
use super::recover::this_process;
use super::supervise::{ReachRecord, Secured, SupervisedChild, SupervisedEnd};
use super::{Capture, Passage, Visitor};
use crate::{Control, ControlError, kept};

/// A shell line, and how it is run.
#[derive(Clone, Copy, Debug)]
pub struct ShellLine<'a> {
    /// The shell.
    pub shell: &'a Path,
    /// What the shell is given: the line, or that with what its client puts around it.
    pub text: &'a OsStr,
    /// The variable of ours that is not handed on.
    pub without: &'a str,
    /// Where it may be run.
    pub place: LinePlace,
}

/// In which directory a line may be run. It runs where this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinePlace {
    /// Only in the one for which it was judged.
    AsJudged,
    /// In any other too, as long as that changes nothing in what it may reach: behind the fence.
    /// Clients that keep the directory of their shell fall back to another where it is gone.
    AnyBehindFence,
}

/// A line that a client was given leave for, and that this process has taken: nobody else runs
/// it any more.
#[derive(Debug)]
pub struct ClaimedLine {
    running: Running,
}

/// How a line ended.
#[derive(Debug)]
pub struct PerformedLine {
    /// The exit code, as shells tell it.
    pub code: u8,
    /// What it reached outside the fence, and what it was refused.
    pub record: ReachRecord,
    /// Has to stay for as long as something that the line started does.
    pub left_running: Option<LeftRunning>,
}

impl ClaimedLine {
    /// Its session.
    pub fn session_id(&self) -> &SessionId {
        &self.running.session_id
    }

    /// The client.
    pub fn client(&self) -> Option<&str> {
        let visitor = self.running.visitor.as_ref();
        visitor.map(|visitor| visitor.client.as_str())
    }

    /// The workspace it works in.
    pub fn workspace(&self) -> &Path {
        Path::new(&self.running.workspace)
    }

    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    pub(super) fn into_running(self) -> Running {
        self.running
    }

    /// Whether it is run as it is, by the process that this one becomes: there is no fence, or it
    /// was approved and no fence lets it happen.
    pub fn is_unfenced(&self) -> bool {
        self.running.is_unfenced
    }

    /// Refuses to go on in another directory than the one for which it was judged.
    pub fn refuse_elsewhere(&self) -> std::io::Result<()> {
        refuse_elsewhere(&self.running)
    }
}

/// Lines that were let through by an earlier version do not say where.
fn refuse_elsewhere(running: &Running) -> std::io::Result<()> {
    let Some(judged) = &running.directory else {
        return Ok(());
    };
    let here = std::fs::metadata(".")?;
    match (here.dev(), here.ino()) == (judged.identity.device, judged.identity.inode) {
        true => Ok(()),
        false => Err(std::io::Error::other(format!(
            "it was let through for `{}`, and this is another directory",
            judged.path
        ))),
    }
}

impl Control {
    /// The workspace of a line that was let through under this action.
    pub fn workspace_of_line(&self, action: &ActionId) -> Result<PathBuf, ControlError> {
        let store = self.trail.store();
        let running: Option<Running> = store.read(|sql| kept::get(sql, action.as_str()))?;
        let running = running.filter(|it| it.line.is_some() && it.is_here());
        let running = running.ok_or_else(|| refused("no such action was let through"))?;
        Ok(PathBuf::from(running.workspace))
    }

    /// Takes the line that was let through under this action, to run it. That is done once.
    pub fn claim_line(&self, action: &ActionId, line: &str) -> Result<ClaimedLine, ControlError> {
        self.trail.write(Durability::Sync, |writing| {
            let running: Option<Running> = kept::get(writing.sql(), action.as_str())?;
            let running = running.ok_or_else(|| refused("no such action was let through"))?;
            // It is kept without the tokens in it: those come from whoever asks.
            let asked = self.trail.without_tokens(line.to_owned());
            if running.line.as_ref() != Some(&asked) {
                return Err(refused("it is not what was let through"));
            }
            if running.ended || running.performer.is_some() {
                return Err(refused("it was run already"));
            }
            claimed(writing, running)
        })
    }

    /// The call of this client that began an action, if it did.
    pub fn call_of_client(
        &self,
        visitor: &Visitor,
        action: &ActionId,
    ) -> Result<Option<String>, ControlError> {
        let store = self.trail.store();
        let running: Option<Running> = store.read(|sql| kept::get(sql, action.as_str()))?;
        let known = running.and_then(|running| running.visitor);
        let mine = known.filter(|it| it.client == visitor.client && it.session == visitor.session);
        Ok(mine.map(|it| it.call))
    }

    /// Takes the oldest line of a client's session that was let through, reads like this one and
    /// was not run yet.
    pub fn claim_line_of(
        &self,
        client: &str,
        session: &str,
        line: &str,
    ) -> Result<Option<ClaimedLine>, ControlError> {
        let line = self.trail.without_tokens(line.to_owned());
        let is_this = |running: &Running| {
            let visitor = running.visitor.as_ref();
            visitor.is_some_and(|it| it.client == client && it.session == session)
                && running.line.as_ref() == Some(&line)
                && running.performer.is_none()
                && running.is_here()
        };
        self.trail.write(Durability::Sync, |writing| {
            let found = kept::open_if(writing.sql(), is_this)?.into_iter().next();
            found.map(|running| claimed(writing, running)).transpose()
        })
    }
}

fn claimed(writing: &mut Writing<'_>, running: Running) -> Result<ClaimedLine, ControlError> {
    let running = Running {
        performer: Some(this_process()),
        ..running
    };
    kept::put(writing, &running)?;
    Ok(ClaimedLine { running })
}

impl Passage<'_> {
    /// Runs a line behind the fence that a client was given leave for. At the socket, what it asks
    /// of us is done outside.
    pub fn perform(
        &self,
        claimed: ClaimedLine,
        line: &ShellLine<'_>,
        broker: Option<&Path>,
    ) -> Result<PerformedLine, ControlError> {
        let mut running = claimed.running;
        let failed = |error: std::io::Error| ControlError::Start {
            program: line.shell.display().to_string(),
            error,
        };
        let stop = Stop::listen().map_err(failed)?;
        let secured = Secured::of(&running);
        let action = Some(&running.action_id);
        let command = shell_command(line, &running.session_id, action, broker);
        let held = match self.hold_running(&running) {
            Ok(held) => held,
            Err(error) => {
                let why = Err(std::io::Error::other(error));
                return self.end_line(running, why, line.shell);
            }
        };
        let fence = self
            .fence_around(&running)
            .map(|fence| fence.map(|fence| with_socket(fence, broker)))
            .and_then(|fence| match (line.place, &fence) {
                (LinePlace::AnyBehindFence, Some(_)) => Ok(fence),
                _ => refuse_elsewhere(&running).map(|()| fence),
            });
        fault::point("pass.started");
        let started = fence.and_then(|fence| match fence {
            Some(fence) => self.start_supervised(
                self.with_journal(fence, &running),
                command,
                &running.session_id,
                secured,
            ),
            None => SupervisedChild::start_unfenced(command, &running.session_id),
        });
        // Behind the fence, what the line does itself would wait for that.
        let is_fenced = started.as_ref().is_ok_and(SupervisedChild::is_fenced);
        let held = held.filter(|held| {
            if is_fenced {
                held.end();
            }
            !is_fenced
        });
        let mut ended = started.and_then(|supervised| {
            let secure = || self.secure_running(&mut running);
            self.attend_supervised(supervised, Capture::Inherit, None, &stop, secure)
        });
        if let Some(held) = held {
            held.end();
        }
        let late = ended.as_mut().ok();
        let late = late.and_then(|end| self.begin_late(&running, end));
        self.end_line_with(running, ended, line.shell, late)
    }

    /// Records how a line ended that left nothing running.
    pub(super) fn end_line(
        &self,
        running: Running,
        ended: std::io::Result<SupervisedEnd>,
        shell: &Path,
    ) -> Result<PerformedLine, ControlError> {
        self.end_line_with(running, ended, shell, None)
    }

    fn end_line_with(
        &self,
        mut running: Running,
        ended: std::io::Result<SupervisedEnd>,
        shell: &Path,
        late: Option<LateFile>,
    ) -> Result<PerformedLine, ControlError> {
        let mut share = None;
        let (outcome, body, code) = match &ended {
            Ok(end) => {
                let outcome = if end.status.success() { "ok" } else { "error" };
                let code = ended_code(end.status);
                running.reach = end.record.clone();
                share = end
                    .observation
                    .as_ref()
                    .map(|seen| self.observed_share(seen));
                self.measure_running(&mut running, end)?;
                (outcome, self.ending_body(&running, end, code), code)
            }
            Err(error) => ("error", json!({"why": error.to_string()}), 126),
        };
        let report = Reported {
            well: outcome == "ok",
            result: None,
        };
        let share = match share {
            Some(share) => share,
            None => self.share_of(&running)?,
        };
        let changes = self.end_of(&running, outcome, body, &report, &share, &[])?;
        self.state.end_write_journal(&running.action_id);
        if ended.as_ref().is_ok_and(|end| end.observation.is_some()) {
            self.count_disagreements(&running, outcome, !changes.is_empty())?;
        }
        self.told_to_gates(&running, report)?;
        let end = ended.map_err(|error| ControlError::Start {
            program: shell.display().to_string(),
            error,
        })?;
        let left_running = end.supervisor;
        let left_running = left_running.map(|it| self.left_running(&running, it, late));
        Ok(PerformedLine {
            code,
            record: end.record,
            left_running,
        })
    }

    /// Runs a line that was let through without being judged, or that nobody asked about: behind
    /// a fence in which the workspace can only be read.
    pub fn perform_unjudged(
        &self,
        session: &SessionId,
        line: &ShellLine<'_>,
        broker: Option<&Path>,
    ) -> Result<PerformedLine, ControlError> {
        let failed = |error: std::io::Error| ControlError::Start {
            program: line.shell.display().to_string(),
            error,
        };
        let stop = Stop::listen().map_err(failed)?;
        let command = shell_command(line, session, None, broker);
        let mut fence = self.fence.clone().ok_or_else(|| {
            failed(std::io::Error::other(
                "it was not judged, and there is no fence to run it behind",
            ))
        })?;
        fence.make_caches();
        let mut widened = with_socket(WidenedFence::of(fence), broker);
        // Neither the workspace, nor what git keeps of it elsewhere.
        let linked = safepoint_state::git::linked_places(&self.workspace.root, &[]);
        let root = std::iter::once(&self.workspace.root);
        let held: Vec<&PathBuf> = root.chain(&linked).collect();
        let is_apart = |path: &PathBuf| {
            let mut held = held.iter();
            held.all(|place| !place.starts_with(path) && !path.starts_with(place))
        };
        widened.fence.writable.retain(is_apart);
        let end = self
            .start_supervised(widened, command, session, Secured::OnFirstWrite)
            .and_then(|supervised| {
                let refuse = || Err(refused("a line that was not judged writes nothing"));
                self.attend_supervised(supervised, Capture::Inherit, None, &stop, refuse)
            })
            .map_err(failed)?;
        Ok(PerformedLine {
            code: ended_code(end.status),
            record: end.record,
            left_running: end.supervisor.map(LeftRunning::Unrecorded),
        })
    }

    /// Makes the checkpoint before the first write of an action that was taken for one that
    /// changes nothing.
    pub(super) fn secure_running(&self, running: &mut Running) -> Result<(), ControlError> {
        let action = &running.action_id;
        let snapshot = self.state.before(self.workspace, action, self.progress)?;
        running.before = Some(snapshot.id.to_string());
        self.control.trail.write(Durability::Sync, |writing| {
            running.refuse_collected(writing.sql())?;
            kept::put(writing, running)
        })
    }

    /// What of the changes is the action's own: what its processes wrote. Where that was not seen
    /// completely, the rest is nobody's: what is taken back by mistake may be a person's.
    pub(super) fn observed_share(&self, seen: &Observation) -> Share {
        Share::of_writes(&self.workspace.root, &seen.written)
    }

    /// Works out what an action did from what was seen of it. One that reached out, or wanted to,
    /// is in the log although it changed nothing: with a checkpoint of the state that it left.
    pub(super) fn measure_running(
        &self,
        running: &mut Running,
        end: &SupervisedEnd,
    ) -> Result<(), ControlError> {
        let Some(seen) = &end.observation else {
            return Ok(());
        };
        if !end.record.is_empty() && running.before.is_none() {
            self.secure_running(running)?;
        }
        let before = match &running.before {
            Some(id) => Some(self.state.find(id)?),
            None => None,
        };
        let holes = before
            .as_ref()
            .map(|it| Holes::of(&Net::Made(it), Vec::new()));
        let services = self.named_services();
        let root = &self.workspace.root;
        let mut effect = effect::measure(&end.record, seen, services, holes.as_ref(), root);
        // Git itself takes no objects away.
        if !running.action.starts_with("git.") {
            effect.add_shared(&end.wrote_shared);
        }
        running.effect = Some(effect);
        Ok(())
    }

    /// Services that settings let every command reach.
    pub(super) fn named_services(&self) -> &[HostRule] {
        let fence = self.fence.as_ref();
        let supervision = fence.and_then(|fence| fence.supervision.as_ref());
        supervision.map_or(&[], |it| it.services.as_slice())
    }

    /// What the trail says of the end of a line.
    pub(super) fn ending_body(
        &self,
        running: &Running,
        end: &SupervisedEnd,
        code: u8,
    ) -> serde_json::Value {
        json!({
            "exit_code": code, "fenced": end.is_fenced,
            "reached": running.reach.reached, "refused": running.reach.refused,
            "reversibility": running.effect.as_ref().map(|it| it.reversibility),
            "remainder": running.effect.as_ref().map(|it| &it.remainder),
            "saw_all_writes": end.observation.as_ref().is_none_or(|it| it.written.is_complete),
            "left_running": end.supervisor.as_ref().is_some_and(Supervisor::is_in_use),
        })
    }
}

pub(super) fn shell_command(
    line: &ShellLine<'_>,
    session: &SessionId,
    action: Option<&ActionId>,
    broker: Option<&Path>,
) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "a line of the agent, behind the fence"
    )]
    let mut command = Command::new(line.shell);
    command
        .arg("-c")
        .arg(line.text)
        // What lets this machine in at a server is no agent's business.
        .env_remove("SAFEPOINT_SERVER_TOKEN")
        .env_remove(line.without)
        .env("SAFEPOINT_SESSION", session.as_str());
    if let Some(action) = action {
        command.env("SAFEPOINT_ACTION", action.as_str());
    }
    match broker {
        Some(socket) => command.env("SAFEPOINT_BROKER", socket),
        None => command.env("SAFEPOINT_FENCED", "1"),
    };
    command
}

/// Opens the socket at which a line calls us.
fn with_socket(mut widened: WidenedFence, socket: Option<&Path>) -> WidenedFence {
    let Some(socket) = socket else {
        return widened;
    };
    if let Some(supervision) = &mut widened.fence.supervision {
        supervision.sockets.push(socket.to_owned());
    }
    let real = socket.canonicalize();
    widened.own_sockets.extend(real);
    widened
}

fn refused(reason: &str) -> ControlError {
    ControlError::Proposal {
        reason: reason.to_owned(),
    }
}
