//! What stewards are told: written with the step, delivered afterwards.
//!
//! A notice is a CloudEvent. It waits in the store until it is delivered, so
//! that no crash loses it and no slow service delays an agent.

mod deliver;
mod post;

pub use deliver::Delivered;
pub use post::{Message, NotDelivered, Poster};

use std::fmt::Write as _;

use safepoint_gates::Notice;
use safepoint_model::{EntryId, SessionId, Timestamp};
use safepoint_store::{Sql, Value};
use safepoint_trail::Trail;
use serde::Serialize;

use crate::ControlError;
use crate::session::Surroundings;

/// A CloudEvent, version 1.0, in its JSON format.
#[derive(Serialize)]
struct CloudEvent<'a> {
    specversion: &'static str,
    id: &'a EntryId,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    subject: &'a str,
    datacontenttype: &'static str,
    data: &'a serde_json::Value,
}

/// Writes what stewards are told of a session, beside what it tells of.
pub(crate) fn enqueue(
    sql: &mut dyn Sql,
    session: &SessionId,
    notices: &[Notice],
    trail: &Trail,
    around: &Surroundings,
) -> Result<(), ControlError> {
    let session = session.as_str();
    for notice in notices {
        let now = around.clock.now();
        let id = EntryId::new(now, &*around.entropy)?;
        let mut data = notice.data.clone();
        trail.redact(&mut data);
        let body = serde_json::to_string(&cloud_event(notice, &data, &id, session, now)).map_err(
            |error| ControlError::Unreadable {
                what: "notice",
                id: session.to_owned(),
                error,
            },
        )?;
        sql.execute(
            "INSERT INTO control_notices (id, due, attempts, webhook, body) VALUES (?1, ?2, 0, ?3, ?4)",
            &[
                Value::Text(id.as_str()),
                Value::Integer(now.as_micros()),
                Value::Text(&notice.webhook),
                Value::Text(&body),
            ],
        )?;
    }
    Ok(())
}

fn cloud_event<'a>(
    notice: &Notice,
    data: &'a serde_json::Value,
    id: &'a EntryId,
    session: &'a str,
    now: Timestamp,
) -> CloudEvent<'a> {
    CloudEvent {
        specversion: "1.0",
        id,
        source: format!("safepoint/{}", segment(&notice.atlas_id)),
        kind: format!("dev.safepoint.{}", notice.trigger.as_str()),
        time: now,
        subject: session,
        datacontenttype: "application/json",
        data,
    }
}

/// `text` as one segment of a path: `source` is a reference by RFC 3986.
fn segment(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        let plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        // Writing to a string never fails.
        let _ = match plain {
            true => write!(written, "{}", char::from(byte)),
            false => write!(written, "%{byte:02X}"),
        };
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ga_43_the_source_of_an_event_is_a_reference_whatever_the_atlas_is_called() {
        assert_eq!(segment("com.example-1_a~"), "com.example-1_a~");
        assert_eq!(segment("a b/ü?#:"), "a%20b%2F%C3%BC%3F%23%3A");
    }
}
