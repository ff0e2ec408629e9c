//! Three-way merge by lines: two changes of one base, put together where they
//! do not meet. `git merge-file` is the reference.

use std::cmp::{max, min};
use std::ops::Range;

use super::align::{Change, changes};
use super::lines::split;

/// What came of a three-way merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The content that carries both changes.
    Clean(Vec<u8>),
    /// The places where the changes meet and differ, in order; at least one.
    Conflict(Vec<Conflict>),
}

/// A place that both sides changed, each in its own way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The line of `ours` where it begins, counted from 1.
    pub line: usize,
    /// The lines before either change.
    pub base: Vec<u8>,
    /// The lines that our change made of them.
    pub ours: Vec<u8>,
    /// The lines that their change made of them.
    pub theirs: Vec<u8>,
}

/// Merges two changes of `base`, line by line. Changes of the same or of
/// directly adjacent lines conflict unless they came to the same. Binary
/// content (a NUL anywhere) and content too large to diff is never mixed: it
/// conflicts as a whole unless only one side changed it or both are equal.
pub fn merge(base: &[u8], ours: &[u8], theirs: &[u8]) -> Merge {
    if ours == theirs || theirs == base {
        return Merge::Clean(ours.to_vec());
    }
    if ours == base {
        return Merge::Clean(theirs.to_vec());
    }
    match (mixable(base), mixable(ours), mixable(theirs)) {
        (Some(base), Some(ours), Some(theirs)) => merge_lines(&base, &ours, &theirs),
        _ => Merge::Conflict(vec![Conflict {
            line: 1,
            base: base.to_vec(),
            ours: ours.to_vec(),
            theirs: theirs.to_vec(),
        }]),
    }
}

/// The lines of a content that may be mixed with another. Stricter than the
/// comparison: a wrong diff is only seen, a wrong merge is a broken file.
fn mixable(content: &[u8]) -> Option<Vec<&[u8]>> {
    if content.contains(&0) {
        return None;
    }
    split(content)
}

fn merge_lines(base: &[&[u8]], ours: &[&[u8]], theirs: &[&[u8]]) -> Merge {
    let mut merged = Vec::new();
    let mut conflicts = Vec::new();
    let mut done = 0;
    for region in regions(changes(base, ours), changes(base, theirs)) {
        merged.extend(bytes(base, done..region.base.start));
        done = region.base.end;
        match (region.ours, region.theirs) {
            (Some(our), Some(their)) => {
                let our_range = stretched(&our, &region.base);
                let our_bytes = bytes(ours, our_range.clone());
                let their_bytes = bytes(theirs, stretched(&their, &region.base));
                if our_bytes == their_bytes {
                    merged.extend(our_bytes);
                } else {
                    conflicts.push(Conflict {
                        line: our_range.start + 1,
                        base: bytes(base, region.base),
                        ours: our_bytes,
                        theirs: their_bytes,
                    });
                }
            }
            (Some(our), None) => merged.extend(bytes(ours, our.new)),
            (None, Some(their)) => merged.extend(bytes(theirs, their.new)),
            (None, None) => {}
        }
    }
    merged.extend(bytes(base, done..base.len()));
    if conflicts.is_empty() {
        Merge::Clean(merged)
    } else {
        Merge::Conflict(conflicts)
    }
}

/// Who the sides of a conflict are to people.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// Our side.
    pub ours: &'a str,
    /// What both began with.
    pub base: &'a str,
    /// Their side.
    pub theirs: &'a str,
}

/// The whole merge as text, with the places that conflict marked as `diff3` does.
/// `None` where there is nothing to be mixed.
pub fn marked(base: &[u8], ours: &[u8], theirs: &[u8], labels: &Labels<'_>) -> Option<Vec<u8>> {
    let (base, ours, theirs) = (mixable(base)?, mixable(ours)?, mixable(theirs)?);
    let mut text = Vec::new();
    let mut done = 0;
    let side = |text: &mut Vec<u8>, mark: &str, label: &str, lines: &[u8]| {
        text.extend_from_slice(mark.as_bytes());
        if !label.is_empty() {
            text.push(b' ');
            text.extend_from_slice(label.as_bytes());
        }
        text.push(b'\n');
        text.extend_from_slice(lines);
        // A mark begins a line.
        if !lines.is_empty() && !lines.ends_with(b"\n") {
            text.push(b'\n');
        }
    };
    for region in regions(changes(&base, &ours), changes(&base, &theirs)) {
        text.extend(bytes(&base, done..region.base.start));
        done = region.base.end;
        match (region.ours, region.theirs) {
            (Some(our), Some(their)) => {
                let our = bytes(&ours, stretched(&our, &region.base));
                let their = bytes(&theirs, stretched(&their, &region.base));
                if our == their {
                    text.extend(our);
                } else {
                    side(&mut text, "<<<<<<<", labels.ours, &our);
                    side(
                        &mut text,
                        "|||||||",
                        labels.base,
                        &bytes(&base, region.base),
                    );
                    side(&mut text, "=======", "", &their);
                    side(&mut text, ">>>>>>>", labels.theirs, b"");
                }
            }
            (Some(our), None) => text.extend(bytes(&ours, our.new)),
            (None, Some(their)) => text.extend(bytes(&theirs, their.new)),
            (None, None) => {}
        }
    }
    text.extend(bytes(&base, done..base.len()));
    Some(text)
}

