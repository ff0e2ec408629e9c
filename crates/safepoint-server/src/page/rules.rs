//! The rules that apply: atlases with their gates and policies, readable.

use axum::response::Response;
use http::Uri;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::ask::Words;
use super::checkpoints::places;
use super::form::Fields;
use super::frame::Here;
use super::show::{badge, block, code, command, empty, json, short, text};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Shown {
    atlases: Vec<Atlas>,
}

#[derive(Deserialize)]
struct Atlas {
    path: Option<String>,
    digest: String,
    manifest: Manifest,
}

#[derive(Deserialize)]
struct Manifest {
    atlas_id: String,
    version: String,
    name: String,
    description: Option<String>,
    #[serde(default)]
    capabilities: Vec<Capability>,
    #[serde(default)]
    checkpoints: Vec<Gate>,
    #[serde(default)]
    policies: Vec<Policy>,
}

#[derive(Deserialize)]
struct Capability {
    capability_id: String,
    name: Option<String>,
    #[serde(default)]
    actions: Vec<String>,
}

#[derive(Deserialize)]
struct Gate {
    checkpoint_id: String,
    name: Option<String>,
    description: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    trigger: Value,
    #[serde(default)]
    questions: Vec<Question>,
    #[serde(default)]
    unlock_capabilities: Vec<String>,
}

#[derive(Deserialize)]
struct Question {
    question: String,
    response_type: Option<String>,
}

#[derive(Deserialize)]
struct Policy {
    policy_id: String,
    #[serde(rename = "type")]
    kind: String,
    reason: Option<String>,
    #[serde(default)]
    actions: Vec<String>,
    #[serde(default)]
    when: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    parameters: Option<Value>,
    #[serde(default)]
    cedar: Option<String>,
}

/// The rules of one workspace.
pub(super) async fn page(visitor: Visitor, uri: Uri) -> Result<Response, Trouble> {
    let places = places(&visitor).await;
    let fields = Fields::of(&uri);
    let asked = fields
        .get("in")
        .filter(|asked| places.iter().any(|place| place == asked));
    let chosen = asked.or_else(|| places.first().map(String::as_str));
    let words = Words::new(&["atlas", "show"]);
    let words = match chosen {
        Some(place) => words.within(place),
        None => words,
    };
    let shown = visitor.ask::<Shown>(words).await;
    let body = html! {
        div.head { h1 { "Rules" } }
        @if places.len() > 1 {
            form.filter method="get" action="/rules" {
                label for="in" { "Workspace" }
                select id="in" name="in" { @for place in &places { option value=(place) selected[chosen == Some(place)] { (text(place)) } } }
                button { "Show" }
            }
        }
        @match &shown {
            Ok(shown) => { @for atlas in &shown.atlases { (one(atlas)) } },
            Err(trouble) => (empty("The rules cannot be read now.", &html! { (text(trouble.message())) ". " (text(trouble.hint()))
                (command("safepoint atlas check")) })),
        }
    };
    visitor.sheet(Here::Rules, "Rules", body).await
}

fn one(atlas: &Atlas) -> Markup {
    let manifest = &atlas.manifest;
    html! {
        section.atlas {
            h2 { (text(&manifest.name)) }
            p.faint { (code(&manifest.atlas_id)) " " (text(&manifest.version)) " · " (short(&atlas.digest))
                @match &atlas.path { Some(path) => { " · " (code(path)) }, None => " · built in" } }
            @if let Some(description) = &manifest.description { p { (text(description)) } }
            @if !manifest.policies.is_empty() { h3 { "Policies" } }
            ul.rulebook { @for policy in &manifest.policies { (said(policy)) } }
            @if !manifest.checkpoints.is_empty() { h3 { "Gates" } }
            ul.rulebook { @for gate in &manifest.checkpoints { (asked(gate)) } }
            @if !manifest.capabilities.is_empty() {
                details { summary { "Capabilities (" (manifest.capabilities.len()) ")" }
                    dl.form { @for it in &manifest.capabilities {
                        dt { (text(it.name.as_deref().unwrap_or(&it.capability_id))) }
                        dd { @for action in &it.actions { (code(action)) " " } } } } }
            }
        }
    }
}

fn said(policy: &Policy) -> Markup {
    let why = policy.reason.as_ref();
    html! {
        li data-item {
            p.title { (badge(&policy.kind)) " " @if let Some(why) = why { (text(why)) } @else { (code(&policy.policy_id)) } }
            p { @for action in &policy.actions { (code(action)) " " } }
            p.faint { (code(&policy.policy_id))
                @if !policy.when.is_empty() { " · when " (text(&policy.when.join(" and ").replace('_', " "))) }
                @if !policy.unless.is_empty() { " · unless " (text(&policy.unless.join(" or ").replace('_', " "))) } }
            @if let Some(parameters) = &policy.parameters { (json(parameters)) }
            @if let Some(cedar) = &policy.cedar { details { summary { "In Cedar" } pre.wrap tabindex="0" { (block(cedar)) } } }
        }
    }
}

fn asked(gate: &Gate) -> Markup {
    let kind = gate
        .trigger
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or("?");
    html! {
        li data-item {
            p.title { (text(gate.name.as_deref().unwrap_or(&gate.checkpoint_id))) " "
                @if let Some(mode) = &gate.mode { (badge(mode)) } " " span.faint { "at " (text(&kind.replace('_', " "))) } }
            @if let Some(description) = &gate.description { p { (text(description)) } }
            @if !gate.questions.is_empty() {
                ol.questions { @for it in &gate.questions { li { (block(&it.question))
                    @if let Some(kind) = &it.response_type { " " span.faint { "(" (text(kind)) ")" } } } } }
            }
            @if !gate.unlock_capabilities.is_empty() { p.faint { "opens " @for it in &gate.unlock_capabilities { (code(it)) " " } } }
            details { summary { "When" } (json(&gate.trigger)) }
        }
    }
}
