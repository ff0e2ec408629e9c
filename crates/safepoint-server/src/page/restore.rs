//! Rolling back and undoing: first what it would do, then doing exactly that.
//!
//! The plan that a person has seen is the plan that is carried out. Where the workspace has
//! changed in between, nothing is done, and the new plan is shown.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use maud::html;
use safepoint_model::Digest;
use serde::Deserialize;
use serde_json::Value;

use super::ask::{Words, read};
use super::diff::{self, Change};
use super::form::{self, Form};
use super::frame::Here;
use super::show::{code, count, short, text, url};
use super::trouble::Trouble;
use super::visit::Visitor;
use crate::commands::Record;

#[derive(Deserialize)]
struct Plan {
    changes: Vec<Change>,
    #[serde(default)]
    kept: Vec<Value>,
    #[serde(default)]
    diff: Option<String>,
}

#[derive(Deserialize)]
struct Done {
    changes_reverted: Vec<Change>,
    action_id: String,
    safety_checkpoint_id: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

/// Which of the two it is.
#[derive(Clone, Copy)]
enum Way {
    RollBack,
    Undo,
}

impl Way {
    fn word(self) -> &'static str {
        match self {
            Self::RollBack => "rollback",
            Self::Undo => "undo",
        }
    }

    fn address(self, id: &str) -> String {
        match self {
            Self::RollBack => format!("/checkpoints/{}/rollback", url(id)),
            Self::Undo => format!("/actions/{}/undo", url(id)),
        }
    }

    /// What the id names.
    fn record(self) -> Record {
        match self {
            Self::RollBack => Record::Checkpoint,
            Self::Undo => Record::Action,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::RollBack => "Roll back",
            Self::Undo => "Undo",
        }
    }

    /// The command; an expired checkpoint is restored only where somebody says so.
    fn words(self, id: &str, expired: bool, dry: bool) -> Result<Words, Trouble> {
        Words::new(&[self.word()])
            .switch("--dry-run", dry)
            .switch("--expired", expired)
            .ids(&[id])
    }
}

pub(super) async fn roll_back_plan(
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Trouble> {
    plan(&visitor, Way::RollBack, &id, None).await
}

pub(super) async fn undo_plan(
    visitor: Visitor,
    Path(id): Path<String>,
) -> Result<Response, Trouble> {
    plan(&visitor, Way::Undo, &id, None).await
}

pub(super) async fn roll_back(
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Trouble> {
    carry_out(&visitor, Way::RollBack, &id, &form).await
}

pub(super) async fn undo(
    visitor: Visitor,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, Trouble> {
    carry_out(&visitor, Way::Undo, &id, &form).await
}

/// Which plan it is: what a person has seen, in a few characters.
fn seal(document: &Value) -> String {
    Digest::of_parts(&[b"safepoint/plan/v1", document.to_string().as_bytes()]).to_string()
}

/// Asks for the plan. An expired checkpoint is tried again as one.
async fn planned(visitor: &Visitor, way: Way, id: &str) -> Result<(Value, bool), Trouble> {
    let home = visitor.home(way.record(), id).await?;
    let ask = async |expired| {
        let words = way.words(id, expired, true)?;
        visitor.ask(words.within(&home)).await
    };
    match (ask(false).await, way) {
        (Err(trouble), Way::RollBack) if trouble.message().contains("expired") => {
            Ok((ask(true).await?, true))
        }
        (first, _) => Ok((first?, false)),
    }
}

async fn plan(
    visitor: &Visitor,
    way: Way,
    id: &str,
    changed: Option<&str>,
) -> Result<Response, Trouble> {
    let (document, expired) = planned(visitor, way, id).await?;
    let seal = seal(&document);
    let Plan {
        changes,
        kept,
        diff,
    } = read(document)?;
    let (title, button) = (way.title(), count(changes.len(), "file", "files"));
    let body = html! {
        p.way { a href="/checkpoints" { "Checkpoints" } " / " (short(id)) }
        div.head { h1 { (title) @if matches!(way, Way::Undo) { " one action" } } }
        @if let Some(changed) = changed { p.error role="alert" { (changed) } }
        @if changes.is_empty() {
            p { "There is nothing to do: everything is already as it was." }
            p { a.button href="/checkpoints" { "Back" } }
        } @else {
            p { "This is what it would do. What is there now is kept as a checkpoint first, so it can be taken back in turn." }
            @if expired { p.warning { "The checkpoint has expired. It is still there, and is restored if you say so here." } }
            p { (diff::summary(&changes)) }
            (diff::changes(&changes))
            @if !kept.is_empty() {
                h2 { "What stays as it is" }
                ul.bare { @for it in &kept { li { @match it.as_str() { Some(it) => (code(it)), None => (code(&it.to_string())) } } } }
            }
            form.confirm method="post" action=(way.address(id)) {
                (form::mark(visitor))
                input type="hidden" name="plan" value=(seal);
                @if visitor.decides() {
                    button.danger type="submit" { (title) " " (button) }
                } @else { p { "Only operators can do it." } }
                " " a.button href="/checkpoints" { "Leave it" }
            }
            @if let Some(diff) = &diff { h2 { "Line by line" } (diff::unified(diff)) }
        }
    };
    visitor.sheet(Here::Checkpoints, title, body).await
}

async fn carry_out(
    visitor: &Visitor,
    way: Way,
    id: &str,
    form: &Form,
) -> Result<Response, Trouble> {
    if !visitor.decides() {
        let hint = "sign in with a token that has that role";
        return Err(Trouble::new(
            StatusCode::FORBIDDEN,
            "only operators can do that",
            hint,
        ));
    }
    let (document, expired) = planned(visitor, way, id).await?;
    if form.get("plan") != Some(&seal(&document)) {
        let told = "The workspace has changed since you looked. Nothing was done; this is how it stands now.";
        let page = plan(visitor, way, id, Some(told)).await?;
        return Ok((StatusCode::CONFLICT, page).into_response());
    }
    let home = visitor.home(way.record(), id).await?;
    let words = way.words(id, expired, false)?;
    let done: Done = visitor.ask(words.within(home)).await?;
    let Done {
        changes_reverted,
        action_id,
        safety_checkpoint_id,
        warnings,
    } = &done;
    let body = html! {
        p.way { a href="/checkpoints" { "Checkpoints" } " / " (short(id)) }
        div.head { h1 { "Done" } }
        p { (diff::summary(changes_reverted)) "All of it was read back and is right." }
        (diff::changes(changes_reverted))
        @for warning in warnings { p.warning { (text(warning)) } }
        p { a.button href={ "/actions/" (url(action_id)) "/undo" } { "Take it back…" } " "
            a.button href={ "/trail?action=" (url(action_id)) } { "In the trail" } }
        @if let Some(safety) = safety_checkpoint_id {
            p.faint { "What was there before is checkpoint " a href={ "/checkpoints/" (url(safety)) } { (short(safety)) } "." }
        }
    };
    visitor.sheet(Here::Checkpoints, "Done", body).await
}
