//! What counts as text, and its lines.

use imara_diff::sources::byte_lines;

/// Larger contents are not taken apart: nobody reads such a diff, and its cost
/// has to end somewhere.
const MOST_BYTES: usize = 32 * 1024 * 1024;

/// A content of line ends alone would stay below the limit on bytes and still
/// take a gigabyte of slices.
const MOST_LINES: usize = 4_000_000;

/// How far git looks for a NUL before it calls a content text.
const BINARY_PROBE: usize = 8000;

/// Whether git would call the content binary.
pub(super) fn looks_binary(content: &[u8]) -> bool {
    content.iter().take(BINARY_PROBE).any(|byte| *byte == 0)
}

/// The lines, each with its line end; `None` when there is too much of them.
pub(super) fn split(content: &[u8]) -> Option<Vec<&[u8]>> {
    if content.len() > MOST_BYTES {
        return None;
    }
    let lines: Vec<&[u8]> = byte_lines(content).take(MOST_LINES + 1).collect();
    (lines.len() <= MOST_LINES).then_some(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_ends() {
        assert_eq!(split(b"").unwrap(), Vec::<&[u8]>::new());
        assert_eq!(
            split(b"a\r\n\n\rb\xFF").unwrap(),
            [b"a\r\n".as_slice(), b"\n", b"\rb\xFF"]
        );
    }

    #[test]
    fn too_much_is_not_split() {
        assert!(split(&vec![b'a'; MOST_BYTES]).is_some());
        assert!(split(&vec![b'a'; MOST_BYTES + 1]).is_none());
        assert!(split(&vec![b'\n'; MOST_LINES]).is_some());
        assert!(split(&vec![b'\n'; MOST_LINES + 1]).is_none());
    }

    #[test]
    fn a_late_nul_is_text_as_in_git() {
        let mut content = vec![b'a'; BINARY_PROBE];
        content.push(0);
        assert!(!looks_binary(&content));
        assert!(looks_binary(&content[1..]));
    }
}
