//! Writing what changed into a YAML text, in its own style.

use super::read::{Block, Place, Shape, Source};
use super::render::{LOST_COMMENTS, Rendered, Under};
use super::scalar::Quotes;
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Entry, Page, Piece, Usual};
use crate::edit::structured::json::newline;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Origin, Slot, Tree};

/// How the file is written, as far as new parts have to know it.
#[derive(Debug)]
pub(super) struct Style {
    /// How far a mapping in a mapping is indented.
    pub(super) unit: usize,
    /// How far a list in a mapping is indented.
    pub(super) sequence: usize,
    /// Whether the last line has a line end.
    pub(super) ended: bool,
}

pub(super) struct Writer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) source: &'a Source,
    pub(super) page: Page<'a>,
    pub(super) style: Style,
}

const OVERLAP: EditError = EditError::NotExact {
    format: Format::Yaml,
    why: "the changes overlap",
};

/// The text with what the tree has changed.
pub(in crate::edit::structured) fn write(
    text: &str,
    source: &Source,
    tree: &Tree,
) -> Result<String, EditError> {
    let writer = Writer {
        tree,
        source,
        page: Page {
            text,
            lines: &source.lines,
            newline: newline(text),
            block_comments: false,
        },
        style: style(text, tree, source),
    };
    let mut splices = Splices::default();
    if tree.node(tree.root).source == Some(0) && !writer.is_emptied(tree.root) {
        writer.change(tree.root, &mut splices)?;
    } else {
        writer.replace_root(&mut splices)?;
    }
    let mut output = splices.apply(text, 0..text.len()).ok_or(OVERLAP)?;
    // Whole lines were added and removed; the end of the file stays as it was.
    if !text.is_empty() && !text.ends_with('\n') {
        output.truncate(output.trim_end_matches(['\r', '\n']).len());
    } else if !output.is_empty() && !output.ends_with('\n') {
        output.push_str(writer.page.newline);
    }
    Ok(output)
}

fn style(text: &str, tree: &Tree, source: &Source) -> Style {
    let column = |id: NodeId| match source.places.get(id).map(|place| &place.shape) {
        Some(Shape::Lines(block)) => Some(block.column),
        _ => None,
    };
    let (mut unit, mut sequence) = (None, None);
    for (id, place) in source.places.iter().enumerate() {
        let (Shape::Lines(block), Data::Mapping(_)) = (&place.shape, &tree.node(id).data) else {
            continue;
        };
        for entry in &block.entries {
            let Some(further) = column(entry.value).and_then(|c| c.checked_sub(block.column))
            else {
                continue;
            };
            // The dash of a list may stand below its key.
            match tree.node(entry.value).data {
                Data::Sequence(_) => sequence.get_or_insert(further),
                _ => unit.get_or_insert(further),
            };
        }
    }
    let unit = unit
        .or(sequence.filter(|further| *further > 0))
        .unwrap_or(2)
        .max(1);
    Style {
        unit,
        sequence: sequence.unwrap_or(unit),
        ended: text.is_empty() || text.ends_with('\n'),
    }
}

