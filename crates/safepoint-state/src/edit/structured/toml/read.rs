//! Reading TOML.

use std::ops::Range;

use toml_edit::{Document, InlineTable, Item, Key, Table, Value};

use crate::edit::EditError;
use crate::edit::lines::{Lines, shown};
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Entry};
use crate::edit::structured::tree::{Data, Mapping, Mark, NodeId, Slot, Tree};

/// How deep the parser goes.
const PARSER_DEEPEST: usize = 80;

/// Where everything stands in a TOML text.
pub(in crate::edit::structured) struct Source {
    pub(super) lines: Lines,
    /// For each value of the tree where it stands.
    pub(super) places: Vec<Place>,
    /// The parts of the text that a header begins, in order. The first has none.
    pub(super) sections: Vec<Section>,
    /// The values that have a line of their own, by their places.
    pub(super) pairs: Vec<Pair>,
}

/// Where a value stands.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) shape: Shape,
    /// The first value that is not part of this one. All before it are.
    pub(super) beyond: NodeId,
    /// The values directly in it, as they were, in rising order.
    pub(super) children: Vec<NodeId>,
    /// Its section, if a header begins one.
    pub(super) section: Option<usize>,
    /// Its line, if it has one of its own.
    pub(super) pair: Option<usize>,
}

/// How a value is written.
#[derive(Debug, Default)]
pub(super) enum Shape {
    /// As a value.
    #[default]
    Value,
    /// As an array or an inline table.
    Brackets(Box<Brackets>),
    /// As a table with a header.
    Section,
    /// As a table that has keys with dots and no header.
    Dotted,
    /// As a table that has nothing but other tables in it.
    Implied,
    /// As tables with double brackets.
    Tables,
}

/// What a header begins.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) node: NodeId,
    /// The header; nothing at the top of the file.
    pub(super) header: Range<usize>,
}

/// A key with its value on a line.
#[derive(Debug)]
pub(super) struct Pair {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) node: NodeId,
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines,
    tree: Tree,
    places: Vec<Place>,
    sections: Vec<Section>,
    pairs: Vec<Pair>,
}

/// What a text says, and where.
pub(in crate::edit::structured) fn read(text: &str) -> Result<(Tree, Source), EditError> {
    let lines = Lines::of(text.as_bytes());
    let document = Document::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        // The parser tells this by its words alone.
        if error.message().contains("recurs") {
            return EditError::TooDeep {
                what: "the document",
                most: PARSER_DEEPEST,
            };
        }
        EditError::Syntax {
            format: Format::Toml,
            why: shown(error.message().as_bytes()),
            line: lines.number(at),
            column: lines.column(text, at),
        }
    })?;
    let mut reader = Reader {
        text,
        lines,
        tree: Tree::default(),
        places: Vec::new(),
        sections: Vec::new(),
        pairs: Vec::new(),
    };
    reader.table(document.as_table())?;
    reader.sections.sort_by_key(|section| section.header.start);
    reader.pairs.sort_by_key(|pair| pair.start);
    for (number, section) in reader.sections.iter().enumerate() {
        if let Some(place) = reader.places.get_mut(section.node) {
            place.section = Some(number);
        }
    }
    for (number, pair) in reader.pairs.iter().enumerate() {
        if let Some(place) = reader.places.get_mut(pair.node) {
            place.pair = Some(number);
        }
    }
    let source = Source {
        lines: reader.lines,
        places: reader.places,
        sections: reader.sections,
        pairs: reader.pairs,
    };
    Ok((reader.tree, source))
}

