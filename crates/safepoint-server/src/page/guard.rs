//! What holds for every answer and every request, whoever asks.
//!
//! A request that would change something comes from a page of our own, or is not read. An
//! answer tells the browser to run nothing but our one script, to show nothing inside other
//! pages, and to keep nothing.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use maud::html;

use super::frame;
use super::trouble::Trouble;

/// What a browser may load and run.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; \
    connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What every answer says.
const HEADERS: [(HeaderName, &str); 7] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers would then hide the origin of our own forms from us.
    (header::REFERRER_POLICY, "same-origin"),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    ),
    (
        HeaderName::from_static("permissions-policy"),
        "camera=(), geolocation=(), microphone=(), payment=()",
    ),
];

/// Looks at the request before anything else does, and marks the answer.
pub(super) async fn watch(request: Request, next: Next) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    let response = match reads || is_ours(request.headers()) {
        true => next.run(request).await,
        false => Trouble::new(
            StatusCode::FORBIDDEN,
            "this did not come from a page of ours",
            "open the page again, and send it from there",
        )
        .into_response(),
    };
    marked(response)
}

/// For whoever has followed a link that another site shows, such as a chat room. Their cookie
/// does not come with that, and nothing is looked at: the answer is the same whatever was asked
/// for, and has the browser ask once more. Then it is we who ask, and the cookie comes along.
pub(crate) fn again() -> Response {
    let body = html! {
        section.trouble aria-labelledby="again" {
            h1 id="again" { "One moment" }
            p { "Another site has led you here." }
            // Where nothing happens by itself.
            p { a.button href="" { "Go on" } }
        }
    };
    let page = Html(frame::bare("One moment", &body).into_string());
    marked(([(header::REFRESH, "0")], page).into_response())
}

fn marked(mut response: Response) -> Response {
    for (name, value) in HEADERS {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    response
        .headers_mut()
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the page that sent it is on the host that it was sent to. A browser always says
/// where a form was sent from.
fn is_ours(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let fetched = headers.get("sec-fetch-site");
    if fetched.is_some_and(|site| site != "same-origin") {
        return false;
    }
    let (Some(origin), Some(host)) = (text(header::ORIGIN), text(header::HOST)) else {
        return false;
    };
    let scheme = |scheme: &str| origin.strip_prefix(scheme);
    let named = scheme("http://").or_else(|| scheme("https://"));
    named.is_some_and(|named| !host.is_empty() && named.eq_ignore_ascii_case(host))
}
