//! In-toto statements: what is said about an action or an entry, with the digests of what
//! it is said about.

use safepoint_model::{ActionId, Digest, EntryId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::group::{Group, Key};
use super::story::{Body, Part, is_success, part};
use crate::note::PublicKey;
use crate::{Actor, Entry, Kind, Stream};

/// The type of every statement.
pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// What is said about an action.
pub const ACTION_PREDICATE: &str = "urn:safepoint:predicate:action:v1";
/// What is said about an entry that belongs to no action.
pub const ENTRY_PREDICATE: &str = "urn:safepoint:predicate:entry:v1";
/// What is said about the entries of a session.
pub const BUNDLE_PREDICATE: &str = "urn:safepoint:predicate:bundle:v1";

/// A statement, as it is signed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Statement {
    #[serde(rename = "_type")]
    pub(crate) kind: String,
    pub(crate) subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    pub(crate) predicate_type: String,
    pub(crate) predicate: Box<RawValue>,
}

/// What a statement is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) digest: Sha256,
}

/// A digest, by the name that in-toto gives its algorithm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sha256 {
    pub(crate) sha256: Digest,
}

impl Subject {
    pub(crate) fn new(name: impl Into<String>, sha256: Digest) -> Self {
        Self {
            name: name.into(),
            digest: Sha256 { sha256 },
        }
    }
}

/// What is said about an action.
#[derive(Serialize)]
struct ActionPredicate<'a> {
    log: &'a str,
    action_id: &'a str,
    session_id: Option<&'a Stream>,
    /// What it was, as rules name it.
    operation: Option<String>,
    summary: Option<String>,
    /// What was decided last.
    decision: Option<&'static str>,
    reason: Option<String>,
    /// How it ended.
    outcome: Option<String>,
    began: Option<Timestamp>,
    ended: Option<Timestamp>,
    /// Whether a statement before this one told of its beginning.
    continues: bool,
    /// How many entries are not listed.
    omitted: u32,
    entries: Vec<EntryLine<'a>>,
}

/// An entry, without its body, which its hash covers.
#[derive(Serialize)]
struct EntryLine<'a> {
    seq: u64,
    id: &'a EntryId,
    time: Timestamp,
    stream: &'a Stream,
    actor: &'a Actor,
    kind: &'a Kind,
    hash: Digest,
}

impl Statement {
    pub(crate) fn new<T: Serialize>(
        subject: Vec<Subject>,
        predicate_type: &str,
        predicate: &T,
    ) -> Result<Self, serde_json::Error> {
        Ok(Self {
            kind: STATEMENT.to_owned(),
            subject,
            predicate_type: predicate_type.to_owned(),
            predicate: serde_json::value::to_raw_value(predicate)?,
        })
    }

    /// What is said about an entry that belongs to no action: the entry itself.
    pub(super) fn of_entry(entry: &Entry) -> Result<Self, serde_json::Error> {
        let subject = Subject::new(entry.id.as_str(), entry.hash);
        Self::new(vec![subject], ENTRY_PREDICATE, entry)
    }

    /// What is said about an action.
    pub(super) fn of_action(group: &Group, key: &PublicKey) -> Result<Self, serde_json::Error> {
        let told = Told::of(group);
        let entries: Vec<EntryLine<'_>> = group
            .entries()
            .map(|entry| EntryLine {
                seq: entry.seq,
                id: &entry.id,
                time: entry.time,
                stream: &entry.stream,
                actor: &entry.actor,
                kind: &entry.kind,
                hash: entry.hash,
            })
            .collect();
        let predicate = ActionPredicate {
            log: key.name(),
            action_id: group.key.as_str(),
            session_id: told.session,
            operation: told.operation,
            summary: told.summary,
            decision: told.decision,
            reason: told.reason,
            outcome: told.outcome,
            began: told.began,
            ended: told.ended,
            continues: group.continues,
            omitted: group.omitted,
            entries,
        };
        Self::new(subjects(group), ACTION_PREDICATE, &predicate)
    }
}

