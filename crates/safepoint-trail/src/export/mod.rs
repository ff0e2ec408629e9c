//! Entries in the forms that other tools read: from entries to documents, and nothing else.
//!
//! A trail is read once, oldest entry first, and each document is handed over as soon as
//! it is complete, so that a trail of any length can be exported. Nothing here reads a
//! store, a clock or a file, and nothing is left out of an entry silently: every document
//! names the entries it was made from by their hashes.

mod cloudevents;
mod group;
mod ocsf;
mod otlp;
mod statement;
mod story;

pub(crate) use statement::{Statement, Subject};
pub(crate) use story::{Body, action_of};

pub use ocsf::VERSION as OCSF_VERSION;
pub use statement::{ACTION_PREDICATE, BUNDLE_PREDICATE, ENTRY_PREDICATE, STATEMENT};

use crate::{Entry, Trail};

/// The version of this program, as documents name it.
const PROGRAM_VERSION: &str = env!("CARGO_PKG_VERSION");

/// A form that other tools read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Entries as they are.
    JsonLines,
    /// CloudEvents 1.0, one for each entry.
    CloudEvents,
    /// OCSF events, one for each entry.
    Ocsf,
    /// Requests of OTLP/HTTP in JSON, with a span for each action.
    Otlp,
    /// In-toto statements in DSSE envelopes, one for each action.
    InToto,
}

impl Trail {
    /// What turns entries of this trail into documents.
    pub fn exporter(&self, format: Format) -> Exporter<'_> {
        Exporter {
            trail: self,
            form: match format {
                Format::JsonLines => Form::JsonLines,
                Format::CloudEvents => Form::CloudEvents,
                Format::Ocsf => Form::Ocsf,
                Format::Otlp => Form::Otlp(otlp::Spans::new(self.key().name())),
                Format::InToto => Form::InToto(group::Groups::default()),
            },
        }
    }
}

/// Turns entries into documents, each one JSON text on one line.
#[derive(Debug)]
pub struct Exporter<'a> {
    trail: &'a Trail,
    form: Form,
}

#[derive(Debug)]
enum Form {
    JsonLines,
    CloudEvents,
    Ocsf,
    Otlp(otlp::Spans),
    InToto(group::Groups),
}

impl Exporter<'_> {
    /// Takes the next entry, and gives the documents that are complete now.
    pub fn add(&mut self, entry: Entry) -> Result<Vec<String>, serde_json::Error> {
        let key = self.trail.key();
        let document = match &mut self.form {
            Form::JsonLines => serde_json::to_string(&entry)?,
            Form::CloudEvents => cloudevents::event(&entry, key.name())?,
            Form::Ocsf => ocsf::event(&entry, key)?,
            Form::Otlp(spans) => return spans.add(entry),
            Form::InToto(groups) => {
                let Some(action) = action_of(&entry) else {
                    return Ok(vec![self.envelope(&Statement::of_entry(&entry)?)?]);
                };
                let mut ready = Vec::new();
                groups.add(group::Key::Action(action), entry, &mut ready);
                return self.statements(&ready);
            }
        };
        Ok(vec![document])
    }

    /// Gives what is left when there are no more entries.
    pub fn finish(&mut self) -> Result<Vec<String>, serde_json::Error> {
        match &mut self.form {
            Form::JsonLines | Form::CloudEvents | Form::Ocsf => Ok(Vec::new()),
            Form::Otlp(spans) => spans.finish(),
            Form::InToto(groups) => {
                let left = groups.finish();
                self.statements(&left)
            }
        }
    }

    fn statements(&self, groups: &[group::Group]) -> Result<Vec<String>, serde_json::Error> {
        groups
            .iter()
            .map(|group| self.envelope(&Statement::of_action(group, self.trail.key())?))
            .collect()
    }

    fn envelope(&self, statement: &Statement) -> Result<String, serde_json::Error> {
        let payload = serde_json::to_vec(statement)?;
        serde_json::to_string(&self.trail.envelope(&payload))
    }
}
