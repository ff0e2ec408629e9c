//! What waits for a person, the oldest first.

use axum::response::Response;
use http::Uri;
use maud::{Markup, html};
use safepoint_model::Timestamp;
use serde::Deserialize;

use super::ask::Words;
use super::form::Fields;
use super::frame::Here;
use super::hold::Hold;
use super::show::{badge, code, command, count, empty, risk, sentence, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Holds {
    holds: Vec<Hold>,
    total: usize,
    next: Option<String>,
}

/// The inbox; with `all`, what is settled too.
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Trouble> {
    let fields = Fields::of(&uri);
    let all = fields.get("all").is_some();
    let after = fields.get("after");
    let words = match all {
        true => Words::new(&["hold", "list", "--all", "--limit=100"]),
        false => Words::new(&["hold", "list", "--limit=100"]),
    };
    let words = words.option("--after", after);
    let Holds { holds, total, next } = visitor.ask(words).await?;
    let now = visitor.now();
    let title = match (all, total) {
        (true, _) => "Everything that was asked".to_owned(),
        (false, 0) => "Inbox".to_owned(),
        (false, waiting) => format!("({waiting}) Inbox"),
    };
    let body = html! {
        div.head {
            h1 { @if all { "Everything that was asked" } @else { "What waits for you" } }
            @if all { a href="/" { "What waits" } } @else { a href="/?all=1" { "Settled too" } }
        }
        div id="holds" data-live {
            @if holds.is_empty() {
                (empty("Nothing waits.", &html! {
                    "What an agent may not do by itself appears here, as soon as it asks. To see how that looks:"
                    (command("safepoint exec --no-tui -- git push"))
                }))
            } @else {
                @if !all { p.lead { (count(total, "action waits", "actions wait")) ", the oldest first." } }
                @if after.is_some() { p { a href=(if all { "/?all=1" } else { "/" }) { "To the first of them" } } }
                ol.cards { @for hold in &holds { (card(hold, now)) } }
                @if let Some(next) = &next {
                    p { a.button href={ "/?after=" (url(next)) (if all { "&all=1" } else { "" }) } {
                        @if after.is_none() { (total.saturating_sub(holds.len())) " more" } @else { "More" } } }
                }
            }
        }
    };
    visitor.sheet(Here::Inbox, &title, body).await
}

fn card(hold: &Hold, now: Timestamp) -> Markup {
    let objective = hold.proposer.objective.as_deref();
    html! {
        li.card data-item {
            a.cover href={ "/holds/" (url(&hold.hold_id)) } { (code(&hold.canonical_request_summary)) }
            p.why { (sentence(&hold.reason())) }
            p.line {
                (risk(&hold.risk_classification)) " "
                (badge(&hold.reversibility_class)) " "
                @if hold.state != "pending" { (badge(&hold.state)) " " }
                @if let Some(first) = &hold.waits_for {
                    span.badge.plain { "not yet" } " "
                    a.first href={ "/holds/" (url(first)) } { (short(first)) " is decided first" } " "
                }
                @if hold.confirm.is_some() && hold.is_open() { span.badge.plain { "second confirmation" } " " }
                @if hold.quorum > 1 { span.badge.plain { (hold.decided_by.len()) " of " (hold.quorum) " said yes" } }
            }
            p.faint {
                (text(&hold.proposer.actor))
                @if let Some(objective) = objective { ": “" (text(objective)) "”" }
                " · asked " (time(&hold.since, now))
                @if hold.state == "pending" { " · ends " (time(&hold.expires_at, now)) }
            }
        }
    }
}
