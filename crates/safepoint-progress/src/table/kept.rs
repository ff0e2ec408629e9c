//! Rows that are determined by a mark in the entry that tells of them.
//!
//! An entry says of each row that was written with it what its digest is, and
//! the row says which entry that is. So paths and texts need not be in the
//! trail, and yet no column of a row can be changed unnoticed. The same list of
//! columns is what is written, what is marked and what is read again.

use std::sync::OnceLock;

use safepoint_model::{Digest, Frame};
use safepoint_store::{Row, Sql, StoreError, Value, query_all};
use serde_json::{Map, json};

use super::position;
use crate::verify::Subject;

/// How a column is read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    /// Text, or a number as text.
    Plain(&'static str),
    Bytes(&'static str),
}

use Column::{Bytes, Plain};

/// A table of such rows.
#[derive(Debug)]
pub(crate) struct Kept {
    /// What one of its rows is.
    pub(crate) subject: Subject,
    table: &'static str,
    /// The column that says in whose stream the entries are.
    owner: &'static str,
    /// The column by which the rows of one owner are in order; no two have the same.
    order: &'static str,
    /// What a row is called when it is found to be another one.
    name: &'static str,
    columns: &'static [Column],
    statements: OnceLock<Statements>,
}

/// What its rows are read and written with, made once.
#[derive(Debug)]
struct Statements {
    after: String,
    insert: String,
}

/// What workspaces have.
pub(crate) static OF_WORKSPACES: [&Kept; 8] = [
    &METER,
    &PLACE,
    &REMOVED_PLACE,
    &INTEGRATION,
    &INTEGRATION_ACTION,
    &CONFLICT,
    &RESOLUTION,
    &INTEGRATION_END,
];

/// What tasks have.
pub(crate) static OF_TASKS: [&Kept; 3] = [&TASK, &TASK_MOVE, &DEPENDENCY];

pub(crate) static METER: Kept = Kept {
    subject: Subject::Meter,
    table: "progress_meters",
    owner: "workspace",
    order: "number",
    name: "NULL",
    columns: &[
        Plain("workspace"),
        Plain("number"),
        Plain("tokens"),
        Plain("cost"),
        Plain("wall"),
        Plain("bytes"),
        Plain("counted"),
        Plain("record_tokens"),
        Plain("record_cost"),
        Plain("record_wall"),
        Plain("warned"),
        Plain("exceeded"),
        Plain("due"),
        Plain("time"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static PLACE: Kept = Kept {
    subject: Subject::Place,
    table: "progress_places",
    owner: "workspace",
    order: "entry",
    name: "workspace",
    columns: &[
        Plain("workspace"),
        Bytes("path"),
        Plain("kind"),
        Bytes("origin"),
        Plain("base"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static REMOVED_PLACE: Kept = Kept {
    subject: Subject::RemovedPlace,
    table: "progress_removed_places",
    owner: "workspace",
    order: "entry",
    name: "workspace",
    columns: &[Plain("workspace"), Plain("time")],
    statements: OnceLock::new(),
};

pub(crate) static INTEGRATION: Kept = Kept {
    subject: Subject::Integration,
    table: "progress_integrations",
    owner: "source",
    order: "entry",
    name: "record",
    columns: &[
        Plain("source"),
        Plain("target"),
        Plain("turn"),
        Plain("record"),
        Plain("mode"),
        Plain("strategy"),
        Plain("time"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static INTEGRATION_ACTION: Kept = Kept {
    subject: Subject::IntegrationAction,
    table: "progress_integration_actions",
    owner: "source",
    order: "entry",
    name: "action",
    columns: &[
        Plain("source"),
        Plain("target"),
        Plain("turn"),
        Plain("action"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static CONFLICT: Kept = Kept {
    subject: Subject::Conflict,
    table: "progress_conflicts",
    owner: "source",
    order: "entry",
    name: "'c' || CAST(number AS TEXT)",
    columns: &[
        Plain("source"),
        Plain("target"),
        Plain("turn"),
        Plain("number"),
        Plain("type"),
        Bytes("path"),
        Plain("mergeable"),
        Plain("description"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static RESOLUTION: Kept = Kept {
    subject: Subject::Resolution,
    table: "progress_resolutions",
    owner: "source",
    order: "entry",
    name: "'c' || CAST(number AS TEXT)",
    columns: &[
        Plain("source"),
        Plain("target"),
        Plain("turn"),
        Plain("number"),
        Plain("strategy"),
        Plain("choice"),
        Bytes("content"),
        Plain("time"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static INTEGRATION_END: Kept = Kept {
    subject: Subject::IntegrationEnd,
    table: "progress_integration_ends",
    owner: "source",
    order: "entry",
    name: "NULL",
    columns: &[
        Plain("source"),
        Plain("target"),
        Plain("turn"),
        Plain("result"),
        Plain("reason"),
        Plain("time"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static TASK: Kept = Kept {
    subject: Subject::Task,
    table: "progress_tasks",
    owner: "id",
    order: "entry",
    name: "id",
    columns: &[
        Plain("id"),
        Plain("title"),
        Plain("originator"),
        Plain("created"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static TASK_MOVE: Kept = Kept {
    subject: Subject::TaskMove,
    table: "progress_task_moves",
    owner: "task",
    order: "number",
    name: "task",
    columns: &[
        Plain("task"),
        Plain("number"),
        Plain("state"),
        Plain("reason"),
        Plain("workspace"),
        Plain("record"),
        Plain("time"),
    ],
    statements: OnceLock::new(),
};

pub(crate) static DEPENDENCY: Kept = Kept {
    subject: Subject::Dependency,
    table: "progress_task_dependencies",
    owner: "task",
    order: "number",
    name: "task",
    columns: &[Plain("task"), Plain("number"), Plain("dependency")],
    statements: OnceLock::new(),
};

/// A row that is there, as far as it is compared.
#[derive(Clone, Debug)]
pub(crate) struct KeptRow {
    pub(crate) order: i64,
    pub(crate) entry: i64,
    pub(crate) name: Option<String>,
    pub(crate) mark: Digest,
}

impl Kept {
    fn statements(&self) -> &Statements {
        self.statements.get_or_init(|| {
            let (mut read, mut names, mut places) = (String::new(), String::new(), String::new());
            for (column, number) in self.columns.iter().zip(1..) {
                let (Plain(name) | Bytes(name)) = column;
                read.push_str(&match column {
                    Plain(name) => format!(", CAST({name} AS TEXT)"),
                    Bytes(name) => format!(", {name}"),
                });
                names.push_str(&format!("{name}, "));
                places.push_str(&format!("?{number}, "));
            }
            let (table, by, at, name) = (self.table, self.owner, self.order, self.name);
            let last = self.columns.len() + 1;
            Statements {
                after: format!(
                    "SELECT k.{at}, k.entry, CAST({name} AS TEXT){read} FROM {table} k \
                     WHERE k.{by} = ?1 AND k.{at} > ?2 ORDER BY k.{at} LIMIT ?3"
                ),
                insert: format!("INSERT INTO {table} ({names}entry) VALUES ({places}?{last})"),
            }
        })
    }

    /// The rows of an owner behind one of them, a page of them.
    pub(crate) fn after(
        &self,
        sql: &mut dyn Sql,
        owner: &str,
        order: i64,
        most: u32,
    ) -> Result<Vec<KeptRow>, StoreError> {
        let values = [
            Value::Text(owner),
            Value::Integer(order),
            Value::Integer(i64::from(most)),
        ];
        query_all(sql, &self.statements().after, &values, |row| {
            Ok(KeptRow {
                order: row.integer(0)?,
                entry: row.integer(1)?,
                name: row.optional_text(2)?.map(str::to_owned),
                mark: self.mark_of(row, 3)?,
            })
        })
    }

    fn mark_of(&self, row: &dyn Row, from: usize) -> Result<Digest, StoreError> {
        let mut frame = self.frame();
        for column in from..from + self.columns.len() {
            add(&mut frame, row.bytes(column)?);
        }
        Ok(frame.digest())
    }

    fn frame(&self) -> Frame {
        let mut frame = Frame::new("safepoint/progress-row/v1");
        frame.field(self.table.as_bytes());
        frame
    }
}

/// What is nothing is told from what is empty.
fn add(frame: &mut Frame, value: Option<&[u8]>) {
    match value {
        None => frame.field(b"-"),
        Some(bytes) => frame.field(b"+").field(bytes),
    };
}

/// A row that is to be written, when the entry that has its mark is.
#[derive(Debug)]
pub(crate) struct NewRow<'a> {
    kept: &'static Kept,
    values: Vec<Value<'a>>,
}

impl<'a> NewRow<'a> {
    /// With a value for each column of its table, in their order.
    pub(crate) fn new(kept: &'static Kept, values: Vec<Value<'a>>) -> Self {
        debug_assert_eq!(values.len(), kept.columns.len());
        Self { kept, values }
    }

    fn mark(&self) -> Digest {
        let mut frame = self.kept.frame();
        for value in &self.values {
            match value {
                Value::Null => add(&mut frame, None),
                Value::Integer(number) => add(&mut frame, Some(number.to_string().as_bytes())),
                Value::Text(text) => add(&mut frame, Some(text.as_bytes())),
                Value::Blob(bytes) => add(&mut frame, Some(bytes)),
            }
        }
        frame.digest()
    }

    /// Writes it, with the place of its entry.
    fn insert(&self, sql: &mut dyn Sql, entry: u64) -> Result<(), StoreError> {
        let mut values = self.values.clone();
        values.push(position(entry));
        let statement = &self.kept.statements().insert;
        sql.execute(statement, &values).map(drop)
    }
}

/// What an entry says of the rows that are written with it.
pub(crate) fn marks(rows: &[NewRow<'_>]) -> serde_json::Value {
    let mut told: Map<String, serde_json::Value> = Map::new();
    for row in rows {
        let marks = told.entry(row.kept.subject.as_str()).or_insert(json!([]));
        if let Some(marks) = marks.as_array_mut() {
            marks.push(json!(row.mark()));
        }
    }
    told.into()
}

/// Writes rows, with the place of the entry that has their marks.
pub(crate) fn insert_rows(
    sql: &mut dyn Sql,
    rows: &[NewRow<'_>],
    entry: u64,
) -> Result<(), StoreError> {
    rows.iter().try_for_each(|row| row.insert(sql, entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pr_13_the_published_frame_of_a_row() {
        let row = NewRow::new(
            &DEPENDENCY,
            vec![Value::Text("tsk_a"), Value::Integer(7), Value::Null],
        );
        let mut framed = Vec::new();
        for part in [
            "safepoint/progress-row/v1",
            "progress_task_dependencies",
            "+",
            "tsk_a",
            "+",
            "7",
            "-",
        ] {
            framed.extend((part.len() as u32).to_be_bytes());
            framed.extend(part.as_bytes());
        }
        assert_eq!(row.mark(), Digest::of_parts(&[&framed]));
    }

    #[test]
    fn pr_13_nothing_is_not_what_is_empty() {
        let mark = |value| NewRow::new(&DEPENDENCY, vec![Value::Null, Value::Null, value]).mark();
        assert_ne!(mark(Value::Null), mark(Value::Text("")));
        assert_ne!(mark(Value::Null), mark(Value::Text("-")));
    }
}
