//! Text that may go on the screen: our own words, and what others told us, made safe.
//!
//! There is no other way to a screen than through here. What others told is escaped by
//! `safepoint_model::text`; what a terminal could still draw differently from what we
//! count (no width, or a width that depends on the terminal) is escaped here.

use ratatui::buffer::CellWidth;
use ratatui::style::Style;
use ratatui::text::Span;
use safepoint_model::text::{self, Hazard};

/// A line of text that is safe to show, and what was escaped in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Told {
    text: String,
    hazards: Vec<Hazard>,
}

impl Told {
    /// Our own words.
    pub(crate) fn ours(words: impl AsRef<str>) -> Self {
        Self::default().and(words)
    }

    /// The words of somebody else, as one line.
    pub(crate) fn theirs(words: &str) -> Self {
        Self::default().and_theirs(words)
    }

    /// A line of a file: its tabs are blanks.
    pub(crate) fn theirs_with_tabs(words: &str) -> Self {
        let mut told = Self::default();
        for (place, part) in words.split('\t').enumerate() {
            if place > 0 {
                told.text.push_str("    ");
            }
            told = told.and_theirs(part);
        }
        told
    }

    /// The same with our own words behind it.
    pub(crate) fn and(mut self, words: impl AsRef<str>) -> Self {
        let plain = words.as_ref().chars().filter(|c| !c.is_control());
        self.text.extend(plain);
        self
    }

    /// The same with the words of somebody else behind it.
    pub(crate) fn and_theirs(mut self, words: &str) -> Self {
        let shown = text::line(words);
        self.hazards.extend(shown.hazards);
        self.settle(&shown.text);
        self.hazards.sort_unstable();
        self.hazards.dedup();
        self
    }

    /// Several words of somebody else, with our commas between them.
    pub(crate) fn and_list<'a>(mut self, list: impl IntoIterator<Item = &'a str>) -> Self {
        for (place, words) in list.into_iter().enumerate() {
            if place > 0 {
                self = self.and(", ");
            }
            self = self.and_theirs(words);
        }
        self
    }

    /// The same with another safe text behind it.
    pub(crate) fn and_told(mut self, other: Self) -> Self {
        self.text.push_str(&other.text);
        self.hazards.extend(other.hazards);
        self.hazards.sort_unstable();
        self.hazards.dedup();
        self
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What was escaped, each once.
    pub(crate) fn hazards(&self) -> &[Hazard] {
        &self.hazards
    }

    /// Adds what is escaped already, and escapes what terminals disagree about.
    fn settle(&mut self, escaped: &str) {
        if escaped.is_ascii() {
            self.text.push_str(escaped);
            return;
        }
        let span = Span::raw(escaped);
        for grapheme in span.styled_graphemes(Style::new()) {
            let mut apart = 0;
            let mut buffer = [0; 4];
            for c in grapheme.symbol.chars() {
                apart += c.encode_utf8(&mut buffer).cell_width();
            }
            let together = grapheme.symbol.cell_width();
            if together > 0 && together == apart {
                self.text.push_str(grapheme.symbol);
                continue;
            }
            self.hazards.push(Hazard::Unprintable);
            for c in grapheme.symbol.chars() {
                self.text.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
        }
    }
}

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    Span::raw(text)
        .styled_graphemes(Style::new())
        .map(|grapheme| usize::from(grapheme.symbol.cell_width()))
        .sum()
}

/// Cuts a safe text to `columns`, the last of them `…` when anything is missing.
pub(crate) fn clip(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let Some(room) = columns.checked_sub(1) else {
        return String::new();
    };
    let span = Span::raw(text);
    let (mut kept, mut used) = (String::new(), 0);
    for grapheme in span.styled_graphemes(Style::new()) {
        let wide = usize::from(grapheme.symbol.cell_width());
        if used + wide > room {
            break;
        }
        kept.push_str(grapheme.symbol);
        used += wide;
    }
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_40_what_terminals_disagree_about_is_escaped_and_flagged() {
        // A Hangul vowel alone takes no room, and a skin tone takes two columns or none.
        for (hostile, shown) in [
            ("a \u{1161} b", r"a \u{1161} b"),
            ("\u{1f44d}\u{1f3fd}", r"\u{1f44d}\u{1f3fd}"),
            ("\x1b[2J", r"\u{1b}[2J"),
        ] {
            let told = Told::theirs(hostile);
            assert_eq!(told.text(), shown);
            assert!(!told.hazards().is_empty(), "{shown}");
        }
        let fine = Told::theirs("日本語 naïve café 👍");
        assert_eq!(fine.text(), "日本語 naïve café 👍");
        assert!(fine.hazards().is_empty());
    }

    #[test]
    fn clips_by_columns_and_not_by_characters() {
        assert_eq!(clip("日本語", 6), "日本語");
        assert_eq!(clip("日本語", 5), "日本…");
        assert_eq!(clip("日本語", 4), "日…");
        assert_eq!(clip("abc", 0), "");
        assert_eq!(width("日本語…"), 7);
    }
}
