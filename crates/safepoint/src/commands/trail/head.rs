//! `safepoint trail head`.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::{Exit, text};
use safepoint_trail::cosign::{Cosigned, with_cosignatures};
use safepoint_trail::head::SignedHead;
use safepoint_trail::note::PublicKey;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::count;
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail head`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The newest head that a witness has cosigned, instead of the present one
    #[arg(long)]
    cosigned: bool,
}

/// What `trail head` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct HeadDocument {
    /// How many entries the trail has.
    size: u64,
    /// The root of the tree over them, in base64 as in the note.
    root: String,
    /// The signed note: a C2SP checkpoint, with the cosignatures of this very head.
    note: String,
    /// The public key: what `trail check-proof --key` takes.
    key: String,
    /// The newest head that each witness has cosigned, the newest first.
    cosigned: Vec<CosignedDocument>,
}

/// A head that a witness has cosigned.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CosignedDocument {
    /// The name of the witness.
    witness: String,
    /// Its public key.
    key: String,
    /// How many entries the trail had.
    size: u64,
    /// When it was cosigned, as the witness says, RFC 3339.
    time: String,
    /// The note with both signatures.
    note: String,
}

impl HeadDocument {
    pub(crate) fn new(head: &SignedHead, key: &PublicKey, cosigned: &[Cosigned]) -> Self {
        Self {
            size: head.size(),
            root: root(head),
            note: with_cosignatures(head, cosigned),
            key: key.to_string(),
            cosigned: cosigned.iter().map(CosignedDocument::new).collect(),
        }
    }
}

impl CosignedDocument {
    fn new(cosigned: &Cosigned) -> Self {
        Self {
            witness: cosigned.witness.name().to_owned(),
            key: cosigned.witness.to_string(),
            size: cosigned.head.size(),
            time: cosigned.time.to_string(),
            note: cosigned.note(),
        }
    }
}

/// The root of a head in base64.
pub(super) fn root(head: &SignedHead) -> String {
    BASE64.encode(head.root().as_bytes())
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let cosigned = trail.cosigned()?;
    let head = match (arguments.cosigned, cosigned.first()) {
        (true, None) => {
            return Err(CliError::NotFound {
                what: "head with the cosignature of a",
                name: "witness".to_owned(),
            });
        }
        (true, Some(newest)) => newest.head.clone(),
        (false, _) => trail.head()?,
    };
    for one in &cosigned {
        context.console.say(&format!(
            "{} cosigned by {} at {}",
            count(one.head.size(), "entry", "entries"),
            text::line(one.witness.name()).text,
            one.time
        ));
    }
    let document = HeadDocument::new(&head, trail.key(), &cosigned);
    context.console.value(&document, |it| it.note.clone())?;
    Ok(Exit::Done)
}
