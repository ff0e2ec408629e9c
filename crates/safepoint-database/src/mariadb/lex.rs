//! SQL cut into tokens, exactly as the `mariadb` client cuts it.
//!
//! The client looks for the end of a statement itself. A statement whose quote
//! stays open would swallow everything behind it, and we would wait for an
//! answer that never comes: what is sent is looked at here first.

/// Whether a backslash escapes what follows it in quotes (`NO_BACKSLASH_ESCAPES`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backslash {
    Escapes,
    Plain,
}

impl Backslash {
    /// As a session with this `sql_mode` has it.
    pub(super) fn in_mode(sql_mode: &str) -> Self {
        match sql_mode
            .split(',')
            .any(|mode| mode == "NO_BACKSLASH_ESCAPES")
        {
            true => Self::Plain,
            false => Self::Escapes,
        }
    }
}

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// White space.
    Space,
    /// A comment that nobody executes.
    Comment,
    /// `'…'` or `"…"`.
    Text,
    /// `` `…` ``.
    Name,
    /// Letters, digits and the like.
    Word,
    /// Any other single character.
    Symbol,
    /// Something that does not end, or a command to the client.
    Broken,
}

/// A piece of SQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a [u8],
}

impl Token<'_> {
    /// Whether it is this keyword.
    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Word && self.text.eq_ignore_ascii_case(word.as_bytes())
    }

    /// Whether it is this character.
    pub(super) fn is(&self, symbol: u8) -> bool {
        self.kind == Kind::Symbol && self.text == [symbol]
    }

    /// Whether it means nothing.
    pub(super) fn is_blank(&self) -> bool {
        matches!(self.kind, Kind::Space | Kind::Comment)
    }
}

/// Cuts a text into tokens.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    pub(super) rest: &'a [u8],
    backslash: Backslash,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a [u8], backslash: Backslash) -> Self {
        Self {
            rest: text,
            backslash,
        }
    }

    /// The next token that means something.
    pub(super) fn next_full(&mut self) -> Option<Token<'a>> {
        self.find(|token| !token.is_blank())
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        let first = *self.rest.first()?;
        let (kind, length) = match first {
            b'\'' | b'"' => ended(Kind::Text, quoted(self.rest, first, self.backslash)),
            b'`' => ended(Kind::Name, quoted(self.rest, first, Backslash::Plain)),
            b'#' => (Kind::Comment, line(self.rest)),
            b'-' if starts_dashes(self.rest) => (Kind::Comment, line(self.rest)),
            b'/' if starts_comment(self.rest) => ended(Kind::Comment, comment(self.rest)),
            // `\N` is NULL; every other one is a command to the client.
            b'\\' => match self.rest.get(1) {
                Some(b'N') => (Kind::Word, 2),
                _ => (Kind::Broken, self.rest.len()),
            },
            _ if first.is_ascii_whitespace() => (Kind::Space, run(self.rest, is_space)),
            _ if is_word(first) => (Kind::Word, run(self.rest, is_word)),
            _ => (Kind::Symbol, 1),
        };
        let (text, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(Token { kind, text })
    }
}

fn ended(kind: Kind, found: Result<usize, usize>) -> (Kind, usize) {
    match found {
        Ok(length) => (kind, length),
        Err(length) => (Kind::Broken, length),
    }
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn run(text: &[u8], belongs: fn(u8) -> bool) -> usize {
    text.iter()
        .position(|byte| !belongs(*byte))
        .unwrap_or(text.len())
}

fn line(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| *byte == b'\n')
        .unwrap_or(text.len())
}

/// Two dashes are a comment only with white space behind them.
fn starts_dashes(text: &[u8]) -> bool {
    text.starts_with(b"--") && text.get(2).is_none_or(|byte| is_space(*byte))
}

/// What stands in `/*! … */` and `/*M! … */` is executed.
fn starts_comment(text: &[u8]) -> bool {
    text.starts_with(b"/*") && !text.starts_with(b"/*!") && !text.starts_with(b"/*M!")
}

fn comment(text: &[u8]) -> Result<usize, usize> {
    text.windows(2)
        .skip(2)
        .position(|pair| pair == b"*/")
        .map(|position| position + 4)
        .ok_or(text.len())
}

fn quoted(text: &[u8], quote: u8, backslash: Backslash) -> Result<usize, usize> {
    let mut bytes = text.iter().enumerate().skip(1);
    while let Some((position, byte)) = bytes.next() {
        if *byte == b'\\' && backslash == Backslash::Escapes {
            bytes.next();
        } else if *byte == quote {
            // A doubled quote is one in the text.
            match text.get(position + 1) == Some(&quote) {
                true => bytes.next(),
                false => return Ok(position + 1),
            };
        }
    }
    Err(text.len())
}

/// Whether the client will see where this statement ends.
pub(super) fn is_whole(statement: &[u8], backslash: Backslash) -> bool {
    Tokens::new(statement, backslash).all(|token| token.kind != Kind::Broken)
}

/// A name as SQL writes it.
pub(super) fn name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A table of a database, as SQL writes it.
pub(super) fn full_name(database: &str, table: &str) -> String {
    format!("{}.{}", name(database), name(table))
}

/// A text as SQL writes it, for a session in which backslashes escape. It has no line
/// break in it.
pub(super) fn text(text: &[u8]) -> Vec<u8> {
    let mut quoted = Vec::with_capacity(text.len() + 2);
    push_text(&mut quoted, text);
    quoted
}

