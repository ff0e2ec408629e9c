//! The keys, explained over the rest.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::{View, inset, put, rows};

/// No longer than the smallest window has room for.
const HELP: [(&str, &str); 16] = [
    (
        "y",
        "approve: exactly this, once (asks back if it is final)",
    ),
    ("e", "approve, and let the like of it go on without asking"),
    ("s", "approve, and ask at every further step"),
    ("n", "deny; a reason may be given"),
    ("h", "halt the session until an operator acts"),
    ("d", "detail, with the canonical form; again: full height"),
    ("c", "what would change"),
    ("t", "what has happened in its session"),
    ("i", "the context it comes from"),
    ("↓ ↑ j k", "a line on, a line back"),
    ("space b", "a page on, a page back (also PgDn, PgUp)"),
    ("g G", "to the beginning, to the end"),
    ("Tab", "look at the next hold; Shift-Tab: the one before"),
    ("o", "back to the hold that is decided next (●)"),
    ("r", "read everything again"),
    ("q", "quit; what waits goes on waiting"),
];

impl View {
    pub(super) fn help(&self, area: Rect, buffer: &mut Buffer) {
        let tall = u16::try_from(HELP.len() + 2).unwrap_or(u16::MAX);
        let inner = self.frame("Keys", (68, tall), area, buffer);
        for ((keys, meaning), row) in HELP.iter().zip(rows(inner)) {
            put(buffer, inset(row, 1), keys, self.palette.strong());
            put(
                buffer,
                inset(row, 10),
                meaning,
                ratatui::style::Style::new(),
            );
        }
    }
}
