//! Asking stewards' services, for the engine that does no I/O itself.

use std::time::Duration;

use safepoint_gates::Callback;
use safepoint_gates::sandbox::{MAX_MESSAGE_CHARACTERS, Said};
use safepoint_model::json::{self, Limits};
use safepoint_model::text;
use serde::Deserialize;

use crate::https::{Https, Post, Reach, shown_origin};

/// How deep an answer may nest. It has no reason to nest at all.
const DEEPEST_ANSWER: usize = 4;

/// Who asks stewards' services.
pub trait Caller {
    /// Asks one service. An error, a timeout or anything odd is a refusal: why, in words.
    fn call(&self, callback: &Callback) -> Result<Said, String>;
}

/// Nobody does. For whoever judges without a network.
pub struct NoCaller;

impl Caller for NoCaller {
    fn call(&self, callback: &Callback) -> Result<Said, String> {
        let origin = shown_origin(&callback.url);
        Err(format!("`{origin}` is not asked here"))
    }
}

impl Caller for Https {
    /// Sends the input as canonical JSON, and reads the answer strictly.
    fn call(&self, callback: &Callback) -> Result<Said, String> {
        let body = json::canonical(&callback.input)
            .map_err(|_| "its input cannot be written as JSON".to_owned())?;
        let post = Post {
            url: &callback.url,
            reach: match callback.allow_private_addresses {
                true => Reach::AlsoPrivate,
                false => Reach::Public,
            },
            timeout: Duration::from_millis(callback.timeout_ms),
            headers: &[("content-type", "application/json")],
            body: &body,
        };
        let answer = self.post(&post).map_err(|error| error.to_string())?;
        if answer.status != 200 {
            return Err(format!("it answered with status {}", answer.status));
        }
        read(&answer.body)
    }
}

/// What a service answers: one of the first three, and perhaps why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    valid: Option<bool>,
    fire: Option<bool>,
    passed: Option<bool>,
    message: Option<String>,
}

fn read(body: &[u8]) -> Result<Said, String> {
    let limits = Limits {
        depth: DEEPEST_ANSWER,
        ..Limits::default()
    };
    let answer: Answer = json::read_as(body, limits).map_err(|error| {
        let reason = error.to_string();
        format!("its answer cannot be read: {}", shown(&reason, 200))
    })?;
    let (Answer {
        valid: Some(yes),
        fire: None,
        passed: None,
        ..
    }
    | Answer {
        valid: None,
        fire: Some(yes),
        passed: None,
        ..
    }
    | Answer {
        valid: None,
        fire: None,
        passed: Some(yes),
        ..
    }) = answer
    else {
        return Err("its answer must have one of `valid`, `fire` and `passed`".to_owned());
    };
    Ok(Said {
        yes,
        message: answer
            .message
            .map(|message| shown(&message, MAX_MESSAGE_CHARACTERS)),
        log: Vec::new(),
    })
}

/// A stranger's words as one line that is safe to show.
fn shown(input: &str, characters: usize) -> String {
    let cut: String = input.chars().take(characters + 1).collect();
    text::shorten(&text::line(&cut).text, characters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ga_15_answers_are_read_strictly() {
        for (body, yes) in [
            (r#"{"valid":true}"#, true),
            (r#"{"fire":true,"message":null}"#, true),
            (r#" {"passed":false} "#, false),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap().yes, yes, "{body}");
        }
        for body in [
            "",
            "true",
            "{}",
            "[]",
            r#"{"valid":null}"#,
            r#"{"valid":"true"}"#,
            r#"{"valid":1}"#,
            r#"{"valid":true,"valid":false}"#,
            r#"{"valid":true,"fire":true}"#,
            r#"{"valid":true,"passed":false}"#,
            r#"{"valid":true,"more":1}"#,
            r#"{"valid":true,"message":["x"]}"#,
            r#"{"message":"yes"}"#,
            r#"{"valid":true} {}"#,
            r#"{"Valid":true}"#,
        ] {
            assert!(read(body.as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn ga_15_the_message_of_a_service_is_one_safe_line() {
        let body = r#"{"valid":false,"message":"no\n\u001b[31mway"}"#;
        let message = read(body.as_bytes()).unwrap().message.unwrap();
        assert!(!message.contains(['\n', '\u{1b}']), "{message:?}");
        let body = format!(r#"{{"valid":false,"message":"{}"}}"#, "x".repeat(5_000));
        let message = read(body.as_bytes()).unwrap().message.unwrap();
        assert_eq!(message.chars().count(), MAX_MESSAGE_CHARACTERS);
    }
}
