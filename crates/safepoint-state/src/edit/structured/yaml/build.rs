//! Putting together what the YAML parser found and what stands in the gaps.

use std::ops::Range;

use granit_parser::ScalarStyle;

use super::gaps::Gaps;
use super::read::{Block, Kind, Place, Reader, Shape};
use super::scalar::resolved;
use crate::edit::EditError;
use crate::edit::lines::shown;
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Entry};
use crate::edit::structured::tree::{Data, Mapping, Mark, NodeId, Slot, Tree};

/// The tree and the places of its values; nothing when the marks in the gaps do
/// not fit to what the parser found.
pub(super) fn build(
    reader: &Reader<'_>,
    gaps: &Gaps,
) -> Result<Option<(Tree, Vec<Place>)>, EditError> {
    let mut builder = Builder {
        reader,
        gaps,
        tree: Tree::default(),
        places: Vec::new(),
        dashes: 0,
        headers: 0,
    };
    for _ in &reader.found {
        builder.places.push(Place::default());
        builder.tree.add_source(Data::Null)?;
    }
    builder.value(0)?;
    let all = builder.dashes == gaps.dashes.len() && builder.headers == gaps.headers.len();
    Ok(all.then_some((builder.tree, builder.places)))
}

/// A tree as far as it is built. It recurses as deep as the document, which is
/// limited.
struct Builder<'a> {
    reader: &'a Reader<'a>,
    gaps: &'a Gaps,
    tree: Tree,
    places: Vec<Place>,
    /// How many dashes and headers of blocks have been taken: they come in the
    /// same order as what they belong to.
    dashes: usize,
    headers: usize,
}

impl<'a> Builder<'a> {
    fn set(&mut self, id: NodeId, data: Data, place: Place) {
        if let Some(node) = self.tree.node_mut(id) {
            node.data = data;
        }
        if let Some(slot) = self.places.get_mut(id) {
            *slot = place;
        }
    }

    fn place(&self, id: NodeId) -> Range<usize> {
        self.places
            .get(id)
            .map_or(0..0, |place| place.start..place.end)
    }

    /// Places a value with everything in it.
    fn value(&mut self, id: NodeId) -> Result<(), EditError> {
        let Some(found) = self.reader.found.get(id) else {
            return Ok(());
        };
        let span = found.span.clone();
        match &found.kind {
            Kind::Alias => {
                let name = self.reader.text.get(span.clone()).unwrap_or_default();
                let place = Place {
                    start: span.start,
                    end: span.end,
                    shape: Shape::Alias,
                };
                self.set(id, Data::Special(name.to_owned()), place);
                Ok(())
            }
            Kind::Scalar(text, style, tag) => {
                let place = self.scalar_place(span, *style);
                let data = match (tag, style) {
                    (Some(tag), _) => Data::Special(format!("{tag} {text}")),
                    (None, ScalarStyle::Plain) if place.start == place.end => Data::Null,
                    (None, ScalarStyle::Plain) => resolved(text),
                    _ => Data::Text(text.clone()),
                };
                self.set(id, data, place);
                Ok(())
            }
            Kind::Collection {
                mapping,
                flow,
                children,
            } => match (mapping, flow) {
                (true, _) => self.mapping(id, span, children, *flow),
                (false, _) => self.sequence(id, span, children, *flow),
            },
        }
    }

    fn scalar_place(&mut self, span: Range<usize>, style: ScalarStyle) -> Place {
        let shape = match style {
            ScalarStyle::SingleQuoted => Shape::SingleQuoted,
            ScalarStyle::DoubleQuoted => Shape::DoubleQuoted,
            ScalarStyle::Literal | ScalarStyle::Folded => Shape::Literal,
            _ => Shape::Plain,
        };
        let Shape::Literal = shape else {
            return Place {
                start: span.start,
                end: span.end,
                shape,
            };
        };
        let header = self.gaps.headers.get(self.headers).cloned();
        self.headers += 1;
        let header = header.unwrap_or(span.start..span.start);
        let text = self.reader.text;
        let body = text.get(header.end..span.end).unwrap_or_default();
        let kept = text
            .get(header.clone())
            .is_some_and(|mark| mark.contains('+'));
        let body = body.trim_end_matches([' ', '\t']);
        let body = match kept {
            // Empty lines at the end are part of it, without the last line end.
            true => body.strip_suffix('\n').unwrap_or(body),
            false => body.trim_end_matches([' ', '\t', '\r', '\n']),
        };
        let body = body.strip_suffix('\r').unwrap_or(body);
        let end = header.end + body.len();
        // Blanks at the end of its last line are part of it as well.
        let rest = text.get(end..span.end.max(end)).unwrap_or_default();
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        Place {
            start: header.start,
            end: if kept { end } else { end + blanks },
            shape,
        }
    }

