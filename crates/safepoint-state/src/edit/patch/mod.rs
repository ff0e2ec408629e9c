//! Unified diffs: read, and applied to a content.
//!
//! A hunk lands where its context and its removed lines stand exactly: at the
//! place that it names, or at the only other one. No line of context is ever
//! ignored, as `patch` does with its fuzz. The names in a patch are reported
//! and not looked at: whether they may be written is for the caller to judge.

mod apply;
mod header;
mod hunks;
mod parse;
mod place;
#[cfg(test)]
mod tests;

pub use apply::{Applied, Moved, apply};
pub use parse::parse;

use crate::text::{Hunk, Line, Side};

/// What a patch does to one file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePatch {
    /// Its name before, without `a/`; nothing when the patch creates the file.
    /// A patch of hunks alone names nothing, neither here nor in `new`.
    pub old: Option<Vec<u8>>,
    /// Its name afterwards, without `b/`; nothing when the patch deletes it.
    pub new: Option<Vec<u8>>,
    /// Its mode before, as git writes it (`0o100644`), when the patch says so.
    pub old_mode: Option<u32>,
    /// Its mode afterwards, when the patch says so.
    pub new_mode: Option<u32>,
    /// Whether the file under the old name stays as it is.
    pub copied: bool,
    /// What changes in its lines, in order.
    pub hunks: Vec<Hunk>,
}

impl FilePatch {
    /// Whether the file is not there before.
    pub fn creates(&self) -> bool {
        self.old.is_none() && self.new.is_some()
    }

    /// Whether the file is not there afterwards.
    pub fn deletes(&self) -> bool {
        self.old.is_some() && self.new.is_none()
    }

    /// The patch that takes this one back.
    #[must_use]
    pub fn reversed(&self) -> Self {
        Self {
            old: self.new.clone(),
            new: self.old.clone(),
            old_mode: self.new_mode,
            new_mode: self.old_mode,
            copied: self.copied,
            hunks: self.hunks.iter().map(reversed).collect(),
        }
    }
}

fn reversed(hunk: &Hunk) -> Hunk {
    let mut lines: Vec<Line> = Vec::with_capacity(hunk.lines.len());
    let mut added = Vec::new();
    for line in &hunk.lines {
        let turned = |side| Line {
            side,
            text: line.text.clone(),
        };
        match line.side {
            // What was added is removed, and stands first from now on.
            Side::Added => lines.push(turned(Side::Removed)),
            Side::Removed => added.push(turned(Side::Added)),
            Side::Context => {
                lines.append(&mut added);
                lines.push(line.clone());
            }
        }
    }
    lines.append(&mut added);
    Hunk {
        old_start: hunk.new_start,
        old_lines: hunk.new_lines,
        new_start: hunk.old_start,
        new_lines: hunk.old_lines,
        lines,
    }
}
