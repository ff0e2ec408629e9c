//! A script taken apart into its statements, as `psql` would do it.
//!
//! Only what is needed to find where a statement ends: quotes, comments, parentheses, and
//! the bodies of functions that are written without quotes. What a statement means is for
//! the server to say.

/// One statement of a script.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Statement {
    /// As it was written, without the semicolon.
    pub(super) text: String,
    /// Its bare words outside of parentheses, in capitals. Something in quotes stands
    /// there as its quote.
    pub(super) words: Vec<String>,
}

impl Statement {
    /// Whether it begins with these words.
    pub(super) fn begins(&self, words: &[&str]) -> bool {
        self.words.len() >= words.len() && self.words.iter().zip(words).all(|(a, b)| a == b)
    }
}

/// The statements of a script. Lines for `psql` alone, such as `\restrict`, are left out.
pub(super) fn split(script: &str) -> Vec<Statement> {
    let mut reader = Reader {
        text: script,
        at: 0,
    };
    let mut statements = Vec::new();
    while let Some(statement) = reader.statement() {
        statements.push(statement);
    }
    statements
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Goes on while `wanted` says so.
    fn skip_while(&mut self, wanted: impl Fn(char) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.step();
        }
    }

    /// Goes behind the next `end`, or to the end of the script.
    fn skip_past(&mut self, end: &str) {
        self.at = match self.rest().find(end) {
            Some(found) => self.at + found + end.len(),
            None => self.text.len(),
        };
    }

    /// The next statement that is not empty.
    fn statement(&mut self) -> Option<Statement> {
        loop {
            self.skip_to_start();
            self.peek()?;
            let start = self.at;
            let (words, end) = self.words();
            let text = self.text.get(start..end)?.trim_end();
            if !text.is_empty() {
                let text = text.to_owned();
                return Some(Statement { text, words });
            }
        }
    }

    /// Goes behind the statement. Returns its words, and where it ends.
    fn words(&mut self) -> (Vec<String>, usize) {
        let mut words: Vec<String> = Vec::new();
        let (mut depth, mut blocks) = (0_u32, 0_u32);
        let mut dotted = false;
        while let Some(next) = self.peek() {
            match next {
                ';' if depth == 0 && blocks == 0 => {
                    let end = self.at;
                    self.step();
                    return (words, end);
                }
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let token = self.token();
            // `AS case` and `t.end` are names.
            let named = dotted || words.last().is_some_and(|last| last == "AS");
            if !next.is_whitespace() {
                dotted = next == '.';
            }
            let Some(word) = token.filter(|_| depth == 0) else {
                continue;
            };
            if !named && begins_function(&words) {
                let begun = words.last().is_some_and(|last| last == "BEGIN");
                match word.as_str() {
                    "ATOMIC" if begun => blocks += 1,
                    "CASE" if blocks > 0 => blocks += 1,
                    "END" => blocks = blocks.saturating_sub(1),
                    _ => {}
                }
            }
            words.push(word);
        }
        (words, self.at)
    }

    /// Over blanks, comments, and lines that only `psql` understands.
    fn skip_to_start(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with("--") || rest.starts_with('\\') {
                self.skip_past("\n");
            } else if rest.starts_with("/*") {
                self.comment();
            } else if rest.starts_with(char::is_whitespace) {
                self.skip_while(char::is_whitespace);
            } else {
                return;
            }
        }
    }

    /// Goes over the next token. Returns what counts as a word of the statement.
    fn token(&mut self) -> Option<String> {
        let rest = self.rest();
        if rest.starts_with("--") {
            self.skip_past("\n");
            return None;
        }
        if rest.starts_with("/*") {
            self.comment();
            return None;
        }
        match self.peek()? {
            '\'' => {
                self.quoted('\'', false);
                Some("'".to_owned())
            }
            '"' => {
                self.quoted('"', false);
                Some("\"".to_owned())
            }
            '$' => self.dollars(),
            next if begins_word(next) => {
                let start = self.at;
                self.skip_while(|next| begins_word(next) || next.is_ascii_digit() || next == '$');
                let word = self.text.get(start..self.at)?.to_ascii_uppercase();
                if word == "E" && self.peek() == Some('\'') {
                    self.quoted('\'', true);
                    return Some("'".to_owned());
                }
                Some(word)
            }
            next if next.is_ascii_digit() => {
                // With the letters behind it, so that `1e5` is no word; a `$` would end it.
                self.skip_while(|next| next.is_ascii_alphanumeric() || next == '.' || next == '_');
                None
            }
            _ => {
                self.step();
                None
            }
        }
    }

    /// Over a text in quotes, which are doubled inside it.
    fn quoted(&mut self, quote: char, backslashes: bool) {
        self.step();
        while let Some(next) = self.step() {
            if backslashes && next == '\\' {
                self.step();
            } else if next == quote {
                if self.peek() != Some(quote) {
                    return;
                }
                self.step();
            }
        }
    }

    /// Over `$tag$ … $tag$`; or over a lone `$`.
    fn dollars(&mut self) -> Option<String> {
        let rest = self.rest();
        let inner = rest.strip_prefix('$')?;
        let tag_length = inner
            .find(|next: char| !(begins_word(next) || next.is_ascii_digit()))
            .unwrap_or(inner.len());
        let tag = inner.get(..tag_length)?;
        let closed = inner.get(tag_length..)?.starts_with('$');
        if !closed || tag.starts_with(|next: char| next.is_ascii_digit()) {
            self.step();
            return None;
        }
        let fence = format!("${tag}$");
        self.at += fence.len();
        self.skip_past(&fence);
        Some("'".to_owned())
    }

    /// Over a comment, which may have others inside it.
    fn comment(&mut self) {
        let mut depth = 0_u32;
        while !self.rest().is_empty() {
            if self.rest().starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with("*/") {
                depth = depth.saturating_sub(1);
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.step();
            }
        }
    }
}

