//! `safepoint workspace resolve`: what does not fit is decided, one by one, and with the last
//! decision the integration goes on.

use safepoint_control::pass::Takeover;
use safepoint_model::{Exit, WorkspaceId};
use safepoint_progress::Progress;
use safepoint_progress::integrate::{Choice, Integration, Resolve, Settling};

use super::integrate::{Asked, AskingFlags, Over, deny, ended};
use super::integration::{IntegrationReply, print};
use super::open;
use crate::commands::outside;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `workspace resolve`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// Which conflict, such as `c1`, shown unless something is decided; without one, all are shown, and what is decided goes on
    conflict: Option<String>,
    /// What becomes of it: `ours` or `theirs`, which is the whole file as the parent or the workspace has it, or `merged`, the changes of both where all of them fit
    #[arg(long = "use", value_name = "CHOICE", requires = "conflict", value_parser = choice)]
    choice: Option<Choice>,
    /// This is to be in its place: a text, or @FILE, - for standard input
    #[arg(
        long,
        value_name = "TEXT",
        requires = "conflict",
        conflicts_with = "choice",
        allow_hyphen_values = true
    )]
    content: Option<String>,
    /// The agent has to do it again: the workspace fails
    #[arg(long, requires = "conflict", conflicts_with_all = ["choice", "content"])]
    rework: bool,
    /// A person has decided, and not the coordinator
    #[arg(long, requires = "conflict")]
    human: bool,
    #[command(flatten)]
    asking: AskingFlags,
}

/// A choice that is a word: a content is given by itself.
fn choice(text: &str) -> Result<Choice, String> {
    match text.parse() {
        Ok(Choice::Content) | Err(_) => {
            let found = safepoint_model::text::line(text).text;
            let known = "it is one of ours, theirs, merged; something else is given with --content";
            Err(format!("`{found}` is no choice: {known}"))
        }
        Ok(choice) => Ok(choice),
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (progress, id) = open(context, &arguments.workspace)?;
    let by = context.actor()?;
    if let Some(conflict) = &arguments.conflict {
        let content = match &arguments.content {
            Some(given) => Some(outside::text_or_file(context, given)?),
            None => None,
        };
        let choice = match &content {
            Some(_) => Some(Choice::Content),
            None => arguments.choice,
        };
        if choice.is_none() && !arguments.rework {
            let one = being_integrated(&progress, &id)?;
            let over = Over::open(context, progress, &id, &arguments.asking)?;
            return over.show_one(context, one, conflict);
        }
        let decision = Resolve {
            conflict,
            strategy: match (arguments.rework, arguments.human) {
                (true, _) => Settling::Rework,
                (false, true) => Settling::Human,
                (false, false) => Settling::Coordinator,
            },
            choice,
            content: content.as_deref(),
        };
        let resolved = progress.resolve(&id, &decision, &by)?;
        if resolved.result.is_some() {
            return print(context, &IntegrationReply::of(resolved));
        }
        if !resolved.is_settled() {
            // What was asked for was done; that others are open is said, and is no failure.
            let over = Over::open(context, progress, &id, &arguments.asking)?;
            over.show(context, resolved)?;
            return Ok(Exit::Done);
        }
    }
    let one = being_integrated(&progress, &id)?;
    if !one.is_settled() {
        let over = Over::open(context, progress, &id, &arguments.asking)?;
        return over.show(context, one);
    }
    go_on(context, progress, &id, &one, &arguments.asking)
}

fn being_integrated(progress: &Progress, id: &WorkspaceId) -> Result<Integration, CliError> {
    progress
        .open_integration(id)?
        .ok_or_else(|| CliError::Invalid {
            message: format!("`{id}` is not being integrated"),
            suggestion: "`safepoint workspace integrate` begins it",
        })
}

/// After the last decision: the same again, with what was decided.
fn go_on(
    context: &mut Context,
    progress: Progress,
    id: &WorkspaceId,
    one: &Integration,
    asking: &AskingFlags,
) -> Result<Exit, CliError> {
    let over = Over::open(context, progress, id, asking)?;
    let record = over.progress.record_of(id, &one.checkpoint_ref)?;
    let decided = one.resolutions();
    let (changes, clashes) = over.preview(record.as_ref(), one.strategy, &decided)?;
    if clashes {
        let errand = over.nothing_done()?;
        let step = over
            .progress
            .resume_integration(id, &over.ground(&errand), &over.by)?;
        return over.show(context, ended(step));
    }
    let takeover = Takeover {
        source: id,
        checkpoint: &one.checkpoint_ref,
        mode: one.mode.as_str(),
        strategy: one.strategy.as_str(),
        changes: &changes,
    };
    let leave = match over.ask(context, &takeover, asking)? {
        Asked::Leave(leave) => leave,
        Asked::Denied(denied) => return deny(context, *denied),
    };
    let ground = over.ground(leave.errand());
    let step = over.progress.resume_integration(id, &ground, &over.by);
    over.carry_out(context, &leave, step.map_err(CliError::from))
}
