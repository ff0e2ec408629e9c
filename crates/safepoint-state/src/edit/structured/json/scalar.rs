//! The strings and numbers of JSON.

use std::fmt::Write as _;

/// Where the string ends that begins with the quote at the start of `text`, and
/// what it says: nothing when it has half of a surrogate pair, which no text
/// can hold.
pub(super) fn string(text: &str) -> Result<(usize, Option<String>), (usize, &'static str)> {
    let mut output = Some(String::new());
    let mut characters = text.char_indices().skip(1);
    while let Some((at, character)) = characters.next() {
        let decoded = match character {
            '"' => return Ok((at + 1, output)),
            '\\' => match characters.next() {
                Some((_, 'u')) => {
                    let (length, decoded) = unicode(text.get(at..).unwrap_or_default())
                        .ok_or((at, "`\\u` needs four hexadecimal digits"))?;
                    // `\u` has been read already.
                    characters.by_ref().take(length - 2).for_each(drop);
                    decoded
                }
                Some((_, letter)) => Some(match letter {
                    '"' | '\\' | '/' => letter,
                    'b' => '\u{8}',
                    'f' => '\u{C}',
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    _ => return Err((at, "there is no such escape")),
                }),
                None => break,
            },
            '\0'..='\u{1F}' => return Err((at, "a control character in a string is not escaped")),
            other => Some(other),
        };
        match (decoded, &mut output) {
            (Some(decoded), Some(output)) => output.push(decoded),
            _ => output = None,
        }
    }
    Err((0, "a string does not end"))
}

/// `\u` with its digits, or two of them that belong together: how long they
/// are, and which character.
fn unicode(text: &str) -> Option<(usize, Option<char>)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        let hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hexadecimal.then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let first = unit(0)?;
    if let (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) = (first, unit(6)) {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return Some((12, char::from_u32(code)));
    }
    Some((6, char::from_u32(first)))
}

/// How long the number at the start of `text` is.
pub(super) fn number(text: &str) -> Option<usize> {
    let digits = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
    };
    let next = |at: usize| text.as_bytes().get(at).copied();
    let mut at = usize::from(next(0) == Some(b'-'));
    at += match (next(at), digits(at)) {
        (_, 0) => return None,
        (Some(b'0'), _) => 1,
        (_, count) => count,
    };
    if next(at) == Some(b'.') {
        match digits(at + 1) {
            0 => return None,
            count => at += 1 + count,
        }
    }
    if let Some(b'e' | b'E') = next(at) {
        let sign = usize::from(matches!(next(at + 1), Some(b'+' | b'-')));
        match digits(at + 1 + sign) {
            0 => return None,
            count => at += 1 + sign + count,
        }
    }
    Some(at)
}

/// A text as a JSON string.
pub(in crate::edit::structured) fn quoted(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 2);
    output.push('"');
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            '\u{8}' => output.push_str("\\b"),
            '\u{C}' => output.push_str("\\f"),
            // Also those that YAML does not print or takes for line breaks.
            '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' | '\u{2028}' | '\u{2029}' | '\u{FEFF}' => {
                // Writing to a string cannot fail.
                let _ = write!(output, "\\u{:04x}", u32::from(character));
            }
            other => output.push(other),
        }
    }
    output.push('"');
    output
}
