//! Reads the structure of a database from its server.

use std::collections::BTreeMap;

use super::definition::{self, Definition, Item};
use super::lex::{self, Backslash, Tokens};
use super::program::{self, field, quoted, show};
use super::server::Server;
use super::session::Session;
use super::structure::{ColumnText, Reading, Sequence, Structure, TableText};
use super::trouble::Trouble;

/// A table, view or sequence, as `information_schema` lists it.
struct Listed {
    name: String,
    kind: String,
    engine: String,
    counter: Option<u64>,
    created: String,
    comment: String,
}

/// Reads what `only` means of `database`, all of it when `only` is empty. Of names that are
/// not there, nothing is said.
pub(super) fn structure(
    server: &Server,
    session: &mut Session,
    database: &str,
    only: &[String],
) -> Result<Structure, Trouble> {
    server.enter(session, database)?;
    let mut structure = Structure {
        format: Structure::FORMAT,
        only: only.to_vec(),
        ..Structure::default()
    };
    let mut listed = listed(session, database)?;
    listed.retain(|one| structure.means(&one.name));
    let mut columns = columns(session, database)?;
    for one in &listed {
        match one.kind.as_str() {
            "VIEW" => {
                let view = program::view(session, &one.name, one.comment != "VIEW")?;
                structure.views.push(view);
            }
            "SEQUENCE" => {
                let sequence = sequence(session, &one.name)?;
                structure.sequences.push(sequence);
            }
            _ => {
                let columns = columns.remove(&one.name).unwrap_or_default();
                let mut table = table(session, one, columns)?;
                if !server.version.is_mariadb {
                    table.create = definition::with_character_sets(&table.create);
                }
                match why_left_out(server, one, &table) {
                    Some(why) => structure.left_out.push((one.name.clone(), why)),
                    None => structure.tables.push(table),
                }
            }
        }
    }
    structure.triggers = program::triggers(session, database)?;
    structure
        .triggers
        .retain(|trigger| structure.tables.iter().any(|t| t.name == trigger.table));
    if only.is_empty() {
        structure.database = options(session, database)?;
        structure.routines = program::routines(server, session, database)?;
        structure.events = program::events(session, database)?;
    }
    Ok(structure)
}

fn listed(session: &mut Session, database: &str) -> Result<Vec<Listed>, Trouble> {
    let rows = session.texts(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, IFNULL(ENGINE, ''), \
         IFNULL(AUTO_INCREMENT, ''), IFNULL(CREATE_TIME, ''), IFNULL(TABLE_COMMENT, '') \
         FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
        quoted(database)
    ))?;
    let mut listed = Vec::new();
    for row in rows {
        // The server compares names without regard to case.
        if let [schema, name, kind, engine, counter, created, comment] = row.as_slice()
            && schema == database
        {
            listed.push(Listed {
                name: name.clone(),
                kind: kind.clone(),
                engine: engine.clone(),
                counter: counter.parse().ok(),
                created: created.clone(),
                comment: comment.clone(),
            });
        }
    }
    listed.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listed)
}

type Columns = BTreeMap<String, Vec<ColumnText>>;

fn columns(session: &mut Session, database: &str) -> Result<Columns, Trouble> {
    let rows = session.texts(&format!(
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, DATA_TYPE, IS_NULLABLE, \
         IFNULL(CHARACTER_SET_NAME, ''), IFNULL(GENERATION_EXPRESSION, '') \
         FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = {} \
         ORDER BY TABLE_NAME, ORDINAL_POSITION",
        quoted(database)
    ))?;
    let mut columns = Columns::new();
    for row in rows {
        if let [schema, table, name, kind, nullable, charset, expression] = row.as_slice()
            && schema == database
        {
            columns.entry(table.clone()).or_default().push(ColumnText {
                name: name.clone(),
                reading: reading(kind, charset, expression),
                nullable: nullable == "YES",
            });
        }
    }
    Ok(columns)
}

fn reading(kind: &str, charset: &str, expression: &str) -> Reading {
    // The two columns that a table keeps its history by are computed, yet written.
    if !matches!(expression, "" | "ROW START" | "ROW END") {
        return Reading::Computed;
    }
    match kind {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "decimal" | "year" => {
            Reading::Number
        }
        "float" | "double" => Reading::Float,
        "bit" => Reading::Bit,
        "date" | "time" | "datetime" | "timestamp" => Reading::Moment,
        _ => match charset {
            // What has no character set and is no string has a text of its own.
            "" if matches!(kind, "inet4" | "inet6" | "uuid" | "json") => Reading::Text,
            "" | "binary" => Reading::Bytes,
            "utf8mb4" | "utf8mb3" | "utf8" | "latin1" | "ascii" => Reading::Text,
            _ => Reading::Encoded,
        },
    }
}

fn table(
    session: &mut Session,
    listed: &Listed,
    mut columns: Vec<ColumnText>,
) -> Result<TableText, Trouble> {
    let shown = show(session, "TABLE", &listed.name)?;
    let create = field(&shown, 1);
    let versioned = listed.kind == "SYSTEM VERSIONED";
    let items = Definition::read(&create).map(|definition| definition.items);
    let has_period = |item: &&str| item.starts_with("PERIOD FOR SYSTEM_TIME");
    let named = items.is_some_and(|items| items.iter().any(has_period));
    for name in ["row_start", "row_end"] {
        // They are there and hidden, unless the table names columns of its own for it.
        if versioned && !named {
            columns.push(ColumnText {
                name: name.to_owned(),
                reading: Reading::Moment,
                nullable: false,
            });
        }
    }
    Ok(TableText {
        name: listed.name.clone(),
        create: definition::without_counter(&create),
        counter: listed.counter,
        columns,
        versioned,
        transactional: listed.engine.eq_ignore_ascii_case("InnoDB")
            || listed.engine.eq_ignore_ascii_case("ROCKSDB"),
        created: listed.created.clone(),
    })
}

