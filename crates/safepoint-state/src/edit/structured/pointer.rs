//! JSON pointers (RFC 6901).

/// The parts of a pointer, with `~0` and `~1` resolved.
pub(super) fn parse(pointer: &str) -> Result<Vec<String>, &'static str> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let Some(inside) = pointer.strip_prefix('/') else {
        return Err("a pointer is empty or begins with `/`");
    };
    inside.split('/').map(part).collect()
}

fn part(escaped: &str) -> Result<String, &'static str> {
    let mut output = String::with_capacity(escaped.len());
    let mut characters = escaped.chars();
    while let Some(character) = characters.next() {
        output.push(match character {
            '~' => match characters.next() {
                Some('0') => '~',
                Some('1') => '/',
                _ => return Err("in a pointer `~` is written `~0`, and `/` in a key `~1`"),
            },
            other => other,
        });
    }
    Ok(output)
}

/// A pointer to the value that `parts` lead to.
pub(super) fn write<Part: AsRef<str>>(parts: &[Part]) -> String {
    let mut output = String::new();
    for part in parts {
        output.push('/');
        for character in part.as_ref().chars() {
            match character {
                '~' => output.push_str("~0"),
                '/' => output.push_str("~1"),
                other => output.push(other),
            }
        }
    }
    output
}

/// The index that a part means: digits, without a zero before others.
pub(super) fn index(part: &str) -> Option<usize> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let padded = part.len() > 1 && part.starts_with('0');
    (digits && !padded).then(|| part.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_23_pointers_are_read_and_written() {
        // The examples of RFC 6901, section 5.
        for (pointer, parts) in [
            ("", vec![]),
            ("/foo", vec!["foo"]),
            ("/foo/0", vec!["foo", "0"]),
            ("/", vec![""]),
            ("/a~1b", vec!["a/b"]),
            ("/c%d", vec!["c%d"]),
            ("/m~0n", vec!["m~n"]),
            ("/~01", vec!["~1"]),
            ("/a//b", vec!["a", "", "b"]),
        ] {
            assert_eq!(parse(pointer).unwrap(), parts);
            assert_eq!(write(&parts), pointer);
        }
        for pointer in ["a", "a/b", "/~", "/~2", "#/a"] {
            assert!(parse(pointer).is_err(), "{pointer}");
        }
    }

    #[test]
    fn st_23_indexes_are_plain_digits() {
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("10"), Some(10));
        for part in [
            "",
            "00",
            "01",
            "-1",
            "+1",
            "1.0",
            "1e0",
            " 1",
            "٣",
            "99999999999999999999",
        ] {
            assert_eq!(index(part), None, "{part}");
        }
    }
}
