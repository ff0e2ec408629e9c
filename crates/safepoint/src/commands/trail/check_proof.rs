//! `safepoint trail check-proof`: needs no store.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use safepoint_model::{Exit, text};
use safepoint_trail::head::SignedHead;
use safepoint_trail::note::{NoteError, PublicKey};
use safepoint_trail::proof::{self, ProofError, Proven};
use schemars::JsonSchema;
use serde::Serialize;

use super::head::HeadDocument;
use super::{EntryDocument, line};
use crate::console::{BAD, FAINT, GOOD, Mode, count};
use crate::context::Context;
use crate::error::CliError;

/// What to do about a key that is none.
pub(super) const WHERE_KEYS_ARE: &str = "`safepoint trail head --json` prints the key of a trail";

/// Arguments of `trail check-proof`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The proof; - for standard input
    file: PathBuf,
    /// The public key of the trail, or a file that holds it
    #[arg(long, value_name = "KEY")]
    key: String,
    /// For a consistency proof: the signed head you kept, which must be the old one it starts from
    #[arg(long, value_name = "FILE")]
    old: Option<PathBuf>,
}

/// What `trail check-proof` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// Whether the proof holds.
    valid: bool,
    /// Why not.
    reason: Option<String>,
    /// `inclusion` or `consistency`.
    kind: Option<&'static str>,
    /// The entry that is proved to be in the trail.
    #[schemars(with = "Option<EntryDocument>")]
    entry: Option<serde_json::Value>,
    /// The size of the older trail that is proved to be its beginning.
    old_size: Option<u64>,
    /// The head that the proof leads to.
    head: Option<HeadDocument>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let directory = context.directory.clone();
    let key: PublicKey = read_key(&directory, &arguments.key, WHERE_KEYS_ARE)?;
    let text = read(&directory, &arguments.file)?;
    let mut result = proof::check(&text, &key);
    if matches!(result, Ok(Proven::Inclusion { .. })) && arguments.old.is_some() {
        return Err(CliError::Invalid {
            message: "`--old` is for a proof that a trail continues an older one".into(),
            suggestion: "leave it out: this is the proof of one entry",
        });
    }
    if let (
        Ok(Proven::Consistency {
            old_size, old_root, ..
        }),
        Some(old),
    ) = (&result, &arguments.old)
    {
        let note = read(&directory, old)?;
        let kept = SignedHead::open(&note, &key).map_err(ProofError::from);
        match kept {
            Ok(kept) if kept.size() == *old_size && kept.root() == *old_root => {}
            Ok(_) => result = Err(ProofError::NotConsistent),
            Err(error) => result = Err(error),
        }
    }
    let document = document(&result, &key)?;
    let width = context.console.width();
    match context.console.mode {
        Mode::Text => context.console.print(&show(&result, width))?,
        Mode::Json | Mode::Ndjson => context.console.json(&document)?,
    }
    Ok(if document.valid {
        Exit::Done
    } else {
        Exit::Failed
    })
}

fn document(result: &Result<Proven, ProofError>, key: &PublicKey) -> Result<Checked, CliError> {
    let mut checked = Checked {
        valid: result.is_ok(),
        reason: None,
        kind: None,
        entry: None,
        old_size: None,
        head: None,
    };
    match result {
        Err(error) => checked.reason = Some(error.to_string()),
        Ok(Proven::Inclusion { entry, head }) => {
            checked.kind = Some("inclusion");
            checked.entry = Some(serde_json::to_value(entry)?);
            checked.head = Some(HeadDocument::new(head, key, &[]));
        }
        Ok(Proven::Consistency { old_size, head, .. }) => {
            checked.kind = Some("consistency");
            checked.old_size = Some(*old_size);
            checked.head = Some(HeadDocument::new(head, key, &[]));
        }
    }
    Ok(checked)
}

fn show(result: &Result<Proven, ProofError>, width: usize) -> String {
    match result {
        Err(error) => format!(
            "{BAD}bad{BAD:#}   {}\n",
            text::line(&error.to_string()).text
        ),
        Ok(Proven::Inclusion { entry, head }) => format!(
            "{GOOD}good{GOOD:#}  in the trail {} of {}\n{}",
            text::line(&head.head().origin).text,
            count(head.size(), "entry", "entries"),
            line(entry, width)
        ),
        Ok(Proven::Consistency { old_size, head, .. }) => format!(
            "{GOOD}good{GOOD:#}  the trail of {} is the beginning of the one of {}\n{FAINT}      {}{FAINT:#}\n",
            count(*old_size, "entry", "entries"),
            count(head.size(), "entry", "entries"),
            text::line(&head.head().origin).text
        ),
    }
}

/// The key that `--key` means: itself, or a file that holds it.
pub(super) fn read_key<K: FromStr<Err = NoteError>>(
    directory: &Path,
    key: &str,
    suggestion: &'static str,
) -> Result<K, CliError> {
    let from_file = std::fs::read_to_string(directory.join(key));
    let text = from_file.as_deref().unwrap_or(key);
    text.parse().map_err(|error: NoteError| CliError::Invalid {
        message: format!("`--key`: {error}"),
        suggestion,
    })
}

pub(super) fn read(directory: &Path, file: &Path) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let result = if file == Path::new("-") {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(directory.join(file)).map(|read| bytes = read)
    };
    result.map_err(|error| CliError::File {
        action: "read",
        path: file.to_owned(),
        error,
    })?;
    // What is not UTF-8 is no proof, and says so when it is checked.
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
