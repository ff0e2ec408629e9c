//! What differs between two captures: in the structure, and in the rows.

use std::collections::{BTreeMap, HashMap};

use crate::image::{Schema, Table};
use crate::{Contents, DatabaseError, Engine, Image, TableImage, mariadb, postgres, sqlite};

/// What differs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// In the structure.
    pub schema: Vec<SchemaChange>,
    /// In the rows, by table.
    pub tables: Vec<TableChange>,
}

/// One thing of the structure that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaChange {
    /// `table`, `column`, `index` …
    pub kind: String,
    /// Which; a column has its table in front.
    pub name: String,
    /// How it was defined before; `None` when it was not there.
    pub before: Option<String>,
    /// How it is defined after.
    pub after: Option<String>,
}

/// The rows of one table that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableChange {
    /// Which table.
    pub name: String,
    /// How many rows it had.
    pub before: u64,
    /// How many rows it has.
    pub after: u64,
    /// Rows that are only in one of the two, as many as were asked for.
    pub rows: Vec<RowChange>,
    /// Rows that differ and are not among them.
    pub more: u64,
    /// Whether it has other columns than before, so that its rows are not compared.
    pub recast: bool,
}

/// A row that is only in one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// It was there before.
    Removed(String),
    /// It is there after.
    Added(String),
}

impl Difference {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.schema.is_empty() && self.tables.is_empty()
    }

    /// As lines for people: `+ users.status varchar(20)`, `~ users: 3 rows → 2`.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for change in &self.schema {
            let shown = |definition: &str| match definition.is_empty() {
                true => format!("{} {}", change.kind, change.name),
                false => format!("{} {} {definition}", change.kind, change.name),
            };
            for (sign, side) in [('-', &change.before), ('+', &change.after)] {
                if let Some(definition) = side {
                    text.push_str(&format!("{sign} {}\n", shown(definition)));
                }
            }
        }
        for change in &self.tables {
            let note = match change.recast {
                true => ", not compared because its columns differ",
                false => "",
            };
            text.push_str(&format!(
                "~ {}: {} → {} rows{note}\n",
                change.name, change.before, change.after
            ));
            for row in &change.rows {
                text.push_str(&match row {
                    RowChange::Removed(row) => format!("-   {row}\n"),
                    RowChange::Added(row) => format!("+   {row}\n"),
                });
            }
            if change.more > 0 {
                text.push_str(&format!("    and {} more\n", change.more));
            }
        }
        text
    }
}

/// What differs between two captures of one database; of each table at most `limit` rows.
pub fn compare(
    before: &Image,
    after: &Image,
    contents: &dyn Contents,
    scratch: &std::path::Path,
    limit: usize,
) -> Result<Difference, DatabaseError> {
    let mut tables = Vec::new();
    let by_name: BTreeMap<&str, &TableImage> = after
        .tables
        .iter()
        .map(|table| (table.name.as_str(), table))
        .collect();
    let had: BTreeMap<&str, &TableImage> = before
        .tables
        .iter()
        .map(|table| (table.name.as_str(), table))
        .collect();
    // SQLite's rows are read from a file that is made of the image, once for each.
    let (mut of_before, mut of_after) = (sqlite::Rows::default(), sqlite::Rows::default());
    let mut names: Vec<&str> = had.keys().chain(by_name.keys()).copied().collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        let (then, now) = (had.get(name), by_name.get(name));
        let checksum = |side: Option<&&TableImage>| side.map(|table| (table.rows, table.checksum));
        if checksum(then) == checksum(now) {
            continue;
        }
        if let (Some(then), Some(now)) = (then, now)
            && columns(before, name) != columns(after, name)
        {
            tables.push(TableChange {
                name: name.to_owned(),
                before: then.rows,
                after: now.rows,
                rows: Vec::new(),
                more: 0,
                recast: true,
            });
            continue;
        }
        let mut counts: HashMap<Vec<u8>, i64> = HashMap::new();
        let mut order = Vec::new();
        for (image, present, step, of_image) in [
            (before, then, -1, &mut of_before),
            (after, now, 1, &mut of_after),
        ] {
            if present.is_none() {
                continue;
            }
            rows(image, name, contents, scratch, of_image, &mut |row| {
                let count = counts.entry(row.to_vec()).or_insert_with(|| {
                    order.push(row.to_vec());
                    0
                });
                *count += step;
                Ok(())
            })?;
        }
        let mut changes = Vec::new();
        let mut more = 0;
        for row in order {
            let count = counts.get(&row).copied().unwrap_or(0);
            if count == 0 {
                continue;
            }
            let times = count.unsigned_abs();
            if changes.len() >= limit {
                more += times;
                continue;
            }
            let image = if count < 0 { before } else { after };
            let shown = show(image, name, &row);
            changes.push(match count < 0 {
                true => RowChange::Removed(shown),
                false => RowChange::Added(shown),
            });
            more += times - 1;
        }
        if changes.is_empty() && then.is_some() == now.is_some() {
            continue; // the same rows in another order
        }
        tables.push(TableChange {
            name: name.to_owned(),
            before: then.map_or(0, |table| table.rows),
            after: now.map_or(0, |table| table.rows),
            rows: changes,
            more,
            recast: false,
        });
    }
    Ok(Difference {
        schema: compare_schema(&before.schema, &after.schema),
        tables,
    })
}

