//! Which entries of the trail are told, and as what. This is the one place that says so.
//!
//! What is told was redacted when it was recorded; what others wrote is still to be made safe
//! for wherever it is shown. Nothing about telling is told: it would never end.

use safepoint_model::Timestamp;
use safepoint_store::Sql;
use safepoint_trail::{Entry, Trail, page_of_kinds};
use serde_json::Value;

use super::Topic;
use crate::ControlError;

/// How many entries are read at once.
const PAGE: usize = 100;

/// The largest body that is sent along.
const LARGEST_BODY: usize = 128 << 10;

/// The kinds that may be told.
const KINDS: [&str; 16] = [
    "checkpoint_pending",
    "approval_decision",
    "action_denied",
    "action_intended",
    "permit_issued",
    "permit_revoked",
    "integrity_violation",
    "AtlasRefused",
    "trust_changed",
    "mutation_unknown",
    "roll_back_failed",
    "action_ended",
    "authentication_failed",
    "budget_warning",
    "budget_exceeded",
    "conflict_detected",
];

/// Something to tell.
#[derive(Clone, Debug)]
pub struct Told {
    /// The entry it is about.
    pub entry: Entry,
    /// What it is about, for whoever chooses.
    pub topic: Topic,
    /// What happened, such as `hold.opened`.
    pub event: &'static str,
    /// The same for people, in our own words.
    pub title: &'static str,
    /// What is known of it. Values may be anybody's words.
    pub facts: Vec<Fact>,
    /// Exactly what would be done, where something waits.
    pub form: Option<String>,
    /// The hold it is about.
    pub hold: Option<String>,
    /// When it is denied, if nobody decides.
    pub expires: Option<Timestamp>,
    /// The body of the entry; none when it is too large to send.
    pub body: Option<Value>,
}

