//! Workspaces: which agent works under which, and how far each chain of work is.

use axum::extract::Path;
use axum::response::Response;
use maud::{Markup, html};
use safepoint_model::Timestamp;
use serde::Deserialize;

use super::ask::Words;
use super::frame::Here;
use super::graph;
use super::show::{badge, block, code, command, count, empty, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Workspaces {
    workspaces: Vec<Workspace>,
}

/// One workspace, and how far it is.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Workspace {
    pub(super) workspace_id: String,
    pub(super) run: String,
    pub(super) parent: Option<String>,
    pub(super) role: String,
    pub(super) directive: Option<String>,
    pub(super) state: String,
    pub(super) created: String,
    #[serde(default)]
    pub(super) length: u64,
    #[serde(default)]
    pub(super) status: Option<String>,
    #[serde(default)]
    pub(super) confidence: Option<String>,
}

#[derive(Deserialize)]
struct Log {
    workspace_id: String,
    checkpoints: Vec<Record>,
    #[serde(default)]
    workspaces: Vec<Chain>,
}

/// A workspace with its chain.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Chain {
    pub(super) workspace: Workspace,
    pub(super) checkpoints: Vec<Record>,
}

/// A piece of work in a chain.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Record {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) intent: String,
    pub(super) status: String,
    pub(super) confidence: String,
    pub(super) timestamp: String,
    #[serde(default)]
    actions: Vec<String>,
    #[serde(default)]
    payload: Payload,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Payload {
    #[serde(default)]
    files_changed: Vec<String>,
}

/// How a workspace stands, as people say it: what is closed was taken over.
pub(super) fn standing(state: &str) -> &str {
    match state {
        "closed" => "integrated",
        other => other,
    }
}

/// All of them, run by run.
pub(super) async fn page(visitor: Visitor) -> Result<Response, Trouble> {
    let listed = visitor
        .ask::<Workspaces>(Words::new(&["workspace", "list"]))
        .await;
    let workspaces = match listed {
        Ok(listed) => listed.workspaces,
        Err(trouble) if trouble.is_unknown_command() => Vec::new(),
        Err(trouble) => return Err(trouble),
    };
    let runs: Vec<&Workspace> = workspaces.iter().filter(|it| it.parent.is_none()).collect();
    let now = visitor.now();
    let body = html! {
        div.head { h1 { "Workspaces" } }
        div id="workspaces" data-live {
            @if workspaces.is_empty() {
                (empty("No workspaces yet.", &html! {
                    "Several agents at once get a place each here, and a history that nobody can rewrite. To begin:"
                    (command("safepoint workspace create --role coordinator --directive 'ship the release'"))
                }))
            }
            ol.cards {
                @for root in runs {
                    @let members: Vec<&Workspace> = workspaces.iter().filter(|it| it.run == root.run).collect();
                    li.card data-item {
                        a.cover href={ "/workspaces/" (url(&root.workspace_id)) } { (told(root)) }
                        p.line { (badge(standing(&root.state))) " "
                            @for state in ["active", "blocked", "conflicted", "failed", "closed"] {
                                @let number = members.iter().filter(|it| it.state == state).count();
                                @if number > 0 && members.len() > 1 { span.tally { (number) " " (standing(state)) } " " }
                            } }
                        p.faint { (text(&root.role)) " · " (count(members.len(), "workspace", "workspaces"))
                            " · began " (time(&root.created, now)) " · " (short(&root.workspace_id)) }
                    }
                }
            }
        }
    };
    visitor.sheet(Here::Workspaces, "Workspaces", body).await
}

fn told(workspace: &Workspace) -> Markup {
    let first = workspace
        .directive
        .as_deref()
        .and_then(|it| it.lines().next());
    text(first.unwrap_or(&workspace.role))
}

/// One workspace; for the root of a run, all of it.
pub(super) async fn one(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Trouble> {
    let log: Log = visitor
        .ask(Words::new(&["workspace", "log", "--graph"]).ids(&[&id])?)
        .await?;
    let Workspaces { workspaces } = visitor.ask(Words::new(&["workspace", "list"])).await?;
    let own = workspaces
        .into_iter()
        .find(|it| it.workspace_id == log.workspace_id);
    let own = own.ok_or_else(|| Trouble::not_found("there is no such workspace"))?;
    let chains = match log.workspaces.is_empty() {
        true => vec![Chain {
            workspace: own.clone(),
            checkpoints: log.checkpoints,
        }],
        false => log.workspaces,
    };
    let now = visitor.now();
    let title = own.directive.clone().unwrap_or_else(|| own.role.clone());
    let body = html! {
        p.way { a href="/workspaces" { "Workspaces" }
            @if let Some(parent) = &own.parent { " / " a href={ "/workspaces/" (url(parent)) } { (short(parent)) } }
            " / " (short(&own.workspace_id)) }
        div.head { h1 { (text(&title)) } }
        div id="workspace" data-live {
            p.line { (badge(standing(&own.state))) " " span.faint { (text(&own.role)) " · began " (time(&own.created, now)) } }
            (graph::drawn(&chains))
            @for chain in &chains { (listed(chain, now)) }
        }
    };
    visitor.sheet(Here::Workspaces, &title, body).await
}

fn listed(chain: &Chain, now: Timestamp) -> Markup {
    let workspace = &chain.workspace;
    html! {
        section.chain id=(workspace.workspace_id) data-item {
            h2 { a href={ "/workspaces/" (url(&workspace.workspace_id)) } { (text(&workspace.role)) } " " (badge(standing(&workspace.state)))
                @if let Some(status) = &workspace.status { " " (badge(status)) }
                @if let Some(confidence) = &workspace.confidence { " " span.badge.plain { (text(confidence)) " confidence" } } }
            @if let Some(directive) = &workspace.directive { blockquote { (block(directive)) } }
            @if chain.checkpoints.is_empty() { p.faint { "No work yet." } }
            @if workspace.length > 0 { p.faint { (count(chain.checkpoints.len(), "record", "records")) ", the first first." } }
            ol.records {
                @for record in &chain.checkpoints {
                    li {
                        p.title { (text(&record.intent)) }
                        p.line { (badge(&record.status)) " " span.badge.plain { (text(&record.confidence)) " confidence" } " "
                            @if record.kind != "artifact" { (badge(&record.kind)) } }
                        p.faint { (time(&record.timestamp, now)) " · " (short(&record.id))
                            @if !record.payload.files_changed.is_empty() { " · " (count(record.payload.files_changed.len(), "file", "files")) }
                            @for action in record.actions.iter().take(5) { " · " a href={ "/trail?action=" (url(action)) } { (code(action)) } } }
                    }
                }
            }
        }
    }
}
