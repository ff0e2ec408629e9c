//! Adding and removing entries of lists and mappings that are written by lines.

use std::ops::Range;

use super::read::{Block, Shape};
use super::render::{LOST_COMMENTS, Under};
use super::scalar::Quotes;
use super::write::Writer;
use crate::edit::EditError;
use crate::edit::structured::brackets::Entry;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Origin, Slot};

impl Writer<'_> {
    /// Changes a list or mapping by lines. At least one of its entries stays.
    pub(super) fn change_block(
        &self,
        id: NodeId,
        block: &Block,
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let mapping = matches!(self.tree.node(id).data, Data::Mapping(_));
        let slots = self.slots(id);
        let mut kept = vec![false; block.entries.len()];
        // What is inside comes first: at one place, it goes before what is new.
        for (_, slot) in &slots {
            let number = slot.entry;
            if let Some(entry) = number.and_then(|number| block.entries.get(number)) {
                self.keep(block, entry, *slot, mapping, splices)?;
            }
            if let Some(kept) = number.and_then(|number| kept.get_mut(number)) {
                *kept = true;
            }
        }
        self.remove_entries(block, &kept, splices)?;

        let first = kept.iter().position(|kept| *kept).unwrap_or(0);
        let mut before = None;
        let mut lines = Vec::new();
        for (key, slot) in slots {
            if slot.entry.is_some() {
                self.insert(block, (before, first), &mut lines, splices);
                before = slot.entry;
            } else {
                lines.extend(self.entry_lines(key, slot, block.column, mapping)?);
            }
        }
        self.insert(block, (before, first), &mut lines, splices);
        Ok(())
    }

    /// Puts new lines behind an entry, or before the first one that stays.
    fn insert(
        &self,
        block: &Block,
        (before, first): (Option<usize>, usize),
        lines: &mut Vec<String>,
        splices: &mut Splices,
    ) {
        let lines = std::mem::take(lines);
        match before {
            _ if lines.is_empty() => {}
            Some(before) => self.insert_behind(block, before, &lines, splices),
            None => self.insert_before(block, first, &lines, splices),
        }
    }

    fn remove_entries(
        &self,
        block: &Block,
        kept: &[bool],
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let first = block.entries.first().map_or(0, |entry| entry.start);
        let stays = kept.iter().position(|kept| *kept).unwrap_or(0);
        let mut numbers = 0..block.entries.len();
        if stays > 0 && !self.is_at_line_start(first) {
            // Its first entry stands behind a dash: the next one moves up.
            let start = |number: usize| block.entries.get(number).map_or(0, |entry| entry.start);
            let before = block.entries.get(stays - 1).map_or(0, |entry| entry.end);
            let between = self.page.next_line(before)..start(stays);
            if self.source.gaps.has_comment(between) {
                return Err(LOST_COMMENTS);
            }
            splices.remove(first..start(stays));
            numbers.start = stays;
        }
        for number in numbers {
            let gone = kept.get(number).is_some_and(|kept| !kept);
            if let Some(entry) = block.entries.get(number).filter(|_| gone) {
                splices.remove(self.apart(block, number)..self.page.next_line(entry.end));
            }
        }
        Ok(())
    }

    /// Where an entry begins with its comments, and with the empty lines before
    /// them when others follow it or nothing does.
    fn apart(&self, block: &Block, number: usize) -> usize {
        let mut start = self.lead(block, number);
        let entries = |number: usize| block.entries.get(number);
        let (Some(entry), Some(before)) =
            (entries(number), number.checked_sub(1).and_then(entries))
        else {
            return start;
        };
        let lines = self.page.lines;
        let is_blank = |range: &Range<usize>| self.page.slice(range.clone()).trim().is_empty();
        let next = self.page.next_line(entry.end);
        if lines
            .range(lines.number(next))
            .filter(|line| line.start == next)
            .is_some_and(|line| !is_blank(&line))
        {
            return start;
        }
        let least = self.page.next_line(before.end);
        let above = |start: usize| lines.range(lines.number(start).checked_sub(1)?);
        while let Some(line) = above(start).filter(|line| line.start >= least && is_blank(line)) {
            start = line.start;
        }
        start
    }

    fn insert_behind(&self, block: &Block, number: usize, lines: &[String], splices: &mut Splices) {
        let end = block.entries.get(number).map_or(0, |entry| entry.end);
        let at = self.page.next_line(end);
        let newline = self.page.newline;
        let text = lines.join(newline);
        match self.page.slice(0..at).ends_with('\n') {
            true => splices.insert(at, format!("{text}{newline}")),
            false => splices.insert(at, format!("{newline}{text}")),
        }
    }

    fn insert_before(&self, block: &Block, number: usize, lines: &[String], splices: &mut Splices) {
        let start = block.entries.get(number).map_or(0, |entry| entry.start);
        let first = block.entries.first().map_or(start, |entry| entry.start);
        let newline = self.page.newline;
        let text = lines.join(newline);
        if self.is_at_line_start(first) {
            splices.insert(self.lead(block, number), format!("{text}{newline}"));
            return;
        }
        // Behind a dash: the new entry takes the place of the first one.
        let column = block.column;
        splices.insert(
            start,
            format!("{}{newline}{:column$}", text.trim_start(), ""),
        );
    }

    /// The lines of a new entry.
    fn entry_lines(
        &self,
        key: Option<&str>,
        slot: Slot,
        column: usize,
        mapping: bool,
    ) -> Result<Vec<String>, EditError> {
        if let Some(lines) = self.moved_lines(key, slot, column)? {
            return Ok(lines);
        }
        self.refuse_lost(slot.origin)?;
        let under = match mapping {
            true => Under::Key(column),
            false => Under::Dash(column + 2),
        };
        let value = self.block(slot.node, under, Quotes::AsNeeded)?;
        let mark = self.mark(key);
        let mut lines = vec![match value.first.as_str() {
            "" => format!("{:column$}{mark}", ""),
            first => format!("{:column$}{mark} {first}", ""),
        }];
        lines.extend(value.rest);
        Ok(lines)
    }

    fn mark(&self, key: Option<&str>) -> String {
        match key {
            Some(key) => format!("{}:", self.key(key, false)),
            None => "-".to_owned(),
        }
    }

    /// The lines of an entry that stood elsewhere in the same manner: as they
    /// were, indented for their new place. With it come the comments above it
    /// and behind it, unless it is still there.
    fn moved_lines(
        &self,
        key: Option<&str>,
        slot: Slot,
        column: usize,
    ) -> Result<Option<Vec<String>>, EditError> {
        let Some((origin, block, entry)) = self.origin(slot) else {
            return Ok(None);
        };
        // An item has nothing but its dash before its value.
        let from_list = self.page.slice(entry.start..entry.head) == "-";
        if from_list == key.is_some() || self.is_emptied(slot.node) {
            return Ok(None);
        }
        let mut splices = Splices::default();
        self.change(slot.node, &mut splices)?;
        // What is removed inside goes with its line end.
        let end = match origin.moved || self.tree.node(slot.node).changed {
            true => self.page.next_line(entry.end),
            false => entry.end,
        };
        let Some(text) = splices.apply(self.page.text, entry.head..end) else {
            return Ok(None);
        };
        let text = text
            .strip_suffix('\n')
            .filter(|_| end > entry.end)
            .unwrap_or(&text);
        let mut lines = Vec::new();
        if origin.moved && self.is_at_line_start(entry.start) {
            let above = self.lead(block, origin.entry)..self.page.lines.start(entry.start);
            let above = self.page.slice(above).lines();
            lines.extend(above.map(|line| format!("{:column$}{}", "", line.trim())));
        }
        for (number, line) in text.split('\n').enumerate() {
            let line = line.strip_suffix('\r').unwrap_or(line);
            lines.push(match number {
                0 => format!("{:column$}{}{line}", "", self.mark(key)),
                _ => shifted(line, block.column, column),
            });
        }
        Ok(Some(lines))
    }

    /// The entry of the text that a value comes from, if it stood by lines.
    fn origin(&self, slot: Slot) -> Option<(Origin, &Block, &Entry)> {
        let origin = slot.origin?;
        let Shape::Lines(block) = &self.source.places.get(origin.container)?.shape else {
            return None;
        };
        let entry = block.entries.get(origin.entry)?;
        let same = self.tree.node(slot.node).source == Some(entry.value);
        same.then_some((origin, block, entry))
    }
}

/// A line that was indented for one column, indented for another.
fn shifted(line: &str, from: usize, to: usize) -> String {
    let blanks = line.len() - line.trim_start_matches(' ').len();
    if blanks == line.len() {
        return String::new();
    }
    let column = (blanks + to).saturating_sub(from);
    format!("{:column$}{}", "", line.trim_start_matches(' '))
}
