//! A server elsewhere, where the store is `https://…`: how it is asked, and what it answers.
//!
//! It judges and keeps the record. The token is sent to it and shown nowhere. No redirect is
//! followed, and what cannot be trusted or read is an error.

mod call;
pub(crate) mod forward;
mod matches;

use std::time::Duration;

use safepoint_control::pass::{Far, Question};
use safepoint_control::{ControlError, Https, HttpsError, Inquiry};
use safepoint_model::Code;
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::call::{Method, Target};
use crate::commands::serve::endpoint::Endpoint;
use crate::commands::serve::table::endpoints;
use crate::context::Context;
use crate::error::CliError;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer: a bundle of a long session.
const LARGEST: u64 = 64 << 20;

/// The variable that holds the token itself.
pub(crate) const TOKEN: &str = "SAFEPOINT_SERVER_TOKEN";

/// A server, and what lets us in there.
pub(crate) struct Server {
    url: String,
    /// `Bearer …`.
    bearer: String,
    https: Https,
}

/// The form in which a command's output is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// As one document.
    Document,
    /// For people.
    Text,
}

/// What a server answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    /// It was done, and this is what the command printed.
    Done(String),
    /// It was not.
    Problem(Box<Problem>),
}

/// What went wrong there, as the server says it.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
pub(crate) struct Problem {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) detail: String,
    pub(crate) location: Option<String>,
    pub(crate) suggestion: Option<String>,
    /// The exit code of the command, if one was run.
    pub(crate) exit: Option<u8>,
    /// What it printed besides.
    pub(crate) document: Option<Value>,
    /// The same for people.
    pub(crate) text: Option<String>,
}

impl Server {
    /// The server of the settings, if the store is one.
    pub(crate) fn of(context: &Context) -> Result<Option<Self>, CliError> {
        let Some(server) = &context.settings.server else {
            return Ok(None);
        };
        let token = match context.environment.text(TOKEN) {
            Some(token) => token,
            None => std::fs::read_to_string(&server.token_file.value).map_err(|error| {
                identity(
                    format!(
                        "the token for the server cannot be read from `{}`: {error}",
                        server.token_file.value.display()
                    ),
                    "put it there, or name its file in `SAFEPOINT_SERVER_TOKEN_FILE`; `safepoint token create NAME --role agent` makes one on the server",
                )
            })?,
        };
        let token = token.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(identity(
                "what is there for the server is not a token".to_owned(),
                "`safepoint token create NAME --role agent` makes one on the server",
            ));
        }
        let https = match &server.certificates.value {
            None => Https::new(),
            Some(file) => {
                let text = std::fs::read_to_string(file).map_err(|error| CliError::File {
                    action: "read",
                    path: file.clone(),
                    error,
                })?;
                Https::new()
                    .with_roots(&text)
                    .map_err(|error| CliError::Invalid {
                        message: format!("`{}`: {error}", file.display()),
                        suggestion: "`server_ca` and `SAFEPOINT_SERVER_CA` name a PEM file with certificates",
                    })?
            }
        };
        Ok(Some(Self {
            url: server.url.clone(),
            bearer: format!("Bearer {token}"),
            https,
        }))
    }

    /// Uses an endpoint.
    pub(crate) fn call(
        &self,
        endpoint: &Endpoint,
        given: &Map<String, Value>,
        wanted: Wanted,
    ) -> Result<Reply, ControlError> {
        let Target { method, path, body } = Target::of(endpoint, given);
        let url = format!("{}{path}", self.url);
        let accept = match wanted {
            Wanted::Document => "application/json",
            Wanted::Text => "text/plain",
        };
        let mut headers = vec![("authorization", self.bearer.as_str()), ("accept", accept)];
        if method == Method::Post {
            headers.push(("content-type", "application/json"));
        }
        let answer = self.https.inquire(&Inquiry {
            url: &url,
            headers: &headers,
            body: body.as_deref().map(str::as_bytes),
            timeout: PATIENCE,
            largest: LARGEST,
        });
        let answer = answer.map_err(|error| match error {
            HttpsError::TooLarge | HttpsError::Protocol(_) => elsewhere(&error.to_string()),
            other => ControlError::Unreachable {
                reason: other.to_string(),
            },
        })?;
        let text =
            String::from_utf8(answer.body).map_err(|_| elsewhere("its answer is not UTF-8"))?;
        if answer.status == 200 {
            return Ok(Reply::Done(text));
        }
        let problem: Problem = serde_json::from_str(&text)
            .map_err(|_| elsewhere(&format!("it answers with the status {}", answer.status)))?;
        Ok(Reply::Problem(Box::new(problem)))
    }

    /// Uses an endpoint by its name, and reads the document.
    pub(crate) fn document(
        &self,
        name: &str,
        given: Map<String, Value>,
    ) -> Result<Value, ControlError> {
        match self.call(endpoint(name)?, &given, Wanted::Document)? {
            Reply::Done(text) => {
                let limits = safepoint_model::json::Limits {
                    bytes: usize::try_from(LARGEST).unwrap_or(usize::MAX),
                    ..safepoint_model::json::Limits::default()
                };
                safepoint_model::json::read(text.as_bytes(), limits)
                    .map_err(|error| elsewhere(&format!("its answer cannot be read: {error}")))
            }
            // A no of the gates is an answer.
            Reply::Problem(problem) => match problem.document {
                Some(document) if document.get("resolution").is_some() => Ok(document),
                _ => Err(problem.refusal()),
            },
        }
    }
}

