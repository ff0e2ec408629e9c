//! Carrying out what was allowed: the program that was seen, by its descriptor, in the
//! directory that was seen, with the variables that were seen and no others.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use safepoint_gates::Outcome;
use safepoint_model::SessionId;
use safepoint_state::{Changed, Note, Share, Snapshot};
use safepoint_store::{Durability, fault};
use safepoint_trail::Stream;
use serde_json::json;

use super::asked::Reported;
use super::attend::{Stop, capture_of};
use super::documents::Running;
use super::effect::MeasuredEffect;
use super::guarded::is_code_of_client;
use super::late::LeftRunning;
use super::outbox::Ending;
use super::script::{Sealed, Watched};
use super::see::interpreters_of;
use super::supervise::{ReachRecord, Secured, SupervisedChild};
use super::{Bench, Leave, Passage, Standing, Stdin};
use crate::world::{Interpreter, Opened, Search};
use crate::{ControlError, kept};

/// How long to wait for pipes that a child of the child holds open.
const PATIENCE: Duration = Duration::from_millis(500);

/// What becomes of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It goes where ours goes.
    Inherit,
    /// It is kept, up to a megabyte each.
    Keep,
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself.
    ByItself,
    /// It took too long.
    TimedOut,
    /// We were asked to stop.
    Interrupted,
}

impl Ended {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ByItself => "by_itself",
            Self::TimedOut => "timed_out",
            Self::Interrupted => "interrupted",
        }
    }
}

/// What came of a command.
#[derive(Debug)]
pub struct Ran {
    /// How it ended.
    pub ended: Ended,
    /// Its exit code, if it had one.
    pub exit_code: Option<i32>,
    /// `ok` or `error`.
    pub outcome: &'static str,
    /// What it wrote, where that was kept.
    pub stdout: Vec<u8>,
    /// What it complained of, where that was kept.
    pub stderr: Vec<u8>,
    /// What it changed.
    pub changes: Vec<Changed>,
    /// What it did that no checkpoint holds.
    pub lost: Vec<Note>,
    /// How many processes it left running. What they change later is not part of it.
    pub left_running: usize,
    /// Files it runs by name that somebody touched meanwhile, although it was approved.
    pub exchanged: Vec<String>,
    /// What it reached outside the fence, and what it was refused.
    pub record: ReachRecord,
    /// Whether it can be taken back, as it turned out.
    pub effect: MeasuredEffect,
    /// Has to stay for as long as something that it started does.
    pub left_running_supervised: Option<LeftRunning>,
}

/// A command that was started, and what is held or watched while it runs.
struct Started {
    child: SupervisedChild,
    watched: Watched,
    /// The interpreter may open it at any time.
    _script: Option<Sealed>,
}

