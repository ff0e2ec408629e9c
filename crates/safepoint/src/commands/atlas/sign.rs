//! `safepoint atlas sign`.

use std::path::PathBuf;

use safepoint_control::AtlasFile;
use safepoint_model::Exit;
use safepoint_store::durable::{self, Access};
use safepoint_trail::note::Signer;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, GOOD};
use crate::context::Context;
use crate::error::CliError;
use crate::world::SystemEntropy;

/// Arguments of `atlas sign`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The atlas
    file: PathBuf,
    /// The file with the steward's private key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// Make the key first; refused where there is one
    #[arg(long)]
    new_key: bool,
}

/// What `atlas sign` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct SignReply {
    /// The name of the atlas.
    atlas_id: String,
    /// What was signed: the digest of the atlas and its modules.
    digest: String,
    /// The file with the signature.
    signature: String,
    /// The public key, for `steward.public_key`.
    key: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let file = context.directory.join(&arguments.file);
    let key = context.directory.join(&arguments.key);
    if arguments.new_key {
        make_key(&file, &key)?;
    }
    let (place, public) = safepoint_control::sign(&file, &key)?;
    let atlas = AtlasFile::read(&file)?;
    let reply = SignReply {
        atlas_id: atlas.manifest.atlas_id,
        digest: atlas.digest.to_string(),
        signature: place.display().to_string(),
        key: public.to_string(),
    };
    context.console.value(&reply, |reply| {
        format!(
            "{GOOD}signed{GOOD:#}  {}\n{FAINT}in{FAINT:#}      {}\n{FAINT}key{FAINT:#}     {}\n",
            reply.atlas_id, reply.signature, reply.key
        )
    })?;
    Ok(Exit::Done)
}

/// Makes a key for the steward of an atlas.
fn make_key(file: &std::path::Path, key: &std::path::Path) -> Result<(), CliError> {
    if key.symlink_metadata().is_ok() {
        return Err(CliError::Invalid {
            message: format!("`{}` is there already", key.display()),
            suggestion: "leave out `--new-key` to sign with it",
        });
    }
    let manifest = safepoint_control::read_manifest(file)?;
    let name = match &manifest.steward {
        Some(steward) => steward.id.clone(),
        None => manifest.atlas_id,
    };
    let plain: String = name
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control() && *c != '+')
        .collect();
    let signer = Signer::generate(&plain, &SystemEntropy)
        .map_err(|error| CliError::Control(error.into()))?;
    let text = format!("{}\n", signer.to_text());
    Ok(durable::write(key, text.as_bytes(), Access::Private)?)
}
