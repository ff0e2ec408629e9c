//! `safepoint mutate`: changes something under a checkpoint, checks it, and keeps
//! it or rolls it back.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use safepoint_model::{Exit, Span, Timestamp, text};
use safepoint_state::mutate::{
    Beside, Failed, FailedCheck, Mutated, Mutation, Outcome, Seen, Step, operation,
};
use safepoint_state::scope::Scope;
use safepoint_state::tree::{Change, Entry};
use safepoint_state::{
    Ending, Origin, Progress, Snapshot, State, StateError, Subject, Wanted, WantedPart, Workspace,
    path,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::restoring::{ChangeDocument, documents};
use super::verdict::VerdictDocument;
use super::{diff, outside};
use crate::console::{FAINT, GOOD, Mode, STRONG, WARNING, count};
use crate::context::Context;
use crate::error::{CliError, FailedReply};
use crate::settings::Origin as SettingOrigin;

/// Arguments of `mutate`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to change: a path, `state:NAME` or a database; a batch names its own
    target: Option<String>,
    /// The checkpoint that allows it; the beginning of its id is enough
    #[arg(long, value_name = "ID")]
    checkpoint: Option<String>,
    /// Make a checkpoint of the workspace first
    #[arg(long, conflicts_with = "checkpoint")]
    auto_checkpoint: bool,
    /// What to do, as JSON; `@FILE`, or `-` for standard input
    #[arg(long, value_name = "JSON")]
    operation: String,
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
}

/// What `mutate` prints. A failure prints the same fields with `success` false and an `error`.
#[derive(Serialize, JsonSchema)]
pub(crate) struct MutateReply {
    /// Whether it was made and kept.
    success: bool,
    /// What was changed.
    target: String,
    /// What was done, in a sentence.
    operation: String,
    previous_state: PreviousState,
    new_state: NewState,
    diff: DiffFields,
    /// The checkpoint that allowed it, and is used up now.
    checkpoint_id: String,
    /// The command that brings back what was there before.
    rollback_command: String,
    /// Where to see that it is so.
    evidence_anchors: Vec<String>,
    /// This change, as an action in the log.
    action_id: Option<String>,
    /// The state just before: the checkpoint, or one made by itself when something had happened since.
    before_checkpoint_id: Option<String>,
    /// Every path, database and state that changed.
    changes: Vec<ChangeDocument>,
    /// What changed besides the target.
    side_effects: Vec<String>,
    verification: Option<VerdictDocument>,
    /// The share of what could be checked that was, and held.
    confidence: f64,
    /// What a command printed.
    output: Option<String>,
    warnings: Vec<String>,
}

/// The target before.
#[derive(Serialize, JsonSchema)]
struct PreviousState {
    /// The text of a file, the tables of a database, the value of a state; null for nothing.
    snapshot: Value,
    captured_at: Option<String>,
}

/// The target after, read back.
#[derive(Serialize, JsonSchema)]
struct NewState {
    snapshot: Value,
    verified_at: Option<String>,
}

/// What differs.
#[derive(Serialize, JsonSchema)]
struct DiffFields {
    /// `unified`, `structural`, `summary` or `none`.
    #[serde(rename = "type")]
    kind: &'static str,
    content: String,
}

/// Longer diffs are told by a summary.
const LARGEST_DIFF: usize = 256 << 10;

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mut told = Told {
        target: arguments.target.clone().unwrap_or_default(),
        operation: String::new(),
        checkpoint: arguments.checkpoint.clone().unwrap_or_default(),
    };
    let (mutated, state, workspace) = match change(context, arguments, &mut told) {
        Ok(done) => done,
        Err(failure) => {
            let (error, failed) = *failure;
            let reply = failure_reply(&told, &error, failed.as_deref())?;
            return Err(CliError::WithReply(Box::new(FailedReply { error, reply })));
        }
    };
    let reply = reply(context, &state, &workspace, &told, &mutated)?;
    context.console.value(&reply, show)?;
    for warning in &mutated.warnings {
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
}

