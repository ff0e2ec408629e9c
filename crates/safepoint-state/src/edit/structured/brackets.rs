//! Adding and removing entries between brackets: JSON, and YAML in its flow
//! style.
//!
//! White space and comments belong to the entry that they stand before, or
//! behind on the same line. They go with it, and everything else stays.

use std::ops::Range;

use super::splice::Splices;
use super::tree::NodeId;
use crate::edit::lines::Lines;

/// A list or mapping in brackets.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    /// Where the opening bracket stands.
    pub(super) open: usize,
    /// Where the closing bracket stands.
    pub(super) close: usize,
    pub(super) entries: Vec<Entry>,
}

/// One entry of it.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Where the key begins, or the value in a list.
    pub(super) start: usize,
    /// Where the value may begin: behind the colon.
    pub(super) head: usize,
    /// Where the value ends.
    pub(super) end: usize,
    /// Where the comma behind it stands.
    pub(super) comma: Option<usize>,
    pub(super) value: NodeId,
}

/// The text with what has to be known about it.
pub(super) struct Page<'a> {
    pub(super) text: &'a str,
    pub(super) lines: &'a Lines,
    /// How the file ends its lines.
    pub(super) newline: &'static str,
    /// Whether `/*` begins a comment that may have several lines.
    pub(super) block_comments: bool,
}

/// How a file lays out what it has between brackets.
pub(super) struct Usual<'a> {
    /// Whether each entry stands on a line of its own.
    pub(super) by_line: bool,
    /// One step of indentation.
    pub(super) unit: &'a str,
    /// The white space between entries on one line.
    pub(super) gap: &'a str,
}

/// How entries are laid out.
#[derive(Debug)]
pub(super) struct Layout {
    /// Whether each stands on a line of its own.
    pub(super) by_line: bool,
    /// The white space at the beginning of their lines.
    pub(super) indent: String,
    /// The white space between entries on one line.
    gap: String,
    /// The white space between the opening bracket and an entry on its line.
    pad: String,
}

/// What stands between the brackets afterwards.
pub(super) enum Piece {
    /// An entry that was there.
    Kept(usize),
    /// Another one: what stands before it, if that is settled, what it is, and
    /// what stands behind its comma.
    New {
        lead: Option<String>,
        text: String,
        tail: String,
    },
}

/// What belongs to an entry: before it, and behind its comma on the same line.
#[derive(Debug)]
struct Chunk {
    lead: Range<usize>,
    tail: Range<usize>,
}

