//! `safepoint trail note`.

use safepoint_model::{ActionId, Exit};
use safepoint_store::Durability;
use safepoint_trail::{Draft, Kind, Stream};

use super::line;
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail note`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What to record; - for standard input
    text: String,
    /// The session or workspace it belongs to
    #[arg(long, value_name = "STREAM")]
    stream: Option<Stream>,
    /// The action it belongs to
    #[arg(long, value_name = "ACTION")]
    action: Option<ActionId>,
}

pub(crate) fn run(context: &mut Context, arguments: Arguments) -> Result<Exit, CliError> {
    let mut text = arguments.text;
    if text == "-" {
        let bytes = context.input(u64::MAX)?;
        text = String::from_utf8(bytes)
            .map_err(|_| std::io::Error::from(std::io::ErrorKind::InvalidData))?;
    }
    if text.trim().is_empty() {
        return Err(CliError::Invalid {
            message: "a note needs a text".into(),
            suggestion: "for example `safepoint trail note 'reviewed by Ada'`",
        });
    }
    let trail = context.trail()?;
    let draft = Draft {
        stream: arguments.stream.unwrap_or_else(Stream::store),
        actor: context.actor()?,
        kind: Kind::fixed("note").into(),
        action_id: arguments.action,
        body: serde_json::json!({ "text": text }),
    };
    let entry = trail.append(draft, Durability::Sync)?;
    let width = context.console.width();
    match context.console.mode {
        Mode::Text => context.console.print(&line(&entry, width))?,
        Mode::Json | Mode::Ndjson => context.console.json(&entry)?,
    }
    Ok(Exit::Done)
}