impl<'a> Writer<'a> {
    /// Where the value stood, if it is one of the text.
    pub(super) fn place(&self, id: NodeId) -> Option<&'a Place> {
        self.source.places.get(self.tree.node(id).source?)
    }

    pub(super) fn slots(&self, id: NodeId) -> Vec<(Option<&str>, Slot)> {
        match &self.tree.node(id).data {
            Data::Sequence(slots) => slots.iter().map(|slot| (None, *slot)).collect(),
            Data::Mapping(mapping) => {
                let slots = mapping.ordered().into_iter();
                slots.map(|(key, slot)| (Some(key), slot)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether a container by lines has lost all the entries of the text, so
    /// that nothing is left to hold on to.
    pub(super) fn is_emptied(&self, id: NodeId) -> bool {
        let by_lines = matches!(
            self.place(id),
            Some(Place {
                shape: Shape::Lines(_),
                ..
            })
        );
        let node = self.tree.node(id);
        by_lines && node.changed && self.slots(id).iter().all(|(_, slot)| slot.entry.is_none())
    }

    /// Changes a container where it stands in the text.
    pub(super) fn change(&self, id: NodeId, splices: &mut Splices) -> Result<(), EditError> {
        match self.place(id).map(|place| &place.shape) {
            _ if !self.tree.node(id).changed => Ok(()),
            Some(Shape::Brackets(brackets)) => self.change_brackets(id, brackets, splices),
            Some(Shape::Lines(block)) => self.change_block(id, block, splices),
            _ => Ok(()),
        }
    }

    fn change_brackets(
        &self,
        id: NodeId,
        brackets: &Brackets,
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let usual = Usual {
            by_line: false,
            unit: "  ",
            gap: " ",
        };
        let layout = self.page.layout(brackets, &usual);
        let mut pieces = Vec::new();
        for (key, slot) in self.slots(id) {
            let entry = slot.entry.and_then(|entry| brackets.entries.get(entry));
            if let (Some(number), Some(entry)) = (slot.entry, entry) {
                if self.tree.node(slot.node).source == Some(entry.value) {
                    self.change(slot.node, splices)?;
                } else {
                    let old = self.source.places.get(entry.value);
                    let text = self.flow(slot.node, quotes(old))?;
                    match old.filter(|old| old.start < old.end) {
                        Some(old) => splices.replace(old.start..old.end, text),
                        None => splices.insert(entry.head, format!(" {text}")),
                    }
                }
                pieces.push(Piece::Kept(number));
                continue;
            }
            self.refuse_lost(slot.origin)?;
            let value = self.flow(slot.node, Quotes::AsNeeded)?;
            let text = match key {
                Some(key) => format!("{}: {value}", self.key(key, true)),
                None => value,
            };
            pieces.push(Piece::New {
                lead: None,
                text,
                tail: String::new(),
            });
        }
        self.page.rebuild(brackets, &layout, pieces, splices);
        Ok(())
    }

    /// Refuses to move a value without the comments at its entry.
    pub(super) fn refuse_lost(&self, origin: Option<Origin>) -> Result<(), EditError> {
        let Some(origin) = origin.filter(|origin| origin.moved) else {
            return Ok(());
        };
        let place = self.source.places.get(origin.container);
        let comments = match place.map(|place| &place.shape) {
            Some(Shape::Brackets(brackets)) => {
                let (lead, tail) = self.page.comments(brackets, origin.entry);
                !lead.is_empty() || !tail.is_empty()
            }
            Some(Shape::Lines(block)) => block.entries.get(origin.entry).is_some_and(|entry| {
                let whole = self.lead(block, origin.entry)..self.page.line_end(entry.end);
                self.source.gaps.has_comment(whole)
            }),
            _ => false,
        };
        match comments {
            true => Err(LOST_COMMENTS),
            false => Ok(()),
        }
    }

    pub(super) fn is_at_line_start(&self, offset: usize) -> bool {
        let before = self.page.slice(self.page.lines.start(offset)..offset);
        before.bytes().all(|byte| byte == b' ')
    }

    /// Where an entry begins with the comments directly above it. Those above
    /// the first entry of a document are about the document.
    pub(super) fn lead(&self, block: &Block, number: usize) -> usize {
        let Some(entry) = block.entries.get(number) else {
            return self.page.text.len();
        };
        if !self.is_at_line_start(entry.start) {
            return entry.start;
        }
        let lines = self.page.lines;
        let mut line = lines.number(entry.start);
        let first = block.entries.first().map_or(0, |first| first.start);
        let root = self.source.places.first().map_or(0, |root| root.start);
        if number == 0 && first == root {
            return lines.start(entry.start);
        }
        while let Some(above) = line.checked_sub(1).and_then(|above| lines.range(above)) {
            let text = self.page.slice(above);
            let column = text.len() - text.trim_start_matches(' ').len();
            if column != block.column || !text.trim_start_matches(' ').starts_with('#') {
                break;
            }
            line -= 1;
        }
        lines.range(line).map_or(entry.start, |line| line.start)
    }

    /// Puts another value in the place of the one that an entry has.
    pub(super) fn replace_value(&self, entry: &Entry, value: &Rendered, splices: &mut Splices) {
        let old = self.source.places.get(entry.value);
        let (start, end) = old.map_or((entry.head, entry.head), |old| (old.start, old.end));
        // Comments behind a container by lines belong to its last entry.
        let by_lines = matches!(
            old,
            Some(Place {
                shape: Shape::Lines(_),
                ..
            })
        );
        let whole_end = if by_lines {
            self.page.line_end(end)
        } else {
            end
        };
        let head_end = self.page.line_end(entry.head);
        let newline = self.page.newline;
        let rest: String = value.rest.iter().flat_map(|line| [newline, line]).collect();
        let first = match value.first.as_str() {
            "" => String::new(),
            first => format!(" {first}"),
        };
        if start == end {
            let blank = self.page.slice(entry.head..head_end).trim().is_empty();
            let until = if blank { head_end } else { entry.head };
            splices.replace(entry.head..until, first);
            splices.insert(head_end, rest);
        } else if start <= head_end && !value.first.is_empty() {
            splices.replace(start..whole_end, value.first.clone());
            splices.insert(self.page.line_end(end), rest);
        } else if start <= head_end {
            splices.remove(entry.head..whole_end);
            splices.insert(self.page.line_end(end), rest);
        } else {
            splices.insert(entry.head, first);
            splices.replace(head_end..whole_end, rest);
        }
    }

    /// Writes the whole document anew.
    fn replace_root(&self, splices: &mut Splices) -> Result<(), EditError> {
        let root = self.source.places.first();
        let (start, end) = root.map_or((0, 0), |root| (root.start, root.end));
        let newline = self.page.newline;
        let value = match self.is_emptied(self.tree.root) {
            true => self.fresh(self.tree.root, Under::Root, Quotes::AsNeeded)?,
            false => self.block(self.tree.root, Under::Root, quotes(root))?,
        };
        let mut text = value.first;
        text.extend(value.rest.iter().flat_map(|line| [newline, line]));
        if start < end {
            let by_lines = matches!(
                root,
                Some(Place {
                    shape: Shape::Lines(_),
                    ..
                })
            );
            let end = if by_lines {
                self.page.line_end(end)
            } else {
                end
            };
            let alone = self.is_at_line_start(start);
            let lead = if alone || !text.contains('\n') {
                ""
            } else {
                newline
            };
            let start = if alone {
                self.page.lines.start(start)
            } else {
                start
            };
            splices.replace(start..end, format!("{lead}{text}"));
            return Ok(());
        }
        let all = self.page.text;
        let lead = match all.is_empty() || all.ends_with('\n') {
            true => "",
            false => newline,
        };
        splices.insert(all.len(), format!("{lead}{text}{newline}"));
        Ok(())
    }

    /// Whether a value is in brackets, on one line, and has something in them.
    fn is_short(&self, place: Option<&Place>) -> bool {
        place.is_some_and(|place| {
            let text = self.page.slice(place.start..place.end);
            matches!(&place.shape, Shape::Brackets(brackets) if !brackets.entries.is_empty())
                && !text.contains('\n')
        })
    }

    /// What stands under a dash or a key is put there.
    pub(super) fn under(&self, block: &Block, entry: &Entry, mapping: bool) -> Under {
        if mapping {
            return Under::Key(block.column);
        }
        let old = self.source.places.get(entry.value);
        let beside =
            old.filter(|old| old.start < old.end && old.start <= self.page.line_end(entry.head));
        Under::Dash(match beside {
            Some(old) => old.start - self.page.lines.start(old.start),
            None => block.column + 2,
        })
    }

    /// The value of an entry that stays.
    pub(super) fn keep(
        &self,
        block: &Block,
        entry: &Entry,
        slot: Slot,
        mapping: bool,
        splices: &mut Splices,
    ) -> Result<(), EditError> {
        let same = self.tree.node(slot.node).source == Some(entry.value);
        let emptied = self.is_emptied(slot.node);
        if same && !emptied {
            return self.change(slot.node, splices);
        }
        let under = self.under(block, entry, mapping);
        let old = self.source.places.get(entry.value);
        let value = match emptied {
            true => self.fresh(slot.node, under, Quotes::AsNeeded)?,
            // What stood in brackets stays in them.
            false if self.is_short(old) && !self.tree.children(slot.node).is_empty() => Rendered {
                first: self.flow(slot.node, Quotes::AsNeeded)?,
                rest: Vec::new(),
            },
            false => self.block(slot.node, under, quotes(old))?,
        };
        self.replace_value(entry, &value, splices);
        Ok(())
    }
}

/// How a text should be quoted that takes the place of another.
fn quotes(old: Option<&Place>) -> Quotes {
    match old.map(|old| &old.shape) {
        Some(Shape::SingleQuoted) => Quotes::Single,
        Some(Shape::DoubleQuoted) => Quotes::Double,
        _ => Quotes::AsNeeded,
    }
}
