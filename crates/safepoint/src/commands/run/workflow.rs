//! Runs a workflow: each step passes, is checked, and is kept or taken back.

use std::path::PathBuf;
use std::time::Duration;

use safepoint_authority::{Denial, DenialCode, Understanding};
use safepoint_control::pass::{Act, Answer, Capture, Ended, Leave, Ran, StartsPrograms, Stdin};
use safepoint_control::{Doing, OnFailure, Workflow, WorkflowStep};
use safepoint_gates::{Decision, Resolution};
use safepoint_model::{Exit, SessionId, text};
use safepoint_state::{Goal, StateError};
use schemars::JsonSchema;
use serde::Serialize;

use super::Arguments;
use crate::commands::exec::ExecReply;
use crate::commands::mutate::ChangeStep;
use crate::commands::passing::{self, DenialReply, Room, show_denial};
use crate::commands::session::deliver;
use crate::commands::waiting::{self, Asked, Next, StopSignals};
use crate::console::{BAD, FAINT, GOOD, Mode, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What `run WORKFLOW` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RunReply {
    /// The workflow's name.
    workflow: String,
    /// What it was run for.
    objective: Option<String>,
    /// `ok`, `failed`, `denied` or `interrupted`.
    outcome: &'static str,
    /// What stopped it, if it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<Denial>,
    /// What was done, in order.
    steps: Vec<StepReply>,
}

/// One step.
#[derive(Serialize, JsonSchema)]
struct StepReply {
    id: String,
    /// `ok`, `failed`, `denied`, `rolled_back`, `would_run`.
    outcome: &'static str,
    /// What came of its command.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<ExecReply>,
    /// Why it was denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    denial: Option<Denial>,
    /// What else is to be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// What the gates ask, for people.
    #[serde(skip)]
    resolution: Option<Resolution>,
}

/// How a step ended.
struct Done {
    reply: StepReply,
    exit: Exit,
    leave: Option<Box<Leave>>,
}

pub(super) fn run(
    context: &mut Context,
    arguments: &Arguments,
    name: &str,
) -> Result<Exit, CliError> {
    let root = context.workspace()?.root;
    let workflow = Workflow::read(&find(context, name)?, &root)?;
    if arguments.flags.objective.is_none() {
        return Err(CliError::Usage(
            "a workflow is run for something: say what with `--objective TEXT`".to_owned(),
        ));
    }
    let room = Room::of_command(context, &arguments.flags)?;
    let mut reply = RunReply {
        workflow: workflow.name.clone(),
        objective: arguments.flags.objective.clone(),
        outcome: "ok",
        denial: None,
        steps: Vec::new(),
    };
    let mut exit = Exit::Done;
    for step in &workflow.steps {
        if context.console.mode == Mode::Text {
            context.console.say(&format!("step {}", step.id));
        }
        let done = one(context, arguments, &room, &workflow, step)?;
        let failed = done.exit != Exit::Done;
        let denial = done.reply.denial.clone();
        reply.steps.push(done.reply);
        if !failed {
            continue;
        }
        // Denied stays denied: going on after a step that was not let through is a way around it.
        let denied = matches!(done.exit, Exit::Denied | Exit::WouldBeDenied);
        if step.on_failure == OnFailure::Continue && !denied && done.exit != Exit::Interrupted {
            continue;
        }
        if step.on_failure == OnFailure::RollBack
            && let Some(leave) = &done.leave
        {
            take_back(&room, leave)?;
            if let Some(last) = reply.steps.last_mut() {
                last.outcome = "rolled_back";
            }
        }
        exit = done.exit;
        reply.denial = denial;
        reply.outcome = match exit {
            Exit::Denied | Exit::WouldBeDenied => "denied",
            Exit::Interrupted => "interrupted",
            _ => "failed",
        };
        break;
    }
    context.console.value(&reply, show)?;
    Ok(exit)
}

/// The file that a name means.
pub(crate) fn find(context: &Context, name: &str) -> Result<PathBuf, CliError> {
    let given = context.directory.join(name);
    if given.is_file() {
        return Ok(given);
    }
    let root = context.workspace()?.root;
    let known = root
        .join(".safepoint/workflows")
        .join(format!("{name}.yaml"));
    let plain = !name.contains('/') && !name.contains("..");
    match plain && known.is_file() {
        true => Ok(known),
        false => Err(CliError::NotFound {
            what: "workflow",
            name: name.to_owned(),
        }),
    }
}

fn one(
    context: &mut Context,
    arguments: &Arguments,
    room: &Room,
    workflow: &Workflow,
    step: &WorkflowStep,
) -> Result<Done, CliError> {
    let doing = step.doing().map_err(CliError::Usage)?;
    let done = match doing {
        Doing::Command(argv) => command(context, arguments, room, workflow, step, argv.to_vec())?,
        Doing::Change(operation) => {
            let change = ChangeStep {
                flags: &arguments.flags,
                workflow,
                step,
                operation,
            };
            self::change(context, room, &change)?
        }
        Doing::Request { action, params } => {
            let wanted = Wanted {
                workflow,
                step,
                action,
                params,
            };
            request(context, arguments, room, &wanted)?
        }
    };
    let check = step
        .verify
        .as_ref()
        .filter(|_| done.exit == Exit::Done && !arguments.flags.dry_run);
    let Some(line) = check else {
        return Ok(done);
    };
    let argv = vec!["/bin/sh".to_owned(), "-c".to_owned(), line.clone()];
    let checked = command(context, arguments, room, workflow, &unsaid(step), argv)?;
    if checked.exit == Exit::Done {
        return Ok(done);
    }
    Ok(Done {
        reply: StepReply {
            outcome: checked.reply.outcome,
            denial: checked.reply.denial,
            detail: Some(format!("its check did not hold: {line}")),
            ..done.reply
        },
        exit: checked.exit,
        leave: done.leave,
    })
}

/// The same step, for its check: what it said of itself is not about that.
fn unsaid(step: &WorkflowStep) -> WorkflowStep {
    WorkflowStep {
        action: None,
        effects: None,
        ..step.clone()
    }
}

fn command(
    context: &mut Context,
    arguments: &Arguments,
    room: &Room,
    workflow: &Workflow,
    step: &WorkflowStep,
    argv: Vec<String>,
) -> Result<Done, CliError> {
    let passage = room.passage();
    let mut proposal =
        room.proposal(context, &arguments.flags, Act::Command(argv), Stdin::Empty)?;
    proposal.workflow = Some(workflow.identity());
    proposal.bounds.clone_from(&workflow.envelope);
    proposal.said.clone_from(&step.action);
    proposal.declared = step.effects.clone().or(proposal.declared);
    if arguments.flags.dry_run {
        return Ok(rehearsed(step, passage.rehearse(&proposal)?.denial));
    }
    let answer = passing::ask(context, room, &arguments.flags, &arguments.who, &proposal)?;
    let leave = match answer {
        Answer::Leave(leave) => leave,
        Answer::Denied(denied) => {
            let mut done = refused(step, denied.denial, Exit::Denied);
            done.reply.resolution = denied.resolution;
            return Ok(done);
        }
    };
    let limit = step.timeout.or(arguments.flags.timeout);
    let limit = limit.map(|span| Duration::from_micros(span.as_micros()));
    let mut ran = passage.run(&leave, &Stdin::Empty, Capture::Keep, limit)?;
    if let Some(supervisor) = ran.left_running_supervised.take() {
        crate::detach::keep(supervisor);
    }
    Ok(Done {
        reply: StepReply {
            id: step.id.clone(),
            outcome: if ran.outcome == "ok" { "ok" } else { "failed" },
            detail: (ran.outcome != "ok").then(|| ending(&ran)),
            run: Some(ExecReply::of(&leave, &ran)),
            denial: None,
            resolution: None,
        },
        exit: match (ran.ended, ran.outcome) {
            (Ended::ByItself, "ok") => Exit::Done,
            (Ended::ByItself, _) => Exit::Failed,
            _ => Exit::Interrupted,
        },
        leave: Some(leave),
    })
}

/// A change under a checkpoint, by the command for it: one way, one set of rules.
fn change(context: &mut Context, room: &Room, change: &ChangeStep<'_>) -> Result<Done, CliError> {
    let step = change.step;
    if change.flags.dry_run {
        return Ok(rehearsed(step, change.rehearse(context, room)?));
    }
    // From before the hold is there: whoever sees it can already interrupt the wait.
    let stop = change.flags.wait.map(|_| StopSignals::listen());
    let stop = stop.transpose()?;
    let mut made = change.make(context);
    if let (Err(CliError::Denied(denial)), Some(limit), Some(stop)) =
        (&made, change.flags.wait, &stop)
        && denial.code == DenialCode::ApprovalRequired
    {
        let (denial, asked) = (denial.clone(), Asked::Room(room));
        stop.check()?;
        deliver_holds(context, room);
        let next = waiting::wait_for_decision(context, asked, &denial, limit, stop)?;
        made = match next {
            Next::Denied(denial) => Err(CliError::Denied(denial)),
            Next::Ask if room.has_other_rules(context) => {
                let void = waiting::void_for_rules(context, asked, &denial)?;
                Err(CliError::Denied(void))
            }
            Next::Ask => {
                let made = change.make(context);
                waiting::void_if_changed(context, asked, &denial, made)?.map_err(CliError::Denied)
            }
        };
    }
    Ok(match made {
        Ok(()) => plain(step, "ok", Exit::Done),
        Err(CliError::Denied(denial)) => {
            deliver_holds(context, room);
            refused(step, *denial, Exit::Denied)
        }
        Err(error) => {
            let problem = error.problem();
            Done {
                reply: StepReply {
                    detail: Some(problem.message.clone()),
                    ..plain(step, "failed", Exit::Failed).reply
                },
                exit: problem.exit,
                leave: None,
            }
        }
    })
}

/// Lets those know who are told of what waits here.
fn deliver_holds(context: &Context, room: &Room) {
    if room.is_here() {
        deliver::start(context, &room.control);
    }
}

/// A step that asks for an action which somebody else carries out.
struct Wanted<'a> {
    workflow: &'a Workflow,
    step: &'a WorkflowStep,
    action: &'a str,
    params: serde_json::Value,
}