impl Passage<'_> {
    /// Carries out a command, and records what came of it.
    pub fn run(
        &self,
        leave: &Leave,
        stdin: &Stdin,
        capture: Capture,
        limit: Option<Duration>,
    ) -> Result<Ran, ControlError> {
        fault::point("pass.intended");
        let stop = Stop::listen().map_err(|error| start_error(leave, error))?;
        // One that lets go of its parents becomes our child: while the action runs, whoever
        // descends from it is known to.
        safepoint_fence::become_subreaper()
            .map_err(|error| start_error(leave, std::io::Error::other(error)))?;
        let ours = safepoint_fence::descendants();
        let mut running = self.running_of(leave)?;
        let mut started = match self.start(leave, &running, stdin, capture) {
            Ok(started) => started,
            Err(error) => {
                self.conclude(leave, "error", json!({"why": error.to_string()}))?;
                return Err(error);
            }
        };
        let child = &mut started.child.child;
        fault::point("pass.started");
        let output = capture_of(child.stdout.take());
        let errors = capture_of(child.stderr.take());
        if let (Some(mut pipe), Stdin::Bytes(bytes)) = (child.stdin.take(), stdin) {
            let bytes = bytes.clone();
            // One that does not read its input tells so by how it ends.
            std::thread::spawn(move || pipe.write_all(&bytes));
        }
        let secure = || self.secure_running(&mut running);
        let waited = self.attend_supervised(started.child, capture, limit, &stop, secure);
        let mut end = waited.map_err(|error| start_error(leave, error))?;
        let late = self.begin_late(&running, &mut end);
        let (ended, status) = (end.ended, end.status);
        let exchanged = started.watched.touched();
        let left_running = left_running(&ours);
        fault::point("pass.ran");
        let outcome = match (ended, status.success()) {
            (Ended::ByItself, true) => "ok",
            _ => "error",
        };
        let foreseen = running.effect.clone();
        self.measure_running(&mut running, &end)?;
        let body = json!({
            "exit_code": status.code(), "signal": status.signal(),
            "ended": ended.as_str(),
            "left_running": left_running, "exchanged": exchanged,
            "reached": end.record.reached, "refused": end.record.refused,
            "reversibility": running.effect.as_ref().map(|it| it.reversibility),
            "remainder": running.effect.as_ref().map(|it| &it.remainder),
        });
        let share = end.observation.as_ref();
        let share = share.map(|seen| self.observed_share(seen));
        running.reach = end.record.clone();
        if !running.reach.is_empty() || running.effect != foreseen {
            self.control
                .trail
                .write(Durability::Async, |writing| kept::put(writing, &running))?;
        }
        let before = match (&leave.before, &running.before) {
            (Some(before), _) => Some(before.clone()),
            // It was made before the first write.
            (None, Some(id)) => Some(self.state.find(id)?),
            (None, None) => None,
        };
        let changes = self.conclude_from(leave, before.as_ref(), outcome, body, share)?;
        self.state.end_write_journal(&leave.action_id);
        fault::point("pass.recorded");
        if end.observation.is_some() {
            self.count_disagreements(&running, outcome, !changes.is_empty())?;
        }
        let read = |pipe: Receiver<Vec<u8>>| pipe.recv_timeout(PATIENCE).unwrap_or_default();
        Ok(Ran {
            ended,
            exit_code: status.code(),
            outcome,
            stdout: read(output),
            stderr: read(errors),
            changes,
            lost: self.state.lost_by(&leave.action_id)?,
            left_running,
            exchanged,
            effect: match running.effect.clone() {
                Some(effect) => effect,
                None => MeasuredEffect {
                    reversibility: leave.canonical.reversibility,
                    remainder: leave.canonical.remainder.clone(),
                },
            },
            record: end.record,
            left_running_supervised: end
                .supervisor
                .map(|it| self.left_running(&running, it, late)),
        })
    }

    /// Records how an action ended, what it changed, and that its permit is used up, in one
    /// transaction; then lets the gates know.
    pub fn conclude(
        &self,
        leave: &Leave,
        outcome: &str,
        body: serde_json::Value,
    ) -> Result<Vec<Changed>, ControlError> {
        self.conclude_from(leave, leave.before.as_ref(), outcome, body, None)
    }

    /// The document of an action that has leave.
    fn running_of(&self, leave: &Leave) -> Result<Running, ControlError> {
        let store = self.control.trail.store();
        let running = store.read(|sql| kept::get(sql, leave.action_id.as_str()))?;
        running.ok_or(ControlError::Meanwhile("it is no longer known to run"))
    }

    fn conclude_from(
        &self,
        leave: &Leave,
        before: Option<&Snapshot>,
        outcome: &str,
        body: serde_json::Value,
        share: Option<Share>,
    ) -> Result<Vec<Changed>, ControlError> {
        let changes = match before {
            Some(before) => self.state.after(
                self.workspace,
                before,
                &leave.errand,
                outcome,
                &match share {
                    Some(share) => share,
                    None => self.share_of_action(&leave.action_id)?,
                },
                self.progress,
                |writing, changes| {
                    let running = self.running(writing, leave)?;
                    self.notice(writing, &running, changes)?;
                    self.end_leave(writing, leave, outcome, body, changes)
                },
            )?,
            None => {
                self.control.trail.write(Durability::Sync, |writing| {
                    self.end_leave(writing, leave, outcome, body, &[])
                })?;
                Vec::new()
            }
        };
        fault::point("pass.concluded");
        self.report(leave, outcome)?;
        Ok(changes)
    }

    /// Starts a program of a change that has leave, as [`Self::run`] starts a command.
    pub fn start_for_change(
        &self,
        leave: &Leave,
        mut command: Command,
    ) -> std::io::Result<SupervisedChild> {
        command
            .env("SAFEPOINT_SESSION", leave.session_id.as_str())
            .env("SAFEPOINT_ACTION", leave.action_id.as_str());
        let running = self.running_of(leave).map_err(std::io::Error::other)?;
        // A change is made under a checkpoint.
        self.spawn(command, leave, &running, Secured::Yes, Capture::Keep)
    }

    pub(super) fn state_stream(&self) -> Stream {
        safepoint_state::stream(&self.workspace.root)
    }

    /// Records how an action ended whose change the state has recorded itself.
    pub fn conclude_change(&self, leave: &Leave, outcome: &str) -> Result<(), ControlError> {
        self.control.trail.write(Durability::Sync, |writing| {
            self.end_leave(writing, leave, outcome, json!({}), &[])
        })?;
        self.state.end_write_journal(&leave.action_id);
        self.report(leave, outcome)
    }

    /// Settings by which programs of an agent's choice would run outside, and that nobody has
    /// approved, are looked at by a person before anything else is done.
    pub(super) fn notice(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        running: &Running,
        changes: &[Changed],
    ) -> Result<(), ControlError> {
        if self.far.is_some() || running.permit_id.is_some() || !chooses_code(changes) {
            return Ok(());
        }
        self.bench()?.notice(writing, &running.session_id)
    }

    pub(super) fn end_leave(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        leave: &Leave,
        outcome: &str,
        body: serde_json::Value,
        changes: &[Changed],
    ) -> Result<(), ControlError> {
        let running = self.running(writing, leave)?;
        let ending = Ending {
            report: Some(Reported {
                well: outcome == "ok",
                result: None,
            }),
            changes,
            ..Ending::new(outcome, body)
        };
        self.end(writing, &running, ending)?;
        if outcome == "ok" && leave.permit.is_some() && self.far.is_none() {
            let content = leave.canonical.tool.content();
            let policy = leave.canonical.policy_version;
            self.bench()?
                .prove(writing, &content, leave.trust_after, policy)?;
        }
        Ok(())
    }

    /// Gates that look at what came of an action are raised now. The action has ended, so a
    /// session that cannot be told does not undo that.
    pub(super) fn report(&self, leave: &Leave, outcome: &str) -> Result<(), ControlError> {
        if self.far.is_some() {
            self.send();
            return Ok(());
        }
        let outcome = match outcome {
            "ok" => Outcome::Ok,
            _ => Outcome::Error,
        };
        match self
            .control
            .report(&leave.session_id, &leave.action_id, outcome, None)
        {
            Err(error @ (ControlError::Store(_) | ControlError::Trail(_))) => Err(error),
            // An atlas that was changed meanwhile, too, is found by whoever asks next.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn start(
        &self,
        leave: &Leave,
        running: &Running,
        stdin: &Stdin,
        capture: Capture,
    ) -> Result<Started, ControlError> {
        let failed = |error| start_error(leave, error);
        let program = leave
            .program
            .as_ref()
            .ok_or_else(|| ControlError::Proposal {
                reason: "there is no program to be started".to_owned(),
            })?;
        let directory = File::open(&leave.canonical.directory.path).map_err(failed)?;
        let held = rustix::fs::fstat(&directory).map_err(|error| failed(error.into()))?;
        let seen = leave.canonical.directory.identity;
        if (held.st_dev, held.st_ino) != (seen.device, seen.inode) {
            return Err(failed(std::io::Error::other(
                "the working directory is not the one that was seen",
            )));
        }
        // What a person approved is held where it can be. Nobody has looked at the rest.
        let approved = leave.permit.is_some();
        let script = match approved {
            true => Sealed::of(&leave.canonical, program).map_err(failed)?,
            false => None,
        };
        let interpreters = match approved {
            true => interpreters_as_approved(leave, program)?,
            false => Vec::new(),
        };
        let watched = match &script {
            None if approved => Watched::of(&leave.canonical, program, &interpreters),
            _ => Watched::of_interpreters(&interpreters),
        };
        // By descriptor: a file that is put in its place meanwhile is another one. A script
        // is opened again by its interpreter, by name, unless it could be sealed: by the name
        // it was called by, which tells it what to do, if that still leads to what was seen.
        let seen = leave.canonical.directory.path.as_ref();
        if script.is_none()
            && program.is_script
            && !program.is_where_it_was(seen).map_err(failed)?
        {
            return Err(failed(std::io::Error::other(
                "the program is not the one that was seen",
            )));
        }
        let path = match (&script, program.is_script) {
            (Some(script), true) => script.path(),
            (None, true) => program.called.clone(),
            (_, false) => format!("/proc/self/fd/{}", program.file.as_raw_fd()).into(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the one place that starts an agent's command"
        )]
        let mut command = Command::new(path);
        for (number, word) in leave.argv.iter().enumerate() {
            let sealed = script.as_ref().filter(|it| it.word == number);
            match (number, sealed) {
                (0, _) => command.arg0(word),
                (_, Some(script)) => command.arg(script.path()),
                (_, None) => command.arg(word),
            };
        }
        command
            .current_dir(format!("/proc/self/fd/{}", directory.as_raw_fd()))
            .env_clear()
            .envs(leave.variables.iter().map(|(name, value)| (name, value)))
            .env("SAFEPOINT_SESSION", leave.session_id.as_str())
            .env("SAFEPOINT_ACTION", leave.action_id.as_str())
            .stdin(match stdin {
                Stdin::Empty => Stdio::null(),
                // A person approved the form, and nobody has seen what comes through a pipe.
                Stdin::Inherited if leave.permit.is_some() && !std::io::stdin().is_terminal() => {
                    Stdio::null()
                }
                Stdin::Inherited => Stdio::inherit(),
                Stdin::Bytes(_) => Stdio::piped(),
            });
        if capture == Capture::Keep {
            command
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .process_group(0);
        }
        let child = self
            .spawn(command, leave, running, Secured::of(running), capture)
            .map_err(failed)?;
        Ok(Started {
            child,
            watched,
            _script: script,
        })
    }
}