type Visit<'a> = dyn FnMut(&[u8]) -> Result<(), DatabaseError> + 'a;

/// Hands out the rows of a table, each as the engine writes it.
fn rows(
    image: &Image,
    table: &str,
    contents: &dyn Contents,
    scratch: &std::path::Path,
    of_image: &mut sqlite::Rows,
    visit: &mut Visit<'_>,
) -> Result<(), DatabaseError> {
    match image.engine {
        Engine::Sqlite => of_image.visit(image, table, contents, scratch, visit),
        Engine::Postgres => postgres::rows(image, table, contents, visit),
        Engine::Mariadb => mariadb::rows(image, table, contents, visit),
    }
}

/// The columns of a table, by name and in order.
fn columns<'i>(image: &'i Image, table: &str) -> Option<Vec<&'i str>> {
    let table = image
        .schema
        .tables
        .iter()
        .find(|known| known.name == table)?;
    Some(
        table
            .columns
            .iter()
            .map(|column| column.name.as_str())
            .collect(),
    )
}

/// A row for people: `id=1, name='Ann'`.
pub(crate) fn show(image: &Image, table: &str, row: &[u8]) -> String {
    let columns: Vec<&str> = image
        .schema
        .tables
        .iter()
        .find(|known| known.name == table)
        .map(|table| {
            table
                .columns
                .iter()
                .filter(|column| image.engine != Engine::Postgres || postgres::is_kept(column))
                .map(|column| column.name.as_str())
                .collect()
        })
        .unwrap_or_default();
    let shown = match image.engine {
        Engine::Sqlite => sqlite::show_row(&columns, row),
        Engine::Postgres => postgres::show_row(&columns, row),
        Engine::Mariadb => mariadb::show_row(&columns, row),
    };
    // On one line, whatever is in it.
    shown.replace('\n', "\\n").replace('\r', "\\r")
}

/// What differs between two structures.
fn compare_schema(before: &Schema, after: &Schema) -> Vec<SchemaChange> {
    let listed = |schema: &Schema| -> BTreeMap<(String, String), String> {
        let mut listed = BTreeMap::new();
        for Table { name, columns, key } in &schema.tables {
            let key = match key.is_empty() {
                true => String::new(),
                false => format!("PRIMARY KEY ({})", key.join(", ")),
            };
            listed.insert(("table".to_owned(), name.clone()), key);
            for column in columns {
                let name = format!("{name}.{}", column.name);
                listed.insert(("column".to_owned(), name), column.definition.clone());
            }
        }
        for object in &schema.objects {
            let key = (object.kind.clone(), object.name.clone());
            listed.insert(key, object.definition.clone());
        }
        listed
    };
    let (mut before, after) = (listed(before), listed(after));
    let mut changes = Vec::new();
    for ((kind, name), definition) in after {
        let had = before.remove(&(kind.clone(), name.clone()));
        if had.as_ref() != Some(&definition) {
            changes.push(SchemaChange {
                kind,
                name,
                before: had,
                after: Some(definition),
            });
        }
    }
    changes.extend(
        before
            .into_iter()
            .map(|((kind, name), definition)| SchemaChange {
                kind,
                name,
                before: Some(definition),
                after: None,
            }),
    );
    changes.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
    changes
}
