//! What the server answers itself: whether it lives and is ready, what it counted, what it
//! offers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;

use super::answer::Told;
use super::problem::{Problem, stored};
use super::shared::{Peer, Shared, no_store};
use super::{Api, Gauges};
use crate::commands::{Caller, Role};

/// Who may see what is counted.
const COUNTED: &[Role] = &[Role::Operator, Role::Auditor];

/// Who may see what is offered: everybody with a token.
const OFFERED: &[Role] = &[Role::Agent, Role::Operator, Role::Steward, Role::Auditor];

/// What the server answers itself, and who may ask. Only these two need no token, and they
/// tell nothing but `ok`.
pub const PATHS: &[(&str, Option<&[Role]>)] = &[
    ("/healthz", None),
    ("/readyz", None),
    ("/metrics", Some(COUNTED)),
    ("/v1/openapi.json", Some(OFFERED)),
    ("/v1/events", Some(super::events::FOLLOWERS)),
];

/// Whether the process lives.
pub(super) async fn health() -> Response {
    tell("healthz", None, plain("ok\n".to_owned()))
}

/// Whether it can answer: the store is there, and it is not about to end.
pub(super) async fn ready<A: Api>(State(shared): State<Arc<Shared<A>>>) -> Response {
    let is_closing = *shared.closing.borrow();
    let response = match is_closing {
        true => Problem::unavailable("the server is about to end").response(),
        false => match shared.quickly(|api| api.size()).await {
            Ok(Ok(_)) => plain("ok\n".to_owned()),
            Ok(Err(error)) => no_store(&error).response(),
            Err(problem) => problem.response(),
        },
    };
    tell("readyz", None, response)
}

/// What was counted.
pub(super) async fn metrics<A: Api>(State(shared): State<Arc<Shared<A>>>, head: Parts) -> Response {
    let (caller, response) = match authorised(&shared, &head, COUNTED).await {
        Err(problem) => (None, problem.response()),
        Ok(caller) => {
            let gauges = shared.blocking(&caller, |api| api.gauges()).await;
            let gauges: Option<Gauges> = gauges.ok().and_then(Result::ok);
            let mut response = plain(shared.metrics.show(gauges));
            let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, kind);
            (Some(caller.name), response)
        }
    };
    tell("metrics", caller, response)
}

/// What is offered.
pub(super) async fn description<A: Api>(
    State(shared): State<Arc<Shared<A>>>,
    head: Parts,
) -> Response {
    let (caller, response) = match authorised(&shared, &head, OFFERED).await {
        Err(problem) => (None, problem.response()),
        Ok(caller) => (
            Some(caller.name),
            stored(StatusCode::OK, shared.description.clone()),
        ),
    };
    tell("openapi", caller, response)
}

async fn authorised<A: Api>(
    shared: &Shared<A>,
    head: &Parts,
    roles: &[Role],
) -> Result<Caller, Problem> {
    let peer = head.extensions.get::<Peer>().copied();
    let peer = peer.ok_or_else(|| Problem::inside("nobody knows where it came from"))?;
    shared.caller(&head.headers, peer, roles).await
}

fn plain(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

pub(super) fn tell(
    route: &'static str,
    caller: Option<String>,
    mut response: Response,
) -> Response {
    response.extensions_mut().insert(Told { route, caller });
    response
}
