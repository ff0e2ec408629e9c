//! What stands in a query: names and values, percent-encoded, and nothing else.

use serde_json::{Map, Value};

use super::Reading;

/// The pairs of a query.
pub(super) fn pairs(query: &str) -> Result<Vec<(String, String)>, String> {
    let pieces = query.split('&').filter(|piece| !piece.is_empty());
    pieces
        .map(|piece| {
            let (name, value) = piece.split_once('=').unwrap_or((piece, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

/// Text that is percent-encoded; a `+` is a space.
fn decode(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` is not percent-encoded UTF-8");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next()), digit(rest.next()));
                let (Some(high), Some(low)) = (high, low) else {
                    return Err(wrong());
                };
                u8::try_from(high * 16 + low).map_err(|_| wrong())?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

/// Text as it stands in a query.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

/// Puts a text among what is given, read as it is to be read.
pub(super) fn add(
    given: &mut Map<String, Value>,
    known: &[(&'static str, Reading)],
    name: &str,
    text: String,
) -> Result<(), String> {
    let found = known.iter().find(|(known, _)| *known == name);
    let Some((_, reading)) = found else {
        return Err(format!("there is no parameter `{name}`"));
    };
    let value = match reading {
        Reading::Text => Value::String(text),
        Reading::Count => match text.parse::<u64>() {
            Ok(number) if text.bytes().all(|c| c.is_ascii_digit()) => number.into(),
            _ => return Err(format!("`{name}` must be a number")),
        },
        Reading::Flag => match text.as_str() {
            "true" => true.into(),
            "false" => false.into(),
            _ => return Err(format!("`{name}` must be `true` or `false`")),
        },
        Reading::Texts => {
            let several = given
                .entry(name)
                .or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(values) = several {
                values.push(Value::String(text));
            }
            return Ok(());
        }
    };
    match given.insert(name.to_owned(), value) {
        None => Ok(()),
        Some(_) => Err(format!("`{name}` is given twice")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_queries_are_read_exactly() {
        let read = |query: &str| pairs(query).map(|pairs| format!("{pairs:?}"));
        assert_eq!(
            read("a=b+c&d=%2B%c3%a9&e"),
            Ok(r#"[("a", "b c"), ("d", "+é"), ("e", "")]"#.to_owned())
        );
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff", "%+1=b", "a=%-1"] {
            assert!(pairs(bad).is_err(), "{bad}");
        }
        assert_eq!(encode("a b/é"), "a%20b%2F%C3%A9");
        let known = [
            ("n", Reading::Count),
            ("f", Reading::Flag),
            ("s", Reading::Texts),
        ];
        let mut given = Map::new();
        let mut put = |name: &str, text: &str| add(&mut given, &known, name, text.into());
        assert!(put("n", "+1").is_err());
        assert!(put("n", "1").is_ok());
        assert!(put("n", "1").is_err());
        assert!(put("f", "yes").is_err());
        assert!(put("x", "1").is_err());
        assert!(put("s", "1").is_ok());
        assert!(put("s", "2").is_ok());
        assert_eq!(Value::Object(given).to_string(), r#"{"n":1,"s":["1","2"]}"#);
    }
}
