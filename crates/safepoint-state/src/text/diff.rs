//! The difference of two contents as hunks of lines, and as a unified diff.

use std::ops::Range;

use super::align::{Change, changes};
use super::lines::{looks_binary, split};

/// How two contents differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Not at all.
    Same,
    /// They do, and one of them is binary, as git sees it (a NUL among the
    /// first 8000 bytes), or too large to diff.
    Binary,
    /// In these lines.
    Text(Vec<Hunk>),
}

/// Changed lines that lie close together, with unchanged ones around them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hunk {
    /// The first line on the old side, counted from 1; without a line on that
    /// side, the line after which the hunk belongs, as in unified diffs.
    pub old_start: usize,
    /// How many lines the old side has.
    pub old_lines: usize,
    /// The first line on the new side, counted as `old_start` is.
    pub new_start: usize,
    /// How many lines the new side has.
    pub new_lines: usize,
    /// The lines, removed ones before those that were added in their place.
    pub lines: Vec<Line>,
}

/// One line of a hunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// To which side it belongs.
    pub side: Side,
    /// The line with its line end, if it has one.
    pub text: Vec<u8>,
}

/// To which side of a comparison a line belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Both: it is unchanged.
    Context,
    /// The old one alone.
    Removed,
    /// The new one alone.
    Added,
}

/// Compares two contents by lines. Hunks carry up to `context` unchanged lines
/// before and after what changed.
pub fn compare(old: &[u8], new: &[u8], context: usize) -> Comparison {
    if old == new {
        return Comparison::Same;
    }
    if looks_binary(old) || looks_binary(new) {
        return Comparison::Binary;
    }
    let (Some(old), Some(new)) = (split(old), split(new)) else {
        return Comparison::Binary;
    };
    // Closer than this, the context of two changes would meet or overlap.
    let near = context.saturating_mul(2);
    let hunks = changes(&old, &new)
        .chunk_by(|one, next| next.old.start.saturating_sub(one.old.end) <= near)
        .filter_map(|close| hunk(&old, &new, close, context))
        .collect();
    Comparison::Text(hunks)
}

/// The hunk of changes that lie close together.
fn hunk(old: &[&[u8]], new: &[&[u8]], close: &[Change], context: usize) -> Option<Hunk> {
    let (first, last) = (close.first()?, close.last()?);
    let before = context.min(first.old.start);
    let after = context.min(old.len().saturating_sub(last.old.end));
    let old_range = first.old.start - before..last.old.end + after;
    let new_range = first.new.start.saturating_sub(before)..last.new.end + after;

    let mut lines = Vec::new();
    let mut done = old_range.start;
    for change in close {
        lines.extend(side_lines(Side::Context, old, done..change.old.start));
        lines.extend(side_lines(Side::Removed, old, change.old.clone()));
        lines.extend(side_lines(Side::Added, new, change.new.clone()));
        done = change.old.end;
    }
    lines.extend(side_lines(Side::Context, old, done..old_range.end));
    Some(Hunk {
        old_start: shown_start(&old_range),
        old_lines: old_range.len(),
        new_start: shown_start(&new_range),
        new_lines: new_range.len(),
        lines,
    })
}

fn side_lines(side: Side, content: &[&[u8]], range: Range<usize>) -> impl Iterator<Item = Line> {
    let lines = content.get(range).unwrap_or_default();
    lines.iter().map(move |text| Line {
        side,
        text: text.to_vec(),
    })
}

fn shown_start(range: &Range<usize>) -> usize {
    if range.is_empty() {
        range.start
    } else {
        range.start + 1
    }
}

/// The hunks as the text of a unified diff, for `patch` and `git apply`. The
/// headers that name the files are left to the caller. Hunks without context
/// need `git apply --unidiff-zero`.
pub fn unified(hunks: &[Hunk]) -> Vec<u8> {
    let mut text = Vec::new();
    for hunk in hunks {
        let old = shown_range(hunk.old_start, hunk.old_lines);
        let new = shown_range(hunk.new_start, hunk.new_lines);
        text.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
        for line in &hunk.lines {
            text.push(match line.side {
                Side::Context => b' ',
                Side::Removed => b'-',
                Side::Added => b'+',
            });
            text.extend_from_slice(&line.text);
            if !line.text.ends_with(b"\n") {
                text.extend_from_slice(b"\n\\ No newline at end of file\n");
            }
        }
    }
    text
}

