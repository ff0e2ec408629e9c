//! A JSON text that is changed in places and kept, byte for byte, everywhere else.
//!
//! What is put in stands behind what is there, in the same style, so that taking it out
//! again leaves the text as it was. Comments are kept where the client reads them; elsewhere
//! only strict JSON is read, because the client would refuse the rest.

use safepoint_model::json::{self, Limits};
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use super::SettingsError;
use crate::Client;

/// What a client reads in its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Syntax {
    /// JSON and nothing else.
    Strict,
    /// JSON with `// …` and `/* … */`, and without trailing commas.
    Comments,
}

impl Syntax {
    /// That of a client's settings. Gemini CLI strips comments before it reads them.
    pub(crate) const fn of(client: Client) -> Self {
        match client {
            Client::Gemini => Self::Comments,
            _ => Self::Strict,
        }
    }
}

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
    /// The text with a blank for each byte of a comment, line ends in comments included.
    bare: String,
    syntax: Syntax,
    value: Value,
    root: Node,
}

impl Document {
    /// Reads a text.
    pub(crate) fn read(text: &str, syntax: Syntax) -> Result<Self, SettingsError> {
        let (plain, bare) = match syntax {
            Syntax::Strict => (text.to_owned(), text.to_owned()),
            Syntax::Comments => (blank_comments(text, true), blank_comments(text, false)),
        };
        let value = json::read(plain.as_bytes(), Limits::default()).map_err(|error| {
            SettingsError::NotJson {
                line: error.line,
                column: error.column,
                why: error.kind.to_string(),
            }
        })?;
        let mut scanner = Scanner {
            text: bare.as_bytes(),
            at: 0,
        };
        // What the reader accepted, the scanner can walk.
        let root = scanner.node(None).ok_or(SettingsError::Unreadable)?;
        Ok(Self {
            text: text.to_owned(),
            bare,
            syntax,
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

    /// Whether there is more in it than its value.
    pub(crate) fn has_comments(&self) -> bool {
        self.text != self.bare
    }

    /// Whether there are comments in what stands at `path`.
    pub(crate) fn has_comments_at(&self, path: &[Step]) -> bool {
        self.find(path)
            .is_some_and(|node| self.comments_between(node.value, node.end).is_some())
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
            let kept = self.comments_between(open, close).unwrap_or_default();
            let outer = self.line_indent(node.value);
            let inner = format!("{outer}{unit}");
            let entry = named(pretty(value, unit, newline, &inner), " ");
            return self.replaced(
                open,
                close,
                &format!("{kept}{newline}{inner}{entry}{newline}{outer}"),
            );
        };
        let entry = match self.own_indent(last.start) {
            Some(indent) => {
                let entry = named(pretty(value, unit, newline, indent), " ");
                // What is said behind the last one stays with it.
                let comment = self.comment_behind(last.end);
                let behind = last.end + comment.len();
                let new = format!(",{comment}{newline}{indent}{entry}");
                return self.replaced(last.end, behind, &new);
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
            (Some(before), _) => {
                let kept = self.comments_between(before.end, node.start);
                self.replaced(before.end, node.end, &kept.unwrap_or_default())
            }
            (None, Some(next)) => {
                let kept = self.comments_between(node.end, next.start);
                let indent = self.own_indent(next.start).unwrap_or(" ");
                let kept =
                    kept.map(|kept| format!("{}{}{indent}", kept.trim_start(), self.newline()));
                self.replaced(node.start, next.start, &kept.unwrap_or_default())
            }
            (None, None) => {
                let parent = self.find(parent).ok_or(SettingsError::Unreadable)?;
                let (open, close) = (parent.value + 1, parent.end.saturating_sub(1));
                let before = self.comments_between(open, node.start);
                let after = self.comments_between(node.end, close);
                let kept = match (before, after) {
                    (None, None) => String::new(),
                    (before, _) => {
                        let after = self.text.get(node.end..close).unwrap_or_default();
                        format!("{}{after}", before.unwrap_or_default())
                    }
                };
                self.replaced(open, close, &kept)
            }
        }
    }

    /// What stands between two places, without the comma and the blanks at its end, where there
    /// are comments in it.
    fn comments_between(&self, from: usize, to: usize) -> Option<String> {
        let (text, bare) = self.text.get(from..to).zip(self.bare.get(from..to))?;
        if text == bare {
            return None;
        }
        let kept = match bare.find(',') {
            Some(comma) => format!("{}{}", text.get(..comma)?, text.get(comma + 1..)?),
            None => text.to_owned(),
        };
        Some(kept.trim_end().to_owned())
    }

    /// The comment that ends the line at `at`, with the blanks before it.
    fn comment_behind(&self, at: usize) -> &str {
        let bare = self.bare.get(at..).unwrap_or_default();
        let line = bare.split(['\r', '\n']).next().unwrap_or_default();
        let is_blank = line.chars().all(|next| matches!(next, ' ' | '\t'));
        let text = self.text.get(at..at + line.len()).unwrap_or_default();
        match is_blank && line.len() < bare.len() {
            true => text.trim_end(),
            false => "",
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
        Self::read(&format!("{head}{new}{tail}"), self.syntax)
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

/// The text with blanks in the place of comments. Places stay the same.
fn blank_comments(text: &str, keep_lines: bool) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    let mut in_text = false;
    while let Some(&byte) = bytes.get(at) {
        let end = match (in_text, byte, bytes.get(at + 1)) {
            (true, b'\\', _) => {
                at += 2;
                continue;
            }
            (_, b'"', _) => {
                in_text = !in_text;
                None
            }
            (false, b'/', Some(b'/')) => {
                let rest = bytes.get(at..).unwrap_or_default();
                let length = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
                Some(length.map_or(bytes.len(), |length| at + length))
            }
            (false, b'/', Some(b'*')) => {
                let inside = bytes.get(at + 2..).unwrap_or_default();
                let length = inside.windows(2).position(|pair| pair == b"*/");
                // One without an end stays, and is refused as what it is.
                length.map(|length| at + 2 + length + 2)
            }
            _ => None,
        };
        let Some(end) = end else {
            at += 1;
            continue;
        };
        for byte in bytes.get_mut(at..end).unwrap_or_default() {
            if !(keep_lines && *byte == b'\n') {
                *byte = b' ';
            }
        }
        at = end;
    }
    // Whole comments were replaced, and they are whole characters.
    String::from_utf8(bytes).unwrap_or_default()
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
