//! Reading JSON, without recursion.

use super::scalar;
use crate::edit::EditError;
use crate::edit::lines::Lines;
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Entry};
use crate::edit::structured::tree::{DEEPEST, Data, Mapping, NodeId, Slot, Tree};

/// Where everything stands in a JSON text.
pub(in crate::edit::structured) struct Source {
    pub(super) lines: Lines,
    /// For each value of the tree where it stands.
    pub(super) places: Vec<Place>,
}

/// Where a value stands.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) brackets: Option<Box<Brackets>>,
}

/// A container that has not been closed yet.
struct Open {
    id: NodeId,
    mapping: bool,
    brackets: Brackets,
    /// The keys of its entries.
    keys: Vec<String>,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    lines: Lines,
    tree: Tree,
    places: Vec<Place>,
    open: Vec<Open>,
}

/// What a text says, and where.
pub(in crate::edit::structured) fn read(text: &str) -> Result<(Tree, Source), EditError> {
    let mut reader = Reader {
        text,
        at: 0,
        lines: Lines::of(text.as_bytes()),
        tree: Tree::default(),
        places: Vec::new(),
        open: Vec::new(),
    };
    reader.read()?;
    let source = Source {
        lines: reader.lines,
        places: reader.places,
    };
    Ok((reader.tree, source))
}