/// git and diff leave out a count of one.
fn shown_range(start: usize, lines: usize) -> String {
    match lines {
        1 => format!("{start}"),
        _ => format!("{start},{lines}"),
    }
}

/// How many lines were added, and how many removed.
pub fn totals(hunks: &[Hunk]) -> (usize, usize) {
    let count = |side| {
        let lines = hunks.iter().flat_map(|hunk| &hunk.lines);
        lines.filter(|line| line.side == side).count()
    };
    (count(Side::Added), count(Side::Removed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunks(old: &[u8], new: &[u8], context: usize) -> Vec<Hunk> {
        match compare(old, new, context) {
            Comparison::Text(hunks) => hunks,
            other => panic!("{other:?}"),
        }
    }

    fn shown(old: &str, new: &str, context: usize) -> String {
        let hunks = hunks(old.as_bytes(), new.as_bytes(), context);
        String::from_utf8(unified(&hunks)).unwrap()
    }

    #[test]
    fn a_changed_line_stands_in_its_context() {
        assert_eq!(
            shown("a\nb\nc\nd\ne\n", "a\nb\nX\nY\nd\ne\n", 1),
            "@@ -2,3 +2,4 @@\n b\n-c\n+X\n+Y\n d\n"
        );
        assert_eq!(totals(&hunks(b"a\nb\n", b"a\nx\ny\n", 3)), (2, 1));
    }

    #[test]
    fn contexts_that_meet_make_one_hunk() {
        let old = "1\n2\n3\n4\n5\n";
        assert_eq!(
            shown(old, "x\n2\n3\ny\n5\n", 1),
            "@@ -1,5 +1,5 @@\n-1\n+x\n 2\n 3\n-4\n+y\n 5\n"
        );
        assert_eq!(
            shown(old, "x\n2\n3\n4\ny\n", 1),
            "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -4,2 +4,2 @@\n 4\n-5\n+y\n"
        );
        assert_eq!(
            hunks(old.as_bytes(), b"x\n2\n3\n4\ny\n", usize::MAX).len(),
            1
        );
    }

    #[test]
    fn empty_sides_start_before_the_first_line() {
        assert_eq!(shown("", "a\nb\n", 3), "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(shown("a\n", "", 3), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(shown("a\nb\n", "a\nx\nb\n", 0), "@@ -1,0 +2 @@\n+x\n");
    }

    #[test]
    fn a_missing_last_line_end_is_told() {
        assert_eq!(
            shown("a\nb", "a\nb\n", 3),
            "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"
        );
        assert_eq!(
            shown("a\nb", "x\nb", 3),
            "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn line_ends_and_invalid_text_are_kept() {
        let hunks = hunks(b"a\r\n\xFF\xFE\n", b"a\n\xFF\xFE\n", 3);
        assert_eq!(unified(&hunks), b"@@ -1,2 +1,2 @@\n-a\r\n+a\n \xFF\xFE\n");
    }

    #[test]
    fn an_inserted_block_is_shown_whole() {
        let old = "fn a() {\n    one();\n}\n\nfn c() {\n    one();\n}\n";
        let new = "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n}\n\nfn c() {\n    one();\n}\n";
        assert_eq!(
            shown(old, new, 0),
            "@@ -4,0 +5,4 @@\n+fn b() {\n+    one();\n+}\n+\n"
        );
    }

    #[test]
    fn binary_and_large_contents_are_not_taken_apart() {
        assert_eq!(compare(b"a\0", b"a\0", 3), Comparison::Same);
        assert_eq!(compare(b"a\0", b"a", 3), Comparison::Binary);
        assert_eq!(compare(b"a", b"a\0", 3), Comparison::Binary);
        let large = vec![b'a'; 33 * 1024 * 1024];
        assert_eq!(compare(&large, b"a", 3), Comparison::Binary);
        assert_eq!(compare(b"a", &large, 3), Comparison::Binary);
        assert_eq!(compare(&large, &large, 3), Comparison::Same);
    }
}
