//! The sessions of agents, the newest first.

use axum::response::Response;
use maud::html;
use serde::Deserialize;

use super::ask::Words;
use super::frame::Here;
use super::show::{badge, code, command, empty, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Sessions {
    sessions: Vec<Session>,
}

#[derive(Deserialize)]
struct Session {
    session_id: String,
    started: String,
    ended: Option<String>,
    goal: Option<String>,
    principal: String,
    atlases: Vec<String>,
    holds: u64,
}

/// The list.
pub(super) async fn page(visitor: Visitor) -> Result<Response, Trouble> {
    let words = Words::new(&["session", "list", "--limit=200"]);
    let Sessions { sessions } = visitor.ask(words).await?;
    let now = visitor.now();
    let body = html! {
        div.head { h1 { "Sessions" } }
        div id="sessions" data-live {
            @if sessions.is_empty() {
                (empty("No agent has worked yet.", &html! {
                    "Put the hooks into your agent's client, and its work appears here:"
                    (command("safepoint install claude-code"))
                }))
            }
            ol.cards {
                @for session in &sessions {
                    li.card data-item {
                        a.cover href={ "/sessions/" (url(&session.session_id)) } {
                            @match &session.goal { Some(goal) => (text(goal)), None => "Without a goal" }
                        }
                        p.line {
                            @if session.ended.is_some() { (badge("ended")) } @else { (badge("open")) }
                            @if session.holds > 0 { " " span.badge.warn { (session.holds) " asked" } }
                        }
                        p.faint { (text(&session.principal)) " · began " (time(&session.started, now))
                            @if let Some(ended) = &session.ended { " · ended " (time(ended, now)) }
                            " · " (short(&session.session_id)) " · under "
                            @for atlas in &session.atlases { (code(atlas)) " " } }
                    }
                }
            }
        }
    };
    visitor.sheet(Here::Sessions, "Sessions", body).await
}