/// One thing that is known.
pub type Fact = (&'static str, String);

/// The first entry from `from` on that is told under one of the topics, and the place behind
/// all that was looked at.
pub fn follow(
    sql: &mut dyn Sql,
    trail: &Trail,
    mut from: u64,
    wanted: &dyn Fn(Topic) -> bool,
) -> Result<(Option<Told>, u64), ControlError> {
    loop {
        let (entries, end) = page_of_kinds(sql, &KINDS, from, PAGE)?;
        let is_last = entries.len() < PAGE;
        for entry in entries {
            let next = entry.seq + 1;
            let body = trail.body(&entry)?;
            if let Some(told) = told(entry, &body).filter(|told| wanted(told.topic)) {
                return Ok((Some(told), next));
            }
        }
        if is_last {
            return Ok((None, end));
        }
        from = end;
    }
}

/// What an entry is told as, if it is.
fn told(entry: Entry, body: &str) -> Option<Told> {
    let value: Value = serde_json::from_str(body).ok()?;
    let field = |name: &str| text_at(&value, name);
    let (topic, event, title) = match entry.kind.as_str() {
        "checkpoint_pending" => (
            Topic::Holds,
            "hold.opened",
            "An action waits for a decision",
        ),
        "approval_decision" => match field("state")?.as_str() {
            "approved" => (Topic::Decisions, "hold.approved", "An operator approved"),
            "denied" => (Topic::Decisions, "hold.denied", "An operator denied"),
            "halted" => (
                Topic::Decisions,
                "hold.halted",
                "An operator halted the session",
            ),
            _ => (
                Topic::Decisions,
                "hold.noted",
                "An operator agreed, and another one is needed",
            ),
        },
        "action_denied" if field("code")? == "TIMED_OUT" => (
            Topic::Decisions,
            "hold.expired",
            "Nobody decided in time, so it is denied",
        ),
        "action_denied" if field("code")? == "SESSION_ENDED" => (
            Topic::Decisions,
            "hold.closed",
            "Its session ended before anybody decided, so it is denied",
        ),
        "action_denied" if field("code")? == "CONTROL_FORBIDDEN" => (
            Topic::Incidents,
            "incident.control",
            "An agent tried to touch Safepoint itself",
        ),
        "action_intended" if field("permit_id").is_some() => {
            (Topic::Permits, "permit.used", "A permit is used")
        }
        "permit_issued" => (Topic::Permits, "permit.issued", "A permit was issued"),
        "permit_revoked" => (Topic::Permits, "permit.revoked", "A permit was revoked"),
        "integrity_violation" => (
            Topic::Incidents,
            "incident.integrity",
            "What is stored is not what was recorded",
        ),
        "AtlasRefused" => (
            Topic::Incidents,
            "incident.rules",
            "The rules of a session were changed under it",
        ),
        "trust_changed" if field("event")? == "violation" => (
            Topic::Incidents,
            "incident.trust",
            "A boundary was violated, and is trusted no more",
        ),
        "mutation_unknown" => (
            Topic::Incidents,
            "incident.unknown",
            "A change was cut off, and nobody saw how far it came",
        ),
        "action_ended" if value.get("stray_writes").is_some() => (
            Topic::Incidents,
            "incident.stray_write",
            "A client's file tool wrote somewhere else than it was let through for",
        ),
        "action_ended" if field("outcome")? == "unknown" => (
            Topic::Incidents,
            "incident.unknown",
            "An action was cut off, and nobody saw how far it came",
        ),
        "roll_back_failed" => (
            Topic::Incidents,
            "incident.roll_back",
            "A roll back could not be finished",
        ),
        "authentication_failed" => (
            Topic::Incidents,
            "incident.identity",
            "Somebody came to a workspace with a wrong token",
        ),
        "budget_warning" => (Topic::Budget, "budget.near", "A limit is near"),
        "budget_exceeded" => (Topic::Budget, "budget.exceeded", "A limit was passed"),
        "conflict_detected" => (
            Topic::Workspaces,
            "workspace.conflicted",
            "Work conflicts with what was done meanwhile",
        ),
        _ => return None,
    };
    let waits = entry.kind.as_str() == "checkpoint_pending";
    Some(Told {
        topic,
        event,
        title,
        facts: facts(&entry, &value),
        form: value
            .get("canonical_form")
            .filter(|_| waits)
            .and_then(|form| serde_json::to_string_pretty(&with_names_only(form)).ok()),
        hold: field("hold_id"),
        expires: field("expires_at")
            .filter(|_| waits)
            .and_then(|time| Timestamp::parse(&time).ok()),
        body: (body.len() <= LARGEST_BODY).then_some(value),
        entry,
    })
}

/// The form with the names of its variables alone: people look for those, and for no digest.
fn with_names_only(form: &Value) -> Value {
    let mut form = form.clone();
    if let Some(variables) = form.get_mut("environment") {
        let names = variables.as_object().into_iter().flat_map(|it| it.keys());
        *variables = names.cloned().collect();
    }
    form
}

/// What is shown of an entry: the fields that people look for, where it has them.
fn facts(entry: &Entry, body: &Value) -> Vec<Fact> {
    const SHOWN: [(&str, &str); 22] = [
        ("What", "/canonical_request_summary"),
        ("What", "/summary"),
        ("Who", "/proposer/actor"),
        ("What for", "/proposer/objective"),
        ("Why", "/trigger_description"),
        ("Why", "/reason"),
        ("Why", "/description"),
        ("Risk", "/risk_classification"),
        ("Can be undone", "/reversibility_class"),
        ("Not covered", "/coverage/not_covered"),
        ("Operators needed", "/quorum"),
        ("Workspace", "/workspace"),
        ("Workspace", "/workspace_id"),
        ("Limit", "/budget_dimension"),
        ("Used", "/used"),
        ("Of", "/limit"),
        ("Files", "/resources"),
        ("Boundary", "/boundary"),
        ("Subject", "/subject_id"),
        ("Violation", "/violation"),
        ("Permit", "/permit_id"),
        ("Hold", "/hold_id"),
    ];
    let shown = SHOWN.iter().filter_map(|(label, path)| {
        let value = match body.pointer(path)? {
            Value::Null => return None,
            Value::String(text) if text.is_empty() => return None,
            Value::String(text) => text.clone(),
            Value::Array(items) if items.is_empty() => return None,
            Value::Array(items) => {
                let words = items.iter().map(|item| match item {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                });
                words.collect::<Vec<_>>().join("; ")
            }
            other => other.to_string(),
        };
        Some((*label, value))
    });
    let mut facts: Vec<Fact> = shown.collect();
    if body.pointer("/proposer/actor").is_none() {
        facts.push(("By", entry.actor.to_string()));
    }
    facts.push(("In", entry.stream.to_string()));
    facts
}

fn text_at(body: &Value, name: &str) -> Option<String> {
    body.get(name)?.as_str().map(str::to_owned)
}
