//! `safepoint atlas show`: the rules that apply here, as they are read.

use std::path::PathBuf;

use safepoint_control::AtlasFile;
use safepoint_gates::AtlasManifest;
use safepoint_model::{Exit, text};
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `atlas show`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The atlases; those that apply here without any
    files: Vec<PathBuf>,
}

/// What `atlas show` prints.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ShowReply {
    /// Each atlas; all of them apply, and the strictest counts.
    atlases: Vec<ShownAtlas>,
}

/// One atlas.
#[derive(Serialize, JsonSchema)]
struct ShownAtlas {
    /// Where it is; null for the one that is built in.
    path: Option<String>,
    /// The digest of all of it.
    digest: String,
    /// What it says.
    manifest: AtlasManifest,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let named = match arguments.files.is_empty() {
        true => context.atlases()?,
        false => arguments.files.clone(),
    };
    let mut atlases = Vec::new();
    for path in &named {
        let atlas = AtlasFile::read(&context.directory.join(path))?;
        atlases.push(shown(Some(path.display().to_string()), atlas));
    }
    if atlases.is_empty() {
        atlases.push(shown(None, AtlasFile::built_in()?));
    }
    context
        .console
        .value(&ShowReply { atlases }, |reply| listed(&reply.atlases))?;
    Ok(Exit::Done)
}

fn shown(path: Option<String>, atlas: AtlasFile) -> ShownAtlas {
    ShownAtlas {
        path,
        digest: atlas.digest.to_string(),
        manifest: atlas.manifest,
    }
}

fn listed(atlases: &[ShownAtlas]) -> String {
    let mut shown = String::new();
    for ShownAtlas { path, manifest, .. } in atlases {
        let line = |input: &str| text::line(input).text;
        shown.push_str(&format!(
            "{STRONG}{}{STRONG:#}  {FAINT}{} {}  {}{FAINT:#}\n",
            line(&manifest.name),
            line(&manifest.atlas_id),
            line(&manifest.version),
            line(path.as_deref().unwrap_or("built in")),
        ));
        for policy in &manifest.policies {
            shown.push_str(&format!("  policy  {}\n", line(&policy.policy_id)));
        }
        for gate in &manifest.checkpoints {
            shown.push_str(&format!("  gate    {}\n", line(&gate.checkpoint_id)));
        }
    }
    shown
}
