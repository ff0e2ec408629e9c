//! `safepoint atlas init`.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::durable::{self, Access};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{GOOD, HINT};
use crate::context::Context;
use crate::error::CliError;

/// The atlas to start from.
pub(crate) const STARTER: &str = include_str!("../../../atlases/starter.yaml");

/// Arguments of `atlas init`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to write it
    #[arg(default_value = "atlas.yaml")]
    file: PathBuf,
}

/// What `atlas init` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct InitReply {
    /// The file that was written.
    path: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let path = context.directory.join(&arguments.file);
    if path.symlink_metadata().is_ok() {
        return Err(CliError::Invalid {
            message: format!("`{}` is there already", path.display()),
            suggestion: "name another file",
        });
    }
    durable::write(&path, STARTER.as_bytes(), Access::Shared).map_err(CliError::Out)?;
    let reply = InitReply {
        path: path.display().to_string(),
    };
    context.console.value(&reply, |reply| {
        let path = safepoint_model::text::line(&reply.path).text;
        format!(
            "{GOOD}wrote{GOOD:#}  {path}\n{HINT}next{HINT:#}   read it, change it, then `safepoint atlas check` and `safepoint atlas test`\n"
        )
    })?;
    Ok(Exit::Done)
}
