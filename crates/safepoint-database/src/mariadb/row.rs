//! Rows: how they are asked for, written down, counted, and shown.
//!
//! A row is one line of SQL, `(1,'Ann',NULL,0x00FF)`, with a value for each column
//! and `DEFAULT` for those that are computed. It can be put behind `VALUES` as it
//! is. Values are asked for so that nothing of them is lost: the server shows only
//! six digits of a `FLOAT`, so it is asked for as a `DOUBLE`; text in a character
//! set that does not survive a way through UTF-8 is asked for as bytes.

use safepoint_model::Digest;

use super::definition::{Definition, has_plain_key};
use super::lex;
use super::pipe::unescape;
use super::structure::{ColumnText, Reading, TableText, hex};

/// The query for the rows of a table.
pub(super) fn select(table: &TableText, database: &str) -> String {
    let mut values = Vec::new();
    for column in &table.columns {
        let name = lex::name(&column.name);
        if is_flagged(column) {
            values.push(format!("{name} IS NULL"));
        }
        match column.reading {
            Reading::Computed => {}
            // Not `+ 0`, which makes 0 of -0.
            Reading::Float => values.push(format!("{name} * 1e0")),
            Reading::Bit => values.push(format!("{name} + 0")),
            Reading::Encoded => values.push(format!("CAST({name} AS BINARY)")),
            Reading::Number | Reading::Text | Reading::Moment | Reading::Bytes => {
                values.push(name);
            }
        }
    }
    if values.is_empty() {
        values.push("0".to_owned());
    }
    let mut query = format!(
        "SELECT {} FROM {}",
        values.join(", "),
        lex::full_name(database, &table.name)
    );
    if table.versioned {
        query.push_str(" FOR SYSTEM_TIME ALL");
    }
    // In the order in which they are stored anyway, so that it is always the same.
    if let Some(definition) = Definition::read(&table.create)
        && table.transactional
        && has_plain_key(&definition)
    {
        let key: Vec<String> = definition
            .key()
            .iter()
            .map(|name| lex::name(name))
            .collect();
        query.push_str(&format!(" ORDER BY {}", key.join(", ")));
    }
    query
}

/// Whether a value may be the word `NULL`, so that a column before it tells which is meant.
fn is_flagged(column: &ColumnText) -> bool {
    column.nullable
        && matches!(
            column.reading,
            Reading::Text | Reading::Bytes | Reading::Encoded
        )
}

/// Writes a line of the client's down as a row.
pub(super) fn write(table: &TableText, line: &[u8], row: &mut Vec<u8>) {
    let mut fields = line.split(|byte| *byte == b'\t');
    row.push(b'(');
    for (number, column) in table.columns.iter().enumerate() {
        if number > 0 {
            row.push(b',');
        }
        if column.reading == Reading::Computed {
            row.extend_from_slice(b"DEFAULT");
            continue;
        }
        let is_null = is_flagged(column) && fields.next() == Some(b"1");
        let field = fields.next().unwrap_or_default();
        let unflagged = column.nullable && !is_flagged(column);
        if is_null || unflagged && field == b"NULL" {
            row.extend_from_slice(b"NULL");
            continue;
        }
        match column.reading {
            Reading::Text => lex::push_text(row, &unescape(field)),
            Reading::Moment => lex::push_text(row, field),
            Reading::Bytes | Reading::Encoded => match unescape(field).as_slice() {
                [] => row.extend_from_slice(b"''"),
                bytes => row.extend_from_slice(hex(bytes).as_bytes()),
            },
            // As a number without an exponent it would lose its sign.
            _ if field == b"-0" => row.extend_from_slice(b"-0e0"),
            _ => row.extend_from_slice(field),
        }
    }
    row.extend_from_slice(b")\n");
}

/// Counts rows, and adds up the digests of all of them: the sum does not depend on their
/// order, and the same row twice counts twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) rows: u64,
    sum: [u64; 4],
}

impl Tally {
    pub(crate) fn add(&mut self, row: &[u8]) {
        let digest = blake3::hash(row);
        let (words, _) = digest.as_bytes().as_chunks::<8>();
        let mut carry = false;
        for (sum, word) in self.sum.iter_mut().zip(words) {
            let (added, over) = sum.overflowing_add(u64::from_le_bytes(*word));
            let (added, again) = added.overflowing_add(u64::from(carry));
            *sum = added;
            carry = over || again;
        }
        self.rows += 1;
    }

