//! `safepoint trail export`: reads the trail once, and hands every document on as soon as it
//! is complete. What a document looks like is none of its business.

use std::path::PathBuf;

use safepoint_model::Exit;
use safepoint_store::Flow;
use safepoint_store::durable::{Access, Replacement};
use safepoint_trail::export::Format as Form;
use schemars::JsonSchema;
use serde::Serialize;

use super::filter::Filter;
use super::send::Collector;
use crate::console::{Mode, count};
use crate::context::Context;
use crate::error::CliError;

/// Arguments of `trail export`
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    filter: Filter,
    /// The form to write
    #[arg(long, value_enum)]
    format: Format,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// One JSON array instead of a document a line
    #[arg(long, conflicts_with = "to")]
    batch: bool,
    /// Send spans to this collector over OTLP/HTTP (with --format otlp)
    #[arg(long, value_name = "URL", conflicts_with = "out")]
    to: Option<String>,
    /// A header for the collector, NAME: VALUE
    #[arg(long = "header", value_name = "HEADER", requires = "to")]
    headers: Vec<String>,
    /// Trust the certificates in this file (PEM) and no others
    #[arg(long, value_name = "FILE", requires = "to")]
    ca: Option<PathBuf>,
}

/// A form that other tools read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// One JSON object a line, as `trail list` prints them
    Jsonl,
    /// CloudEvents 1.0, one for each entry
    Cloudevents,
    /// OCSF 1.9 events with record integrity, one for each entry
    Ocsf,
    /// OpenTelemetry spans, one for each action, as OTLP/JSON
    Otlp,
    /// In-toto statements in signed DSSE envelopes, one for each action
    Intoto,
}

/// What `trail export` prints under `--json` when the documents go elsewhere.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ExportReply {
    /// How many entries were read.
    entries: u64,
    /// How many documents were made of them.
    documents: u64,
    /// The file they were written to.
    out: Option<String>,
    /// The address they were sent to.
    to: Option<String>,
}

pub(crate) fn run(context: &mut Context, arguments: &Arguments) -> Result<Exit, CliError> {
    let form = match arguments.format {
        Format::Jsonl => Form::JsonLines,
        Format::Cloudevents => Form::CloudEvents,
        Format::Ocsf => Form::Ocsf,
        Format::Otlp => Form::Otlp,
        Format::Intoto => Form::InToto,
    };
    if arguments.to.is_some() && form != Form::Otlp {
        return Err(CliError::Invalid {
            message: "`--to` is for spans".into(),
            suggestion: "add `--format otlp`, or write to a file with `--out`",
        });
    }
    let trail = context.trail()?;
    let query = arguments.filter.query(&trail)?;
    let mut sink = Sink::open(context, arguments)?;
    let mut exporter = trail.exporter(form);
    let mut entries = 0;
    sink.begin(context)?;
    trail.entries(&query, |entry| -> Result<Flow, CliError> {
        entries += 1;
        for document in exporter.add(entry)? {
            sink.take(context, &document)?;
        }
        Ok(match sink.is_heard(context) {
            true => Flow::More,
            false => Flow::Enough,
        })
    })?;
    for document in exporter.finish()? {
        sink.take(context, &document)?;
    }
    sink.finish(context, entries)
}

/// Where documents go.
struct Sink {
    place: Place,
    batch: bool,
    documents: u64,
}

enum Place {
    Console,
    File(Box<Replacement>, PathBuf),
    Collector(Box<Collector>),
}

impl Sink {
    fn open(context: &Context, arguments: &Arguments) -> Result<Self, CliError> {
        let place = match (&arguments.to, context.output(arguments.out.as_deref())?) {
            (Some(url), _) => Place::Collector(Box::new(Collector::new(
                &context.directory,
                url,
                &arguments.headers,
                arguments.ca.as_deref(),
            )?)),
            (None, Some(path)) => {
                let file = Replacement::begin(&path, Access::Shared).map_err(CliError::Out)?;
                Place::File(Box::new(file), path)
            }
            (None, None) => Place::Console,
        };
        Ok(Self {
            place,
            batch: arguments.batch,
            documents: 0,
        })
    }

    /// Whether anybody gets what comes next.
    fn is_heard(&self, context: &Context) -> bool {
        !matches!(self.place, Place::Console) || context.console.is_heard()
    }

    fn begin(&mut self, context: &mut Context) -> Result<(), CliError> {
        match self.batch {
            true => self.write(context, "["),
            false => Ok(()),
        }
    }

    fn take(&mut self, context: &mut Context, document: &str) -> Result<(), CliError> {
        if let Place::Collector(collector) = &self.place {
            collector.send(document)?;
            self.documents += 1;
            return Ok(());
        }
        let lead = match (self.batch, self.documents) {
            (false, _) => "",
            (true, 0) => "\n",
            (true, _) => ",\n",
        };
        let end = if self.batch { "" } else { "\n" };
        self.documents += 1;
        self.write(context, &format!("{lead}{document}{end}"))
    }

    fn write(&mut self, context: &mut Context, text: &str) -> Result<(), CliError> {
        match &mut self.place {
            Place::Console => context.console.print(text),
            Place::File(file, _) => file.write(text.as_bytes()).map_err(CliError::Out),
            Place::Collector(_) => Ok(()),
        }
    }

    fn finish(mut self, context: &mut Context, entries: u64) -> Result<Exit, CliError> {
        if self.batch {
            self.write(context, "\n]\n")?;
        }
        let mut reply = ExportReply {
            entries,
            documents: self.documents,
            out: None,
            to: None,
        };
        let place = match self.place {
            Place::Console => return Ok(Exit::Done),
            Place::File(file, path) => {
                file.finish().map_err(CliError::Out)?;
                let path = path.display().to_string();
                reply.out = Some(path.clone());
                format!("written to {path}")
            }
            Place::Collector(collector) => {
                let url = collector.url().to_owned();
                reply.to = Some(url.clone());
                format!("sent to {url}")
            }
        };
        match context.console.mode {
            Mode::Text => {
                let entries = count(entries, "entry", "entries");
                context.console.say(&format!("{entries} {place}"));
            }
            Mode::Json | Mode::Ndjson => context.console.json(&reply)?,
        }
        Ok(Exit::Done)
    }
}
