//! What went wrong, as RFC 9457 has it: `application/problem+json`, with the program's own
//! code, name and advice in it.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use safepoint_model::{Code, Exit};
use serde_json::{Map, Value, json};

use crate::commands::Answer;

/// Every status that a problem can have, and what it means.
pub const STATUSES: &[(u16, &str)] = &[
    (400, "The request cannot be read"),
    (401, "There is no token, or not one that is good"),
    (
        403,
        "It is denied: by a rule, a person, the role of the token, or where it came from",
    ),
    (404, "There is no such thing, or not for this token"),
    (405, "The path takes another method"),
    (408, "The request did not come in in time"),
    (409, "What is there stands in the way, or does not hold"),
    (413, "The body is too large"),
    (415, "The body is not JSON"),
    (421, "Another host was meant"),
    (422, "What is given cannot be used"),
    (429, "It was asked for too often"),
    (431, "The head is too large"),
    (500, "It has gone wrong inside"),
    (503, "The store or the server is not available now"),
    (504, "It was interrupted, or took too long"),
];

/// The status that an exit code and an error code have over HTTP.
pub fn status_of(exit: u8, code: &str) -> u16 {
    const INTERNAL: &str = Code::Internal.code();
    const OUTPUT: &str = Code::Output.code();
    const LIMITED: &str = Code::RateLimited.code();
    match (exit, code) {
        (0, _) => 200,
        (_, INTERNAL | OUTPUT) => 500,
        (_, LIMITED) => 429,
        (1, _) => 409,
        (2 | 4 | 6, _) => 403,
        (3, _) => 504,
        (5, _) => 503,
        (7, _) => 422,
        (8, _) => 404,
        (9, _) => 409,
        _ => 500,
    }
}

/// Something that went wrong.
#[derive(Clone, Debug)]
pub(super) struct Problem {
    status: StatusCode,
    fields: Map<String, Value>,
    wait: Option<Duration>,
    /// Whether something was recorded before it went wrong.
    recorded: bool,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: Code, detail: &str) -> Self {
        let mut fields = Map::new();
        for (name, value) in [
            (
                "type",
                json!(format!("urn:safepoint:problem:{}", code.code())),
            ),
            ("title", json!(code.meaning())),
            ("status", json!(status.as_u16())),
            ("detail", json!(detail)),
            ("code", json!(code.code())),
            ("name", json!(code.name())),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Self {
            status,
            fields,
            wait: None,
            recorded: false,
        }
    }

    /// Says what to do.
    pub(super) fn advise(mut self, suggestion: &str) -> Self {
        self.fields
            .insert("suggestion".to_owned(), suggestion.into());
        self
    }

    /// Says when to come again.
    pub(super) fn wait(mut self, wait: Duration) -> Self {
        self.wait = Some(wait);
        self
    }

    pub(super) fn bad_request(detail: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, Code::InvalidInput, detail)
    }

    pub(super) fn unprocessable(detail: &str) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, Code::InvalidInput, detail)
    }

    pub(super) fn unavailable(detail: &str) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Code::StoreUnreachable,
            detail,
        )
        .wait(Duration::from_secs(1))
    }

    pub(super) fn too_often(wait: Duration) -> Self {
        Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            Code::RateLimited,
            "it was asked for too often",
        )
        .wait(wait)
    }

    pub(super) fn inside(detail: &str) -> Self {
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            Code::Internal,
            &format!("it has gone wrong inside: {detail}"),
        )
        .advise("it is not known how far it came: look before trying again")
    }

    /// What a command answered that did not do what was asked.
    pub(super) fn of(answer: Answer) -> Self {
        let Answer { exit, document } = answer;
        let error = document.get("error");
        let said = |name: &str| error.and_then(|it| it.get(name)).and_then(Value::as_str);
        let code = match said("code") {
            Some(code) => Code::ALL.iter().copied().find(|it| it.code() == code),
            None => Some(implied(exit, &document)),
        };
        let code = code.unwrap_or(Code::Internal);
        let status = StatusCode::from_u16(status_of(exit, code.code()));
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let detail = said("message").or_else(|| {
            let reasons = ["/denial/reason", "/resolution/reason", "/first_bad/reason"];
            reasons
                .iter()
                .find_map(|pointer| document.pointer(pointer)?.as_str())
        });
        let mut problem = Self::new(status, code, detail.unwrap_or(code.meaning()));
        if code == Code::ApprovalRequired && is_question(&document) {
            let title = json!("a gate's questions wait for answers");
            problem.fields.insert("title".to_owned(), title);
        }
        let next = document.pointer("/denial/next").and_then(Value::as_str);
        for (name, value) in [
            ("location", said("location")),
            ("suggestion", said("suggestion").or(next)),
        ] {
            if let Some(value) = value {
                problem.fields.insert(name.to_owned(), value.into());
            }
        }
        if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::TOO_MANY_REQUESTS {
            problem.wait = Some(Duration::from_secs(1));
        }
        problem.fields.insert("exit".to_owned(), exit.into());
        // What it printed besides: questions to answer, what was checked, what is in the way.
        let only_error = document
            .as_object()
            .is_some_and(|fields| fields.len() == 1 && error.is_some());
        if !only_error && !document.is_null() {
            problem.fields.insert("document".to_owned(), document);
        }
        problem
    }

    /// Has what the command showed people besides.
    pub(super) fn showing(mut self, text: Option<String>) -> Self {
        if let Some(text) = text {
            self.fields.insert("text".to_owned(), text.into());
        }
        self
    }

    /// Knows whether something was recorded before it went wrong.
    pub(super) fn after(mut self, recorded: bool) -> Self {
        self.recorded = recorded;
        self
    }

    /// Whether it is for lack of something that may be there in a moment.
    pub(super) fn is_for_now(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 503)
    }

    /// Whether it is certain that nothing was done.
    pub(super) fn nothing_happened(&self) -> bool {
        let unconfirmed = self.code() == Code::StoreUnconfirmed.code();
        !self.recorded && !unconfirmed
    }

    pub(super) fn status(&self) -> u16 {
        self.status.as_u16()
    }

    pub(super) fn code(&self) -> &str {
        let code = self.fields.get("code").and_then(Value::as_str);
        code.unwrap_or_default()
    }

    pub(super) fn body(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }

    /// The response.
    pub(super) fn response(self) -> Response {
        let mut response = stored(self.status, self.body());
        if let Some(wait) = self.wait {
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from(seconds.max(1)));
        }
        response
    }
}

