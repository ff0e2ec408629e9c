//! Safe display of hostile text.
//!
//! What an agent says is shown to the person who decides over it. It must not
//! draw on their screen, hide anything, or look like something else. So every
//! character that is not plainly visible is shown as an escape: `\n`, `\r`
//! and `\t`, otherwise `\u{202e}`, and `\xff` for a byte that is not UTF-8.
//!
//! Nothing is lost or made up: the escapes can be read back, so two different
//! texts never look the same. A backslash stands for itself, except where it
//! would begin an escape, that is before `n`, `r`, `t`, `u`, `x` or another
//! backslash of the output; there it is doubled.
//!
//! This module decides nothing about what is allowed. It never changes text
//! that is stored or hashed, only what is shown.

mod hazard;
mod render;

#[cfg(test)]
mod tests;

pub use hazard::Hazard;

use render::{Unit, render};

/// A text that is safe to print, and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The text to print.
    pub text: String,
    /// What was escaped, in order, each once.
    pub hazards: Vec<Hazard>,
}

/// How line breaks and tabs are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// As escapes: the result is one line.
    Line,
    /// As they are.
    Block,
}

/// `input` as one line: line breaks and tabs are escaped, too.
pub fn line(input: &str) -> Shown {
    show(input, Layout::Line)
}

/// `input` as several lines: line feeds and tabs are kept, carriage returns are not.
pub fn block(input: &str) -> Shown {
    show(input, Layout::Block)
}

/// `input` as one line, for names of files, which may have any bytes.
///
/// The same as [`line()`] where it is UTF-8.
pub fn bytes_line(input: &[u8]) -> Shown {
    let mut units = Vec::with_capacity(input.len());
    for chunk in input.utf8_chunks() {
        units.extend(chunk.valid().chars().map(Unit::Char));
        units.extend(chunk.invalid().iter().copied().map(Unit::Byte));
    }
    render(&units, Layout::Line)
}

fn show(input: &str, layout: Layout) -> Shown {
    // What nearly every text is made of.
    if input
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'~') && byte != b'\\')
    {
        return Shown {
            text: input.to_owned(),
            hazards: Vec::new(),
        };
    }
    let units: Vec<_> = input.chars().map(Unit::Char).collect();
    render(&units, layout)
}

/// Cuts a text that is already safe to `columns` characters, the last of them
/// `…` when anything is missing.
pub fn shorten(input: &str, columns: usize) -> String {
    if input.chars().nth(columns).is_none() {
        return input.to_owned();
    }
    let Some(kept) = columns.checked_sub(1) else {
        return String::new();
    };
    input.chars().take(kept).chain(['…']).collect()
}
