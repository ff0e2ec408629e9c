//! Writing what changed into a JSON text, in its own style.

use super::read::{Place, Source};
use super::scalar::quoted;
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Page, Piece, Usual};
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId, Origin, Slot, Tree};

/// How the file is written, as far as new parts have to know it.
#[derive(Debug, PartialEq, Eq)]
struct Style<'a> {
    /// Whether there are lines at all.
    by_line: bool,
    /// One step of indentation.
    unit: &'a str,
    /// What stands between a key and its value.
    colon: &'a str,
    /// What stands between two entries on one line.
    comma: &'static str,
}

struct Writer<'a> {
    tree: &'a Tree,
    places: &'a [Place],
    page: Page<'a>,
    style: Style<'a>,
}

const NOT_EXACT: EditError = EditError::NotExact {
    format: Format::Json,
    why: "the changes overlap",
};

/// The text with what the tree has changed.
pub(in crate::edit::structured) fn write(
    text: &str,
    source: &Source,
    tree: &Tree,
) -> Result<String, EditError> {
    let page = Page {
        text,
        lines: &source.lines,
        newline: newline(text),
        block_comments: true,
    };
    let writer = Writer {
        tree,
        places: &source.places,
        style: style(&page, &source.places),
        page,
    };
    let root = writer.place(tree.root);
    let mut splices = Splices::default();
    match root {
        // The first value of the text is the whole of it.
        Some(_) if tree.node(tree.root).source == Some(0) => {
            writer.change(tree.root, &mut splices)?;
        }
        _ => {
            let all = source
                .places
                .first()
                .map_or(0..0, |root| root.start..root.end);
            splices.replace(all, writer.value(tree.root, "", writer.style.by_line)?);
        }
    }
    splices.apply(text, 0..text.len()).ok_or(NOT_EXACT)
}

/// How the first line of a text ends.
pub(in crate::edit::structured) fn newline(text: &str) -> &'static str {
    match text.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

fn style<'a>(page: &Page<'a>, places: &[Place]) -> Style<'a> {
    let brackets = || places.iter().filter_map(|place| place.brackets.as_deref());
    // The first entry that stands in a line of its own.
    let mut first = brackets().filter_map(|brackets| {
        let entry = brackets.entries.first()?;
        let lead = page.slice(brackets.open..entry.start);
        lead.contains('\n').then_some(())?;
        let (outer, inner) = (page.indent_at(brackets.open), page.indent_at(entry.start));
        inner.strip_prefix(outer).filter(|unit| !unit.is_empty())
    });
    let unit = first.next();
    let mut colons = brackets().flat_map(|brackets| {
        let mut pairs = brackets
            .entries
            .iter()
            .filter(|entry| entry.head > entry.start);
        pairs.next().map(|entry| {
            let before = page.slice(entry.start..entry.head).trim_end_matches(':');
            let before = before.trim_end().len() + entry.start;
            let value = places
                .get(entry.value)
                .map_or(entry.head, |place| place.start);
            page.slice(before..value)
        })
    });
    let colon = colons.find(|colon| colon.trim() == ":" && !colon.contains('\n'));
    let by_line =
        brackets().any(|brackets| page.slice(brackets.open..brackets.close).contains('\n'));
    Style {
        by_line,
        unit: unit.unwrap_or("  "),
        colon: colon.unwrap_or(": "),
        comma: match (by_line, colon) {
            (false, Some(":")) => ",",
            _ => ", ",
        },
    }
}

