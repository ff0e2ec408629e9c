//! Builds the tables of an image in a database where nobody else looks, and checks
//! them there.

use crate::{Contents, DatabaseError, Image, Piece};

use super::capture::each_row;
use super::definition;
use super::lex;
use super::plan::Manner;
use super::read;
use super::row;
use super::server::Server;
use super::session::Session;
use super::structure::{Structure, TableText, hex, unhex};

/// How long a statement with rows may get. Longer ones are not faster.
const STATEMENT: usize = 512 << 10;

/// What is to be built, and where.
pub(super) struct Building<'a> {
    pub(super) server: &'a Server,
    /// What to build.
    pub(super) wanted: &'a Structure,
    pub(super) image: &'a Image,
    pub(super) contents: &'a dyn Contents,
    /// In which database.
    pub(super) place: &'a str,
}

impl Building<'_> {
    /// Makes all tables and sequences, and fills them.
    pub(super) fn build(&self, session: &mut Session) -> Result<(), DatabaseError> {
        self.server.enter(session, self.place)?;
        for sequence in &self.wanted.sequences {
            session.run(&sequence.create)?;
            let name = lex::name(&sequence.name);
            session.run(format!("INSERT INTO {name} VALUES ({})", sequence.row))?;
        }
        let longest = session.value("SELECT @@max_allowed_packet")?;
        let longest = longest.parse().unwrap_or(1 << 20);
        for table in &self.wanted.tables {
            session.run(self.create(table))?;
        }
        for table in &self.wanted.tables {
            if let Some(piece) = self.rows(table) {
                session.run("START TRANSACTION")?;
                fill(session, table, &piece, self.contents, longest)?;
                session.run("COMMIT")?;
            }
        }
        Ok(())
    }

    fn rows(&self, table: &TableText) -> Option<Piece> {
        let tables = &self.image.tables;
        tables.iter().find(|one| one.name == table.name)?.data
    }

    /// The statement that makes a table here.
    fn create(&self, table: &TableText) -> String {
        definition::with_counter(&self.form(table), table.counter)
    }

    /// How a table is defined here. A foreign key to a table that is built too points to that
    /// one, and follows it when it is renamed; one to a table that is not built points to the
    /// user's. A table with triggers gets its foreign keys later: their names must be unique in
    /// a database, and it is in the user's for a moment together with the one it replaces.
    fn form(&self, table: &TableText) -> String {
        let is_staged = Manner::of(&self.server.version) == Manner::Staged;
        if is_staged && self.wanted.has_trigger(&table.name) {
            return definition::without_foreign_keys(&table.create);
        }
        definition::with_references(&table.create, &|database, name| {
            (database.is_none() && !self.wanted.has_table(name))
                .then(|| lex::full_name(&self.server.database, name))
        })
    }

    /// Reads everything back, and compares it with the image. What cannot be brought back
    /// exactly and does no harm is returned as warnings.
    pub(super) fn check(&self, session: &mut Session) -> Result<Vec<String>, DatabaseError> {
        let found = read::structure(self.server, session, self.place, &[])?;
        let mut warnings = Vec::new();
        for table in &self.wanted.tables {
            let differs = |what: &str| self.differs(format!("table `{}`: {what}", table.name));
            let made = found.tables.iter().find(|one| one.name == table.name);
            let made = made.ok_or_else(|| differs("it is missing"))?;
            if made.create != self.form(table) || made.columns != table.columns {
                return Err(differs("its definition"));
            }
            if made.counter != table.counter {
                // A counter cannot be set back behind a row that has got past it.
                warnings.push(format!(
                    "the next number of `{}` is {} rather than {}",
                    table.name,
                    made.counter.unwrap_or_default(),
                    table.counter.unwrap_or_default()
                ));
            }
            let tally = each_row(session, made, self.place, &mut |_| Ok(()))?;
            let image = self.image.tables.iter().find(|one| one.name == table.name);
            let image = image.ok_or_else(|| differs("its rows"))?;
            if (tally.rows, tally.checksum()) != (image.rows, image.checksum) {
                return Err(differs("its rows"));
            }
        }
        for sequence in &self.wanted.sequences {
            if !found.sequences.contains(sequence) {
                return Err(self.differs(format!("sequence `{}`", sequence.name)));
            }
        }
        Ok(warnings)
    }

    fn differs(&self, why: String) -> DatabaseError {
        DatabaseError::NotIdentical {
            address: self.server.address.clone(),
            why,
        }
    }
}

