//! The structure of a database, read from its pages.

use std::collections::BTreeMap;
use std::io;

use super::definition::{self, unquote};
use super::digest::digest;
use super::record::{self, Value};
use super::view::{Encoding, View};
use crate::{Column, Object, Schema, Table, TableImage};

/// What a view of a database holds.
#[derive(Debug)]
pub(super) struct Description {
    pub(super) schema: Schema,
    pub(super) tables: Vec<TableImage>,
    pub(super) not_covered: Vec<String>,
}

/// One line of `sqlite_schema`.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) kind: String,
    pub(super) name: String,
    /// The table that it belongs to.
    pub(super) table: String,
    root: u32,
    pub(super) sql: String,
}

impl Entry {
    pub(super) fn is_virtual(&self) -> bool {
        self.kind == "table" && self.root == 0
    }

    /// The module of a virtual table, and its arguments.
    fn module(&self) -> Option<(String, &str)> {
        let at = self.sql.to_ascii_uppercase().find(" USING ")?;
        let behind = self.sql.get(at + 7..)?.trim_start();
        let end = behind.find(|c: char| c == '(' || c.is_whitespace());
        let (name, arguments) = behind.split_at_checked(end.unwrap_or(behind.len()))?;
        Some((unquote(name).to_ascii_lowercase(), arguments.trim()))
    }

    /// The tables in which a virtual table keeps its rows; `None` when that is not known.
    pub(super) fn shadows(&self) -> Option<Vec<String>> {
        let suffixes: &[&str] = match self.module()?.0.as_str() {
            "fts5" => &["data", "idx", "content", "docsize", "config"],
            "fts3" | "fts4" => &["content", "segments", "segdir", "docsize", "stat"],
            "rtree" | "rtree_i32" | "geopoly" => &["node", "rowid", "parent"],
            _ => return None,
        };
        let name = |suffix: &&str| format!("{}_{suffix}", self.name);
        Some(suffixes.iter().map(name).collect())
    }
}

/// Which tables are meant.
#[derive(Clone, Debug)]
pub(super) enum Scope {
    All,
    /// By name, whatever the case.
    Only(Vec<String>),
}

impl Scope {
    pub(super) fn new(names: &[String]) -> Self {
        match names.is_empty() {
            true => Self::All,
            false => Self::Only(names.to_vec()),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(names) => names.iter().any(|known| known.eq_ignore_ascii_case(name)),
        }
    }
}

/// All lines of `sqlite_schema`.
pub(super) fn entries(view: &View<'_>) -> io::Result<Vec<Entry>> {
    if view.pages() == 0 {
        return Ok(Vec::new());
    }
    let rows = record::rows(view, 1)?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let mut row = row.into_iter();
            let mut next = || row.next().unwrap_or(Value::Null);
            Entry {
                kind: next().into_text(),
                name: next().into_text(),
                table: next().into_text(),
                root: match next() {
                    Value::Integer(root) => u32::try_from(root).unwrap_or(0),
                    _ => 0,
                },
                sql: next().into_text(),
            }
        })
        .collect())
}

/// Names what is in scope: tables by their own names, and with a virtual table those that
/// it keeps its rows in. The first name that is no table is the error.
pub(super) fn resolve(scope: &Scope, entries: &[Entry]) -> Result<Scope, String> {
    let Scope::Only(names) = scope else {
        return Ok(Scope::All);
    };
    let mut found = Vec::new();
    for name in names {
        let entry = entries
            .iter()
            .find(|entry| entry.kind == "table" && entry.name.eq_ignore_ascii_case(name))
            .filter(|entry| !is_internal(&entry.name))
            .ok_or_else(|| name.clone())?;
        found.push(entry.name.clone());
        if entry.is_virtual() {
            found.extend(entry.shadows().unwrap_or_default());
        }
    }
    Ok(Scope::Only(found))
}

