//! What the last checkpoint found, so that the next one only adds what changed.

use std::path::Path;

use safepoint_store::durable::{self, Access};
use serde::{Deserialize, Serialize};

use super::Cursor;
use crate::capture::Capture;
use crate::path;
use crate::scan::cache::Validity;
use crate::scan::{Omitted, Scan};
use crate::scope::unescape;
use crate::sensitive::Reason;
use crate::tree::{Special, Subtree};
use crate::{ContentId, StateError};

/// A whole workspace as it was when the listener had heard so much.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    format: u32,
    pub(crate) cursor: Cursor,
    generation: u64,
    rules: ContentId,
    pub(crate) files: Subtree,
    pub(crate) git: Subtree,
    left_out: Vec<(String, String)>,
    sensitive: Vec<(String, u8)>,
    special: Vec<(String, u8)>,
}

const FORMAT: u32 = 1;
const KINDS: [Special; 4] = [
    Special::Fifo,
    Special::Socket,
    Special::CharacterDevice,
    Special::BlockDevice,
];

impl Base {
    /// What is kept at `path`, if it still fits.
    pub(crate) fn load(path: &Path, validity: Validity) -> Option<Self> {
        let base: Self = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
        let fits = base.format == FORMAT
            && base.generation == validity.generation
            && base.rules == validity.rules;
        fits.then_some(base)
    }

    /// Keeps what was captured when the listener was at `cursor`.
    pub(crate) fn save(
        path: &Path,
        validity: Validity,
        cursor: Cursor,
        capture: &Capture,
    ) -> Result<(), StateError> {
        let Some(git) = capture.git else {
            return Ok(());
        };
        let scan = &capture.scan;
        let base = Self {
            format: FORMAT,
            cursor,
            generation: validity.generation,
            rules: validity.rules,
            files: capture.files,
            git,
            left_out: scan
                .left_out
                .iter()
                .map(|one| (path::display(&one.path), one.why.clone()))
                .collect(),
            sensitive: scan
                .sensitive
                .iter()
                .map(|(path, reason)| (path::display(path), reason.code()))
                .collect(),
            special: scan
                .special
                .iter()
                .map(|(path, kind)| {
                    let code = KINDS.iter().position(|known| known == kind).unwrap_or(0);
                    (path::display(path), u8::try_from(code).unwrap_or(0))
                })
                .collect(),
        };
        let text = serde_json::to_vec(&base)
            .map_err(|error| StateError::Unsupported(error.to_string()))?;
        if let Some(directory) = path.parent() {
            durable::create_directory(directory)?;
        }
        Ok(durable::write(path, &text, Access::Private)?)
    }

    /// What was not captured then, without the trees.
    pub(crate) fn notes(&self) -> Scan {
        Scan {
            left_out: self
                .left_out
                .iter()
                .map(|(path, why)| Omitted {
                    path: unescape(path),
                    why: why.clone(),
                })
                .collect(),
            sensitive: self
                .sensitive
                .iter()
                .filter_map(|(path, code)| Some((unescape(path), Reason::from_code(*code)?)))
                .collect(),
            special: self
                .special
                .iter()
                .filter_map(|(path, code)| Some((unescape(path), *KINDS.get(usize::from(*code))?)))
                .collect(),
            ..Scan::default()
        }
    }
}