/// What an action is known by: the fingerprint of its canonical form, or else the hash of the
/// entry it begins with; and the states that were kept around it.
fn subjects(group: &Group) -> Vec<Subject> {
    let mut subjects = Vec::new();
    let mut add = |subject: Subject| {
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    };
    let digest = |text: &str| text.parse::<Digest>().ok();
    let fingerprint = group
        .entries()
        .find_map(|entry| digest(Body::of(entry).text("fingerprint")?));
    let first = group.first().map(|entry| entry.hash);
    if let Some(known) = fingerprint.or(first) {
        add(Subject::new(group.key.as_str(), known));
    }
    for entry in group.entries() {
        let body = Body::of(entry);
        let hash = body
            .text("hash")
            .and_then(|hash| digest(hash.strip_prefix("sha256:")?));
        if let (Part::Checkpoint, Some(hash), Some(checkpoint)) =
            (part(entry.kind.as_str()), hash, body.text("checkpoint_id"))
        {
            add(Subject::new(checkpoint, hash));
        }
    }
    subjects
}

/// What the entries of a group say together.
#[derive(Default)]
pub(super) struct Told<'a> {
    pub(super) session: Option<&'a Stream>,
    pub(super) operation: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) decision: Option<&'static str>,
    pub(super) reason: Option<String>,
    pub(super) outcome: Option<String>,
    pub(super) arguments: Option<String>,
    pub(super) agent: Option<&'a str>,
    pub(super) undoes: Option<ActionId>,
    pub(super) began: Option<Timestamp>,
    pub(super) ended: Option<Timestamp>,
}

impl<'a> Told<'a> {
    pub(super) fn of(group: &'a Group) -> Self {
        let mut told = Self::default();
        let (mut proposed, mut concluded) = (None, None);
        for entry in group.entries() {
            let body = Body::of(entry);
            let part = part(entry.kind.as_str());
            if entry.stream.as_str().starts_with("ses_") {
                told.session.get_or_insert(&entry.stream);
            }
            if let Some(agent) = entry.actor.as_str().strip_prefix("agent:") {
                told.agent.get_or_insert(agent);
            }
            keep(&mut told.summary, body.summary());
            keep(&mut told.operation, body.operation());
            if let Some(parameters) = body.parameters().filter(|_| part == Part::Proposal) {
                keep(&mut told.arguments, Some(&parameters.to_string()));
            }
            if let Some(undone) = body.text("undoes") {
                told.undoes = undone.parse().ok();
            }
            told.ended = Some(entry.time);
            told.began.get_or_insert(entry.time);
            if matches!(group.key, Key::Stream(_)) {
                continue; // what is decided on the way is no outcome of a session
            }
            if let Some(decision) = decision(part, &body) {
                told.decision = Some(decision);
                told.reason = body.reason().map(str::to_owned);
            }
            match part {
                Part::Proposal => {
                    proposed.get_or_insert(entry.time);
                }
                Part::Leave => told.outcome = None, // it was denied, and asked for again
                Part::Outcome | Part::Return | Part::Denial => {
                    concluded = Some(entry.time);
                    told.outcome = outcome(part, entry.kind.as_str(), &body, told.outcome);
                }
                _ => {}
            }
        }
        told.began = proposed.or(told.began);
        told.ended = concluded.or(told.ended);
        told
    }

    /// What it is called: the operation, or else what its first entry is of.
    pub(super) fn name(&self, group: &Group) -> String {
        let kind = || Some(group.first()?.kind.to_string());
        self.operation.clone().or_else(kind).unwrap_or_default()
    }

    /// Whether it is known to have gone well, or not.
    pub(super) fn went_well(&self) -> Option<bool> {
        let denied = (self.decision == Some("deny")).then_some(false);
        let ended = self.outcome.as_deref().map(is_success);
        denied.or(ended)
    }
}

fn keep(place: &mut Option<String>, found: Option<&str>) {
    if place.is_none() {
        *place = found.map(str::to_owned);
    }
}

fn decision(part: Part, body: &Body) -> Option<&'static str> {
    match part {
        Part::Leave => Some("allow"),
        Part::Denial => Some("deny"),
        Part::Hold => Some("hold"),
        Part::Decision => match body.text("state") {
            Some("approved") => Some("allow"),
            Some("denied" | "halted") => Some("deny"),
            _ => None,
        },
        _ => None,
    }
}

fn outcome(part: Part, kind: &str, body: &Body, before: Option<String>) -> Option<String> {
    let said = body.text("outcome").map(str::to_owned);
    match (part, kind) {
        (Part::Denial, _) => Some("denied".to_owned()),
        (_, "mutation_failed" | "roll_back_failed") => Some("failed".to_owned()),
        (_, "mutation_unknown") => Some("unknown".to_owned()),
        (Part::Return, _) => Some("ok".to_owned()),
        _ => said.or(before),
    }
}
