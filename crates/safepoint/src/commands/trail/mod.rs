//! `safepoint trail …`: the record of everything.

pub(crate) mod bundle;
pub(crate) mod check_bundle;
pub(crate) mod check_proof;
pub(crate) mod export;
pub(super) mod filter;
pub(crate) mod head;
pub(crate) mod list;
pub(crate) mod note;
mod past;
pub(crate) mod prove;
pub(crate) mod publish;
mod send;
pub(crate) mod show;
pub(crate) mod tiles;
pub(crate) mod verify;
pub(crate) mod witness;

pub(super) use filter::moment;

use clap::Subcommand;
use safepoint_model::{Exit, text};
use safepoint_trail::Entry;
use schemars::JsonSchema;
use serde::Serialize;

use crate::console::{FAINT, STRONG};
use crate::context::Context;
use crate::error::CliError;

/// What can be asked of the trail
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List entries, oldest first
    List(list::Arguments),
    /// Show one entry whole
    Show(show::Arguments),
    /// Check every entry, chain, hash and signature, and name the first bad one
    Verify,
    /// Print the signed head, and who has cosigned it
    Head(head::Arguments),
    /// Write a proof that a stranger can check without this store
    Prove(prove::Arguments),
    /// Check a proof with nothing but the public key
    CheckProof(check_proof::Arguments),
    /// Write entries out for other tools
    Export(export::Arguments),
    /// Write the log as files that anybody can serve and check (C2SP tlog-tiles)
    Tiles(tiles::Arguments),
    /// Publish the signed head where the team shares its objects
    Publish,
    /// Have an independent witness cosign the head (C2SP tlog-witness)
    Witness(witness::Arguments),
    /// Write the evidence of a session into one file that a stranger can check
    Bundle(bundle::Arguments),
    /// Check such a file with nothing but the public key
    CheckBundle(check_bundle::Arguments),
    /// Add a remark of your own
    Note(note::Arguments),
}

pub(crate) fn run(context: &mut Context, command: Command) -> Result<Exit, CliError> {
    match command {
        Command::List(arguments) => list::run(context, &arguments),
        Command::Show(arguments) => show::run(context, &arguments),
        Command::Verify => verify::run(context),
        Command::Head(arguments) => head::run(context, &arguments),
        Command::Prove(arguments) => prove::run(context, &arguments),
        Command::CheckProof(arguments) => check_proof::run(context, &arguments),
        Command::Export(arguments) => export::run(context, &arguments),
        Command::Tiles(arguments) => tiles::run(context, &arguments),
        Command::Publish => publish::run(context),
        Command::Witness(arguments) => witness::run(context, &arguments),
        Command::Bundle(arguments) => bundle::run(context, &arguments),
        Command::CheckBundle(arguments) => check_bundle::run(context, &arguments),
        Command::Note(arguments) => note::run(context, arguments),
    }
}

/// An entry of the trail, as it is printed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct EntryDocument {
    /// Its identifier.
    id: String,
    /// Its place in the trail, and its index in the Merkle tree, from 0.
    seq: u64,
    /// When it was made, RFC 3339.
    time: String,
    /// The session or workspace it belongs to.
    stream: String,
    /// Who did it.
    actor: String,
    /// What happened.
    kind: String,
    /// The action it belongs to.
    action_id: Option<String>,
    /// The rest.
    body: serde_json::Value,
    /// The hash of the entry before it in its stream.
    prev_hash: Option<String>,
    /// Its own hash.
    hash: String,
}

/// One entry on one line of at most `width` characters, if that is at least 40.
pub(crate) fn line(entry: &Entry, width: usize) -> String {
    let shown = |text: &str| text::line(text).text;
    let time = entry.time.to_string();
    let time = time.get(..19).unwrap_or(&time).replace('T', " ");
    let lead = format!("{:>6}  {time}  ", entry.seq);
    let mut left = width.saturating_sub(lead.chars().count());
    let mut take = |text: String| {
        let text = text::shorten(&text, left);
        left -= text.chars().count().min(left);
        text
    };
    let kind = shown(entry.kind.as_str());
    let kind = take(if width < 100 {
        format!("{kind} ")
    } else {
        format!("{kind:<21} ")
    });
    let who = take(shown(entry.actor.as_str()));
    let rest = take(format!(
        "  {}  {}",
        shown(entry.stream.as_str()),
        shown(&entry.body)
    ));
    format!("{FAINT}{lead}{FAINT:#}{STRONG}{kind}{STRONG:#}{who}{FAINT}{rest}{FAINT:#}\n")
}
