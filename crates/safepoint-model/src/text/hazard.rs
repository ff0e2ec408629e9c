//! Which characters are not what they seem.

use std::fmt;

use serde::Serialize;
use unicode_security::{GeneralSecurityProfile, skeleton};

/// A reason why part of a text is shown as an escape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Hazard {
    /// Moves the cursor, clears the screen, breaks the line.
    Control,
    /// Turns the direction of what follows.
    Bidi,
    /// Takes no room, and so splits words or hides in them.
    ZeroWidth,
    /// Shows nothing, or a blank that is not a space.
    Invisible,
    /// Has no agreed meaning: private use, unassigned, or not a character.
    Unprintable,
    /// Marks piled up, or without a letter to stand on: they draw over what is near.
    Marks,
    /// Looks like the ASCII letters or digits around it, and is not one.
    Confusable,
    /// Bytes that are not UTF-8.
    NotUtf8,
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Control => "control characters",
            Self::Bidi => "text direction changes",
            Self::ZeroWidth => "zero-width characters",
            Self::Invisible => "invisible characters",
            Self::Unprintable => "unprintable characters",
            Self::Marks => "stacked marks",
            Self::Confusable => "look-alike letters",
            Self::NotUtf8 => "bytes that are not UTF-8",
        })
    }
}

/// What is wrong with `c` wherever it stands.
pub(super) fn hazard(c: char) -> Option<Hazard> {
    Some(match c {
        ' '..='~' => return None,
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' => Hazard::Control,
        '\u{61c}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}' => Hazard::Bidi,
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' => Hazard::ZeroWidth,
        '\u{ad}' // soft hyphen
        | '\u{34f}' // combining grapheme joiner
        | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' // Hangul fillers
        | '\u{17b4}' | '\u{17b5}' // Khmer inherent vowels
        | '\u{180b}'..='\u{180f}' // Mongolian selectors and vowel separator
        | '\u{2061}'..='\u{2065}' // invisible operators
        | '\u{206a}'..='\u{206f}' // deprecated shaping controls
        | '\u{2800}' // empty Braille pattern
        | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' // variation selectors
        | '\u{fff9}'..='\u{fffc}' // interlinear annotation, object replacement
        | '\u{16fe4}' // Khitan filler
        | '\u{1d159}' // musical null notehead
        | '\u{1bca0}'..='\u{1bca3}' // shorthand controls
        | '\u{1d173}'..='\u{1d17a}' // musical controls
        | '\u{e0000}'..='\u{e007f}' => Hazard::Invisible, // tags
        _ if c.is_whitespace() => Hazard::Invisible,
        _ if !is_printable(c) => Hazard::Unprintable,
        _ => return None,
    })
}

/// Whether the standard library would print `c` as it is inside a text: not
/// when it is unassigned, private, a noncharacter or a format character.
fn is_printable(c: char) -> bool {
    // Behind a letter, because a mark in front is escaped for another reason.
    let mut text = String::from("a");
    text.push(c);
    text.escape_debug().eq(text.chars())
}

/// Whether `c` is drawn onto the character before it.
pub(super) fn is_mark(c: char) -> bool {
    // Of what is printable, a lone mark is all that is escaped outside ASCII.
    !c.is_ascii() && c.escape_debug().next() == Some('\\')
}

/// Whether `c`, among ASCII letters, passes for one.
pub(super) fn is_confusable(c: char) -> bool {
    if c.is_ascii() {
        return false;
    }
    let mut buffer = [0; 4];
    let mut looks = 0;
    for like in skeleton(c.encode_utf8(&mut buffer)) {
        if !like.is_ascii_alphanumeric() {
            return false;
        }
        looks += 1;
    }
    // Ligatures of living languages, such as `æ` and `œ`, are taken for themselves.
    looks == 1 || looks > 1 && !c.identifier_allowed()
}
