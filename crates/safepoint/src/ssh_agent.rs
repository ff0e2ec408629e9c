//! Keys in an SSH agent: which there are, and what they sign.
//!
//! Only Ed25519: its signatures are the same wherever they are made, so that
//! nobody who checks a decision needs to know where the key lives.

use std::cell::RefCell;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use safepoint_authority::Operator;
use safepoint_control::ControlError;
use safepoint_control::pass::Signing;

use crate::error::CliError;
use crate::world::Environment;

const REQUEST_IDENTITIES: u8 = 11;
const IDENTITIES_ANSWER: u8 = 12;
const SIGN_REQUEST: u8 = 13;
const SIGN_RESPONSE: u8 = 14;
const LARGEST_ANSWER: usize = 256 << 10;
const ED25519: &[u8] = b"ssh-ed25519";

/// A connection to an agent.
pub(crate) struct SshAgent {
    stream: RefCell<UnixStream>,
}

fn trouble(reason: impl Into<String>) -> ControlError {
    ControlError::Operator {
        reason: reason.into(),
    }
}

impl SshAgent {
    /// The agent that the environment names.
    pub(crate) fn connect(environment: &Environment) -> Result<Self, CliError> {
        let path = environment
            .path("SSH_AUTH_SOCK")
            .ok_or_else(|| trouble("there is no SSH agent: `SSH_AUTH_SOCK` is not set"))?;
        let stream = UnixStream::connect(&path)
            .map_err(|error| trouble(format!("the SSH agent does not answer: {error}")))?;
        Ok(Self {
            stream: RefCell::new(stream),
        })
    }

    /// The one Ed25519 key whose comment has `part` in it.
    pub(crate) fn choose(&mut self, part: Option<&str>) -> Result<[u8; 32], CliError> {
        let keys = self.keys()?;
        let fitting: Vec<&([u8; 32], String)> = keys
            .iter()
            .filter(|(_, comment)| part.is_none_or(|part| comment.contains(part)))
            .collect();
        match fitting.as_slice() {
            [(key, _)] => Ok(*key),
            [] => Err(trouble("the SSH agent has no such Ed25519 key: `ssh-add -l` lists them").into()),
            _ => Err(trouble("the SSH agent has several such keys: say which with `--ssh-key PART_OF_ITS_COMMENT`").into()),
        }
    }

    fn keys(&self) -> Result<Vec<([u8; 32], String)>, ControlError> {
        let answer = self.ask(&[REQUEST_IDENTITIES])?;
        let mut reader = Fields(&answer);
        if reader.byte() != Some(IDENTITIES_ANSWER) {
            return Err(trouble("the SSH agent does not tell its keys"));
        }
        let count = reader.number().unwrap_or(0);
        let mut keys = Vec::new();
        for _ in 0..count.min(1_000) {
            let (Some(blob), Some(comment)) = (reader.text(), reader.text()) else {
                return Err(trouble("the SSH agent's answer is cut off"));
            };
            let mut blob = Fields(blob);
            if blob.text() == Some(ED25519)
                && let Some(key) = blob.text().and_then(|it| it.try_into().ok())
            {
                keys.push((key, String::from_utf8_lossy(comment).into_owned()));
            }
        }
        Ok(keys)
    }

    fn signature(&self, key: &[u8; 32], text: &str) -> Result<[u8; 64], ControlError> {
        let mut blob = Vec::new();
        field(&mut blob, ED25519);
        field(&mut blob, key);
        let mut request = vec![SIGN_REQUEST];
        field(&mut request, &blob);
        field(&mut request, text.as_bytes());
        request.extend_from_slice(&0_u32.to_be_bytes());
        let answer = self.ask(&request)?;
        let mut reader = Fields(&answer);
        if reader.byte() != Some(SIGN_RESPONSE) {
            return Err(trouble("the SSH agent would not sign"));
        }
        let mut signature = Fields(reader.text().unwrap_or_default());
        let kind = signature.text();
        let bytes = signature.text().and_then(|it| it.try_into().ok());
        match (kind == Some(ED25519), bytes) {
            (true, Some(bytes)) => Ok(bytes),
            _ => Err(trouble("the SSH agent's signature is not one of Ed25519")),
        }
    }

    fn ask(&self, request: &[u8]) -> Result<Vec<u8>, ControlError> {
        let failed =
            |error: std::io::Error| trouble(format!("the SSH agent does not answer: {error}"));
        let mut stream = self.stream.borrow_mut();
        let mut message = Vec::new();
        field(&mut message, request);
        stream.write_all(&message).map_err(failed)?;
        let mut length = [0; 4];
        stream.read_exact(&mut length).map_err(failed)?;
        let length = u32::from_be_bytes(length) as usize;
        if length > LARGEST_ANSWER {
            return Err(trouble("the SSH agent's answer is too long"));
        }
        let mut answer = vec![0; length];
        stream.read_exact(&mut answer).map_err(failed)?;
        Ok(answer)
    }
}

impl Signing for SshAgent {
    fn sign(&self, operator: &Operator, text: &str) -> Result<String, ControlError> {
        let public = operator.public().map_err(|error| ControlError::Key {
            path: operator.name.clone().into(),
            error,
        })?;
        let signature = self.signature(public.ed25519(), text)?;
        public
            .note(text, &signature)
            .map_err(|error| ControlError::Key {
                path: operator.name.clone().into(),
                error,
            })
    }
}

fn field(message: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(bytes);
}

/// Fields of a message: a length, then bytes.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.number()? as usize;
        self.take(length)
    }
}