/// An action that somebody else carries out: only the gates are asked.
fn request(
    context: &Context,
    arguments: &Arguments,
    room: &Room,
    wanted: &Wanted<'_>,
) -> Result<Done, CliError> {
    let Wanted {
        workflow,
        step,
        action,
        params,
    } = wanted;
    let flags = &arguments.flags;
    let act = Act::Change {
        tool: "mutate",
        operations: Vec::new(),
        understood: Understanding::default(),
        programs: StartsPrograms::No,
        covering: None,
    };
    let mut proposal = room.proposal(context, flags, act, Stdin::Empty)?;
    proposal.workflow = Some(workflow.identity());
    proposal.bounds.clone_from(&workflow.envelope);
    proposal.declared = step.effects.clone().or(proposal.declared);
    let passage = room.passage();
    if flags.dry_run {
        let denial = passage.rehearse_request(&proposal, action, params.clone())?;
        return Ok(rehearsed(step, denial));
    }
    let stop = flags.wait.map(|_| StopSignals::listen()).transpose()?;
    let session: SessionId = passage.session(&proposal)?;
    let ask = || Ok(passage.request(&proposal, &session, action, params.clone())?);
    let (mut resolution, mut denial) = ask()?;
    if let Some(stop) = &stop {
        stop.check()?;
    }
    deliver_holds(context, room);
    let waits = denial.as_ref();
    let waits = waits.filter(|it| it.code == DenialCode::ApprovalRequired && it.hold_id.is_some());
    if let (Some(first), Some(limit), Some(stop)) = (waits.cloned(), flags.wait, &stop) {
        let asked = Asked::Room(room);
        let next = waiting::wait_for_decision(context, asked, &first, limit, stop)?;
        let said = match next {
            Next::Denied(denied) => Err(denied),
            Next::Ask => waiting::ask_again(context, asked, &first, ask)?,
        };
        match said {
            Ok(said) => (resolution, denial) = said,
            Err(denied) => denial = Some(*denied),
        }
    }
    Ok(match (resolution.decision, denial) {
        (Decision::Allow, None) => plain(step, "ok", Exit::Done),
        (_, denial) => Done {
            reply: StepReply {
                denial,
                detail: Some(resolution.reason.clone()),
                resolution: Some(resolution),
                ..plain(step, "denied", Exit::Denied).reply
            },
            exit: Exit::Denied,
            leave: None,
        },
    })
}