/// Why a change was not made, and how far it had come.
type Failure = Box<(CliError, Option<Box<Failed>>)>;

fn change(
    context: &mut Context,
    arguments: &Arguments,
    told: &mut Told,
) -> Result<(Mutated, State, Workspace), Failure> {
    let plain = |error: CliError| -> Failure { Box::new((error, None)) };
    let steps = read_steps(context, arguments).map_err(plain)?;
    told.target = names(&steps);
    told.operation = sentence(&steps);
    let mut subjects = BTreeMap::new();
    for target in steps.iter().filter_map(|step| step.target.as_ref()) {
        if let Some(subject) = outside::subject(context, target).map_err(plain)? {
            subjects.insert(target.clone(), subject);
        }
    }
    let workspace = context.workspace().map_err(plain)?;
    let state = context.state().map_err(plain)?;
    let progress = Progress::default();
    if arguments.auto_checkpoint {
        let made = automatic(&state, &workspace, &subjects, &told.operation, &progress);
        told.checkpoint = made.map_err(plain)?.id.to_string();
    }
    if told.checkpoint.is_empty() {
        return Err(plain(CliError::State(StateError::CheckpointRequired {
            checkpoint: String::new(),
            why: "none was given".to_owned(),
        })));
    }
    let mutation = Mutation {
        checkpoint: &told.checkpoint,
        steps,
        here: &outside::here(context),
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
    };
    let mutated = context
        .console
        .watching(&progress, || state.mutate(&workspace, &mutation, &progress));
    match mutated {
        Ok(mutated) => {
            told.checkpoint = mutated.checkpoint.to_string();
            Ok((mutated, state, workspace))
        }
        Err(failed) => {
            let error = CliError::State(failed.error.clone());
            Err(Box::new((error, Some(failed))))
        }
    }
}

