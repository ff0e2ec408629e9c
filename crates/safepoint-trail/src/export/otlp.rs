//! Actions as spans of OpenTelemetry, in requests of OTLP/HTTP (JSON).
//!
//! A session is a trace. Each of its actions is one span, `execute_tool …`, from proposal
//! to outcome, below the span of the session; what happened in between are its events.
//! Ids of traces and spans are made from ours, so that exporting twice gives the same.
//! Digests of what is kept elsewhere are not told: they are evidence, not events.

mod wire;

use safepoint_model::{Frame, Timestamp};

use super::group::{Group, Groups, Key};
use super::statement::Told;
use super::story::{Body, Part, action_of, part};
use crate::{Entry, Stream};
use wire::{Attribute, Event, Link, Request, Span, Status};

/// How many spans a request has at most.
const MOST_SPANS: usize = 256;

/// How long a text may be; longer ones are cut.
const LONGEST_TEXT: usize = 8 << 10;

/// Turns entries into requests.
#[derive(Debug)]
pub(super) struct Spans {
    origin: String,
    groups: Groups,
    ready: Vec<Span>,
}

impl Spans {
    pub(super) fn new(origin: &str) -> Self {
        Self {
            origin: origin.to_owned(),
            groups: Groups::default(),
            ready: Vec::new(),
        }
    }

    /// Takes an entry, and gives the requests that are full now.
    pub(super) fn add(&mut self, entry: Entry) -> Result<Vec<String>, serde_json::Error> {
        let stream = Key::Stream(entry.stream.clone());
        let key = action_of(&entry).map(Key::Action);
        let is_evidence = part(entry.kind.as_str()) == Part::Digest;
        if key.is_some() || is_evidence {
            // A session lasts as long as something happens in it.
            self.groups.touch(&stream, entry.seq, entry.time);
        }
        if is_evidence {
            return Ok(Vec::new());
        }
        let key = key.unwrap_or(stream);
        let mut made_way = Vec::new();
        self.groups.add(key, entry, &mut made_way);
        let spans: Vec<Span> = made_way.iter().map(|group| self.span(group)).collect();
        self.ready.extend(spans);
        self.requests(MOST_SPANS)
    }

    /// Gives what is left.
    pub(super) fn finish(&mut self) -> Result<Vec<String>, serde_json::Error> {
        let left = self.groups.finish();
        let spans: Vec<Span> = left.iter().map(|group| self.span(group)).collect();
        self.ready.extend(spans);
        self.requests(1)
    }

    /// The requests for the spans that are ready, as long as there are at least `least`.
    fn requests(&mut self, least: usize) -> Result<Vec<String>, serde_json::Error> {
        let mut requests = Vec::new();
        while self.ready.len() >= least {
            let rest = self.ready.split_off(self.ready.len().min(MOST_SPANS));
            let spans = std::mem::replace(&mut self.ready, rest);
            requests.push(serde_json::to_string(&Request::new(&self.origin, spans))?);
        }
        Ok(requests)
    }

    fn span(&self, group: &Group) -> Span {
        let told = Told::of(group);
        let first = group.first();
        let stream = told.session.or_else(|| Some(&first?.stream));
        let trace = self.id::<16>(
            "safepoint/trace/v1",
            stream.map_or("", Stream::as_str),
            None,
        );
        let own = self.span_id(group.key.as_str(), None);
        let id = match first.filter(|_| group.continues) {
            Some(first) => self.span_id(group.key.as_str(), Some(first.id.as_str())),
            None => own.clone(),
        };
        let parent = match (&group.key, told.session) {
            (Key::Action(_), Some(session)) => self.span_id(session.as_str(), None),
            _ => String::new(),
        };
        let undone = told.undoes.as_ref().map(|undone| Link {
            trace_id: trace.clone(),
            span_id: self.span_id(undone.as_str(), None),
            attributes: vec![Attribute::text("safepoint.link", "undoes")],
        });
        let continued = group.continues.then(|| Link {
            trace_id: trace.clone(),
            span_id: own,
            attributes: vec![Attribute::text("safepoint.link", "continues")],
        });
        Span {
            trace_id: trace,
            span_id: id,
            parent_span_id: parent,
            name: name(group, &told),
            kind: wire::INTERNAL,
            start_time_unix_nano: nanos(told.began),
            end_time_unix_nano: nanos(match group.key {
                Key::Action(_) => told.ended.max(told.began),
                Key::Stream(_) => Some(group.until),
            }),
            attributes: attributes(group, &told),
            events: group.entries().map(event).collect(),
            dropped_events_count: group.omitted,
            links: undone.into_iter().chain(continued).collect(),
            status: status(&told),
        }
    }

