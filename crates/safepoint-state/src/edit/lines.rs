//! What counts as text that can be edited, and where its lines are.

use std::ops::Range;

use safepoint_model::text;

use super::EditError;

/// Larger contents are not edited: reading and checking them has to end
/// somewhere, and several copies of them are held at once.
pub(super) const MOST_BYTES: usize = 32 << 20;

/// A content of line ends alone would stay below the limit on bytes and still
/// take a gigabyte of positions.
pub(super) const MOST_LINES: usize = 4_000_000;

/// How many characters of a line are shown in a message.
const SHOWN: usize = 72;

pub(super) const BYTE_ORDER_MARK: &str = "\u{FEFF}";

/// The content as text, or why it is none.
pub(super) fn as_text(content: &[u8]) -> Result<&str, EditError> {
    check_size("the file", content)?;
    if let Some(offset) = content.iter().position(|byte| *byte == 0) {
        return Err(EditError::Binary {
            why: "it has a NUL",
            offset,
        });
    }
    std::str::from_utf8(content).map_err(|error| EditError::Binary {
        why: "it is not UTF-8",
        offset: error.valid_up_to(),
    })
}

/// Refuses what is too large.
pub(super) fn check_size(what: &'static str, content: &[u8]) -> Result<(), EditError> {
    check_limit(what, content.len(), MOST_BYTES, "bytes")?;
    let lines = content.iter().filter(|byte| **byte == b'\n').count();
    check_limit(what, lines, MOST_LINES, "lines")
}

/// Refuses more than `most`.
pub(super) fn check_limit(
    what: &'static str,
    size: usize,
    most: usize,
    unit: &'static str,
) -> Result<(), EditError> {
    if size > most {
        return Err(EditError::TooLarge {
            what,
            size,
            most,
            unit,
        });
    }
    Ok(())
}

/// How the lines of a text end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineEnds {
    /// There is no line end.
    None,
    /// All with a line feed.
    Lf,
    /// All with a carriage return and a line feed.
    CrLf,
    /// Some this way, some that way.
    Mixed,
}

impl LineEnds {
    pub(super) fn of(content: &[u8]) -> Self {
        let (mut lf, mut crlf) = (false, false);
        let mut before = 0;
        for byte in content {
            if *byte == b'\n' {
                if before == b'\r' {
                    crlf = true;
                } else {
                    lf = true;
                }
            }
            before = *byte;
        }
        match (lf, crlf) {
            (false, false) => Self::None,
            (true, false) => Self::Lf,
            (false, true) => Self::CrLf,
            (true, true) => Self::Mixed,
        }
    }
}

/// Where the lines of a text begin. A line end belongs to the line that it ends.
#[derive(Debug)]
pub(super) struct Lines {
    starts: Vec<usize>,
    length: usize,
}

impl Lines {
    pub(super) fn of(content: &[u8]) -> Self {
        let mut starts = Vec::new();
        if !content.is_empty() {
            starts.push(0);
        }
        for (offset, byte) in content.iter().enumerate() {
            if *byte == b'\n' && offset + 1 < content.len() {
                starts.push(offset + 1);
            }
        }
        Self {
            starts,
            length: content.len(),
        }
    }

    /// How many there are. A line end at the very end begins no further line.
    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    /// The number, from 1, of the line in which `offset` lies.
    pub(super) fn number(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).max(1)
    }

    /// Where line `number`, from 1, lies, with its line end.
    pub(super) fn range(&self, number: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(number.checked_sub(1)?)?;
        let end = self.starts.get(number).copied().unwrap_or(self.length);
        Some(start..end)
    }

    /// Where the line begins in which `offset` lies.
    pub(super) fn start(&self, offset: usize) -> usize {
        self.range(self.number(offset))
            .map_or(0, |range| range.start)
    }

    /// The column, from 1, in characters.
    pub(super) fn column(&self, content: &str, offset: usize) -> usize {
        let before = content.get(self.start(offset)..offset);
        before.map_or(1, |before| before.chars().count() + 1)
    }
}

/// A text with LF line ends as it is written in a file with CRLF line ends.
pub(super) fn with_crlf(input: &str) -> String {
    let mut output = String::with_capacity(input.len() + input.len() / 16);
    let mut before = '\0';
    for character in input.chars() {
        if character == '\n' && before != '\r' {
            output.push('\r');
        }
        output.push(character);
        before = character;
    }
    output
}

/// A line as a message shows it: on one line, harmless and short.
pub(super) fn shown(line: &[u8]) -> String {
    // Escapes make a text longer, never shorter: what lies behind is cut anyway.
    let enough = line.get(..4 * SHOWN).unwrap_or(line);
    let end = enough.iter().position(|byte| *byte == b'\n');
    let first = enough.get(..end.unwrap_or(enough.len())).unwrap_or(enough);
    let first = first.strip_suffix(b"\r").unwrap_or(first);
    text::shorten(&text::bytes_line(first).text, SHOWN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_with_their_ends() {
        let lines = Lines::of(b"a\nbc\r\n\nd");
        assert_eq!(lines.count(), 4);
        assert_eq!(lines.range(1), Some(0..2));
        assert_eq!(lines.range(2), Some(2..6));
        assert_eq!(lines.range(4), Some(7..8));
        assert_eq!(lines.range(5), None);
        assert_eq!(lines.range(0), None);
        assert_eq!(lines.number(1), 1);
        assert_eq!(lines.number(2), 2);
        assert_eq!(lines.number(8), 4);
        assert_eq!(Lines::of(b"").count(), 0);
        assert_eq!(Lines::of(b"a\n").count(), 1);
    }

    #[test]
    fn line_ends_are_told_apart() {
        assert_eq!(LineEnds::of(b"a"), LineEnds::None);
        assert_eq!(LineEnds::of(b"a\rb\n"), LineEnds::Lf);
        assert_eq!(LineEnds::of(b"a\r\n\r\n"), LineEnds::CrLf);
        assert_eq!(LineEnds::of(b"a\r\n\n"), LineEnds::Mixed);
        assert_eq!(with_crlf("a\nb\r\n\n"), "a\r\nb\r\n\r\n");
    }

    #[test]
    fn shown_lines_are_short_and_harmless() {
        assert_eq!(shown(b"a\tb\r\nc"), "a\\tb");
        assert_eq!(shown(&[b'x'; 500]).chars().count(), SHOWN);
    }
}
