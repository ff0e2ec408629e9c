//! What a document says, apart from how it is written.
//!
//! The values lie in one list, and containers hold numbers into it: nothing
//! here recurses, whatever was nested in what. Every value knows where in the
//! text it comes from, so that what did not change can be left as it stands.

use std::collections::BTreeMap;

use serde_json::Value;

use super::number::{same_number, same_spelling};
use crate::edit::EditError;
use crate::edit::lines::{check_limit, shown};

/// Deeper documents are refused: that is far more than anybody writes, and
/// little enough to recurse.
pub(super) const DEEPEST: usize = 200;

/// So many values a document may have, before and after.
pub(super) const MOST_VALUES: usize = 1_000_000;

/// A value of a tree.
pub(super) type NodeId = usize;

/// What stands in the way of changing a value exactly. Nearly all are YAML's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// `&name`: what is changed here changes elsewhere, too.
    Anchor,
    /// `*name`.
    Alias,
    /// `!name`.
    Tag,
    /// `<<`: the mapping has more than is written in it.
    MergeKey,
    /// `? key`, a key that is no text, or in TOML a key with dots in braces.
    ComplexKey,
    /// `[key: value]`, a mapping without braces.
    Pair,
}

impl Mark {
    pub(super) fn told(self) -> &'static str {
        match self {
            Self::Anchor => "there is an anchor (`&`), and aliases of it would change as well",
            Self::Alias => "there is an alias (`*`), whose value stands elsewhere",
            Self::Tag => "there is a tag (`!`), which gives the value another meaning",
            Self::MergeKey => "there is a merge key (`<<`), which brings in keys from elsewhere",
            Self::ComplexKey => "there is a key that is not written plainly",
            Self::Pair => "there is a pair in a list without braces around it",
        }
    }
}

/// One value.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) data: Data,
    /// Which value of the text it is; nothing for a new one.
    pub(super) source: Option<NodeId>,
    /// Whether anything in it differs from that value.
    pub(super) changed: bool,
    /// What stands in the way, and in which line.
    marks: Vec<(Mark, usize)>,
}

impl Node {
    /// The first mark that `wanted` names.
    pub(super) fn mark(&self, wanted: &[Mark]) -> Option<(Mark, usize)> {
        let mut marks = self.marks.iter().copied();
        marks.find(|(mark, _)| wanted.contains(mark))
    }
}

/// What a value is.
#[derive(Clone, Debug)]
pub(super) enum Data {
    Null,
    Bool(bool),
    /// In decimal digits, with all of them.
    Number(String),
    Text(String),
    /// What JSON does not have, as it is written: a date, an infinity, an alias.
    Special(String),
    Sequence(Vec<Slot>),
    Mapping(Box<Mapping>),
}

impl Data {
    /// What it is, for a message.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Special(_) => "a value that JSON does not have",
            Self::Sequence(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// A value inside a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) node: NodeId,
    /// Which entry of the container's text this is; nothing for a new one.
    pub(super) entry: Option<usize>,
    /// From which entry of the text it was moved or copied.
    pub(super) origin: Option<Origin>,
}

impl Slot {
    pub(super) fn new(node: NodeId) -> Self {
        Self {
            node,
            entry: None,
            origin: None,
        }
    }

    pub(super) fn of_text(node: NodeId, entry: usize) -> Self {
        Self {
            node,
            entry: Some(entry),
            origin: None,
        }
    }
}

/// An entry of the text that stood elsewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin {
    /// The container, as a value of the text.
    pub(super) container: NodeId,
    /// Its entry.
    pub(super) entry: usize,
    /// Whether it is gone there, and its comments come along.
    pub(super) moved: bool,
}

/// Keys with values, found by key and kept in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Mapping {
    slots: BTreeMap<String, (usize, Slot)>,
    next: usize,
}

impl Mapping {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn get(&self, key: &str) -> Option<&Slot> {
        self.slots.get(key).map(|(_, slot)| slot)
    }

    /// Puts a value under a key, in its old place or at the end.
    pub(super) fn insert(&mut self, key: &str, slot: Slot) {
        if let Some((_, old)) = self.slots.get_mut(key) {
            // The entry of the text stays, with another value.
            *old = Slot {
                entry: old.entry,
                ..slot
            };
            return;
        }
        self.slots.insert(key.to_owned(), (self.next, slot));
        self.next += 1;
    }

    pub(super) fn remove(&mut self, key: &str) -> Option<Slot> {
        self.slots.remove(key).map(|(_, slot)| slot)
    }

