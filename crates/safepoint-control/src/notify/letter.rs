//! One message on its way, and what came of it.

use std::time::Duration;

use safepoint_model::Timestamp;

use super::retry;
use crate::https::{Https, HttpsError, Post, Reach};

/// How long a target may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A message. It cannot be printed: its address may be secret.
pub struct Letter {
    /// Where it goes.
    pub url: String,
    /// Which part of the network that may lie in.
    pub reach: Reach,
    /// The certificates that are trusted there, in place of the usual ones.
    pub authority: Option<String>,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// What it says.
    pub body: String,
    /// Which answers mean that it will never be taken, beside `410 Gone`.
    pub hopeless: &'static [u16],
    /// When it is sent.
    pub now: Timestamp,
}

/// Why a message was not taken. No address is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotTaken {
    /// Why, in words.
    pub reason: String,
    /// Whether it may be taken another time.
    pub again: Again,
}

/// Whether to try another time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Again {
    /// It never will be taken.
    Never,
    /// It may be, and not before so long, if the target said so.
    Later(Option<Duration>),
}

/// Who carries messages.
pub trait Carrier {
    /// Carries one.
    fn carry(&self, letter: &Letter) -> Result<(), NotTaken>;
}

impl Carrier for Https {
    fn carry(&self, letter: &Letter) -> Result<(), NotTaken> {
        let headers: Vec<(&str, &str)> = letter
            .headers
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        let trusting = match &letter.authority {
            None => Ok(self.clone()),
            Some(pem) => self.clone().with_roots(pem),
        };
        let answer = trusting.and_then(|https| {
            https.post(&Post {
                url: &letter.url,
                reach: letter.reach,
                timeout: TIMEOUT,
                headers: &headers,
                body: letter.body.as_bytes(),
            })
        });
        let answer = answer.map_err(|error| NotTaken {
            reason: error.to_string(),
            again: match error {
                HttpsError::Address(_) | HttpsError::Private | HttpsError::Certificate => {
                    Again::Never
                }
                _ => Again::Later(None),
            },
        })?;
        match answer.status {
            200..=299 => Ok(()),
            status => {
                let hopeless = status == 410 || letter.hopeless.contains(&status);
                let after = answer.retry_after.as_deref();
                Err(NotTaken {
                    reason: format!("it answered with status {status}"),
                    again: match hopeless {
                        true => Again::Never,
                        false => {
                            Again::Later(after.and_then(|it| retry::read_after(it, letter.now)))
                        }
                    },
                })
            }
        }
    }
}
