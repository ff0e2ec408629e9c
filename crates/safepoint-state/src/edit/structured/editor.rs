//! The steps that both kinds of patches are made of: find a value, put one
//! somewhere, take one away. Each of them looks at what stands in the way, and
//! remembers which values changed.

use super::pointer;
use super::tree::{Data, Mark, NodeId, Origin, Slot, Tree};
use crate::edit::lines::{check_limit, shown};
use crate::edit::{EditError, Place};

/// How many keys a message names.
const KEYS_TOLD: usize = 5;

/// So many items of lists are moved up or down for one patch, and so many
/// values looked at.
const MOST_STEPS: usize = 100_000_000;

/// A tree while it is changed.
pub(super) struct Editor {
    pub(super) tree: Tree,
    /// Which operation is being done, from 1.
    pub(super) operation: Option<usize>,
    /// What has changed so far.
    pub(super) paths: Vec<String>,
    /// How many items have been moved and values looked at.
    steps: usize,
}

impl Editor {
    pub(super) fn new(tree: Tree) -> Self {
        Self {
            tree,
            operation: None,
            paths: Vec::new(),
            steps: 0,
        }
    }

    fn place<Part: AsRef<str>>(&self, parts: &[Part]) -> Place {
        Place {
            operation: self.operation,
            pointer: pointer::write(parts),
        }
    }

    /// The first mark in a value that `wanted` names.
    fn mark_in(
        &mut self,
        node: NodeId,
        wanted: &[Mark],
    ) -> Result<Option<(Mark, usize)>, EditError> {
        let (mark, looked) = self.tree.mark_in(node, wanted);
        self.step(looked)?;
        Ok(mark)
    }

    fn step(&mut self, steps: usize) -> Result<(), EditError> {
        self.steps += steps;
        check_limit("the work of the patch", self.steps, MOST_STEPS, "steps")
    }

    /// Refuses the value at `parts` if a mark that `wanted` names is in it.
    pub(super) fn refuse_marks(
        &mut self,
        parts: &[String],
        node: NodeId,
        wanted: &[Mark],
    ) -> Result<(), EditError> {
        match self.mark_in(node, wanted)? {
            Some(mark) => Err(self.obstacle(parts, mark)),
            None => Ok(()),
        }
    }

    fn obstacle(&self, parts: &[String], (mark, line): (Mark, usize)) -> EditError {
        EditError::Obstacle {
            place: self.place(parts),
            why: mark.told(),
            line,
        }
    }

    /// Remembers that the value at `parts` changed.
    pub(super) fn note(&mut self, parts: &[String]) {
        let path = pointer::write(parts);
        if self.paths.last() != Some(&path) {
            self.paths.push(path);
        }
    }

    /// The values from the root to the one at `parts`.
    fn walk(&self, parts: &[String]) -> Result<Vec<NodeId>, EditError> {
        let mut found = vec![self.tree.root];
        let mut here = self.tree.root;
        for (depth, part) in parts.iter().enumerate() {
            let node = self.tree.node(here);
            let slot = match &node.data {
                Data::Mapping(mapping) => mapping.get(part),
                Data::Sequence(slots) => pointer::index(part).and_then(|index| slots.get(index)),
                _ => None,
            };
            // What these have is not all written where they stand.
            let hidden: &[Mark] = match slot {
                Some(_) => &[Mark::Alias, Mark::ComplexKey],
                None => &[Mark::Alias, Mark::ComplexKey, Mark::MergeKey],
            };
            if let Some(mark) = node.mark(hidden) {
                return Err(self.obstacle(parts, mark));
            }
            let Some(slot) = slot else {
                return Err(EditError::Missing {
                    place: self.place(parts),
                    why: self.lack(parts, depth, here),
                });
            };
            here = slot.node;
            found.push(here);
        }
        Ok(found)
    }

    /// What there is where the part at `depth` is not.
    fn lack(&self, parts: &[String], depth: usize, here: NodeId) -> String {
        let container = self.place(parts.get(..depth).unwrap_or_default());
        let container = Place {
            operation: None,
            ..container
        };
        let part = parts.get(depth).map_or("", String::as_str);
        let part = shown(part.as_bytes());
        match &self.tree.node(here).data {
            Data::Mapping(mapping) if mapping.len() == 0 => format!("{container} is empty"),
            Data::Mapping(mapping) => {
                let keys = mapping.ordered();
                let mut told: Vec<String> = keys
                    .iter()
                    .take(KEYS_TOLD)
                    .map(|(key, _)| format!("`{}`", shown(key.as_bytes())))
                    .collect();
                if keys.len() > KEYS_TOLD {
                    told.push("…".to_owned());
                }
                format!("{container} has no `{part}`, but {}", told.join(", "))
            }
            Data::Sequence(slots) if pointer::index(&part).is_some() => {
                format!("{container} is a list of {}, counted from 0", slots.len())
            }
            Data::Sequence(_) => format!("{container} is a list, and `{part}` is no index of it"),
            other => format!("{container} is {}", other.kind()),
        }
    }

    /// The value at `parts`.
    pub(super) fn find(&self, parts: &[String]) -> Result<NodeId, EditError> {
        let found = self.walk(parts)?;
        Ok(found.last().copied().unwrap_or(self.tree.root))
    }

    /// The value at `parts`, to be read with everything in it.
    pub(super) fn read(&mut self, parts: &[String]) -> Result<NodeId, EditError> {
        let node = self.find(parts)?;
        let unreadable = [Mark::Alias, Mark::Tag, Mark::MergeKey, Mark::ComplexKey];
        self.refuse_marks(parts, node, &unreadable)?;
        Ok(node)
    }

