//! How everything stands, at a glance.

use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::ask::Words;
use super::frame::Here;
use super::show::{badge, bytes, code, command, empty, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Status {
    version: String,
    trail: Trail,
    settings: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Trail {
    entries: u64,
    witnessed: u64,
    origin: String,
    key: String,
}

#[derive(Deserialize)]
struct Usage {
    bytes: u64,
    cap: Option<u64>,
    checkpoints: u64,
    workspaces: Vec<Used>,
}

#[derive(Deserialize)]
struct Used {
    workspace: String,
    checkpoints: u64,
    bytes: u64,
}

#[derive(Deserialize)]
struct Operators {
    operators: Vec<Operator>,
}

#[derive(Deserialize)]
struct Operator {
    name: String,
    key: String,
    since: String,
    removed: Option<String>,
}

#[derive(Deserialize)]
struct Permits {
    permits: Vec<Permit>,
}

#[derive(Deserialize)]
struct Permit {
    permit_id: String,
    hold_id: String,
    expires_at: String,
    state: Value,
}

/// The overview.
pub(super) async fn page(visitor: Visitor) -> Result<Response, Trouble> {
    let status: Status = visitor.ask(Words::new(&["status"])).await?;
    let usage = visitor.ask::<Usage>(Words::new(&["du"])).await;
    let operators = visitor
        .ask::<Operators>(Words::new(&["operator", "list"]))
        .await;
    let permits = visitor
        .ask::<Permits>(Words::new(&["permit", "list", "--limit=10"]))
        .await;
    let now = visitor.now();
    let Trail {
        entries,
        witnessed,
        origin,
        key,
    } = &status.trail;
    let body = html! {
        div.head { h1 { "Status" } a href="/status/doctor" { "Try the hooks" } }
        div id="status" data-live {
            div.tiles {
                div.tile { p.figure { (entries) } p { "entries in the trail" }
                    p.faint { @if witnessed == entries { "all of them copied outside" } @else { (witnessed) " copied outside" } } }
                @if let Ok(usage) = &usage {
                    div.tile { p.figure { (usage.checkpoints) } p { "checkpoints" }
                        p.faint { (bytes(usage.bytes)) @if let Some(cap) = usage.cap { " of " (bytes(cap)) } } }
                }
                @if let Ok(operators) = &operators {
                    @let deciding = operators.operators.iter().filter(|it| it.removed.is_none()).count();
                    div.tile { p.figure { (deciding) } p { (if deciding == 1 { "operator" } else { "operators" }) }
                        p.faint { (if deciding == 1 { "who decides" } else { "who decide" }) } }
                }
                div.tile { p.figure { (text(&status.version)) } p { "version" } p.faint { "of Safepoint" } }
            }
            section { h2 { "Who decides" } (deciders(&operators, now)) }
            @if let Ok(Permits { permits }) = &permits { @if !permits.is_empty() {
                section { h2 { "Leave that was given" }
                    ul.bare { @for permit in permits { li { a href={ "/holds/" (url(&permit.hold_id)) } { (short(&permit.permit_id)) } " "
                        (badge(permit.state.as_str().or_else(|| permit.state.as_object()?.keys().next().map(String::as_str)).unwrap_or("?")))
                        span.faint { " ends " (time(&permit.expires_at, now)) } } } } }
            } }
            @if let Ok(usage) = &usage {
                section { h2 { "Where agents work" }
                    ul.bare { @for used in &usage.workspaces { li { (code(&used.workspace))
                        span.faint { " " (used.checkpoints) " checkpoints, " (bytes(used.bytes)) } } } } }
            }
        }
        section { h2 { "Trail" }
            dl.form { dt { "origin" } dd { (code(origin)) } dt { "key" } dd { code.wrap { (text(key)) } } } }
        section { h2 { "Settings" }
            dl.form { @for (name, setting) in &status.settings { (set(name, setting)) } } }
    };
    visitor.sheet(Here::Status, "Status", body).await
}

fn deciders(operators: &Result<Operators, Trouble>, now: safepoint_model::Timestamp) -> Markup {
    match operators {
        Ok(Operators { operators }) if operators.is_empty() => empty(
            "Nobody can decide yet.",
            &html! { "Make a key for yourself:" (command("safepoint operator add NAME")) },
        ),
        Ok(Operators { operators }) => html! {
            ul.bare { @for it in operators { li { strong { (text(&it.name)) } " "
                @if it.removed.is_some() { (badge("removed")) " " }
                span.faint { "since " (time(&it.since, now)) " " code.wrap { (text(&it.key)) } } } } }
        },
        Err(trouble) => html! { p.faint { (text(trouble.message())) } },
    }
}

fn set(name: &str, setting: &Value) -> Markup {
    let said = setting.get("value").and_then(Value::as_str);
    let origin = setting.get("origin").and_then(Value::as_str);
    html! {
        @if let Some(said) = said {
            dt { (text(&name.replace('_', " "))) }
            dd { (code(said)) @if let Some(origin) = origin { " " span.faint { (text(origin)) } } }
        }
    }
}

#[derive(Deserialize)]
struct Doctor {
    clients: Vec<Client>,
    #[serde(default)]
    checks: Vec<Value>,
    ok: bool,
}

#[derive(Deserialize)]
struct Client {
    client: String,
    installed: bool,
    live: bool,
    detail: String,
    #[serde(default)]
    not_covered: Vec<String>,
}

/// What the doctor says: each hook is tried, so it takes a moment.
pub(super) async fn doctor(visitor: Visitor) -> Result<Response, Trouble> {
    let answer = visitor.run(Words::new(&["doctor"])).await?;
    let Doctor {
        clients,
        checks,
        ok,
    } = match answer.document.get("clients") {
        Some(_) => super::ask::read(answer.document)?,
        None => return Err(Trouble::of(answer.exit, &answer.document)),
    };
    let body = html! {
        p.way { a href="/status" { "Status" } " / hooks" }
        div.head { h1 {
                @if !clients.iter().any(|it| it.installed) { "No hook is installed" }
                @else if ok { "The hooks hold" } @else { "Something is not covered" }
            } }
        ul.cards { @for it in &clients {
            li.card data-item {
                p.title { (text(&it.client)) " "
                    @if it.live { (badge("live")) } @else if it.installed { (badge("failed")) } @else { (badge("not installed")) } }
                p { (text(&it.detail)) }
                @if !it.not_covered.is_empty() { details { summary { "What its hooks cannot see" }
                    ul.bare { @for gap in &it.not_covered { li { (text(gap)) } } } } }
            }
        } }
        @if !clients.iter().any(|it| it.installed) { p { "Put one into the settings of your agent's client:" } (command("safepoint install claude-code")) }
        @if !checks.is_empty() { details { summary { "Checks" } @for it in &checks { (super::show::json(it)) } } }
    };
    visitor.sheet(Here::Status, "Hooks", body).await
}
