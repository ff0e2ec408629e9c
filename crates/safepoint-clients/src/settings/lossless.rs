//! A JSON text that is changed in places and kept, byte for byte, everywhere else.
//!
//! What is put in stands behind what is there, in the same style, so that taking it out
//! again leaves the text as it was. Only strict JSON is read: a text with comments is not
//! changed, because nobody can tell what a comment belongs to.

use safepoint_model::json::{self, Limits};
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::SettingsError;

/// One step on the way to a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Into an object.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// Where a value stands in the text.
#[derive(Debug)]
struct Node {
    /// Its first byte; of the key, if it has one.
    start: usize,
    /// Its first byte, without the key.
    value: usize,
    /// The byte behind it.
    end: usize,
    key: Option<String>,
    children: Vec<Node>,
}

/// A text, its value, and where everything stands.
#[derive(Debug)]
pub(crate) struct Document {
    text: String,
    value: Value,
    root: Node,
}

impl Document {
    /// Reads a text.
    pub(crate) fn read(text: &str) -> Result<Self, SettingsError> {
        let value = json::read(text.as_bytes(), Limits::default()).map_err(|error| {
            SettingsError::NotJson {
                line: error.line,
                column: error.column,
                why: error.kind.to_string(),
            }
        })?;
        let mut scanner = Scanner {
            text: text.as_bytes(),
            at: 0,
        };
        // What the reader accepted, the scanner can walk.
        let root = scanner.node(None).ok_or(SettingsError::Unreadable)?;
        Ok(Self {
            text: text.to_owned(),
            value,
            root,
        })
    }

    /// A new text.
    pub(crate) fn fresh(value: &Value) -> String {
        let mut text = pretty(value, "  ", "\n", "");
        text.push('\n');
        text
    }

    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// Puts `value` behind everything in the list, or, with a key, in the object at `path`.
    pub(crate) fn append(
        &self,
        path: &[Step],
        key: Option<&str>,
        value: &Value,
    ) -> Result<Self, SettingsError> {
        let node = self.find(path).ok_or(SettingsError::Unreadable)?;
        let named = |text: String, gap: &str| match key {
            Some(key) => format!("{}:{gap}{text}", Value::from(key)),
            None => text,
        };
        let newline = self.newline();
        let unit = self.unit();
        let Some(last) = node.children.last() else {
            let (open, close) = (node.value + 1, node.end.saturating_sub(1));
            let outer = self.line_indent(node.value);
            let inner = format!("{outer}{unit}");
            let entry = named(pretty(value, unit, newline, &inner), " ");
            return self.replaced(
                open,
                close,
                &format!("{newline}{inner}{entry}{newline}{outer}"),
            );
        };
        let entry = match self.own_indent(last.start) {
            Some(indent) => {
                let entry = named(pretty(value, unit, newline, indent), " ");
                format!(",{newline}{indent}{entry}")
            }
            None if self.text.contains("\": ") => format!(", {}", named(value.to_string(), " ")),
            None => format!(",{}", named(value.to_string(), "")),
        };
        self.replaced(last.end, last.end, &entry)
    }

    /// Takes out what stands at `path`, with its comma.
    pub(crate) fn without(&self, path: &[Step]) -> Result<Self, SettingsError> {
        let (last, parent) = path.split_last().ok_or(SettingsError::Unreadable)?;
        let siblings = &self.find(parent).ok_or(SettingsError::Unreadable)?.children;
        let index = position(siblings, last).ok_or(SettingsError::Unreadable)?;
        let node = siblings.get(index).ok_or(SettingsError::Unreadable)?;
        let before = index.checked_sub(1).and_then(|index| siblings.get(index));
        match (before, siblings.get(index + 1)) {
            (Some(before), _) => self.replaced(before.end, node.end, ""),
            (None, Some(next)) => self.replaced(node.start, next.start, ""),
            (None, None) => {
                let parent = self.find(parent).ok_or(SettingsError::Unreadable)?;
                self.replaced(parent.value + 1, parent.end.saturating_sub(1), "")
            }
        }
    }

