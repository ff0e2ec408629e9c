//! `safepoint trail prove`.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::durable::{self, Access};
use safepoint_trail::Trail;
use safepoint_trail::head::SignedHead;
use schemars::JsonSchema;
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail prove`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The entry to prove: its id, the beginning of it, or its place in the trail
    #[arg(required_unless_present = "consistency")]
    entry: Option<String>,
    /// Prove instead that the trail still begins with an older one: its size, or a file with its signed head
    #[arg(long, value_name = "OLD", conflicts_with = "entry")]
    consistency: Option<String>,
    /// Write the proof to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What `trail prove` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Proof {
    /// `inclusion` or `consistency`.
    kind: &'static str,
    /// The entry it is about.
    entry: Option<String>,
    /// The proof itself.
    proof: String,
    /// The file it was written to.
    out: Option<String>,
    /// The public key that checks it.
    key: String,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let trail = context.trail()?;
    let (kind, entry, proof) = match (&arguments.entry, &arguments.consistency) {
        (_, Some(old)) => {
            let size = old_size(context, &trail, old)?;
            ("consistency", None, trail.prove_consistency(size)?)
        }
        (entry, None) => {
            let entry = trail.find(entry.as_deref().unwrap_or_default())?;
            (
                "inclusion",
                Some(entry.id.to_string()),
                trail.prove(&entry)?,
            )
        }
    };
    let out = context.output(arguments.out.as_deref())?;
    if let Some(path) = &out {
        durable::write(path, proof.as_bytes(), Access::Shared).map_err(CliError::Out)?;
        context.console.say(&format!(
            "written to {}; check it with: safepoint trail check-proof {} --key '{}'",
            path.display(),
            path.display(),
            trail.key()
        ));
    }
    let document = Proof {
        kind,
        entry,
        proof,
        out: out.map(|path| path.display().to_string()),
        key: trail.key().to_string(),
    };
    context.console.value(&document, |it| match it.out {
        Some(_) => String::new(),
        None => it.proof.clone(),
    })?;
    Ok(Exit::Done)
}

/// The size meant by `OLD`. A signed head must be one of this trail's own.
fn old_size(context: &Context, trail: &Trail, old: &str) -> Result<u64, CliError> {
    if let Ok(size) = old.parse() {
        return Ok(size);
    }
    let path = context.directory.join(old);
    let note = std::fs::read_to_string(&path).map_err(|error| CliError::File {
        action: "read",
        path,
        error,
    })?;
    let head =
        SignedHead::open(&note, trail.key()).map_err(safepoint_trail::proof::ProofError::from)?;
    Ok(head.size())
}
