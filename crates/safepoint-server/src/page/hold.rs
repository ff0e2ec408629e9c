//! One hold: exactly what would be done, why it waits, what a yes would mean.
//!
//! Everything here comes from `hold show`; nothing is made up for the page.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use safepoint_model::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::ask::{Words, read};
use super::frame::Here;
use super::show::{badge, block, code, json, risk, sentence, short, text, time, url};
use super::trouble::Trouble;
use super::visit::Visitor;
use super::{decide, proposal};

/// What `hold show` prints, as far as the page needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Hold {
    pub(super) hold_id: String,
    pub(super) action_id: String,
    pub(super) session_id: String,
    pub(super) fingerprint: String,
    pub(super) canonical_request_summary: String,
    pub(super) trigger_description: String,
    pub(super) authorization_statement: String,
    pub(super) risk_classification: String,
    pub(super) reversibility_class: String,
    pub(super) policy_basis: Vec<Basis>,
    pub(super) scope_delta: ScopeDelta,
    pub(super) coverage: Coverage,
    pub(super) proposer: Proposer,
    #[serde(default)]
    pub(super) trust_state: serde_json::Map<String, Value>,
    pub(super) since: String,
    pub(super) expires_at: String,
    pub(super) confirm: Option<String>,
    pub(super) quorum: u32,
    pub(super) decided_by: Vec<String>,
    pub(super) state: String,
    pub(super) canonical_form: Value,
    /// The hold of the same session that is decided before this one can be approved.
    #[serde(default)]
    pub(super) waits_for: Option<String>,
}

