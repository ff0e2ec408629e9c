//! What is known while a line is followed: directories, variables, functions.
//!
//! Where two ways meet, what they do not agree on becomes several possible
//! values, and too many become unknown. Nothing is read from the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::syntax::Command;

/// More possible values than this are the same as unknown.
const MANY: usize = 24;

/// A word after expansion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// It is this.
    Known(String),
    /// It is something that begins with this directory and holds no more of it than names.
    Pattern { directory: String, text: String },
    /// It depends on what happens.
    Dynamic {
        /// How it begins, as far as that is known.
        start: String,
        /// As it is written.
        written: String,
        /// It may become several words, or none.
        splits: bool,
    },
}

impl Argument {
    /// The text, when it is known.
    pub(super) fn known(&self) -> Option<&str> {
        match self {
            Self::Known(text) => Some(text),
            _ => None,
        }
    }

    /// How it begins, as far as that is known.
    pub(super) fn start(&self) -> &str {
        match self {
            Self::Known(text) | Self::Pattern { text, .. } => text,
            Self::Dynamic { start, .. } => start,
        }
    }

    /// As it is written, for people.
    pub(super) fn shown(&self) -> &str {
        match self {
            Self::Known(text) | Self::Pattern { text, .. } => text,
            Self::Dynamic { written, .. } => written,
        }
    }

    pub(super) fn is_dynamic(&self) -> bool {
        matches!(self, Self::Dynamic { .. })
    }
}

/// What a variable may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// One of these.
    One(Vec<Argument>),
    /// All of these, in this order.
    All(Vec<Argument>),
    /// Anything.
    Unknown,
}

/// The directories a command may run in. None when it could be any.
pub(super) type Directories = Option<Vec<PathBuf>>;

/// What is known at one point of a line.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) directories: Directories,
    /// Where one would be had the last command failed.
    pub(super) failed: Directories,
    pub(super) variables: BTreeMap<String, Value>,
    pub(super) functions: BTreeMap<String, Rc<Command>>,
    pub(super) arguments: Option<Vec<Argument>>,
    /// Where bare names are looked for is no longer known.
    pub(super) path_changed: bool,
    /// Nothing comes after this: `exit`.
    pub(super) ended: bool,
    /// Variables that programs will see.
    pub(super) exported: BTreeSet<String>,
}

impl State {
    pub(super) fn new(directory: &Path) -> Self {
        let directories = Some(vec![tidy(directory)]);
        Self {
            failed: directories.clone(),
            directories,
            variables: BTreeMap::new(),
            functions: BTreeMap::new(),
            arguments: None,
            path_changed: false,
            ended: false,
            exported: BTreeSet::new(),
        }
    }

    /// What is known where this way and another meet.
    pub(super) fn join(&mut self, other: &Self) {
        if other.ended {
            return;
        }
        if self.ended {
            *self = other.clone();
            return;
        }
        self.directories = either(self.directories.take(), other.directories.as_ref());
        self.failed = either(self.failed.take(), other.failed.as_ref());
        let names: BTreeSet<String> = self
            .variables
            .keys()
            .chain(other.variables.keys())
            .cloned()
            .collect();
        for name in names {
            let joined = match (self.variables.get(&name), other.variables.get(&name)) {
                (Some(one), Some(two)) if one == two => continue,
                (Some(Value::One(one)), Some(Value::One(two))) => {
                    let mut all = one.clone();
                    all.extend(two.iter().filter(|value| !one.contains(value)).cloned());
                    if all.len() > MANY {
                        Value::Unknown
                    } else {
                        Value::One(all)
                    }
                }
                _ => Value::Unknown,
            };
            self.variables.insert(name, joined);
        }
        for (name, body) in &other.functions {
            self.functions
                .entry(name.clone())
                .or_insert_with(|| Rc::clone(body));
        }
        if self.arguments != other.arguments {
            self.arguments = None;
        }
        self.path_changed |= other.path_changed;
        self.exported.extend(other.exported.iter().cloned());
    }

    /// The state had the last command failed.
    pub(super) fn after_failure(&self) -> Self {
        let mut state = self.clone();
        state.directories.clone_from(&self.failed);
        state.failed.clone_from(&self.failed);
        state
    }

    /// The state whether or not the last command failed.
    pub(super) fn afterwards(&mut self) {
        self.directories = either(self.directories.take(), self.failed.as_ref());
        self.failed.clone_from(&self.directories);
    }

    /// Everything that a loop or an unknown piece of code may change is unknown.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.directories != other.directories
            || self.variables != other.variables
            || self.path_changed != other.path_changed
    }
}

fn either(one: Directories, two: Option<&Vec<PathBuf>>) -> Directories {
    let (mut all, two) = (one?, two?);
    for directory in two {
        if !all.contains(directory) {
            all.push(directory.clone());
        }
    }
    (all.len() <= 4).then_some(all)
}

/// A path without `.` and `..`, by its letters alone.
pub(super) fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                tidied.pop();
            }
            _ => tidied.push(part),
        }
    }
    tidied
}
