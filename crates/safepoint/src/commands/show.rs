//! `safepoint show`: one checkpoint, with everything known of it.

use safepoint_model::{Exit, text};
use safepoint_state::{ListedFile, path};
use schemars::JsonSchema;
use serde::Serialize;

use super::checkpoint::{CheckpointFields, NoteDocument, fields};
use super::list::Listed;
use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `show`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Which checkpoint; the beginning of its id is enough
    id: String,
    /// List its files, however many there are
    #[arg(long)]
    files: bool,
}

/// What `show` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointDocument {
    checkpoint: CheckpointFields,
    #[serde(rename = "record")]
    listed: Listed,
    /// What git said of the work tree.
    git_head: Option<String>,
    left_out: Vec<NoteDocument>,
    sensitive: Vec<NoteDocument>,
    /// Sensitive files that were captured encrypted.
    sealed: Vec<String>,
    special: Vec<NoteDocument>,
    warnings: Vec<String>,
    /// The files with the hashes of their contents. Of more than 5,000, only with `--files`.
    contents: Vec<FileDocument>,
}

/// A file in a checkpoint.
#[derive(Serialize, JsonSchema)]
pub(crate) struct FileDocument {
    path: String,
    /// `file`, `symlink` or `special`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// How many bytes a file has.
    size: Option<u64>,
    /// The hash of a file's content: `blake3:` and 64 hexadecimal digits.
    hash: Option<String>,
}

impl From<&ListedFile> for FileDocument {
    fn from(file: &ListedFile) -> Self {
        Self {
            path: path::display(&file.path),
            kind: file.kind(),
            size: file.size(),
            hash: file.hash(),
        }
    }
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let state = context.state()?;
    let snapshot = state.find(&arguments.id)?;
    context.keep_to(&snapshot.workspace, "checkpoint")?;
    let record = &snapshot.record;
    let found = if arguments.files || record.files.files <= 5_000 {
        let objects = state.objects()?;
        safepoint_state::all_entries(&objects.reader(), &record.files)?
    } else {
        Vec::new()
    };
    let files = found.iter().map(|file| path::display(&file.path)).collect();
    let document = CheckpointDocument {
        checkpoint: fields(&snapshot, files),
        listed: Listed::of(&snapshot),
        git_head: record.git_head.clone(),
        left_out: record.left_out.iter().map(Into::into).collect(),
        sensitive: record.sensitive.iter().map(Into::into).collect(),
        sealed: record
            .sealed
            .iter()
            .map(|sealed| sealed.path.clone())
            .collect(),
        special: record.special.iter().map(Into::into).collect(),
        warnings: record.warnings.clone(),
        contents: found.iter().map(Into::into).collect(),
    };
    let with_files = arguments.files;
    context
        .console
        .value(&document, |document| show(document, with_files))?;
    Ok(Exit::Done)
}

fn show(document: &CheckpointDocument, with_files: bool) -> String {
    let mut shown = String::new();
    let mut row = |name: &str, value: &str| {
        if !value.is_empty() {
            shown.push_str(&format!("{STRONG}{name:<12}{STRONG:#}{value}\n"));
        }
    };
    let mut line = |name: &str, value: &str| row(name, &text::line(value).text);
    for (name, value) in document.listed.lines() {
        line(name, &value);
    }
    line("git", document.git_head.as_deref().unwrap_or(""));
    line("restore", &document.checkpoint.restore_command);
    for (title, notes) in [
        ("left out", &document.left_out),
        ("sensitive", &document.sensitive),
        ("special", &document.special),
    ] {
        for note in notes {
            row(title, &note.shown());
        }
    }
    for path in &document.sealed {
        row("sealed", &crate::console::name(path));
    }
    if with_files {
        for file in &document.checkpoint.scope.files {
            shown.push_str(&format!(
                "{FAINT}file{FAINT:#}        {}\n",
                crate::console::name(file)
            ));
        }
    }
    shown
}
