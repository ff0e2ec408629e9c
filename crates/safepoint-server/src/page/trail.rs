//! The trail: everything that was recorded, with filters, and checked in the browser.

use axum::response::{IntoResponse, Response};
use http::{Uri, header};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::ask::Words;
use super::form::Fields;
use super::frame::Here;
use super::show::{code, empty, short, text, time, url};
use super::timeline::{Entry, spaced};
use super::trouble::Trouble;
use super::visit::Visitor;

/// So many entries are on one page.
const PAGE: &str = "50";

/// What can be asked for: the field, the option, the label, an example.
const FILTERS: [(&str, &str, &str, &str); 8] = [
    ("session", "--session", "Session", "ses_…"),
    ("action", "--action", "Action", "act_…"),
    ("workspace", "--workspace", "Workspace", "wsp_…"),
    ("kind", "--kind", "Kind", "approval_decision"),
    ("actor", "--actor", "Actor", "operator:ada"),
    ("since", "--since", "Since", "24h"),
    ("until", "--until", "Until", "2026-11-16T12:00:00Z"),
    ("where", "--where", "In the body", "outcome=error"),
];

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
}

/// The newest entries that the filters let through.
fn words(fields: &Fields) -> Words {
    let words = Words::new(&["trail", "list"]).option("--last", Some(PAGE));
    FILTERS.iter().fold(words, |words, (field, option, ..)| {
        words.option(option, fields.get(field))
    })
}

/// The list.
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Trouble> {
    let fields = Fields::of(&uri);
    let listed = visitor.ask::<Entries>(words(&fields)).await;
    let (entries, refused) = match listed {
        Ok(Entries { entries }) => (entries, None),
        Err(trouble) if trouble.is_refusal() => (Vec::new(), Some(trouble)),
        Err(trouble) => return Err(trouble),
    };
    let query = uri.query().unwrap_or_default();
    let now = visitor.now();
    let filtered = FILTERS
        .iter()
        .any(|(field, ..)| fields.get(field).is_some());
    let body = html! {
        div.head { h1 { "Trail" } a href="/trail/verify" { "Check all of it" } }
        form.filter method="get" action="/trail" role="search" aria-label="Filter" {
            details open[filtered] {
                summary { "Filter" @if filtered { " (on)" } }
                div.fields { @for (field, _, label, example) in FILTERS {
                    div { label for={ "f-" (field) } { (label) }
                        input id={ "f-" (field) } name=(field) placeholder=(example) value=(fields.get(field).unwrap_or_default()) spellcheck="false"; }
                } }
                button { "Show" } " " @if filtered { a href="/trail" { "Without filters" } }
            }
        }
        @if let Some(trouble) = &refused { p.error role="alert" { (text(trouble.message())) ". " (text(trouble.hint())) } }
        div.checked id="checked" data-verify={ "/trail.json?" (query) } data-needs-script hidden {
            p role="status" { "Checking in this browser…" }
        }
        div id="entries" data-live {
            @if entries.is_empty() && refused.is_none() {
                (empty("No entry fits.", &html! { @if filtered { a href="/trail" { "Without filters" } } @else { "Whatever happens is recorded here." } }))
            }
            ol.entries { @for entry in entries.iter().rev() { (row(entry, now)) } }
            @if entries.len() >= PAGE.parse().unwrap_or(usize::MAX) {
                @if let Some(oldest) = entries.first() { p { a.button href=(older(&fields, &oldest.time)) { "Older" } } }
            }
        }
    };
    visitor.sheet(Here::Trail, "Trail", body).await
}

/// The page before: the same filters, and only what came earlier.
fn older(fields: &Fields, oldest: &str) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (field, ..) in FILTERS.iter().filter(|(field, ..)| *field != "until") {
        if let Some(value) = fields.get(field) {
            query.append_pair(field, value);
        }
    }
    query.append_pair("until", oldest);
    format!("/trail?{}", query.finish())
}

fn row(entry: &Entry, now: safepoint_model::Timestamp) -> Markup {
    let said = |name: &str| entry.body.get(name).and_then(Value::as_str);
    let told = [
        "canonical_request_summary",
        "text",
        "goal",
        "reason",
        "checkpoint_id",
        "outcome",
        "kind",
    ]
    .iter()
    .find_map(|name| said(name));
    let asked = entry.body.get("parameters");
    let asked = asked.and_then(|it| it.get("command")?.as_str());
    let told = asked.or(told);
    html! {
        li data-item data-seq=(entry.seq) data-hash=(entry.hash) {
            span.seq { (entry.seq) }
            span.seal data-seal aria-hidden="true" {}
            a href={ "/trail/entry/" (url(&entry.id)) } { (text(&spaced(&entry.kind))) }
            span.told { @if let Some(told) = told { (text(told)) } }
            span.faint { (text(&entry.actor)) " · " (time(&entry.time, now)) " · " (code(&entry.stream))
                @if let Some(action) = &entry.action_id { " · " (short(action)) } }
        }
    }
}

/// The same entries as data, for the browser to check.
pub(super) async fn data(visitor: Visitor, uri: Uri) -> Result<Response, Trouble> {
    let document: Value = visitor.ask(words(&Fields::of(&uri))).await?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, document.to_string()).into_response())
}

#[derive(Deserialize)]
struct Verified {
    valid: bool,
    #[serde(default)]
    checked: u64,
    #[serde(default)]
    witnessed: u64,
    #[serde(default)]
    outside_copy: Option<String>,
    #[serde(default)]
    outside_copy_since: Option<u64>,
    first_bad: Option<Bad>,
}

#[derive(Deserialize)]
struct Bad {
    seq: u64,
    id: Option<String>,
    reason: String,
}

/// What the server's own check says. It reads every entry.
pub(super) async fn verify(visitor: Visitor) -> Result<Response, Trouble> {
    let answer = visitor.run(Words::new(&["trail", "verify"])).await?;
    // A trail that does not hold is an answer, and the one that matters.
    let verified: Verified = match answer.document.get("valid") {
        Some(_) => super::ask::read(answer.document)?,
        None => return Err(Trouble::of(answer.exit, &answer.document)),
    };
    let Verified {
        valid,
        checked,
        witnessed,
        outside_copy,
        outside_copy_since,
        first_bad,
    } = &verified;
    let body = html! {
        p.way { a href="/trail" { "Trail" } " / check" }
        div.head { h1 { @if *valid { "The trail holds" } @else { "The trail does not hold" } } }
        section class={ "verdict " (if *valid { "good" } else { "bad" }) } id="loaded" {
            @if *valid {
                p { "The server has hashed all " (checked) " entries anew, and checked every chain and every signature."
                    @if outside_copy.as_deref() == Some("kept") { " " (witnessed) " of them are confirmed by the copy outside the database." } }
                @if let Some(since) = outside_copy_since {
                    p { "The copy outside the database was missing once. It was made anew when there were " (since) " entries, and confirms none of them." }
                }
            }
            @if let Some(Bad { seq, id, reason }) = first_bad {
                p { "The first bad entry is number " (seq) ": " (text(reason)) "." }
                @if let Some(id) = id { p { a.button href={ "/trail/entry/" (url(id)) } { "Look at it" } } }
            }
        }
        section.witness aria-labelledby="witness" {
            h2 id="witness" { "What this browser has seen" }
            p.faint { "The server checks itself above. This browser remembers the newest head that it has seen here, and asks for the proof that the trail still begins with it." }
            div.checked id="consistency" data-needs-script hidden { p role="status" { "Checking in this browser…" } }
            noscript { p { "That needs the script." } }
        }
    };
    visitor.sheet(Here::Trail, "Check", body).await
}
