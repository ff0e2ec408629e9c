//! Replacing text that is given word for word.
//!
//! Every change names the text that is there now. It has to be found exactly,
//! and once: an edit made for another version of the file is refused instead
//! of landing somewhere.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use crate::edit::EditError;
use crate::edit::error::MOST_NUMBERS;
use crate::edit::lines::{
    BYTE_ORDER_MARK, LineEnds, Lines, MOST_BYTES, as_text, check_limit, with_crlf,
};
use crate::edit::nearest::nearest;

/// How many bytes are searched for all changes together: each of them reads
/// the file once.
const MOST_SEARCHED: usize = 2 << 30;

/// One text for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The line of the original, from 1, in which `old` begins.
    pub line: Option<usize>,
    /// The text that is there.
    pub old: String,
    /// The text that takes its place.
    pub new: String,
    /// Whether every occurrence is meant; otherwise there must be exactly one.
    pub all: bool,
}

/// The content after the changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The new content.
    pub bytes: Vec<u8>,
    /// For each change, in the order in which they were given, the first line
    /// of the new content that it touched.
    pub lines: Vec<usize>,
}

/// A place in the original that a change replaces.
struct Found {
    range: Range<usize>,
    change: usize,
}

/// Makes all the changes, or none. Each of them is looked up in the original
/// content, and no two may touch the same text.
pub fn replace(content: &[u8], changes: &[Replacement]) -> Result<Replaced, EditError> {
    let text = as_text(content)?;
    let searched = content.len().saturating_mul(changes.len());
    check_limit(
        "the search for all changes",
        searched,
        MOST_SEARCHED,
        "bytes",
    )?;
    let lines = Lines::of(content);
    // Whoever writes `old` and `new` seldom sees which line ends a file has. In
    // a file that has CRLF throughout, LF can only have meant CRLF.
    let crlf = LineEnds::of(content) == LineEnds::CrLf;
    let adapted = |input| match crlf {
        true => Cow::Owned(with_crlf(input)),
        false => Cow::Borrowed(input),
    };
    let mut found = Vec::new();
    let mut new = Vec::with_capacity(changes.len());
    for (number, change) in changes.iter().enumerate() {
        let search = Search {
            text,
            lines: &lines,
            change: number,
            line: change.line,
        };
        let ranges = search.find(&adapted(&change.old), change.all)?;
        let place = |range| Found {
            range,
            change: number,
        };
        found.extend(ranges.into_iter().map(place));
        new.push(adapted(&change.new));
    }
    found.sort_by_key(|found| (found.range.start, found.range.end));
    refuse_overlap(&found, &lines)?;
    put_together(content, &found, &new)
}

fn refuse_overlap(found: &[Found], lines: &Lines) -> Result<(), EditError> {
    for pair in found.windows(2) {
        // Only an empty file has empty ranges, and room for one of them.
        if let [one, next] = pair
            && (next.range.start < one.range.end || next.range == one.range)
        {
            return Err(EditError::Overlap {
                first: one.change.min(next.change) + 1,
                second: one.change.max(next.change) + 1,
                line: lines.number(next.range.start),
            });
        }
    }
    Ok(())
}

fn put_together(
    content: &[u8],
    found: &[Found],
    new: &[Cow<'_, str>],
) -> Result<Replaced, EditError> {
    let mut size = content.len();
    for Found { range, change } in found {
        let added = new.get(*change).map_or(0, |new| new.len());
        size = size.saturating_add(added).saturating_sub(range.len());
    }
    check_limit("the result", size, MOST_BYTES, "bytes")?;

    let mut bytes = Vec::with_capacity(size);
    let mut starts = vec![None; new.len()];
    let mut done = 0;
    for Found { range, change } in found {
        bytes.extend_from_slice(content.get(done..range.start).unwrap_or_default());
        if let Some(start) = starts.get_mut(*change) {
            start.get_or_insert(bytes.len());
        }
        if let Some(new) = new.get(*change) {
            bytes.extend_from_slice(new.as_bytes());
        }
        done = range.end;
    }
    bytes.extend_from_slice(content.get(done..).unwrap_or_default());
    let lines = Lines::of(&bytes);
    let lines = starts
        .into_iter()
        .map(|start| lines.number(start.unwrap_or(0)))
        .collect();
    Ok(Replaced { bytes, lines })
}

/// Looking for the text of one change.
struct Search<'a> {
    text: &'a str,
    lines: &'a Lines,
    change: usize,
    line: Option<usize>,
}