impl Reader<'_> {
    fn refuse(&self, at: usize, why: &str) -> EditError {
        EditError::Syntax {
            format: Format::Json,
            why: why.to_owned(),
            line: self.lines.number(at),
            column: self.lines.column(self.text, at),
        }
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Passes over white space and comments.
    fn skip(&mut self) -> Result<(), EditError> {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n']);
            let blank = rest.len() - trimmed.len();
            let comment = if trimmed.starts_with("//") {
                trimmed.find('\n').unwrap_or(trimmed.len())
            } else if let Some(inside) = trimmed.strip_prefix("/*") {
                let end = inside.find("*/");
                let end = end.ok_or_else(|| self.refuse(self.at + blank, "a comment does not end"));
                end? + 4
            } else {
                self.at += blank;
                return Ok(());
            };
            self.at += blank + comment;
        }
    }

    fn read(&mut self) -> Result<(), EditError> {
        self.skip()?;
        if self.next().is_none() {
            return Err(self.refuse(self.at, "it is empty"));
        }
        self.value()?;
        while let Some(open) = self.open.last() {
            let (mapping, id) = (open.mapping, open.id);
            self.skip()?;
            match (self.next(), mapping) {
                (Some(b'}'), true) | (Some(b']'), false) => self.close(id)?,
                (Some(b','), _) => self.comma()?,
                (None, _) => return Err(self.refuse(self.at, "a bracket is not closed")),
                _ if self.expects_comma() => {
                    return Err(self.refuse(self.at, "there should be a comma or a bracket"));
                }
                (Some(b'"'), true) => self.entry()?,
                (_, true) => return Err(self.refuse(self.at, "there should be a key in quotes")),
                (_, false) => {
                    let start = self.at;
                    self.begin_entry(start, start, None);
                    self.value()?;
                }
            }
        }
        self.skip()?;
        match self.next() {
            None => Ok(()),
            Some(_) => Err(self.refuse(self.at, "something follows the value")),
        }
    }

    /// Whether the last entry has no comma yet.
    fn expects_comma(&self) -> bool {
        let last = self
            .open
            .last()
            .and_then(|open| open.brackets.entries.last());
        last.is_some_and(|entry| entry.comma.is_none())
    }

    fn comma(&mut self) -> Result<(), EditError> {
        if !self.expects_comma() {
            return Err(self.refuse(self.at, "a comma stands where a value should"));
        }
        let at = self.at;
        let open = self.open.last_mut();
        if let Some(entry) = open.and_then(|open| open.brackets.entries.last_mut()) {
            entry.comma = Some(at);
        }
        self.at += 1;
        Ok(())
    }

    /// A key with its colon and its value.
    fn entry(&mut self) -> Result<(), EditError> {
        let start = self.at;
        let (end, key) = self.string()?;
        let Some(key) = key else {
            return Err(self.refuse(start, "half of a surrogate pair stands in a key"));
        };
        self.at = end;
        self.skip()?;
        if self.next() != Some(b':') {
            return Err(self.refuse(self.at, "there should be a colon"));
        }
        self.at += 1;
        let head = self.at;
        self.skip()?;
        self.begin_entry(start, head, Some(key));
        self.value()
    }

    fn begin_entry(&mut self, start: usize, head: usize, key: Option<String>) {
        let value = self.tree.len();
        if let Some(open) = self.open.last_mut() {
            open.keys.extend(key);
            open.brackets.entries.push(Entry {
                start,
                head,
                end: head,
                comma: None,
                value,
            });
        }
    }

    fn string(&self) -> Result<(usize, Option<String>), EditError> {
        let (length, text) = scalar::string(self.rest())
            .map_err(|(ahead, why)| self.refuse(self.at + ahead, why))?;
        Ok((self.at + length, text))
    }

    /// A value, or the beginning of a container.
    fn value(&mut self) -> Result<(), EditError> {
        let start = self.at;
        let (end, data) = match self.next() {
            Some(bracket @ (b'{' | b'[')) => return self.begin(bracket == b'{'),
            Some(b'"') => {
                let (end, text) = self.string()?;
                let raw = || self.text.get(start..end).unwrap_or_default().to_owned();
                (end, text.map_or_else(|| Data::Special(raw()), Data::Text))
            }
            Some(b'-' | b'0'..=b'9') => {
                let length = scalar::number(self.rest());
                let length =
                    length.ok_or_else(|| self.refuse(start, "a number is not complete"))?;
                let number = self.text.get(start..start + length).unwrap_or_default();
                (start + length, Data::Number(number.to_owned()))
            }
            _ => self.word()?,
        };
        self.at = end;
        let id = self.tree.add_source(data)?;
        self.places.push(Place {
            start,
            end,
            brackets: None,
        });
        debug_assert_eq!(id + 1, self.places.len());
        self.end_entry(end);
        Ok(())
    }

    fn word(&self) -> Result<(usize, Data), EditError> {
        let rest = self.rest();
        let words = [
            ("null", Data::Null),
            ("true", Data::Bool(true)),
            ("false", Data::Bool(false)),
        ];
        for (word, data) in words {
            if rest.starts_with(word) {
                return Ok((self.at + word.len(), data));
            }
        }
        Err(self.refuse(self.at, "there should be a value"))
    }

    fn begin(&mut self, mapping: bool) -> Result<(), EditError> {
        if self.open.len() == DEEPEST {
            return Err(EditError::TooDeep {
                what: "the document",
                most: DEEPEST,
            });
        }
        // What is in it comes with its end.
        let id = self.tree.add_source(Data::Null)?;
        self.places.push(Place {
            start: self.at,
            ..Place::default()
        });
        self.open.push(Open {
            id,
            mapping,
            brackets: Brackets {
                open: self.at,
                ..Brackets::default()
            },
            keys: Vec::new(),
        });
        self.at += 1;
        Ok(())
    }

    fn close(&mut self, id: NodeId) -> Result<(), EditError> {
        let Some(mut open) = self.open.pop() else {
            return Ok(());
        };
        open.brackets.close = self.at;
        self.at += 1;
        let entries = open.brackets.entries.iter().enumerate();
        let slots = entries.map(|(number, entry)| Slot::of_text(entry.value, number));
        let data = if open.mapping {
            let mut mapping = Mapping::default();
            for (slot, key) in slots.zip(&open.keys) {
                if let Some(first) = mapping.get(key) {
                    return Err(self.duplicate(&open.brackets, key, first, &slot));
                }
                mapping.insert(key, slot);
            }
            Data::Mapping(Box::new(mapping))
        } else {
            Data::Sequence(slots.collect())
        };
        if let Some(node) = self.tree.node_mut(id) {
            node.data = data;
        }
        if let Some(place) = self.places.get_mut(id) {
            place.end = self.at;
            place.brackets = Some(Box::new(open.brackets));
        }
        self.end_entry(self.at);
        Ok(())
    }

    fn duplicate(&self, brackets: &Brackets, key: &str, first: &Slot, second: &Slot) -> EditError {
        let line = |slot: &Slot| {
            let entry = slot.entry.and_then(|entry| brackets.entries.get(entry));
            entry.map_or(0, |entry| self.lines.number(entry.start))
        };
        EditError::DuplicateKey {
            format: Format::Json,
            key: crate::edit::lines::shown(key.as_bytes()),
            first: line(first),
            line: line(second),
        }
    }

    fn end_entry(&mut self, end: usize) {
        let open = self.open.last_mut();
        if let Some(entry) = open.and_then(|open| open.brackets.entries.last_mut()) {
            entry.end = end;
        }
    }
}
