//! `safepoint exec -- COMMAND…`: one command through all stages.

use std::io::IsTerminal;

use safepoint_authority::{Canonical, Coverage};
use safepoint_control::pass::{
    Act, Answer, Capture, Ended, Leave, Ran, ReachedTargets, Rehearsed, Stdin,
};
use safepoint_model::{Exit, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::checkpoint::NoteDocument;
use super::operator;
use super::passing::{self, DenialReply, Flags, Room, show_denial};
use crate::console::{FAINT, GOOD, Mode, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `exec`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    who: operator::Who,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// What `exec` prints of a command that ran.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExecReply {
    action_id: String,
    session_id: String,
    /// `allow`, or `approved` when a person said yes.
    decision: String,
    /// The built-in actions it came to.
    actions: Vec<String>,
    /// `ok` or `error`.
    outcome: String,
    /// Its exit code, if it had one.
    exit_code: Option<i32>,
    /// `by_itself`, `timed_out` when it took longer than `--timeout` says, or `interrupted`.
    ended: String,
    /// What it wrote.
    stdout: String,
    /// What it complained of.
    stderr: String,
    /// The state before it.
    checkpoint_id: Option<String>,
    /// Whether it can be taken back, as it turned out.
    reversibility: String,
    /// What of it cannot.
    remainder: Vec<String>,
    /// What it reached outside the fence.
    reached: ReachedTargets,
    /// What nothing covers.
    not_covered: Vec<String>,
    /// What it changed.
    changes: Vec<ChangeLine>,
    /// What it did that no checkpoint holds: no undo brings it back.
    not_held: Vec<NoteDocument>,
    /// How many processes it left running. What they change later is not part of it.
    left_running: usize,
    /// Files it ran by name that somebody touched meanwhile, although it was approved.
    exchanged: Vec<String>,
    /// What the fence refused it, and what to do about that.
    refused: Vec<String>,
}

/// One path that changed.
#[derive(Serialize, JsonSchema)]
struct ChangeLine {
    path: String,
    change: String,
}

/// What `exec --dry-run` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RehearsalReply {
    /// Whether it would run.
    would_run: bool,
    /// Why not.
    denial: Option<safepoint_authority::Denial>,
    /// What a yes would be bound to.
    fingerprint: String,
    canonical_form: Canonical,
    coverage: Coverage,
    /// What the gates say.
    resolution: Option<safepoint_gates::Resolution>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let room = Room::of_command(context, &arguments.flags)?;
    let json = context.console.mode != Mode::Text;
    // Under `--json` nobody types, and what is on our input is not the command's.
    let stdin = match json {
        true => Stdin::Empty,
        false => Stdin::Inherited,
    };
    let act = Act::Command(arguments.command.clone());
    let proposal = room.proposal(context, &arguments.flags, act, stdin.clone())?;
    let passage = room.passage();
    if arguments.flags.dry_run {
        let rehearsed = passage.rehearse(&proposal)?;
        return tell_rehearsal(context, rehearsed);
    }
    let capture = match json {
        true => Capture::Keep,
        false => Capture::Inherit,
    };
    let answer = passing::ask(context, &room, &arguments.flags, &arguments.who, &proposal)?;
    let leave = match answer {
        Answer::Leave(leave) => leave,
        Answer::Denied(denied) => {
            let reply = DenialReply {
                denial: denied.denial,
                session_id: Some(denied.session_id.to_string()),
                resolution: denied.resolution,
            };
            return deny(context, &reply);
        }
    };
    context.console.flush()?;
    let mut ran = passage.run(&leave, &stdin, capture, arguments.flags.limit())?;
    if let Some(supervisor) = ran.left_running_supervised.take() {
        crate::detach::keep(supervisor);
    }
    tell(context, &leave, &ran, arguments.flags.timeout)?;
    Ok(match (ran.ended, ran.outcome) {
        (Ended::TimedOut | Ended::Interrupted, _) => Exit::Interrupted,
        (Ended::ByItself, "ok") => Exit::Done,
        _ => Exit::Failed,
    })
}

/// Tells of a denial: as data for programs, as talk for people.
pub(super) fn deny(context: &mut Context, reply: &DenialReply) -> Result<Exit, CliError> {
    match context.console.mode {
        Mode::Text => context.console.tell(&show_denial(reply)),
        Mode::Json | Mode::Ndjson => context.console.json(reply)?,
    }
    Ok(Exit::Denied)
}