impl Bench<'_> {
    /// Remembers that somebody should look before anything else is done in a session.
    pub(super) fn notice(
        &self,
        writing: &mut safepoint_trail::Writing<'_>,
        session: &SessionId,
    ) -> Result<(), ControlError> {
        let standing: Standing = kept::get(writing.sql(), session.as_str())?
            .unwrap_or_else(|| Standing::new(session.clone(), self.now()));
        let noticed = Standing {
            rules_changed: true,
            ..standing
        };
        kept::put(writing, &noticed)
    }
}

/// Whether settings changed by which programs of an agent's choice would run.
pub(super) fn chooses_code(changes: &[Changed]) -> bool {
    let is_code = |it: &Changed| is_code_of_client(&safepoint_state::path::display(&it.path));
    changes.iter().any(is_code)
}

/// How many processes run now that did not before: all of them descend from the command.
fn left_running(before: &[safepoint_fence::Process]) -> usize {
    safepoint_fence::reap_orphans(|pid| before.iter().any(|it| it.pid == pid));
    let is_new = |one: &safepoint_fence::Process| !before.iter().any(|it| it.is_same(one));
    let now = safepoint_fence::descendants();
    now.iter().filter(|it| is_new(it)).count()
}

/// The interpreters of what a person approved, which the kernel opens by name in a moment.
fn interpreters_as_approved(
    leave: &Leave,
    program: &Opened,
) -> Result<Vec<Interpreter>, ControlError> {
    let form = &leave.canonical;
    let search = Search::new(&leave.variables);
    let directory = form.directory.path.as_ref();
    let now = interpreters_of(&search, Some(program), form.paths.iter(), directory)?;
    let same = now
        .iter()
        .map(|it| &it.executable)
        .eq(&form.tool.interpreters);
    match same {
        true => Ok(now),
        false => Err(start_error(
            leave,
            std::io::Error::other("its interpreter is not the one that was approved"),
        )),
    }
}

fn start_error(leave: &Leave, error: std::io::Error) -> ControlError {
    ControlError::Start {
        program: leave.canonical.argv.first().cloned().unwrap_or_default(),
        error,
    }
}