/// How many places only one side changed: what is lost when the other side is taken whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Apart {
    /// Our side alone.
    pub ours: usize,
    /// Their side alone.
    pub theirs: usize,
}

/// Counts them. `None` where there is nothing to be mixed.
pub fn apart(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Apart> {
    let (base, ours, theirs) = (mixable(base)?, mixable(ours)?, mixable(theirs)?);
    let mut apart = Apart::default();
    for region in regions(changes(&base, &ours), changes(&base, &theirs)) {
        match (region.ours, region.theirs) {
            (Some(_), None) => apart.ours += 1,
            (None, Some(_)) => apart.theirs += 1,
            _ => {}
        }
    }
    Some(apart)
}

/// Lines of the base that were changed, as far as the changes touch.
struct Region {
    base: Range<usize>,
    /// From our first change in the region to our last.
    ours: Option<Change>,
    /// From their first change in the region to their last.
    theirs: Option<Change>,
}

/// Groups the changes of both sides: those that overlap or lie directly side
/// by side share a region.
fn regions(ours: Vec<Change>, theirs: Vec<Change>) -> Vec<Region> {
    let ours = ours.into_iter().map(|change| Region {
        base: change.old.clone(),
        ours: Some(change),
        theirs: None,
    });
    let theirs = theirs.into_iter().map(|change| Region {
        base: change.old.clone(),
        ours: None,
        theirs: Some(change),
    });
    let mut all: Vec<Region> = ours.chain(theirs).collect();
    all.sort_by_key(|region| region.base.start);

    let mut grouped: Vec<Region> = Vec::new();
    for region in all {
        match grouped.last_mut() {
            Some(last) if region.base.start <= last.base.end => last.absorb(region),
            _ => grouped.push(region),
        }
    }
    grouped
}

impl Region {
    fn absorb(&mut self, other: Region) {
        self.base = hull(&self.base, &other.base);
        self.ours = joined(self.ours.take(), other.ours);
        self.theirs = joined(self.theirs.take(), other.theirs);
    }
}

fn hull(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    min(one.start, other.start)..max(one.end, other.end)
}

fn joined(one: Option<Change>, other: Option<Change>) -> Option<Change> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Change {
            old: hull(&one.old, &other.old),
            new: hull(&one.new, &other.new),
        }),
        (one, other) => one.or(other),
    }
}

/// The lines that a side has in place of `region`. What lies in the region but
/// outside its change is unchanged, so it has the same length on both sides.
fn stretched(change: &Change, region: &Range<usize>) -> Range<usize> {
    let before = change.old.start.saturating_sub(region.start);
    let after = region.end.saturating_sub(change.old.end);
    change.new.start.saturating_sub(before)..change.new.end + after
}

