//! `safepoint workspace export`: a chain as in-toto statements, one a line.
//!
//! A statement names things by digest. What a checkpoint holds does not leave the store.

use std::path::PathBuf;

use safepoint_model::{Digest, Exit, json};
use safepoint_progress::Workspace;
use safepoint_progress::record::{self, Record};
use safepoint_state::State;
use safepoint_state::tree::{self, Node};
use safepoint_store::durable::{Access, Replacement};
use serde::Serialize;
use serde_json::{Value, json};

use super::open;
use crate::console::count;
use crate::context::Context;
use crate::error::CliError;

/// What is said of a checkpoint: docs/formats/record.md.
const PREDICATE_TYPE: &str = "urn:safepoint:predicate:record:v1";

/// Arguments of `workspace export`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The workspace; the beginning of its id is enough
    workspace: String,
    /// The form to write
    #[arg(long, value_enum)]
    format: Format,
    /// Put each statement into a DSSE envelope, signed with the key of the trail
    #[arg(long)]
    signed: bool,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A form that other tools read.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Format {
    /// One in-toto statement a line
    Intoto,
}

/// An in-toto statement, version 1.
#[derive(Serialize)]
struct Statement<'a> {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: [Resource<'a>; 1],
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: Predicate<'a>,
}

/// Something, by its digest.
#[derive(Serialize)]
struct Resource<'a> {
    name: &'a str,
    digest: Value,
}

/// What is said of a checkpoint.
#[derive(Serialize)]
struct Predicate<'a> {
    workspace: Value,
    #[serde(rename = "type")]
    kind: &'a str,
    intent: &'a str,
    status: record::Status,
    confidence: record::Confidence,
    timestamp: String,
    /// The checkpoint before it.
    parent: Option<Resource<'a>>,
    /// The proof that stands in the trail.
    proof: Value,
    /// What it holds, in RFC 8785 form.
    payload: Value,
    /// The files that it says have changed.
    files: Vec<Value>,
    resource_usage: Option<record::Usage>,
    snapshot: Option<String>,
    actions: Vec<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let Format::Intoto = arguments.format;
    let (progress, id) = open(context, &arguments.workspace)?;
    let workspace = progress.workspace(&id)?;
    let records = progress.log(&id)?;
    let trail = context.trail()?;
    // Only what has a directory of its own has files that can be looked at.
    let state = match records.iter().any(|record| record.snapshot.is_some()) {
        true => Some(context.state()?),
        false => None,
    };
    let path = context.output(arguments.out.as_deref())?;
    let mut file = path
        .as_deref()
        .map(|path| Replacement::begin(path, Access::Shared))
        .transpose()
        .map_err(CliError::Out)?;
    let mut before: Option<(&Record, Digest)> = None;
    for record in &records {
        let digest = digest_of(record)?;
        let files = files(state.as_ref(), record)?;
        let statement = statement(&workspace, record, digest, before.take(), files)?;
        let statement = serde_json::to_string(&statement)?;
        let mut line = match arguments.signed {
            true => serde_json::to_string(&trail.envelope(statement.as_bytes()))?,
            false => statement,
        };
        line.push('\n');
        match &mut file {
            Some(file) => file.write(line.as_bytes()).map_err(CliError::Out)?,
            None => context.console.print(&line)?,
        }
        before = Some((record, digest));
    }
    if let (Some(file), Some(path)) = (file, path) {
        file.finish().map_err(CliError::Out)?;
        let written = count(records.len() as u64, "statement", "statements");
        context
            .console
            .say(&format!("{written} written to {}", path.display()));
    }
    Ok(Exit::Done)
}

/// SHA-256 over the canonical bytes, which are what is stored.
fn digest_of(record: &Record) -> Result<Digest, CliError> {
    Ok(Digest::of_parts(&[&canonical(record)?]))
}

fn canonical(value: &impl Serialize) -> Result<Vec<u8>, CliError> {
    json::canonical_of(value).map_err(|error| CliError::Progress(error.into()))
}

/// The files that a checkpoint says have changed, each by the digest of what it holds then.
fn files(state: Option<&State>, record: &Record) -> Result<Vec<Value>, CliError> {
    let names = record.payload.files_changed.iter();
    let (Some(state), Some(snapshot)) = (state, &record.snapshot) else {
        return Ok(names.map(|name| json!({"name": name})).collect());
    };
    let snapshot = state.find(snapshot.as_str())?;
    let objects = state.objects()?;
    let reader = objects.reader();
    let mut files = Vec::new();
    for name in names {
        let found = tree::entry_at(&reader, &snapshot.record.files, name.as_bytes())?;
        let digest = match found.map(|entry| entry.node) {
            Some(Node::File { content, .. }) => {
                let content = reader.read(content)?;
                Some(json!({"sha256": Digest::of_parts(&[&content])}))
            }
            _ => None,
        };
        files.push(match digest {
            Some(digest) => json!({"name": name, "digest": digest}),
            None => json!({"name": name}),
        });
    }
    Ok(files)
}

fn statement<'a>(
    workspace: &'a Workspace,
    record: &'a Record,
    digest: Digest,
    before: Option<(&'a Record, Digest)>,
    files: Vec<Value>,
) -> Result<Statement<'a>, CliError> {
    let proof = record::proof(&record.id, &canonical(record)?);
    Ok(Statement {
        kind: "https://in-toto.io/Statement/v1",
        subject: [Resource {
            name: record.id.as_str(),
            digest: json!({"sha256": digest}),
        }],
        predicate_type: PREDICATE_TYPE,
        predicate: Predicate {
            workspace: json!({
                "id": workspace.workspace_id, "run": workspace.run,
                "parent": workspace.parent, "role": workspace.role,
            }),
            kind: &record.kind,
            intent: &record.intent,
            status: record.status,
            confidence: record.confidence,
            timestamp: record.timestamp.to_string(),
            parent: before.map(|(before, digest)| Resource {
                name: before.id.as_str(),
                digest: json!({"sha256": digest}),
            }),
            proof: json!({"algorithm": record::RECORD_TAG, "value": proof}),
            payload: json!({
                "digest": {"sha256": Digest::of_parts(&[&canonical(&record.payload)?])},
            }),
            files,
            resource_usage: record.resource_usage,
            snapshot: record.snapshot.as_ref().map(ToString::to_string),
            actions: record.actions.iter().map(ToString::to_string).collect(),
        },
    })
}
