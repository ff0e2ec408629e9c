//! The web page: what waits, what happened, and what can be taken back, for people.
//!
//! It is made on the server, out of the documents that the program's commands print, and
//! reads well without a script. It decides nothing and holds no key: a decision is signed in
//! the operator's browser, or by their own hand on the command line, and handed on as it is.

mod ask;
mod asset;
mod checkpoint;
mod checkpoints;
mod decide;
mod diff;
mod entry;
mod form;
mod frame;
mod graph;
mod guard;
mod hold;
mod inbox;
mod live;
mod proposal;
mod restore;
mod rules;
mod session;
mod sessions;
mod show;
mod sign_in;
mod status;
mod timeline;
mod trail;
mod trouble;
mod visit;
mod workspaces;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{get, post};
use safepoint_model::Clock;
use tokio::sync::Semaphore;

pub(crate) use guard::again;

use crate::commands::Visits;

/// The longest form that is read, in bytes.
const LONGEST_FORM: usize = 1 << 20;

/// How many commands the page runs at once.
pub(crate) const AT_ONCE: usize = 8;

/// How browsers reach the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Over HTTP, on this machine alone or where everybody may listen.
    Plain,
    /// Over HTTPS, here or in front of it: cookies are never sent without it.
    Tls,
}

/// What the page has from the world.
#[derive(Clone)]
pub struct Around {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// How browsers reach it.
    pub transport: Transport,
}

/// Everything the page works with.
struct Page {
    commands: Arc<dyn Visits>,
    around: Around,
    watcher: live::Watcher,
    turns: Arc<Semaphore>,
}

/// The page, over these commands.
pub fn router(commands: Arc<dyn Visits>, around: Around) -> Router {
    let page = Arc::new(Page {
        watcher: live::Watcher::default(),
        turns: Arc::new(Semaphore::new(AT_ONCE)),
        commands,
        around,
    });
    let inside = Router::new()
        .route("/", get(inbox::page))
        .route("/holds/{hold}", get(hold::page))
        .route("/holds/{hold}/form.json", get(hold::form))
        .route("/holds/{hold}/decide", post(decide::post))
        .route("/sessions", get(sessions::page))
        .route("/sessions/{session}", get(session::page))
        .route("/checkpoints", get(checkpoints::page))
        .route("/checkpoints/{checkpoint}", get(checkpoint::page))
        .route("/checkpoints/{checkpoint}/diff", get(checkpoint::since))
        .route(
            "/checkpoints/{before}/diff/{after}",
            get(checkpoint::between),
        )
        .route(
            "/checkpoints/{checkpoint}/rollback",
            get(restore::roll_back_plan).post(restore::roll_back),
        )
        .route(
            "/actions/{action}/undo",
            get(restore::undo_plan).post(restore::undo),
        )
        .route("/workspaces", get(workspaces::page))
        .route("/workspaces/{workspace}", get(workspaces::one))
        .route("/trail", get(trail::page))
        .route("/trail.json", get(trail::data))
        .route("/trail/verify", get(trail::verify))
        .route("/trail/consistency/{size}", get(entry::consistency))
        .route("/trail/entry/{entry}", get(entry::page))
        .route("/trail/entry/{entry}/proof", get(entry::proof))
        .route("/rules", get(rules::page))
        .route("/status", get(status::page))
        .route("/status/doctor", get(status::doctor))
        .route("/live", get(live::stream))
        .route("/sign-out", post(sign_in::out))
        .fallback(trouble::nowhere)
        .layer(from_fn_with_state(Arc::clone(&page), visit::enter));
    Router::new()
        .route("/sign-in", get(sign_in::page).post(sign_in::post))
        .route("/page.css", get(asset::style))
        .route("/page.js", get(asset::script))
        .route("/page.svg", get(asset::icon))
        .merge(inside)
        .layer(DefaultBodyLimit::max(LONGEST_FORM))
        .layer(from_fn(guard::watch))
        .with_state(page)
}
