//! One session, as a timeline of what it did.

use std::collections::HashMap;

use axum::extract::Path;
use axum::response::Response;
use http::Uri;
use maud::{Markup, html};
use safepoint_model::Timestamp;
use serde::Deserialize;

use super::ask::Words;
use super::form::Fields;
use super::frame::Here;
use super::show::{badge, code, empty, short, text, time, url};
use super::timeline::{Entry, Logged, Step, steps};
use super::trouble::Trouble;
use super::visit::Visitor;
use super::{checkpoints, diff};

/// So many entries are read for one page.
const PAGE: &str = "600";
/// Workspaces whose log is looked through, and how far.
const MOST_PLACES: usize = 8;

#[derive(Deserialize)]
struct Shown {
    session_id: String,
    session: Session,
}

#[derive(Deserialize)]
struct Session {
    principal: String,
    goal: Option<String>,
    started: String,
    ended: Option<String>,
    actions: u64,
    atlases: Vec<Atlas>,
}

#[derive(Deserialize)]
struct Atlas {
    atlas_id: String,
    version: String,
}

#[derive(Deserialize)]
struct Entries {
    entries: Vec<Entry>,
    next: Option<String>,
}

#[derive(Deserialize)]
struct Log {
    actions: Vec<Logged>,
}

/// One session.
pub(super) async fn page(
    visitor: Visitor,
    Path(id): Path<String>,
    uri: Uri,
) -> Result<Response, Trouble> {
    let shown: Shown = visitor
        .ask(Words::new(&["session", "show"]).ids(&[&id])?)
        .await?;
    let from = Fields::of(&uri).get("from").map(str::to_owned);
    let words = Words::new(&["trail", "list"])
        .option("--session", Some(&shown.session_id))
        .option("--limit", Some(PAGE))
        .option("--from", from.as_deref());
    let Entries { entries, next } = visitor.ask(words).await?;
    let steps = steps(&entries);
    let logged = logged(&visitor).await;
    let now = visitor.now();
    let session = &shown.session;
    let title = session
        .goal
        .clone()
        .unwrap_or_else(|| shown.session_id.clone());
    let body = html! {
        p.way { a href="/sessions" { "Sessions" } " / " (short(&shown.session_id)) }
        div.head { h1 { (text(&title)) } }
        div id="session" data-live {
            p.line {
                @if session.ended.is_some() { (badge("ended")) } @else { (badge("open")) } " "
                span.faint { (text(&session.principal)) " · began " (time(&session.started, now))
                    @if let Some(ended) = &session.ended { " · ended " (time(ended, now)) }
                    " · " (session.actions) " actions · under "
                    @for atlas in &session.atlases { a href="/rules" { (code(&format!("{}@{}", atlas.atlas_id, atlas.version))) } " " } }
            }
            @if steps.is_empty() { (empty("Nothing was done yet.", &html! { "What the agent asks for appears here at once." })) }
            ol.timeline { @for step in &steps { (one(step, &logged, now, visitor.decides())) } }
            @if let Some(next) = &next {
                p { a.button href={ "/sessions/" (url(&shown.session_id)) "?from=" (url(next)) } { "What came later" } }
            }
        }
        p.faint { a href={ "/trail?session=" (url(&shown.session_id)) } { "All its entries in the trail" } }
    };
    visitor.sheet(Here::Sessions, &title, body).await
}

/// What the logs say, by action. Without them the timeline has no changes, and is shown still.
async fn logged(visitor: &Visitor) -> HashMap<String, Logged> {
    let mut found = HashMap::new();
    for place in checkpoints::places(visitor).await.iter().take(MOST_PLACES) {
        let words = Words::new(&["log", "--limit=500"]).within(place);
        if let Ok(Log { actions }) = visitor.ask::<Log>(words).await {
            found.extend(actions.into_iter().map(|it| (it.action_id.clone(), it)));
        }
    }
    found
}

fn one(step: &Step, logged: &HashMap<String, Logged>, now: Timestamp, decides: bool) -> Markup {
    let action = step.action_id.as_deref();
    let logged = action.and_then(|action| logged.get(action));
    let checkpoint = step.checkpoint_id.as_deref();
    let checkpoint = checkpoint.or_else(|| logged?.checkpoint_id.as_deref());
    let tone = match (step.decision.as_deref(), step.outcome.as_deref()) {
        (Some("denied" | "deny" | "halted"), _) | (_, Some("error")) => "bad",
        (Some("waits" | "requires_approval" | "hold"), _) | (_, Some("unknown")) => "warn",
        (_, Some(_)) => "good",
        _ => "plain",
    };
    html! {
        li class={ "step is-" (tone) } data-item {
            div.when { (time(&step.time, now)) }
            div.what {
                p.title {
                    @if let Some(entry) = &step.entry { a href={ "/trail/entry/" (url(entry)) } { (text(&step.summary)) } }
                    @else if let Some(action) = action { a href={ "/trail?action=" (url(action)) } { (code(&step.summary)) } }
                }
                @if action.is_some() {
                    p.line {
                        @if let Some(decision) = &step.decision { (badge(decision)) " " }
                        @if let Some(outcome) = &step.outcome { (badge(outcome)) " " }
                        @if let Some(hold) = &step.hold_id { a href={ "/holds/" (url(hold)) } { "hold" } " " }
                        @for decided in &step.decided { span.faint { (text(decided)) } " " }
                    }
                    @if let Some(reason) = &step.reason { p.faint { (text(reason)) } }
                    @for effect in &step.effects { p.faint { (text(effect)) } }
                }
                @if let Some(undone) = logged.and_then(|it| it.undoes.as_ref()) { p.faint { "takes back " (short(undone)) } }
                @if let Some(logged) = logged { (changed(logged)) }
                @if let (Some(action), Some(_)) = (action, checkpoint) {
                    p.small {
                        @if let Some(checkpoint) = checkpoint { a href={ "/checkpoints/" (url(checkpoint)) } { "checkpoint before it" } }
                        @if decides && logged.is_some_and(|it| !it.changes.is_empty()) {
                            " · " a href={ "/actions/" (url(action)) "/undo" } { "undo…" }
                        }
                    }
                }
            }
        }
    }
}

fn changed(logged: &Logged) -> Markup {
    let between = logged
        .checkpoint_id
        .as_ref()
        .zip(logged.after_checkpoint_id.as_ref());
    html! {
        @if !logged.changes.is_empty() {
            (diff::changes(logged.changes.get(..8).unwrap_or(&logged.changes)))
            @if logged.changes.len() > 8 { p.faint { "and " (logged.changes.len() - 8) " more" } }
            @if let Some((before, after)) = between {
                @let address = format!("/checkpoints/{}/diff/{}", url(before), url(after));
                details data-load=(address) data-key=(logged.action_id) {
                    summary { "Difference" }
                    p.faint { "It is on " a href=(address) { "a page of its own" } "." }
                }
            }
        }
    }
}
