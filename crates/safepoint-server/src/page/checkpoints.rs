//! The checkpoints, the newest first.

use axum::response::Response;
use http::Uri;
use maud::html;
use serde::Deserialize;

use super::ask::Words;
use super::form::Fields;
use super::frame::Here;
use super::show::{badge, bytes, code, command, count, empty, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Checkpoints {
    checkpoints: Vec<Checkpoint>,
}

/// One checkpoint, as `list` and `show` have it.
#[derive(Debug, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) created_at: String,
    pub(super) reason: Option<String>,
    pub(super) expiry: Option<String>,
    pub(super) expired: bool,
    pub(super) pinned: bool,
    pub(super) automatic: bool,
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) hash: String,
    pub(super) workspace: String,
}

#[derive(Deserialize)]
struct Usage {
    workspaces: Vec<Used>,
}

#[derive(Deserialize)]
struct Used {
    workspace: String,
}

/// The directories that the store knows. Only these are ever worked in.
pub(super) async fn places(visitor: &Visitor) -> Vec<String> {
    let usage = visitor.ask::<Usage>(Words::new(&["du"])).await;
    let usage = usage.map_or_else(|_| Vec::new(), |usage| usage.workspaces);
    usage.into_iter().map(|used| used.workspace).collect()
}

/// The list; with `all`, those too that were made by themselves.
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Trouble> {
    let fields = Fields::of(&uri);
    let all = fields.get("all").is_some();
    let words = Words::new(&["list", "--all-workspaces", "--limit=300"]);
    let words = words.switch("--automatic", all);
    let Checkpoints { checkpoints } = visitor.ask(words).await?;
    let places = places(&visitor).await;
    let chosen = fields
        .get("in")
        .filter(|chosen| places.iter().any(|place| place == chosen));
    let shown = |it: &&Checkpoint| chosen.is_none_or(|chosen| it.workspace == chosen);
    let checkpoints: Vec<&Checkpoint> = checkpoints.iter().filter(shown).collect();
    let now = visitor.now();
    let body = html! {
        div.head {
            h1 { "Checkpoints" }
            @if all { a href="/checkpoints" { "Only those that were asked for" } }
            @else { a href="/checkpoints?all=1" { "Automatic ones too" } }
        }
        @if places.len() > 1 {
            form.filter method="get" action="/checkpoints" {
                label for="in" { "Workspace" }
                select id="in" name="in" {
                    option value="" { "all" }
                    @for place in &places { option value=(place) selected[chosen == Some(place)] { (text(place)) } }
                }
                @if all { input type="hidden" name="all" value="1"; }
                button { "Show" }
            }
        }
        div id="checkpoints" data-live {
            @if checkpoints.is_empty() {
                (empty("There is no checkpoint here.", &html! {
                    @if !all { "Those that were made around actions are under “Automatic ones too”. " }
                    "To make one of a whole workspace:"
                    (command("safepoint checkpoint --reason 'before the refactor'"))
                }))
            }
            ol.cards {
                @for it in checkpoints {
                    li.card data-item {
                        a.cover href={ "/checkpoints/" (url(&it.id)) } {
                            @match &it.reason { Some(reason) => (text(reason)), None => "Without a reason" }
                        }
                        p.line {
                            @if it.pinned { (badge("pinned")) " " }
                            @if it.expired { (badge("expired")) " " }
                            @if it.automatic { (badge("automatic")) " " }
                            (badge(&it.kind))
                        }
                        p.faint { (time(&it.created_at, now)) " · "
                            (count(usize::try_from(it.files).unwrap_or(usize::MAX), "file", "files")) ", " (bytes(it.bytes))
                            " · " (code(&it.workspace)) " · " (short(&it.id)) }
                    }
                }
            }
        }
    };
    visitor.sheet(Here::Checkpoints, "Checkpoints", body).await
}
