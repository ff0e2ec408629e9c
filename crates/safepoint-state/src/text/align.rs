//! Which lines of two contents belong together.
//!
//! The histogram algorithm reads best, but its cost grows with the square of
//! the number of changes: a table with every second row changed would take
//! minutes. Large differences are therefore first cut at lines that occur once
//! on each side, as the patience algorithm does, and the histogram only sees
//! the pieces.

use std::ops::Range;

use imara_diff::{Algorithm, Diff, InternedInput, Token};

/// So many lines of both sides together take the histogram about ten
/// milliseconds at worst.
const MOST_LINES_AT_ONCE: usize = 5_000;

/// Lines of the old content that were replaced by lines of the new one. Two
/// changes of one list have at least one unchanged line between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) old: Range<usize>,
    pub(super) new: Range<usize>,
}

impl Change {
    fn moved_by(self, old: usize, new: usize) -> Self {
        Self {
            old: self.old.start + old..self.old.end + old,
            new: self.new.start + new..self.new.end + new,
        }
    }
}

/// What turns `old` into `new`, in order.
pub(super) fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<Change> {
    let prefix = same_lines(old.iter().zip(new));
    let (_, old_rest) = old.split_at_checked(prefix).unwrap_or_default();
    let (_, new_rest) = new.split_at_checked(prefix).unwrap_or_default();
    let suffix = same_lines(old_rest.iter().rev().zip(new_rest.iter().rev()));
    if old_rest.len() + new_rest.len() - 2 * suffix <= MOST_LINES_AT_ONCE {
        // With the equal ends: the placing of hunks looks at their surroundings.
        return histogram(old, new);
    }
    let middle = Change {
        old: prefix..old.len() - suffix,
        new: prefix..new.len() - suffix,
    };
    let mut found = Vec::new();
    let (mut old_done, mut new_done) = (prefix, prefix);
    for (old_anchor, new_anchor) in anchors(old, new, &middle) {
        let gap = Change {
            old: old_done..old_anchor,
            new: new_done..new_anchor,
        };
        found.extend(changes_in(old, new, gap));
        (old_done, new_done) = (old_anchor + 1, new_anchor + 1);
    }
    let gap = Change {
        old: old_done..middle.old.end,
        new: new_done..middle.new.end,
    };
    found.extend(changes_in(old, new, gap));
    found
}

fn same_lines<'a>(pairs: impl Iterator<Item = (&'a &'a [u8], &'a &'a [u8])>) -> usize {
    pairs.take_while(|(old, new)| old == new).count()
}

/// The changes inside one gap between anchors.
fn changes_in(old: &[&[u8]], new: &[&[u8]], gap: Change) -> Vec<Change> {
    if gap.old.is_empty() && gap.new.is_empty() {
        return Vec::new();
    }
    // Nothing to align, or too much of it and without a single line to hold on to.
    let lines = gap.old.len() + gap.new.len();
    if gap.old.is_empty() || gap.new.is_empty() || lines > MOST_LINES_AT_ONCE {
        return vec![gap];
    }
    let old = old.get(gap.old.clone()).unwrap_or_default();
    let new = new.get(gap.new.clone()).unwrap_or_default();
    histogram(old, new)
        .into_iter()
        .map(|change| change.moved_by(gap.old.start, gap.new.start))
        .collect()
}