impl Writer<'_> {
    /// Where the value stood, if it is one of the text.
    fn place(&self, id: NodeId) -> Option<&Place> {
        self.places.get(self.tree.node(id).source?)
    }

    /// Changes a container where it stands in the text.
    fn change(&self, id: NodeId, splices: &mut Splices) -> Result<(), EditError> {
        let node = self.tree.node(id);
        let brackets = self.place(id).and_then(|place| place.brackets.as_deref());
        let (true, Some(brackets)) = (node.changed, brackets) else {
            return Ok(());
        };
        let slots: Vec<(Option<&str>, Slot)> = match &node.data {
            Data::Sequence(slots) => slots.iter().map(|slot| (None, *slot)).collect(),
            Data::Mapping(mapping) => {
                let slots = mapping.ordered().into_iter();
                slots.map(|(key, slot)| (Some(key), slot)).collect()
            }
            _ => return Ok(()),
        };
        let usual = Usual {
            by_line: self.style.by_line,
            unit: self.style.unit,
            gap: self.style.comma.trim_start_matches(','),
        };
        let layout = self.page.layout(brackets, &usual);
        let mut pieces = Vec::with_capacity(slots.len());
        for (key, slot) in slots {
            let entry = slot.entry.and_then(|entry| brackets.entries.get(entry));
            if let (Some(number), Some(entry)) = (slot.entry, entry) {
                if self.tree.node(slot.node).source == Some(entry.value) {
                    self.change(slot.node, splices)?;
                } else {
                    let start = self
                        .places
                        .get(entry.value)
                        .map_or(entry.head, |place| place.start);
                    let indent = self.page.indent_at(entry.start);
                    // What stood on one line stays on it.
                    let old = self.page.slice(start..entry.end);
                    let short = old.starts_with(['[', '{']) && old.len() > 2 && !old.contains('\n');
                    let by_line = self.style.by_line && layout.by_line && !short;
                    splices.replace(start..entry.end, self.value(slot.node, indent, by_line)?);
                }
                pieces.push(Piece::Kept(number));
                continue;
            }
            let value = self.value(slot.node, &layout.indent, layout.by_line)?;
            let (lead, tail) = self.carried(slot.origin, &layout.indent);
            let text = match key {
                Some(key) => format!("{}{}{value}", quoted(key), self.style.colon),
                None => value,
            };
            pieces.push(Piece::New { lead, text, tail });
        }
        self.page.rebuild(brackets, &layout, pieces, splices);
        Ok(())
    }

    /// The comments that come along with an entry that was moved.
    fn carried(&self, origin: Option<Origin>, indent: &str) -> (Option<String>, String) {
        let Some(origin) = origin.filter(|origin| origin.moved) else {
            return (None, String::new());
        };
        let brackets = self.places.get(origin.container);
        let Some(brackets) = brackets.and_then(|place| place.brackets.as_deref()) else {
            return (None, String::new());
        };
        let (lead, tail) = self.page.comments(brackets, origin.entry);
        if lead.is_empty() {
            return (None, tail.to_owned());
        }
        let mut moved = String::new();
        for (number, line) in lead.split('\n').enumerate() {
            if number > 0 {
                moved.push_str(self.page.newline);
                moved.push_str(indent);
            }
            moved.push_str(match number {
                0 => line.trim_end(),
                _ => line.trim(),
            });
        }
        (Some(moved), tail.to_owned())
    }

    /// The text of a value that is put somewhere, where lines begin with `indent`.
    fn value(&self, id: NodeId, indent: &str, by_line: bool) -> Result<String, EditError> {
        if let Some(place) = self.place(id) {
            let mut splices = Splices::default();
            self.change(id, &mut splices)?;
            let text = splices.apply(self.page.text, place.start..place.end);
            let old = self.page.indent_at(place.start);
            return Ok(shifted(&text.ok_or(NOT_EXACT)?, old, indent));
        }
        let inner = format!("{indent}{}", self.style.unit);
        let entries: Vec<String> = match &self.tree.node(id).data {
            Data::Null => return Ok("null".to_owned()),
            Data::Bool(value) => return Ok(value.to_string()),
            Data::Number(text) | Data::Special(text) => return Ok(text.clone()),
            Data::Text(text) => return Ok(quoted(text)),
            Data::Sequence(slots) => slots
                .iter()
                .map(|slot| self.value(slot.node, &inner, by_line))
                .collect::<Result<_, _>>()?,
            Data::Mapping(mapping) => mapping
                .ordered()
                .into_iter()
                .map(|(key, slot)| {
                    let value = self.value(slot.node, &inner, by_line)?;
                    Ok(format!("{}{}{value}", quoted(key), self.style.colon))
                })
                .collect::<Result<_, EditError>>()?,
        };
        let (open, close) = match &self.tree.node(id).data {
            Data::Mapping(_) => ('{', '}'),
            _ => ('[', ']'),
        };
        if entries.is_empty() || !by_line {
            return Ok(format!("{open}{}{close}", entries.join(self.style.comma)));
        }
        let newline = self.page.newline;
        let between = format!(",{newline}{inner}");
        Ok(format!(
            "{open}{newline}{inner}{}{newline}{indent}{close}",
            entries.join(&between)
        ))
    }
}

/// Lines that began with `old` begin with `new`.
fn shifted(text: &str, old: &str, new: &str) -> String {
    let mut output = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        match line.strip_prefix(old).filter(|_| number > 0) {
            Some(line) => {
                output.push_str(new);
                output.push_str(line);
            }
            None => output.push_str(line),
        }
    }
    output
}
