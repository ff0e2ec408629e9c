//! The statement that finds what a query wants.

use safepoint_model::Timestamp;
use safepoint_store::{Sql, StoreError, Value, query_one};

use super::Query;
use crate::blocks::{BLOCK, Noting, in_block};
use crate::rows::COLUMNS;

/// In which direction to read.
#[derive(Clone, Copy)]
pub(super) enum Order {
    OldestFirst,
    NewestFirst,
}

/// A value that owns its text.
pub(super) enum Owned {
    Integer(i64),
    Text(String),
}

pub(super) fn borrow(values: &[Owned]) -> Vec<Value<'_>> {
    values
        .iter()
        .map(|value| match value {
            Owned::Integer(number) => Value::Integer(*number),
            Owned::Text(text) => Value::Text(text),
        })
        .collect()
}

/// How many rows are asked for at once: PostgreSQL sends all that a statement
/// finds, also when nobody wants the rest.
pub(super) const AT_ONCE: i64 = 500;

/// A part of the trail, as places.
#[derive(Clone, Copy)]
pub(super) struct Range {
    pub(super) from: i64,
    pub(super) until: i64,
}

impl Range {
    /// Where `query` looks. Times rise with the sequence, so a bound in time is a bound in place.
    pub(super) fn of(sql: &mut dyn Sql, query: &Query) -> Result<Self, StoreError> {
        let from = i64::try_from(query.from).unwrap_or(i64::MAX);
        let since = query.since.map(|since| first_at(sql, since)).transpose()?;
        let until = query.until.map(|until| first_at(sql, until)).transpose()?;
        Ok(Self {
            from: from.max(since.unwrap_or(0)),
            until: until.unwrap_or(i64::MAX),
        })
    }
}

/// The statement for a query, and its values.
pub(super) fn select(query: &Query, order: Order, range: Range) -> (String, Vec<Owned>) {
    // Streams lead to their entries; anything else to the blocks that have it.
    let block = [
        (Noting::Action, query.action.as_deref()),
        (Noting::Kind, query.kind.as_deref()),
        (Noting::Actor, query.actor.as_deref()),
    ]
    .into_iter()
    .filter(|_| query.streams.is_empty())
    .find_map(|(noting, wanted)| Some(noting.name(wanted?)));
    // With blocks, their bounds are the ones to search by: `+ 0` keeps SQLite from choosing these.
    let place = if block.is_some() {
        "e.seq + 0"
    } else {
        "e.seq"
    };
    let mut values = Vec::new();
    let mut value = |value: Owned| {
        values.push(value);
        format!("?{}", values.len())
    };
    let mut conditions = vec![
        format!("{place} >= {}", value(Owned::Integer(range.from))),
        format!("{place} < {}", value(Owned::Integer(range.until))),
    ];
    let streams: Vec<_> = query
        .streams
        .iter()
        .map(|stream| value(Owned::Text(stream.to_string())))
        .collect();
    if !streams.is_empty() {
        conditions.push(format!("e.stream IN ({})", streams.join(", ")));
    }
    for (column, wanted) in [
        ("e.action_id", &query.action),
        ("e.kind", &query.kind),
        ("e.actor", &query.actor),
    ] {
        if let Some(wanted) = wanted {
            conditions.push(format!("{column} = {}", value(Owned::Text(wanted.clone()))));
        }
    }
    let direction = match order {
        Order::OldestFirst => "ASC",
        Order::NewestFirst => "DESC",
    };
    let (mut tables, mut sorting) = ("trail_entries e", format!("e.seq {direction}"));
    if let Some(name) = block {
        // CROSS, so that SQLite goes through the blocks and not through the entries.
        tables = "trail_blocks b CROSS JOIN trail_entries e";
        conditions.push(in_block());
        let block = |seq: i64| Owned::Integer(seq / i64::try_from(BLOCK).unwrap_or(i64::MAX));
        conditions.push(format!("b.name = {}", value(Owned::Text(name))));
        conditions.push(format!("b.block >= {}", value(block(range.from))));
        conditions.push(format!("b.block <= {}", value(block(range.until))));
        // The same order, in a way the database sees.
        sorting = format!("b.block {direction}, {sorting}");
    }
    let statement = format!(
        "SELECT {COLUMNS} FROM {tables} WHERE {} ORDER BY {sorting} LIMIT {AT_ONCE}",
        conditions.join(" AND "),
    );
    (statement, values)
}

/// The place of the first entry not before `moment`, found by halving.
fn first_at(sql: &mut dyn Sql, moment: Timestamp) -> Result<i64, StoreError> {
    let size = query_one(sql, "SELECT max(seq) FROM trail_entries", &[], |row| {
        Ok(row.integer(0).map_or(0, |last| last.saturating_add(1))) // NULL in an empty trail
    })?;
    let (mut low, mut high) = (0, size.unwrap_or(0));
    while low < high {
        let middle = low + (high - low) / 2;
        let time = query_one(
            sql,
            "SELECT time FROM trail_entries WHERE seq >= ?1 ORDER BY seq LIMIT 1",
            &[Value::Integer(middle)],
            |row| row.integer(0),
        )?;
        if time.is_some_and(|time| time < moment.as_micros()) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