pub(super) fn tell_rehearsal(
    context: &mut Context,
    rehearsed: Rehearsed,
) -> Result<Exit, CliError> {
    let fingerprint = rehearsed.canonical.fingerprint();
    let reply = RehearsalReply {
        would_run: rehearsed.denial.is_none(),
        denial: rehearsed.denial,
        fingerprint: fingerprint
            .map_err(|error| CliError::Control(error.into()))?
            .to_string(),
        canonical_form: rehearsed.canonical,
        coverage: rehearsed.coverage,
        resolution: rehearsed.resolution,
    };
    context.console.value(&reply, |reply| {
        let form = &reply.canonical_form;
        let actions: Vec<&str> = form.actions.iter().map(String::as_str).collect();
        let mut shown = format!(
            "{STRONG}would{STRONG:#}   {}\n{STRONG}does{STRONG:#}    {}  {FAINT}{}, {} risk{FAINT:#}\n",
            safepoint_model::text::line(&form.summary()).text,
            actions.join(" "),
            form.reversibility.as_str(),
            form.risk.as_str(),
        );
        for rest in &form.remainder {
            shown.push_str(&format!("{STRONG}lasts{STRONG:#}   {}\n", safepoint_model::text::line(rest).text));
        }
        match &reply.denial {
            None => shown.push_str(&format!("{GOOD}allowed{GOOD:#}\n")),
            Some(denial) => shown.push_str(&show_denial(&DenialReply {
                denial: denial.clone(),
                session_id: None,
                resolution: None,
            })),
        }
        shown
    })?;
    Ok(match reply.would_run {
        true => Exit::Done,
        false => Exit::WouldBeDenied,
    })
}

/// So many losses are named; the log has them all.
const MOST_NOTES: usize = 10;

fn tell(
    context: &mut Context,
    leave: &Leave,
    ran: &Ran,
    limit: Option<Span>,
) -> Result<(), CliError> {
    let reply = ExecReply::of(leave, ran);
    if context.console.mode != Mode::Text {
        return context.console.json(&reply);
    }
    let end = match (ran.ended, reply.exit_code, limit) {
        (Ended::TimedOut, _, Some(limit)) => Some(format!(
            "the command took longer than {limit}, and was stopped"
        )),
        (Ended::TimedOut, _, None) => Some("the command took too long, and was stopped".to_owned()),
        (Ended::Interrupted, _, _) => Some("the command was interrupted".to_owned()),
        (Ended::ByItself, Some(0), _) => None,
        (Ended::ByItself, Some(code), _) => Some(format!("the command ended with {code}")),
        (Ended::ByItself, None, _) => Some("the command was ended by a signal".to_owned()),
    };
    if let Some(end) = end {
        context.console.say(&format!("safepoint: {end}"));
    }
    for rest in &ran.effect.remainder {
        context.console.say(&format!(
            "safepoint: not taken back by an undo: {}",
            safepoint_model::text::line(rest).text
        ));
    }
    for note in reply.not_held.iter().take(MOST_NOTES) {
        context
            .console
            .warn(&format!("no undo brings back {}", note.shown()));
    }
    if let more @ 1.. = reply.not_held.len().saturating_sub(MOST_NOTES) {
        context.console.warn(&format!("nor {more} more"));
    }
    for path in &reply.exchanged {
        context.console.warn(&format!(
            "`{}` was touched while it ran: it may not be what was approved",
            safepoint_model::text::line(path).text
        ));
    }
    for refusal in &reply.refused {
        context.console.warn(refusal);
    }
    if reply.left_running > 0 {
        let left = crate::console::count(reply.left_running as u64, "process", "processes");
        context.console.say(&format!(
            "safepoint: {left} left running; what changes from now on is not part of this action"
        ));
    }
    // Whoever reads the command's output does not want ours among it.
    if !reply.changes.is_empty() && std::io::stderr().is_terminal() {
        let count = crate::console::count(reply.changes.len() as u64, "change", "changes");
        context.console.say(&format!(
            "safepoint: {count}; to take them back: safepoint undo {}",
            reply.action_id
        ));
    }
    Ok(())
}

impl ExecReply {
    /// What it wrote.
    pub(crate) fn output(&self) -> &str {
        match self.stdout.is_empty() {
            true => &self.stderr,
            false => &self.stdout,
        }
    }

    pub(crate) fn of(leave: &Leave, ran: &Ran) -> Self {
        let changes = ran.changes.iter().map(|changed| ChangeLine {
            path: safepoint_state::path::display(&changed.path),
            change: changed.kind.as_str().to_owned(),
        });
        Self {
            action_id: leave.action_id.to_string(),
            session_id: leave.session_id.to_string(),
            decision: leave.decision().to_owned(),
            actions: leave.canonical.actions.iter().cloned().collect(),
            outcome: ran.outcome.to_owned(),
            exit_code: ran.exit_code,
            ended: ran.ended.as_str().to_owned(),
            stdout: String::from_utf8_lossy(&ran.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&ran.stderr).into_owned(),
            checkpoint_id: leave.before.as_ref().map(|before| before.id.to_string()),
            reversibility: ran.effect.reversibility.as_str().to_owned(),
            remainder: ran.effect.remainder.iter().cloned().collect(),
            reached: ran.record.reached.clone(),
            not_covered: leave.coverage.not_covered.clone(),
            changes: changes.collect(),
            not_held: ran.lost.iter().map(Into::into).collect(),
            left_running: ran.left_running,
            exchanged: ran.exchanged.clone(),
            refused: super::perform::refusals_in_words(&ran.record),
        }
    }
}
