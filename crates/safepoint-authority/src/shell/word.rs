//! The parser of words: quotes, parameters, substitutions, here-documents.
//!
//! Substitutions are read by the same grammar as the line itself, so that they
//! end where the shell ends them. What is not understood is refused.

use super::parse::{Parser, Refusal};
use super::syntax::{Operation, Parameter, Piece, Word};

impl Parser<'_> {
    /// A word of a command.
    pub(super) fn word(&mut self) -> Result<Word, Refusal> {
        let start = self.at;
        let mut pieces = Vec::new();
        self.tilde(&mut pieces);
        self.pieces(&mut pieces, Stop::Metacharacter)?;
        if self.at == start {
            return Err("it does not parse");
        }
        Ok(self.made(start, pieces))
    }

    /// The value of an assignment: may be empty.
    pub(super) fn value_word(&mut self) -> Result<Word, Refusal> {
        let start = self.at;
        let mut pieces = Vec::new();
        self.tilde(&mut pieces);
        self.pieces(&mut pieces, Stop::Metacharacter)?;
        Ok(self.made(start, pieces))
    }

    fn made(&self, start: usize, pieces: Vec<Piece>) -> Word {
        Word {
            pieces,
            raw: self.text.get(start..self.at).unwrap_or_default().to_owned(),
        }
    }

    pub(super) fn tilde(&mut self, pieces: &mut Vec<Piece>) {
        if !self.starts("~") {
            return;
        }
        let rest = self.rest();
        let end = rest
            .find(|next: char| "/ \t\n;&|<>():".contains(next))
            .unwrap_or(rest.len());
        let name = rest.get(1..end).unwrap_or_default();
        let plain = name
            .chars()
            .all(|next| next.is_ascii_alphanumeric() || "._-+".contains(next));
        if plain {
            pieces.push(Piece::Tilde(name.to_owned()));
            self.at += end;
        }
    }

    /// The body of a here-document that is expanded.
    pub(super) fn here_document(&mut self, body: &str) -> Result<Word, Refusal> {
        let mut inner = Parser::new(body, self.depth);
        let mut pieces = Vec::new();
        inner.quoted_pieces(&mut pieces, None)?;
        self.seen.hidden |= inner.seen.hidden;
        self.seen.arithmetic |= inner.seen.arithmetic;
        Ok(Word {
            pieces,
            raw: body.to_owned(),
        })
    }

    /// Remembers text that would be a substitution if it were evaluated again.
    pub(super) fn note_hidden(&mut self, text: &str) {
        if text.contains("$(") || text.contains('`') || text.contains("${") {
            self.seen.hidden = true;
        }
    }

    pub(super) fn pieces(&mut self, pieces: &mut Vec<Piece>, stop: Stop) -> Result<(), Refusal> {
        let mut plain = String::new();
        while let Some(next) = self.peek() {
            if stop.at(next) {
                let process =
                    stop == Stop::Metacharacter && (self.starts("<(") || self.starts(">("));
                if process {
                    if !plain.is_empty() || !pieces.is_empty() {
                        return Err("a word that shells read differently");
                    }
                    let fed = self.starts(">(");
                    self.at += 2;
                    let list = self.substituted()?;
                    let ends = self.peek().is_none_or(|next| stop.at(next));
                    if list.0.is_empty() || !ends {
                        return Err("a word that shells read differently");
                    }
                    pieces.push(Piece::Process { list, fed });
                    break;
                }
                break;
            }
            if matches!(next, '\'' | '"' | '\\' | '$' | '`') && !plain.is_empty() {
                pieces.push(Piece::Plain(std::mem::take(&mut plain)));
            }
            match next {
                // In double quotes these quote in some places and not in others.
                '\'' if stop == Stop::QuotedBrace => return Err("quotes in quotes"),
                '\'' => {
                    self.at += 1;
                    let Some(end) = self.rest().find('\'') else {
                        return Err("a quote does not end");
                    };
                    let text = self.rest().get(..end).unwrap_or_default().to_owned();
                    self.at += end + 1;
                    self.note_hidden(&text);
                    pieces.push(Piece::Quoted(text));
                }
                '"' => {
                    self.at += 1;
                    pieces.push(Piece::Quoted(String::new()));
                    self.quoted_pieces(pieces, Some('"'))?;
                }
                '\\' => {
                    self.at += 1;
                    match self.bump() {
                        None => return Err("it ends in a backslash"),
                        // A line that goes on within a word may make an operator of its ends.
                        Some('\n') if self.peek().is_some_and(|next| !next.is_whitespace()) => {
                            return Err("a word over two lines");
                        }
                        Some('\n') => {}
                        Some(escaped) => {
                            if matches!(escaped, '$' | '`') {
                                self.seen.hidden = true;
                            }
                            pieces.push(Piece::Quoted(escaped.to_string()));
                        }
                    }
                }
                '$' | '`' => self.dollar(pieces, Quotes::Out)?,
                '(' => return Err("parentheses in a word"),
                _ => {
                    self.at += next.len_utf8();
                    plain.push(next);
                }
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Plain(plain));
        }
        Ok(())
    }

    /// Text in double quotes, or in a here-document when nothing closes it.
    fn quoted_pieces(
        &mut self,
        pieces: &mut Vec<Piece>,
        close: Option<char>,
    ) -> Result<(), Refusal> {
        let mut text = String::new();
        loop {
            let Some(next) = self.peek() else {
                if close.is_some() {
                    return Err("a quote does not end");
                }
                break;
            };
            if Some(next) == close {
                self.at += 1;
                break;
            }
            match next {
                '\\' => {
                    self.at += 1;
                    match self.peek() {
                        Some('\n') => self.at += 1,
                        Some(escaped @ ('$' | '`' | '\\')) => {
                            self.at += 1;
                            self.seen.hidden |= escaped != '\\';
                            text.push(escaped);
                        }
                        Some('"') if close.is_some() => {
                            self.at += 1;
                            text.push('"');
                        }
                        _ => text.push('\\'),
                    }
                }
                '$' | '`' => {
                    if !text.is_empty() {
                        pieces.push(Piece::Quoted(std::mem::take(&mut text)));
                    }
                    let quotes = if close.is_some() {
                        Quotes::In
                    } else {
                        Quotes::Document
                    };
                    self.dollar(pieces, quotes)?;
                }
                _ => {
                    self.at += next.len_utf8();
                    text.push(next);
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Quoted(text));
        }
        Ok(())
    }

    /// What a dollar sign or a back-quote begins.
    fn dollar(&mut self, pieces: &mut Vec<Piece>, quotes: Quotes) -> Result<(), Refusal> {
        let quoted = quotes != Quotes::Out;
        if self.take("`") {
            let list = self.backquoted(quotes == Quotes::In)?;
            pieces.push(Piece::Substitution { list, quoted });
            return Ok(());
        }
        self.at += 1;
        if self.starts("\\\n") {
            return Err("a word over two lines");
        }
        if self.take("((") {
            let start = self.at;
            let inner = self.arithmetic("))")?;
            let written = self.text.get(start..self.at).unwrap_or_default();
            let count = |mark: char| written.chars().filter(|next| *next == mark).count();
            // Where these do not match, some shells run it as commands after all.
            if written.contains('\n') || count('(') + 2 != count(')') {
                return Err("arithmetic that shells read differently");
            }
            if super::compound::runs_in_plain_shell(&inner) {
                return Err("arithmetic that shells read differently");
            }
            pieces.push(Piece::Arithmetic(inner));
        } else if self.take("(") {
            let list = self.substituted()?;
            pieces.push(Piece::Substitution { list, quoted });
        } else if self.take("{") {
            let parameter = self.parameter(quoted)?;
            pieces.push(Piece::Parameter(parameter));
        } else if self.starts("[") {
            return Err("arithmetic in square brackets");
        } else if !quoted && self.take("'") {
            let text = self.escaped_text()?;
            self.note_hidden(&text);
            pieces.push(Piece::Quoted(text));
        } else if !quoted && self.starts("\"") {
            return Err("translated text");
        } else {
            match self.peek() {
                Some(next) if next.is_ascii_alphabetic() || next == '_' => {
                    let rest = self.rest();
                    let end = rest
                        .find(|next: char| !(next.is_ascii_alphanumeric() || next == '_'))
                        .unwrap_or(rest.len());
                    let name = rest.get(..end).unwrap_or_default().to_owned();
                    self.at += end;
                    if self.starts("[") && !quoted {
                        // zsh takes an element here; bash takes a pattern.
                        return Err("an index that shells read differently");
                    }
                    pieces.push(simple_parameter(name, quoted));
                }
                Some(next) if next.is_ascii_digit() || "@*#?-$!".contains(next) => {
                    self.at += 1;
                    pieces.push(simple_parameter(next.to_string(), quoted));
                }
                _ if quoted => pieces.push(Piece::Quoted("$".to_owned())),
                // Braces would put it before a name.
                Some(',' | '}') => return Err("a dollar sign in braces"),
                _ => pieces.push(Piece::Plain("$".to_owned())),
            }
        }
        Ok(())
    }

    /// The commands of a substitution, after its opening parenthesis.
    fn substituted(&mut self) -> Result<super::syntax::List, Refusal> {
        let start = self.at;
        let outer = self.set_aside();
        self.deeper()?;
        let list = self.list(&[])?;
        self.depth -= 1;
        if self.waits() || !self.take(")") {
            return Err("a substitution does not end");
        }
        let lines = self.text.get(start..self.at).unwrap_or_default();
        if !outer.is_empty() && lines.contains('\n') {
            return Err("a here-document that shells read differently");
        }
        self.put_back(outer);
        Ok(list)
    }

    fn backquoted(&mut self, in_quotes: bool) -> Result<super::syntax::List, Refusal> {
        let mut inner = String::new();
        loop {
            match self.bump() {
                None => return Err("a substitution does not end"),
                Some('`') => break,
                Some('\\') => match self.bump() {
                    Some(next @ ('`' | '\\' | '$')) => inner.push(next),
                    Some('"') if in_quotes => inner.push('"'),
                    Some(next) => {
                        inner.push('\\');
                        inner.push(next);
                    }
                    None => return Err("a substitution does not end"),
                },
                Some(next) => inner.push(next),
            }
        }
        self.deeper()?;
        let (list, seen) = super::parse::script(&inner, self.depth)?;
        self.depth -= 1;
        self.seen.hidden |= seen.hidden;
        self.seen.arithmetic |= seen.arithmetic;
        Ok(list)
    }

    /// An arithmetic expression up to `close`: what it holds is looked at, not computed.
    pub(super) fn arithmetic(&mut self, close: &str) -> Result<Vec<Piece>, Refusal> {
        self.deeper()?;
        let mut pieces = Vec::new();
        let mut open = 0_usize;
        let mut text = String::new();
        loop {
            if open == 0 && self.take(close) {
                break;
            }
            match self.peek() {
                None | Some('\n') => return Err("arithmetic does not end"),
                Some('$' | '`') => {
                    if !text.is_empty() {
                        pieces.push(Piece::Quoted(std::mem::take(&mut text)));
                    }
                    self.dollar(&mut pieces, Quotes::In)?;
                }
                Some('\\') => return Err("a backslash in arithmetic"),
                Some('\'') => {
                    self.at += 1;
                    let Some(end) = self.rest().find('\'') else {
                        return Err("a quote does not end");
                    };
                    let inner = self.rest().get(..end).unwrap_or_default().to_owned();
                    self.at += end + 1;
                    self.note_hidden(&inner);
                    text.push_str(&inner);
                }
                Some('"') => {
                    self.at += 1;
                    self.quoted_pieces(&mut pieces, Some('"'))?;
                }
                Some('(') => {
                    open += 1;
                    self.at += 1;
                    text.push('(');
                }
                Some(')') => {
                    let Some(fewer) = open.checked_sub(1) else {
                        return Err("arithmetic does not end");
                    };
                    open = fewer;
                    self.at += 1;
                    text.push(')');
                }
                Some('[') if close == "]" => return Err("a nested index"),
                Some(next) => {
                    self.at += next.len_utf8();
                    text.push(next);
                }
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Quoted(text));
        }
        // Numbers alone evaluate nothing that a variable holds.
        self.seen.arithmetic |= close != "]"
            && !pieces.iter().all(|piece| match piece {
                Piece::Quoted(text) => {
                    !text.contains(|next: char| next.is_alphabetic() || next == '_')
                }
                _ => false,
            });
        self.depth -= 1;
        Ok(pieces)
    }

    /// `$'…'`, after its opening quote.
    fn escaped_text(&mut self) -> Result<String, Refusal> {
        let mut text = String::new();
        loop {
            match self.bump() {
                None => return Err("a quote does not end"),
                Some('\'') => return Ok(text),
                Some('\\') => {
                    let next = self.bump().ok_or("a quote does not end")?;
                    match next {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        '\\' | '\'' | '"' | '?' => text.push(next),
                        'x' => text.push(self.number(16, 2)?),
                        'u' => text.push(self.number(16, 4)?),
                        'U' => text.push(self.number(16, 8)?),
                        '0'..='7' => {
                            self.at -= 1;
                            text.push(self.number(8, 3)?);
                        }
                        'a' => text.push('\u{7}'),
                        'b' => text.push('\u{8}'),
                        'e' | 'E' => text.push('\u{1b}'),
                        'f' => text.push('\u{c}'),
                        'r' => text.push('\r'),
                        'v' => text.push('\u{b}'),
                        _ => return Err("a strange escape"),
                    }
                }
                Some(next) => text.push(next),
            }
        }
    }

    fn number(&mut self, radix: u32, width: usize) -> Result<char, Refusal> {
        let mut value = 0_u32;
        let mut any = false;
        for _ in 0..width {
            let Some(digit) = self.peek().and_then(|next| next.to_digit(radix)) else {
                break;
            };
            value = value * radix + digit;
            any = true;
            self.at += 1;
        }
        // Beyond ASCII these are bytes, which need not be a letter.
        match char::from_u32(value) {
            Some(letter) if any && value != 0 && (value < 0x80 || width > 3) => Ok(letter),
            _ => Err("a strange escape"),
        }
    }
}

fn simple_parameter(name: String, quoted: bool) -> Piece {
    Piece::Parameter(Parameter {
        name,
        quoted,
        operation: Operation::Value,
    })
}

/// Where unquoted pieces end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Metacharacter,
    Brace,
    QuotedBrace,
}

impl Stop {
    fn at(self, next: char) -> bool {
        match self {
            Self::Metacharacter => " \t\n;&|<>)(".contains(next),
            Self::Brace | Self::QuotedBrace => next == '}',
        }
    }
}

/// Whether quotes surround a dollar sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Out,
    In,
    Document,
}
