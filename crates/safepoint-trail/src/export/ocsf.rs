//! An entry as an event of the Open Cybersecurity Schema Framework.
//!
//! What agents do, and what is decided about it, is API activity; what is administered,
//! entity management; a wrong token, authentication. What is none of these is a base
//! event: a class that does not fit would be worse than none. What OCSF has no place for
//! stands under `unmapped`, so that the entry can be put together again and its hash
//! computed anew.

mod classes;

use safepoint_model::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use super::PROGRAM_VERSION;
use super::story::{Body, part};
use crate::Entry;
use crate::note::PublicKey;
use classes::{Class, Ruling, Standing};

/// The version of OCSF that events follow: the first with record integrity.
pub const VERSION: &str = "1.9.0";

#[derive(Serialize)]
struct Event<'a> {
    activity_id: u32,
    activity_name: &'a str,
    category_uid: u32,
    category_name: &'static str,
    class_uid: u32,
    class_name: &'static str,
    type_uid: u32,
    type_name: String,
    severity_id: u32,
    severity: &'static str,
    status_id: u32,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_detail: Option<&'a str>,
    time: i64,
    message: String,
    metadata: Metadata<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<Actor<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<User<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    api: Option<Api<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    src_endpoint: Option<Endpoint>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resources: Vec<Named<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ai_agent: Option<Agent<'a>>,
    #[serde(flatten)]
    ruling: Option<Ruling>,
    attestation_list: [Attestation<'a>; 1],
    unmapped: Unmapped<'a>,
}

#[derive(Serialize)]
struct Metadata<'a> {
    version: &'static str,
    product: Product,
    profiles: Vec<&'static str>,
    uid: String,
    original_event_uid: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_uid: Option<&'a str>,
    event_code: &'a str,
    log_name: &'a str,
    log_provider: &'a str,
    sequence: u64,
    original_time: Timestamp,
    logged_time: i64,
}

#[derive(Serialize)]
struct Product {
    name: &'static str,
    vendor_name: &'static str,
    version: &'static str,
}

/// What can be called by a name or an id.
#[derive(Serialize)]
struct Named<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
}

#[derive(Serialize)]
struct Actor<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<User<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_uid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Session<'a>>,
}

#[derive(Serialize)]
struct User<'a> {
    name: &'a str,
    uid: &'a str,
    type_id: u32,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Session<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
struct Api<'a> {
    operation: &'a str,
    service: Named<'static>,
    request: Request<'a>,
}

#[derive(Serialize)]
struct Request<'a> {
    uid: &'a str,
}

#[derive(Serialize)]
struct Endpoint {
    svc_name: &'static str,
}

#[derive(Serialize)]
struct Agent<'a> {
    uid: &'a str,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_uid: Option<&'a str>,
    type_id: u32,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct Attestation<'a> {
    uid: &'a str,
    authority_uid: String,
    chain_uid: String,
    fingerprint: Fingerprint,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_event: Option<PreviousEvent>,
}

#[derive(Serialize)]
struct PreviousEvent {
    uid: String,
    fingerprint: Fingerprint,
}

#[derive(Serialize)]
struct Fingerprint {
    algorithm_id: u32,
    algorithm: &'static str,
    value: String,
}

impl Fingerprint {
    fn sha_256(value: String) -> Self {
        Self {
            algorithm_id: 3,
            algorithm: "SHA-256",
            value,
        }
    }
}

/// What is needed besides `metadata` to compute the entry's hash.
#[derive(Serialize)]
struct Unmapped<'a> {
    format: &'static str,
    stream: &'a str,
    actor: &'a str,
    kind: &'a str,
    action_id: Option<&'a str>,
    body: &'a RawValue,
}

