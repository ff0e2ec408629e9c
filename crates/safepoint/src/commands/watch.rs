//! `safepoint watch`: listens to what changes, so that checkpoints need not look.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use safepoint_model::Exit;
use safepoint_state::watch::{Standing, serve, socket, standing};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, STRONG};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// Arguments of `watch`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Say whether a watcher is at work here, and do nothing
    #[arg(long)]
    status: bool,
}

/// What `watch` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct WatchReply {
    /// Whether a watcher is at work.
    running: bool,
    /// The directory it listens to.
    workspace: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let workspace = context.workspace()?;
    let socket = socket(&context.paths.runtime, &workspace.root);
    let place = workspace.root.display().to_string();
    if arguments.status {
        let reply = WatchReply {
            running: standing(&socket) == Standing::Running,
            workspace: place,
        };
        context.console.value(&reply, |reply| {
            let word = if reply.running {
                "watched"
            } else {
                "not watched"
            };
            let place = safepoint_model::text::line(&reply.workspace).text;
            format!("{GOOD}{word}{GOOD:#}  {STRONG}{place}{STRONG:#}\n")
        })?;
        return Ok(Exit::Done);
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let console = &mut context.console;
    let mut told = Ok(());
    serve(&workspace.root, &socket, &SystemEntropy, &stop, || {
        let reply = WatchReply {
            running: true,
            workspace: place,
        };
        told = console
            .value(&reply, |reply| {
                let place = safepoint_model::text::line(&reply.workspace).text;
                format!("{GOOD}watching{GOOD:#}  {STRONG}{place}{STRONG:#}\n")
            })
            .and_then(|()| console.flush());
    })?;
    told?;
    Ok(Exit::Interrupted)
}