fn bytes(lines: &[&[u8]], range: Range<usize>) -> Vec<u8> {
    lines.get(range).unwrap_or_default().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(base: &str, ours: &str, theirs: &str) -> String {
        match merge(base.as_bytes(), ours.as_bytes(), theirs.as_bytes()) {
            Merge::Clean(merged) => String::from_utf8(merged).unwrap(),
            Merge::Conflict(conflicts) => panic!("{conflicts:?}"),
        }
    }

    fn conflicts(base: &[u8], ours: &[u8], theirs: &[u8]) -> Vec<Conflict> {
        match merge(base, ours, theirs) {
            Merge::Conflict(conflicts) => conflicts,
            Merge::Clean(merged) => panic!("{merged:?}"),
        }
    }

    fn conflict(line: usize, base: &str, ours: &str, theirs: &str) -> Conflict {
        Conflict {
            line,
            base: base.into(),
            ours: ours.into(),
            theirs: theirs.into(),
        }
    }

    #[test]
    fn st_35_changes_apart_are_both_kept() {
        assert_eq!(
            clean("1\n2\n3\n4\n5\n", "0\n1\n2\n3\n4\n5\n", "1\n2\n3\nfour\n"),
            "0\n1\n2\n3\nfour\n"
        );
    }

    #[test]
    fn st_35_equal_changes_are_kept_once() {
        let base = "1\n2\n3\n4\n5\n";
        assert_eq!(
            clean(base, "one\n2\nthree\n4\n5\n", "one\n2\n3\n4\nfive\n"),
            "one\n2\nthree\n4\nfive\n"
        );
    }

    #[test]
    fn st_35_changes_of_one_line_conflict() {
        assert_eq!(
            conflicts(b"1\n2\n3\n", b"0\n1\nours\n3\n", b"1\ntheirs\n3\n"),
            [conflict(3, "2\n", "ours\n", "theirs\n")]
        );
    }

    #[test]
    fn st_35_changes_of_adjacent_lines_conflict() {
        assert_eq!(
            conflicts(b"1\n2\n3\n4\n", b"1\nx\n3\n4\n", b"1\n2\ny\n4\n"),
            [conflict(2, "2\n3\n", "x\n3\n", "2\ny\n")]
        );
        // An insertion has no lines of its own and still lies beside one.
        assert_eq!(
            conflicts(b"1\n2\n3\n", b"1\n2\nnew\n3\n", b"1\nx\n3\n"),
            [conflict(2, "2\n", "2\nnew\n", "x\n")]
        );
    }

    #[test]
    fn st_35_touching_changes_make_one_conflict() {
        assert_eq!(
            conflicts(
                b"1\n2\n3\n4\n5\n6\n7\n",
                b"1\nx\n3\n4\ny\n6\n7\n",
                b"1\n2\nabc\n5\n6\n"
            ),
            [conflict(2, "2\n3\n4\n5\n", "x\n3\n4\ny\n", "2\nabc\n5\n"),]
        );
        assert_eq!(
            conflicts(b"1\n2\n3\n", b"x\n2\ny\n", b"a\n2\nb\n"),
            [
                conflict(1, "1\n", "x\n", "a\n"),
                conflict(3, "3\n", "y\n", "b\n"),
            ]
        );
    }

    #[test]
    fn st_35_a_removal_beside_a_change_conflicts() {
        assert_eq!(
            conflicts(b"1\n2\n", b"", b"1\nx\n"),
            [conflict(1, "1\n2\n", "", "1\nx\n")]
        );
        assert_eq!(
            conflicts(b"", b"a\n", b"b\n"),
            [conflict(1, "", "a\n", "b\n")]
        );
    }

    #[test]
    fn st_35_line_ends_survive() {
        assert_eq!(
            clean("1\r\n2\r\n3\r\n4", "x\r\n2\r\n3\r\n4", "1\r\n2\r\n3\r\ny"),
            "x\r\n2\r\n3\r\ny"
        );
        assert_eq!(clean("1\n2\n3\n", "1\n2\n3", "x\n2\n3\n"), "x\n2\n3");
        // One side ends the last line, the other goes on behind it.
        assert_eq!(
            conflicts(b"1\n2", b"1\n2\n", b"1\n2\n3"),
            [conflict(2, "2", "2\n", "2\n3")]
        );
    }

    #[test]
    fn pr_32_conflicts_are_shown_with_both_sides_and_the_base() {
        let labels = Labels {
            ours: "here",
            base: "before",
            theirs: "the work",
        };
        let text = marked(b"1\n2\n3", b"0\n1\n2\nx", b"1\n2\ny", &labels).unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "0\n1\n2\n<<<<<<< here\nx\n||||||| before\n3\n=======\ny\n>>>>>>> the work\n"
        );
        assert_eq!(marked(b"", b"\0", b"x", &labels), None);
    }

    #[test]
    fn pr_32_places_that_only_one_side_changed_are_counted() {
        let base = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let ours = b"one\n2\n3\n4\nours\n6\n7\n8\nnine\n";
        let theirs = b"1\n2\nthree\n4\ntheirs\n6\n7\n8\n9\n";
        assert_eq!(
            apart(base, ours, theirs),
            Some(Apart { ours: 2, theirs: 1 })
        );
        assert_eq!(apart(base, base, base), Some(Apart::default()));
        assert_eq!(apart(b"", b"\0", b"x"), None);
    }

    #[test]
    fn st_35_invalid_text_survives() {
        assert_eq!(
            merge(b"\xFF\n2\n3\n", b"\xFF\n2\n\xC3\n", b"\xFE\n2\n3\n"),
            Merge::Clean(b"\xFE\n2\n\xC3\n".to_vec())
        );
    }

    #[test]
    fn st_35_binary_content_is_never_mixed() {
        let (base, ours, theirs) = (b"1\n2\n3\n\0", b"x\n2\n3\n\0", b"1\n2\ny\n\0");
        assert_eq!(
            conflicts(base, ours, theirs),
            [Conflict {
                line: 1,
                base: base.to_vec(),
                ours: ours.to_vec(),
                theirs: theirs.to_vec(),
            }]
        );
        assert_eq!(merge(base, ours, base), Merge::Clean(ours.to_vec()));
        assert_eq!(merge(base, base, theirs), Merge::Clean(theirs.to_vec()));
        assert_eq!(merge(base, ours, ours), Merge::Clean(ours.to_vec()));
    }
}
