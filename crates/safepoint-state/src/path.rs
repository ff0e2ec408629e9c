//! Paths inside a workspace: raw bytes, `/` between names, never absolute,
//! never `.` or `..`. The empty path is the workspace itself.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path relative to the workspace.
pub type TreePath = Vec<u8>;

/// `name` inside the directory `path`.
pub fn join(path: &[u8], name: &[u8]) -> TreePath {
    let mut joined = Vec::with_capacity(path.len() + 1 + name.len());
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// The directory that holds `path`, and its name there.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => {
            let (parent, name) = path.split_at(at);
            (parent, name.get(1..).unwrap_or_default())
        }
        None => (&[], path),
    }
}

/// The names of a path, from the outside in.
pub fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/')
        .filter(|name| !name.is_empty())
}

/// Whether `path` is `above`, or lies somewhere inside it.
pub fn is_within(path: &[u8], above: &[u8]) -> bool {
    above.is_empty()
        || path
            .strip_prefix(above)
            .is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'/'))
}

/// For the file system.
pub fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// For people and for JSON: what is not UTF-8, or could be mistaken, is escaped. The workspace
/// itself is `.`.
pub fn display(path: &[u8]) -> String {
    if path.is_empty() {
        return ".".to_owned();
    }
    match std::str::from_utf8(path) {
        Ok(text) if !text.contains(|c: char| c == '\\' || c.is_control()) => text.to_owned(),
        _ => escape(path),
    }
}

/// A displayed path in a sentence: of one that is too long to be read, both ends.
pub fn shorten(displayed: &str) -> std::borrow::Cow<'_, str> {
    const MAX_CHARS: usize = 240;
    const END_CHARS: usize = 100;
    let total = displayed.chars().count();
    if total <= MAX_CHARS {
        return displayed.into();
    }
    let front: String = displayed.chars().take(END_CHARS).collect();
    let back: String = displayed.chars().skip(total - END_CHARS).collect();
    format!("{front}…{back}").into()
}

fn escape(path: &[u8]) -> String {
    let mut shown = String::new();
    for piece in path.utf8_chunks() {
        for c in piece.valid().chars() {
            match c {
                '\\' => shown.push_str("\\\\"),
                '\n' => shown.push_str("\\n"),
                '\r' => shown.push_str("\\r"),
                c if c.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in c.encode_utf8(&mut bytes).bytes() {
                        shown.push_str(&format!("\\x{byte:02x}"));
                    }
                }
                c => shown.push(c),
            }
        }
        for byte in piece.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_joined_split_and_compared_by_whole_names() {
        assert_eq!(join(b"", b"a"), b"a");
        assert_eq!(join(b"a/b", b"c"), b"a/b/c");
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
        assert!(is_within(b"a/b", b"a") && is_within(b"a", b"a") && is_within(b"x", b""));
        assert!(!is_within(b"ab", b"a"));
    }

    #[test]
    fn st_11_hostile_names_are_shown_without_being_mistaken_for_others() {
        assert_eq!(display("naïve file".as_bytes()), "naïve file");
        assert_eq!(display(b"new\nline"), "new\\nline");
        assert_eq!(display(b"new\\nline"), "new\\\\nline");
        assert_eq!(display(b"bad\xffname"), "bad\\xffname");
        assert_eq!(display(b""), ".");
    }

    #[test]
    fn st_11_a_path_too_long_to_be_read_is_shown_by_both_its_ends() {
        assert_eq!(shorten("src/a"), "src/a");
        let deep = format!("top/{}leaf", "ä/".repeat(1000));
        let shown = shorten(&deep);
        assert!(
            shown.starts_with("top/") && shown.ends_with("/leaf"),
            "{shown}"
        );
        assert_eq!(shown.chars().count(), 201);
    }
}