/// A problem that was written down before.
pub(super) fn stored(status: StatusCode, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let kind = match status.is_success() {
        true => "application/json",
        false => "application/problem+json",
    };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Whether only a gate's question is open: no person has to be asked.
fn is_question(document: &Value) -> bool {
    let said = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    said("/denial/code") == Some("QUESTIONS_PENDING")
        || said("/resolution/decision") == Some("hold")
}

/// The code of what was denied or does not hold, and was printed without one.
fn implied(exit: u8, document: &Value) -> Code {
    let said = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
    if document.get("first_bad").is_some() {
        return Code::TrailTampered;
    }
    let waits = matches!(
        said("/resolution/decision").or_else(|| said("/denial/code")),
        Some("hold" | "requires_approval" | "APPROVAL_REQUIRED" | "QUESTIONS_PENDING")
    );
    match exit {
        2 | 4 if waits => Code::ApprovalRequired,
        2 | 4 => Code::ConstraintViolated,
        1 => Code::VerificationFailed,
        7 => Code::InvalidInput,
        _ => {
            let fits = |code: &&Code| code.exit() as u8 == exit && **code != Code::Internal;
            Code::ALL
                .iter()
                .find(fits)
                .copied()
                .unwrap_or(Code::Internal)
        }
    }
}

/// What all of it promises: every exit code has a status that is documented.
const _: () = assert!(Exit::ALL.len() == 10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_every_exit_code_has_a_status() {
        let statuses: Vec<u16> = Exit::ALL
            .iter()
            .map(|exit| status_of(*exit as u8, ""))
            .collect();
        assert_eq!(statuses, [200, 409, 403, 504, 403, 503, 403, 422, 404, 409]);
        for code in Code::ALL {
            let status = status_of(code.exit() as u8, code.code());
            assert!(STATUSES.iter().any(|(known, _)| *known == status), "{code}");
        }
        assert_eq!(status_of(1, "X101"), 500);
        assert_eq!(status_of(2, "F519"), 429);
    }

    #[test]
    fn su_07_a_denial_keeps_its_document() {
        let problem = Problem::of(Answer {
            exit: 2,
            document: json!({"resolution": {"decision": "hold", "reason": "so"}}),
        });
        assert_eq!(problem.status(), 403);
        let body: Value = serde_json::from_str(&problem.body()).unwrap();
        assert_eq!(body["code"], "F502");
        assert_eq!(body["title"], "a gate's questions wait for answers");
        assert_eq!(body["detail"], "so");
        assert_eq!(body["document"]["resolution"]["decision"], "hold");
        let problem = Problem::of(Answer {
            exit: 5,
            document: json!({"error": {"code": "S502", "message": "locked", "suggestion": "wait"}}),
        });
        let body: Value = serde_json::from_str(&problem.body()).unwrap();
        assert_eq!(body["status"], 503);
        assert_eq!(body["name"], "STORE_LOCKED");
        assert_eq!(body["suggestion"], "wait");
        assert!(body.get("document").is_none());
    }
}
