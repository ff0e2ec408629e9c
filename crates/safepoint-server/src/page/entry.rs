//! One entry, with the proof that it is in the trail. The browser checks the proof itself.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, header};
use maud::html;
use serde::Deserialize;
use serde_json::{Value, json as value};

use super::ask::Words;
use super::frame::Here;
use super::show::{code, command, json, text, time, url};
use super::timeline::{Entry, spaced};
use super::trouble::Trouble;
use super::visit::Visitor;

#[derive(Deserialize)]
struct Proof {
    proof: String,
    key: String,
}

/// One entry.
pub(super) async fn page(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Trouble> {
    let entry: Entry = visitor
        .ask(Words::new(&["trail", "show"]).ids(&[&id])?)
        .await?;
    let proof = prove(&visitor, &entry.id).await;
    let now = visitor.now();
    let kind = spaced(&entry.kind);
    let body = html! {
        p.way { a href="/trail" { "Trail" } " / " (entry.seq) }
        div.head { h1 { (text(&kind)) } }
        div.two {
            div {
                dl.form {
                    dt { "number" } dd { (entry.seq) }
                    dt { "time" } dd { (time(&entry.time, now)) " " span.faint { (text(&entry.time)) } }
                    dt { "actor" } dd { a href={ "/trail?actor=" (url(&entry.actor)) } { (code(&entry.actor)) } }
                    dt { "stream" } dd { @if entry.stream.starts_with("ses_") { a href={ "/sessions/" (url(&entry.stream)) } { (code(&entry.stream)) } } @else { (code(&entry.stream)) } }
                    @if let Some(action) = &entry.action_id { dt { "action" } dd { a href={ "/trail?action=" (url(action)) } { (code(action)) } } }
                    dt { "id" } dd { code.wrap { (text(&entry.id)) } }
                    dt { "hash" } dd { code.wrap { (text(&entry.hash)) } }
                    dt { "before it" } dd { @match &entry.prev_hash { Some(hash) => code.wrap { (text(hash)) }, None => "the first of its stream" } }
                }
                h2 { "Body" }
                (json(&entry.body))
            }
            aside.side aria-label="Proof" {
                section aria-labelledby="proof" {
                    h2 id="proof" { "Proof" }
                    @match &proof {
                        Ok(proof) => {
                            div.checked id="proving" data-prove={ "/trail/entry/" (url(&entry.id)) "/proof" }
                                data-key=(proof.key) data-hash=(entry.hash) data-seq=(entry.seq) data-needs-script hidden {
                                p role="status" { "Checking in this browser…" }
                            }
                            p { a.button href={ "/trail/entry/" (url(&entry.id)) "/proof" } download={ (url(&entry.id)) ".tlog-proof" } { "Download the proof" } }
                            p.faint { "Anybody can check it without this server:" }
                            (command(&format!("safepoint trail check-proof {}.tlog-proof --key {}", entry.id, proof.key)))
                            details { summary { "The proof" } pre.wrap tabindex="0" { (super::show::block(&proof.proof)) } }
                        },
                        Err(trouble) => p.error { "There is no proof now: " (text(trouble.message())) },
                    }
                }
            }
        }
    };
    visitor.sheet(Here::Trail, &kind, body).await
}

async fn prove(visitor: &Visitor, id: &str) -> Result<Proof, Trouble> {
    visitor
        .ask(Words::new(&["trail", "prove"]).ids(&[id])?)
        .await
}

/// The proof as a file.
pub(super) async fn proof(visitor: Visitor, Path(id): Path<String>) -> Result<Response, Trouble> {
    let Proof { proof, .. } = prove(&visitor, &id).await?;
    Ok((plain(), proof).into_response())
}

fn plain() -> [(http::HeaderName, HeaderValue); 1] {
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    [(header::CONTENT_TYPE, kind)]
}

/// The head, and the proof that the trail still begins with an older one.
pub(super) async fn consistency(
    visitor: Visitor,
    Path(size): Path<u64>,
) -> Result<Response, Trouble> {
    let head: Value = visitor.ask(Words::new(&["trail", "head"])).await?;
    let proof = match size {
        0 => None,
        size => {
            let size = size.to_string();
            let words = Words::new(&["trail", "prove"]).option("--consistency", Some(&size));
            let found: Proof = visitor.ask(words).await?;
            Some(found.proof)
        }
    };
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let document = value!({ "head": head, "proof": proof });
    Ok((kind, document.to_string()).into_response())
}
