//! Handing one notice to its webhook.

use std::time::Duration;

use crate::https::{Https, HttpsError, Post};

/// How long a webhook may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A CloudEvent in structured mode, and who says so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The value of the header `Safepoint-Signature`.
    pub signature: String,
    /// The event, as JSON.
    pub body: String,
}

/// Why a notice did not arrive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDelivered {
    /// It never will: the address may not be used, or wants no more.
    Refused(String),
    /// It was not taken. Another time it may be.
    Failed(String),
    /// Nobody was there to take it, nor any other notice.
    Unreachable(String),
}

/// Who hands over notices.
pub trait Poster {
    /// Hands over one.
    fn post(&self, webhook: &str, message: &Message) -> Result<(), NotDelivered>;
}

impl Poster for Https {
    fn post(&self, webhook: &str, message: &Message) -> Result<(), NotDelivered> {
        let post = Post {
            url: webhook,
            reach: self.webhooks,
            timeout: TIMEOUT,
            headers: &[
                (
                    "content-type",
                    "application/cloudevents+json; charset=utf-8",
                ),
                ("safepoint-signature", &message.signature),
            ],
            body: message.body.as_bytes(),
        };
        let reason = |error: &HttpsError| error.to_string();
        match Https::post(self, &post) {
            Ok(answer) => match answer.status {
                200..=299 => Ok(()),
                410 => Err(NotDelivered::Refused("it wants no more".to_owned())),
                status => Err(NotDelivered::Failed(format!(
                    "it answered with status {status}"
                ))),
            },
            Err(error @ (HttpsError::Address(_) | HttpsError::Private)) => {
                Err(NotDelivered::Refused(reason(&error)))
            }
            Err(
                error @ (HttpsError::Unknown | HttpsError::Timeout | HttpsError::Connection(_)),
            ) => Err(NotDelivered::Unreachable(reason(&error))),
            Err(error) => Err(NotDelivered::Failed(reason(&error))),
        }
    }
}
