//! Writing what changed into a TOML text.

use std::ops::Range;

use super::check::check;
use super::read::{Place, Shape, Source};
use super::render::{LOST_COMMENTS, key};
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Page, Piece, Usual};
use crate::edit::structured::json::newline;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Origin, Slot, Tree};

pub(super) struct Writer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) source: &'a Source,
    pub(super) page: Page<'a>,
}

/// The text with what the tree has changed.
pub(in crate::edit::structured) fn write(
    text: &str,
    source: &Source,
    tree: &Tree,
) -> Result<String, EditError> {
    check(tree)?;
    let writer = Writer {
        tree,
        source,
        page: Page {
            text,
            lines: &source.lines,
            newline: newline(text),
            block_comments: false,
        },
    };
    let mut output = if tree.node(tree.root).source == Some(0) {
        let mut splices = Splices::default();
        writer.change_table(tree.root, &mut Vec::new(), &mut splices)?;
        let output = splices.apply(text, 0..text.len());
        output.ok_or(EditError::NotExact {
            format: Format::Toml,
            why: "the changes overlap",
        })?
    } else {
        writer.whole()?
    };
    // Whole lines were added and removed; the end of the file stays as it was.
    if !text.is_empty() && !text.ends_with('\n') {
        output.truncate(output.trim_end_matches(['\r', '\n']).len());
    } else if let Some(body) = output.strip_suffix(writer.page.newline) {
        // Nothing follows any more that an empty line would part it from.
        let empty = text.trim_end().len() + writer.page.newline.len() < text.len();
        let body = body.trim_end_matches(['\r', '\n']).len();
        if !empty && body > 0 {
            output.truncate(body);
            output.push_str(writer.page.newline);
        }
    }
    Ok(output)
}

impl<'a> Writer<'a> {
    /// Where the value stood, if it is one of the text.
    pub(super) fn place(&self, id: NodeId) -> Option<&'a Place> {
        self.source.places.get(self.tree.node(id).source?)
    }

    /// The places of a value of the text and of everything in it.
    pub(super) fn places_in(&self, id: NodeId) -> &'a [Place] {
        let places = &self.source.places;
        let beyond = places.get(id).map_or(id, |place| place.beyond);
        places.get(id..beyond).unwrap_or_default()
    }

    /// The lines of a value of the text and of everything in it, in order.
    pub(super) fn pairs_of(&self, id: NodeId) -> Vec<usize> {
        let mut pairs: Vec<usize> = self
            .places_in(id)
            .iter()
            .filter_map(|place| place.pair)
            .collect();
        pairs.sort_unstable();
        pairs
    }

    /// The sections of a value of the text and of everything in it, in order.
    pub(super) fn sections_of(&self, id: NodeId) -> Vec<usize> {
        let places = self.places_in(id).iter();
        let mut sections: Vec<usize> = places.filter_map(|place| place.section).collect();
        sections.sort_unstable();
        sections
    }

    pub(super) fn slots(&self, id: NodeId) -> Vec<(Option<&'a str>, Slot)> {
        match &self.tree.node(id).data {
            Data::Sequence(slots) => slots.iter().map(|slot| (None, *slot)).collect(),
            Data::Mapping(mapping) => {
                let slots = mapping.ordered().into_iter();
                slots.map(|(key, slot)| (Some(key), slot)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Changes an array or an inline table where it stands.
    pub(super) fn change_value(&self, id: NodeId, splices: &mut Splices) -> Result<(), EditError> {
        let Some(Place {
            shape: Shape::Brackets(brackets),
            ..
        }) = self.place(id).filter(|_| self.tree.node(id).changed)
        else {
            return Ok(());
        };
        let usual = Usual {
            by_line: false,
            unit: "    ",
            gap: " ",
        };
        let layout = self.page.layout(brackets, &usual);
        let mut pieces = Vec::new();
        for (name, slot) in self.slots(id) {
            let entry = slot.entry.and_then(|entry| brackets.entries.get(entry));
            if let (Some(number), Some(entry)) = (slot.entry, entry) {
                if self.tree.node(slot.node).source == Some(entry.value) {
                    self.change_value(slot.node, splices)?;
                } else {
                    let old = self.source.places.get(entry.value);
                    let start = old.map_or(entry.head, |old| old.start);
                    splices.replace(start..entry.end, self.inline(slot.node, old)?);
                }
                pieces.push(Piece::Kept(number));
                continue;
            }
            self.refuse_lost(slot.origin)?;
            let value = self.inline(slot.node, None)?;
            pieces.push(Piece::New {
                lead: None,
                text: match name {
                    Some(name) => format!("{} = {value}", key(name)),
                    None => value,
                },
                tail: String::new(),
            });
        }
        let pieces = self.padded(brackets, pieces);
        self.page.rebuild(brackets, &layout, pieces, splices);
        Ok(())
    }

    /// An empty inline table gets blanks inside its braces.
    fn padded(&self, brackets: &Brackets, mut pieces: Vec<Piece>) -> Vec<Piece> {
        let braces = self.page.slice(brackets.open..brackets.open + 1) == "{";
        if !braces || !brackets.entries.is_empty() {
            return pieces;
        }
        if let Some(Piece::New { lead, .. }) = pieces.first_mut() {
            *lead = Some(" ".to_owned());
        }
        if let Some(Piece::New { tail, .. }) = pieces.last_mut() {
            *tail = " ".to_owned();
        }
        pieces
    }

    /// Refuses to move a value without the comments at its entry.
    pub(super) fn refuse_lost(&self, origin: Option<Origin>) -> Result<(), EditError> {
        let Some(origin) = origin.filter(|origin| origin.moved) else {
            return Ok(());
        };
        let Some(place) = self.source.places.get(origin.container) else {
            return Ok(());
        };
        let comments = match &place.shape {
            Shape::Brackets(brackets) => {
                let (lead, tail) = self.page.comments(brackets, origin.entry);
                !lead.is_empty() || !tail.is_empty()
            }
            _ => {
                let child = place.children.get(origin.entry);
                let pair = child.and_then(|child| self.pair(*child));
                pair.is_some_and(|pair| {
                    self.has_comment(self.lead(pair.start)..pair.start)
                        || self.has_comment(pair.end..self.page.line_end(pair.end))
                })
            }
        };
        match comments {
            true => Err(LOST_COMMENTS),
            false => Ok(()),
        }
    }

    /// Where what stands at `offset` begins with the comments directly above
    /// it. Those at the top of the file are about the file.
    pub(super) fn lead(&self, offset: usize) -> usize {
        let lines = self.page.lines;
        let own = lines.start(offset);
        let mut line = lines.number(offset);
        while let Some(above) = line.checked_sub(1).and_then(|above| lines.range(above)) {
            if !self.page.slice(above).trim_start().starts_with('#') {
                break;
            }
            line -= 1;
        }
        let lead = lines.range(line).map_or(own, |line| line.start);
        if lead == 0 { own } else { lead }
    }

    /// Whether a comment stands in a part of the text that has no texts with
    /// `#` in them, or whether such a text does.
    pub(super) fn has_comment(&self, part: Range<usize>) -> bool {
        self.page.slice(part).contains('#')
    }
}
