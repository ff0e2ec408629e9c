//! Private keys as text: blocks of PEM, OpenSSH and PGP, and the files of `PuTTY`.
//!
//! The line that begins a block stands in every program that reads keys, and in
//! its documentation. So a block counts only when key material follows, on a
//! line of its own: in a file, in a quoted text with `\n` in it, or in pieces
//! of quoted text.

/// The label of a block is short; what is longer is prose.
const LONGEST_LABEL: usize = 32;
/// Lines such as `Proc-Type:` or `Version:` between the beginning and the key.
const MOST_HEADERS: usize = 8;
/// How far one step looks: keeps the whole search linear.
const REACH: usize = 256;
/// Less is an abbreviation.
const LEAST_MATERIAL: usize = 16;

/// Whether `PRIVATE KEY` between `before` and `after` begins a block with a key in it.
pub(super) fn is_block(before: &[u8], after: &[u8]) -> bool {
    let in_label = |byte: &&u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b' ');
    let label = before.iter().rev().take(LONGEST_LABEL).take_while(in_label);
    let (before, label) = before.split_at(before.len() - label.count());
    if !before.ends_with(b"----") || !label.trim_ascii_start().starts_with(b"BEGIN ") {
        return false;
    }
    let after = after.strip_prefix(b" BLOCK").unwrap_or(after);
    let after = after.strip_prefix(b" ").unwrap_or(after);
    let Some(after) = after.strip_prefix(b"----") else {
        return false;
    };
    has_material(after.strip_prefix(b"-").unwrap_or(after))
}

/// Whether `Private-Lines: ` before `after` announces the lines of a key.
pub(super) fn is_putty(after: &[u8]) -> bool {
    let digits = after
        .iter()
        .take(4)
        .take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    digits > 0 && after.get(digits..).is_some_and(has_material)
}

/// Whether a line of key material follows, with nothing but headers before it.
fn has_material(mut rest: &[u8]) -> bool {
    for _ in 0..=MOST_HEADERS {
        let Some(line) = next_line(rest) else {
            return false;
        };
        if is_material(line) {
            return true;
        }
        let Some(after) = after_header(line) else {
            return false;
        };
        rest = after;
    }
    false
}

/// What stands on the next line, without what may surround a line in source text.
fn next_line(mut rest: &[u8]) -> Option<&[u8]> {
    let end = rest.len().saturating_sub(REACH);
    let mut broken = false;
    while rest.len() > end {
        rest = match rest {
            [b'\\', b'n' | b'r', after @ ..] | [b'\n' | b'\r', after @ ..] => {
                broken = true;
                after
            }
            [b'\\', b't', after @ ..] => after,
            [
                b' ' | b'\t' | b'\\' | b'"' | b'\'' | b'`' | b'+' | b',' | b'#' | b'*' | b'/'
                | b'>',
                after @ ..,
            ] => after,
            _ => break,
        };
    }
    broken.then_some(rest)
}

/// Whether a line begins with enough base64, and is not a name or an abbreviation.
fn is_material(line: &[u8]) -> bool {
    let in_base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = line.iter().take(REACH).take_while(in_base64).count();
    let Some((material, rest)) = line.split_at_checked(length) else {
        return false;
    };
    let ended = matches!(
        rest.first(),
        None | Some(
            b'=' | b'\n' | b'\r' | b' ' | b'\t' | b'"' | b'\'' | b'`' | b'\\' | b'<' | b'-'
        )
    );
    length >= LEAST_MATERIAL
        && (ended || length == REACH)
        && material.iter().any(u8::is_ascii_uppercase)
        && material.iter().any(u8::is_ascii_lowercase)
        && material.iter().any(|byte| !byte.is_ascii_alphabetic())
}

/// What follows the value of a header such as `DEK-Info: …`, if the line is one.
fn after_header(line: &[u8]) -> Option<&[u8]> {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let name = line.iter().take(LONGEST_LABEL).take_while(in_name).count();
    let value = line.get(name..)?.strip_prefix(b":")?;
    let seen = value.get(..REACH).unwrap_or(value);
    let end = seen.iter().position(|byte| matches!(byte, b'\n' | b'\\'))?;
    (name > 0).then_some(value.get(end..)?)
}

#[cfg(test)]
mod tests {
    use super::super::{Reason, by_content};

    const MATERIAL: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";

    fn begin(label: &str) -> String {
        // Split, so that this file is not taken for a secret itself.
        format!("-----BEGIN {label}{} KEY", "PRIVATE")
    }

    fn found(text: &str) -> bool {
        by_content(text.as_bytes()) == Some(Reason::PrivateKey)
    }

    #[test]
    fn st_08_private_key_blocks_are_found() {
        for label in ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "] {
            assert!(found(&format!("x\n{}-----\n{MATERIAL}\n", begin(label))));
        }
        let begin = begin("RSA ");
        for text in [
            format!("{begin}-----\r\nProc-Type: 4,ENCRYPTED\r\nDEK-Info: AES,00\r\n\r\n{MATERIAL}"),
            format!("{{\"private_key\": \"{begin}-----\\n{MATERIAL}\\n\"}}"),
            format!("\"{begin}-----\\n\" +\n    \"{MATERIAL}\\n\""),
            format!("let key = \"{begin}-----\\n\\\n    {MATERIAL}\\n\\\n"),
            format!("// {begin}-----\n// {MATERIAL}\n"),
            format!("{begin} BLOCK-----\nVersion: GnuPG v2\n\n{MATERIAL}\n"),
            format!(
                "---- BEGIN SSH2 ENCRYPTED {} KEY ----\n{MATERIAL}\n",
                "PRIVATE"
            ),
            format!("Private-Lines: 14\r\n{MATERIAL}\r\n"),
        ] {
            assert!(found(&text), "{text}");
        }
    }

    #[test]
    fn st_08_words_about_private_keys_are_no_keys() {
        let begin = begin("");
        for text in [
            format!("const BEGIN: &str = \"{begin}-----\";\nconst something_long_v2: u8 = 1;"),
            format!("{begin}-----\n...\n"),
            format!("{begin}-----\nMIIEvQIBADANBgkq...\n"),
            format!("{begin}-----\n<your key here>\n"),
            format!("[\"{begin}-----\\n\",\n  readPrivateKeyFromFile2(path)]"),
            format!("{begin}-----{MATERIAL}"),
            format!("{begin}-----"),
            format!("{begin}-----\nVersion: "),
            format!("-----BEGIN PUBLIC KEY-----\n{MATERIAL}\n"),
            format!("-----BEGIN CERTIFICATE-----\n{MATERIAL}\n"),
            format!("THE PRIVATE KEY-----\n{MATERIAL}\n"),
            "PRIVATE KEY".to_owned(),
            "Private-Lines: many\n".to_owned(),
        ] {
            assert_eq!(by_content(text.as_bytes()), None, "{text}");
        }
    }
}
