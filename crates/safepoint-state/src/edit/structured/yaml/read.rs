//! Reading YAML.

use std::ops::Range;

use granit_parser::{
    ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, options,
};

use super::build::build;
use super::gaps::Gaps;
use crate::edit::lines::{Lines, shown};
use crate::edit::structured::Format;
use crate::edit::structured::brackets::{Brackets, Entry};
use crate::edit::structured::tree::{DEEPEST, Mark, NodeId, Tree};
use crate::edit::{EditError, Place as Where};

/// Where everything stands in a YAML text.
pub(in crate::edit::structured) struct Source {
    pub(super) lines: Lines,
    pub(super) gaps: Gaps,
    /// For each value of the tree where it stands.
    pub(super) places: Vec<Place>,
}

/// Where a value stands. An empty one stands behind the mark of its entry.
#[derive(Debug, Default)]
pub(super) struct Place {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) shape: Shape,
}

/// How a value is written.
#[derive(Debug, Default)]
pub(super) enum Shape {
    #[default]
    Plain,
    SingleQuoted,
    DoubleQuoted,
    /// With `|` or `>`.
    Literal,
    Alias,
    Brackets(Box<Brackets>),
    /// A list or mapping by lines.
    Lines(Box<Block>),
}

/// A list or mapping that is written by lines.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// How far its entries are indented.
    pub(super) column: usize,
    /// Their keys begin where they begin, or their dashes.
    pub(super) entries: Vec<Entry>,
}

/// A value as the parser reports it.
pub(super) struct Found {
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

/// What it is.
pub(super) enum Kind {
    Scalar(String, ScalarStyle, Option<String>),
    Alias,
    Collection {
        mapping: bool,
        flow: bool,
        children: Vec<NodeId>,
    },
}

/// What a text says, and where.
pub(in crate::edit::structured) fn read(text: &str) -> Result<(Tree, Source), EditError> {
    let mut reader = Reader {
        text,
        lines: Lines::of(text.as_bytes()),
        found: Vec::new(),
        open: Vec::new(),
        values: Vec::new(),
        marks: Vec::new(),
        documents: 0,
    };
    reader.refuse_returns()?;
    reader.events()?;
    reader.finish()
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) lines: Lines,
    pub(super) found: Vec<Found>,
    open: Vec<NodeId>,
    /// The values and brackets, for finding what stands between them.
    values: Vec<Range<usize>>,
    pub(super) marks: Vec<(NodeId, Mark)>,
    documents: usize,
}

