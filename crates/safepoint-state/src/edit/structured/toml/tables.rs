//! Adding and removing the lines and headers of TOML tables.

use std::ops::Range;

use super::read::{Pair, Place, Shape};
use super::render::{dotted, key};
use super::write::Writer;
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Slot};

impl Writer<'_> {
    /// The line of a value that has one.
    pub(super) fn pair(&self, node: NodeId) -> Option<&Pair> {
        let number = self.source.places.get(node)?.pair?;
        self.source.pairs.get(number)
    }

    /// The whole text of a section, from its header to its last line.
    pub(super) fn section(&self, number: usize) -> Range<usize> {
        let sections = &self.source.sections;
        let header = sections
            .get(number)
            .map_or(0..0, |section| section.header.clone());
        let next = sections.get(number + 1).map(|next| next.header.start);
        let next = next.unwrap_or(self.page.text.len());
        let before = self.source.pairs.partition_point(|pair| pair.start < next);
        let last = before
            .checked_sub(1)
            .and_then(|last| self.source.pairs.get(last));
        let last = last.filter(|pair| pair.start >= header.end);
        let end = match last {
            Some(pair) => self.page.next_line(pair.end),
            None if header.is_empty() => 0,
            None => self.page.next_line(header.end),
        };
        header.start..end
    }

    /// Changes a table that is written by lines.
    pub(super) fn change_table(
        &self,
        id: NodeId,
        path: &mut Vec<String>,
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let Some(place) = self.place(id).filter(|_| self.tree.node(id).changed) else {
            return Ok(());
        };
        let (mut lines, mut sections) = (Vec::new(), Vec::new());
        let headers = self.has_headers(id);
        let mut kept = vec![false; place.children.len()];
        let mut inside = Vec::new();
        for (name, slot) in self.slots(id) {
            let name = name.unwrap_or_default();
            let old = slot
                .entry
                .and_then(|entry| place.children.get(entry))
                .copied();
            if let Some(kept) = slot.entry.and_then(|entry| kept.get_mut(entry)) {
                *kept = true;
            }
            let same = old.is_some() && self.tree.node(slot.node).source == old;
            match old.and_then(|old| Some((old, self.source.places.get(old)?))) {
                Some(_) if same && !self.is_emptied(slot.node) => inside.push((name, slot.node)),
                Some((_, old)) if matches!(old.shape, Shape::Value | Shape::Brackets(_)) => {
                    splices.replace(old.start..old.end, self.inline(slot.node, Some(old))?);
                }
                found => {
                    if let Some((old, _)) = found {
                        self.remove(old, splices);
                    }
                    if self.wants_header(id, slot.node, headers) {
                        path.push(name.to_owned());
                        self.refuse_lost(slot.origin)?;
                        self.new_sections(slot.node, path, &mut sections)?;
                        path.pop();
                    } else {
                        self.add(name, slot, &mut lines)?;
                    }
                }
            }
        }
        for (child, kept) in place.children.iter().zip(kept) {
            if !kept {
                self.remove(*child, splices);
            }
        }
        self.insert_lines(id, place, path, lines, splices);
        for (name, node) in inside {
            path.push(name.to_owned());
            match self.place(node).map(|place| &place.shape) {
                Some(Shape::Value | Shape::Brackets(_)) => self.change_value(node, splices)?,
                Some(Shape::Tables) => self.change_tables(node, path, splices)?,
                _ => self.change_table(node, path, splices)?,
            }
            path.pop();
        }
        let last = match sections.is_empty() || id == self.tree.root {
            true => None,
            false => self
                .sections_of(self.tree.node(id).source.unwrap_or(id))
                .pop(),
        };
        let end = last.map_or(self.page.text.len(), |last| self.section(last).end);
        self.insert_section(end, &sections, splices);
        Ok(())
    }

    /// Whether a table without a header of its own, or a list of tables, has
    /// lost all that it had in the text, so that nothing there stands for it.
    fn is_emptied(&self, id: NodeId) -> bool {
        let shape = self.place(id).map(|place| &place.shape);
        let headless = matches!(shape, Some(Shape::Tables | Shape::Dotted | Shape::Implied));
        headless && self.slots(id).iter().all(|(_, slot)| slot.entry.is_none())
    }

    /// The lines of a new key.
    fn add(&self, name: &str, slot: Slot, lines: &mut Vec<String>) -> Result<(), EditError> {
        let (above, behind) = self.carried(slot);
        lines.extend(above);
        let value = self.inline(slot.node, None)?;
        lines.push(format!("{} = {value}{behind}", key(name)));
        Ok(())
    }

    /// The comments that come along with a line that was moved.
    fn carried(&self, slot: Slot) -> (Vec<String>, String) {
        let nothing = (Vec::new(), String::new());
        let Some(origin) = slot.origin.filter(|origin| origin.moved) else {
            return nothing;
        };
        let container = self.source.places.get(origin.container);
        let node = container.and_then(|container| container.children.get(origin.entry));
        let Some(pair) = node.and_then(|node| self.pair(*node)) else {
            return nothing;
        };
        let above = self
            .page
            .slice(self.lead(pair.start)..self.page.lines.start(pair.start));
        let behind = self.page.slice(pair.end..self.page.line_end(pair.end));
        let above = above.lines().map(|line| line.trim().to_owned());
        (above.collect(), behind.trim_end().to_owned())
    }

    /// Takes away all the lines and headers of a value of the text.
    fn remove(&self, id: NodeId, splices: &mut Splices) {
        let sections = self.sections_of(id);
        for number in &sections {
            splices.remove(self.apart(self.section(*number)));
        }
        for number in self.pairs_of(id) {
            let Some(pair) = self.source.pairs.get(number) else {
                continue;
            };
            // Those of a section go with it.
            let section = self.section_at(pair.start);
            if sections.binary_search(&section).is_err() {
                splices.remove(self.lead(pair.start)..self.page.next_line(pair.end));
            }
        }
    }

    /// The section in which a line stands.
    fn section_at(&self, start: usize) -> usize {
        let sections = &self.source.sections;
        let next = sections.partition_point(|section| section.header.start <= start);
        next.saturating_sub(1)
    }

    /// A section with its comments and the empty lines before it, or those
    /// behind it at the top of the file.
    fn apart(&self, section: Range<usize>) -> Range<usize> {
        let lines = self.page.lines;
        let mut start = self.lead(section.start);
        let blank = |number: usize| {
            let line = lines.range(number)?;
            self.page
                .slice(line.clone())
                .trim()
                .is_empty()
                .then_some(line)
        };
        while let Some(above) = lines.number(start).checked_sub(1).and_then(blank) {
            if start == 0 {
                break;
            }
            start = above.start;
        }
        let mut end = section.end;
        if start == 0 {
            while let Some(below) = blank(lines.number(end)).filter(|line| line.start == end) {
                if below.is_empty() {
                    break;
                }
                end = below.end;
            }
        }
        start..end
    }

    /// Puts new lines behind the last line of a table.
    fn insert_lines(
        &self,
        id: NodeId,
        place: &Place,
        path: &[String],
        lines: Vec<String>,
        splices: &mut Splices,
    ) {
        if lines.is_empty() {
            return;
        }
        let source = self.tree.node(id).source.unwrap_or(id);
        let (last, names) = match (place.section, &place.shape) {
            (Some(number), _) => {
                let section = self.section(number);
                let last = self
                    .source
                    .pairs
                    .partition_point(|pair| pair.start < section.end);
                let last = last
                    .checked_sub(1)
                    .and_then(|last| self.source.pairs.get(last));
                (last.filter(|pair| pair.start >= section.start), &[][..])
            }
            (None, Shape::Dotted) => {
                let last = self.pairs_of(source).pop();
                let last = last.and_then(|last| self.source.pairs.get(last));
                let section = self.section_at(last.map_or(0, |pair| pair.start));
                let section = self.source.sections.get(section);
                let depth = section.map_or(0, |section| self.depth(section.node));
                (last, path.get(depth..).unwrap_or_default())
            }
            _ => {
                // It has had no header yet.
                let header = format!("[{}]", dotted(path));
                let lines: Vec<String> = [String::new(), header].into_iter().chain(lines).collect();
                let first = self.sections_of(source).first().copied();
                return self.insert_above(first, &lines, splices);
            }
        };
        let indent = last.map_or("", |pair| self.page.indent_at(pair.start));
        let names = match names {
            [] => String::new(),
            names => format!("{}.", dotted(names)),
        };
        let lines = lines.into_iter().map(|line| match line.starts_with('#') {
            true => format!("{indent}{line}"),
            false => format!("{indent}{names}{line}"),
        });
        let end = match (last, place.section) {
            (Some(pair), _) => self.page.next_line(pair.end),
            (None, Some(number)) if number > 0 => self.section(number).end,
            // At the top of a file that has nothing there but comments.
            _ => {
                let lines: Vec<String> = [String::new()].into_iter().chain(lines).collect();
                let first = (self.source.sections.len() > 1).then_some(1);
                return self.insert_above(first, &lines, splices);
            }
        };
        self.insert_section(end, &lines.collect::<Vec<_>>(), splices);
    }

    /// Puts lines above a section, or at the end. They begin with an empty one.
    fn insert_above(&self, section: Option<usize>, lines: &[String], splices: &mut Splices) {
        let start = section.map(|number| self.apart(self.section(number)).start);
        let at = start.unwrap_or(self.page.text.len());
        let mut lines = lines.to_vec();
        // The empty line comes between it and the next.
        if at == 0 && section.is_some() {
            lines.rotate_left(1);
        }
        self.insert_section(at, &lines, splices);
    }

    /// How many keys lead to a table of the text.
    fn depth(&self, node: NodeId) -> usize {
        let mut depth = 0;
        let mut here = 0;
        while here != node {
            let Some(place) = self.source.places.get(here) else {
                break;
            };
            let next = place.children.partition_point(|child| *child <= node);
            let Some(child) = next
                .checked_sub(1)
                .and_then(|last| place.children.get(last))
            else {
                break;
            };
            // The tables of a list share its keys.
            depth += usize::from(!matches!(place.shape, Shape::Tables));
            here = *child;
        }
        depth
    }

    fn insert_section(&self, at: usize, lines: &[String], splices: &mut Splices) {
        if lines.is_empty() {
            return;
        }
        let newline = self.page.newline;
        let before = self.page.slice(0..at);
        let text: String = lines.iter().flat_map(|line| [line, newline]).collect();
        match before {
            "" => splices.insert(at, text.trim_start_matches(['\r', '\n']).to_owned()),
            before if before.ends_with('\n') => splices.insert(at, text),
            _ => splices.insert(at, format!("{newline}{text}")),
        }
    }

    /// Changes a list of tables with headers.
    fn change_tables(
        &self,
        id: NodeId,
        path: &mut Vec<String>,
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let Some(place) = self.place(id).filter(|_| self.tree.node(id).changed) else {
            return Ok(());
        };
        let slots = self.slots(id);
        let mut kept = vec![false; place.children.len()];
        let mut at = None;
        for (number, (_, slot)) in slots.iter().enumerate() {
            let old = slot
                .entry
                .and_then(|entry| place.children.get(entry))
                .copied();
            let same = old.is_some() && self.tree.node(slot.node).source == old;
            if let (Some(old), Some(kept)) = (old, slot.entry.and_then(|entry| kept.get_mut(entry)))
            {
                *kept = true;
                let last = self.sections_of(old).pop();
                at = last.map(|last| self.section(last).end);
                if same {
                    self.change_table(slot.node, path, splices)?;
                    continue;
                }
                self.remove(old, splices);
            }
            if !matches!(self.tree.node(slot.node).data, Data::Mapping(_)) {
                return Err(EditError::NotExact {
                    format: Format::Toml,
                    why: "a list of tables (`[[…]]`) holds nothing but tables",
                });
            }
            self.refuse_lost(slot.origin)?;
            let mut lines = Vec::new();
            let header = format!("[[{}]]", dotted(path));
            self.section_lines(slot.node, path, header, &mut lines)?;
            match at {
                Some(at) => self.insert_section(at, &lines, splices),
                None => self.insert_front(&slots, number, place, &lines, splices),
            }
        }
        for (child, kept) in place.children.iter().zip(kept) {
            if !kept {
                self.remove(*child, splices);
            }
        }
        Ok(())
    }

    /// Puts a table before the first one that stays.
    fn insert_front(
        &self,
        slots: &[(Option<&str>, Slot)],
        number: usize,
        place: &Place,
        lines: &[String],
        splices: &mut Splices,
    ) {
        let newline = self.page.newline;
        let mut next = slots.iter().skip(number).filter_map(|(_, slot)| slot.entry);
        let next = next.next().and_then(|entry| place.children.get(entry));
        let section = next.and_then(|next| self.sections_of(*next).first().copied());
        let start = section.map_or(self.page.text.len(), |number| self.section(number).start);
        // The empty line that begins it ends it here.
        let lines = lines.get(1..).unwrap_or_default();
        let text: String = lines.iter().flat_map(|line| [line, newline]).collect();
        splices.insert(self.lead(start), format!("{text}{newline}"));
    }
}