/// Engines whose rows are here and nowhere else.
const ENGINES: [&str; 7] = [
    "InnoDB", "ROCKSDB", "Aria", "MyISAM", "MEMORY", "CSV", "ARCHIVE",
];

fn why_left_out(server: &Server, listed: &Listed, table: &TableText) -> Option<String> {
    if !ENGINES.contains(&listed.engine.as_str()) {
        return Some(format!(
            "the engine `{}` keeps its rows elsewhere",
            listed.engine
        ));
    }
    if Definition::read(&table.create).is_none()
        || !lex::is_whole(table.create.as_bytes(), Backslash::Escapes)
    {
        // Some versions write the name of a foreign key without regard to what is in it.
        return Some("the server writes its definition in a way that cannot be read".to_owned());
    }
    if !table.versioned {
        return None;
    }
    if !server.version.is_mariadb_from(10, 11) {
        return Some("this server has no way to bring back the history of rows".to_owned());
    }
    let items = Definition::read(&table.create).map(|definition| definition.items);
    let by_transaction = |item: &&str| match definition::read_item(item) {
        Item::Column(_, text) => text.starts_with("bigint") && text.contains("AS ROW START"),
        _ => false,
    };
    items
        .is_some_and(|items| items.iter().any(by_transaction))
        .then(|| "its history goes by transactions rather than by time".to_owned())
}

fn sequence(session: &mut Session, name: &str) -> Result<Sequence, Trouble> {
    let create = field(&show(session, "SEQUENCE", name)?, 1);
    let row = session.texts(&format!("SELECT * FROM {}", lex::name(name)))?;
    Ok(Sequence {
        name: name.to_owned(),
        create,
        row: row.first().map(|row| row.join(",")).unwrap_or_default(),
    })
}

/// `CHARACTER SET … COLLATE … COMMENT …` of a database.
fn options(session: &mut Session, database: &str) -> Result<String, Trouble> {
    let create = field(&show(session, "DATABASE", database)?, 1);
    let options = create.split_once(&lex::name(database));
    Ok(without_marks(options.map_or("", |(_, options)| options)))
}

/// What stands in `/*!40100 … */`, which only some versions execute, without the marks.
fn without_marks(text: &str) -> String {
    let mut tokens = Tokens::new(text.as_bytes(), Backslash::Escapes);
    let mut plain = Vec::new();
    while let Some(token) = tokens.next() {
        let behind = tokens.rest;
        if token.is(b'/') && behind.starts_with(b"*!") {
            tokens.nth(2); // `*`, `!` and the version
        } else if token.is(b'*') && behind.starts_with(b"/") {
            tokens.next();
        } else {
            plain.extend_from_slice(token.text);
        }
    }
    let plain = String::from_utf8_lossy(&plain);
    plain.trim().to_owned()
}

/// What the user may have no right to see, so that it would be missing without a word.
pub(super) fn blind_spots(session: &mut Session, database: &str) -> Result<Vec<String>, Trouble> {
    let database = quoted(database);
    let rights = session.texts(&format!(
        "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES UNION \
         SELECT PRIVILEGE_TYPE FROM information_schema.SCHEMA_PRIVILEGES \
         WHERE {database} LIKE TABLE_SCHEMA"
    ))?;
    let has = |right: &str| rights.iter().flatten().any(|known| known == right);
    let spots = [
        ("tables", has("SELECT")),
        ("triggers", has("TRIGGER")),
        ("views", has("SHOW VIEW")),
        ("routines", has("EXECUTE") || has("ALTER ROUTINE")),
        ("events", has("EVENT")),
    ];
    let unseen = spots.iter().filter(|(_, seen)| !seen);
    let told = |(what, _): &(&str, bool)| format!("{what} that the user has no right to see");
    Ok(unseen.map(told).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_database_are_read() {
        assert_eq!(
            without_marks(
                " /*!40100 DEFAULT CHARACTER SET utf8mb4 */ COMMENT 'a /*!40100 b */' /*!80016 X='N' */"
            ),
            "DEFAULT CHARACTER SET utf8mb4  COMMENT 'a /*!40100 b */'  X='N'"
        );
    }

    #[test]
    fn values_are_read_so_that_nothing_is_lost() {
        for (kind, charset, expression, wanted) in [
            ("int", "", "", Reading::Number),
            ("float", "", "", Reading::Float),
            ("varchar", "utf8mb4", "", Reading::Text),
            ("varchar", "sjis", "", Reading::Encoded),
            ("varbinary", "", "", Reading::Bytes),
            ("point", "", "", Reading::Bytes),
            ("enum", "latin1", "", Reading::Text),
            ("uuid", "", "", Reading::Text),
            ("timestamp", "", "ROW START", Reading::Moment),
            ("int", "", "`a` + 1", Reading::Computed),
        ] {
            assert_eq!(reading(kind, charset, expression), wanted, "{kind}");
        }
    }
}