impl Reader<'_> {
    pub(super) fn obstacle(&self, why: &'static str, at: usize) -> EditError {
        EditError::Obstacle {
            place: Where {
                operation: None,
                pointer: String::new(),
            },
            why,
            line: self.lines.number(at),
        }
    }

    /// YAML takes a carriage return alone for a line end, and nobody else does.
    fn refuse_returns(&self) -> Result<(), EditError> {
        let bytes = self.text.as_bytes();
        let mut returns = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\r');
        match returns.find(|(at, _)| bytes.get(at + 1) != Some(&b'\n')) {
            Some((at, _)) => {
                Err(self.obstacle("there is a carriage return without a line feed", at))
            }
            None => Ok(()),
        }
    }

    /// Whether a block at the very end has a line end is read in two ways when
    /// the file has none.
    fn refuse_open_end(&self, gaps: &Gaps, places: &[Place]) -> Result<(), EditError> {
        let end = self.text.len();
        let Some(header) = gaps.headers.last().filter(|_| !self.text.ends_with('\n')) else {
            return Ok(());
        };
        let strip = self
            .text
            .get(header.clone())
            .is_some_and(|mark| mark.contains('-'));
        let open = |place: &Place| place.start == header.start && place.end == end;
        if !strip && places.iter().any(open) {
            let why = "the file ends in a block of text without a line end";
            return Err(self.obstacle(why, header.start));
        }
        Ok(())
    }

    fn events(&mut self) -> Result<(), EditError> {
        let options = options! {
            emit_comments: false,
            flow_nesting_limit: DEEPEST + 1,
            block_nesting_limit: DEEPEST + 1,
        };
        for event in Parser::new_from_str_with_options(self.text, options) {
            let (event, span) = event.map_err(|error| self.syntax(&error))?;
            self.event(event, &span)?;
        }
        Ok(())
    }

    fn syntax(&self, error: &ScanError) -> EditError {
        let marker = error.marker();
        if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) {
            return EditError::TooDeep {
                what: "the document",
                most: DEEPEST,
            };
        }
        EditError::Syntax {
            format: Format::Yaml,
            why: shown(error.info().as_bytes()),
            line: marker.line(),
            column: marker.col() + 1,
        }
    }

    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), EditError> {
        let span = span.byte_range().unwrap_or_default();
        let (anchor, tag, kind) = match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    return Err(self.obstacle("there are several documents", span.start));
                }
                return Ok(());
            }
            Event::Scalar(text, style, anchor, tag) => {
                let tag = tag.map(|tag| tag.to_string());
                (
                    anchor,
                    tag.clone(),
                    Kind::Scalar(text.into_owned(), style, tag),
                )
            }
            Event::Alias(_) => (0, None, Kind::Alias),
            Event::SequenceStart(style, anchor, tag) => (
                anchor,
                tag.map(|tag| tag.to_string()),
                collection(false, style),
            ),
            Event::MappingStart(style, anchor, tag) => (
                anchor,
                tag.map(|tag| tag.to_string()),
                collection(true, style),
            ),
            Event::SequenceEnd | Event::MappingEnd => {
                self.end(span);
                return Ok(());
            }
            _ => return Ok(()),
        };
        self.begin(span, kind, anchor > 0, tag.is_some())
    }

    fn begin(
        &mut self,
        span: Range<usize>,
        kind: Kind,
        anchor: bool,
        tag: bool,
    ) -> Result<(), EditError> {
        let id = self.found.len();
        if let Some(parent) = self.open.last()
            && let Some(Found {
                kind: Kind::Collection { children, .. },
                ..
            }) = self.found.get_mut(*parent)
        {
            children.push(id);
        }
        // White space alone can be looked through like any gap.
        let blank = match &kind {
            Kind::Scalar(text, ScalarStyle::Literal | ScalarStyle::Folded, _) => {
                text.trim_matches([' ', '\t', '\n']).is_empty()
            }
            _ => span.is_empty(),
        };
        if !blank {
            self.values.push(span.clone());
        }
        if matches!(kind, Kind::Alias) {
            self.marks.push((id, Mark::Alias));
        }
        if anchor {
            self.marks.push((id, Mark::Anchor));
        }
        if tag {
            self.marks.push((id, Mark::Tag));
        }
        if let Kind::Collection { mapping, flow, .. } = kind {
            if mapping && flow && span.is_empty() {
                self.marks.push((id, Mark::Pair));
            }
            self.open.push(id);
            if self.open.len() > DEEPEST {
                return Err(EditError::TooDeep {
                    what: "the document",
                    most: DEEPEST,
                });
            }
        }
        self.found.push(Found { span, kind });
        Ok(())
    }

    fn end(&mut self, span: Range<usize>) {
        if !span.is_empty() {
            self.values.push(span.clone());
        }
        if let Some(found) = self.open.pop().and_then(|id| self.found.get_mut(id)) {
            found.span.end = span.end;
        }
    }

    fn finish(mut self) -> Result<(Tree, Source), EditError> {
        let lost = EditError::NotExact {
            format: Format::Yaml,
            why: "the places of its entries could not be found",
        };
        if self.found.is_empty() {
            let end = self.text.len();
            self.found.push(Found {
                span: end..end,
                kind: Kind::Scalar(String::new(), ScalarStyle::Plain, None),
            });
        }
        let values = std::mem::take(&mut self.values);
        let gaps = Gaps::find(self.text, values).ok_or(lost.clone())?;
        let (mut tree, places) = build(&self, &gaps)?.ok_or(lost)?;
        self.refuse_open_end(&gaps, &places)?;
        for (id, mark) in &self.marks {
            let at = self.found.get(*id).map_or(0, |found| found.span.start);
            tree.set_mark(*id, *mark, self.lines.number(at));
        }
        let source = Source {
            lines: self.lines,
            gaps,
            places,
        };
        Ok((tree, source))
    }
}

fn collection(mapping: bool, style: StructureStyle) -> Kind {
    Kind::Collection {
        mapping,
        flow: style == StructureStyle::Flow,
        children: Vec::new(),
    }
}