fn fill(
    session: &mut Session,
    table: &TableText,
    piece: &Piece,
    contents: &dyn Contents,
    longest: usize,
) -> Result<(), DatabaseError> {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|one| lex::name(&one.name))
        .collect();
    let mut loader = Loader {
        head: format!(
            "INSERT INTO {} ({}) VALUES\n",
            lex::name(&table.name),
            columns.join(",")
        )
        .into_bytes(),
        statement: Vec::new(),
        longest,
    };
    each_line(piece, contents, &mut |row| loader.add(session, row))?;
    loader.send(session)
}

/// Hands out each line of a piece, without its end.
pub(super) fn each_line(
    piece: &Piece,
    contents: &dyn Contents,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<(), DatabaseError> {
    let mut partial = Vec::new();
    contents.copy(piece, &mut |run| {
        for part in run.split_inclusive(|byte| *byte == b'\n') {
            partial.extend_from_slice(part);
            if let Some(line) = partial.strip_suffix(b"\n") {
                visit(line)?;
                partial.clear();
            }
        }
        Ok(())
    })?;
    match partial.is_empty() {
        true => Ok(()),
        false => visit(&partial),
    }
}

/// Puts rows together into statements.
struct Loader {
    head: Vec<u8>,
    statement: Vec<u8>,
    /// The longest statement that the server takes.
    longest: usize,
}

impl Loader {
    fn add(&mut self, session: &mut Session, row: &[u8]) -> Result<(), DatabaseError> {
        let length = self.head.len() + self.statement.len() + row.len() + 2;
        if !self.statement.is_empty() && length > STATEMENT.min(self.longest / 2) {
            self.send(session)?;
        }
        if self.head.len() + row.len() + 1024 > self.longest {
            return self.send_long(session, row);
        }
        let before: &[u8] = match self.statement.is_empty() {
            true => &self.head,
            false => b",\n",
        };
        self.statement.extend_from_slice(before);
        self.statement.extend_from_slice(row);
        Ok(())
    }

    fn send(&mut self, session: &mut Session) -> Result<(), DatabaseError> {
        if !self.statement.is_empty() {
            session.run(&self.statement)?;
            self.statement.clear();
        }
        Ok(())
    }

    /// A row that is longer than a statement may be: its long values are put together in
    /// variables first.
    fn send_long(&self, session: &mut Session, row: &[u8]) -> Result<(), DatabaseError> {
        let mut written: Vec<Vec<u8>> = Vec::new();
        for (number, value) in row::values(row).into_iter().enumerate() {
            let variable = format!("@safepoint_{number}");
            let Some((bytes, wrap)) = long_value(value).filter(|(bytes, _)| bytes.len() > 256)
            else {
                written.push(value.to_vec());
                continue;
            };
            session.run(format!("SET {variable} = x''"))?;
            for part in bytes.chunks((self.longest / 4).max(1)) {
                let part = hex(part);
                session.run(format!("SET {variable} = CONCAT({variable}, {part})"))?;
            }
            written.push(match wrap {
                Value::Bytes => variable.into_bytes(),
                Value::Text => format!("CONVERT({variable} USING utf8mb4)").into_bytes(),
            });
        }
        let mut statement = self.head.clone();
        statement.push(b'(');
        statement.extend_from_slice(&written.join(&b','));
        statement.push(b')');
        session.run(statement)?;
        Ok(())
    }
}

enum Value {
    Text,
    Bytes,
}

/// The bytes of a value that may be long.
fn long_value(value: &[u8]) -> Option<(Vec<u8>, Value)> {
    if let Some(digits) = value.strip_prefix(b"0x") {
        return Some((unhex(digits)?, Value::Bytes));
    }
    let text = value.strip_prefix(b"'")?.strip_suffix(b"'")?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b'r' => b'\r',
                b'0' => 0,
                b'Z' => 0x1a,
                other => *other,
            },
            _ => *byte,
        });
    }
    Some((bytes, Value::Text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_read_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        let (text, _) = long_value(&lex::text(&bytes)).unwrap();
        assert_eq!(text, bytes);
        let (raw, _) = long_value(hex(&bytes).as_bytes()).unwrap();
        assert_eq!(raw, bytes);
        assert!(long_value(b"17").is_none() && long_value(b"NULL").is_none());
    }
}
