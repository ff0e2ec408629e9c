//! One form for texts that read the same.
//!
//! Compatibility forms are made plain (NFKC: fullwidth letters, ligatures),
//! what is not seen is taken out (soft hyphens, zero-width characters), and
//! letters of both cases become one. That last step is lower case of upper case
//! of lower case, which joins all that Unicode's full case folding joins
//! (`ß` and `SS`, `ς` and `Σ`), and the dotless `ı` with `i`.
//!
//! [`look`] goes further, for words that are forbidden: letters that look alike
//! in different scripts become one, and marks above and below letters go. It is
//! never used to find out whether something that is wanted is there.
//!
//! Nothing here changes what is stored: these forms are only compared.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

/// Whether the letter case of a text is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    /// `Refund` and `refund` differ.
    Kept,
    /// They are one.
    Folded,
}

/// `text` in the form in which texts are compared.
pub(crate) fn plain(text: &str, case: Case) -> Cow<'_, str> {
    if text.is_ascii() {
        return match case {
            Case::Kept => Cow::Borrowed(text),
            Case::Folded => Cow::Owned(text.to_ascii_lowercase()),
        };
    }
    // No form of a text reaches over the place before an ASCII character. So
    // only runs of other characters, and the one before them, take the slow way.
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let plain = ascii_length(rest);
        let plain = if plain < rest.len() {
            plain.saturating_sub(1)
        } else {
            plain
        };
        let (ascii, other) = rest.split_at_checked(plain).unwrap_or((rest, ""));
        let start = out.len();
        out.push_str(ascii);
        if case == Case::Folded
            && let Some(copied) = out.get_mut(start..)
        {
            copied.make_ascii_lowercase();
        }
        let mut characters = other
            .char_indices()
            .skip(1)
            .skip_while(|(_, c)| !c.is_ascii());
        let end = characters.next().map_or(other.len(), |(place, _)| place);
        let (run, behind) = other.split_at_checked(end).unwrap_or((other, ""));
        push_form(run, case, &mut out);
        rest = behind;
    }
    Cow::Owned(out)
}

/// Adds the form of a run of other characters. Nearly all are in it already,
/// and to see that takes far less time than to bring them there.
fn push_form(run: &str, case: Case, out: &mut String) {
    let start = out.len();
    if is_nfkc_quick(run.chars()) == IsNormalized::Yes && !run.chars().any(is_unseen) {
        match case {
            Case::Kept => {
                out.push_str(run);
                return;
            }
            Case::Folded => {
                out.extend(run.chars().flat_map(lower));
                let folded = out.get(start..).unwrap_or_default();
                if is_nfkc_quick(folded.chars()) == IsNormalized::Yes {
                    return;
                }
                out.truncate(start);
            }
        }
    }
    match case {
        Case::Kept => out.extend(compatible(run).nfkc()),
        // Once more at the end: letters that were apart may stand beside each other now.
        Case::Folded => out.extend(compatible(run).flat_map(lower).nfkc()),
    }
}

/// How many bytes at the start of `text` are ASCII.
pub(super) fn ascii_length(text: &str) -> usize {
    const STEP: usize = 32;
    let steps = text.as_bytes().chunks_exact(STEP);
    let sure = steps.take_while(|step| step.is_ascii()).count() * STEP;
    let rest = text.as_bytes().get(sure..).unwrap_or_default();
    sure + rest.iter().take_while(|byte| byte.is_ascii()).count()
}

/// `text` with every letter in one case, character by character: the form of
/// two texts one after the other is the forms of both one after the other.
pub(crate) fn lowered(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (ascii, other) = rest
                .split_at_checked(ascii_length(rest))
                .unwrap_or((rest, ""));
            let start = out.len();
            out.push_str(ascii);
            if let Some(copied) = out.get_mut(start..) {
                copied.make_ascii_lowercase();
            }
            let mut characters = other.chars();
            out.extend(characters.next().into_iter().flat_map(lower));
            rest = characters.as_str();
        }
        Cow::Owned(out)
    }
}

fn compatible(text: &str) -> impl Iterator<Item = char> {
    text.nfkc().filter(|c| !is_unseen(*c))
}

/// The one form of a letter in all its cases.
pub(crate) fn lower(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
}

/// `text` without what is not seen.
pub(crate) fn seen(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !is_unseen(*c))
}

/// Default-ignorable characters (Unicode 16), and the blank of Braille.
fn is_unseen(c: char) -> bool {
    !c.is_ascii()
        && matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// `text` as it looks: letters of other scripts as the Latin ones they resemble,
/// no marks on letters, and one form for `i`, `l`, `1` and `|`, for `o` and `0`,
/// and for `m` and `rn`.
pub(crate) fn look(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in compatible(text).nfd() {
        if c.is_ascii() {
            push_latin(c, &mut out);
        } else if !is_mark(c) {
            push_resembled(c, &mut out);
        }
    }
    out
}

/// Marks that may stand on a letter of any script. Those of one script alone are
/// letters of their own in it, and stay.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}' | '\u{fe20}'..='\u{fe2f}')
}

fn push_resembled(c: char, out: &mut String) {
    let mut buffer = [0; 4];
    // Capital letters first as they are: `Н` resembles `H`, and `н` no `h`.
    let alike: String = unicode_security::skeleton(c.encode_utf8(&mut buffer)).collect();
    if alike.is_ascii() {
        alike.chars().for_each(|c| push_latin(c, out));
        return;
    }
    let small: String = lower(c).collect();
    for c in unicode_security::skeleton(&small).flat_map(lower) {
        if c.is_ascii() {
            push_latin(c, out);
        } else if !is_mark(c) {
            out.push(c);
        }
    }
}