/// The endpoint of this name.
fn endpoint(name: &str) -> Result<&'static Endpoint, ControlError> {
    endpoints()
        .find(|it| it.form.name == name)
        .ok_or_else(|| elsewhere("there is no such endpoint"))
}

impl Problem {
    /// As an error of ours. A server that cannot do its part now was not reached.
    fn refusal(self) -> ControlError {
        let known = Code::ALL.iter().find(|it| it.code() == self.code);
        match known.map(|code| code.exit()) {
            Some(safepoint_model::Exit::Unavailable) | None => ControlError::Unreachable {
                reason: self.detail,
            },
            Some(_) => ControlError::Refuses {
                code: self.code,
                message: self.detail,
                location: self.location,
                suggestion: self.suggestion,
            },
        }
    }
}

impl Far for Server {
    fn ask(&self, question: &Question<'_>) -> Result<Value, ControlError> {
        let id = |id: &str| Value::from(id);
        let (name, fields) = match question {
            Question::Enter(it) => ("action_enter", vec![("entering", written(it)?)]),
            Question::Propose(it) => ("action_propose", vec![("proposal", written(it)?)]),
            Question::Rehearse(it) => ("action_rehearse", vec![("proposal", written(it)?)]),
            Question::End(it) => (
                "action_outcome",
                vec![
                    ("action_id", id(it.action_id.as_str())),
                    ("outcome", written(it)?),
                ],
            ),
            Question::Show(session) => ("session_show", vec![("session_id", id(session.as_str()))]),
            Question::Input(session, text) => (
                "session_input",
                vec![("session_id", id(session.as_str())), ("text", json!(text))],
            ),
            Question::Request(session, action, parameters) => (
                "session_request",
                vec![
                    ("session_id", id(session.as_str())),
                    ("action", json!(action)),
                    ("parameters", (*parameters).clone()),
                ],
            ),
            Question::Close(session) => (
                "session_end",
                vec![
                    ("session_id", id(session.as_str())),
                    ("abandon", Value::Bool(true)),
                ],
            ),
            Question::Hold(hold) => ("action_hold", vec![("hold_id", id(hold.as_str()))]),
        };
        let fields = fields.into_iter();
        self.document(
            name,
            fields
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }
}

fn written(document: &impl Serialize) -> Result<Value, ControlError> {
    serde_json::to_value(document).map_err(|error| ControlError::Proposal {
        reason: format!("it cannot be written down exactly: {error}"),
    })
}

fn elsewhere(reason: &str) -> ControlError {
    ControlError::Elsewhere {
        reason: reason.to_owned(),
    }
}

fn identity(message: String, suggestion: &str) -> CliError {
    CliError::Control(ControlError::Refuses {
        code: Code::AccessDenied.code().to_owned(),
        message,
        location: None,
        suggestion: Some(suggestion.to_owned()),
    })
}