/// A step that was only rehearsed.
fn rehearsed(step: &WorkflowStep, denial: Option<Denial>) -> Done {
    match denial {
        None => plain(step, "would_run", Exit::Done),
        Some(denial) => refused(step, denial, Exit::WouldBeDenied),
    }
}

fn plain(step: &WorkflowStep, outcome: &'static str, exit: Exit) -> Done {
    Done {
        reply: StepReply {
            id: step.id.clone(),
            outcome,
            run: None,
            denial: None,
            detail: None,
            resolution: None,
        },
        exit,
        leave: None,
    }
}

fn refused(step: &WorkflowStep, denial: Denial, exit: Exit) -> Done {
    let mut done = plain(step, "denied", exit);
    done.reply.denial = Some(denial);
    done
}

fn ending(ran: &Ran) -> String {
    match (ran.ended, ran.exit_code) {
        (Ended::TimedOut, _) => "it took too long".to_owned(),
        (Ended::Interrupted, _) => "it was interrupted".to_owned(),
        (Ended::ByItself, Some(code)) => format!("it ended with {code}"),
        (Ended::ByItself, None) => "it was killed".to_owned(),
    }
}

/// Takes a step back: what it changed, and nothing that came later.
fn take_back(room: &Room, leave: &Leave) -> Result<(), CliError> {
    let action = room.state.find_action(leave.action_id.as_str())?;
    if action.before == action.after {
        return Ok(());
    }
    let goal = Goal::Without {
        action: &action,
        verb: "undo",
    };
    let restored = room
        .state
        .restore(&room.workspace, &goal, &[], &room.progress);
    match restored {
        Ok(_) | Err(StateError::NothingLeft { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn show(reply: &RunReply) -> String {
    let mut shown = String::new();
    for step in &reply.steps {
        let (style, word) = match step.outcome {
            "ok" | "would_run" => (GOOD, step.outcome),
            other => (BAD, other),
        };
        let detail = step.detail.as_deref().unwrap_or_default();
        shown.push_str(&format!(
            "{style}{word:<11}{style:#} {STRONG}{}{STRONG:#}  {}\n",
            text::line(&step.id).text,
            text::line(detail).text
        ));
        if let Some(run) = &step.run {
            for line in run.output().lines().take(20) {
                shown.push_str(&format!(
                    "            {FAINT}{}{FAINT:#}\n",
                    text::line(line).text
                ));
            }
        }
        if let Some(denial) = &step.denial {
            shown.push_str(&show_denial(&DenialReply {
                denial: denial.clone(),
                session_id: None,
                resolution: step.resolution.clone(),
            }));
        }
    }
    shown
}
