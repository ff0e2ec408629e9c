//! The parser of shell lines: lists, pipelines and simple commands.
//!
//! It reads what bash, zsh and sh read alike, and refuses everything else: an
//! unknown construct is an error here, never a guess. It never panics, and its
//! work is bounded by the length of the line and by a depth. Compound commands
//! are read in `compound`, words in `word`, redirections in `operator`.

use std::cell::OnceCell;
use std::rc::Rc;

use super::syntax::{
    Assigned, Assignment, Command, Item, Joint, List, Piece, Pipeline, Simple, Word,
};

/// How deeply a line may nest.
pub(super) const DEPTH: usize = 20;

/// Why a line is refused, in a few words.
pub(super) type Refusal = &'static str;

/// What was seen on the way, that makes other things dangerous.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Quoted text holds what looks like a substitution.
    pub(super) hidden: bool,
    /// Something is evaluated as arithmetic, which expands what variables hold.
    pub(super) arithmetic: bool,
}

/// Reads a whole line.
pub(super) fn script(text: &str, depth: usize) -> Result<(List, Seen), Refusal> {
    let mut parser = Parser::new(text, depth);
    let list = parser.list(&[])?;
    if parser.at < text.len() {
        return Err("it does not parse");
    }
    if !parser.pending.is_empty() {
        return Err("a here-document does not end");
    }
    Ok((list, parser.seen))
}

/// A here-document whose body comes after the next end of line.
pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) literal: bool,
    pub(super) tabs: bool,
    pub(super) body: Rc<OnceCell<Word>>,
}

