//! `safepoint checkpoint`: captures what is there, so that it can be restored.

use std::ffi::OsString;

use safepoint_model::{Clock, Exit, Expiry, Timestamp, json, text};
use safepoint_state::scope::Scope;
use safepoint_state::{
    Made, Note, Origin, Progress, SnapshotType, Subject, Wanted, WantedPart, path,
};
use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::outside;
use crate::console::{FAINT, GOOD, STRONG, count, name};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::Size;
use crate::world::SystemClock;

/// Arguments of `checkpoint`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Files, directories, patterns, `state:NAME` or databases; the whole workspace without any
    #[arg(value_name = "SCOPE")]
    scope: Vec<OsString>,
    /// Why it is made
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// How it is kept; by default what fits the workspace. A person who names `git_stash` also
    /// gets an entry in `git stash list`
    #[arg(long = "type", value_name = "TYPE", value_enum)]
    kind: Option<Type>,
    /// When it ceases to authorise changes: `24h`, `7d`, an RFC 3339 time or `never`
    #[arg(long, value_name = "WHEN")]
    expiry: Option<String>,
    /// A state and its value: JSON or YAML, `@FILE`, or `-` for standard input
    #[arg(long, value_name = "KEY=JSON", allow_hyphen_values = true)]
    state: Vec<String>,
    /// All of it as one document, JSON or YAML: `scope`, `reason`, `checkpoint_type` and `expiry`;
    /// @FILE for a file, - for standard input
    #[arg(
        long,
        value_name = "DOCUMENT",
        allow_hyphen_values = true,
        conflicts_with_all = ["scope", "reason", "kind", "expiry"]
    )]
    input: Option<String>,
    /// Capture sensitive files too, encrypted to the operator's key
    #[arg(long)]
    seal_sensitive: bool,
}

/// What `--input` holds.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    scope: OneOrMore,
    reason: Option<String>,
    checkpoint_type: Option<Type>,
    expiry: Option<String>,
}

/// A text, or a list of texts.
#[derive(Clone, Debug, Default)]
struct OneOrMore(Vec<String>);

impl<'de> Deserialize<'de> for OneOrMore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMore;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMore, E> {
                Ok(OneOrMore(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMore, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMore(texts))
            }
        }

        deserializer.deserialize_any(Texts)
    }
}

impl Input {
    /// What was given as one document, or by options.
    fn of(context: &Context, arguments: &Arguments) -> Result<(Self, Vec<OsString>), CliError> {
        let Some(given) = &arguments.input else {
            let input = Self {
                scope: OneOrMore::default(),
                reason: arguments.reason.clone(),
                checkpoint_type: arguments.kind,
                expiry: arguments.expiry.clone(),
            };
            return Ok((input, arguments.scope.clone()));
        };
        let bytes = outside::json_or_yaml(context, given)?;
        let input: Self =
            json::read_as(&bytes, json::Limits::default()).map_err(|error| CliError::Invalid {
                message: format!("`--input`: {error}"),
                suggestion: "for example `{\"scope\": [\"src\"], \"reason\": \"before the change\", \"expiry\": \"24h\"}`",
            })?;
        if input.scope.0.is_empty() {
            return Err(CliError::Invalid {
                message: "`--input`: the scope is empty".to_owned(),
                suggestion: "name a file, a directory, a pattern, `state:NAME`, or `.` for everything",
            });
        }
        let scope = input.scope.0.iter().map(OsString::from).collect();
        Ok((input, scope))
    }
}

/// How a checkpoint is kept.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
#[value(rename_all = "snake_case")]
pub(crate) enum Type {
    /// Files and git state of a work tree
    GitStash,
    /// Files alone
    FileBackup,
    /// Named states
    StateSnapshot,
    /// A database
    DatabaseSavepoint,
}

