//! The text of values that are new in a YAML document, or stand elsewhere.

use super::read::{Place, Shape};
use super::scalar::{Quotes, literal, written};
use super::write::Writer;
use crate::edit::EditError;
use crate::edit::structured::Format;
use crate::edit::structured::splice::Splices;
use crate::edit::structured::tree::{Data, NodeId};

/// Behind what a value is put.
#[derive(Clone, Copy, Debug)]
pub(super) enum Under {
    /// Behind a key of a mapping that is indented so far.
    Key(usize),
    /// Behind a dash; the value itself is indented so far.
    Dash(usize),
    /// Nothing: it is the whole document.
    Root,
}

/// A value by lines.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    /// What stands behind the key or the dash.
    pub(super) first: String,
    /// The lines that follow, indented.
    pub(super) rest: Vec<String>,
}

impl Rendered {
    fn line(first: String) -> Self {
        Self {
            first,
            rest: Vec::new(),
        }
    }
}

pub(super) const LOST_COMMENTS: EditError = EditError::NotExact {
    format: Format::Yaml,
    why: "comments that belong to a value would be lost where it goes",
};

impl Writer<'_> {
    /// A value that stands by lines.
    pub(super) fn block(
        &self,
        id: NodeId,
        under: Under,
        quotes: Quotes,
    ) -> Result<Rendered, EditError> {
        if let Some(text) = self.as_it_was(id)? {
            return Ok(Rendered::line(text));
        }
        self.refuse_comments(id)?;
        self.fresh(id, under, quotes)
    }

    /// A value that stands by lines, from what it says.
    pub(super) fn fresh(
        &self,
        id: NodeId,
        under: Under,
        quotes: Quotes,
    ) -> Result<Rendered, EditError> {
        let data = &self.tree.node(id).data;
        let mapping = matches!(data, Data::Mapping(_));
        match data {
            Data::Mapping(mapping) if mapping.len() == 0 => Ok(Rendered::line("{}".to_owned())),
            Data::Sequence(slots) if slots.is_empty() => Ok(Rendered::line("[]".to_owned())),
            Data::Mapping(_) | Data::Sequence(_) => {
                let column = match under {
                    Under::Key(column) if mapping => column + self.style.unit,
                    Under::Key(column) => column + self.style.sequence,
                    Under::Dash(column) => column,
                    Under::Root => 0,
                };
                let mut rest = self.block_lines(id, column)?;
                let first = match under {
                    Under::Key(_) => String::new(),
                    _ if rest.is_empty() => String::new(),
                    _ => rest.remove(0).trim_start().to_owned(),
                };
                Ok(Rendered { first, rest })
            }
            Data::Text(text) => {
                // At the end of a file without a last line end, readers disagree
                // on what a block says.
                let blocks = self.style.ended && quotes == Quotes::AsNeeded;
                let lines = literal(text).filter(|_| blocks);
                let Some((mark, lines)) = lines else {
                    return Ok(Rendered::line(written(text, quotes, false)));
                };
                let column = match under {
                    Under::Key(column) => column + self.style.unit,
                    Under::Dash(column) => column,
                    Under::Root => self.style.unit,
                };
                let indented = |line: &str| match line {
                    "" => String::new(),
                    line => format!("{:column$}{line}", ""),
                };
                Ok(Rendered {
                    first: mark.to_owned(),
                    rest: lines.into_iter().map(indented).collect(),
                })
            }
            _ => Ok(Rendered::line(self.simple(id))),
        }
    }

    /// The entries of a new container.
    fn block_lines(&self, id: NodeId, column: usize) -> Result<Vec<String>, EditError> {
        let mut lines = Vec::new();
        let mut push = |head: String, value: Rendered| {
            lines.push(match value.first.as_str() {
                "" => head,
                first => format!("{head} {first}"),
            });
            lines.extend(value.rest);
        };
        match &self.tree.node(id).data {
            Data::Mapping(mapping) => {
                for (key, slot) in mapping.ordered() {
                    let head = format!("{:column$}{}:", "", self.key(key, false));
                    push(
                        head,
                        self.block(slot.node, Under::Key(column), Quotes::AsNeeded)?,
                    );
                }
            }
            Data::Sequence(slots) => {
                for slot in slots {
                    let head = format!("{:column$}-", "");
                    push(
                        head,
                        self.block(slot.node, Under::Dash(column + 2), Quotes::AsNeeded)?,
                    );
                }
            }
            _ => {}
        }
        Ok(lines)
    }

    /// A value on one line, as it stands between brackets.
    pub(super) fn flow(&self, id: NodeId, quotes: Quotes) -> Result<String, EditError> {
        if let Some(text) = self.as_it_was(id)? {
            let plain = matches!(
                self.place(id),
                Some(Place {
                    shape: Shape::Plain,
                    ..
                })
            );
            let data = &self.tree.node(id).data;
            return Ok(match data {
                Data::Text(said) if plain => written(said, Quotes::AsNeeded, true),
                _ => text,
            });
        }
        self.refuse_comments(id)?;
        Ok(match &self.tree.node(id).data {
            Data::Mapping(mapping) => {
                let mut entries = Vec::with_capacity(mapping.len());
                for (key, slot) in mapping.ordered() {
                    let value = self.flow(slot.node, Quotes::AsNeeded)?;
                    entries.push(format!("{}: {value}", self.key(key, true)));
                }
                format!("{{{}}}", entries.join(", "))
            }
            Data::Sequence(slots) => {
                let mut entries = Vec::with_capacity(slots.len());
                for slot in slots {
                    entries.push(self.flow(slot.node, Quotes::AsNeeded)?);
                }
                format!("[{}]", entries.join(", "))
            }
            Data::Text(text) => written(text, quotes, true),
            _ => self.simple(id),
        })
    }

    pub(super) fn key(&self, key: &str, in_brackets: bool) -> String {
        written(key, Quotes::AsNeeded, in_brackets)
    }

    /// A value that is neither a text nor a container.
    fn simple(&self, id: NodeId) -> String {
        match &self.tree.node(id).data {
            Data::Bool(value) => value.to_string(),
            Data::Number(text) | Data::Special(text) => text.clone(),
            _ => "null".to_owned(),
        }
    }

    /// A value of the text that fits on one line, as it is written there.
    fn as_it_was(&self, id: NodeId) -> Result<Option<String>, EditError> {
        let Some(place) = self.place(id).filter(|place| place.start < place.end) else {
            return Ok(None);
        };
        let whole = place.start..place.end;
        let text = match place.shape {
            Shape::Literal | Shape::Lines(_) => None,
            Shape::Brackets(_) => {
                let mut splices = Splices::default();
                self.change(id, &mut splices)?;
                splices.apply(self.page.text, whole)
            }
            _ => Some(self.page.slice(whole).to_owned()),
        };
        Ok(text.filter(|text| !text.contains('\n')))
    }

    /// Refuses to write a value anew that has comments in it.
    fn refuse_comments(&self, id: NodeId) -> Result<(), EditError> {
        match self.place(id) {
            Some(place) if self.source.gaps.has_comment(place.start..place.end) => {
                Err(LOST_COMMENTS)
            }
            _ => Ok(()),
        }
    }
}