impl Reader<'_> {
    fn begin(&mut self) -> Result<NodeId, EditError> {
        self.places.push(Place::default());
        self.tree.add_source(Data::Null)
    }

    fn end(&mut self, id: NodeId, data: Data, span: Option<Range<usize>>, shape: Shape) {
        let span = span.unwrap_or_default();
        let children = match &data {
            Data::Sequence(slots) => slots.iter().map(|slot| slot.node).collect(),
            Data::Mapping(mapping) => {
                let slots = mapping.ordered().into_iter();
                slots.map(|(_, slot)| slot.node).collect()
            }
            _ => Vec::new(),
        };
        let beyond = self.places.len();
        if let Some(node) = self.tree.node_mut(id) {
            node.data = data;
        }
        if let Some(place) = self.places.get_mut(id) {
            *place = Place {
                start: span.start,
                end: span.end,
                shape,
                beyond,
                children,
                section: None,
                pair: None,
            };
        }
    }

    /// A table that is written by lines. The parser limits how deep these go.
    fn table(&mut self, table: &Table) -> Result<NodeId, EditError> {
        let id = self.begin()?;
        let shape = if table.is_dotted() {
            Shape::Dotted
        } else if table.is_implicit() {
            Shape::Implied
        } else {
            self.sections.push(Section {
                node: id,
                header: table.span().unwrap_or_default(),
            });
            Shape::Section
        };
        let mut mapping = Mapping::default();
        for (name, item) in table.iter() {
            let node = match item {
                Item::None => continue,
                Item::Value(value) => {
                    let node = self.value(value)?;
                    self.pair(table.key(name), node);
                    node
                }
                Item::Table(table) => self.table(table)?,
                Item::ArrayOfTables(tables) => {
                    let list = self.begin()?;
                    let mut slots = Vec::with_capacity(tables.len());
                    for table in tables {
                        let number = slots.len();
                        slots.push(Slot::of_text(self.table(table)?, number));
                    }
                    self.end(list, Data::Sequence(slots), tables.span(), Shape::Tables);
                    list
                }
            };
            mapping.insert(name, Slot::of_text(node, mapping.len()));
        }
        self.end(id, Data::Mapping(Box::new(mapping)), table.span(), shape);
        Ok(id)
    }

    /// Notes the line on which a value stands.
    fn pair(&mut self, key: Option<&Key>, node: NodeId) {
        let at = key.and_then(Key::span).map_or(0, |span| span.start);
        let line = self.lines.start(at);
        let before = self.text.get(line..at).unwrap_or_default();
        let blank = before.len() - before.trim_start_matches([' ', '\t']).len();
        let end = self.places.get(node).map_or(at, |place| place.end);
        self.pairs.push(Pair {
            start: line + blank,
            end,
            node,
        });
    }

    fn value(&mut self, value: &Value) -> Result<NodeId, EditError> {
        let id = self.begin()?;
        let span = value.span();
        let text = span.clone().and_then(|span| self.text.get(span));
        let text = text.unwrap_or_default();
        let data = match value {
            Value::String(string) => Data::Text(string.value().clone()),
            Value::Integer(integer) => Data::Number(integer.value().to_string()),
            Value::Float(float) if float.value().is_finite() => Data::Number(text.replace('_', "")),
            Value::Float(_) | Value::Datetime(_) => Data::Special(text.to_owned()),
            Value::Boolean(boolean) => Data::Bool(*boolean.value()),
            Value::Array(array) => {
                let mut entries = Vec::with_capacity(array.len());
                let mut slots = Vec::with_capacity(array.len());
                for item in array.iter() {
                    let node = self.value(item)?;
                    let span = item.span().unwrap_or_default();
                    slots.push(Slot::of_text(node, entries.len()));
                    entries.push(Entry {
                        start: span.start,
                        head: span.start,
                        end: span.end,
                        comma: None,
                        value: node,
                    });
                }
                let shape = self.brackets(span.clone(), entries);
                self.end(id, Data::Sequence(slots), span, shape);
                return Ok(id);
            }
            Value::InlineTable(table) => {
                let (mapping, entries) = self.inline(id, table)?;
                let shape = self.brackets(span.clone(), entries);
                self.end(id, Data::Mapping(Box::new(mapping)), span, shape);
                return Ok(id);
            }
        };
        self.end(id, data, span, Shape::Value);
        Ok(id)
    }

    fn inline(
        &mut self,
        id: NodeId,
        table: &InlineTable,
    ) -> Result<(Mapping, Vec<Entry>), EditError> {
        let mut mapping = Mapping::default();
        let mut entries = Vec::with_capacity(table.len());
        for (name, value) in table.iter() {
            let node = self.value(value)?;
            let key = table.key(name).and_then(Key::span).unwrap_or_default();
            let value = value.span().unwrap_or_default();
            let sign = self.text.get(key.end..value.start).unwrap_or_default();
            // Keys with dots share their beginning, and have several places.
            let Some(sign) = sign.find('=') else {
                let line = self.lines.number(key.start);
                self.tree.set_mark(id, Mark::ComplexKey, line);
                mapping.insert(name, Slot::of_text(node, entries.len()));
                continue;
            };
            mapping.insert(name, Slot::of_text(node, entries.len()));
            entries.push(Entry {
                start: key.start,
                head: key.end + sign + 1,
                end: value.end,
                comma: None,
                value: node,
            });
        }
        Ok((mapping, entries))
    }

    fn brackets(&self, span: Option<Range<usize>>, mut entries: Vec<Entry>) -> Shape {
        let span = span.unwrap_or_default();
        let close = span.end.saturating_sub(1);
        let starts = entries.iter().skip(1).map(|entry| entry.start);
        let nexts: Vec<usize> = starts.chain([close]).collect();
        for (entry, next) in entries.iter_mut().zip(nexts) {
            entry.comma = self.comma(entry.end..next);
        }
        Shape::Brackets(Box::new(Brackets {
            open: span.start,
            close,
            entries,
        }))
    }

    /// The comma in a part that has only white space and comments otherwise.
    fn comma(&self, part: Range<usize>) -> Option<usize> {
        let mut comment = false;
        let text = self.text.get(part.clone())?;
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'\n' => comment = false,
                b'#' => comment = true,
                b',' if !comment => return Some(part.start + at),
                _ => {}
            }
        }
        None
    }
}
