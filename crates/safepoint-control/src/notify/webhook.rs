//! A signed CloudEvent, in structured mode, by the scheme of Standard Webhooks.

use safepoint_trail::Trail;
use serde::Serialize;
use serde_json::{Value, json};

use super::vault::Kept;
use super::{Letter, Target, Told};

/// What the event says besides its attributes.
#[derive(Serialize)]
struct Data<'a> {
    topic: &'static str,
    title: &'static str,
    hold_id: Option<&'a str>,
    /// Where a person looks and decides.
    page: Option<&'a str>,
    /// What a person runs to look.
    command: Option<&'a str>,
    /// The body of the entry; null when it is too large, and then in the trail alone.
    entry: Option<&'a Value>,
}

/// The message for one event.
pub(super) fn letter(
    told: &Told,
    trail: &Trail,
    target: &Target,
    kept: &Kept,
    links: &Links,
    now: safepoint_model::Timestamp,
) -> Result<Letter, serde_json::Error> {
    let data = Data {
        topic: told.topic.as_str(),
        title: told.title,
        hold_id: told.hold.as_deref(),
        page: links.page.as_deref(),
        command: links.command.as_deref(),
        entry: told.body.as_ref(),
    };
    let kind = format!("dev.safepoint.{}", told.event);
    let body = trail.cloud_event(&told.entry, &kind, &data)?;
    Ok(sealed(told.entry.id.as_str(), body, target, kept, now))
}

/// A message that only says that it arrived.
pub(super) fn trial(
    id: &str,
    trail: &Trail,
    target: &Target,
    kept: &Kept,
    now: safepoint_model::Timestamp,
) -> Letter {
    let body = json!({
        "specversion": "1.0", "id": id, "source": trail.key().name(),
        "type": "dev.safepoint.test", "time": now, "datacontenttype": "application/json",
        "data": {"title": "A test: nothing has happened", "target": target.name},
    });
    sealed(id, body.to_string(), target, kept, now)
}

fn sealed(
    id: &str,
    body: String,
    target: &Target,
    kept: &Kept,
    now: safepoint_model::Timestamp,
) -> Letter {
    let seconds = now.as_micros().div_euclid(1_000_000);
    let mut headers = vec![
        (
            "content-type",
            "application/cloudevents+json; charset=utf-8".to_owned(),
        ),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", seconds.to_string()),
    ];
    if let Some(secret) = &kept.secret {
        headers.push(("webhook-signature", secret.sign(id, seconds, &body)));
    }
    Letter {
        url: kept.url.clone(),
        reach: target.reach(),
        authority: kept.authority.clone(),
        headers,
        body,
        hopeless: &[],
        now,
    }
}

/// Where a person goes from here.
pub(super) struct Links {
    pub(super) page: Option<String>,
    pub(super) command: Option<String>,
}

impl Links {
    /// The page and the command for what was told. The page is only linked where somebody
    /// said where it is.
    pub(super) fn of(told: &Told, page: Option<&str>) -> Self {
        let hold = told.hold.as_deref();
        // An id is letters, digits and `_`; anything else is no id, and leads nowhere.
        let hold = hold.filter(|it| it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
        Self {
            page: page
                .zip(hold)
                .map(|(page, hold)| format!("{}/holds/{hold}", page.trim_end_matches('/'))),
            command: hold.map(|hold| format!("safepoint hold show {hold}")),
        }
    }
}
