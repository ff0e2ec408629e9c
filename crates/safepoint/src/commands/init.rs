//! `safepoint init`: makes the store and its trail.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use safepoint_model::{Exit, text};
use safepoint_trail::LostStore;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, GOOD};
use crate::context::{Context, real_path};
use crate::error::CliError;

/// Arguments of `init`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Begin a new trail where the store of an old one is gone, and record the loss in it
    #[arg(long)]
    start_anew: bool,
    /// Go on with the history of a project that was here before, or that was moved here from
    /// this directory
    #[arg(long, value_name = "DIR", conflicts_with = "start_anew")]
    moved_from: Option<PathBuf>,
    /// Take the repository that `.git` leads to now for the project's own, where it had another
    /// one, or none, when it was first seen
    #[arg(long, conflicts_with_all = ["start_anew", "moved_from"])]
    accept_repository: bool,
}

/// What `init` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Initialised {
    /// The store.
    store: String,
    /// How many entries its trail has.
    entries: u64,
    /// The public key of the trail: what `trail check-proof --key` takes.
    key: String,
    /// The directory whose history goes on here, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    moved_from: Option<String>,
    /// The repository that was taken for the project's own, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_repository: Option<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let lost_store = if arguments.start_anew {
        confirm(
            context,
            "`--start-anew` gives up on an old trail",
            "Give up on the old trail and begin a new one?",
        )?;
        LostStore::StartAnew
    } else {
        LostStore::Refuse
    };
    let trail = context.trail_or(lost_store)?;
    if arguments.start_anew && trail.head()?.size() > 1 {
        return Err(CliError::Invalid {
            message: "the store is not empty, so there is nothing to start anew from".into(),
            suggestion: "move the database away first, or choose another with `--store`",
        });
    }
    let moved_from = match &arguments.moved_from {
        Some(from) => Some(adopt(context, from)?),
        None => None,
    };
    let accepted_repository = match arguments.accept_repository {
        true => Some(accept_repository(context)?),
        false => None,
    };
    let initialised = Initialised {
        store: context.settings.store.value.to_string(),
        entries: trail.head()?.size(),
        key: trail.key().to_string(),
        moved_from,
        accepted_repository,
    };
    context.console.value(&initialised, |it| {
        let mut shown = format!(
            "{GOOD}ready{GOOD:#}  {}\n{FAINT}key{FAINT:#}    {}\n",
            text::line(&it.store).text,
            text::line(&it.key).text
        );
        if let Some(from) = &it.moved_from {
            let from = text::line(from).text;
            shown.push_str(&format!(
                "{FAINT}goes on with the history of{FAINT:#} {from}\n"
            ));
        }
        if let Some(repository) = &it.accepted_repository {
            let repository = text::line(repository).text;
            shown.push_str(&format!("{FAINT}repository{FAINT:#} {repository}\n"));
        }
        shown
    })?;
    Ok(Exit::Done)
}

/// Takes another repository for the project's own, because a person says that it is.
fn accept_repository(context: &mut Context) -> Result<String, CliError> {
    if context.is_agent() || context.served().is_some() {
        return Err(CliError::Invalid {
            message: "only a person says which repository is the project's".into(),
            suggestion: "ask the person whose project it is",
        });
    }
    let workspace = context.workspace()?;
    let state = context.state()?;
    let root = text::line(&workspace.root.display().to_string()).text;
    confirm(
        context,
        "`--accept-repository` lets git write into a repository outside of the project",
        &format!("Take what the `.git` of {root} leads to for its repository?"),
    )?;
    Ok(state
        .accept_repository(&workspace.root)?
        .display()
        .to_string())
}

/// Goes on with the history of another directory, because a person says that it is this one.
fn adopt(context: &mut Context, from: &Path) -> Result<String, CliError> {
    if context.is_agent() || context.served().is_some() {
        return Err(CliError::Invalid {
            message: "only a person says which project a directory is".into(),
            suggestion: "ask the person whose project it is",
        });
    }
    context.keeps_footing = true;
    let from = real_path(&context.directory.join(from));
    let workspace = context.workspace()?;
    let mut state = context.state()?;
    state.adopt(&from, &workspace.root)?;
    context.control()?.move_sessions(&from, &workspace.root)?;
    Ok(from.display().to_string())
}

/// What cannot be taken back is asked.
fn confirm(context: &Context, what: &str, question: &str) -> Result<(), CliError> {
    if context.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(CliError::Invalid {
            message: format!("{what} and wants to be confirmed"),
            suggestion: "add `--yes`, or run it on a terminal",
        });
    }
    let mut talk = std::io::stderr();
    write!(talk, "{question} Type yes: ")?;
    talk.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    if answer.trim() == "yes" {
        return Ok(());
    }
    Err(CliError::Invalid {
        message: "it was not confirmed, and nothing was changed".into(),
        suggestion: "answer with the whole word `yes`",
    })
}