    fn sequence(
        &mut self,
        id: NodeId,
        span: Range<usize>,
        children: &[NodeId],
        flow: bool,
    ) -> Result<(), EditError> {
        let mut entries = Vec::with_capacity(children.len());
        let mut slots = Vec::with_capacity(children.len());
        for (number, child) in children.iter().enumerate() {
            let mark = match flow {
                true => None,
                false => {
                    self.dashes += 1;
                    self.gaps.dashes.get(self.dashes - 1).copied()
                }
            };
            self.value(*child)?;
            let head = mark.map(|dash| dash + 1);
            let value = self.fill(*child, head);
            entries.push(Entry {
                start: mark.unwrap_or(value.start),
                head: head.unwrap_or(value.start),
                end: value.end,
                comma: None,
                value: *child,
            });
            slots.push(Slot::of_text(*child, number));
        }
        self.close(id, span, entries, flow, Data::Sequence(slots));
        Ok(())
    }

    /// Gives an empty value its place. It says where the value stands.
    fn fill(&mut self, id: NodeId, head: Option<usize>) -> Range<usize> {
        if let (Some(place), Some(head)) = (self.places.get_mut(id), head)
            && place.start == place.end
            && place.start <= head
        {
            (place.start, place.end) = (head, head);
        }
        self.place(id)
    }

    fn mapping(
        &mut self,
        id: NodeId,
        span: Range<usize>,
        children: &[NodeId],
        flow: bool,
    ) -> Result<(), EditError> {
        let mut entries: Vec<Entry> = Vec::with_capacity(children.len() / 2);
        let mut mapping = Mapping::default();
        for pair in children.chunks(2) {
            let (Some(key), Some(child)) = (pair.first(), pair.get(1)) else {
                continue;
            };
            let key = self.key(*key)?;
            let head = self.gaps.colon(key.span.end).map(|colon| colon + 1);
            if head.is_none() || key.complex {
                self.mark(id, Mark::ComplexKey, key.span.start);
            } else if key.merges {
                self.mark(id, Mark::MergeKey, key.span.start);
            }
            self.value(*child)?;
            let value = self.fill(*child, head.or(Some(key.span.end)));
            let entry = Entry {
                start: key.span.start,
                head: head.unwrap_or(key.span.end),
                end: value.end,
                comma: None,
                value: *child,
            };
            if let Some(first) = mapping.get(key.text) {
                let first = first.entry.and_then(|first| entries.get(first));
                return Err(EditError::DuplicateKey {
                    format: Format::Yaml,
                    key: shown(key.text.as_bytes()),
                    first: first.map_or(0, |first| self.reader.lines.number(first.start)),
                    line: self.reader.lines.number(entry.start),
                });
            }
            mapping.insert(key.text, Slot::of_text(*child, entries.len()));
            entries.push(entry);
        }
        self.close(id, span, entries, flow, Data::Mapping(Box::new(mapping)));
        Ok(())
    }

    fn mark(&mut self, id: NodeId, mark: Mark, at: usize) {
        self.tree.set_mark(id, mark, self.reader.lines.number(at));
    }

    fn key(&self, key: NodeId) -> Result<Key<'a>, EditError> {
        let complex = "there is a key that is itself a list, a mapping or an alias";
        let Some(found) = self.reader.found.get(key) else {
            return Err(self.reader.obstacle(complex, 0));
        };
        let span = found.span.clone();
        let Kind::Scalar(text, style, _) = &found.kind else {
            // Nothing below it could be counted any more.
            return Err(self.reader.obstacle(complex, span.start));
        };
        // The marks come in the order of the values.
        let marks = &self.reader.marks;
        let marked = marks
            .binary_search_by_key(&key, |(marked, _)| *marked)
            .is_ok();
        let odd = marked || span.is_empty() || self.gaps.is_asked(span.start);
        let block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        if block {
            return Err(self.reader.obstacle(complex, span.start));
        }
        Ok(Key {
            text,
            complex: odd,
            merges: *style == ScalarStyle::Plain && text == "<<",
            span,
        })
    }

    fn close(
        &mut self,
        id: NodeId,
        span: Range<usize>,
        mut entries: Vec<Entry>,
        flow: bool,
        data: Data,
    ) {
        if flow {
            for entry in &mut entries {
                entry.comma = self.gaps.comma(entry.end);
            }
            let brackets = Brackets {
                open: span.start,
                close: span.end.saturating_sub(1),
                entries,
            };
            let place = Place {
                start: span.start,
                end: span.end,
                shape: Shape::Brackets(Box::new(brackets)),
            };
            return self.set(id, data, place);
        }
        let start = entries.first().map_or(span.start, |entry| entry.start);
        let end = entries.last().map_or(span.start, |entry| entry.end);
        let column = start - self.reader.lines.start(start);
        let place = Place {
            start,
            end,
            shape: Shape::Lines(Box::new(Block { column, entries })),
        };
        self.set(id, data, place);
    }
}

/// A key as it was found.
struct Key<'a> {
    text: &'a str,
    span: Range<usize>,
    /// Whether it is written in a way that is not changed.
    complex: bool,
    /// Whether it is `<<`.
    merges: bool,
}
