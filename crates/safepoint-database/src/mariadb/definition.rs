//! What `SHOW CREATE TABLE` says, taken apart: columns, keys, constraints, options.

use super::lex::{self, Backslash, Kind, Token, Tokens};

/// A `CREATE TABLE` statement in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Definition<'a> {
    /// What stands in the brackets, each without the comma behind it.
    pub(super) items: Vec<&'a str>,
    /// What stands behind them.
    pub(super) options: &'a str,
}

/// What an item in the brackets is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Item<'a> {
    /// A column, and what its definition says.
    Column(String, &'a str),
    /// The primary key, with its columns.
    Primary(Vec<String>),
    /// An index by name.
    Index(String),
    /// A constraint by name.
    Constraint(String),
    /// Anything else.
    Other,
}

fn tokens(text: &str) -> Tokens<'_> {
    // What is read here was printed by a session in which backslashes escape.
    Tokens::new(text.as_bytes(), Backslash::Escapes)
}

impl<'a> Definition<'a> {
    /// Takes a statement apart. `None` when it is not of the expected form.
    pub(super) fn read(create: &'a str) -> Option<Self> {
        let mut tokens = tokens(create);
        tokens.find(|token| token.is(b'('))?;
        let mut begin = create.len() - tokens.rest.len();
        let mut depth = 0_usize;
        let mut items = Vec::new();
        loop {
            let here = create.len() - tokens.rest.len();
            let token = tokens.next()?;
            let ends = token.is(b')') && depth == 0;
            if ends || token.is(b',') && depth == 0 {
                items.push(create.get(begin..here)?.trim());
                begin = here + 1;
            }
            if ends {
                let options = create.get(begin..)?.trim();
                return Some(Self { items, options });
            }
            match token.text {
                b"(" => depth += 1,
                b")" => depth -= 1,
                _ => {}
            }
        }
    }

    /// The columns of the primary key; of those that are only partly in it, nothing.
    pub(super) fn key(&self) -> Vec<String> {
        let primary = self.items.iter().find_map(|item| match read_item(item) {
            Item::Primary(key) => Some(key),
            _ => None,
        });
        primary.unwrap_or_default()
    }

    /// The constraint of this name.
    pub(super) fn constraint(&self, name: &str) -> Option<&'a str> {
        let wanted = Item::Constraint(name.to_owned());
        self.items
            .iter()
            .copied()
            .find(|item| read_item(item) == wanted)
    }
}

/// The foreign keys of a table, by name.
pub(super) fn foreign_keys(create: &str) -> Vec<(String, &str)> {
    let items = Definition::read(create).map(|definition| definition.items);
    let keys = items.into_iter().flatten().filter_map(|item| {
        let mut words = tokens(item).filter(|token| !token.is_blank()).skip(2);
        match read_item(item) {
            Item::Constraint(name) if words.next()?.is_word("foreign") => Some((name, item)),
            _ => None,
        }
    });
    keys.collect()
}

/// The statement without its foreign keys.
pub(super) fn without_foreign_keys(create: &str) -> String {
    let keys = foreign_keys(create);
    let Some(definition) = Definition::read(create).filter(|_| !keys.is_empty()) else {
        return create.to_owned();
    };
    let is_key = |item: &&str| keys.iter().any(|(_, key)| key == item);
    let kept: Vec<&str> = definition
        .items
        .iter()
        .copied()
        .filter(|item| !is_key(item))
        .collect();
    let mut tokens = tokens(create);
    tokens.find(|token| token.is(b'('));
    let head = create.len() - tokens.rest.len();
    let head = create.get(..head).unwrap_or_default();
    // As the server itself lays it out, so that the two can be compared.
    format!("{head}\n  {}\n) {}", kept.join(",\n  "), definition.options)
}

/// What an item in the brackets is.
pub(super) fn read_item(item: &str) -> Item<'_> {
    let mut tokens = tokens(item);
    let Some(first) = tokens.next_full() else {
        return Item::Other;
    };
    if first.kind == Kind::Name {
        let rest = item.len() - tokens.rest.len();
        let definition = item.get(rest..).unwrap_or_default().trim();
        return Item::Column(lex::unquote_name(first.text), definition);
    }
    if first.is_word("primary") {
        let names = tokens.filter(|token| token.kind == Kind::Name);
        return Item::Primary(names.map(|name| lex::unquote_name(name.text)).collect());
    }
    match tokens.find(|token| token.kind == Kind::Name) {
        Some(name) if first.is_word("constraint") => Item::Constraint(lex::unquote_name(name.text)),
        // `KEY`, `UNIQUE KEY`, `FULLTEXT KEY` …; `PERIOD FOR` names no index.
        Some(name) if !first.is_word("period") => Item::Index(lex::unquote_name(name.text)),
        _ => Item::Other,
    }
}

/// Whether the primary key takes columns whole, so that the server can sort by it without
/// sorting.
pub(super) fn has_plain_key(definition: &Definition<'_>) -> bool {
    let primary = definition
        .items
        .iter()
        .find(|item| matches!(read_item(item), Item::Primary(_)));
    primary.is_some_and(|item| tokens(item).filter(|token| token.is(b'(')).count() == 1)
}

