//! Where the secrets of targets lie: a file for each, for its owner alone, outside the store.
//!
//! Addresses are secrets too: whoever knows that of a chat room can write there. The document
//! in the store has the digest of the file, so that nobody who can write one of the two can
//! lead messages elsewhere. What is in a file is never shown.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use safepoint_model::json::{self, Limits};
use safepoint_model::{Digest, Entropy, Frame};
use safepoint_store::durable::{self, Access};
use serde::{Deserialize, Serialize};

use super::{Secret, Target};
use crate::ControlError;

/// The directory with the secrets of the targets of one trail.
#[derive(Clone, Debug)]
pub struct Vault {
    directory: PathBuf,
}

/// What is kept of a target outside the store.
pub(super) struct Kept {
    pub(super) url: String,
    pub(super) secret: Option<Secret>,
    /// The certificates that are trusted there, in place of the usual ones.
    pub(super) authority: Option<String>,
}

/// The same, as its file has it.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    name: String,
    url: String,
    secret: Option<String>,
    authority: Option<String>,
    /// Random: the digest of the file tells nothing about what is in it.
    salt: String,
}

impl Vault {
    /// The secrets in this directory.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Keeps what a target needs. What it is from now on known by is the digest.
    pub(super) fn put(
        &self,
        name: &str,
        kept: &Kept,
        entropy: &dyn Entropy,
    ) -> Result<Digest, ControlError> {
        let mut salt = [0; 16];
        entropy.fill(&mut salt)?;
        let file = File {
            format: 1,
            name: name.to_owned(),
            url: kept.url.clone(),
            secret: kept.secret.as_ref().map(Secret::to_text),
            authority: kept.authority.clone(),
            salt: BASE64.encode(salt),
        };
        let text = serde_json::to_string(&file).map_err(|error| ControlError::Unreadable {
            what: "secrets of the target",
            id: name.to_owned(),
            error,
        })?;
        durable::create_directory(&self.directory)?;
        durable::write(&self.place(name), text.as_bytes(), Access::Private)?;
        Ok(digest(text.as_bytes()))
    }

    /// What a target needs, if it is what was kept.
    pub(super) fn get(&self, target: &Target) -> Result<Kept, ControlError> {
        let name = &target.name;
        let unusable = |reason: &str| ControlError::Target {
            name: name.clone(),
            reason: reason.to_owned(),
        };
        let bytes = std::fs::read(self.place(name)).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                unusable("its secrets are not on this machine; `notify add` wrote them elsewhere")
            }
            _ => unusable("its secrets cannot be read"),
        })?;
        if Some(digest(&bytes)) != target.sealed {
            return Err(unusable(
                "its secrets were changed behind our back; remove it, and add it again",
            ));
        }
        let file: File = json::read_as(&bytes, Limits::default())
            .map_err(|_| unusable("its secrets cannot be read"))?;
        let secret = file.secret.as_deref().map(Secret::parse).transpose();
        Ok(Kept {
            url: file.url,
            secret: secret.map_err(|error| unusable(&error.to_string()))?,
            authority: file.authority,
        })
    }

    /// Forgets a target.
    pub(super) fn remove(&self, name: &str) -> Result<(), ControlError> {
        Ok(durable::remove(&self.place(name))?)
    }

    /// Names are checked before they come here: none of them leads elsewhere.
    fn place(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }
}

fn digest(bytes: &[u8]) -> Digest {
    Frame::new("safepoint/target-secrets/v1")
        .field(bytes)
        .digest()
}
