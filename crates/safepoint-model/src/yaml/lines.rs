//! The shortest way: documents in which every line can be understood by itself.
//!
//! That is how nearly all files are written: mappings and lists by indentation,
//! scalars on one line, with or without quotes, and short lists and mappings in
//! brackets. No scalar goes on in the next line here, nothing has a tag, an
//! anchor or an alias, and there is one document. At anything else it gives up
//! without saying why, and the parser reads the document; a test holds both
//! against each other. So this need not know YAML, only the part of it that has
//! one meaning.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::quick::{GivesUp, Node};

/// How many brackets lie inside each other.
const DEEPEST_FLOW: usize = 16;
/// The longest key, in bytes; YAML has a limit, too.
const LONGEST_KEY: usize = 256;

/// A document, line by line.
pub(super) struct Lines<'t> {
    rest: &'t str,
    open: Vec<Open>,
    ready: VecDeque<Node<'t>>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing was found yet.
    Before,
    Within,
    Ended,
}

/// A list or mapping by indentation that has not ended.
struct Open {
    kind: Kind,
    indent: usize,
    /// Whether a value is to come: its place is there, and nothing is in it.
    awaits: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Map,
}

impl<'t> Lines<'t> {
    /// `None` when the text has characters that need a closer look.
    pub(super) fn new(text: &'t str) -> Option<Self> {
        let odd = |byte: u8| (byte < b' ' && byte != b'\n') || byte == 0x7f;
        let foreign = || text.chars().filter(|c| !c.is_ascii());
        if text.bytes().any(odd) || (!text.is_ascii() && !foreign().all(is_letter_like)) {
            return None;
        }
        Some(Self {
            rest: text,
            open: Vec::new(),
            ready: VecDeque::new(),
            state: State::Before,
        })
    }

    pub(super) fn next(&mut self) -> Result<Node<'t>, GivesUp> {
        loop {
            if let Some(node) = self.ready.pop_front() {
                return Ok(node);
            }
            self.advance()?;
        }
    }

    /// Whether all of it was read.
    pub(super) fn is_at_end(&mut self) -> bool {
        while self.ready.is_empty() && self.state == State::Within {
            if self.advance().is_err() {
                return false;
            }
        }
        self.ready.is_empty() && self.state == State::Ended
    }

    /// Reads one more line, or ends what is open.
    fn advance(&mut self) -> Result<(), GivesUp> {
        if self.rest.is_empty() {
            if self.state != State::Within {
                return Err(GivesUp);
            }
            self.state = State::Ended;
            while self.close() {}
            return Ok(());
        }
        let (line, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
        self.rest = rest;
        let line = line.trim_end_matches(' ');
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            return Ok(());
        }
        self.line(line.len() - content.len(), content)
    }

    fn line(&mut self, mut indent: usize, mut content: &'t str) -> Result<(), GivesUp> {
        while self.open.last().is_some_and(|open| open.indent > indent) {
            self.close();
        }
        while let Some(after) = content.strip_prefix('-') {
            if !after.is_empty() && !after.starts_with(' ') {
                break;
            }
            self.item(indent)?;
            let inner = after.trim_start_matches(' ');
            if inner.is_empty() || inner.starts_with('#') {
                return Ok(());
            }
            indent += content.len() - inner.len();
            content = inner;
            if let Some((key, value)) = key(content)? {
                return self.entry(indent, key, value);
            }
            if !is_item(content) {
                self.fill()?;
                return self.value(content);
            }
        }
        match key(content)? {
            Some((key, value)) => self.entry(indent, key, value),
            None => Err(GivesUp),
        }
    }

    /// An item of a list begins.
    fn item(&mut self, indent: usize) -> Result<(), GivesUp> {
        match self.open.last_mut() {
            Some(open) if open.kind == Kind::List && open.indent == indent => {
                if std::mem::replace(&mut open.awaits, true) {
                    self.ready.push_back(nothing());
                }
                return Ok(());
            }
            // A list may stand as far left as its key.
            Some(open) if open.indent == indent && !open.awaits => return Err(GivesUp),
            _ => {}
        }
        self.begin(Kind::List, indent)
    }

    /// A key, and what is behind it on its line.
    fn entry(&mut self, indent: usize, key: Text<'t>, value: &'t str) -> Result<(), GivesUp> {
        // A list as far left as its key ends with the next key.
        if self.is_at(Kind::List, indent) {
            self.close();
            if !self.is_at(Kind::Map, indent) {
                return Err(GivesUp);
            }
        }
        match self.open.last_mut() {
            Some(open) if open.kind == Kind::Map && open.indent == indent => {
                if std::mem::replace(&mut open.awaits, true) {
                    self.ready.push_back(nothing());
                }
            }
            _ => self.begin(Kind::Map, indent)?,
        }
        self.ready.push_back(key.node());
        let value = value.trim_start_matches(' ');
        if value.is_empty() || value.starts_with('#') {
            return Ok(());
        }
        self.fill()?;
        self.value(value)
    }

    fn is_at(&self, kind: Kind, indent: usize) -> bool {
        let last = self.open.last();
        last.is_some_and(|open| open.kind == kind && open.indent == indent)
    }

    /// A list or mapping begins where a value is awaited, or as the whole document.
    fn begin(&mut self, kind: Kind, indent: usize) -> Result<(), GivesUp> {
        if self.open.is_empty() {
            if self.state != State::Before {
                return Err(GivesUp);
            }
            self.state = State::Within;
        } else {
            self.fill()?;
        }
        self.ready.push_back(match kind {
            Kind::List => Node::List,
            Kind::Map => Node::Map,
        });
        self.open.push(Open {
            kind,
            indent,
            awaits: true,
        });
        Ok(())
    }

    /// What was awaited comes now.
    fn fill(&mut self) -> Result<(), GivesUp> {
        match self.open.last_mut() {
            Some(open) if open.awaits => {
                open.awaits = false;
                Ok(())
            }
            _ => Err(GivesUp),
        }
    }

    /// Ends the innermost list or mapping, if there is one.
    fn close(&mut self) -> bool {
        let Some(open) = self.open.pop() else {
            return false;
        };
        if open.awaits {
            self.ready.push_back(nothing());
        }
        self.ready.push_back(Node::End);
        true
    }

    /// A value that takes the rest of its line.
    fn value(&mut self, content: &'t str) -> Result<(), GivesUp> {
        let mut flow = Flow {
            rest: content,
            ready: &mut self.ready,
        };
        match content.as_bytes().first() {
            Some(b'"' | b'\'' | b'[' | b'{') => flow.value(0)?,
            _ => {
                let text = content.split(" #").next().unwrap_or_default();
                let text = text.trim_end_matches(' ');
                if !may_begin(text) || text.contains(": ") || text.ends_with(':') {
                    return Err(GivesUp);
                }
                self.ready
                    .push_back(Node::Scalar(Cow::Borrowed(text), true));
                return Ok(());
            }
        }
        let behind = flow.rest.trim_start_matches(' ');
        let comment = flow.rest.starts_with(' ') && behind.starts_with('#');
        match behind.is_empty() || comment {
            true => Ok(()),
            false => Err(GivesUp),
        }
    }
}