/// The same, at the end of `quoted`.
pub(super) fn push_text(quoted: &mut Vec<u8>, text: &[u8]) {
    quoted.push(b'\'');
    for byte in text {
        match byte {
            0 => quoted.extend_from_slice(b"\\0"),
            b'\n' => quoted.extend_from_slice(b"\\n"),
            b'\r' => quoted.extend_from_slice(b"\\r"),
            0x1a => quoted.extend_from_slice(b"\\Z"),
            b'\'' | b'\\' => quoted.extend_from_slice(&[b'\\', *byte]),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'\'');
}

/// What a quoted name means.
pub(super) fn unquote_name(quoted: &[u8]) -> String {
    let text = String::from_utf8_lossy(quoted);
    match text
        .strip_prefix('`')
        .and_then(|text| text.strip_suffix('`'))
    {
        Some(inner) => inner.replace("``", "`"),
        None => text.into_owned(),
    }
}

/// A script of statements, cut one at a time, because each may change how the next one
/// is to be read.
#[derive(Clone, Debug)]
pub(super) struct Script<'a> {
    rest: &'a [u8],
    delimiter: Vec<u8>,
}

/// A script that the client would not read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a quote or a comment does not end, or a `\\` stands outside quotes")]
pub(super) struct Broken;

impl<'a> Script<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            rest: text.as_bytes(),
            delimiter: b";".to_vec(),
        }
    }

    /// The next statement, without what ends it. `DELIMITER` is understood.
    pub(super) fn next(&mut self, backslash: Backslash) -> Result<Option<&'a [u8]>, Broken> {
        loop {
            let mut tokens = Tokens::new(self.rest, backslash);
            let start = loop {
                let here = tokens.rest;
                match tokens.next() {
                    None => return Ok(None),
                    Some(token) if token.is_blank() => {}
                    Some(token) if token.is_word("delimiter") => {
                        self.set_delimiter(tokens.rest);
                        tokens = Tokens::new(self.rest, backslash);
                    }
                    Some(_) => break here,
                }
            };
            let (statement, rest) = self.cut(start, backslash)?;
            self.rest = rest;
            if !statement.is_empty() {
                return Ok(Some(statement));
            }
        }
    }

    /// Takes the delimiter from the rest of the line, and goes on behind it.
    fn set_delimiter(&mut self, behind: &'a [u8]) {
        let (text, rest) = behind
            .split_at_checked(line(behind))
            .unwrap_or((behind, b""));
        let word = text.trim_ascii();
        if !word.is_empty() {
            self.delimiter = word.to_vec();
        }
        self.rest = rest;
    }

    fn cut(&self, start: &'a [u8], backslash: Backslash) -> Result<(&'a [u8], &'a [u8]), Broken> {
        let mut tokens = Tokens::new(start, backslash);
        loop {
            let taken = start.len() - tokens.rest.len();
            if tokens.rest.is_empty() || tokens.rest.starts_with(&self.delimiter) {
                let statement = start.get(..taken).unwrap_or_default();
                let rest = tokens.rest.get(self.delimiter.len()..).unwrap_or_default();
                return Ok((statement.trim_ascii(), rest));
            }
            if tokens
                .next()
                .is_some_and(|token| token.kind == Kind::Broken)
            {
                return Err(Broken);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Result<Vec<String>, Broken> {
        let mut script = Script::new(text);
        let mut statements = Vec::new();
        while let Some(statement) = script.next(Backslash::Escapes)? {
            statements.push(String::from_utf8(statement.to_vec()).unwrap());
        }
        Ok(statements)
    }

    #[test]
    fn scripts_are_cut_where_statements_end() {
        let script = "-- first; not here\nINSERT INTO t VALUES ('a;b', \"c;d\", `e;f`); # and;\n;;\n\
            UPDATE t SET a = 'it''s; \\'; fine' /* ; */ WHERE b--1;\n\
            DELIMITER //\nCREATE TRIGGER x BEGIN a; b; END//\ndelimiter ;\nSELECT 1";
        assert_eq!(
            cut(script).unwrap(),
            [
                "INSERT INTO t VALUES ('a;b', \"c;d\", `e;f`)",
                "UPDATE t SET a = 'it''s; \\'; fine' /* ; */ WHERE b--1",
                "CREATE TRIGGER x BEGIN a; b; END",
                "SELECT 1",
            ]
        );
        assert_eq!(cut(" \n-- nothing\n").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_does_not_end_is_refused() {
        for script in [
            "SELECT 'a",
            "SELECT `a",
            "SELECT \"a\\\"",
            "SELECT 1 /* no end",
            "SELECT 1 \\G",
            "\\! rm",
        ] {
            assert_eq!(cut(script), Err(Broken), "{script}");
            assert!(!is_whole(script.as_bytes(), Backslash::Escapes), "{script}");
        }
        assert!(is_whole(b"SELECT '\\'", Backslash::Plain));
        assert!(!is_whole(b"SELECT '\\'", Backslash::Escapes));
        assert!(is_whole(b"SELECT \\N /*! 'x' */", Backslash::Escapes));
    }

    #[test]
    fn names_and_texts_are_quoted() {
        assert_eq!(name("a`b"), "`a``b`");
        assert_eq!(unquote_name(b"`a``b`"), "a`b");
        assert_eq!(text(b"it's\n\0\\"), b"'it\\'s\\n\\0\\\\'");
    }
}