impl Hold {
    /// Whether the fence asks, for a program that runs behind it: a yes can last longer.
    pub(super) fn is_outside_fence(&self) -> bool {
        self.canonical_form.pointer("/tool/name") == Some(&Value::from("fence"))
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct Basis {
    policy_id: String,
    atlas_id: Option<String>,
    reason: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ScopeDelta {
    actions: Vec<String>,
    paths: Vec<String>,
    side_effects: Vec<String>,
    hosts: Vec<String>,
    used_up: bool,
    expired: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct Coverage {
    checkpoint_id: Option<String>,
    covered: Vec<String>,
    not_covered: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Proposer {
    pub(super) actor: String,
    pub(super) objective: Option<String>,
}

/// The canonical form, as far as the page has a place of its own for it.
#[derive(Debug, Deserialize)]
pub(super) struct Form {
    tool: Tool,
    actions: Vec<String>,
    pub(super) argv: Vec<String>,
    directory: Place,
    #[serde(default)]
    environment: serde_json::Map<String, Value>,
    paths: Vec<NamedPath>,
    hosts: Vec<String>,
    side_effects: Vec<String>,
    provider: Option<String>,
    input: Value,
    atlases: Vec<Atlas>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    executable: Option<Executable>,
    #[serde(default)]
    interpreters: Vec<Executable>,
}

#[derive(Debug, Deserialize)]
struct Executable {
    path: String,
    digest: String,
}

#[derive(Debug, Deserialize)]
struct Place {
    path: String,
}

#[derive(Debug, Deserialize)]
struct NamedPath {
    path: String,
    role: String,
    inside: bool,
    preimage: serde_json::Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct Atlas {
    atlas_id: String,
    version: String,
}

impl Hold {
    /// Whether somebody can decide.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state.as_str(), "pending" | "halted")
    }

    /// Why it waits, in the words of the first rule that says so.
    pub(super) fn reason(&self) -> String {
        let first = self.policy_basis.first();
        first.map_or_else(|| self.trigger_description.clone(), |it| it.reason.clone())
    }
}

/// One hold.
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Trouble> {
    let hold: Hold = visitor
        .ask(Words::new(&["hold", "show"]).ids(&[&id])?)
        .await?;
    let form: Form = read(hold.canonical_form.clone())?;
    let now = visitor.now();
    let decision = decide::panel(&visitor, &hold).await?;
    let body = html! {
        p.way { a href="/" { "Inbox" } " / " (short(&hold.hold_id)) }
        div.two {
            div {
                header.asked {
                    h1 { (code(&hold.canonical_request_summary)) }
                    div id="state" data-live {
                        p.line {
                            (badge(&hold.state)) " " (risk(&hold.risk_classification)) " "
                            (badge(&hold.reversibility_class))
                            @if hold.quorum > 1 { " " span.badge.plain { (hold.decided_by.len()) " of " (hold.quorum) " said yes" } }
                            @if hold.state == "pending" { span.faint { " ends " (time(&hold.expires_at, now)) } }
                        }
                        @if !hold.decided_by.is_empty() { p.faint { "Decided by " (text(&hold.decided_by.join(", "))) } }
                    }
                    a.button.jump href="#decide" { "Decide" }
                    p.meaning { (text(&hold.authorization_statement)) }
                }
                (who(&hold, &form, now))
                (why(&hold))
                (taken_back(&hold))
                (proposal::section(&form))
                (exactly(&hold, &form))
            }
            aside.side aria-label="Decision" { (decision) }
        }
    };
    visitor
        .sheet(Here::Inbox, &hold.canonical_request_summary, body)
        .await
}

/// The canonical form as data, for the browser to compute its fingerprint.
pub(super) async fn form(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Trouble> {
    let hold: Hold = visitor
        .ask(Words::new(&["hold", "show"]).ids(&[&id])?)
        .await?;
    let kind = [(http::header::CONTENT_TYPE, "application/json")];
    Ok((kind, hold.canonical_form.to_string()).into_response())
}

fn who(hold: &Hold, form: &Form, now: Timestamp) -> Markup {
    html! {
        section aria-labelledby="who" {
            h2 id="who" { "Who asks" }
            p { (text(&hold.proposer.actor))
                @if let Some(provider) = &form.provider { ", through " (text(provider)) }
                ", " (time(&hold.since, now)) ", in "
                a href={ "/sessions/" (url(&hold.session_id)) } { "this session" } "." }
            @match &hold.proposer.objective {
                Some(objective) => blockquote { (block(objective)) },
                None => p.faint { "It was not said what for." },
            }
        }
    }
}

fn why(hold: &Hold) -> Markup {
    let ScopeDelta {
        actions,
        paths,
        side_effects,
        hosts,
        used_up,
        expired,
    } = &hold.scope_delta;
    let news = [
        ("action", actions),
        ("path", paths),
        ("effect", side_effects),
        ("host", hosts),
    ];
    let is_new = news.iter().any(|(_, list)| !list.is_empty()) || *used_up || *expired;
    html! {
        section aria-labelledby="why" {
            h2 id="why" { "Why it waits" }
            p { (sentence(&hold.trigger_description)) }
            ul.rules {
                @for Basis { policy_id, atlas_id, reason } in &hold.policy_basis {
                    li { (sentence(reason)) " "
                        span.faint { (code(policy_id))
                            @if let Some(atlas) = atlas_id { " in " (code(atlas)) } @else { ", a boundary" } } }
                }
            }
            h3 { "What is new about it" }
            @if is_new {
                ul.facts {
                    @for (name, list) in news { @for item in list { li { span.term { (name) } " " (code(item)) } } }
                    @if *used_up { li { "The scope that was given is used up." } }
                    @if *expired { li { "The scope that was given has expired." } }
                }
            } @else { p.faint { "Nothing beyond what the session does anyway." } }
        }
    }
}

fn taken_back(hold: &Hold) -> Markup {
    let Coverage {
        checkpoint_id,
        covered,
        not_covered,
    } = &hold.coverage;
    html! {
        section aria-labelledby="back" {
            h2 id="back" { "What could be taken back" }
            @if covered.is_empty() && not_covered.is_empty() { p { "It changes nothing." } }
            @if !not_covered.is_empty() {
                h3.bad { "Nothing brings this back" }
                ul.facts { @for item in not_covered { li.bad { (text(item)) } } }
            }
            @if !covered.is_empty() {
                h3.good { "A checkpoint covers this" }
                ul.facts { @for item in covered { li.good { (text(item)) } } }
            }
            @if let Some(checkpoint) = checkpoint_id {
                p { "Checkpoint " a href={ "/checkpoints/" (url(checkpoint)) } { (short(checkpoint)) }
                    " · " a href={ "/checkpoints/" (url(checkpoint)) "/diff" } { "what changed since" } }
                details data-load={ "/checkpoints/" (url(checkpoint)) "/diff" } {
                    summary { "Difference between the checkpoint and now" }
                    p.faint { "It is on " a href={ "/checkpoints/" (url(checkpoint)) "/diff" } { "a page of its own" } "." }
                }
            } @else { p.faint { "No checkpoint was made." } }
        }
    }
}

fn exactly(hold: &Hold, form: &Form) -> Markup {
    let input = form.input.as_object().and_then(|input| input.keys().next());
    html! {
        section aria-labelledby="exactly" {
            h2 id="exactly" { "Exactly this" }
            p.faint { "A yes is bound to all of it. If any of it has changed when it runs, it does not run." }
            dl.form {
                dt { "words" } dd { ol.argv { @for word in &form.argv { li { (code(word)) } } } }
                dt { "actions" } dd { @for action in &form.actions { (code(action)) " " } }
                dt { "program" } dd {
                    @match &form.tool.executable {
                        Some(program) => { (code(&program.path)) " " (short(&program.digest)) },
                        None => (code(&form.tool.name)),
                    }
                }
                @if !form.tool.interpreters.is_empty() {
                    dt { "run by" } dd {
                        @for program in &form.tool.interpreters {
                            (code(&program.path)) " " (short(&program.digest)) br;
                        }
                    }
                }
                dt { "in" } dd { (code(&form.directory.path)) }
                dt { "touches" } dd {
                    @if form.paths.is_empty() { span.faint { "no path by name" } }
                    ul.paths { @for path in &form.paths { (named(path)) } }
                }
                dt { "talks to" } dd {
                    @if form.hosts.is_empty() { span.faint { "no host by name" } }
                    @for host in &form.hosts { (code(host)) " " }
                }
                dt { "effects" } dd { @for effect in &form.side_effects { (badge(effect)) " " } }
                dt { "input" } dd { (text(input.map_or("none", String::as_str))) }
                dt { "trust" } dd {
                    ul.bare { @for (boundary, level) in &hold.trust_state {
                        li { (code(boundary)) " " (text(level.as_str().unwrap_or_default())) } } }
                }
                dt { "judged by" } dd { @for atlas in &form.atlases { (code(&atlas.atlas_id)) " " (text(&atlas.version)) " " } }
                dt { "fingerprint" } dd { code.wrap { (text(&hold.fingerprint)) } }
                dt { "action" } dd { a href={ "/trail?action=" (url(&hold.action_id)) } { (code(&hold.action_id)) } }
            }
            details {
                summary { "Variables (" (form.environment.len()) ")" }
                ul.bare { @for name in form.environment.keys() { li { (code(name)) } } }
            }
            details { summary { "The whole form" } (json(&hold.canonical_form)) }
            div.checked id="bound" data-form={ "/holds/" (url(&hold.hold_id)) "/form.json" } data-fingerprint=(hold.fingerprint) data-needs-script hidden {
                p role="status" { "Checking the fingerprint in this browser…" }
            }
        }
    }
}

fn named(path: &NamedPath) -> Markup {
    let is = path.preimage.iter().next();
    let is = is.map(|(kind, about)| match (kind.as_str(), about.get("target")) {
        ("absent", _) => "not there yet".to_owned(),
        ("link", Some(target)) => format!("leads to {}", target.as_str().unwrap_or("?")),
        (kind, _) => kind.to_owned(),
    });
    html! {
        li { span.role { (text(&path.role)) } " " (code(&path.path))
            span.faint { @if let Some(is) = is { " " (text(&is)) } }
            @if !path.inside { " " span.badge.warn { "outside the workspace" } } }
    }
}
