//! What goes with the pages: one stylesheet, one script, one picture. All of it is ours and in
//! the binary; nothing is fetched from anywhere else.

use axum::response::{IntoResponse, Response};
use http::header;

const STYLE: &str = concat!(
    include_str!("style/base.css"),
    include_str!("style/parts.css"),
    include_str!("style/pages.css"),
);
const SCRIPT: &str = concat!(
    include_str!("script/start.js"),
    include_str!("script/json.js"),
    include_str!("script/live.js"),
    include_str!("script/keys.js"),
    include_str!("script/sign.js"),
    include_str!("script/verify.js"),
    include_str!("script/end.js"),
);
const ICON: &str = include_str!("style/icon.svg");

pub(super) async fn style() -> Response {
    asset("text/css; charset=utf-8", STYLE)
}

pub(super) async fn script() -> Response {
    asset("text/javascript; charset=utf-8", SCRIPT)
}

pub(super) async fn icon() -> Response {
    asset("image/svg+xml", ICON)
}

fn asset(kind: &'static str, content: &'static str) -> Response {
    // Asked for anew with every page: they are small, and belong to this very version.
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, content).into_response()
}
