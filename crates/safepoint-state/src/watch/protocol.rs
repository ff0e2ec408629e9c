//! What is said between a checkpoint and the listener: one line of JSON each way.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::path::{self, TreePath};
use crate::scope::unescape;

/// How far a listener had heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cursor {
    /// Which listener: another one has not heard the same.
    pub(crate) instance: String,
    /// How many things it had heard.
    pub(crate) sequence: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) since: Option<Cursor>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) cursor: Cursor,
    /// Whether nothing was missed since then.
    pub(super) complete: bool,
    pub(super) paths: Vec<String>,
}

/// What the listener knows.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// How far it has heard now.
    pub(crate) cursor: Cursor,
    /// What changed since; `None` when that is not known.
    pub(crate) changed: Option<BTreeSet<TreePath>>,
}

impl From<Reply> for Answer {
    fn from(reply: Reply) -> Self {
        let paths = reply.paths.iter().map(|path| unescape(path)).collect();
        Self {
            cursor: reply.cursor,
            changed: reply.complete.then_some(paths),
        }
    }
}

impl Reply {
    pub(super) fn of(cursor: Cursor, changed: Option<Vec<TreePath>>) -> Self {
        Self {
            cursor,
            complete: changed.is_some(),
            paths: changed
                .unwrap_or_default()
                .iter()
                .map(|path| path::display(path))
                .collect(),
        }
    }
}