/// A place in a line.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    pub(super) depth: usize,
    pub(super) seen: Seen,
    pub(super) pending: Vec<Pending>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            seen: Seen::default(),
            pending: Vec::new(),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn starts(&self, what: &str) -> bool {
        self.rest().starts_with(what)
    }

    pub(super) fn take(&mut self, what: &str) -> bool {
        let found = self.starts(what);
        if found {
            self.at += what.len();
        }
        found
    }

    pub(super) fn deeper(&mut self) -> Result<(), Refusal> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err("it nests too deeply");
        }
        Ok(())
    }

    /// Skips blanks, continued lines and comments.
    pub(super) fn blanks(&mut self) {
        loop {
            if self.take("\\\n") || self.take(" ") || self.take("\t") {
                continue;
            }
            if self.starts("#") {
                let end = self.rest().find('\n').unwrap_or(self.rest().len());
                self.at += end;
            }
            return;
        }
    }

    /// Skips blanks and ends of lines.
    pub(super) fn lines(&mut self) -> Result<(), Refusal> {
        loop {
            self.blanks();
            if !self.newline()? {
                return Ok(());
            }
        }
    }

    /// Takes an end of line, and the here-documents that wait for it.
    pub(super) fn newline(&mut self) -> Result<bool, Refusal> {
        if !self.take("\n") {
            return Ok(false);
        }
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            loop {
                let rest = self.rest();
                if rest.is_empty() {
                    return Err("a here-document does not end");
                }
                let end = rest.find('\n').unwrap_or(rest.len());
                let line = rest.get(..end).unwrap_or_default();
                let shown = if pending.tabs {
                    line.trim_start_matches('\t')
                } else {
                    line
                };
                let before = self.at;
                self.at += end;
                if shown == pending.delimiter {
                    let body = self.text.get(start..before).unwrap_or_default();
                    if !pending.literal && body.ends_with("\\\n") {
                        return Err("a here-document that shells read differently");
                    }
                    let word = if pending.literal {
                        self.note_hidden(body);
                        Word {
                            pieces: vec![Piece::Quoted(body.to_owned())],
                            raw: body.to_owned(),
                        }
                    } else {
                        self.here_document(body)?
                    };
                    // Each is filled once: the redirection that waits for it made it.
                    let _ = pending.body.set(word);
                    self.take("\n");
                    break;
                }
                if !self.take("\n") {
                    return Err("a here-document does not end");
                }
            }
        }
        Ok(true)
    }

    /// The keyword that stands here, if one does.
    pub(super) fn keyword(&self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|next: char| " \t\n;&|<>()\"'$`\\".contains(next))
            .unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        match rest.get(end..).and_then(|after| after.chars().next()) {
            Some('"' | '\'' | '$' | '`' | '\\') => "",
            _ => word,
        }
    }

    pub(super) fn expect_keyword(&mut self, word: &str) -> Result<(), Refusal> {
        self.lines()?;
        if self.keyword() != word {
            return Err("it does not parse");
        }
        self.at += word.len();
        Ok(())
    }

    /// Commands up to a closing parenthesis, one of these keywords, or the end.
    pub(super) fn list(&mut self, stops: &[&str]) -> Result<List, Refusal> {
        let mut items = Vec::new();
        loop {
            self.lines()?;
            let ended = matches!(self.peek(), None | Some(')'))
                || self.starts(";;")
                || self.starts(";&")
                || stops.contains(&self.keyword());
            if ended {
                return Ok(List(items));
            }
            let mut item = self.item()?;
            self.blanks();
            if self.starts(";;") || self.starts(";&") {
                items.push(item);
                return Ok(List(items));
            }
            let more = if self.starts("&") && !self.starts("&&") {
                self.take("&");
                item.background = true;
                true
            } else {
                self.take(";") || self.newline()?
            };
            items.push(item);
            if !more {
                return Ok(List(items));
            }
        }
    }

    /// A list that must hold something.
    pub(super) fn body(&mut self, stops: &[&str]) -> Result<List, Refusal> {
        self.deeper()?;
        let list = self.list(stops)?;
        self.depth -= 1;
        if list.0.is_empty() {
            return Err("it does not parse");
        }
        Ok(list)
    }

    pub(super) fn item(&mut self) -> Result<Item, Refusal> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.blanks();
            let joint = if self.take("&&") {
                Joint::And
            } else if self.take("||") {
                Joint::Or
            } else {
                break;
            };
            self.lines()?;
            rest.push((joint, self.pipeline()?));
        }
        Ok(Item {
            first,
            rest,
            background: false,
        })
    }

    pub(super) fn pipeline(&mut self) -> Result<Pipeline, Refusal> {
        loop {
            self.blanks();
            match self.keyword() {
                "!" => self.at += 1,
                "time" => {
                    self.at += 4;
                    self.blanks();
                    if self.keyword() == "-p" {
                        self.at += 2;
                    }
                }
                _ => break,
            }
        }
        let mut commands = vec![self.command()?];
        loop {
            self.blanks();
            if self.starts("||") {
                break;
            }
            if !self.take("|&") && !self.take("|") {
                break;
            }
            self.lines()?;
            commands.push(self.command()?);
        }
        Ok(Pipeline(commands))
    }

    pub(super) fn simple(&mut self) -> Result<Command, Refusal> {
        let mut simple = Simple::default();
        loop {
            self.blanks();
            if let Some(redirect) = self.redirect()? {
                simple.redirects.push(redirect);
                continue;
            }
            match self.peek() {
                None | Some(';' | '&' | '|' | '\n' | ')') => break,
                Some('(') => {
                    let [name] = simple.words.as_slice() else {
                        return Err("it does not parse");
                    };
                    if !simple.assignments.is_empty() || !simple.redirects.is_empty() {
                        return Err("it does not parse");
                    }
                    let name = name.raw.clone();
                    self.at += 1;
                    self.blanks();
                    if !self.take(")") {
                        return Err("it does not parse");
                    }
                    return self.function(name);
                }
                _ => {}
            }
            if simple.words.is_empty()
                && let Some(assignment) = self.assignment()?
            {
                simple.assignments.push(assignment);
                continue;
            }
            let word = self.word()?;
            if word.raw.starts_with('{')
                && self.starts_redirect()
                && is_name(word.raw.trim_matches(['{', '}']))
            {
                return Err("a redirection that is not looked into");
            }
            simple.words.push(word);
        }
        if simple.words.is_empty() && simple.assignments.is_empty() && simple.redirects.is_empty() {
            return Err("it does not parse");
        }
        Ok(Command::Simple(simple))
    }

    fn starts_redirect(&self) -> bool {
        matches!(self.peek(), Some('<' | '>'))
    }

    /// `name=…`, `name+=…`, `name[…]=…`, if one stands here.
    fn assignment(&mut self) -> Result<Option<Assignment>, Refusal> {
        let rest = self.rest();
        let end = rest
            .find(|next: char| !(next.is_ascii_alphanumeric() || next == '_'))
            .unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if !is_name(name) {
            return Ok(None);
        }
        let after = rest.get(end..).unwrap_or_default();
        let mut index = None;
        let start = self.at;
        if after.starts_with('[') {
            self.at += end + 1;
            let pieces = self.arithmetic("]")?;
            if !(self.starts("=") || self.starts("+=")) {
                // A pattern such as `file[0-9].txt`; but some shells read blanks in it as well.
                let inner = self.text.get(start + end..self.at).unwrap_or_default();
                if inner.contains([' ', '\t', ';', '&', '|', '<', '>', '(', ')']) {
                    return Err("an index that shells read differently");
                }
                self.at = start;
                return Ok(None);
            }
            index = Some(Word {
                pieces,
                raw: String::new(),
            });
        } else if after.starts_with('=') || after.starts_with("+=") {
            self.at += end;
        } else {
            return Ok(None);
        }
        let append = self.take("+=");
        if !append {
            self.take("=");
        }
        let value = if self.take("(") {
            let mut elements = Vec::new();
            loop {
                self.lines()?;
                if self.take(")") {
                    break;
                }
                match self.peek() {
                    None | Some(';' | '&' | '|' | '<' | '>' | '(') => {
                        return Err("it does not parse");
                    }
                    _ => elements.push(self.word()?),
                }
            }
            if !matches!(
                self.peek(),
                None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')' | '<' | '>')
            ) {
                return Err("it does not parse");
            }
            Assigned::Array(elements)
        } else {
            Assigned::Scalar(self.value_word()?)
        };
        Ok(Some(Assignment {
            name: name.to_owned(),
            index,
            append,
            value,
        }))
    }

    /// The here-documents that wait, put aside while a substitution is read.
    pub(super) fn set_aside(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.pending)
    }

    /// They wait again.
    pub(super) fn put_back(&mut self, pending: Vec<Pending>) {
        self.pending = pending;
    }

    /// Whether a here-document still waits for its body.
    pub(super) fn waits(&self) -> bool {
        !self.pending.is_empty()
    }
}

/// Whether this may name a variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|next| next.is_ascii_alphanumeric() || next == '_')
}