impl<'a> Page<'a> {
    pub(super) fn slice(&self, range: Range<usize>) -> &'a str {
        self.text.get(range).unwrap_or_default()
    }

    /// Where the line after the one with `offset` begins.
    pub(super) fn next_line(&self, offset: usize) -> usize {
        let line = self.lines.range(self.lines.number(offset));
        line.map_or(offset, |line| line.end.max(offset))
    }

    /// Where the line with `offset` ends, before its line end.
    pub(super) fn line_end(&self, offset: usize) -> usize {
        let rest = self.slice(offset..self.next_line(offset));
        let line = rest.strip_suffix('\n').unwrap_or(rest);
        offset + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// The white space at the beginning of the line in which `offset` lies.
    pub(super) fn indent_at(&self, offset: usize) -> &'a str {
        let line = self.slice(self.lines.start(offset)..offset);
        let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
        line.get(..blank).unwrap_or_default()
    }

    /// Where the first line ends in a part that has only white space and
    /// comments. A comment is never cut.
    fn first_line_end(&self, part: &str) -> Option<usize> {
        let mut from = 0;
        loop {
            let rest = part.get(from..)?;
            let newline = rest.find('\n')?;
            let newline = match rest.get(..newline)?.strip_suffix('\r') {
                Some(line) => line.len(),
                None => newline,
            };
            let line = rest.get(..newline)?;
            let remark = line.find("//").unwrap_or(line.len());
            match line
                .find("/*")
                .filter(|start| self.block_comments && *start < remark)
            {
                Some(start) => {
                    let inside = rest.get(start + 2..)?;
                    from += start + 2 + inside.find("*/")? + 2;
                }
                None => return Some(from + newline),
            }
        }
    }

    /// Whether a part begins with the end of a line.
    fn breaks(&self, part: Range<usize>) -> bool {
        breaks(self.slice(part))
    }

    /// The part behind a bracket or a comma that belongs to what stands before.
    fn tail(&self, gap: Range<usize>, last: bool) -> Range<usize> {
        let part = self.slice(gap.clone());
        let length = match self.first_line_end(part) {
            Some(end) => end,
            None if last => part.trim_end().len(),
            None => 0,
        };
        gap.start..gap.start + length
    }

    /// Where what belongs to the opening bracket ends.
    fn opening(&self, brackets: &Brackets) -> usize {
        let first = brackets.entries.first();
        let first = first.map_or(brackets.close, |entry| entry.start);
        self.tail(brackets.open + 1..first, false).end
    }

    /// What belongs to an entry behind its comma.
    fn tail_of(&self, brackets: &Brackets, number: usize) -> Option<Range<usize>> {
        let entry = brackets.entries.get(number)?;
        let next = brackets.entries.get(number + 1).map(|next| next.start);
        let after = entry.comma.map_or(entry.end, |comma| comma + 1);
        Some(self.tail(after..next.unwrap_or(brackets.close), next.is_none()))
    }

    fn chunk(&self, brackets: &Brackets, number: usize) -> Option<Chunk> {
        let before = number.checked_sub(1);
        let before = before.and_then(|before| self.tail_of(brackets, before));
        let start = before.map_or_else(|| self.opening(brackets), |before| before.end);
        Some(Chunk {
            lead: start..brackets.entries.get(number)?.start,
            tail: self.tail_of(brackets, number)?,
        })
    }

    fn chunks(&self, brackets: &Brackets) -> Vec<Chunk> {
        let numbers = 0..brackets.entries.len();
        numbers
            .filter_map(|number| self.chunk(brackets, number))
            .collect()
    }

    /// What stands before and behind an entry, when there are comments in it.
    pub(super) fn comments(&self, brackets: &Brackets, entry: usize) -> (&'a str, &'a str) {
        let Some(chunk) = self.chunk(brackets, entry) else {
            return ("", "");
        };
        let kept = self.kept(chunk.lead.clone());
        let lead = self.slice(chunk.lead.start + kept..chunk.lead.end);
        let tail = self.slice(chunk.tail.clone());
        let told = |part: &'a str| if part.trim().is_empty() { "" } else { part };
        (told(lead), told(tail))
    }

    /// How the entries between some brackets are laid out; `usual` is what the
    /// file does elsewhere.
    pub(super) fn layout(&self, brackets: &Brackets, usual: &Usual<'_>) -> Layout {
        let chunks = self.chunks(brackets);
        let lead = |place: usize| {
            chunks
                .get(place)
                .map(|chunk| self.slice(chunk.lead.clone()))
        };
        let blank = |part: Option<&'a str>| part.filter(|part| part.trim().is_empty());
        let inline = |part: Option<&'a str>| blank(part).filter(|part| !part.contains('\n'));
        let base = self.indent_at(brackets.open);
        let Some(first) = lead(0) else {
            return Layout {
                by_line: usual.by_line,
                indent: format!("{base}{}", usual.unit),
                gap: usual.gap.to_owned(),
                pad: String::new(),
            };
        };
        let by_line = chunks
            .iter()
            .all(|chunk| self.slice(chunk.lead.clone()).contains('\n'));
        Layout {
            by_line,
            indent: match first.rfind('\n') {
                Some(end) => {
                    let line = first.get(end + 1..).unwrap_or_default();
                    let blank = line.len() - line.trim_start_matches([' ', '\t']).len();
                    line.get(..blank).unwrap_or_default().to_owned()
                }
                None => base.to_owned(),
            },
            gap: inline(lead(1)).unwrap_or(usual.gap).to_owned(),
            pad: inline(lead(0)).unwrap_or_default().to_owned(),
        }
    }

    /// How much of what stands before an entry stays when the entry goes:
    /// comments with an empty line between them and the entry.
    fn kept(&self, lead: Range<usize>) -> usize {
        let lead = self.slice(lead);
        if lead.contains("/*") && self.block_comments {
            return 0;
        }
        let mut end = 0;
        let mut kept = 0;
        for line in lead.split_inclusive('\n') {
            let blank = line.trim().is_empty();
            if blank && end > 0 && line.ends_with('\n') {
                kept = end;
            }
            end += line.len();
        }
        match lead.get(..kept) {
            Some(part) if !part.trim().is_empty() => part.trim_end_matches(['\r', '\n']).len(),
            _ => 0,
        }
    }

    /// Turns what stands between the brackets into `pieces`.
    pub(super) fn rebuild(
        &self,
        brackets: &Brackets,
        layout: &Layout,
        pieces: Vec<Piece>,
        splices: &mut Splices,
    ) {
        let inside = brackets.open + 1..brackets.close;
        if brackets.entries.is_empty() {
            splices.replace(inside.clone(), self.filled(brackets, layout, pieces));
            return;
        }
        let (opening, chunks) = (self.opening(brackets), self.chunks(brackets));
        let mut kept = vec![false; chunks.len()];
        for piece in &pieces {
            if let Piece::Kept(entry) = piece
                && let Some(kept) = kept.get_mut(*entry)
            {
                *kept = true;
            }
        }
        let closing = chunks.last().map_or(opening, |chunk| chunk.tail.end);
        let said = |part: Range<usize>| !self.slice(part).trim().is_empty();
        let mut remarks = said(closing..brackets.close);
        // Whether a comment stands before, which a line end must follow.
        let mut remark = said(brackets.open + 1..opening);
        let mut removed = Vec::new();
        for (number, (chunk, stays)) in chunks.iter().zip(&kept).enumerate() {
            remarks |= remark;
            if *stays {
                remark = said(chunk.tail.clone());
                continue;
            }
            let above = self.kept(chunk.lead.clone());
            remark |= above > 0;
            let next = brackets.entries.get(number + 1);
            let next = next.map_or(brackets.close, |next| next.start);
            let last = kept.get(number + 1).is_none_or(|kept| *kept);
            let bare = last && !self.breaks(chunk.tail.end..next);
            let end = if remark && bare { self.newline } else { "" };
            removed.push((chunk.lead.start + above..chunk.tail.end, end));
        }
        remarks |= remark;
        if pieces.is_empty() && !remarks {
            splices.remove(inside);
            return;
        }
        removed
            .into_iter()
            .for_each(|(range, end)| splices.replace(range, end));

        let count = pieces.len();
        let trailing = brackets
            .entries
            .last()
            .is_some_and(|entry| entry.comma.is_some());
        let mut before = brackets.open + 1..opening;
        let mut remark = said(before.clone());
        // Whether what follows each piece begins with a line end.
        let follows = pieces.iter().skip(1).map(|piece| match piece {
            Piece::Kept(entry) => chunks
                .get(*entry)
                .is_some_and(|chunk| self.breaks(chunk.lead.clone())),
            Piece::New { .. } => true,
        });
        let last = self.breaks(closing..brackets.close);
        let follows: Vec<bool> = follows.chain([last]).collect();
        for (place, (piece, broken)) in pieces.into_iter().zip(follows).enumerate() {
            let comma = trailing || place + 1 < count;
            match piece {
                Piece::Kept(entry) => {
                    if let (Some(chunk), Some(entry)) =
                        (chunks.get(entry), brackets.entries.get(entry))
                    {
                        let was_first = chunk.lead.start == opening;
                        self.keep(entry, chunk, (was_first, place == 0), layout, splices);
                        match entry.comma {
                            None if comma => splices.insert(entry.end, ","),
                            Some(at) if !comma => splices.remove(at..at + 1),
                            _ => {}
                        }
                        before = chunk.tail.clone();
                        remark = said(before.clone());
                    }
                }
                Piece::New { lead, text, tail } => {
                    let lead = self.led(lead, layout.by_line, remark, layout);
                    let lead = lead.unwrap_or_else(|| match place {
                        0 => layout.pad.clone(),
                        _ => layout.gap.clone(),
                    });
                    remark = !tail.trim().is_empty();
                    let comma = if comma { "," } else { "" };
                    let end = if remark && !broken { self.newline } else { "" };
                    splices.insert(before.end, format!("{lead}{text}{comma}{tail}{end}"));
                }
            }
        }
    }

    /// An entry that becomes the first one or no longer is: blanks before it
    /// are those of its new place.
    fn keep(
        &self,
        entry: &Entry,
        chunk: &Chunk,
        (was_first, is_first): (bool, bool),
        layout: &Layout,
        splices: &mut Splices,
    ) {
        let lead = self.slice(chunk.lead.start..entry.start);
        if !lead.trim().is_empty() || lead.contains('\n') {
            return;
        }
        match (was_first, is_first) {
            (true, false) => splices.replace(chunk.lead.clone(), layout.gap.clone()),
            (false, true) => splices.replace(chunk.lead.clone(), layout.pad.clone()),
            _ => {}
        }
    }

    /// The inside of brackets that had no entry.
    fn filled(&self, brackets: &Brackets, layout: &Layout, pieces: Vec<Piece>) -> String {
        let before = self.slice(brackets.open + 1..brackets.close);
        if pieces.is_empty() {
            return before.to_owned();
        }
        let said =
            |piece: &Piece| matches!(piece, Piece::New { tail, .. } if !tail.trim().is_empty());
        let mut remark = !before.trim().is_empty();
        let by_line = layout.by_line || remark || pieces.iter().any(said);
        let mut output = before.trim_end().to_owned();
        let count = pieces.len();
        for (place, piece) in pieces.into_iter().enumerate() {
            let Piece::New { lead, text, tail } = piece else {
                continue;
            };
            output.push_str(&self.led(lead, by_line, remark, layout).unwrap_or_else(|| {
                let gap = if place > 0 { layout.gap.as_str() } else { "" };
                gap.to_owned()
            }));
            output.push_str(&text);
            if place + 1 < count {
                output.push(',');
            }
            output.push_str(&tail);
            remark = !tail.trim().is_empty();
        }
        if by_line {
            output.push_str(self.newline);
            output.push_str(self.indent_at(brackets.open));
        }
        output
    }

    /// What stands before a new entry; nothing when it goes on the same line.
    /// A comment before it ends with its line.
    fn led(
        &self,
        lead: Option<String>,
        by_line: bool,
        remark: bool,
        layout: &Layout,
    ) -> Option<String> {
        let begun = || format!("{}{}", self.newline, layout.indent);
        match lead {
            Some(lead) if remark && !breaks(&lead) => {
                Some(format!("{}{}", begun(), lead.trim_start()))
            }
            Some(lead) => Some(lead),
            None => (by_line || remark).then(begun),
        }
    }
}

fn breaks(part: &str) -> bool {
    part.trim_start_matches([' ', '\t'])
        .starts_with(['\r', '\n'])
}
