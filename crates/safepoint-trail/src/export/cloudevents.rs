//! An entry as a CloudEvent, version 1.0, in its JSON format.
//!
//! The body is the event's data, byte for byte. What CloudEvents has no attribute for are
//! extension attributes, whose names have lower-case letters and digits only.

use safepoint_model::Timestamp;
use serde::Serialize;

use crate::{Entry, Trail};

/// The event, in the order in which it is written.
#[derive(Serialize)]
struct Event<'a, D: Serialize + ?Sized> {
    specversion: &'static str,
    id: &'a str,
    source: &'a str,
    #[serde(rename = "type")]
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    time: Timestamp,
    datacontenttype: &'static str,
    actor: String,
    stream: String,
    /// With leading zeroes: sequences are compared as texts.
    sequence: String,
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    previoushash: Option<String>,
    data: &'a D,
}

/// The event of an entry in the log `origin`.
pub(super) fn event(entry: &Entry, origin: &str) -> Result<String, serde_json::Error> {
    let data = entry.raw_body()?;
    let kind = format!("dev.safepoint.trail.{}", attribute(entry.kind.as_str()));
    written(entry, origin, kind, &*data)
}

impl Trail {
    /// An entry as a CloudEvent of another type and with other data, for whoever is told of it.
    /// Its `id` and `hash` are the entry's.
    pub fn cloud_event<D: Serialize>(
        &self,
        entry: &Entry,
        kind: &str,
        data: &D,
    ) -> Result<String, serde_json::Error> {
        written(entry, self.key().name(), kind.to_owned(), data)
    }
}

fn written<D: Serialize + ?Sized>(
    entry: &Entry,
    origin: &str,
    kind: String,
    data: &D,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Event {
        specversion: "1.0",
        id: entry.id.as_str(),
        source: origin,
        kind,
        subject: entry.action_id.as_ref().map(|action| action.as_str()),
        time: entry.time,
        datacontenttype: "application/json",
        actor: attribute(entry.actor.as_str()),
        stream: attribute(entry.stream.as_str()),
        sequence: format!("{:020}", entry.seq),
        hash: entry.hash.to_string(),
        previoushash: entry.prev_hash.as_ref().map(ToString::to_string),
        data,
    })
}

/// A text without the few characters that attributes may not have. Control characters
/// are in none of our names; Unicode's noncharacters could be.
fn attribute(text: &str) -> String {
    let is_noncharacter =
        |c: char| matches!(u32::from(c), 0xfdd0..=0xfdef) || u32::from(c) & 0xfffe == 0xfffe;
    text.chars()
        .map(|c| match is_noncharacter(c) {
            true => char::REPLACEMENT_CHARACTER,
            false => c,
        })
        .collect()
}