fn histogram(old: &[&[u8]], new: &[&[u8]]) -> Vec<Change> {
    let input = interned(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    diff.hunks()
        .map(|hunk| Change {
            old: hunk.before.start as usize..hunk.before.end as usize,
            new: hunk.after.start as usize..hunk.after.end as usize,
        })
        .collect()
}

fn interned<'a>(old: &[&'a [u8]], new: &[&'a [u8]]) -> InternedInput<&'a [u8]> {
    // Not `InternedInput::new`: it reserves by the length of the first lines,
    // which is far too much when a content begins with empty ones.
    let mut input = InternedInput::default();
    input.update_before(old.iter().copied());
    input.update_after(new.iter().copied());
    input
}

/// Pairs of lines in `middle` that occur once on each side, as many as keep
/// their order.
fn anchors(old: &[&[u8]], new: &[&[u8]], middle: &Change) -> Vec<(usize, usize)> {
    let input = interned(
        old.get(middle.old.clone()).unwrap_or_default(),
        new.get(middle.new.clone()).unwrap_or_default(),
    );
    let tokens = input.interner.num_tokens() as usize;
    let old_places = single_places(&input.before, tokens);
    let new_places = single_places(&input.after, tokens);
    let mut pairs: Vec<(usize, usize)> = old_places
        .into_iter()
        .zip(new_places)
        .filter_map(|(old, new)| Some((old? + middle.old.start, new? + middle.new.start)))
        .collect();
    pairs.sort_unstable();
    longest_rise(&pairs)
}

/// For each token the place of its only occurrence.
fn single_places(content: &[Token], tokens: usize) -> Vec<Option<usize>> {
    let mut occurrences = vec![0_usize; tokens];
    let mut places = vec![None; tokens];
    for (place, token) in content.iter().enumerate() {
        let token = token.0 as usize;
        if let (Some(count), Some(slot)) = (occurrences.get_mut(token), places.get_mut(token)) {
            *count += 1;
            *slot = (*count == 1).then_some(place);
        }
    }
    places
}

/// The longest part of `pairs`, which rise on their first side, that also
/// rises on the second.
fn longest_rise(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // tails[n]: the index of the pair that ends the best rise of n + 1 pairs.
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (index, (_, new)) in pairs.iter().enumerate() {
        let length =
            tails.partition_point(|tail| pairs.get(*tail).is_some_and(|(_, other)| other < new));
        before.push(
            length
                .checked_sub(1)
                .and_then(|shorter| tails.get(shorter))
                .copied(),
        );
        match tails.get_mut(length) {
            Some(tail) => *tail = index,
            None => tails.push(index),
        }
    }
    let indices = std::iter::successors(tails.last().copied(), |index| {
        before.get(*index).copied().flatten()
    });
    let mut rise: Vec<(usize, usize)> = indices
        .filter_map(|index| pairs.get(index).copied())
        .collect();
    rise.reverse();
    rise
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_longest_rise_is_found() {
        let pairs = [(0, 7), (1, 2), (2, 8), (3, 3), (4, 9), (5, 4)];
        assert_eq!(longest_rise(&pairs), [(1, 2), (3, 3), (5, 4)]);
        assert_eq!(longest_rise(&[]), []);
    }

    /// Small alphabets make the many equal lines on which alignment is hard.
    fn letters(most: usize) -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop::sample::select(b"ab cd\t}\n".as_slice()), 0..most)
    }

    fn singles(letters: &[u8]) -> Vec<&[u8]> {
        letters.chunks(1).collect()
    }

    /// Checks the promise of [`Change`]: equal lines between the changes, at
    /// least one, and nothing left over.
    fn holds(old: &[&[u8]], new: &[&[u8]], changes: &[Change]) {
        let (mut old_done, mut new_done) = (0, 0);
        for (index, change) in changes.iter().enumerate() {
            assert_eq!(
                old[old_done..change.old.start],
                new[new_done..change.new.start]
            );
            assert!(index == 0 || change.old.start > old_done);
            assert!(!change.old.is_empty() || !change.new.is_empty());
            (old_done, new_done) = (change.old.end, change.new.end);
        }
        assert_eq!(old[old_done..], new[new_done..]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn unchanged_lines_are_equal(old in letters(40), new in letters(40)) {
            let (old, new) = (singles(&old), singles(&new));
            holds(&old, &new, &changes(&old, &new));
        }
    }

    /// Rows of which those at `changed` differ from the other side's.
    fn rows(count: usize, side: &str, changed: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
        (0..count)
            .map(|row| match changed(row) {
                true => format!("{row} {side}\n").into_bytes(),
                false => format!("{row}\n").into_bytes(),
            })
            .collect()
    }

    fn slices(lines: &[Vec<u8>]) -> Vec<&[u8]> {
        lines.iter().map(Vec::as_slice).collect()
    }

    #[test]
    fn every_second_of_many_lines_is_found() {
        let old = rows(200_000, "old", |row| row % 2 == 1);
        let new = rows(200_000, "new", |row| row % 2 == 1);
        let (old, new) = (slices(&old), slices(&new));
        let found = changes(&old, &new);
        holds(&old, &new, &found);
        assert_eq!(found.len(), 100_000);
    }

    #[test]
    fn a_large_moved_block_leaves_the_rest_aligned() {
        let old = rows(30_000, "", |_| false);
        let mut new = old.clone();
        new.rotate_left(10_000);
        let (old, new) = (slices(&old), slices(&new));
        let found = changes(&old, &new);
        holds(&old, &new, &found);
        assert_eq!(
            found,
            [
                Change {
                    old: 0..10_000,
                    new: 0..0
                },
                Change {
                    old: 30_000..30_000,
                    new: 20_000..30_000
                },
            ]
        );
    }

    #[test]
    fn many_lines_of_few_kinds_end_in_time() {
        let old: Vec<&[u8]> = (0..100_000_u32)
            .map(|row| {
                if row % 3 == 0 {
                    b"0\n".as_slice()
                } else {
                    b"1\n"
                }
            })
            .collect();
        let new: Vec<&[u8]> = (0..100_000_u32)
            .map(|row| {
                if row % 5 == 0 {
                    b"0\n".as_slice()
                } else {
                    b"1\n"
                }
            })
            .collect();
        holds(&old, &new, &changes(&old, &new));
    }
}
