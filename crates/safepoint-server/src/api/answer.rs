//! Around every request: whether it may be for us, what every response says, and what is
//! written down of it. Never a token, never a body, never a path that somebody made up.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, REFERRER_POLICY, STRICT_TRANSPORT_SECURITY,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use safepoint_model::Code;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::Api;
use super::endpoint::closing;
use super::guard::{self, Whence};
use super::listen::LARGEST_HEAD;
use super::own::{self, PATHS};
use super::patience::{self, Late};
use super::people;
use super::problem::Problem;
use super::shared::{Peer, Shared};
use crate::page;

/// What is known of a request once it is answered.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) route: &'static str,
    pub(super) caller: Option<String>,
}

/// What no route answers.
const NO_ROUTE: &str = "none";

/// What is written down of a method: there is no longer one that anybody uses.
const LONGEST_METHOD: usize = 16;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What every response says, unless it says otherwise itself.
const ALWAYS: [(HeaderName, &str); 5] = [
    (
        CONTENT_SECURITY_POLICY,
        "default-src 'none'; frame-ancestors 'none'",
    ),
    (HeaderName::from_static("x-content-type-options"), "nosniff"),
    (HeaderName::from_static("x-frame-options"), "DENY"),
    (REFERRER_POLICY, "no-referrer"),
    (CACHE_CONTROL, "no-store"),
];

/// How long a browser remembers to come over HTTPS alone: a year.
const HTTPS_ALONE: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Answers a request.
pub(super) async fn around<A: Api>(
    State(shared): State<Arc<Shared<A>>>,
    request: Request,
    next: Next,
) -> Response {
    let began = Instant::now();
    let id = shared.request_id();
    let peer = request.extensions().get::<Peer>().copied();
    let method: String = request
        .method()
        .as_str()
        .chars()
        .take(LONGEST_METHOD)
        .collect();
    let admitted = match peer {
        Some(peer) => shared.admit(peer),
        None => Err(Problem::inside("nobody knows where it came from")),
    };
    // Whoever probes comes by the address of the machine, and hears nothing but `ok`.
    let is_probe = PATHS
        .iter()
        .any(|(path, roles)| roles.is_none() && *path == request.uri().path());
    let admitted = admitted.and_then(|()| match head_size(&request) > LARGEST_HEAD {
        true => Err(too_large()),
        false => Ok(()),
    });
    let admitted = admitted.and_then(|()| match is_probe {
        true => Ok(Whence::Ours),
        false => shared
            .guard
            .check(request.method(), request.uri(), request.headers()),
    });
    let is_api = people::is_of_api(request.uri().path());
    let is_held_to_https = shared.guard.is_held_to_https(request.headers());
    let (late, most) = (Late::default(), shared.options.patience);
    let request = request.map(|body| patience::body(body, most, &late));
    let mut response = match admitted {
        Ok(Whence::Ours) => next.run(request).await,
        Ok(Whence::Link) if is_api => guard::elsewhere().response(),
        Ok(Whence::Link) => own::tell("page", None, page::again()),
        // Where it ends, one that is malformed does not say for sure.
        Err(problem) if problem.status() == 400 => closing(problem.response()),
        Err(problem) => problem.response(),
    };
    let told = response.extensions_mut().remove::<Told>();
    if late.is_so() {
        // Whatever was made of the half of it.
        response = closing(too_slow().response());
    }
    let status = response.status();
    let (route, caller) = match told {
        Some(told) => (told.route, told.caller),
        None => (NO_ROUTE, None),
    };
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers
            .entry(name)
            .or_insert(HeaderValue::from_static(value));
    }
    if is_held_to_https {
        headers.insert(STRICT_TRANSPORT_SECURITY, HTTPS_ALONE);
    }
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    let took = began.elapsed();
    shared.metrics.count(route, status.as_u16(), took);
    let mut line = Map::new();
    for (name, value) in [
        ("event", json!("request")),
        ("request_id", json!(id)),
        ("method", json!(method)),
        ("route", json!(route)),
        ("status", json!(status.as_u16())),
        ("milliseconds", json!(took.as_micros() as f64 / 1_000.0)),
        ("address", json!(peer.map(|peer| peer.0.ip().to_string()))),
        ("caller", caller.map_or(Value::Null, Value::String)),
    ] {
        line.insert(name.to_owned(), value);
    }
    shared.api.log(line);
    response
}

/// How many bytes a head has, line ends and all.
fn head_size(request: &Request) -> usize {
    let first = request.method().as_str().len() + request.uri().to_string().len();
    let lines = request.headers().iter();
    let lines = lines.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    first + "  HTTP/1.1\r\n\r\n".len() + lines.sum::<usize>()
}

fn too_large() -> Problem {
    Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        Code::InvalidInput,
        &format!("a head has at most {LARGEST_HEAD} bytes"),
    )
}

fn too_slow() -> Problem {
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        Code::TimedOut,
        "the body did not come in in time",
    )
}

/// There is nothing at this path.
pub(super) async fn nothing_here() -> Response {
    Problem::new(
        StatusCode::NOT_FOUND,
        Code::NotFound,
        "there is nothing at this path",
    )
    .advise("`/v1/openapi.json` tells what there is")
    .response()
}

/// There is something, but not for this method.
pub(super) async fn other_method() -> Response {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        Code::InvalidInput,
        "this path takes another method",
    )
    .response()
}