/// Where the value of `AUTO_INCREMENT` stands, or would stand: behind the engine.
fn counter_place(create: &str) -> Option<(usize, usize)> {
    let definition = Definition::read(create)?;
    let start = create.len() - definition.options.len();
    let mut tokens = tokens(create.get(start..)?);
    let position = |tokens: &Tokens<'_>| create.len() - tokens.rest.len();
    let engine = tokens.next_full()?;
    if !engine.is_word("engine") || !tokens.next_full()?.is(b'=') {
        return None;
    }
    tokens.next_full()?;
    let begin = position(&tokens);
    let counter = tokens.next_full();
    if counter.is_some_and(|word| word.is_word("auto_increment")) {
        tokens.next_full()?;
        tokens.next_full()?;
        return Some((begin, position(&tokens)));
    }
    Some((begin, begin))
}

/// The statement without the value of `AUTO_INCREMENT`.
pub(super) fn without_counter(create: &str) -> String {
    replace_counter(create, "")
}

/// The statement with this value of `AUTO_INCREMENT`.
pub(super) fn with_counter(create: &str, counter: Option<u64>) -> String {
    match counter {
        Some(counter) => replace_counter(create, &format!(" AUTO_INCREMENT={counter}")),
        None => create.to_owned(),
    }
}

fn replace_counter(create: &str, with: &str) -> String {
    let parts = counter_place(create)
        .and_then(|(begin, end)| Some((create.get(..begin)?, create.get(end..)?)));
    match parts {
        Some((before, behind)) => format!("{before}{with}{behind}"),
        None => create.to_owned(),
    }
}

/// The statement with `rename` asked for a full name for each table of its own database
/// that a foreign key points to. `None` leaves it as it is.
pub(super) fn with_references(
    create: &str,
    rename: &dyn Fn(Option<&str>, &str) -> Option<String>,
) -> String {
    let mut written = String::new();
    let mut rest = tokens(create);
    while let Some(token) = rest.next() {
        written.push_str(&String::from_utf8_lossy(token.text));
        if !token.is_word("references") {
            continue;
        }
        let before = rest.clone();
        let mut names = Vec::new();
        while let Some(token) = rest.next_full() {
            if token.kind == Kind::Name {
                names.push(lex::unquote_name(token.text));
            }
            let behind = rest.clone().next_full();
            let goes_on = token.is(b'.') || behind.is_some_and(|token| token.is(b'.'));
            if !goes_on {
                break;
            }
        }
        let renamed = match names.as_slice() {
            [table] => rename(None, table),
            [database, table] => rename(Some(database), table),
            _ => None,
        };
        match renamed {
            Some(name) => written.push_str(&format!(" {name}")),
            None => rest = before,
        }
    }
    written
}

/// The statement with a character set before each collation of a column. MySQL leaves it out
/// until a table is made from such a statement: so it is never the same without it.
pub(super) fn with_character_sets(create: &str) -> String {
    let mut written = String::new();
    let mut depth = 0_usize;
    let mut has_set = false;
    let mut rest = tokens(create);
    while let Some(token) = rest.next() {
        match token.text {
            b"(" => depth += 1,
            b")" => depth = depth.saturating_sub(1),
            b"," if depth == 1 => has_set = false,
            _ => {}
        }
        let in_column = depth == 1;
        has_set |= in_column && token.is_word("character");
        if in_column && !has_set && token.is_word("collate") {
            let collation = rest.clone().next_full().map_or(&b""[..], |name| name.text);
            let collation = String::from_utf8_lossy(collation);
            let set = collation.split('_').next().unwrap_or_default();
            written.push_str(&format!("CHARACTER SET {set} "));
        }
        written.push_str(&String::from_utf8_lossy(token.text));
    }
    written
}

/// The sequences of `database` that defaults of this table take values from.
pub(super) fn sequences_used(create: &str, database: &str) -> Vec<String> {
    let mut used = Vec::new();
    let mut rest = tokens(create).filter(|token| !token.is_blank());
    let name = |token: Option<Token<'_>>| {
        token
            .filter(|token| token.kind == Kind::Name)
            .map(|token| lex::unquote_name(token.text))
    };
    while let Some(token) = rest.next() {
        let calls = ["nextval", "lastval"]
            .iter()
            .any(|word| token.is_word(word));
        if !calls || !rest.next().is_some_and(|token| token.is(b'(')) {
            continue;
        }
        let known = name(rest.next());
        rest.next();
        if let Some(sequence) = name(rest.next()).filter(|_| known.as_deref() == Some(database)) {
            used.push(sequence);
        }
    }
    used
}