impl Search<'_> {
    /// Where `old` is: all the places, or the only one.
    fn find(&self, old: &str, all: bool) -> Result<Vec<Range<usize>>, EditError> {
        let change = self.change + 1;
        let content = self.text.strip_prefix(BYTE_ORDER_MARK);
        let content = content.unwrap_or(self.text);
        if old.is_empty() {
            // The only text that an empty file has.
            let end = self.text.len();
            return match (content, self.line) {
                ("", None | Some(1)) => Ok(iter::once(end..end).collect()),
                _ => Err(EditError::EmptyOld { change }),
            };
        }
        let window = self.window(old)?;
        let mut places = self.places(old, &window, all);
        match places.as_slice() {
            [] => Err(self.not_found(old)),
            [_] => Ok(places),
            [_, ..] if all => Ok(places),
            [_, ..] => {
                let count = self.places(old, &window, true).len();
                // Those that overlap count as well: each of them could be meant.
                places.truncate(MOST_NUMBERS + 1);
                Err(EditError::Several {
                    change,
                    line: self.line,
                    count: count.max(places.len()),
                    lines: self.numbers(&places),
                })
            }
        }
    }

    /// Where an occurrence may begin.
    fn window(&self, old: &str) -> Result<Range<usize>, EditError> {
        let Some(line) = self.line else {
            return Ok(0..self.text.len().saturating_sub(old.len()) + 1);
        };
        self.lines
            .range(line)
            .ok_or_else(|| EditError::LineOutOfRange {
                change: self.change + 1,
                line,
                lines: self.lines.count(),
            })
    }

    /// The occurrences that begin in `window`: with `apart` all that do not
    /// overlap, otherwise the first few of all.
    fn places(&self, old: &str, window: &Range<usize>, apart: bool) -> Vec<Range<usize>> {
        let mut places = Vec::new();
        let mut end = window.end.saturating_add(old.len());
        end = end.min(self.text.len());
        while !self.text.is_char_boundary(end) {
            end += 1;
        }
        if apart {
            let part = self.text.get(window.start..end).unwrap_or_default();
            let starts = part
                .match_indices(old)
                .map(|(start, _)| window.start + start);
            let starts = starts.filter(|start| *start < window.end);
            places.extend(starts.map(|start| start..start + old.len()));
            return places;
        }
        let step = old.chars().next().map_or(1, char::len_utf8);
        let mut from = window.start;
        while let Some(start) = self.text.get(from..end).and_then(|part| part.find(old)) {
            let start = from + start;
            if start >= window.end || places.len() > MOST_NUMBERS {
                break;
            }
            places.push(start..start + old.len());
            from = start + step;
        }
        places
    }

    fn not_found(&self, old: &str) -> EditError {
        let elsewhere = match self.line {
            Some(_) => self.places(old, &(0..self.text.len()), false),
            None => Vec::new(),
        };
        EditError::NotFound {
            change: self.change + 1,
            line: self.line,
            nearest: match elsewhere.is_empty() {
                true => nearest(self.text, self.lines, old),
                false => None,
            },
            elsewhere: self.numbers(&elsewhere),
        }
    }

    fn numbers(&self, places: &[Range<usize>]) -> Vec<usize> {
        let mut numbers: Vec<usize> = places
            .iter()
            .map(|place| self.lines.number(place.start))
            .collect();
        numbers.dedup();
        numbers
    }
}
