//! In which blocks of the trail each kind, actor and action occurs.
//!
//! A query reads only the blocks that have what it asks for; adding an entry
//! costs nothing but for the first of its kind, actor or action in a block.
//! `trail verify` checks that none was taken out, for that would hide entries, and that
//! none was put in. Nothing that is decided depends on this table: streams are found by
//! an index over the entries.

use std::collections::HashSet;

use safepoint_store::{Sql, StoreError, Value, query_all};

use crate::Entry;

/// How many entries a block has.
pub(crate) const BLOCK: u64 = 256;

/// The block of the entry at a place; -1 where there is none.
pub(crate) fn of(seq: i64) -> i64 {
    seq.div_euclid(i64::try_from(BLOCK).unwrap_or(i64::MAX))
}

/// What is noted of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noting {
    Kind,
    Actor,
    Action,
}

impl Noting {
    /// The name under which `text` is noted.
    pub(crate) fn name(self, text: &str) -> String {
        let what = match self {
            Self::Kind => "kind",
            Self::Actor => "actor",
            Self::Action => "action",
        };
        format!("{what}:{text}")
    }
}

/// What holds for the entries `e` of a block `b`.
pub(crate) fn in_block() -> String {
    format!("e.seq >= b.block * {BLOCK} AND e.seq < (b.block + 1) * {BLOCK}")
}

/// What has been noted of the newest block.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    block: u64,
    /// Kinds, actors and actions.
    texts: [HashSet<String>; 3],
}

impl Noted {
    /// Notes a new entry, unless that is known to be done.
    pub(crate) fn note(&mut self, sql: &mut dyn Sql, entry: &Entry) -> Result<(), StoreError> {
        let block = entry.seq / BLOCK;
        if self.block != block {
            *self = Self {
                block,
                ..Self::default()
            };
        }
        let action = entry.action_id.as_ref().map_or("", |id| id.as_str());
        let texts = [
            (Noting::Kind, entry.kind.as_str()),
            (Noting::Actor, entry.actor.as_str()),
            (Noting::Action, action),
        ];
        for ((noting, text), noted) in texts.into_iter().zip(&mut self.texts) {
            // An entry without an action has none.
            if !text.is_empty() && !noted.contains(text) {
                insert(sql, &noting.name(text), block)?;
                noted.insert(text.to_owned());
            }
        }
        Ok(())
    }
}

fn insert(sql: &mut dyn Sql, name: &str, block: u64) -> Result<(), StoreError> {
    sql.execute(
        "INSERT INTO trail_blocks (name, block) VALUES (?1, ?2) ON CONFLICT DO NOTHING",
        &[Value::Text(name), number(block)],
    )
    .map(drop)
}

/// Every name that is noted for blocks from one up to another, with its block.
pub(crate) fn names_in(
    sql: &mut dyn Sql,
    from: u64,
    until: u64,
) -> Result<HashSet<(u64, Vec<u8>)>, StoreError> {
    let names = query_all(
        sql,
        "SELECT block, name FROM trail_blocks WHERE block >= ?1 AND block < ?2",
        &[number(from), number(until)],
        |row| {
            let block = u64::try_from(row.integer(0)?).unwrap_or(u64::MAX);
            Ok((block, row.blob(1)?.to_owned()))
        },
    )?;
    Ok(names.into_iter().collect())
}

fn number(block: u64) -> Value<'static> {
    Value::Integer(i64::try_from(block).unwrap_or(i64::MAX))
}
