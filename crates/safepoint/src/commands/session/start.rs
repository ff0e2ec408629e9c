//! `safepoint session start`.

use std::path::PathBuf;

use safepoint_control::{AtlasFile, Start};
use safepoint_gates::Resolution;
use safepoint_model::Exit;
use schemars::JsonSchema;
use serde::Serialize;

use super::{deliver, show};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `session start`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// An atlas to judge under; can be given several times, the strictest counts
    #[arg(long, value_name = "FILE", num_args = 1..)]
    atlas: Vec<PathBuf>,
    /// What the session is for
    #[arg(long, value_name = "TEXT")]
    goal: Option<String>,
}

/// What `session start` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SessionStarted {
    /// The name of the session.
    session_id: String,
    /// What it may do, and what it is asked first.
    resolution: Resolution,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let mut paths: Vec<PathBuf> = arguments
        .atlas
        .iter()
        .map(|path| context.directory.join(path))
        .collect();
    if paths.is_empty() {
        paths = context.atlases()?;
    }
    if paths.is_empty() {
        return Err(CliError::Invalid {
            message: "a session needs an atlas".to_owned(),
            suggestion: "name one with `--atlas FILE`, or in `atlases` of safepoint.yaml; `safepoint atlas init` writes one to start from",
        });
    }
    let atlases = paths
        .iter()
        .map(|path| AtlasFile::read(path))
        .collect::<Result<_, _>>()?;
    let start = Start {
        atlases,
        goal: arguments.goal.clone(),
        key: context.environment.text("SAFEPOINT_ATLAS_KEY"),
    };
    let control = context.control()?;
    let started = control.start(&start)?;
    deliver::start(context, &control);
    let reply = SessionStarted {
        session_id: started.session_id.to_string(),
        resolution: started.judgement.resolution,
    };
    context.console.value(&reply, |reply| {
        show::started(&reply.session_id, &reply.resolution)
    })?;
    Ok(Exit::Done)
}
