//! Applying the hunks of a patch to a content.

use super::FilePatch;
use super::place::Target;
use crate::edit::EditError;
use crate::edit::error::{Difference, HunkDifference, MOST_NUMBERS};
use crate::edit::lines::{LineEnds, check_size, shown};
use crate::text::{Hunk, Line, Side};

/// A content after a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The new content; nothing when the file is deleted.
    pub bytes: Option<Vec<u8>>,
    /// The hunks that stood elsewhere than they say.
    pub moved: Vec<Moved>,
    /// Whether the patch had LF where the file has CRLF throughout. Its lines
    /// were then matched and written with CRLF.
    pub line_ends_adapted: bool,
}

/// A hunk that stood elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Which, from 1.
    pub hunk: usize,
    /// The line of the original where it says it stands.
    pub stated: usize,
    /// The line where it was found.
    pub found: usize,
}

/// Applies what `patch` does to one file to its content, which is nothing when
/// there is no file: all of it, or nothing.
pub fn apply(content: Option<&[u8]>, patch: &FilePatch) -> Result<Applied, EditError> {
    if patch.creates() {
        let applied = apply_hunks(b"", &patch.hunks)?;
        return match content {
            None => Ok(applied),
            Some(content) if applied.bytes.as_deref() == Some(content) => {
                Err(EditError::AlreadyApplied)
            }
            Some(_) => Err(EditError::FileExists),
        };
    }
    let Some(content) = content else {
        return Err(match patch.deletes() {
            true => EditError::AlreadyApplied,
            false => EditError::NoFile,
        });
    };
    check_size("the file", content)?;
    let mut applied = apply_hunks(content, &patch.hunks)?;
    if patch.deletes() {
        if applied.bytes.is_some_and(|bytes| !bytes.is_empty()) {
            return Err(EditError::NotAllDeleted);
        }
        applied.bytes = None;
    }
    Ok(applied)
}

fn apply_hunks(content: &[u8], hunks: &[Hunk]) -> Result<Applied, EditError> {
    let exact = place_all(content, hunks);
    let Err(EditError::HunkNotFound { .. }) = exact else {
        return exact;
    };
    // As with replacements: in a file that has CRLF throughout, a patch that
    // has none can only have lost it.
    let lines = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let returns = lines().any(|line| line.text.contains(&b'\r'));
    if returns || LineEnds::of(content) != LineEnds::CrLf {
        return exact;
    }
    let adapted: Vec<Hunk> = hunks.iter().map(with_crlf).collect();
    let mut applied = place_all(content, &adapted)?;
    applied.line_ends_adapted = true;
    Ok(applied)
}

fn with_crlf(hunk: &Hunk) -> Hunk {
    let mut hunk = hunk.clone();
    for line in &mut hunk.lines {
        if line.text.pop_if(|byte| *byte == b'\n').is_some() {
            line.text.extend_from_slice(b"\r\n");
        }
    }
    hunk
}

/// One side of a hunk.
fn side(hunk: &Hunk, left_out: Side) -> Vec<&[u8]> {
    let in_it = |line: &&Line| line.side != left_out;
    let lines = hunk.lines.iter().filter(in_it);
    lines.map(|line| line.text.as_slice()).collect()
}

/// The place, from 0, that a hunk names by the first line and the number of
/// lines of one side. Without a line it names the one before.
fn stated(start: usize, lines: usize) -> usize {
    match lines {
        0 => start,
        _ => start.saturating_sub(1),
    }
}

/// What became of a hunk.
enum Fate {
    /// It goes here.
    At(usize),
    /// What it does is done.
    Done,
}

fn place_all(content: &[u8], hunks: &[Hunk]) -> Result<Applied, EditError> {
    let mut target = Target::new(content);
    let mut fates = Vec::with_capacity(hunks.len());
    let mut moved = Vec::new();
    let mut search = Search {
        target: &mut target,
        free: 0,
        stated_free: 0,
        shift: 0,
    };
    for (number, hunk) in hunks.iter().enumerate() {
        let fate = search.place(number + 1, hunk)?;
        let from = stated(hunk.old_start, hunk.old_lines);
        if let Fate::At(place) = fate
            && place != from
        {
            let add = usize::from(hunk.old_lines > 0);
            moved.push(Moved {
                hunk: number + 1,
                stated: from + add,
                found: place + add,
            });
        }
        fates.push(fate);
    }
    refuse_done(&fates)?;
    Ok(Applied {
        bytes: Some(put_together(&target, hunks, &fates)?),
        moved,
        line_ends_adapted: false,
    })
}

fn refuse_done(fates: &[Fate]) -> Result<(), EditError> {
    let numbered = |wanted: fn(&Fate) -> bool| -> Vec<usize> {
        let fates = fates.iter().enumerate();
        let fates = fates.filter(|(_, fate)| wanted(fate));
        fates.map(|(number, _)| number + 1).collect()
    };
    let applied = numbered(|fate| matches!(fate, Fate::Done));
    let missing = numbered(|fate| matches!(fate, Fate::At(_)));
    match (applied.is_empty(), missing.is_empty()) {
        (true, _) => Ok(()),
        (false, true) => Err(EditError::AlreadyApplied),
        (false, false) => Err(EditError::PartlyApplied { applied, missing }),
    }
}

/// Looking for the hunks of a patch, one after the other.
struct Search<'a, 'b> {
    target: &'a mut Target<'b>,
    /// The first line of the file that no hunk has taken.
    free: usize,
    /// The same as the headers of the hunks have it.
    stated_free: usize,
    /// How far the last hunk was from where it should be.
    shift: isize,
}

