//! The world as an action finds it: which program a name means, what is at a
//! path, which variables are passed on.
//!
//! Only looked at, never changed. What is looked at is held open where it is
//! used afterwards, so that what was seen is what runs.

mod environment;
mod look;
mod overwrites;
mod programs;
mod push;
mod push_words;

pub(crate) use environment::{Variables, pass_on};
pub(crate) use look::{directory, named};
pub(crate) use overwrites::overwrites;
pub(crate) use programs::{Interpreter, Opened, Search, interpreters, open_program};
pub(crate) use push::Asking;

use std::io::Read;
use std::path::Path;

use safepoint_model::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of everything that can be read from `source`.
pub(crate) fn digest_of(mut source: impl Read) -> std::io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; 128 << 10];
    loop {
        match source.read(&mut piece) {
            Ok(0) => break,
            Ok(length) => hasher.update(piece.get(..length).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Digest::from_bytes(hasher.finalize().into()))
}

/// A path as text. What is not UTF-8 cannot be shown to anybody exactly, and is refused.
pub(crate) fn text(path: &Path) -> Result<String, crate::ControlError> {
    let text = path.to_str().ok_or_else(|| crate::ControlError::Proposal {
        reason: format!(
            "the path `{}` is not UTF-8, so nobody could be shown exactly what would happen",
            path.display()
        ),
    })?;
    Ok(text.to_owned())
}