/// A text, and whether it stands without quotes.
struct Text<'t>(Cow<'t, str>, bool);

impl<'t> Text<'t> {
    fn node(self) -> Node<'t> {
        Node::Scalar(self.0, self.1)
    }
}

fn nothing<'t>() -> Node<'t> {
    Node::Scalar(Cow::Borrowed(""), true)
}

fn is_item(content: &str) -> bool {
    content == "-" || content.starts_with("- ")
}

/// Characters outside of ASCII that are nothing but themselves: no spaces, line
/// breaks, marks of order or private signs.
fn is_letter_like(c: char) -> bool {
    matches!(c,
        '\u{a1}'..='\u{2ff}' | '\u{370}'..='\u{167f}' | '\u{1681}'..='\u{1fff}'
        | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{2070}'..='\u{2fff}'
        | '\u{3001}'..='\u{d7ff}')
}

/// Whether a scalar without quotes can begin so, and mean nothing else.
fn may_begin(text: &str) -> bool {
    let mut characters = text.chars();
    match characters.next() {
        None => false,
        Some('-') => characters
            .next()
            .is_some_and(|second| second.is_ascii_alphanumeric()),
        Some(first) if first.is_ascii() => {
            first.is_ascii_alphanumeric()
                || matches!(first, '_' | '/' | '(' | '.' | '~' | '$' | '^')
        }
        Some(_) => true,
    }
}