/// The event of an entry that `key` signs for.
pub(super) fn event(entry: &Entry, key: &PublicKey) -> Result<String, serde_json::Error> {
    let raw = entry.raw_body()?;
    let body = Body::of(entry);
    let kind = entry.kind.as_str();
    let part = part(kind);
    let class = Class::of(part);
    let operation = body.operation().unwrap_or(kind);
    let activity = class.activity(part, kind, operation);
    let (severity_id, severity) = classes::severity(part, &body);
    let standing = Standing::of(part, &body);
    let ruling = Ruling::of(part, &body, severity_id);
    let stream = entry.stream.as_str();
    let session = stream.starts_with("ses_").then_some(stream);
    let name = entry.actor.as_str();
    let agent = name.strip_prefix("agent:").filter(|_| class != Class::Base);
    let hash = entry.hash.to_string();
    let mut profiles = vec!["record_integrity"];
    profiles.extend(ruling.as_ref().map(|_| "security_control"));
    profiles.extend(agent.map(|_| "ai_operation"));
    let millis = entry.time.as_micros().div_euclid(1000);
    serde_json::to_string(&Event {
        activity_id: activity.id,
        activity_name: activity.name,
        category_uid: class.category().0,
        category_name: class.category().1,
        class_uid: class.uid(),
        class_name: class.name(),
        type_uid: class.uid() * 100 + activity.id,
        type_name: format!("{}: {}", class.name(), activity.caption()),
        severity_id,
        severity,
        status_id: standing.id,
        status: standing.name,
        status_detail: body.reason(),
        time: millis,
        message: message(kind, &body),
        metadata: Metadata {
            version: VERSION,
            product: Product {
                name: "Safepoint",
                vendor_name: "Safepoint",
                version: PROGRAM_VERSION,
            },
            profiles,
            uid: hash.clone(),
            original_event_uid: entry.id.as_str(),
            correlation_uid: entry.action_id.as_ref().map(|action| action.as_str()),
            event_code: kind,
            log_name: stream,
            log_provider: key.name(),
            sequence: entry.seq,
            original_time: entry.time,
            logged_time: millis,
        },
        actor: (class != Class::Base).then(|| actor(name, session)),
        user: (class == Class::Authentication).then(|| user(name)),
        service: (class == Class::Authentication).then(safepoint),
        entity: (class == Class::EntityManagement).then(|| entity(entry, &body)),
        api: (class == Class::ApiActivity).then(|| Api {
            operation,
            service: safepoint(),
            request: Request {
                uid: entry
                    .action_id
                    .as_ref()
                    .map_or(entry.id.as_str(), |action| action.as_str()),
            },
        }),
        src_endpoint: (class == Class::ApiActivity).then_some(Endpoint {
            svc_name: "safepoint",
        }),
        resources: match class {
            Class::ApiActivity => resources(&body),
            _ => Vec::new(),
        },
        ai_agent: agent.map(|agent| Agent {
            uid: name,
            name: agent,
            instance_uid: session,
            type_id: 0,
            kind: "Unknown",
        }),
        ruling,
        attestation_list: [Attestation {
            uid: entry.id.as_str(),
            authority_uid: crate::dsse::key_hint(key),
            chain_uid: format!("{}/{stream}", key.name()),
            fingerprint: Fingerprint::sha_256(hash),
            prev_event: entry.prev_hash.map(|hash| PreviousEvent {
                uid: hash.to_string(),
                fingerprint: Fingerprint::sha_256(hash.to_string()),
            }),
        }],
        unmapped: Unmapped {
            format: crate::ENTRY_TAG,
            stream,
            actor: name,
            kind,
            action_id: entry.action_id.as_ref().map(|action| action.as_str()),
            body: &raw,
        },
    })
}

fn safepoint() -> Named<'static> {
    Named {
        name: Some("safepoint"),
        uid: None,
        kind: None,
    }
}

fn actor<'a>(name: &'a str, session: Option<&'a str>) -> Actor<'a> {
    let is_person = name.starts_with("user:") || name.starts_with("operator:");
    Actor {
        user: is_person.then(|| user(name)),
        app_name: (!is_person).then(|| name.strip_prefix("agent:").unwrap_or(name)),
        app_uid: (!is_person).then_some(name),
        session: session.map(|uid| Session { uid }),
    }
}

fn user(name: &str) -> User<'_> {
    let (type_id, kind) = match name.split_once(':').map(|(kind, _)| kind) {
        Some("user") => (1, "User"),
        Some("operator") => (2, "Admin"),
        _ => (0, "Unknown"),
    };
    User {
        name: name.split_once(':').map_or(name, |(_, name)| name),
        uid: name,
        type_id,
        kind,
    }
}

/// What is administered: the first id that the body has.
fn entity<'a>(entry: &'a Entry, body: &'a Body) -> Named<'a> {
    let ids = [
        ("permit_id", "permit"),
        ("checkpoint_id", "checkpoint"),
        ("workspace_id", "workspace"),
        ("boundary", "trust"),
        ("operator", "operator"),
        ("name", "operator"),
    ];
    let found = ids
        .iter()
        .find_map(|(name, kind)| body.text(name).map(|uid| (uid, *kind)));
    let (uid, kind) = found.unwrap_or((entry.stream.as_str(), "stream"));
    Named {
        name: None,
        uid: Some(uid),
        kind: Some(kind),
    }
}

fn resources(body: &Body) -> Vec<Named<'_>> {
    let files = body.paths().map(|path| Named {
        name: Some(path),
        uid: None,
        kind: Some("file"),
    });
    let checkpoints = ["checkpoint_id", "before", "after"].into_iter();
    let checkpoints = checkpoints
        .filter_map(|name| body.text(name))
        .filter(|id| id.starts_with("chk_"))
        .map(|id| Named {
            name: None,
            uid: Some(id),
            kind: Some("checkpoint"),
        });
    files.chain(checkpoints).collect()
}

/// A line for people.
fn message(kind: &str, body: &Body) -> String {
    match body.summary().or_else(|| body.operation()) {
        Some(what) => format!("{kind}: {what}"),
        None => kind.to_owned(),
    }
}
