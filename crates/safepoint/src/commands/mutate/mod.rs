//! `safepoint mutate`: changes something under a checkpoint, checks it, and keeps
//! it or rolls it back.

mod difference;
mod input;
mod leave;
mod reply;
mod step;
mod way_back;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::time::Duration;

use safepoint_authority::Reversibility;
use safepoint_control::pass::{Leave, ProposedChange, Stdin};
use safepoint_model::{Exit, Span};
use safepoint_state::mutate::Sealing;
use safepoint_state::mutate::{
    Beside, Failed, FailedCheck, Mutated, Mutation, Operation, Outcome, Step, operation,
};
use safepoint_state::scope::Scope;
use safepoint_state::seal::{Identity, Recipient};
use safepoint_state::{
    Ending, Origin, Progress, Snapshot, State, StateError, Subject, Wanted, WantedPart, Workspace,
};

use super::passing::{Flags, Room};
use super::{outside, restoring};
use crate::context::Context;
use crate::error::{CliError, FailedReply};

use leave::{Asking, Said};
pub(crate) use reply::MutateReply;
pub(crate) use step::ChangeStep;

/// Arguments of `mutate`
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to change: a path, `state:NAME` or a database; a batch names its own
    target: Option<String>,
    /// The checkpoint that allows it; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
    /// Make a checkpoint of the workspace first
    #[arg(long, conflicts_with = "checkpoint")]
    auto_checkpoint: bool,
    /// What to do, as JSON or YAML; `@FILE`, or `-` for standard input
    #[arg(
        long,
        value_name = "JSON",
        allow_hyphen_values = true,
        required_unless_present = "input"
    )]
    operation: Option<String>,
    /// All of it as one document, JSON or YAML: `target`, `operation` and `checkpoint_id`; @FILE for
    /// a file, - for standard input
    #[arg(
        long,
        value_name = "DOCUMENT",
        allow_hyphen_values = true,
        conflicts_with_all = ["target", "operation", "checkpoint"]
    )]
    input: Option<String>,
    /// A line for the shell that must succeed, or the change is rolled back
    #[arg(long, value_name = "COMMAND")]
    verify: Option<String>,
    /// How long that may take
    #[arg(long, value_name = "TIME", default_value = "15m")]
    verify_timeout: Span,
    /// Fail, and roll back, when anything but the target changes
    #[arg(long)]
    strict: bool,
    /// Keep a change that does not hold
    #[arg(long)]
    keep_failed: bool,
    /// The session it belongs to; without one, that of the workspace
    #[arg(long, value_name = "ID", env = "SAFEPOINT_SESSION")]
    session: Option<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mut told = Told {
        target: arguments.target.clone().unwrap_or_default(),
        operation: String::new(),
        checkpoint: arguments.checkpoint.clone().unwrap_or_default(),
        anchors: Vec::new(),
        not_covered: Vec::new(),
    };
    let done = match input::filled(context, arguments) {
        Ok(arguments) => {
            told.target = arguments.target.clone().unwrap_or_default();
            told.checkpoint = arguments.checkpoint.clone().unwrap_or_default();
            change(context, &arguments, &mut told, None)
        }
        Err(error) => Err(Box::new((error, None))),
    };
    let (mutated, room) = match done {
        Ok(done) => done,
        Err(failure) => {
            let (error, failed) = *failure;
            let mut reply = reply::of_failure(context, &told, &error, failed.as_deref())?;
            let warnings = failed.iter();
            let warnings = warnings.flat_map(|it| reply::warnings(context, &told, it));
            let warnings: Vec<String> = warnings.collect();
            for warning in &warnings {
                context.console.warn(warning);
            }
            if let CliError::Denied(denial) = &error {
                reply.insert("denial".to_owned(), serde_json::to_value(denial)?);
            }
            return Err(CliError::WithReply(Box::new(FailedReply { error, reply })));
        }
    };
    let reply = reply::of_change(context, &room.state, &room.workspace, &told, &mutated)?;
    context.console.value(&reply, reply::show)?;
    for warning in &reply::warnings_of_change(&told, &mutated) {
        context.console.warn(warning);
    }
    let verdict = &mutated.verdict;
    Ok(match (verdict.outcome(), verdict.ending) {
        (Outcome::Pass, _) => Exit::Done,
        (_, Ending::Interrupted | Ending::TimedOut) => Exit::Interrupted,
        (Outcome::Fail | Outcome::Inconclusive, Ending::ByItself) => Exit::Failed,
    })
}