/// What `checkpoint` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointReply {
    /// Whether there is one now.
    checkpoint_created: bool,
    checkpoint: CheckpointFields,
    pre_mutation_state: PreMutationState,
    /// What can now safely be done.
    next_safe_actions: Vec<String>,
    /// The share of what was found that was captured and read back.
    confidence: f64,
    /// Where to see that it is so.
    evidence_anchors: Vec<String>,
    /// What was taken for granted.
    assumptions: Vec<String>,
    /// Its id, once more.
    checkpoint_id: String,
    /// When it was made, once more.
    timestamp: String,
    /// How many bytes the store grew by.
    size: u64,
    /// Why it was made.
    reason: Option<String>,
    /// What was not captured because it can be rebuilt, or the settings say so.
    left_out: Vec<NoteDocument>,
    /// Secrets that were not captured, or, when sealed, only encrypted.
    sensitive: Vec<NoteDocument>,
    /// What else is to be known.
    warnings: Vec<String>,
    /// The commit of the entry in `git stash list`, which only `--type git_stash` makes.
    stash: Option<String>,
    /// The reference under which plain git finds the checkpoint otherwise.
    git_reference: Option<String>,
    /// Whether git has uncommitted changes in the scope; null where git has nothing of it.
    uncommitted_changes: Option<bool>,
}

/// The checkpoint itself.
#[derive(Serialize, JsonSchema)]
pub(super) struct CheckpointFields {
    /// Its id.
    id: String,
    /// How it is kept.
    #[serde(rename = "type")]
    kind: String,
    /// When it was made.
    created_at: String,
    pub(super) scope: ScopeFields,
    /// The command that restores it.
    pub(super) restore_command: String,
    /// Until when it authorises changes; null for ever.
    expiry: Option<String>,
}

/// What a checkpoint covers.
#[derive(Serialize, JsonSchema)]
pub(super) struct ScopeFields {
    /// The files in it. Of more than 5,000, the directories that were asked for instead.
    pub(super) files: Vec<String>,
    /// How many files are in it.
    total_files: u64,
    /// The states in it.
    state_keys: Vec<String>,
    /// The databases in it.
    databases: Vec<String>,
}

/// The state that was captured.
#[derive(Serialize, JsonSchema)]
struct PreMutationState {
    /// A hash of all of it that anybody can recompute.
    hash: String,
    /// What it is, in a sentence.
    summary: String,
}

/// A path and what is to be said of it.
#[derive(Serialize, JsonSchema)]
pub(crate) struct NoteDocument {
    path: String,
    why: String,
}

impl NoteDocument {
    /// On one line.
    pub(crate) fn shown(&self) -> String {
        let path = safepoint_state::path::shorten(&self.path);
        format!("{} ({})", name(&path), text::line(&self.why).text)
    }
}

