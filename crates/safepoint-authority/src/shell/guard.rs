//! What no line may hold: letters that shells, parsers and people read differently.

/// Longer lines are not read.
const LONGEST: usize = 16 * 1024;

/// Why a line is not read at all, if it is not.
pub(super) fn refuses(text: &str) -> Option<&'static str> {
    if text.len() > LONGEST {
        return Some("it is too long");
    }
    if text
        .bytes()
        .all(|byte| (b' '..0x7f).contains(&byte) || byte == b'\n' || byte == b'\t')
    {
        return None;
    }
    for letter in text.chars() {
        if letter.is_control() && letter != '\n' && letter != '\t' {
            return Some("it holds control characters");
        }
        let strange = letter.is_whitespace() && !letter.is_ascii()
            || matches!(
                letter,
                '\u{ad}'
                    | '\u{180e}'
                    | '\u{200b}'
                    | '\u{200e}'
                    | '\u{200f}'
                    | '\u{202a}'..='\u{202e}'
                    | '\u{2060}'
                    | '\u{2066}'..='\u{2069}'
                    | '\u{feff}'
            );
        if strange {
            return Some("it holds letters that cannot be seen");
        }
    }
    None
}
