//! `CREATE TABLE`, taken apart: columns, constraints, options.
//!
//! The text comes from SQLite, which has understood it. So it is enough to find the
//! commas and parentheses that belong to the outermost list. What is given out has one
//! space where the text has any, and no comments.

/// What a `CREATE TABLE` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Definition {
    /// Names, and what stands behind them.
    pub(super) columns: Vec<(String, String)>,
    /// Constraints of the table.
    pub(super) constraints: Vec<String>,
    /// `STRICT`, `WITHOUT ROWID`.
    pub(super) options: String,
    /// The columns of the primary key.
    pub(super) key: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    text: &'a str,
    /// Whether there is space before it.
    spaced: bool,
}

impl Token<'_> {
    fn is(self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// Takes a `CREATE TABLE` apart.
pub(super) fn read(sql: &str) -> Definition {
    let tokens = tokens(sql);
    let Some(open) = tokens.iter().position(|token| token.is("(")) else {
        return Definition::default();
    };
    let body = tokens.get(open + 1..).unwrap_or_default();
    let (items, rest) = split(body);
    let mut definition = Definition {
        options: join(rest),
        ..Definition::default()
    };
    for item in items {
        let Some((first, behind)) = item.split_first() else {
            continue;
        };
        let constraint = ["CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"];
        if constraint.iter().any(|word| first.is(word)) {
            if let Some(columns) = primary_key(item) {
                definition.key = columns;
            }
            definition.constraints.push(join(item));
            continue;
        }
        let name = unquote(first.text);
        if behind
            .windows(2)
            .any(|pair| matches!(pair, [a, b] if a.is("PRIMARY") && b.is("KEY")))
        {
            definition.key = vec![name.clone()];
        }
        definition.columns.push((name, join(behind)));
    }
    definition
}

/// The columns of `… PRIMARY KEY (a, b) …`.
fn primary_key(item: &[Token<'_>]) -> Option<Vec<String>> {
    let at = item.windows(3).position(
        |three| matches!(three, [a, b, c] if a.is("PRIMARY") && b.is("KEY") && c.is("(")),
    )?;
    let (columns, _) = split(item.get(at + 3..)?);
    let names = columns.iter().filter_map(|column| column.first());
    Some(names.map(|name| unquote(name.text)).collect())
}

/// Splits at the commas up to the parenthesis that closes, and gives what is behind it.
fn split<'a, 'b>(tokens: &'b [Token<'a>]) -> (Vec<&'b [Token<'a>]>, &'b [Token<'a>]) {
    let mut items = Vec::new();
    let (mut depth, mut start) = (0usize, 0);
    for (index, token) in tokens.iter().enumerate() {
        match token.text {
            "(" => depth += 1,
            ")" if depth > 0 => depth -= 1,
            ")" => {
                items.push(tokens.get(start..index).unwrap_or_default());
                return (items, tokens.get(index + 1..).unwrap_or_default());
            }
            "," if depth == 0 => {
                items.push(tokens.get(start..index).unwrap_or_default());
                start = index + 1;
            }
            _ => {}
        }
    }
    items.push(tokens.get(start..).unwrap_or_default());
    (items, &[])
}

fn join(tokens: &[Token<'_>]) -> String {
    let mut text = String::new();
    for token in tokens {
        if token.spaced && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(token.text);
    }
    text
}

/// A name without what is around it.
pub(super) fn unquote(text: &str) -> String {
    let mut inside = text.chars();
    let close = match (inside.next(), inside.next_back()) {
        (Some('['), Some(']')) => return inside.collect(),
        (Some(open @ ('"' | '\'' | '`')), Some(close)) if open == close => close,
        _ => return text.to_owned(),
    };
    let twice = format!("{close}{close}");
    inside.as_str().replace(&twice, &close.to_string())
}

/// Cuts a text into words, quoted names and texts, and single characters.
fn tokens(sql: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = sql;
    let mut spaced = false;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            _ if first.is_ascii_whitespace() => 1,
            '-' if rest.starts_with("--") => rest.find('\n').map_or(rest.len(), |end| end + 1),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' | '\'' | '`' => quoted(rest, first),
            '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
            _ if is_word(first) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let (text, behind) = rest.split_at_checked(length).unwrap_or((rest, ""));
        let skipped = first.is_ascii_whitespace()
            || (text.len() > 1 && (text.starts_with("--") || text.starts_with("/*")));
        if skipped {
            spaced = true;
        } else {
            tokens.push(Token { text, spaced });
            spaced = false;
        }
        rest = behind;
    }
    tokens
}

/// How long a quoted text is; a quote in it is written twice.
fn quoted(text: &str, quote: char) -> usize {
    let mut open = false;
    for (index, found) in text.char_indices() {
        if found == quote {
            open = !open;
        } else if !open {
            return index;
        }
    }
    text.len()
}

fn is_word(found: char) -> bool {
    found.is_alphanumeric() || found == '_' || found == '$' || !found.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_taken_apart() {
        let found = read(
            "CREATE TABLE \"odd \"\"name\"(id INTEGER  PRIMARY KEY, -- the number, of course\n\
             [a b] VARCHAR(20) DEFAULT 'x,y' /* ) */ , `c`, \"d\"\"e\" AS (a + (1)) STORED,\n\
             CONSTRAINT big CHECK (id > 0), UNIQUE (c, \"d\"\"e\")) STRICT",
        );
        let columns: Vec<(&str, &str)> = found
            .columns
            .iter()
            .map(|(name, rest)| (name.as_str(), rest.as_str()))
            .collect();
        assert_eq!(
            columns,
            [
                ("id", "INTEGER PRIMARY KEY"),
                ("a b", "VARCHAR(20) DEFAULT 'x,y'"),
                ("c", ""),
                ("d\"e", "AS (a + (1)) STORED"),
            ]
        );
        assert_eq!(
            found.constraints,
            ["CONSTRAINT big CHECK (id > 0)", "UNIQUE (c, \"d\"\"e\")"]
        );
        assert_eq!(found.options, "STRICT");
        assert_eq!(found.key, ["id"]);
    }

    #[test]
    fn a_key_of_several_columns_is_found() {
        let found = read("CREATE TABLE t(a, b, PRIMARY KEY(\"b\" DESC, a)) WITHOUT ROWID");
        assert_eq!(found.key, ["b", "a"]);
        assert_eq!(found.options, "WITHOUT ROWID");
    }

    #[test]
    fn text_that_is_no_table_does_no_harm() {
        for text in [
            "",
            "(",
            "CREATE TABLE t(",
            "CREATE TABLE 'é(",
            "((((",
            "/*",
            "--",
            "a b, )",
        ] {
            read(text);
        }
    }
}
