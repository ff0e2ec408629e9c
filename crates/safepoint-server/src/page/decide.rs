//! Deciding: what is asked of an operator, and how their signed word is handed on.
//!
//! The key never comes here. The browser signs the decision with a key that it holds and that
//! nothing can read out of it, or the operator signs on the command line. What arrives is a
//! signed note, and the command that takes it checks it.

use axum::extract::Path;
use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::Words;
use super::form::{self, Form};
use super::hold::Hold;
use super::show::{command, short, text, url};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Operators {
    operators: Vec<Operator>,
}

#[derive(Deserialize)]
struct Operator {
    name: String,
    key: String,
    removed: Option<String>,
}

/// The place where a hold is decided.
pub(super) async fn panel(visitor: &Visitor, hold: &Hold) -> Result<Markup, Trouble> {
    if !hold.is_open() {
        return Ok(html! {
            section.decision id="decision" data-state=(hold.state) aria-labelledby="decide" {
                h2 id="decide" { "It is decided" }
                p { "This hold is " strong { (text(&hold.state)) } "." }
                @if !hold.decided_by.is_empty() { p { "By " (text(&hold.decided_by.join(", "))) "." } }
                @if hold.state == "approved" { p { "The agent may now do exactly this, once." } }
                p { a.button href="/" { "Back to the inbox" } }
            }
        });
    }
    if !visitor.decides() {
        return Ok(html! {
            section.decision id="decision" data-state=(hold.state) aria-labelledby="decide" {
                h2 id="decide" { "Only operators decide" }
                p { "Your token reads. Whoever has one with the role of an operator can decide here." }
            }
        });
    }
    if let Some(first) = &hold.waits_for {
        return Ok(html! {
            section.decision id="decision" data-state=(hold.state) data-waits-for=(first) aria-labelledby="decide" {
                h2 id="decide" { "Not yet" }
                p { "Holds of one session are decided one after another, the oldest first." }
                p { a.button.primary href={ "/holds/" (url(first)) } { "Decide " (short(first)) " first" } }
                details.by-hand {
                    summary { "Deny it on the command line" }
                    p.faint { "A no needs no turn." }
                    (command(&format!("safepoint hold deny {}", hold.hold_id)))
                }
            }
        });
    }
    let Operators { operators } = visitor.ask(Words::new(&["operator", "list"])).await?;
    let active = operators.iter().filter(|it| it.removed.is_none());
    let keys: Vec<Value> = active
        .map(|it| json!({ "name": it.name, "key": it.key }))
        .collect();
    Ok(asking(visitor, hold, &Value::from(keys)))
}

fn asking(visitor: &Visitor, hold: &Hold, keys: &Value) -> Markup {
    html! {
        section.decision id="decision" data-state=(hold.state) aria-labelledby="decide" {
            h2 id="decide" tabindex="-1" { "Decide" }
            p.error id="meanwhile" role="alert" hidden {
                "Somebody else has decided meanwhile. " a href={ "/holds/" (url(&hold.hold_id)) } { "See how" }
            }
            form id="deciding" method="post" action={ "/holds/" (url(&hold.hold_id)) "/decide" } autocomplete="off"
                data-hold=(hold.hold_id) data-action=(hold.action_id) data-fingerprint=(hold.fingerprint)
                data-operators=(keys) data-confirm=[hold.confirm.as_deref()] data-needs-script hidden {
                (form::mark(visitor))
                input type="hidden" name="fingerprint" value=(hold.fingerprint);
                input type="hidden" name="choice" value="";
                input type="hidden" name="note" value="";
                fieldset id="answers" {
                    div.key id="key" {
                        p id="key-state" { "Looking for your key…" }
                        label.file for="key-file" id="key-label" hidden { "Choose your key file" }
                        input id="key-file" type="file" hidden;
                        button.quiet type="button" id="key-forget" hidden { "Forget the key" }
                    }
                    label for="reason" { "Reason " span.faint { "(it is recorded)" } }
                    textarea id="reason" rows="2" maxlength="2000" {}
                    @if let Some(word) = &hold.confirm {
                        div.confirm {
                            label for="confirm" { "It cannot be taken back. To approve it all the same, type "
                                code id="confirm-word" { (text(word)) } }
                            input id="confirm" type="text" spellcheck="false" autocapitalize="off"
                                aria-describedby="confirm-word";
                        }
                    }
                    details {
                        summary { "More than this once" }
                        @if hold.is_outside_fence() {
                            label for="lasts" { "Let it through" }
                            select id="lasts" {
                                option value="" { "once" }
                                option value="session" { "each time this session wants it" }
                                option value="project" { "in every session of this workspace, until it is revoked" }
                            }
                        }
                        label.choice { input type="checkbox" id="per-step"; " Ask before every further step of the session" }
                        label for="envelope" { "Or let the session do this much without asking, as JSON" }
                        textarea id="envelope" rows="3" spellcheck="false"
                            placeholder="{\"actions\": [\"file.*\"], \"paths\": [\"/srv/site\"], \"uses\": 20}" {}
                    }
                    p.error id="refused" role="alert" hidden {}
                    div.choices {
                        button.primary type="submit" value="approve" { "Approve, once" }
                        button.danger type="submit" value="deny" { "Deny" }
                        button type="submit" value="halt" { "Halt the session" }
                    }
                    p.faint { "Your browser signs what you decide. The server never sees the key." }
                }
            }
            details.by-hand {
                summary { "Decide on the command line" }
                p.faint { "Your own key or SSH agent signs there." }
                (command(&approve_line(hold)))
                (command(&format!("safepoint hold deny {}", hold.hold_id)))
                (command(&format!("safepoint hold halt {}", hold.hold_id)))
            }
            noscript { p { "Signing in the browser needs its script. The command line does the same." } }
        }
    }
}

fn approve_line(hold: &Hold) -> String {
    let Hold {
        hold_id,
        fingerprint,
        ..
    } = hold;
    let confirm = hold.confirm.as_ref();
    let confirm = confirm.map_or_else(String::new, |word| format!(" --confirm {word}"));
    format!("safepoint hold approve {hold_id} --fingerprint {fingerprint}{confirm}")
}

/// Hands a signed decision on.
pub(super) async fn post(
    visitor: Visitor,
    Path(hold): Path<String>,
    form: Form,
) -> Result<Response, Trouble> {
    if !visitor.decides() {
        return Err(Trouble::new(
            StatusCode::FORBIDDEN,
            "only operators decide",
            "sign in with a token that has that role",
        ));
    }
    let note = form.text("note").filter(|note| !note.is_empty());
    let note = note.ok_or_else(|| {
        Trouble::new(
            StatusCode::BAD_REQUEST,
            "the decision is not signed",
            "choose your key on the page of the hold, or decide on the command line",
        )
    })?;
    visitor
        .ask::<Value>(words(&hold, &form)?.reading(note))
        .await?;
    Ok(Redirect::to(&format!("/holds/{hold}")).into_response())
}

/// The command that takes a signed decision: all of it is in the note, on standard input.
fn words(hold: &str, form: &Form) -> Result<Words, Trouble> {
    let words = match form.get("choice") {
        Some("approve") => {
            Words::new(&["hold", "approve"]).option("--fingerprint", form.get("fingerprint"))
        }
        Some("deny") => Words::new(&["hold", "deny"]),
        Some("halt") => Words::new(&["hold", "halt"]),
        _ => {
            return Err(Trouble::new(
                StatusCode::BAD_REQUEST,
                "it is not said what was decided",
                "use the buttons on the page of the hold",
            ));
        }
    };
    words.switch("--signature=-", true).ids(&[hold])
}