fn read_steps(context: &Context, arguments: &Arguments) -> Result<Vec<Step>, CliError> {
    let text = outside::text_or_file(context, &arguments.operation)?;
    let mut steps = operation::read(&text).map_err(|error| CliError::Invalid {
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
        .map(|step| match &step.description {
            Some(text) => text.clone(),
            None => {
                let target = step.target.as_deref().unwrap_or_default();
                format!("{} {target}", step.operation.name())
            }
        })
        .collect();
    sentences.join("; ")
}

fn failure_reply(
    told: &Told,
    error: &CliError,
    failed: Option<&Failed>,
) -> Result<Map<String, Value>, CliError> {
    let previous = failed.map_or(&[][..], |failed| &failed.previous);
    let action = failed.and_then(|failed| failed.action.as_ref());
    let reply = MutateReply {
        success: false,
        target: told.target.clone(),
        operation: format!("{} (FAILED)", told.operation),
        previous_state: PreviousState {
            snapshot: states(previous),
            captured_at: time(failed.and_then(|failed| failed.captured)),
        },
        new_state: NewState {
            snapshot: Value::Null,
            verified_at: None,
        },
        diff: DiffFields {
            kind: "none",
            content: format!("Mutation failed: {error}"),
        },
        checkpoint_id: told.checkpoint.clone(),
        rollback_command: "N/A - mutation did not complete".to_owned(),
        evidence_anchors: action
            .map(|action| format!("tool:bash:safepoint trail list --action {action}"))
            .into_iter()
            .collect(),
        action_id: action.map(ToString::to_string),
        before_checkpoint_id: None,
        changes: Vec::new(),
        side_effects: Vec::new(),
        verification: failed.and_then(|it| it.verdict.as_ref()).map(Into::into),
        confidence: 0.0,
        output: None,
        warnings: Vec::new(),
    };
    match serde_json::to_value(reply)? {
        Value::Object(fields) => Ok(fields),
        _ => Ok(Map::new()),
    }
}

fn reply(
    context: &Context,
    state: &State,
    workspace: &Workspace,
    told: &Told,
    mutated: &Mutated,
) -> Result<MutateReply, CliError> {
    let verification = VerdictDocument::from(&mutated.verdict);
    let mut changes = documents(&mutated.changes);
    changes.extend(mutated.parts.iter().map(|part| ChangeDocument {
        path: part.to.subject.name(),
        change: "modified",
    }));
    let mut anchors = mutated.lines.clone();
    anchors.extend([
        format!("tool:bash:safepoint trail list --action {}", mutated.action),
        format!("tool:bash:safepoint verify {}", mutated.action),
        format!("checkpoint:{}", mutated.checkpoint),
    ]);
    Ok(MutateReply {
        success: true,
        target: told.target.clone(),
        operation: told.operation.clone(),
        previous_state: PreviousState {
            snapshot: states(&mutated.previous),
            captured_at: time(Some(mutated.captured)),
        },
        new_state: NewState {
            snapshot: states(&mutated.new),
            verified_at: time(Some(mutated.verified)),
        },
        // It is done: what cannot be shown is no reason to answer otherwise.
        diff: difference(state, workspace, mutated).unwrap_or_else(|error| DiffFields {
            kind: "summary",
            content: format!("the difference cannot be shown: {error}"),
        }),
        checkpoint_id: mutated.checkpoint.to_string(),
        rollback_command: rollback_command(context, workspace, mutated),
        evidence_anchors: anchors,
        action_id: Some(mutated.action.to_string()),
        before_checkpoint_id: Some(mutated.before.id.to_string()),
        changes,
        side_effects: mutated
            .beside
            .iter()
            .map(|path| path::display(path))
            .collect(),
        confidence: verification.confidence(),
        verification: Some(verification),
        output: mutated.output.clone(),
        warnings: mutated.warnings.clone(),
    })
}

fn time(time: Option<Timestamp>) -> Option<String> {
    time.map(|time| time.to_string())
}

/// One target as it is, several by their names.
fn states(seen: &[Seen]) -> Value {
    match seen {
        [] => Value::Null,
        [one] => one.state.clone(),
        several => {
            let pairs = several
                .iter()
                .map(|one| (one.target.clone(), one.state.clone()));
            Value::Object(pairs.collect())
        }
    }
}

fn difference(
    state: &State,
    workspace: &Workspace,
    mutated: &Mutated,
) -> Result<DiffFields, CliError> {
    let mut structural: String = match mutated.parts.as_slice() {
        [one] => one.text.clone(),
        several => several
            .iter()
            .map(|part| diff::of_part(part, Mode::Json))
            .collect(),
    };
    for line in &mutated.structure {
        structural.push_str(line);
        structural.push('\n');
    }
    if !structural.is_empty() {
        return Ok(DiffFields {
            kind: "structural",
            content: structural,
        });
    }
    let objects = state.objects()?;
    // Directories and git's own files are nothing that `patch` could apply.
    let lines: Vec<Change> = mutated
        .changes
        .iter()
        .filter(|change| !is_directory(change) && !is_git(&change.path))
        .cloned()
        .collect();
    // What is not UTF-8 cannot be written down exactly in JSON.
    let is_text = diff::is_text(state, &objects, &workspace.root, &lines)?;
    if is_text && (!lines.is_empty() || mutated.changes.is_empty()) {
        let content = diff::unified(
            state,
            &objects,
            &workspace.root,
            &lines,
            diff::Colours::None,
        )?;
        if content.len() <= LARGEST_DIFF {
            return Ok(DiffFields {
                kind: "unified",
                content,
            });
        }
    }
    let lines: Vec<String> = documents(&mutated.changes)
        .iter()
        .map(|change| format!("{} {}", change.change, change.path))
        .collect();
    Ok(DiffFields {
        kind: "summary",
        content: lines.join("\n"),
    })
}

fn is_directory(change: &Change) -> bool {
    let directory = |side: &Option<Entry>| side.as_ref().is_some_and(|it| it.subtree().is_some());
    directory(&change.from) || directory(&change.to)
}

fn is_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').any(|name| name == b".git")
}

/// More paths than this are not listed in a command.
const MOST_PATHS: usize = 50;

/// The command that brings back what was there before, as it can be pasted into a shell.
fn rollback_command(context: &Context, workspace: &Workspace, mutated: &Mutated) -> String {
    let mut words = vec![program(context)];
    if context.settings.store.origin == SettingOrigin::Flag {
        words.push(b"--store".to_vec());
        words.push(context.settings.store.value.to_string().into_bytes());
    }
    words.push(b"-C".to_vec());
    words.push(workspace.root.as_os_str().as_bytes().to_vec());
    let mut named: Vec<&[u8]> = Vec::new();
    for change in &mutated.changes {
        if !named.iter().any(|it| path::is_within(&change.path, it)) {
            named.push(&change.path);
        }
    }
    // A roll back that names nothing would be of everything.
    let nothing = named.is_empty() && mutated.parts.is_empty();
    // A shell takes the line break from the end of what it puts in place of `$(…)`.
    let unspeakable = |name: &&[u8]| is_git(name) || name.ends_with(b"\n");
    if nothing || named.len() > MOST_PATHS || named.iter().any(unspeakable) {
        words.push(b"undo".to_vec());
        words.push(mutated.action.to_string().into_bytes());
    } else {
        words.push(b"rollback".to_vec());
        words.push(mutated.before.id.to_string().into_bytes());
        if mutated.before.expiry != safepoint_model::Expiry::Never {
            words.push(b"--expired".to_vec());
        }
        words.push(b"--".to_vec());
        words.extend(named.into_iter().map(|name| [b"./", name].concat()));
        let parts = mutated.parts.iter().map(|part| part.to.subject.name());
        words.extend(parts.map(String::into_bytes));
    }
    let quoted: Vec<String> = words.iter().map(|word| quote(word)).collect();
    quoted.join(" ")
}

/// `safepoint`, if that is this program for the shell, and its whole path otherwise.
fn program(context: &Context) -> Vec<u8> {
    let ours = std::env::current_exe().and_then(std::fs::canonicalize);
    let Ok(ours) = ours else {
        return b"safepoint".to_vec();
    };
    let search = context.environment.path("PATH").unwrap_or_default();
    let found = std::env::split_paths(&search)
        .map(|directory| directory.join("safepoint"))
        .find(|program| program.is_file());
    match found.and_then(|found| std::fs::canonicalize(found).ok()) {
        Some(found) if found == ours => b"safepoint".to_vec(),
        _ => ours.into_os_string().into_vec(),
    }
}

/// A word as a shell reads it back, of nothing but characters that every terminal shows
/// as they are.
fn quote(word: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(byte);
    match std::str::from_utf8(word) {
        Ok(text) if !word.is_empty() && word.iter().all(plain) => text.to_owned(),
        Ok(text) if text::line(text).text == text => format!("'{}'", text.replace('\'', r"'\''")),
        _ => {
            let byte = |byte: &u8| match byte.is_ascii_alphanumeric() || b"-_./".contains(byte) {
                true => char::from(*byte).to_string(),
                false => format!("\\{byte:03o}"),
            };
            let written: String = word.iter().map(byte).collect();
            format!("\"$(printf '{written}')\"")
        }
    }
}

fn show(reply: &MutateReply) -> String {
    let safe = |text: &str| text::line(text).text;
    let mut shown = format!(
        "{GOOD}done{GOOD:#}  {STRONG}{}{STRONG:#}\n",
        safe(&reply.operation)
    );
    if let Some(action) = &reply.action_id {
        let changes = count(reply.changes.len() as u64, "change", "changes");
        shown.push_str(&format!("  {FAINT}{action}, {changes}{FAINT:#}\n"));
    }
    for line in reply.diff.content.lines().take(60) {
        shown.push_str(&format!("{}\n", safe(line)));
    }
    if let Some(verification) = &reply.verification {
        shown.push_str(&verification.lines());
    }
    for path in &reply.side_effects {
        shown.push_str(&format!(
            "  {WARNING}also changed{WARNING:#} {}\n",
            safe(path)
        ));
    }
    // It is safe as it is, and must be exact.
    shown.push_str(&format!("  undo with  {}\n", reply.rollback_command));
    shown
}
