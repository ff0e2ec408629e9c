//! `safepoint list`: the checkpoints, the newest first.

use std::path::Path;

use safepoint_model::{Clock, Exit, text};
use safepoint_state::{Origin, Selection, Snapshot, State};
use schemars::JsonSchema;
use serde::Serialize;

use super::checkpoint::expiry_text;
use crate::console::{FAINT, Mode, STRONG, count, name};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::Size;
use crate::world::SystemClock;

/// Arguments of `list`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Of every workspace, not only of this one
    #[arg(long)]
    all_workspaces: bool,
    /// Those too that were made by themselves, around roll backs and actions
    #[arg(long, short)]
    automatic: bool,
    /// At most so many
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

/// What `list` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointList {
    checkpoints: Vec<Listed>,
}

/// One checkpoint in a list.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listed {
    /// Its id.
    id: String,
    /// How it is kept.
    #[serde(rename = "type")]
    kind: String,
    /// When it was made.
    created_at: String,
    /// Why.
    reason: Option<String>,
    /// Until when it authorises changes.
    expiry: Option<String>,
    /// Whether that has passed.
    expired: bool,
    /// Whether it is kept even then.
    pinned: bool,
    /// Whether it was made by itself.
    automatic: bool,
    /// What it covers; empty for the whole workspace.
    scope: Vec<String>,
    /// How many files.
    files: u64,
    /// Their bytes.
    bytes: u64,
    /// How many bytes the store grew by.
    size: u64,
    /// The change that it authorised; it authorises no other.
    spent_by: Option<String>,
    /// The databases and states in it.
    parts: Vec<String>,
    /// The hash of everything in it.
    hash: String,
    /// The directory it is of.
    workspace: String,
}

/// For `show`, which tells the same in another form.
impl Listed {
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        vec![
            ("checkpoint", self.id.clone()),
            ("type", self.kind.clone()),
            ("made", self.created_at.clone()),
            ("reason", text(&self.reason)),
            ("workspace", self.workspace.clone()),
            ("scope", self.scope.join(" ")),
            (
                "content",
                format!(
                    "{}, {}",
                    count(self.files, "file", "files"),
                    Size(self.bytes)
                ),
            ),
            ("outside", self.parts.join("; ")),
            ("used up by", text(&self.spent_by)),
            (
                "expiry",
                self.expiry.clone().unwrap_or_else(|| "never".to_owned()),
            ),
            ("hash", self.hash.clone()),
        ]
    }

    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let record = &snapshot.record;
        Self {
            id: snapshot.id.to_string(),
            kind: record.kind.as_str().to_owned(),
            created_at: snapshot.created.to_string(),
            reason: record.reason.clone(),
            expiry: expiry_text(snapshot.expiry),
            expired: snapshot.is_expired(SystemClock.now()),
            pinned: snapshot.pinned,
            automatic: record.origin == Origin::Automatic,
            scope: record.scope.clone(),
            files: record.files.files,
            bytes: record.files.bytes,
            size: record.size,
            spent_by: snapshot.spent.as_ref().map(ToString::to_string),
            parts: record.parts.iter().map(|part| part.summary()).collect(),
            hash: format!("sha256:{}", snapshot.hash()),
            workspace: snapshot.workspace.display().to_string(),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = match context.looks_everywhere(arguments.all_workspaces)? {
        true => None,
        false => Some(context.workspace()?.root),
    };
    let state = context.state()?;
    if let Some(root) = &workspace {
        refuse_missing(&state, root)?;
    }
    let found = state.list(&Selection {
        workspace,
        limit: None,
    })?;
    let wanted = |one: &&Snapshot| arguments.automatic || one.record.origin == Origin::Asked;
    let limit = arguments.limit.map_or(usize::MAX, |limit| limit as usize);
    let checkpoints: Vec<Listed> = found
        .iter()
        .filter(wanted)
        .take(limit)
        .map(Listed::of)
        .collect();
    if context.console.mode == Mode::Ndjson {
        for one in &checkpoints {
            context.console.json(one)?;
        }
        return Ok(Exit::Done);
    }
    let hidden = found.len() - found.iter().filter(wanted).count();
    let list = CheckpointList { checkpoints };
    let all = arguments.all_workspaces;
    context.console.value(&list, |list| {
        let line = |one: &Listed| line(one, all);
        list.checkpoints.iter().map(line).collect::<String>()
    })?;
    if list.checkpoints.is_empty() && hidden > 0 && context.console.mode == Mode::Text {
        let hidden = count(
            hidden as u64,
            "automatic checkpoint",
            "automatic checkpoints",
        );
        context.console.say(&format!(
            "nobody has asked for a checkpoint yet; there are {hidden}: add `--automatic`"
        ));
    } else if list.checkpoints.is_empty() && context.console.mode == Mode::Text {
        context
            .console
            .say("no checkpoints yet: `safepoint checkpoint` makes one");
    } else if hidden > 0 && context.console.mode == Mode::Text {
        let hidden = count(hidden as u64, "automatic one", "automatic ones");
        context
            .console
            .say(&format!("and {hidden}: add `--automatic`"));
    }
    Ok(Exit::Done)
}

/// Refuses a directory that is not there and of which nothing is known.
pub(super) fn refuse_missing(state: &State, root: &Path) -> Result<(), CliError> {
    match root.is_dir() || state.is_gone(root)? {
        true => Ok(()),
        false => Err(CliError::NotFound {
            what: "directory",
            name: root.display().to_string(),
        }),
    }
}

fn line(one: &Listed, with_workspace: bool) -> String {
    let mut marks = Vec::new();
    if one.pinned {
        marks.push("pinned");
    }
    if one.expired {
        marks.push("expired");
    }
    if one.automatic {
        marks.push("automatic");
    }
    if one.spent_by.is_some() {
        marks.push("used up");
    }
    marks.extend(one.parts.iter().map(String::as_str));
    let marks = if marks.is_empty() {
        String::new()
    } else {
        format!("  [{}]", text::line(&marks.join(", ")).text)
    };
    let reason = one.reason.as_deref().unwrap_or("");
    let place = match with_workspace {
        true => format!("{}  ", name(&one.workspace)),
        false => String::new(),
    };
    format!(
        "{STRONG}{}{STRONG:#}  {:>14}  {:>10}  {place}{}{FAINT}{marks}{FAINT:#}\n",
        one.id,
        count(one.files, "file", "files"),
        Size(one.bytes).to_string(),
        text::line(reason).text,
    )
}