    /// The keys and values in order.
    pub(super) fn ordered(&self) -> Vec<(&str, Slot)> {
        let mut slots: Vec<_> = self.slots.iter().collect();
        slots.sort_by_key(|(_, (order, _))| *order);
        let slots = slots.into_iter();
        slots
            .map(|(key, (_, slot))| (key.as_str(), *slot))
            .collect()
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.slots.values().map(|(_, slot)| slot)
    }
}

/// All values of a document.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    pub(super) root: NodeId,
    /// Whether any value has a mark.
    pub(super) marked: bool,
}

impl Tree {
    /// Adds a value of the text. It is the value of its own number there.
    pub(super) fn add_source(&mut self, data: Data) -> Result<NodeId, EditError> {
        let id = self.add(data)?;
        check_limit("the document", id + 1, MOST_VALUES, "values")?;
        if let Some(node) = self.nodes.get_mut(id) {
            node.source = Some(id);
        }
        Ok(id)
    }

    /// Adds a value that no container has yet.
    pub(super) fn add(&mut self, data: Data) -> Result<NodeId, EditError> {
        self.add_node(Node {
            data,
            source: None,
            changed: false,
            marks: Vec::new(),
        })
    }

    fn add_node(&mut self, node: Node) -> Result<NodeId, EditError> {
        let id = self.nodes.len();
        // Copies may be thrown away again: they are counted all the same.
        check_limit("the document", id + 1, 2 * MOST_VALUES, "values")?;
        self.nodes.push(node);
        Ok(id)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A value; one that is not there is null, but there is none such.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        const NOTHING: &Node = &Node {
            data: Data::Null,
            source: None,
            changed: false,
            marks: Vec::new(),
        };
        self.nodes.get(id).unwrap_or(NOTHING)
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    pub(super) fn set_mark(&mut self, id: NodeId, mark: Mark, line: usize) {
        if let Some(node) = self.nodes.get_mut(id) {
            node.marks.push((mark, line));
            self.marked = true;
        }
    }

    /// The values directly inside.
    pub(super) fn children(&self, id: NodeId) -> Vec<NodeId> {
        match &self.node(id).data {
            Data::Sequence(slots) => slots.iter().map(|slot| slot.node).collect(),
            Data::Mapping(mapping) => mapping.slots().map(|slot| slot.node).collect(),
            _ => Vec::new(),
        }
    }

    /// The first mark in a value that `wanted` names, and how many values were
    /// looked at.
    pub(super) fn mark_in(&self, id: NodeId, wanted: &[Mark]) -> (Option<(Mark, usize)>, usize) {
        let mut looked = 0;
        let mut rest = vec![id];
        while let Some(id) = rest.pop().filter(|_| self.marked) {
            looked += 1;
            if let Some(mark) = self.node(id).mark(wanted) {
                return (Some(mark), looked);
            }
            rest.extend(self.children(id));
        }
        (None, looked)
    }

    /// Adds a value that was given as JSON.
    pub(super) fn add_value(&mut self, value: &Value) -> Result<NodeId, EditError> {
        self.add_nested(value, 0, Nulls::Kept)
    }

    /// Adds what a merge patch makes where there was nothing.
    pub(super) fn add_merged(&mut self, value: &Value) -> Result<NodeId, EditError> {
        self.add_nested(value, 0, Nulls::LeftOut)
    }

    fn add_nested(
        &mut self,
        value: &Value,
        depth: usize,
        nulls: Nulls,
    ) -> Result<NodeId, EditError> {
        if depth > DEEPEST {
            return Err(EditError::TooDeep {
                what: "the change",
                most: DEEPEST,
            });
        }
        let data = match value {
            Value::Null => Data::Null,
            Value::Bool(value) => Data::Bool(*value),
            Value::Number(number) => Data::Number(number.to_string()),
            Value::String(text) => Data::Text(text.clone()),
            Value::Array(items) => {
                let mut slots = Vec::with_capacity(items.len());
                for item in items {
                    // A list in a merge patch is taken as it is.
                    slots.push(Slot::new(self.add_nested(item, depth + 1, Nulls::Kept)?));
                }
                Data::Sequence(slots)
            }
            Value::Object(items) => {
                let mut mapping = Mapping::default();
                for (key, item) in items {
                    if item.is_null() && nulls == Nulls::LeftOut {
                        continue;
                    }
                    let node = self.add_nested(item, depth + 1, nulls)?;
                    mapping.insert(key, Slot::new(node));
                }
                Data::Mapping(Box::new(mapping))
            }
        };
        self.add(data)
    }

    /// A copy of a value with everything in it.
    pub(super) fn copy(&mut self, id: NodeId) -> Result<NodeId, EditError> {
        let first = self.add_node(self.node(id).clone())?;
        let mut rest = vec![first];
        while let Some(copy) = rest.pop() {
            let mut data = std::mem::replace(&mut self.nodes_at(copy)?.data, Data::Null);
            let slots: Vec<&mut Slot> = match &mut data {
                Data::Sequence(slots) => slots.iter_mut().collect(),
                Data::Mapping(mapping) => {
                    let slots = mapping.slots.values_mut();
                    slots.map(|(_, slot)| slot).collect()
                }
                _ => Vec::new(),
            };
            for slot in slots {
                slot.node = self.add_node(self.node(slot.node).clone())?;
                rest.push(slot.node);
            }
            self.nodes_at(copy)?.data = data;
        }
        Ok(first)
    }

    fn nodes_at(&mut self, id: NodeId) -> Result<&mut Node, EditError> {
        let size = self.nodes.len();
        self.nodes.get_mut(id).ok_or(EditError::TooLarge {
            what: "the document",
            size,
            most: MOST_VALUES,
            unit: "values",
        })
    }

    /// Refuses a document that became too large or too deep.
    pub(super) fn check(&self) -> Result<(), EditError> {
        let mut rest = vec![(self.root, 0)];
        let mut values = 0;
        while let Some((id, depth)) = rest.pop() {
            values += 1;
            if depth > DEEPEST {
                return Err(EditError::TooDeep {
                    what: "the result",
                    most: DEEPEST,
                });
            }
            let children = self.children(id).into_iter();
            rest.extend(children.map(|child| (child, depth + 1)));
        }
        check_limit("the result", values, MOST_VALUES, "values")
    }

    /// Whether two values are the same as JSON sees it: numbers by their value,
    /// mappings without regard to order.
    pub(super) fn equal(&self, one: NodeId, other: &Tree, of_other: NodeId) -> bool {
        self.agrees(one, other, of_other, same_number, |_, _| true)
    }

    /// Whether two values are the same, an integer is no fraction, and the same
    /// marks stand in the same places.
    pub(super) fn identical(&self, one: NodeId, other: &Tree, of_other: NodeId) -> bool {
        let marks = |one: &Node, other: &Node| {
            let kinds =
                |node: &Node| -> Vec<Mark> { node.marks.iter().map(|(mark, _)| *mark).collect() };
            kinds(one) == kinds(other)
        };
        self.agrees(one, other, of_other, same_spelling, marks)
    }

    fn agrees(
        &self,
        one: NodeId,
        other: &Tree,
        of_other: NodeId,
        numbers: fn(&str, &str) -> bool,
        marks: fn(&Node, &Node) -> bool,
    ) -> bool {
        let mut rest = vec![(one, of_other)];
        while let Some((one, of_other)) = rest.pop() {
            let (one, of_other) = (self.node(one), other.node(of_other));
            let same = match (&one.data, &of_other.data) {
                (Data::Null, Data::Null) => true,
                (Data::Bool(one), Data::Bool(other)) => one == other,
                (Data::Number(one), Data::Number(other)) => numbers(one, other),
                (Data::Text(one), Data::Text(other)) => one == other,
                (Data::Special(one), Data::Special(other)) => one == other,
                (Data::Sequence(one), Data::Sequence(other)) => {
                    let pairs = one.iter().zip(other);
                    rest.extend(pairs.map(|(one, other)| (one.node, other.node)));
                    one.len() == other.len()
                }
                (Data::Mapping(one), Data::Mapping(other)) => {
                    let pairs = one.slots.iter().zip(&other.slots);
                    let same = |((one, _), (other, _)): ((&String, _), (&String, _))| one == other;
                    rest.extend(
                        pairs
                            .clone()
                            .map(|((_, one), (_, other))| (one.1.node, other.1.node)),
                    );
                    one.len() == other.len() && pairs.into_iter().all(same)
                }
                _ => false,
            };
            if !same || !marks(one, of_other) {
                return false;
            }
        }
        true
    }

    /// A value for a message, cut short.
    pub(super) fn told(&self, id: NodeId) -> String {
        match &self.node(id).data {
            Data::Null => "null".to_owned(),
            Data::Bool(value) => value.to_string(),
            Data::Number(number) => format!("the number {}", shown(number.as_bytes())),
            Data::Text(text) => format!("the text `{}`", shown(text.as_bytes())),
            Data::Special(text) => format!("`{}`", shown(text.as_bytes())),
            Data::Sequence(slots) => format!("a list of {}", slots.len()),
            Data::Mapping(mapping) => format!("a mapping of {}", mapping.len()),
        }
    }
}

/// What a merge patch's null means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Nulls {
    Kept,
    LeftOut,
}