    fn span_id(&self, key: &str, entry: Option<&str>) -> String {
        self.id::<8>("safepoint/span/v1", key, entry)
    }

    /// The first bytes of a digest over the log and what is named, in hexadecimal digits.
    fn id<const LENGTH: usize>(&self, tag: &str, key: &str, entry: Option<&str>) -> String {
        let mut frame = Frame::new(tag);
        frame.field(self.origin.as_bytes()).field(key.as_bytes());
        frame.field(entry.unwrap_or_default().as_bytes());
        let mut text = frame.digest().to_string();
        text.truncate(2 * LENGTH);
        text
    }
}

fn name(group: &Group, told: &Told<'_>) -> String {
    match (&group.key, told.agent) {
        (Key::Action(_), _) => format!("execute_tool {}", told.name(group)),
        (Key::Stream(stream), agent) if stream.as_str().starts_with("ses_") => {
            format!("invoke_agent {}", agent.unwrap_or_default())
                .trim_end()
                .to_owned()
        }
        (Key::Stream(stream), _) => format!("trail {stream}"),
    }
}

fn attributes(group: &Group, told: &Told<'_>) -> Vec<Attribute> {
    let mut attributes = Vec::new();
    let mut add = |name: &'static str, value: Option<&str>| {
        attributes.extend(value.map(|value| Attribute::text(name, cut(value))));
    };
    match &group.key {
        Key::Action(action) => {
            add("gen_ai.operation.name", Some("execute_tool"));
            add("gen_ai.tool.name", Some(&told.name(group)));
            add("gen_ai.tool.call.id", Some(action.as_str()));
            add("gen_ai.tool.type", Some("function"));
            add("gen_ai.tool.description", told.summary.as_deref());
            add("gen_ai.tool.call.arguments", told.arguments.as_deref());
            add("safepoint.action.id", Some(action.as_str()));
        }
        Key::Stream(stream) if told.session.is_some() => {
            add("gen_ai.operation.name", Some("invoke_agent"));
            add("safepoint.stream", Some(stream.as_str()));
        }
        Key::Stream(stream) => add("safepoint.stream", Some(stream.as_str())),
    }
    add("gen_ai.agent.name", told.agent);
    add("gen_ai.conversation.id", told.session.map(Stream::as_str));
    add("safepoint.decision", told.decision);
    add("safepoint.reason", told.reason.as_deref());
    add("safepoint.outcome", told.outcome.as_deref());
    if told.went_well() == Some(false) {
        add(
            "error.type",
            Some(told.outcome.as_deref().unwrap_or("denied")),
        );
    }
    attributes
}

fn event(entry: &Entry) -> Event {
    let body = Body::of(entry);
    let mut attributes = vec![
        Attribute::text("safepoint.entry.id", entry.id.as_str()),
        Attribute::integer("safepoint.entry.seq", entry.seq),
        Attribute::text("safepoint.entry.hash", entry.hash.to_string()),
        Attribute::text("safepoint.actor", entry.actor.as_str()),
        Attribute::text("safepoint.stream", entry.stream.as_str()),
        Attribute::text("safepoint.entry.body", cut(&entry.body)),
    ];
    let more = [
        ("safepoint.checkpoint.id", "checkpoint_id"),
        ("safepoint.hold.id", "hold_id"),
        ("safepoint.permit.id", "permit_id"),
        ("safepoint.fingerprint", "fingerprint"),
    ];
    for (name, field) in more {
        attributes.extend(
            body.text(field)
                .map(|text| Attribute::text(name, cut(text))),
        );
    }
    if let Some(code) = body.integer("exit_code") {
        attributes.push(Attribute::signed("process.exit.code", code));
    }
    Event {
        time_unix_nano: nanos(Some(entry.time)),
        name: entry.kind.to_string(),
        attributes,
    }
}

fn status(told: &Told<'_>) -> Status {
    match told.went_well() {
        None => Status::unset(),
        Some(true) => Status::good(),
        Some(false) => {
            let why = told.reason.as_deref().or(told.outcome.as_deref());
            Status::bad(cut(why.unwrap_or_default()))
        }
    }
}

/// Nanoseconds since 1970, as OTLP writes them in JSON.
fn nanos(time: Option<Timestamp>) -> String {
    let micros = time.map_or(0, Timestamp::as_micros);
    let nanos = u128::try_from(micros).unwrap_or(0) * 1000;
    u64::try_from(nanos).unwrap_or(u64::MAX).to_string()
}

/// A text that is not too long.
fn cut(text: &str) -> String {
    let mut end = text.len().min(LONGEST_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}