/// A `CREATE TRIGGER` statement for this table of the present database. The server writes the
/// table in its own way after renaming it, so this is the form to compare as well.
pub(super) fn with_trigger_table(
    create: &[u8],
    table: &str,
    backslash: Backslash,
) -> Option<Vec<u8>> {
    let mut tokens = Tokens::new(create, backslash);
    tokens.find(|token| token.is_word("trigger"))?;
    tokens.next_full()?; // its name, which may be `on`
    let on = tokens.find(|token| token.is_word("on"))?;
    let before = create.len() - tokens.rest.len() - on.text.len();
    tokens.next_full()?;
    if tokens
        .clone()
        .next_full()
        .is_some_and(|token| token.is(b'.'))
    {
        tokens.next_full()?;
        tokens.next_full()?;
    }
    let mut written = create.get(..before)?.to_vec();
    written.extend_from_slice(format!("ON {}", lex::name(table)).as_bytes());
    written.extend_from_slice(tokens.rest);
    Some(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: &str = "CREATE TABLE `a``(b` (\n  `id` int(11) NOT NULL AUTO_INCREMENT COMMENT 'x, (y\\') z',\n  \
        `n, (` decimal(5,2) DEFAULT nextval(`shop`.`s q`),\n  PRIMARY KEY (`id`,`n, (`(3)),\n  UNIQUE KEY `u` (`id`),\n  \
        CONSTRAINT `f` FOREIGN KEY (`id`) REFERENCES `p` (`id`) ON DELETE CASCADE,\n  \
        CONSTRAINT `g` FOREIGN KEY (`id`) REFERENCES `other`.`p` (`id`),\n  \
        CONSTRAINT `c` CHECK (`id` > 0)\n) ENGINE=InnoDB AUTO_INCREMENT=17 DEFAULT CHARSET=utf8mb4 COMMENT=' AUTO_INCREMENT=3'";

    #[test]
    fn statements_are_taken_apart() {
        let definition = Definition::read(CREATE).unwrap();
        assert_eq!(definition.items.len(), 7);
        assert_eq!(
            read_item(definition.items[0]),
            Item::Column(
                "id".into(),
                "int(11) NOT NULL AUTO_INCREMENT COMMENT 'x, (y\\') z'"
            )
        );
        assert_eq!(definition.key(), ["id", "n, ("]);
        assert!(!has_plain_key(&definition));
        assert_eq!(read_item(definition.items[3]), Item::Index("u".into()));
        assert!(definition.constraint("c").unwrap().contains("CHECK"));
        assert!(definition.options.starts_with("ENGINE=InnoDB"));
    }

    #[test]
    fn counters_are_taken_out_and_put_back() {
        let without = without_counter(CREATE);
        assert!(!without.contains("=17"));
        assert_eq!(without_counter(&without), without);
        assert_eq!(with_counter(&without, Some(17)), CREATE);
        assert_eq!(with_counter(&without, None), without);
    }

    #[test]
    fn foreign_keys_are_taken_out() {
        let names: Vec<_> = foreign_keys(CREATE)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["f", "g"]);
        let without = without_foreign_keys(CREATE);
        assert!(foreign_keys(&without).is_empty() && without.contains("CONSTRAINT `c` CHECK"));
        assert_eq!(without_foreign_keys(&without), without);
        assert_eq!(Definition::read(&without).unwrap().items.len(), 5);
    }

    #[test]
    fn references_are_rewritten() {
        let rewritten = with_references(CREATE, &|database, table| {
            (database.is_none() && table == "p").then(|| "`shop`.`p`".to_owned())
        });
        assert!(rewritten.contains("REFERENCES `shop`.`p` (`id`) ON DELETE CASCADE"));
        assert!(rewritten.contains("REFERENCES `other`.`p` (`id`)"));
        assert_eq!(with_references(CREATE, &|_, _| None), CREATE);
    }

    #[test]
    fn character_sets_are_written_out() {
        let create = "CREATE TABLE `t` (\n  `a` varchar(4) COLLATE utf8mb4_bin NOT NULL,\n  \
            `b` text CHARACTER SET latin1 COLLATE latin1_bin,\n  `c` int CHECK (`a` COLLATE x),\n  \
            `d` text COLLATE utf8mb4_bin\n) COLLATE=utf8mb4_bin";
        let written = with_character_sets(create);
        assert_eq!(
            written
                .matches("CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
                .count(),
            2
        );
        assert_eq!(written.matches("CHARACTER SET").count(), 3);
        assert_eq!(with_character_sets(&written), written);
    }

    #[test]
    fn used_sequences_are_found() {
        assert_eq!(sequences_used(CREATE, "shop"), ["s q"]);
        assert_eq!(sequences_used(CREATE, "else"), Vec::<String>::new());
    }

    #[test]
    fn triggers_are_moved_to_another_table() {
        for (table, behind) in [
            ("on a.p for each row", " for each row"),
            ("ON `a`.`p`\nFOR EACH ROW", "\nFOR EACH ROW"),
            ("on p for each row", " for each row"),
        ] {
            let create =
                format!("CREATE DEFINER=`on`@`x` trigger `on` after insert {table} set @a=1");
            let moved = with_trigger_table(create.as_bytes(), "q`", Backslash::Escapes).unwrap();
            let wanted = format!(
                "CREATE DEFINER=`on`@`x` trigger `on` after insert ON `q```{behind} set @a=1"
            );
            assert_eq!(String::from_utf8(moved).unwrap(), wanted);
        }
    }
}
