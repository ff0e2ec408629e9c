//! `safepoint task …`: what is to be done, given to workspaces, and how far it is.

mod show;

use clap::Subcommand;
use safepoint_model::{Exit, TaskId};
use safepoint_progress::Progress;
use safepoint_progress::task::{Task, TaskState};
use schemars::JsonSchema;
use serde::Serialize;

use super::operator;
use super::workspace::document::{TakenBack, taken_back};
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// What can be done with tasks
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write down what is to be done
    Create(Create),
    /// List tasks, the oldest first
    List(List),
    /// Show one task
    Show(One),
    /// Give a task to a workspace
    Assign(Assign),
    /// Let a draft be done
    Approve(One),
    /// Have a task that failed tried again
    Retry(One),
    /// Want a task no longer
    Cancel(One),
}

impl Command {
    /// Whether it only looks.
    pub(crate) fn is_reading(&self) -> bool {
        matches!(self, Self::List(_) | Self::Show(_))
    }
}

/// Arguments of `task create`
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    /// What is to be done, in a sentence
    title: String,
    /// A task that must be completed first; can be given several times
    #[arg(long, value_name = "TASK")]
    after: Vec<String>,
    /// Only propose it: it waits for `task approve`
    #[arg(long)]
    draft: bool,
}

/// Arguments of `task list`
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only those that are so far: draft, pending, assigned, in_progress …
    #[arg(long, value_name = "STATUS")]
    status: Option<TaskState>,
}

/// Arguments of what is about one task
#[derive(Debug, clap::Args)]
pub(crate) struct One {
    /// The task; the beginning of its id is enough
    task: String,
}

/// Arguments of `task assign`
#[derive(Debug, clap::Args)]
pub(crate) struct Assign {
    /// The task; the beginning of its id is enough
    task: String,
    /// The workspace that is to do it; the beginning of its id is enough
    workspace: String,
}

/// What everything about one task prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TaskReply {
    #[schemars(with = "TaskDocument")]
    task: Task,
    /// The action that undid the integration of its result, if one did.
    taken_back_by: Option<String>,
}

/// What `task list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct TaskList {
    /// The oldest first.
    #[schemars(with = "Vec<TaskDocument>")]
    tasks: Vec<Task>,
}

/// Something that is to be done.
#[derive(Serialize, JsonSchema)]
struct TaskDocument {
    task_id: String,
    /// What is to be done.
    title: String,
    /// How far it is.
    status: String,
    /// What must be completed before it can be assigned.
    dependencies: Vec<String>,
    /// Every workspace that it was given to, in order.
    workspace_history: Vec<String>,
    /// Its result: a final checkpoint.
    checkpoint_ref: Option<String>,
    /// When it was written down.
    created: String,
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    if !command.is_reading() {
        operator::refuse_agents(context, &context.control()?)?;
    }
    let progress = context.progress()?;
    let by = context.actor()?;
    let find = |prefix: &str| progress.find_task(prefix);
    let task = match command {
        Command::List(arguments) => return list(context, &progress, &arguments),
        Command::Create(arguments) => {
            let after: Vec<TaskId> = arguments
                .after
                .iter()
                .map(|prefix| find(prefix))
                .collect::<Result<_, _>>()?;
            progress.create_task(&arguments.title, &after, arguments.draft, &by)?
        }
        Command::Show(one) => progress.task(&find(&one.task)?)?,
        Command::Assign(arguments) => {
            let workspace = progress.find(&arguments.workspace)?;
            progress.assign(&find(&arguments.task)?, &workspace, &by)?
        }
        Command::Approve(one) => progress.approve(&find(&one.task)?, &by)?,
        Command::Retry(one) => progress.retry(&find(&one.task)?, &by)?,
        Command::Cancel(one) => progress.cancel(&find(&one.task)?, &by)?,
    };
    let taken_back = match task.status {
        TaskState::Integrated => taken_back(context, &progress)?,
        _ => TakenBack::new(),
    };
    let last = task.workspace_history.last();
    let by = last.and_then(|workspace| taken_back.get(workspace));
    let reply = TaskReply {
        taken_back_by: by.map(ToString::to_string),
        task,
    };
    context.console.value(&reply, |reply| {
        show::page(&reply.task, reply.taken_back_by.as_deref())
    })?;
    Ok(Exit::Done)
}

fn list(context: &mut Context, progress: &Progress, arguments: &List) -> Result<Exit, CliError> {
    let mut tasks = progress.tasks()?;
    tasks.retain(|task| arguments.status.is_none_or(|status| task.status == status));
    if context.console.mode == Mode::Ndjson {
        for task in &tasks {
            context.console.json(task)?;
        }
        return Ok(Exit::Done);
    }
    let width = context.console.width();
    let reply = TaskList { tasks };
    context.console.value(&reply, |reply| {
        let lines = reply.tasks.iter();
        lines.map(|task| show::line(task, width)).collect()
    })?;
    if reply.tasks.is_empty() {
        context
            .console
            .say("no tasks; `safepoint task create TITLE` writes one down");
    }
    Ok(Exit::Done)
}