    pub(crate) fn checksum(&self) -> Digest {
        let mut bytes = [0; 32];
        let (words, _) = bytes.as_chunks_mut::<8>();
        for (word, sum) in words.iter_mut().zip(self.sum) {
            *word = sum.to_le_bytes();
        }
        Digest::from_bytes(bytes)
    }
}

/// The values of a row, each as it is written.
pub(crate) fn values(row: &[u8]) -> Vec<&[u8]> {
    let row = row.strip_suffix(b"\n").unwrap_or(row);
    let row = row.strip_prefix(b"(").unwrap_or(row);
    let row = row.strip_suffix(b")").unwrap_or(row);
    let mut values = Vec::new();
    let mut begin = 0;
    let mut in_text = false;
    let mut escaped = false;
    for (position, byte) in row.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'\'' => in_text = !in_text,
            b',' if !in_text => {
                values.push(row.get(begin..position).unwrap_or_default());
                begin = position + 1;
            }
            _ => {}
        }
    }
    values.push(row.get(begin..).unwrap_or_default());
    values
}

/// A row for people: `id=1, name='Ann', note=NULL`. What is computed is left out.
pub(super) fn show(columns: &[&str], row: &[u8]) -> String {
    let mut shown = Vec::new();
    for (number, value) in values(row).into_iter().enumerate() {
        if value == b"DEFAULT" {
            continue;
        }
        let name = columns.get(number).copied().unwrap_or("?");
        shown.push(format!("{name}={}", String::from_utf8_lossy(value)));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, reading: Reading, nullable: bool) -> ColumnText {
        ColumnText {
            name: name.to_owned(),
            reading,
            nullable,
        }
    }

    fn table() -> TableText {
        TableText {
            name: "a`b".into(),
            create: "CREATE TABLE `a``b` (`id` int, PRIMARY KEY (`id`)) ENGINE=InnoDB".into(),
            counter: None,
            columns: vec![
                column("id", Reading::Number, false),
                column("name", Reading::Text, true),
                column("twice", Reading::Computed, true),
                column("ratio", Reading::Float, true),
                column("raw", Reading::Bytes, true),
            ],
            versioned: false,
            transactional: true,
            created: String::new(),
        }
    }

    fn written(line: &[u8]) -> String {
        let mut row = Vec::new();
        write(&table(), line, &mut row);
        String::from_utf8(row).unwrap()
    }

    #[test]
    fn rows_are_asked_for_in_full() {
        assert_eq!(
            select(&table(), "shop"),
            "SELECT `id`, `name` IS NULL, `name`, `ratio` * 1e0, `raw` IS NULL, `raw` \
             FROM `shop`.`a``b` ORDER BY `id`"
        );
    }

    #[test]
    fn null_is_not_the_word_null() {
        assert_eq!(
            written(b"1\t1\tNULL\tNULL\t1\tNULL"),
            "(1,NULL,DEFAULT,NULL,NULL)\n"
        );
        assert_eq!(
            written(b"2\t0\tNULL\t-0\t0\t\\0\xff,'"),
            "(2,'NULL',DEFAULT,-0e0,0x00FF2C27)\n"
        );
        assert_eq!(
            written(b"3\t0\tit's\\n\\\\\t1.5\t0\t"),
            "(3,'it\\'s\\n\\\\',DEFAULT,1.5,'')\n"
        );
    }

    #[test]
    fn rows_are_shown_with_the_names_of_columns() {
        let columns = ["id", "name", "twice", "ratio", "raw"];
        assert_eq!(
            show(&columns, b"(3,'it\\'s, (a) \\\\',DEFAULT,NULL,0x00)\n"),
            "id=3, name='it\\'s, (a) \\\\', ratio=NULL, raw=0x00"
        );
    }

    #[test]
    fn tallies_do_not_depend_on_order_but_on_number() {
        let tally = |rows: &[&str]| {
            let mut tally = Tally::default();
            rows.iter().for_each(|row| tally.add(row.as_bytes()));
            (tally.rows, tally.checksum())
        };
        assert_eq!(tally(&["a", "b", "a"]), tally(&["b", "a", "a"]));
        assert_ne!(tally(&["a", "b"]), tally(&["a", "b", "a"]));
        assert_ne!(tally(&["a", "a"]).1, tally(&["b", "b"]).1);
        assert_ne!(tally(&[]).0, tally(&["a"]).0);
    }
}