/// What is known of a change however it ends.
struct Told {
    target: String,
    operation: String,
    checkpoint: String,
    /// Where to see what it did.
    anchors: Vec<String>,
    /// What of it nothing covers, once there was leave for it.
    not_covered: Vec<String>,
}

impl Told {
    /// The same in sentences.
    fn beyond(&self) -> impl Iterator<Item = String> {
        self.not_covered
            .iter()
            .map(|what| format!("no roll back brings back what it did to this: {what}"))
    }
}

/// Why a change was not made, and how far it had come.
type Failure = Box<(CliError, Option<Box<Failed>>)>;

fn change(
    context: &mut Context,
    arguments: &Arguments,
    told: &mut Told,
    step: Option<&ChangeStep<'_>>,
) -> Result<(Mutated, Room), Failure> {
    let plain = |error: CliError| -> Failure { Box::new((error, None)) };
    let given = arguments.operation.as_deref().unwrap_or_default();
    let text = outside::json_or_yaml(context, given).map_err(plain)?;
    told.operation = description(&text);
    let steps = read_steps(&text, arguments).map_err(plain)?;
    told.target = names(&steps);
    told.operation = sentence(&steps);
    told.anchors = anchors(&steps, arguments.verify.as_deref());
    let mut subjects = BTreeMap::new();
    for target in steps.iter().filter_map(|step| step.target.as_ref()) {
        if let Some(subject) = outside::subject(context, target).map_err(plain)? {
            subjects.insert(target.clone(), subject);
        }
    }
    let own = Flags::of_change(arguments.session.clone());
    let flags = step.map_or(&own, |step| step.flags);
    let room = Room::open(context, flags).map_err(plain)?;
    let Room {
        state,
        workspace,
        progress,
        ..
    } = &room;
    if arguments.auto_checkpoint {
        let made = automatic(state, workspace, &subjects, &told.operation, progress);
        told.checkpoint = made.map_err(plain)?.id.to_string();
    }
    if told.checkpoint.is_empty() {
        return Err(plain(CliError::State(StateError::CheckpointRequired {
            checkpoint: String::new(),
            why: "none was given".to_owned(),
        })));
    }
    let here = outside::here(context);
    let passage = room.passage();
    let variables = context.environment.variables();
    let change = ProposedChange {
        steps: &steps,
        check: arguments.verify.as_deref(),
        here: &here,
        variables: &variables,
    };
    let act = passage.change(&change);
    let act = act.map_err(|error| plain(error.into()))?;
    let proposal = room.proposal(context, flags, act, Stdin::Empty);
    let mut proposal = proposal.map_err(plain)?;
    if let Some(step) = step {
        step.bind(&passage, &change, &mut proposal).map_err(plain)?;
    }
    let asking = Asking {
        passage: &passage,
        change,
        proposal: &proposal,
        answer: RefCell::new(None),
        is_unwatched: Cell::new(false),
    };
    let (recipients, identities) = keys(context, &steps, arguments.verify.is_some());
    let mutation = Mutation {
        checkpoint: &told.checkpoint,
        steps: steps.clone(),
        here: &here,
        subjects,
        check: arguments.verify.as_deref(),
        check_limit: Duration::from_micros(arguments.verify_timeout.as_micros()),
        beside: match arguments.strict {
            true => Beside::Fail,
            false => Beside::Tell,
        },
        failed: match arguments.keep_failed {
            true => FailedCheck::Keep,
            false => FailedCheck::RollBack,
        },
        leave: Some(&asking),
        sealing: Sealing {
            recipients: &recipients,
            identities: &identities,
        },
    };
    let mutated = context
        .console
        .watching(progress, || state.mutate(workspace, &mutation, progress));
    let said = asking.answer.take();
    if let Some(Said::Leave(leave)) = &said {
        let outcome = match &mutated {
            Ok(_) => "ok",
            Err(_) => "error",
        };
        let ended = passage.conclude_change(leave, outcome);
        ended.map_err(|error| plain(error.into()))?;
        told.not_covered = uncovered(leave);
    }
    match mutated {
        Ok(mutated) => {
            told.checkpoint = mutated.checkpoint.to_string();
            drop(passage);
            Ok((mutated, room))
        }
        Err(failed) => {
            let error = match said {
                Some(Said::Denied(denial)) => CliError::Denied(denial),
                Some(Said::Failed(error)) => CliError::Control(*error),
                _ => CliError::State(failed.error.clone()),
            };
            Err(Box::new((error, Some(failed))))
        }
    }
}