impl Search<'_, '_> {
    fn place(&mut self, number: usize, hunk: &Hunk) -> Result<Fate, EditError> {
        let (old, new) = (side(hunk, Side::Added), side(hunk, Side::Removed));
        if (old.len(), new.len()) != (hunk.old_lines, hunk.new_lines) {
            return Err(EditError::BadHunk {
                hunk: number,
                why: "it has not as many lines as it says",
            });
        }
        let from = stated(hunk.old_start, hunk.old_lines);
        if from < self.stated_free {
            return Err(EditError::HunkOrder {
                hunk: number,
                line: hunk.old_start,
            });
        }
        self.stated_free = from.saturating_add(old.len());

        let wanted = self.target.numbers(&old);
        let shifted = from.checked_add_signed(self.shift);
        let mut places: Vec<usize> = [shifted, Some(from)].into_iter().flatten().collect();
        places.dedup();
        if let Some(wanted) = &wanted {
            places.retain(|place| *place >= self.free && self.target.has(wanted, *place));
        } else {
            places.clear();
        }
        if places.is_empty() {
            if self.is_done(hunk, &new) {
                return Ok(Fate::Done);
            }
            // Without a line to hold on to, no other place is better.
            if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
                places = self.target.find(&wanted, MOST_NUMBERS)?;
            }
            if places.is_empty() && self.is_done_elsewhere(&new)? {
                return Ok(Fate::Done);
            }
        }
        match places.as_slice() {
            [place] if *place >= self.free => {
                self.free = place + old.len();
                self.shift = place.cast_signed().saturating_sub(from.cast_signed());
                Ok(Fate::At(*place))
            }
            [_, _, ..] => Err(EditError::HunkSeveral {
                hunk: number,
                line: hunk.old_start,
                lines: places.iter().map(|place| place + 1).collect(),
            }),
            _ => Err(EditError::HunkNotFound {
                hunk: number,
                line: hunk.old_start,
                difference: self.difference(&old, from),
            }),
        }
    }

    /// Whether the new side stands where it would be put.
    fn is_done(&self, hunk: &Hunk, new: &[&[u8]]) -> bool {
        let Some(wanted) = self.target.numbers(new).filter(|new| !new.is_empty()) else {
            return false;
        };
        let from = stated(hunk.old_start, hunk.old_lines);
        let to = stated(hunk.new_start, hunk.new_lines);
        let shifted = from.checked_add_signed(self.shift);
        let places = [Some(to), shifted].into_iter().flatten();
        let mut places = places.filter(|place| *place >= self.free);
        places.any(|place| self.target.has(&wanted, place))
    }

    /// Whether the new side stands in one other place.
    fn is_done_elsewhere(&mut self, new: &[&[u8]]) -> Result<bool, EditError> {
        let Some(wanted) = self.target.numbers(new).filter(|new| !new.is_empty()) else {
            return Ok(false);
        };
        Ok(self.target.find(&wanted, 2)?.len() == 1)
    }

    /// The first line that is not what the hunk wants at its own place.
    fn difference(&self, old: &[&[u8]], place: usize) -> Option<HunkDifference> {
        for (ahead, expected) in old.iter().enumerate() {
            let found = self.target.lines().get(place.saturating_add(ahead));
            if found == Some(expected) {
                continue;
            }
            let kept = |line: &[u8], left_out: fn(u8) -> bool| -> Vec<u8> {
                line.iter().copied().filter(|b| !left_out(*b)).collect()
            };
            let alike = |left_out: fn(u8) -> bool| {
                found.is_some_and(|found| kept(found, left_out) == kept(expected, left_out))
            };
            let difference = if alike(|byte| matches!(byte, b'\r' | b'\n')) {
                Difference::LineEnds
            } else if alike(|byte| byte.is_ascii_whitespace()) {
                Difference::WhiteSpace
            } else {
                Difference::Words
            };
            return Some(HunkDifference {
                line: place.saturating_add(ahead + 1),
                expected: shown(expected),
                found: found.map(|found| shown(found)),
                difference,
            });
        }
        None
    }
}

fn put_together(target: &Target<'_>, hunks: &[Hunk], fates: &[Fate]) -> Result<Vec<u8>, EditError> {
    let mut bytes = Vec::new();
    let mut done = 0;
    for (number, (hunk, fate)) in hunks.iter().zip(fates).enumerate() {
        let Fate::At(place) = *fate else {
            continue;
        };
        let between = target.lines().get(done..place).unwrap_or_default();
        between
            .iter()
            .for_each(|line| bytes.extend_from_slice(line));
        for line in hunk.lines.iter().filter(|line| line.side != Side::Removed) {
            refuse_joint(&bytes, number)?;
            bytes.extend_from_slice(&line.text);
        }
        done = place + hunk.old_lines;
        if done < target.lines().len() {
            refuse_joint(&bytes, number)?;
        }
    }
    let rest = target.lines().get(done..).unwrap_or_default();
    rest.iter().for_each(|line| bytes.extend_from_slice(line));
    Ok(bytes)
}

/// Only the last line of a file may lack its end.
fn refuse_joint(before: &[u8], hunk: usize) -> Result<(), EditError> {
    if before.last().is_none_or(|byte| *byte == b'\n') {
        return Ok(());
    }
    Err(EditError::BadHunk {
        hunk: hunk + 1,
        why: "it takes the line end from a line that is not the last of the file",
    })
}
