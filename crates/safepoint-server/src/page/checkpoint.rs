//! One checkpoint, and how it differs from others and from now.

use std::path::Path;

use axum::extract;
use axum::response::Response;
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::Words;
use super::checkpoints::Checkpoint;
use super::diff::{self, Change};
use super::frame::Here;
use super::show::{badge, bytes, code, command, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;
use crate::commands::Record;

#[derive(Deserialize)]
struct Shown {
    checkpoint: Summary,
    record: Checkpoint,
    git_head: Option<String>,
    #[serde(default)]
    left_out: Vec<serde_json::Value>,
    #[serde(default)]
    sensitive: Vec<serde_json::Value>,
    #[serde(default)]
    warnings: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Summary {
    scope: Scope,
}

#[derive(Deserialize)]
struct Scope {
    files: Vec<String>,
    total_files: u64,
    #[serde(default)]
    state_keys: Vec<String>,
    #[serde(default)]
    databases: Vec<String>,
}

#[derive(Deserialize)]
struct Difference {
    changes: Vec<Change>,
    diff: Option<String>,
}

/// One checkpoint.
pub(super) async fn page(
    visitor: Visitor,
    extract::Path(id): extract::Path<String>,
) -> Result<Response, Trouble> {
    let home = visitor.home(Record::Checkpoint, &id).await?;
    let words = Words::new(&["show"]).ids(&[&id])?;
    let shown: Shown = visitor.ask(words.within(&home)).await?;
    let words = Words::new(&["diff", "--name-only"]).ids(&[&shown.record.id])?;
    let since: Result<Difference, Trouble> = visitor.ask(words.within(&home)).await;
    let now = visitor.now();
    let Checkpoint {
        id,
        kind,
        reason,
        created_at,
        expiry,
        files,
        hash,
        workspace,
        ..
    } = &shown.record;
    let title = reason.as_deref().unwrap_or("Checkpoint");
    let more = [
        ("Left out", &shown.left_out),
        ("Sensitive, not captured in the clear", &shown.sensitive),
        ("Warnings", &shown.warnings),
    ];
    let Scope {
        files: names,
        total_files,
        state_keys,
        databases,
    } = &shown.checkpoint.scope;
    let body = html! {
        p.way { a href="/checkpoints" { "Checkpoints" } " / " (short(id)) }
        div.head {
            h1 { (text(title)) }
            @if visitor.decides() { a.button.primary href={ "/checkpoints/" (url(id)) "/rollback" } { "Roll back…" } }
        }
        p.line {
            (badge(kind)) " "
            @if shown.record.pinned { (badge("pinned")) " " }
            @if shown.record.expired { (badge("expired")) " " }
            span.faint { (time(created_at, now)) " in " (code(workspace)) }
        }
        section aria-labelledby="since" {
            h2 id="since" { "What changed since" }
            div id="difference" data-live {
                @match &since {
                    Ok(since) if since.changes.is_empty() => p { "Nothing: the workspace is exactly as it was." },
                    Ok(since) => {
                        p { (diff::summary(&since.changes)) }
                        (diff::changes(since.changes.get(..30).unwrap_or(&since.changes)))
                        details data-load={ "/checkpoints/" (url(id)) "/diff" } {
                            summary { "Line by line" }
                            p.faint { "It is on " a href={ "/checkpoints/" (url(id)) "/diff" } { "a page of its own" } "." }
                        }
                    },
                    Err(trouble) => p.faint { "It cannot be compared now: " (text(trouble.message())) },
                }
            }
        }
        section aria-labelledby="holds" {
            h2 id="holds" { "What it holds" }
            dl.form {
                dt { "files" } dd { (files) ", " (bytes(shown.record.bytes)) }
                @if let Some(head) = &shown.git_head { dt { "git" } dd { (code(head)) } }
                @if !state_keys.is_empty() { dt { "states" } dd { @for key in state_keys { (code(key)) " " } } }
                @if !databases.is_empty() { dt { "databases" } dd { @for it in databases { (code(it)) " " } } }
                dt { "expires" } dd { @match expiry { Some(expiry) => (time(expiry, now)), None => "never" } }
                dt { "hash" } dd { code.wrap { (text(hash)) } }
            }
            @for (name, list) in more { (named(name, list)) }
            details { summary { "Files (" (total_files) ")" } ul.bare { @for name in names { li { (code(name)) } } } }
            details { summary { "On the command line" } (command(&format!("safepoint rollback {id}"))) (command(&format!("safepoint verify {id}"))) }
        }
    };
    visitor.sheet(Here::Checkpoints, title, body).await
}

fn named(name: &str, list: &[serde_json::Value]) -> Markup {
    html! {
        @if !list.is_empty() {
            details { summary { (name) " (" (list.len()) ")" }
                ul.bare { @for it in list { li { @match it.as_str() { Some(it) => (code(it)), None => (code(&it.to_string())) } } } } }
        }
    }
}

/// What changed since a checkpoint, line by line.
pub(super) async fn since(
    visitor: Visitor,
    extract::Path(id): extract::Path<String>,
) -> Result<Response, Trouble> {
    let home = visitor.home(Record::Checkpoint, &id).await?;
    differing(&visitor, &home, &[&id]).await
}

/// What changed between two checkpoints, line by line.
pub(super) async fn between(
    visitor: Visitor,
    extract::Path((before, after)): extract::Path<(String, String)>,
) -> Result<Response, Trouble> {
    let home = visitor.home(Record::Checkpoint, &before).await?;
    differing(&visitor, &home, &[&before, &after]).await
}

async fn differing(visitor: &Visitor, home: &Path, ids: &[&str]) -> Result<Response, Trouble> {
    let words = Words::new(&["diff"]).ids(ids)?;
    let found: Difference = visitor.ask(words.within(home)).await?;
    let body = html! {
        p.way { a href="/checkpoints" { "Checkpoints" } @for id in ids { " / " a href={ "/checkpoints/" (url(id)) } { (short(id)) } } }
        div.head { h1 { @if ids.len() > 1 { "Between two checkpoints" } @else { "Since the checkpoint" } } }
        div id="loaded" {
            p { (diff::summary(&found.changes)) }
            @match &found.diff { Some(diff) => (diff::unified(diff)), None => (diff::changes(&found.changes)) }
        }
    };
    visitor.sheet(Here::Checkpoints, "Difference", body).await
}
