//! `safepoint operator sign`: a word, signed where the key is. It opens no store.

use std::path::PathBuf;

use safepoint_control::pass::signed_word;
use safepoint_model::{Clock, Exit};
use safepoint_trail::note::Signer;
use schemars::JsonSchema;
use serde::Serialize;

use super::{bad_key, own_key};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemClock;

/// Arguments of `operator sign`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What is said: `trust BOUNDARY LEVEL`, `permit revoke ID`, `operator add NAME KEY`, `operator remove NAME`, `notify add NAME CHANNEL TOPICS ORIGIN NETWORK` or `notify remove NAME`
    says: String,
    /// Who says it
    #[arg(long, value_name = "NAME", env = "SAFEPOINT_OPERATOR")]
    operator: String,
    /// Their key, where it lies elsewhere
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
}

/// What `operator sign` and `hold sign` print.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignatureReply {
    /// The signed note.
    pub(crate) signature: String,
}

pub(super) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let signer = signer(context, &arguments.operator, arguments.key.as_ref())?;
    let says = &arguments.says;
    let reply = SignatureReply {
        signature: signed_word(&signer, says, SystemClock.now())?,
    };
    context.console.value(&reply, |it| it.signature.clone())?;
    Ok(Exit::Done)
}

/// The key of an operator, which must have their name.
pub(crate) fn signer(
    context: &Context,
    name: &str,
    key: Option<&PathBuf>,
) -> Result<Signer, CliError> {
    if context.served().is_some() {
        return Err(super::nobody("a server signs for nobody"));
    }
    let path = match key {
        Some(given) => context.directory.join(given),
        None => own_key(context, name),
    };
    let text = std::fs::read_to_string(&path).map_err(|error| CliError::File {
        action: "read",
        path: path.clone(),
        error,
    })?;
    let signer = Signer::parse(&text).map_err(bad_key(&path))?;
    super::same_name(signer.public(), name)?;
    Ok(signer)
}