    /// The container at `parts`, which is about to be changed.
    fn open(&mut self, parts: &[String], whole: &[String]) -> Result<NodeId, EditError> {
        let found = self.walk(parts)?;
        let closed = [Mark::Anchor, Mark::ComplexKey, Mark::Pair];
        for id in &found {
            if let Some(mark) = self.tree.node(*id).mark(&closed) {
                return Err(self.obstacle(whole, mark));
            }
        }
        let container = found.last().copied().unwrap_or(self.tree.root);
        if let Some(mark) = self.tree.node(container).mark(&[Mark::Alias]) {
            return Err(self.obstacle(whole, mark));
        }
        if let Data::Sequence(slots) = &self.tree.node(container).data {
            self.step(slots.len())?;
        }
        for id in found {
            if let Some(node) = self.tree.node_mut(id) {
                node.changed = true;
            }
        }
        Ok(container)
    }

    /// Refuses to lose a value that others refer to.
    fn release(&mut self, parts: &[String], node: NodeId) -> Result<(), EditError> {
        self.refuse_marks(parts, node, &[Mark::Anchor])
    }

    /// Puts another value in the place of one that is there.
    pub(super) fn replace(&mut self, parts: &[String], node: NodeId) -> Result<(), EditError> {
        let old = self.find(parts)?;
        if self.tree.identical(old, &self.tree, node) {
            return Ok(());
        }
        self.release(parts, old)?;
        if let Some(mark) = self.tree.node(old).mark(&[Mark::Tag]) {
            return Err(self.obstacle(parts, mark));
        }
        self.put(parts, Slot::new(node))
    }

    /// Puts a value where one is or could be: under a key, or before an item.
    pub(super) fn add(&mut self, parts: &[String], slot: Slot) -> Result<(), EditError> {
        let Some((last, container)) = parts.split_last() else {
            return self.replace(parts, slot.node);
        };
        let into = self.find(container)?;
        match &self.tree.node(into).data {
            Data::Mapping(mapping) if mapping.get(last).is_some() => self.replace(parts, slot.node),
            Data::Mapping(_) => self.put(parts, slot),
            Data::Sequence(slots) => {
                let length = slots.len();
                let index = match last.as_str() {
                    "-" => Some(length),
                    part => pointer::index(part).filter(|index| *index <= length),
                };
                let Some(index) = index else {
                    return Err(EditError::Missing {
                        place: self.place(parts),
                        why: self.lack(parts, container.len(), into),
                    });
                };
                let into = self.open(container, parts)?;
                if let Some(node) = self.tree.node_mut(into)
                    && let Data::Sequence(slots) = &mut node.data
                {
                    slots.insert(index, slot);
                }
                let mut path = container.to_vec();
                path.push(index.to_string());
                self.note(&path);
                Ok(())
            }
            _ => Err(match self.tree.node(into).mark(&[Mark::Alias]) {
                Some(mark) => self.obstacle(parts, mark),
                None => EditError::Missing {
                    place: self.place(parts),
                    why: self.lack(parts, container.len(), into),
                },
            }),
        }
    }

    /// Puts a value under a key, new or not, or in the place of an item.
    fn put(&mut self, parts: &[String], slot: Slot) -> Result<(), EditError> {
        let Some((last, container)) = parts.split_last() else {
            self.tree.root = slot.node;
            self.note(parts);
            return Ok(());
        };
        let into = self.open(container, parts)?;
        if let Some(node) = self.tree.node_mut(into) {
            match &mut node.data {
                Data::Mapping(mapping) => mapping.insert(last, slot),
                Data::Sequence(slots) => {
                    let old = pointer::index(last).and_then(|index| slots.get_mut(index));
                    if let Some(old) = old {
                        old.node = slot.node;
                        old.origin = None;
                    }
                }
                _ => {}
            }
        }
        self.note(parts);
        Ok(())
    }

    /// Takes a value away. It comes back with the entry of the text that it was.
    pub(super) fn remove(&mut self, parts: &[String]) -> Result<Slot, EditError> {
        let node = self.find(parts)?;
        let Some((last, container)) = parts.split_last() else {
            return Err(EditError::BadChange {
                operation: self.operation,
                why: "the whole document cannot be removed, only the file".to_owned(),
            });
        };
        self.release(parts, node)?;
        let from = self.open(container, parts)?;
        // What the key hid would come to light.
        if let Some(mark) = self.tree.node(from).mark(&[Mark::MergeKey]) {
            return Err(self.obstacle(parts, mark));
        }
        let source = self.tree.node(from).source;
        let mut removed = None;
        if let Some(node) = self.tree.node_mut(from) {
            removed = match &mut node.data {
                Data::Mapping(mapping) => mapping.remove(last),
                Data::Sequence(slots) => pointer::index(last)
                    .filter(|index| *index < slots.len())
                    .map(|index| slots.remove(index)),
                _ => None,
            };
        }
        let mut slot = removed.unwrap_or(Slot::new(node));
        if let (Some(container), Some(entry)) = (source, slot.entry.take()) {
            slot.origin = Some(Origin {
                container,
                entry,
                moved: true,
            });
        }
        self.note(parts);
        Ok(slot)
    }

    /// The entry of the text that the value at `parts` is.
    pub(super) fn origin(&self, parts: &[String]) -> Option<Origin> {
        let (last, container) = parts.split_last()?;
        let container = self.tree.node(self.find(container).ok()?);
        let slot = match &container.data {
            Data::Mapping(mapping) => mapping.get(last)?,
            Data::Sequence(slots) => slots.get(pointer::index(last)?)?,
            _ => return None,
        };
        Some(Origin {
            container: container.source?,
            entry: slot.entry?,
            moved: false,
        })
    }
}