/// What no checkpoint brings back of what leave was given for. What is left out of it was sealed,
/// or is told where it is gone or has changed.
fn uncovered(leave: &Leave) -> Vec<String> {
    if leave.canonical.reversibility == Reversibility::Reversible {
        return Vec::new();
    }
    let rest = leave.canonical.remainder.iter();
    rest.filter(|why| !why.contains("` is not in the checkpoint: "))
        .cloned()
        .collect()
}

/// The keys for sensitive files, where a program runs that may destroy them. Where there are
/// none they are not sealed, and a change that destroys one does not hold.
fn keys(context: &Context, steps: &[Step], has_check: bool) -> (Vec<Recipient>, Vec<Identity>) {
    if !has_check && !steps.iter().any(Step::is_command) {
        return (Vec::new(), Vec::new());
    }
    let recipients = restoring::recipients(context).unwrap_or_default();
    let identities = restoring::identities(context, None).unwrap_or_default();
    (recipients, identities)
}

/// What an operation says of itself, though it may be wrong otherwise.
fn description(text: &[u8]) -> String {
    let value: Option<serde_json::Value> = serde_json::from_slice(text).ok();
    let text = value.as_ref().and_then(|it| it.get("description"));
    text.and_then(|it| it.as_str())
        .unwrap_or_default()
        .to_owned()
}

/// The programs by which it can be seen what a change did.
fn anchors(steps: &[Step], check: Option<&str>) -> Vec<String> {
    let one = |step: &Step| match &step.operation {
        Operation::Command { argv, .. } => Some(format!("command:{}", argv.join(" "))),
        Operation::Sql { .. } => {
            let target = step.target.as_deref().unwrap_or_default();
            let program = match target.split(':').next().unwrap_or_default() {
                "sqlite" => "sqlite3",
                "mysql" | "mariadb" => "mariadb",
                _ => "psql",
            };
            Some(format!("command:{program}:schema_after"))
        }
        _ => None,
    };
    let steps = steps.iter().filter_map(one);
    steps
        .chain(check.map(|line| format!("command:{line}")))
        .collect()
}

fn read_steps(text: &[u8], arguments: &Arguments) -> Result<Vec<Step>, CliError> {
    let mut steps = operation::read(text).map_err(|error| CliError::Invalid {
        message: format!("`--operation`: {error}"),
        suggestion: "for example `{\"type\": \"edit\", \"changes\": [{\"old\": \"a\", \"new\": \"b\"}]}`; docs/mutate.md describes all",
    })?;
    for step in &mut steps {
        if step.target.is_none() {
            step.target.clone_from(&arguments.target);
        } else if arguments.target.is_some() && step.target != arguments.target {
            return Err(CliError::Invalid {
                message: "a target is given, and another one in the operation".into(),
                suggestion: "leave one of them out",
            });
        }
        if step.target.is_none() {
            return Err(CliError::Invalid {
                message: "there is no target".into(),
                suggestion: "name it: `safepoint mutate TARGET --checkpoint ID --operation JSON`",
            });
        }
    }
    Ok(steps)
}

/// A checkpoint that nobody asked for by itself: the whole workspace, and what is changed outside it.
fn automatic(
    state: &State,
    workspace: &Workspace,
    subjects: &BTreeMap<String, Subject>,
    reason: &str,
    progress: &Progress,
) -> Result<Snapshot, CliError> {
    let parts: Vec<WantedPart> = subjects
        .values()
        .map(|subject| WantedPart {
            subject: subject.clone(),
            value: None,
        })
        .collect();
    let wanted = Wanted {
        scope: &Scope::everything(),
        parts,
        reason: Some(format!("before: {reason}")),
        kind: None,
        expiry: safepoint_state::automatic_expiry(state.now()),
        origin: Origin::Automatic,
        seal_to: &[],
    };
    let made = state.checkpoint(workspace, &wanted, progress)?;
    Ok(made.snapshot)
}

fn names(steps: &[Step]) -> String {
    let mut names: Vec<&str> = steps
        .iter()
        .filter_map(|step| step.target.as_deref())
        .collect();
    names.dedup();
    names.join(", ")
}

fn sentence(steps: &[Step]) -> String {
    let sentences: Vec<String> = steps
        .iter()
        .map(|step| step.sentence(step.target.as_deref().unwrap_or_default()))
        .collect();
    sentences.join("; ")
}
