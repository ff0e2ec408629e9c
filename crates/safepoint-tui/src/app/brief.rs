//! What a hold would do, in a line. It is made once and not whenever a line is drawn: an
//! action may be megabytes long, and must not slow down whoever looks at it.

use safepoint_authority::Pending;

use crate::told::{Told, clip};

/// No line is longer.
const LONGEST: usize = 500;

/// What a hold would do, in a line.
#[derive(Clone, Debug)]
pub(crate) struct Brief {
    /// The beginning of it, safe to show.
    pub(crate) text: String,
    /// Whether anything in all of it was escaped.
    pub(crate) flagged: bool,
}

impl Brief {
    pub(super) fn new(pending: &Pending) -> Self {
        let told = Told::theirs(&pending.canonical_request_summary);
        Self {
            text: clip(told.text(), LONGEST),
            flagged: !told.hazards().is_empty(),
        }
    }

    /// The sign in front of it, or as many blanks as it takes.
    pub(crate) const fn sign(&self) -> &'static str {
        match self.flagged {
            true => "⚠ ",
            false => "  ",
        }
    }
}
