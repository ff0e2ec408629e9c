//! `safepoint workspace watch`: what parents are told, as it arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use safepoint_model::{Exit, Timestamp, WorkspaceId};
use safepoint_progress::Progress;
use safepoint_progress::signal::Signal;
use schemars::JsonSchema;
use serde::Serialize;

use super::document::{SignalDocument, signal_line};
use crate::commands::trail::moment;
use crate::console::Mode;
use crate::context::Context;
use crate::error::CliError;

/// How often to look whether anything has arrived.
const LOOK: Duration = Duration::from_millis(200);

/// Arguments of `workspace watch`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Only what this workspace is told; the beginning of its id is enough
    workspace: Option<String>,
    /// Only what arrived after this: a signal's `delivered_at`, or how long ago (90s, 24h)
    #[arg(long, value_name = "WHEN")]
    from: Option<String>,
    /// Print what has arrived so far, and end
    #[arg(long)]
    once: bool,
}

/// What `workspace watch --once` prints. Without `--once` each signal is a document of its own.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignalsArrived {
    /// In the order in which they arrived.
    #[schemars(with = "Vec<SignalDocument>")]
    signals: Vec<Signal>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let progress = context.progress()?;
    let to = match &arguments.workspace {
        Some(prefix) => Some(progress.find(prefix)?),
        None => None,
    };
    let from = arguments.from.as_deref().map(moment).transpose()?;
    progress.deliver()?;
    if arguments.once && context.console.mode == Mode::Json {
        let signals = arrived(&progress, to.as_ref(), from)?;
        context.console.json(&SignalsArrived { signals })?;
        return Ok(Exit::Done);
    }
    if arguments.once {
        print(context, &progress, to.as_ref(), from)?;
        return Ok(Exit::Done);
    }
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let mut after = from;
    while !interrupted.load(Ordering::Relaxed) && context.console.is_heard() {
        after = print(context, &progress, to.as_ref(), after)?;
        std::thread::sleep(LOOK);
        // What could not be taken then may be taken now, and time passes.
        progress.tick()?;
        progress.deliver()?;
    }
    Ok(context.console.followed())
}

/// All that has arrived since.
fn arrived(
    progress: &Progress,
    to: Option<&WorkspaceId>,
    mut after: Option<Timestamp>,
) -> Result<Vec<Signal>, CliError> {
    let mut all = Vec::new();
    loop {
        let page = progress.delivered_after(after, to)?;
        let Some(last) = page.last() else {
            return Ok(all);
        };
        after = last.delivered_at;
        all.extend(page);
    }
}

/// Prints what has arrived since, and says up to when.
fn print(
    context: &mut Context,
    progress: &Progress,
    to: Option<&WorkspaceId>,
    mut after: Option<Timestamp>,
) -> Result<Option<Timestamp>, CliError> {
    loop {
        let arrived = progress.delivered_after(after, to)?;
        let Some(last) = arrived.last() else {
            return Ok(after);
        };
        after = last.delivered_at;
        for signal in &arrived {
            match context.console.mode {
                Mode::Text => context.console.print(&signal_line(signal))?,
                Mode::Json | Mode::Ndjson => context.console.json(signal)?,
            }
        }
        context.console.flush()?;
    }
}
