//! The scalars of YAML: what a plain one means, and how a text is written so
//! that it means itself.

use crate::edit::structured::json::quoted;
use crate::edit::structured::tree::Data;

/// What a plain scalar means by the core schema of YAML 1.2.
pub(super) fn resolved(text: &str) -> Data {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Data::Null,
        "true" | "True" | "TRUE" => return Data::Bool(true),
        "false" | "False" | "FALSE" => return Data::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return Data::Special(text.to_owned());
    }
    if let Some(number) = based(text) {
        return Data::Number(number);
    }
    match is_decimal(unsigned) {
        true => Data::Number(text.to_owned()),
        false => Data::Text(text.to_owned()),
    }
}

/// `0o17` and `0x1F` in decimal.
fn based(text: &str) -> Option<String> {
    let (digits, base) = match text.strip_prefix("0o") {
        Some(digits) => (digits, 8),
        None => (text.strip_prefix("0x")?, 16),
    };
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some(u128::from_str_radix(digits, base).ok()?.to_string())
}

fn is_decimal(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let some = !whole.is_empty() || !fraction.is_empty();
    some && !exponent.is_empty() && digits(whole) && digits(fraction) && digits(exponent)
}

/// How a text was or should be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quotes {
    /// Plain where that is safe.
    AsNeeded,
    Single,
    Double,
}

/// A text on one line.
pub(super) fn written(text: &str, quotes: Quotes, in_brackets: bool) -> String {
    let printable = text.chars().all(is_printable);
    match quotes {
        Quotes::AsNeeded if is_plain(text, in_brackets) => text.to_owned(),
        Quotes::Single if printable => format!("'{}'", text.replace('\'', "''")),
        _ => quoted(text),
    }
}

/// Whether a text can stand without quotes and is taken for a text everywhere,
/// also by those who read YAML 1.1.
pub(super) fn is_plain(text: &str, in_brackets: bool) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let begins = first.is_alphanumeric() || matches!(first, '_' | '/' | '.' | '$' | '(' | '\\');
    let mut before = ' ';
    let mut inside = true;
    for character in text.chars() {
        inside &= match character {
            '#' => before != ' ',
            ',' | '[' | ']' | '{' | '}' => !in_brackets,
            ':' => !in_brackets,
            ' ' => before != ':',
            '"' | '\'' | '`' | '%' | '@' | '!' | '&' | '*' | '|' | '>' | '?' | '<' => true,
            other => other.is_ascii_graphic() || other.is_alphanumeric(),
        };
        before = character;
    }
    begins && inside && before != ' ' && before != ':' && !is_word(text) && !is_numeric(text)
}

/// The words that some version of YAML takes for something else.
fn is_word(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let words = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", ".inf", ".nan",
    ];
    words.contains(&lower.as_str()) || text.starts_with("...")
}

/// What some version of YAML could take for a number, a date or a time.
fn is_numeric(text: &str) -> bool {
    let begins = text.starts_with(|c: char| c.is_numeric() || c == '.');
    begins
        && text
            .chars()
            .all(|c| c.is_ascii_hexdigit() || "._:+-xXoOtTzZ ".contains(c))
}

/// The lines of a text as a literal block, and the mark that begins it; nothing
/// when the text is not made for it.
pub(super) fn literal(text: &str) -> Option<(&'static str, Vec<&str>)> {
    let (mark, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    let lines: Vec<&str> = body.split('\n').collect();
    let short = lines.len() == 1 && mark == "|-";
    let printable = |c: char| c == '\n' || c == '\t' || is_printable(c);
    // The first line tells how far the block is indented; blanks alone could be
    // taken for that, and empty lines at the end have rules of their own.
    let first = lines
        .first()
        .is_none_or(|line| line.is_empty() || line.starts_with([' ', '\t']));
    let blank = lines
        .iter()
        .any(|line| !line.is_empty() && line.trim().is_empty());
    let open = lines.last().is_some_and(|line| line.is_empty());
    if short || first || blank || open || !text.chars().all(printable) {
        return None;
    }
    Some((mark, lines))
}

/// Whether a character stands for itself in every version of YAML.
fn is_printable(character: char) -> bool {
    !character.is_control() && !matches!(character, '\u{2028}' | '\u{2029}' | '\u{FEFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_23_yaml_scalars_mean_what_version_1_2_says() {
        let shown = |text: &str| format!("{:?}", resolved(text));
        for (text, meaning) in [
            ("~", "Null"),
            ("True", "Bool(true)"),
            ("yes", "Text(\"yes\")"),
            ("0x1F", "Number(\"31\")"),
            ("0o17", "Number(\"15\")"),
            ("-1.5e3", "Number(\"-1.5e3\")"),
            (".5", "Number(\".5\")"),
            ("1.", "Number(\"1.\")"),
            (".", "Text(\".\")"),
            ("1e", "Text(\"1e\")"),
            ("1_000", "Text(\"1_000\")"),
            ("-.inf", "Special(\"-.inf\")"),
            ("2026-01-01", "Text(\"2026-01-01\")"),
        ] {
            assert_eq!(shown(text), meaning, "{text}");
        }
    }

    #[test]
    fn st_23_yaml_texts_are_quoted_when_another_reader_could_err() {
        for text in [
            "",
            "yes",
            "No",
            "on",
            "null",
            "1",
            "1.5",
            "1_000",
            "0x1f",
            "2026-01-01",
            "12:30",
            "- a",
            "a: b",
            "a #b",
            " a",
            "a ",
            "&a",
            "*a",
            "!a",
            "#a",
            "%a",
            "@a",
            "`a",
            "\"a",
            "'a",
            "a\nb",
            "a:",
            "...",
            ".5",
            "?a",
            "|",
            "-",
            "{a",
            "[a",
            "\u{7f}",
            "=",
            "<<",
            "~",
            "1e5",
        ] {
            assert!(!is_plain(text, false), "{text}");
        }
        for text in [
            "a",
            "a b",
            "http://x/y?z=1",
            "nginx:1.25",
            "a#b",
            "it's",
            "ä ö",
            "./run",
            "3 items",
            "v1.2",
        ] {
            assert!(is_plain(text, false), "{text}");
        }
        assert!(!is_plain("a, b", true) && !is_plain("a:b", true));
    }
}