fn push_latin(c: char, out: &mut String) {
    match c.to_ascii_lowercase() {
        'i' | '1' | '|' => out.push('l'),
        '0' => out.push('o'),
        'm' => out.push_str("rn"),
        c => out.push(c),
    }
}

/// The words of `text`, each with a space on both sides: ` credit card `.
/// Everything that is no letter, digit, mark or `_` is between words. Scripts
/// without spaces have a word per character.
pub(crate) fn words(text: &str, case: Case) -> String {
    if text.is_ascii() {
        ascii_words(text, case)
    } else {
        words_of(&plain(text, case), Stars::Between)
    }
}

/// The words of what a steward wrote: as [`words`], but `*` belongs to them.
pub(crate) fn wild_words(text: &str, case: Case) -> String {
    words_of(&plain(text, case), Stars::Inside)
}

/// Whether `*` belongs to words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stars {
    Inside,
    Between,
}

/// What was written last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// A letter of a word that goes on.
    Open,
    /// A word of one character, and its space.
    Single,
    /// Nothing, or something between words.
    Between,
}

fn words_of(plain: &str, stars: Stars) -> String {
    let mut out = String::with_capacity(plain.len() + 2);
    out.push(' ');
    let mut last = Last::Between;
    for c in plain.chars() {
        let inside = if c.is_ascii() {
            c.is_ascii_alphanumeric() || c == '_' || (c == '*' && stars == Stars::Inside)
        } else if is_combining_mark(c) {
            // A mark belongs to what is before it, and says nothing alone.
            match last {
                Last::Open => out.push(c),
                Last::Between => {}
                Last::Single => {
                    out.pop();
                    out.push(c);
                    out.push(' ');
                }
            }
            continue;
        } else if is_unspaced(c) {
            close(last, &mut out);
            out.push(c);
            out.push(' ');
            last = Last::Single;
            continue;
        } else {
            c.is_alphanumeric()
        };
        if inside {
            out.push(c);
            last = Last::Open;
        } else {
            close(last, &mut out);
            last = Last::Between;
        }
    }
    close(last, &mut out);
    out
}

fn close(last: Last, out: &mut String) {
    if last == Last::Open {
        out.push(' ');
    }
}

/// The same for the texts that are most of all texts.
fn ascii_words(text: &str, case: Case) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b' ');
    let mut open = false;
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            out.push(match case {
                Case::Kept => byte,
                Case::Folded => byte.to_ascii_lowercase(),
            });
            open = true;
        } else if open {
            out.push(b' ');
            open = false;
        }
    }
    if open {
        out.push(b' ');
    }
    // Only ASCII was put in, so this is always text.
    String::from_utf8(out).unwrap_or_default()
}

/// Letters of scripts that are written without spaces between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{f00}'..='\u{fff}' | '\u{1000}'..='\u{109f}'
        | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3041}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_and_its_cases_are_one() {
        for c in '\0'..=char::MAX {
            let one: String = lower(c).collect();
            let again: String = one.chars().flat_map(lower).collect();
            assert_eq!(one, again, "{c:?}");
            for other in [
                c.to_uppercase().collect::<String>(),
                c.to_lowercase().collect(),
            ] {
                assert_eq!(lowered(&other), one, "{c:?}");
            }
        }
    }

    #[test]
    fn every_character_has_a_stable_form() {
        for c in '\0'..=char::MAX {
            let text = c.to_string();
            for case in [Case::Kept, Case::Folded] {
                let once = plain(&text, case).into_owned();
                assert_eq!(plain(&once, case), once, "{c:?}");
            }
        }
    }

    proptest::proptest! {
        #[test]
        fn the_fast_way_is_the_slow_way(text in "[aK \u{301}é\u{200b}ｒßΣﬁ\u{1100}\u{1161}가\u{338}=]{0,24}") {
            let kept: String = compatible(&text).nfkc().collect();
            let folded: String = compatible(&text).flat_map(lower).nfkc().collect();
            proptest::prop_assert_eq!(plain(&text, Case::Kept), kept);
            proptest::prop_assert_eq!(plain(&text, Case::Folded), folded);
        }
    }

    #[test]
    fn looks() {
        for (given, alike) in [
            ("hаck", "hack"),
            ("НАСК", "hack"),
            ("ｈａｃｋ", "hack"),
            ("h\u{200b}a\u{ad}ck", "hack"),
            ("h̶a̶c̶k̶", "hack"),
            ("häck", "hack"),
            ("ADMIN", "admin"),
            ("АDМІN", "admin"),
            ("𝐡𝐚𝐜𝐤", "hack"),
            ("byραss", "bypass"),
        ] {
            assert_eq!(look(given), look(alike), "{given}");
        }
        assert_ne!(look("hack"), look("hock"));
    }

    #[test]
    fn words_stand_between_spaces() {
        for (text, expected) in [
            ("", " "),
            ("credit card", " credit card "),
            ("--credit--card!", " credit card "),
            ("don't", " don t "),
            ("a_b9", " a_b9 "),
            ("我要退款!", " 我 要 退 款 "),
            ("x\u{301}s", " x\u{301}s "),
            ("refund!\u{301}", " refund "),
            ("ที่", " ที่ "),
        ] {
            assert_eq!(words(text, Case::Folded), expected);
            assert_eq!(
                words_of(&plain(text, Case::Folded), Stars::Between),
                expected
            );
            assert_eq!(wild_words(text, Case::Kept), expected);
        }
    }
}