fn begins_word(next: char) -> bool {
    next.is_ascii_alphabetic() || next == '_' || !next.is_ascii()
}

/// Whether a statement defines a function or a procedure: only there `BEGIN ATOMIC` opens
/// a block.
fn begins_function(words: &[String]) -> bool {
    let mut words = words.iter().map(String::as_str);
    if words.next() != Some("CREATE") {
        return false;
    }
    let kind = match words.next() {
        Some("OR") => words.nth(1),
        other => other,
    };
    matches!(kind, Some("FUNCTION" | "PROCEDURE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        split(script).into_iter().map(|found| found.text).collect()
    }

    #[test]
    fn statements_end_at_semicolons_that_are_nothing_else() {
        let script = r#"
            \restrict abc;
            -- a comment; with one
            SELECT 'a;b', "c;d", E'e\';f' /* g; /* h; */ i; */ ;;
            CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2);
            SELECT $$ x; $$, $a$ y; $$ z; $a$, 1e5 -- ;
        "#;
        assert_eq!(
            texts(script),
            [
                r#"SELECT 'a;b', "c;d", E'e\';f' /* g; /* h; */ i; */"#,
                "CREATE RULE r AS ON INSERT TO t DO ALSO (SELECT 1; SELECT 2)",
                "SELECT $$ x; $$, $a$ y; $$ z; $a$, 1e5 -- ;",
            ]
        );
    }

    #[test]
    fn bodies_without_quotes_are_one_statement() {
        let script = "CREATE OR REPLACE FUNCTION f(i int DEFAULT 1) RETURNS int LANGUAGE sql \
             BEGIN ATOMIC SELECT CASE WHEN i > 0 THEN 1 ELSE 2 END; SELECT 3; END; SELECT 4";
        assert_eq!(texts(script).len(), 2);
        assert_eq!(texts("BEGIN; SELECT 1; END").len(), 3);
        // Words that open or close a block elsewhere, and are names here.
        for body in [
            "SELECT 1 AS case",
            "SELECT 1 AS end",
            "SELECT t.case FROM t",
            "SELECT t . end FROM t",
        ] {
            let script =
                format!("CREATE FUNCTION begin() RETURNS int BEGIN ATOMIC {body}; END; COMMIT");
            assert_eq!(texts(&script).len(), 2, "{body}");
        }
        assert_eq!(
            texts("CREATE FUNCTION begin() RETURNS int AS 'SELECT 1'; COMMIT").len(),
            2
        );
    }

    #[test]
    fn words_are_those_outside_of_quotes_and_parentheses() {
        let found = split("alter Table \"Of\".x (owner) Owner TO 'me'");
        assert_eq!(
            found[0].words,
            ["ALTER", "TABLE", "\"", "X", "OWNER", "TO", "'"]
        );
        assert!(found[0].begins(&["ALTER", "TABLE"]));
        assert!(!found[0].begins(&["ALTER", "VIEW"]));
    }

    #[test]
    fn what_is_not_closed_ends_with_the_script() {
        for script in [
            "SELECT 'a;",
            "SELECT \"a;",
            "SELECT $$a;",
            "SELECT /* ;",
            "(((;",
        ] {
            assert_eq!(texts(script).len(), 1, "{script}");
        }
        assert!(texts(" -- nothing\n ; ").is_empty());
        assert!(texts(&";".repeat(1_000_000)).is_empty());
    }
}
