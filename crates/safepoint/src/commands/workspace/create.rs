//! `safepoint workspace create`.

use std::path::{Path, PathBuf};

use safepoint_gates::load;
use safepoint_model::{Exit, Span};
use safepoint_progress::meter::Budget;
use safepoint_progress::record::WallTime;
use safepoint_progress::role::{BaseRole, Name};
use safepoint_progress::taxonomy::{Problem, Taxonomy};
use safepoint_progress::{Beginning, Given, create_apart};
use schemars::JsonSchema;
use serde::Serialize;

use crate::commands::checkpoint::NoteDocument;
use crate::commands::session::text_from;
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::{CliError, TaxonomyFault};

/// Arguments of `workspace create`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace it is below; without one a run begins, and this is its coordinator
    #[arg(long, value_name = "WORKSPACE")]
    parent: Option<String>,
    /// What its agent is: `coordinator` for the root, `worker`, `observer`, or a role of the taxonomy
    #[arg(long, value_name = "ROLE")]
    role: Name,
    /// What it is to do, which makes it active at once; @FILE for a file, - for standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    directive: Option<String>,
    /// Give it a directory of its own: a git worktree in a repository, a copy elsewhere
    #[arg(long, requires = "parent")]
    isolated: bool,
    /// The task that it is for; the beginning of its id is enough
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The roles and types of the run, in YAML or JSON; only for the root
    #[arg(long, value_name = "FILE", conflicts_with = "parent")]
    taxonomy: Option<PathBuf>,
    /// The same as text, in place of a file
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["parent", "taxonomy"], allow_hyphen_values = true)]
    taxonomy_text: Option<String>,
    /// How long it may be at work before it fails: `90s`, `2h`
    #[arg(long, value_name = "DURATION")]
    timeout: Option<Span>,
    /// The most tokens that it may take
    #[arg(long, value_name = "NUMBER")]
    budget_tokens: Option<u64>,
    /// The most that it may cost
    #[arg(long, value_name = "NUMBER", value_parser = amount)]
    budget_cost: Option<f64>,
    /// The longest time that it may be at work, counted as part of its budget
    #[arg(long, value_name = "DURATION")]
    budget_time: Option<Span>,
    /// The most bytes that its checkpoints may have
    #[arg(long, value_name = "NUMBER")]
    budget_bytes: Option<u64>,
}

/// What `workspace create` and `workspace migrate` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CreateReply {
    pub(super) workspace_id: String,
    /// What the agent shows. It is not shown again, and only a digest of it is kept.
    pub(super) token: String,
    /// The workspace's own directory, if it has one.
    pub(super) path: Option<String>,
    /// What is not in that directory of the one it was made from: secrets, caches, what is
    /// excluded, and the git state of repositories inside it. What git ignores is not named.
    pub(super) left_out: Vec<NoteDocument>,
}

pub(super) fn amount(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    match number.is_finite() && number >= 0.0 {
        true => Ok(number),
        false => Err("it is not a number from 0 on".to_owned()),
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let directive = match &arguments.directive {
        Some(given) => Some(text_from(context, given)?),
        None => None,
    };
    let taxonomy = match (&arguments.taxonomy, &arguments.taxonomy_text) {
        (Some(path), _) => read_taxonomy(context, path)?,
        // Whoever asks over a connection names no file.
        (None, Some(text)) => taxonomy(Path::new("taxonomy"), text)?,
        (None, None) => Taxonomy::empty(),
    };
    let progress = context.progress()?;
    let parent = match &arguments.parent {
        Some(prefix) => Some(progress.find(prefix)?),
        None => None,
    };
    let beginning = match &parent {
        Some(parent) => Beginning::Below(parent, arguments.role.clone()),
        None if arguments.role.base() == Some(BaseRole::Coordinator) => Beginning::Root(&taxonomy),
        None => {
            return Err(CliError::Invalid {
                message: format!(
                    "a run begins with its coordinator, not with `{}`",
                    arguments.role
                ),
                suggestion: "name the workspace above it with `--parent`, or begin with `--role coordinator`",
            });
        }
    };
    let task = match &arguments.task {
        Some(prefix) => Some(progress.find_task(prefix)?),
        None => None,
    };
    let time = arguments.budget_time;
    let given = Given {
        directive: directive.as_deref(),
        budget: Budget {
            tokens: arguments.budget_tokens,
            wall_time: time.map(|time| WallTime::from_micros(time.as_micros())),
            cost: arguments.budget_cost,
            checkpoint_bytes: arguments.budget_bytes,
        },
        timeout: arguments.timeout,
        task: task.as_ref(),
        place: None,
    };
    let by = context.actor()?;
    let (created, path, left_out) = match arguments.isolated {
        false => (progress.create(&beginning, &given, &by)?, None, Vec::new()),
        true => {
            let state = context.state()?;
            let above = match &parent {
                Some(parent) => progress.place(parent)?,
                None => None,
            };
            let origin = match above {
                Some(above) => context.directory_of(&above)?,
                None => context.workspace()?,
            };
            progress.clear_apart(&state)?;
            let apart = create_apart(&progress, &state, &origin, &beginning, &given, &by)?;
            (apart.created, Some(apart.place.path), apart.left_out)
        }
    };
    let reply = CreateReply {
        workspace_id: created.workspace_id.to_string(),
        token: created.token,
        path: path.map(|path| path.display().to_string()),
        left_out: left_out.iter().map(Into::into).collect(),
    };
    print(context, &reply)?;
    Ok(Exit::Done)
}

/// Prints the token, the only time that it is seen.
pub(super) fn print(context: &mut Context, reply: &CreateReply) -> Result<(), CliError> {
    context.console.value(reply, |reply| {
        let mut shown = format!(
            "{FAINT}workspace{FAINT:#}  {STRONG}{}{STRONG:#}\n{FAINT}token{FAINT:#}      {}\n",
            reply.workspace_id, reply.token
        );
        if let Some(path) = &reply.path {
            let path = safepoint_model::text::line(path).text;
            shown.push_str(&format!("{FAINT}path{FAINT:#}       {path}\n"));
        }
        for note in &reply.left_out {
            shown.push_str(&format!("{FAINT}left out{FAINT:#}   {}\n", note.shown()));
        }
        shown
    })?;
    if context.console.mode == crate::console::Mode::Text {
        context
            .console
            .say("the token is for the workspace's agent, and is not shown again");
    }
    Ok(())
}

fn read_taxonomy(context: &Context, path: &Path) -> Result<Taxonomy, CliError> {
    let place = context.directory.join(path);
    let text = std::fs::read_to_string(&place).map_err(|error| CliError::File {
        action: "read",
        path: path.to_owned(),
        error,
    })?;
    taxonomy(path, &text)
}

fn taxonomy(path: &Path, text: &str) -> Result<Taxonomy, CliError> {
    Taxonomy::read(text).map_err(|problems| {
        CliError::Taxonomy(Box::new(TaxonomyFault {
            shown: problems
                .iter()
                .map(|problem| located(problem).render(&path.display().to_string(), text))
                .collect(),
            path: path.to_owned(),
            problems,
        }))
    })
}

/// The same as of an atlas, so that both are shown alike.
fn located(problem: &Problem) -> load::Problem {
    let place = problem.line.zip(problem.column);
    load::Problem {
        severity: load::Severity::Error,
        message: problem.message.clone(),
        hint: None,
        pointer: problem.pointer.clone(),
        place: place.map(|(line, column)| load::Place {
            line,
            column,
            length: 1,
        }),
    }
}
