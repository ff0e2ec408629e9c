//! What stands between the values of a YAML text: the marks of entries, which
//! the parser does not report, and comments.

use std::ops::Range;

/// Where the marks stand, each kind in order.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    /// `-` before an item.
    pub(super) dashes: Vec<usize>,
    /// `:` behind a key.
    pub(super) colons: Vec<usize>,
    /// `,` behind an entry in brackets.
    pub(super) commas: Vec<usize>,
    /// `?` before a key.
    pub(super) questions: Vec<usize>,
    /// `|` or `>` with what follows it directly.
    pub(super) headers: Vec<Range<usize>>,
    /// `#` of comments.
    pub(super) comments: Vec<usize>,
    /// The values themselves, and brackets.
    values: Vec<Range<usize>>,
}

/// The first of some ordered places that is not before `from`.
pub(super) fn first_from(places: &[usize], from: usize) -> Option<usize> {
    let next = places.partition_point(|place| *place < from);
    places.get(next).copied()
}

impl Gaps {
    /// Looks between `values`. Nothing comes out when something stands there
    /// that should not.
    pub(super) fn find(text: &str, mut values: Vec<Range<usize>>) -> Option<Self> {
        values.sort_by_key(|value| value.start);
        let mut gaps = Self::default();
        let mut done = 0;
        for value in &values {
            gaps.look(text, done..value.start)?;
            done = value.end;
        }
        gaps.look(text, done..text.len())?;
        gaps.values = values;
        Some(gaps)
    }

    fn look(&mut self, text: &str, gap: Range<usize>) -> Option<()> {
        let bytes = text.as_bytes();
        let mut at = gap.start;
        while at < gap.end {
            let rest = text.get(at..gap.end)?;
            let line_start = at == 0 || bytes.get(at - 1) == Some(&b'\n');
            let length = |ends: &[char]| rest.find(ends).unwrap_or(rest.len());
            at += match rest.bytes().next()? {
                b' ' | b'\t' | b'\r' | b'\n' => 1,
                b'#' => {
                    self.comments.push(at);
                    length(&['\n'])
                }
                b'%' if line_start => length(&['\n']),
                b'-' if line_start && rest.starts_with("---") => 3,
                b'.' if line_start && rest.starts_with("...") => 3,
                b'-' => {
                    self.dashes.push(at);
                    1
                }
                b':' => {
                    self.colons.push(at);
                    1
                }
                b',' => {
                    self.commas.push(at);
                    1
                }
                b'?' => {
                    self.questions.push(at);
                    1
                }
                b'|' | b'>' => {
                    let mark = rest.get(1..)?;
                    let mark =
                        mark.trim_start_matches(|c: char| c.is_ascii_digit() || "+-".contains(c));
                    let length = rest.len() - mark.len();
                    self.headers.push(at..at + length);
                    length
                }
                b'!' if rest.starts_with("!<") => rest.find('>')? + 1,
                b'!' | b'&' => length(&[' ', '\t', '\r', '\n', ',', '[', ']', '{', '}']),
                _ => return None,
            };
        }
        Some(())
    }

    /// Where the next value or bracket begins.
    fn next_value(&self, from: usize) -> usize {
        let next = self.values.partition_point(|value| value.start < from);
        self.values
            .get(next)
            .map_or(usize::MAX, |value| value.start)
    }

    /// The colon that belongs to a key that ends at `end`.
    pub(super) fn colon(&self, end: usize) -> Option<usize> {
        first_from(&self.colons, end).filter(|colon| *colon < self.next_value(end))
    }

    /// The comma that belongs to an entry that ends at `end`.
    pub(super) fn comma(&self, end: usize) -> Option<usize> {
        first_from(&self.commas, end).filter(|comma| *comma < self.next_value(end))
    }

    /// Whether a question mark stands directly before a key.
    pub(super) fn is_asked(&self, start: usize) -> bool {
        let before = self.values.partition_point(|value| value.start < start);
        let before = before.checked_sub(1).and_then(|last| self.values.get(last));
        let from = before.map_or(0, |value| value.end);
        first_from(&self.questions, from).is_some_and(|question| question < start)
    }

    /// Whether a comment stands in a part of the text.
    pub(super) fn has_comment(&self, part: Range<usize>) -> bool {
        first_from(&self.comments, part.start).is_some_and(|comment| comment < part.end)
    }
}
