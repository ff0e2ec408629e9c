//! What went wrong, as a page: what, why, and what next.

use axum::response::{Html, IntoResponse, Response};
use http::StatusCode;
use maud::html;
use serde_json::Value;

use super::frame;
use super::show::sentence;
use crate::commands::Unavailable;

/// Something went wrong.
#[derive(Debug)]
pub(super) struct Trouble {
    status: StatusCode,
    message: String,
    hint: String,
}

impl Trouble {
    /// Something went wrong, and this is what to do.
    pub(super) fn new(status: StatusCode, message: &str, hint: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            hint: hint.to_owned(),
        }
    }

    /// There is no such thing.
    pub(super) fn not_found(message: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, message, "go back to the list")
    }

    /// Nobody can say now.
    pub(super) fn unavailable(message: &str) -> Self {
        let hint = "nothing was done; try again in a moment";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message, hint)
    }

    /// What a command said that did not end well.
    pub(super) fn of(exit: u8, document: &Value) -> Self {
        let status = match exit {
            2 | 4 | 6 => StatusCode::FORBIDDEN,
            7 => StatusCode::BAD_REQUEST,
            8 => StatusCode::NOT_FOUND,
            9 => StatusCode::CONFLICT,
            3 | 5 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let error = document.get("error").or_else(|| document.get("denial"));
        let said = |name: &str| error.and_then(|error| error.get(name)?.as_str());
        let message = said("message").or_else(|| said("reason"));
        let hint = said("suggestion").or_else(|| said("next"));
        Self::new(
            status,
            message.unwrap_or("it did not work, and nobody said why"),
            hint.unwrap_or("nothing was done"),
        )
    }

    /// Whether the program has no such command.
    pub(super) fn is_unknown_command(&self) -> bool {
        self.status == StatusCode::BAD_REQUEST && self.message.contains("unrecognized subcommand")
    }

    /// Whether what was asked for cannot be.
    pub(super) fn is_refusal(&self) -> bool {
        self.status.is_client_error()
    }

    /// What went wrong, in a line.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// What to do, in a line.
    pub(super) fn hint(&self) -> &str {
        &self.hint
    }
}

impl From<Unavailable> for Trouble {
    fn from(error: Unavailable) -> Self {
        Self::unavailable(&error.to_string())
    }
}

impl IntoResponse for Trouble {
    fn into_response(self) -> Response {
        let body = html! {
            section.trouble aria-labelledby="trouble" {
                p.number { (self.status.as_u16()) }
                h1 id="trouble" { (sentence(&self.message)) }
                p { (sentence(&self.hint)) }
                p { a.button href="/" { "To the inbox" } }
            }
        };
        (
            self.status,
            Html(frame::astray("Trouble", &body).into_string()),
        )
            .into_response()
    }
}

/// No page has this address.
pub(super) async fn nowhere() -> Trouble {
    Trouble::new(
        StatusCode::NOT_FOUND,
        "there is no page at this address",
        "the menu leads to all there are",
    )
}