impl From<&Note> for NoteDocument {
    fn from(note: &Note) -> Self {
        Self {
            path: note.path.clone(),
            why: note.why.clone(),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let (made, scope) =
        make(context, arguments).map_err(|error| CliError::Checkpoint(Box::new(error)))?;
    context.console.value(&reply(&made, &scope), show)?;
    for warning in &made.warnings {
        context.console.warn(warning);
    }
    Ok(Exit::Done)
}

fn make(context: &mut Context, arguments: &Arguments) -> Result<(Made, Scope), CliError> {
    let workspace = context.workspace()?;
    let now = SystemClock.now();
    let (input, given_scope) = Input::of(context, arguments)?;
    let expiry = read_expiry(input.expiry.as_deref(), now)?;
    let chosen = outside::split(context, &given_scope)?;
    let mut parts: Vec<WantedPart> = chosen
        .subjects
        .into_iter()
        .map(|subject| WantedPart {
            subject,
            value: None,
        })
        .collect();
    for given in &arguments.state {
        let given = outside::given_state(context, given)?;
        // A state that is named, and whose value is given, is named once.
        parts.retain(|part| part.value.is_some() || part.subject != given.subject);
        parts.push(given);
    }
    let outside_only = matches!(
        input.checkpoint_type,
        Some(Type::StateSnapshot | Type::DatabaseSavepoint)
    );
    let scope = match chosen.paths.is_empty() && (!given_scope.is_empty() || outside_only) {
        true => Scope::nothing(),
        false => Scope::parse(&workspace.root, &outside::here(context), &chosen.paths)?,
    };
    let seal_to = if arguments.seal_sensitive {
        super::restoring::recipients(context)?
    } else {
        Vec::new()
    };
    let kind = match input.checkpoint_type {
        // An agent gets the same checkpoint, without an entry among the person's stashes.
        Some(Type::GitStash)
            if context.environment.path("SAFEPOINT_AGENT").is_some()
                && !scope.is_nothing()
                && workspace.root.join(".git").symlink_metadata().is_ok() =>
        {
            None
        }
        kind => kind.map(Type::to_state),
    };
    let state = context.state()?;
    let wanted = Wanted {
        scope: &scope,
        parts,
        reason: input.reason.clone(),
        kind,
        expiry,
        origin: Origin::Asked,
        seal_to: &seal_to,
    };
    let progress = Progress::default();
    let made = context.console.watching(&progress, || {
        state.checkpoint(&workspace, &wanted, &progress)
    })?;
    Ok((made, scope))
}

fn read_expiry(text: Option<&str>, now: Timestamp) -> Result<Expiry, CliError> {
    text.map_or(Ok(Expiry::Never), |text| {
        Expiry::parse(text, now).map_err(|error| CliError::Invalid {
            message: error.to_string(),
            suggestion: "for example `--expiry 24h`",
        })
    })
}

impl Type {
    fn to_state(self) -> SnapshotType {
        match self {
            Self::GitStash => SnapshotType::GitStash,
            Self::FileBackup => SnapshotType::FileBackup,
            Self::StateSnapshot => SnapshotType::StateSnapshot,
            Self::DatabaseSavepoint => SnapshotType::DatabaseSavepoint,
        }
    }
}

fn reply(made: &Made, scope: &Scope) -> CheckpointReply {
    let snapshot = &made.snapshot;
    let record = &snapshot.record;
    let id = snapshot.id.to_string();
    let hash = format!("sha256:{}", snapshot.hash());
    let files = match &made.files {
        Some(files) => files.iter().map(|file| path::display(file)).collect(),
        None if scope.is_everything() => vec!["./".to_owned()],
        None => scope.given().to_vec(),
    };
    let mut anchors = vec![
        format!("file:.checkpoints/{id}/manifest.json"),
        format!("tool:bash:safepoint verify {id}"),
        format!("hash:{hash}"),
    ];
    if made.stash.is_some() {
        anchors.push(format!("tool:bash:git stash list | grep {id}"));
    }
    if let Some(reference) = &made.reference {
        anchors.push(format!("tool:bash:git show-ref --verify {reference}"));
    }
    CheckpointReply {
        checkpoint_created: true,
        checkpoint: fields(snapshot, files),
        pre_mutation_state: PreMutationState {
            hash,
            summary: summary(made),
        },
        next_safe_actions: vec![
            "edit: change what is in scope".to_owned(),
            format!("rollback: `safepoint rollback {id}` undoes it"),
        ],
        confidence: confidence(made),
        evidence_anchors: anchors,
        assumptions: assumptions(made),
        checkpoint_id: id,
        timestamp: snapshot.created.to_string(),
        size: record.size,
        reason: record.reason.clone(),
        left_out: record.left_out.iter().map(Into::into).collect(),
        sensitive: record.sensitive.iter().map(Into::into).collect(),
        warnings: made.warnings.clone(),
        stash: made.stash.clone(),
        git_reference: made.reference.clone(),
        uncommitted_changes: made.uncommitted,
    }
}

/// The fields that `checkpoint`, `list` and `show` share.
pub(super) fn fields(snapshot: &safepoint_state::Snapshot, files: Vec<String>) -> CheckpointFields {
    CheckpointFields {
        id: snapshot.id.to_string(),
        kind: snapshot.record.kind.as_str().to_owned(),
        created_at: snapshot.created.to_string(),
        scope: ScopeFields {
            files,
            total_files: snapshot.record.files.files,
            state_keys: parts_named(snapshot, |subject| match subject {
                Subject::State { key } => Some(key.clone()),
                Subject::Database { .. } => None,
            }),
            databases: parts_named(snapshot, |subject| match subject {
                Subject::State { .. } => None,
                Subject::Database { address, .. } => Some(address.to_string()),
            }),
        },
        restore_command: format!("safepoint rollback {}", snapshot.id),
        expiry: expiry_text(snapshot.expiry),
    }
}

fn parts_named(
    snapshot: &safepoint_state::Snapshot,
    name: impl Fn(&Subject) -> Option<String>,
) -> Vec<String> {
    let parts = &snapshot.record.parts;
    parts
        .iter()
        .filter_map(|part| name(&part.subject))
        .collect()
}

/// When it expires; nothing for never.
pub(super) fn expiry_text(expiry: Expiry) -> Option<String> {
    match expiry {
        Expiry::Never => None,
        Expiry::At(time) => Some(time.to_string()),
    }
}

fn summary(made: &Made) -> String {
    let record = &made.snapshot.record;
    let mut parts: Vec<String> = record.parts.iter().map(|part| part.summary()).collect();
    if record.files.files > 0 || parts.is_empty() {
        let files = count(record.files.files, "file", "files");
        let mut words = vec![files];
        words.extend(made.lines.map(|lines| count(lines, "line", "lines")));
        words.push(Size(record.files.bytes).to_string());
        words.extend(
            made.last_modified
                .map(|time| format!("last modified {time}")),
        );
        words.extend(
            record
                .git_head
                .as_ref()
                .map(|head| format!("git at {head}")),
        );
        words.extend(made.uncommitted.map(|dirty| match dirty {
            true => "with uncommitted changes".to_owned(),
            false => "nothing uncommitted".to_owned(),
        }));
        parts.insert(0, words.join(", "));
    }
    parts.join("; ")
}

/// The share of the names found that were captured and read back: secrets that
/// were not sealed, caches, and pipes without content count against it.
fn confidence(made: &Made) -> f64 {
    let record = &made.snapshot.record;
    let open = record.sensitive.len().saturating_sub(record.sealed.len());
    let missing = (open + record.left_out.len() + record.special.len()) as f64;
    let captured = (record.files.files + record.sealed.len() as u64) as f64;
    if missing == 0.0 {
        return 1.0;
    }
    ((captured / (captured + missing)) * 1000.0).floor() / 1000.0
}

fn assumptions(made: &Made) -> Vec<String> {
    let record = &made.snapshot.record;
    let mut assumptions = Vec::new();
    if !record.left_out.is_empty() {
        assumptions.push("what was left out can be rebuilt".to_owned());
    }
    if made.stash.is_some() || made.reference.is_some() {
        assumptions.push("git is installed".to_owned());
    }
    assumptions
}

fn show(reply: &CheckpointReply) -> String {
    let safe = |text: &str| text::line(text).text;
    let mut shown = format!(
        "{GOOD}checkpoint{GOOD:#} {STRONG}{}{STRONG:#}\n  {}, {} new\n  {FAINT}{}{FAINT:#}\n",
        reply.checkpoint_id,
        safe(&reply.pre_mutation_state.summary),
        Size(reply.size),
        reply.pre_mutation_state.hash,
    );
    if let Some(reason) = &reply.reason {
        shown.push_str(&format!("  {}\n", safe(reason)));
    }
    shown.push_str(&format!(
        "  undo with  {}\n",
        reply.checkpoint.restore_command
    ));
    shown
}
