//! The text as a tree of places: only to say where something stands.
//!
//! What an atlas says is decided by its types. Here a text is looked at again,
//! so it is read with the same parser, and never more than once per report.

use std::collections::HashMap;

use granit_parser::{Event, Marker, Parser, ScalarStyle, Span, options};
use safepoint_model::yaml;

use super::Place;

/// How deep lists and mappings may lie inside each other; the types refuse more.
const DEEPEST: usize = 128;

pub(super) type NodeId = usize;

/// A text as nodes.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    anchors: HashMap<usize, NodeId>,
    open: Vec<NodeId>,
}

/// A value and where it stands.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) place: Place,
    pub(super) what: What,
    /// For an empty value nothing can be pointed at.
    empty: bool,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum What {
    Scalar { text: String, plain: bool },
    List(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>, Option<NodeId>),
    Alias(usize),
}

impl Tree {
    /// The tree of `text`; `None` when it cannot be parsed.
    pub(super) fn read(text: &str) -> Option<Self> {
        if text.len() > yaml::MAX_BYTES {
            return None;
        }
        let options = options! {
            emit_comments: false,
            flow_nesting_limit: DEEPEST,
            block_nesting_limit: DEEPEST,
        };
        let lines: Vec<&str> = text.lines().collect();
        let mut tree = Self::default();
        let mut documents = 0;
        for event in Parser::new_from_str_with_options(text, options) {
            let (event, span) = event.ok()?;
            if matches!(event, Event::DocumentStart(..)) {
                documents += 1;
                if documents > 1 {
                    return None;
                }
            }
            tree.event(event, &span, &lines);
        }
        (!tree.nodes.is_empty()).then_some(tree)
    }

    fn event(&mut self, event: Event<'_>, span: &Span, lines: &[&str]) {
        let mut place = place(span, lines);
        let (what, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = matches!(style, ScalarStyle::Plain);
                let text = text.into_owned();
                (What::Scalar { text, plain }, anchor)
            }
            Event::Alias(anchor) => (What::Alias(anchor), 0),
            Event::SequenceStart(_, anchor, _) => {
                place.length = 1;
                (What::List(Vec::new()), anchor)
            }
            Event::MappingStart(_, anchor, _) => {
                place.length = 1;
                (What::Map(Vec::new(), None), anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => {
                self.open.pop();
                return;
            }
            _ => return,
        };
        let id = self.nodes.len();
        self.attach(id);
        if anchor > 0 {
            self.anchors.insert(anchor, id);
        }
        if matches!(what, What::List(_) | What::Map(..)) {
            self.open.push(id);
        }
        let empty = matches!(&what, What::Scalar { plain: true, text } if text.is_empty());
        self.nodes.push(Node { place, what, empty });
    }

    fn attach(&mut self, id: NodeId) {
        let Some(parent) = self.open.last().and_then(|open| self.nodes.get_mut(*open)) else {
            return;
        };
        match &mut parent.what {
            What::List(items) => items.push(id),
            What::Map(entries, key) => match key.take() {
                None => *key = Some(id),
                Some(key) => entries.push((key, id)),
            },
            What::Scalar { .. } | What::Alias(_) => {}
        }
    }

    /// The whole document.
    pub(super) fn root(&self) -> NodeId {
        0
    }

    /// The node, or what it is an alias of.
    pub(super) fn node(&self, id: NodeId) -> Option<&Node> {
        let node = self.nodes.get(id)?;
        match &node.what {
            What::Alias(anchor) => self.nodes.get(*self.anchors.get(anchor)?),
            _ => Some(node),
        }
    }

    /// Where a node stands itself, be it an alias.
    pub(super) fn place_of(&self, id: NodeId) -> Option<Place> {
        let node = self.nodes.get(id)?;
        // A mapping by lines begins with its first key.
        match &node.what {
            What::Map(entries, _) => {
                match entries.first().and_then(|(key, _)| self.nodes.get(*key)) {
                    Some(key)
                        if (key.place.line, key.place.column)
                            == (node.place.line, node.place.column) =>
                    {
                        Some(key.place)
                    }
                    _ => Some(node.place),
                }
            }
            _ => Some(node.place),
        }
    }

    /// The text of a key.
    pub(super) fn key(&self, id: NodeId) -> Option<&str> {
        match &self.node(id)?.what {
            What::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Whether nothing is written where the value should be.
    pub(super) fn is_blank(&self, id: NodeId) -> bool {
        self.nodes.get(id).is_some_and(|node| node.empty)
    }

    /// Where `pointer` leads, or the nearest thing around it.
    pub(super) fn place(&self, pointer: &str, on_key: bool) -> Option<Place> {
        let mut id = self.root();
        let mut found = self.place_of(id);
        let mut steps = pointer.split('/').skip(1).peekable();
        while let Some(step) = steps.next() {
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match &self.node(id)?.what {
                What::List(items) => {
                    let item = step.parse::<usize>().ok();
                    item.and_then(|item| items.get(item))
                        .map(|item| (None, *item))
                }
                What::Map(entries, _) => entries
                    .iter()
                    .find(|(key, _)| self.key(*key) == Some(step.as_str()))
                    .map(|(key, value)| (Some(*key), *value)),
                What::Scalar { .. } | What::Alias(_) => None,
            };
            let Some((key, value)) = next else {
                return found;
            };
            let last = steps.peek().is_none();
            let meant = match key {
                Some(key) if self.is_blank(value) || (last && on_key) => key,
                _ => value,
            };
            found = self.place_of(meant);
            id = value;
        }
        found
    }
}

fn place(span: &Span, lines: &[&str]) -> Place {
    let (start, end) = (&span.start, &span.end);
    let column = start.col() + 1;
    let length = if same_line(start, end) {
        end.col().saturating_sub(start.col())
    } else {
        let line = start.line().checked_sub(1).and_then(|line| lines.get(line));
        line.map_or(0, |line| line.chars().skip(start.col()).count())
    };
    Place {
        line: start.line(),
        column,
        length: length.max(1),
    }
}

fn same_line(start: &Marker, end: &Marker) -> bool {
    start.line() == end.line()
}