    fn find(&self, path: &[Step]) -> Option<&Node> {
        let mut node = &self.root;
        for step in path {
            node = node.children.get(position(&node.children, step)?)?;
        }
        Some(node)
    }

    fn replaced(&self, from: usize, to: usize, new: &str) -> Result<Self, SettingsError> {
        let (head, tail) = self
            .text
            .get(..from)
            .zip(self.text.get(to..))
            .ok_or(SettingsError::Unreadable)?;
        Self::read(&format!("{head}{new}{tail}"))
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// By how much each level is set in.
    fn unit(&self) -> &str {
        let first = self.root.children.first();
        first
            .and_then(|first| self.own_indent(first.start))
            .filter(|indent| !indent.is_empty())
            .unwrap_or("  ")
    }

    /// The white space before `at`, if nothing else stands before it in its line.
    fn own_indent(&self, at: usize) -> Option<&str> {
        let before = self.text.get(..at)?;
        let line = before.rsplit_once('\n')?.1;
        line.chars()
            .all(|blank| matches!(blank, ' ' | '\t'))
            .then_some(line)
    }

    /// The white space at the beginning of the line that `at` stands in.
    fn line_indent(&self, at: usize) -> &str {
        let before = self.text.get(..at).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let rest = line.trim_start_matches([' ', '\t']);
        line.strip_suffix(rest).unwrap_or_default()
    }
}

fn position(children: &[Node], step: &Step) -> Option<usize> {
    match step {
        Step::Key(key) => children
            .iter()
            .position(|child| child.key.as_ref() == Some(key)),
        Step::Index(index) => (*index < children.len()).then_some(*index),
    }
}

/// `value` over several lines, all but the first set in by `indent`.
fn pretty(value: &Value, unit: &str, newline: &str, indent: &str) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = Serializer::with_formatter(&mut bytes, formatter);
    // Writing a value to memory does not fail; if it did, the text would not be read again.
    let written = serde::Serialize::serialize(value, &mut serializer);
    let text = String::from_utf8(bytes).unwrap_or_default();
    match written {
        Ok(()) => text.replace('\n', &format!("{newline}{indent}")),
        Err(_) => String::new(),
    }
}

/// Walks a text that is known to be JSON.
struct Scanner<'text> {
    text: &'text [u8],
    at: usize,
}

impl Scanner<'_> {
    fn node(&mut self, named: Option<(usize, String)>) -> Option<Node> {
        self.blank();
        let value = self.at;
        let (start, key) = match named {
            Some((start, key)) => (start, Some(key)),
            None => (value, None),
        };
        let children = match self.text.get(self.at)? {
            b'{' => self.children(b'}')?,
            b'[' => self.children(b']')?,
            b'"' => {
                self.string()?;
                Vec::new()
            }
            _ => {
                while let Some(byte) = self.text.get(self.at)
                    && !matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n')
                {
                    self.at += 1;
                }
                Vec::new()
            }
        };
        Some(Node {
            start,
            value,
            end: self.at,
            key,
            children,
        })
    }

    fn children(&mut self, close: u8) -> Option<Vec<Node>> {
        self.at += 1;
        let mut children = Vec::new();
        loop {
            self.blank();
            match *self.text.get(self.at)? {
                b',' => self.at += 1,
                byte if byte == close => {
                    self.at += 1;
                    return Some(children);
                }
                _ if close == b'}' => {
                    let start = self.at;
                    let key = self.string()?;
                    self.blank();
                    // The colon.
                    self.at += 1;
                    children.push(self.node(Some((start, key)))?);
                }
                _ => children.push(self.node(None)?),
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        self.at += 1;
        loop {
            match *self.text.get(self.at)? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return serde_json::from_slice(self.text.get(start..self.at)?).ok();
                }
                _ => self.at += 1,
            }
        }
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.text.get(self.at) {
            self.at += 1;
        }
    }
}
