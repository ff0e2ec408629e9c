//! `safepoint trail head`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::Exit;
use safepoint_trail::head::SignedHead;
use safepoint_trail::note::PublicKey;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;

/// What `trail head` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HeadDocument {
    /// How many entries the trail has.
    size: u64,
    /// The root of the tree over them, in base64 as in the note.
    root: String,
    /// The signed note: a C2SP checkpoint.
    note: String,
    /// The public key: what `trail check-proof --key` takes.
    key: String,
}

impl HeadDocument {
    pub(crate) fn new(head: &SignedHead, key: &PublicKey) -> Self {
        Self {
            size: head.size(),
            root: BASE64.encode(head.root().as_bytes()),
            note: head.note().to_owned(),
            key: key.to_string(),
        }
    }
}

pub(crate) fn run(context: &mut Context) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let document = HeadDocument::new(&trail.head()?, trail.key());
    context.console.value(&document, |it| it.note.clone())?;
    Ok(Exit::Done)
}
