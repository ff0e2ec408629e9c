//! `safepoint trail show`.

use safepoint_model::{Exit, text};
use safepoint_trail::{Entry, Trail};

use crate::console::{Mode, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail show`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Its id, the beginning of it, or its place in the trail
    entry: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let mut entry = trail.find(&arguments.entry)?;
    entry.body = trail.body(&entry)?; // a large one is kept apart
    match context.console.mode {
        Mode::Text => {
            let text = show(&trail, &entry)?;
            context.console.print(&text)?;
        }
        Mode::Json | Mode::Ndjson => context.console.json(&entry)?,
    }
    Ok(Exit::Done)
}

fn show(trail: &Trail, entry: &Entry) -> Result<String, CliError> {
    let none = || "none".to_owned();
    let head = trail.head()?;
    let mut out = String::new();
    for (name, value) in [
        ("entry", entry.id.to_string()),
        ("place", format!("{} of {}", entry.seq, head.size())),
        ("time", entry.time.to_string()),
        ("stream", entry.stream.to_string()),
        ("actor", entry.actor.to_string()),
        ("kind", entry.kind.to_string()),
        (
            "action",
            entry
                .action_id
                .as_ref()
                .map_or_else(none, ToString::to_string),
        ),
        ("hash", entry.hash.to_string()),
        (
            "previous",
            entry
                .prev_hash
                .as_ref()
                .map_or_else(none, ToString::to_string),
        ),
    ] {
        out.push_str(&format!(
            "{STRONG}{name:<10}{STRONG:#}{}\n",
            text::line(&value).text
        ));
    }
    let body: serde_json::Value = serde_json::from_str(&entry.body)?;
    let body = serde_json::to_string_pretty(&body)?;
    out.push_str(&format!("\n{}\n", text::block(&body).text));
    Ok(out)
}
