//! Rows broken into lines of a given width. No character of a row is ever left out.
//!
//! A line that goes on from the one before has a sign in front of it, in a column that no
//! text reaches: so no text can look as if it began a row of its own.

use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::rows::{Break, LABEL, Row, Tone};

/// The columns in front of every line, for signs.
pub(crate) const GUTTER: usize = 2;

/// How much further the rest of a row is moved in.
const HANGING: usize = 2;

/// Rows are moved in by no more than this, so that something always fits.
const DEEPEST: usize = 24;

/// A line on the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    /// The row it belongs to.
    pub(crate) row: usize,
    /// What stands in front.
    pub(crate) sign: Sign,
    /// What the row is, in front of its first line.
    pub(crate) label: &'static str,
    /// How far it is moved in.
    pub(crate) indent: usize,
    /// How it is meant.
    pub(crate) tone: Tone,
    /// The text.
    pub(crate) text: String,
}

/// What stands in front of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sign {
    /// Nothing.
    None,
    /// Something in the row was escaped.
    Flag,
    /// The row goes on.
    Goes,
}

impl Sign {
    /// As it is shown.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "  ",
            Self::Flag => "⚠ ",
            Self::Goes => "↪ ",
        }
    }
}

/// Breaks rows for a screen of `columns`, the gutter included.
pub(crate) fn wrap(rows: &[Row], columns: usize) -> Vec<Line> {
    let mut lines = Vec::with_capacity(rows.len());
    for (place, row) in rows.iter().enumerate() {
        let indent = row.indent.min(DEEPEST);
        let room = columns.saturating_sub(GUTTER + indent);
        // Behind a name there is nothing that the rest could be taken for.
        let hanging = if indent == LABEL { 0 } else { HANGING };
        let pieces = pieces(&row.text, (room, hanging), row.breaks);
        for (part, text) in pieces.into_iter().enumerate() {
            let (sign, indent) = match part {
                0 if row.flagged => (Sign::Flag, indent),
                0 => (Sign::None, indent),
                _ => (Sign::Goes, indent + hanging),
            };
            lines.push(Line {
                row: place,
                sign,
                label: if part == 0 { row.label } else { "" },
                indent,
                tone: row.tone,
                text,
            });
        }
    }
    lines
}

/// The text in pieces: the first as wide as `room`, the others narrower by what hangs.
fn pieces(text: &str, (room, hanging): (usize, usize), breaks: Break) -> Vec<String> {
    if text.is_ascii() && breaks == Break::Anywhere {
        return cut(text, (room, hanging));
    }
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut used = 0;
    // Where the last word of the piece begins: in bytes, and in columns.
    let mut word = (0, 0);
    let span = Span::raw(text);
    for grapheme in span.styled_graphemes(Style::new()) {
        let wide = usize::from(grapheme.symbol.cell_width());
        let limit = match pieces.is_empty() {
            true => room,
            false => room.saturating_sub(hanging),
        };
        if used + wide > limit && !piece.is_empty() {
            // A word that fills half the line is broken after all.
            let keep = breaks == Break::Words && word.1 > limit / 2;
            let rest = match keep {
                true => piece.split_off(word.0),
                false => String::new(),
            };
            used = if keep { used - word.1 } else { 0 };
            pieces.push(std::mem::replace(&mut piece, rest));
            word = (0, 0);
        }
        piece.push_str(grapheme.symbol);
        used += wide;
        if grapheme.symbol == " " {
            word = (piece.len(), used);
        }
    }
    pieces.push(piece);
    pieces
}

/// The same for a text of which every byte is a column: forms can be megabytes long.
fn cut(text: &str, (room, hanging): (usize, usize)) -> Vec<String> {
    let mut pieces = Vec::new();
    let (mut rest, mut limit) = (text, room.max(1));
    while let Some((piece, after)) = rest.split_at_checked(limit) {
        if after.is_empty() {
            break;
        }
        pieces.push(piece.to_owned());
        rest = after;
        limit = room.saturating_sub(hanging).max(1);
    }
    pieces.push(rest.to_owned());
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str, room: usize, breaks: Break) -> Vec<String> {
        pieces(text, (room, HANGING), breaks)
    }

    #[test]
    fn nothing_is_lost_and_nothing_is_wider_than_the_room() {
        let texts = [
            "",
            "word",
            "a sentence of several words, and averyveryverylongoneinbetween them",
            "日本語のとても長い文字列をここに置く",
            "          many    blanks                  at once     ",
        ];
        for text in texts {
            for room in 10..40 {
                for breaks in [Break::Words, Break::Anywhere] {
                    let pieces = broken(text, room, breaks);
                    assert_eq!(pieces.concat(), text);
                    assert!(
                        pieces.iter().all(|piece| crate::told::width(piece) <= room),
                        "{room} {pieces:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn words_stay_whole_where_they_can() {
        assert_eq!(
            broken("one two three four", 10, Break::Words),
            ["one two ", "three ", "four"]
        );
        assert_eq!(
            broken("one two three four", 10, Break::Anywhere),
            ["one two th", "ree four"]
        );
    }
}
