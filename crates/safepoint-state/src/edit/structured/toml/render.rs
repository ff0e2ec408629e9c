//! The text of values that are new in a TOML document, or stand elsewhere.

use std::ops::Range;

use super::read::{Place, Shape};
use super::write::Writer;
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::json::quoted;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Slot};

pub(super) const LOST_COMMENTS: EditError = EditError::NotExact {
    format: Format::Toml,
    why: "comments that belong to a value would be lost where it goes",
};

const OVERLAP: EditError = EditError::NotExact {
    format: Format::Toml,
    why: "the changes overlap",
};

/// A key as it is written.
pub(super) fn key(name: &str) -> String {
    let bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match !name.is_empty() && name.bytes().all(bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

/// A header for a table.
pub(super) fn dotted(path: &[String]) -> String {
    let keys: Vec<String> = path.iter().map(|name| key(name)).collect();
    keys.join(".")
}

impl Writer<'_> {
    /// A value behind an equals sign, or between brackets.
    pub(super) fn inline(&self, id: NodeId, old: Option<&Place>) -> Result<String, EditError> {
        if let Some(place) = self.place(id) {
            if let Shape::Value | Shape::Brackets(_) = place.shape {
                let mut splices = Splices::default();
                self.change_value(id, &mut splices)?;
                let text = splices.apply(self.page.text, place.start..place.end);
                return text.ok_or(OVERLAP);
            }
            self.refuse_comments(id)?;
        }
        Ok(match &self.tree.node(id).data {
            Data::Mapping(mapping) if mapping.len() == 0 => "{}".to_owned(),
            Data::Mapping(mapping) => {
                let mut entries = Vec::with_capacity(mapping.len());
                for (name, slot) in mapping.ordered() {
                    entries.push(format!("{} = {}", key(name), self.inline(slot.node, None)?));
                }
                format!("{{ {} }}", entries.join(", "))
            }
            Data::Sequence(slots) => {
                let mut entries = Vec::with_capacity(slots.len());
                for slot in slots {
                    entries.push(self.inline(slot.node, None)?);
                }
                format!("[{}]", entries.join(", "))
            }
            Data::Text(text) => self.text(text, old),
            Data::Bool(value) => value.to_string(),
            Data::Number(text) | Data::Special(text) => text.clone(),
            Data::Null => return Err(OVERLAP),
        })
    }

    /// A text, in the quotes of the one whose place it takes.
    fn text(&self, text: &str, old: Option<&Place>) -> String {
        let old = old.map_or("", |old| self.page.slice(old.start..old.end));
        let single = old.starts_with('\'') && !old.starts_with("'''");
        match single && !text.contains('\'') && !text.chars().any(char::is_control) {
            true => format!("'{text}'"),
            false => quoted(text),
        }
    }

    /// Refuses to write a table anew that has comments between its lines.
    fn refuse_comments(&self, id: NodeId) -> Result<(), EditError> {
        let Some(source) = self.tree.node(id).source else {
            return Ok(());
        };
        let sections = self.sections_of(source).into_iter();
        let mut parts: Vec<Range<usize>> = sections.map(|number| self.section(number)).collect();
        for number in self.pairs_of(source) {
            if let Some(pair) = self.source.pairs.get(number) {
                parts.push(self.lead(pair.start)..self.page.line_end(pair.end));
            }
        }
        for part in &mut parts {
            part.start = self.lead(part.start);
        }
        match parts.into_iter().any(|part| self.has_comment(part)) {
            true => Err(LOST_COMMENTS),
            false => Ok(()),
        }
    }

    /// The whole document anew.
    pub(super) fn whole(&self) -> Result<String, EditError> {
        if self.has_comment(0..self.page.text.len()) {
            return Err(LOST_COMMENTS);
        }
        let mut lines = Vec::new();
        self.section_lines(self.tree.root, &[], String::new(), &mut lines)?;
        let newline = self.page.newline;
        let text: String = lines.iter().flat_map(|line| [line, newline]).collect();
        Ok(text.trim_start_matches(['\r', '\n']).to_owned())
    }

    /// A table as lines with headers: its own values first, then its tables.
    pub(super) fn section_lines(
        &self,
        id: NodeId,
        path: &[String],
        header: String,
        lines: &mut Vec<String>,
    ) -> Result<(), EditError> {
        self.refuse_comments(id)?;
        let Data::Mapping(mapping) = &self.tree.node(id).data else {
            return Ok(());
        };
        let slots = mapping.ordered();
        let by_line = |slot: &Slot| !self.is_table(slot.node) && !self.is_tables(slot.node);
        // A table that has only tables in it needs no header.
        if header.starts_with("[[") || slots.iter().any(|(_, slot)| by_line(slot)) {
            lines.push(String::new());
            lines.push(header);
        }
        for (name, slot) in &slots {
            if by_line(slot) {
                lines.push(format!("{} = {}", key(name), self.inline(slot.node, None)?));
            }
        }
        for (name, slot) in slots {
            let mut path = path.to_vec();
            path.push(name.to_owned());
            self.new_sections(slot.node, &path, lines)?;
        }
        Ok(())
    }

    /// A table or a list of tables with headers of their own.
    pub(super) fn new_sections(
        &self,
        id: NodeId,
        path: &[String],
        lines: &mut Vec<String>,
    ) -> Result<(), EditError> {
        if self.is_table(id) {
            let header = format!("[{}]", dotted(path));
            return self.section_lines(id, path, header, lines);
        }
        if self.is_tables(id)
            && let Data::Sequence(slots) = &self.tree.node(id).data
        {
            for slot in slots {
                let header = format!("[[{}]]", dotted(path));
                self.section_lines(slot.node, path, header, lines)?;
            }
        }
        Ok(())
    }

    /// Whether a value is a table that can have a header: not an empty one, and
    /// not one that was written inline.
    fn is_table(&self, id: NodeId) -> bool {
        let inline = matches!(
            self.place(id),
            Some(Place {
                shape: Shape::Brackets(_),
                ..
            })
        );
        let data = &self.tree.node(id).data;
        !inline && matches!(data, Data::Mapping(mapping) if mapping.len() > 0)
    }

    /// Whether a value is a list of nothing but such tables.
    fn is_tables(&self, id: NodeId) -> bool {
        let inline = matches!(
            self.place(id),
            Some(Place {
                shape: Shape::Brackets(_),
                ..
            })
        );
        match &self.tree.node(id).data {
            Data::Sequence(slots) if !inline && !slots.is_empty() => {
                slots.iter().all(|slot| self.is_table(slot.node))
            }
            _ => false,
        }
    }

    /// Whether new tables in the table `container` get headers, as those beside
    /// them have, or stand on a line; nothing when none are beside them.
    pub(super) fn has_headers(&self, container: NodeId) -> Option<bool> {
        let place = self.place(container)?;
        if let Shape::Dotted = place.shape {
            return Some(false);
        }
        let places = place
            .children
            .iter()
            .filter_map(|child| self.source.places.get(*child));
        let mut inline = None;
        for place in places {
            match place.shape {
                Shape::Section | Shape::Implied | Shape::Tables => return Some(true),
                Shape::Brackets(_) if self.page.slice(place.start..place.end).starts_with('{') => {
                    inline = Some(false);
                }
                _ => {}
            }
        }
        inline
    }

    /// Whether a new value of the table `container` gets a header.
    pub(super) fn wants_header(
        &self,
        container: NodeId,
        id: NodeId,
        headers: Option<bool>,
    ) -> bool {
        // A table in the root, or one with others in it, reads best that way.
        let nested = || {
            let mut children = self.tree.children(id).into_iter();
            children.any(|child| matches!(self.tree.node(child).data, Data::Mapping(_)))
        };
        let headers = headers.unwrap_or_else(|| container == self.tree.root || nested());
        headers && (self.is_table(id) || self.is_tables(id))
    }
}