/// Whether SQLite made it for itself.
pub(super) fn is_internal(name: &str) -> bool {
    name.get(..7)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_"))
}

/// Reads structure and rows of what is in scope.
pub(super) fn describe(
    view: &View<'_>,
    entries: &[Entry],
    scope: &Scope,
) -> io::Result<Description> {
    let (mut tables, mut objects) = (Vec::new(), Vec::new());
    let (mut images, mut not_covered) = (Vec::new(), Vec::new());
    let mut object = |kind: &str, name: &str, definition: String| {
        objects.push(Object {
            kind: kind.to_owned(),
            name: name.to_owned(),
            definition,
        });
    };
    for entry in entries.iter().filter(|entry| scope.has(&entry.table)) {
        match entry.kind.as_str() {
            "table" if entry.is_virtual() => {
                object("virtual table", &entry.name, entry.sql.clone());
                if entry.shadows().is_none() {
                    let module = entry.module().map(|(name, _)| name).unwrap_or_default();
                    not_covered.push(format!(
                        "what the module `{module}` of the virtual table `{}` keeps outside of the database",
                        entry.name
                    ));
                }
            }
            "table" if entry.name == "sqlite_sequence" => {}
            "table" => {
                let definition = definition::read(&entry.sql);
                for constraint in definition.constraints {
                    object(
                        "constraint",
                        &format!("{} {constraint}", entry.name),
                        String::new(),
                    );
                }
                if !definition.options.is_empty() {
                    object("options", &entry.name, definition.options);
                }
                let columns = definition.columns.into_iter();
                tables.push(Table {
                    name: entry.name.clone(),
                    columns: columns
                        .map(|(name, definition)| Column { name, definition })
                        .collect(),
                    key: definition.key,
                });
                let (rows, checksum) = digest(view, entry.root)?;
                images.push(TableImage {
                    name: entry.name.clone(),
                    rows,
                    checksum,
                    data: None,
                });
            }
            // Those without a text are part of a constraint.
            "index" if entry.sql.is_empty() => {}
            kind => object(kind, &entry.name, entry.sql.clone()),
        }
    }
    for (name, last) in sequences(view, entries)? {
        if scope.has(&name) {
            object("sequence", &name, format!("at {last}"));
        }
    }
    if matches!(scope, Scope::All) {
        for (name, value) in settings(view) {
            object("setting", name, value);
        }
    }
    tables.sort_by(|a: &Table, b| a.name.cmp(&b.name));
    objects.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
    images.sort_by(|a: &TableImage, b| a.name.cmp(&b.name));
    Ok(Description {
        schema: Schema { tables, objects },
        tables: images,
        not_covered,
    })
}

/// Where the numbers of tables with `AUTOINCREMENT` stand.
fn sequences(view: &View<'_>, entries: &[Entry]) -> io::Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    let table = entries.iter().find(|entry| entry.name == "sqlite_sequence");
    if let Some(table) = table {
        for row in record::rows(view, table.root)? {
            let mut row = row.into_iter();
            let name = row.next().map(Value::into_text).unwrap_or_default();
            let last = match row.next() {
                Some(Value::Integer(last)) => last.to_string(),
                other => format!("{other:?}"),
            };
            found.insert(name, last);
        }
    }
    Ok(found)
}

/// What else is set in the header.
fn settings(view: &View<'_>) -> [(&'static str, String); 4] {
    let auto_vacuum = match (view.number(52), view.number(64)) {
        (0, _) => "none",
        (_, 0) => "full",
        (_, _) => "incremental",
    };
    let encoding = match view.encoding() {
        Encoding::Utf8 => "UTF-8",
        Encoding::Utf16Little => "UTF-16le",
        Encoding::Utf16Big => "UTF-16be",
    };
    [
        ("application_id", view.number(68).to_string()),
        ("auto_vacuum", auto_vacuum.to_owned()),
        ("encoding", encoding.to_owned()),
        ("user_version", view.number(60).cast_signed().to_string()),
    ]
}