/// The key that `content` begins with, and what is behind its colon.
fn key(content: &str) -> Result<Option<(Text<'_>, &str)>, GivesUp> {
    let (key, behind) = match content.as_bytes().first() {
        Some(b'"' | b'\'') => {
            let (text, behind) = quoted(content)?;
            (Text(text, false), behind)
        }
        Some(first) if first.is_ascii_alphanumeric() || *first == b'_' => {
            let part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./* ".contains(&byte);
            let end = content.bytes().position(|byte| !part(byte));
            let (text, behind) = content
                .split_at_checked(end.unwrap_or(content.len()))
                .ok_or(GivesUp)?;
            if text.ends_with(' ') {
                return match behind.starts_with(':') {
                    true => Err(GivesUp),
                    false => Ok(None),
                };
            }
            (Text(Cow::Borrowed(text), true), behind)
        }
        _ => return Ok(None),
    };
    let Some(value) = behind.strip_prefix(':') else {
        return Ok(None);
    };
    if !value.is_empty() && !value.starts_with(' ') {
        return match key.1 {
            true => Ok(None),
            false => Err(GivesUp),
        };
    }
    match key.0.len() <= LONGEST_KEY {
        true => Ok(Some((key, value))),
        false => Err(GivesUp),
    }
}

/// The text in the quotes that `content` begins with, and what is behind them.
fn quoted(content: &str) -> Result<(Cow<'_, str>, &str), GivesUp> {
    let quote = match content.as_bytes().first() {
        Some(b'"') => '"',
        Some(b'\'') => '\'',
        _ => return Err(GivesUp),
    };
    let inner = content.get(1..).ok_or(GivesUp)?;
    let special = |c: char| c == quote || (c == '\\' && quote == '"');
    let end = inner.find(special).ok_or(GivesUp)?;
    let (plain, mut rest) = inner.split_at_checked(end).ok_or(GivesUp)?;
    if let Some(behind) = rest.strip_prefix(quote)
        && !(quote == '\'' && behind.starts_with('\''))
    {
        return Ok((Cow::Borrowed(plain), behind));
    }
    let mut text = plain.to_owned();
    loop {
        let mut characters = rest.chars();
        match (characters.next(), characters.next()) {
            (Some('\''), Some('\'')) => text.push('\''),
            (Some('\\'), Some(escaped @ ('"' | '\\'))) => text.push(escaped),
            (Some('\\'), Some('n')) => text.push('\n'),
            (Some('\\'), Some('t')) => text.push('\t'),
            (Some(found), _) if found == quote => {
                return Ok((Cow::Owned(text), rest.get(1..).ok_or(GivesUp)?));
            }
            _ => return Err(GivesUp),
        }
        let after = characters.as_str();
        let end = after.find(special).ok_or(GivesUp)?;
        let (plain, behind) = after.split_at_checked(end).ok_or(GivesUp)?;
        text.push_str(plain);
        rest = behind;
    }
}

/// What stands in brackets, on one line.
struct Flow<'a, 't> {
    rest: &'t str,
    ready: &'a mut VecDeque<Node<'t>>,
}

impl<'t> Flow<'_, 't> {
    fn value(&mut self, depth: usize) -> Result<(), GivesUp> {
        if depth > DEEPEST_FLOW {
            return Err(GivesUp);
        }
        if self.take('{') {
            self.ready.push_back(Node::Map);
            return self.entries('}', depth);
        }
        if self.take('[') {
            self.ready.push_back(Node::List);
            return self.entries(']', depth);
        }
        let text = self.text()?;
        self.ready.push_back(text.node());
        Ok(())
    }

    /// What follows an opening bracket, up to the closing one.
    fn entries(&mut self, close: char, depth: usize) -> Result<(), GivesUp> {
        self.skip();
        if !self.take(close) {
            loop {
                if close == '}' {
                    let key = self.text()?;
                    if key.0.len() > LONGEST_KEY || !self.take(':') || !self.rest.starts_with(' ') {
                        return Err(GivesUp);
                    }
                    self.skip();
                    self.ready.push_back(key.node());
                }
                self.value(depth + 1)?;
                self.skip();
                if self.take(close) {
                    break;
                }
                if !self.take(',') {
                    return Err(GivesUp);
                }
                self.skip();
            }
        }
        self.ready.push_back(Node::End);
        Ok(())
    }

    fn text(&mut self) -> Result<Text<'t>, GivesUp> {
        if self.rest.starts_with(['"', '\'']) {
            let (text, behind) = quoted(self.rest)?;
            self.rest = behind;
            return Ok(Text(text, false));
        }
        let end = self.rest.find([',', '[', ']', '{', '}', ':', '#']);
        let (text, behind) = self
            .rest
            .split_at_checked(end.ok_or(GivesUp)?)
            .ok_or(GivesUp)?;
        // A text that has one of these in it needs a closer look.
        if behind.starts_with(['[', '{', '#']) || (behind.starts_with(':') && text.ends_with(' ')) {
            return Err(GivesUp);
        }
        self.rest = behind;
        let text = text.trim_end_matches(' ');
        match may_begin(text) {
            true => Ok(Text(Cow::Borrowed(text), true)),
            false => Err(GivesUp),
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches(' ');
    }
}
