//! `safepoint trail check-bundle`: needs no store.

use std::path::PathBuf;

use safepoint_model::{Exit, text};
use safepoint_trail::bundle::{self, CheckedBundle};
use safepoint_trail::note::PublicKey;
use schemars::JsonSchema;
use serde::Serialize;

use super::check_proof::{WHERE_KEYS_ARE, read, read_key};
use super::head::HeadDocument;
use crate::console::{BAD, FAINT, GOOD, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail check-bundle`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The bundle; - for standard input
    file: PathBuf,
    /// The public key of the trail, or a file that holds it
    #[arg(long, value_name = "KEY")]
    key: String,
}

/// What `trail check-bundle` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckReply {
    /// Whether everything in it holds.
    valid: bool,
    /// What is wrong.
    reason: Option<String>,
    /// The session that it is about.
    session: Option<String>,
    /// How many entries are proved.
    entries: u64,
    /// How many actions they are of.
    actions: u64,
    /// When the first of them was made, RFC 3339.
    began: Option<String>,
    /// When the last of them was made.
    ended: Option<String>,
    /// The head that everything is proved under.
    head: Option<HeadDocument>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let directory = context.directory.clone();
    let key: PublicKey = read_key(&directory, &arguments.key, WHERE_KEYS_ARE)?;
    let text = read(&directory, &arguments.file)?;
    let reply = match bundle::check(&text, &key) {
        Ok(checked) => {
            let head = HeadDocument::new(&checked.head, &key, &[]);
            proved(&checked, head)
        }
        Err(error) => CheckReply {
            valid: false,
            reason: Some(error.to_string()),
            session: None,
            entries: 0,
            actions: 0,
            began: None,
            ended: None,
            head: None,
        },
    };
    context.console.value(&reply, show)?;
    Ok(match reply.valid {
        true => Exit::Done,
        false => Exit::Failed,
    })
}

fn proved(checked: &CheckedBundle, head: HeadDocument) -> CheckReply {
    CheckReply {
        valid: true,
        reason: None,
        session: Some(checked.session.to_string()),
        entries: checked.entries.len() as u64,
        actions: checked.actions as u64,
        began: checked.entries.first().map(|entry| entry.time.to_string()),
        ended: checked.entries.last().map(|entry| entry.time.to_string()),
        head: Some(head),
    }
}

fn show(reply: &CheckReply) -> String {
    let shown = |text: &Option<String>| text::line(text.as_deref().unwrap_or_default()).text;
    if !reply.valid {
        return format!("{BAD}bad{BAD:#}   {}\n", shown(&reply.reason));
    }
    format!(
        "{GOOD}good{GOOD:#}  {}: {} of {}, each proved to be in the trail\n{FAINT}      {} to {}{FAINT:#}\n",
        shown(&reply.session),
        count(reply.entries, "entry", "entries"),
        count(reply.actions, "action", "actions"),
        shown(&reply.began),
        shown(&reply.ended),
    )
}
