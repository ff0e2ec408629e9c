//! In which blocks of the trail each kind, actor and action occurs.
//!
//! A query reads only the blocks that have what it asks for; adding an entry
//! costs nothing but for the first of its kind, actor or action in a block.
//! `trail verify` checks that none was taken out, for that would hide entries.

use std::collections::HashSet;

use safepoint_store::{Sql, StoreError, Value, query_all};

use crate::Entry;

/// How many entries a block has.
pub(crate) const BLOCK: u64 = 2_048;

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

/// What has been noted of the newest block.
#[derive(Debug, Default)]
pub(crate) struct Noted {
    block: u64,
    names: HashSet<String>,
    /// The last entry's: most entries are like the one before.
    last: [String; 3],
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
        for ((noting, text), last) in texts.into_iter().zip(&mut self.last) {
            if text == last {
                continue; // also: no action
            }
            text.clone_into(last);
            let name = noting.name(text);
            if !text.is_empty() && self.names.insert(name.clone()) {
                insert(sql, &name, block)?;
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

/// Every name that is noted for a block.
pub(crate) fn names_in(sql: &mut dyn Sql, block: u64) -> Result<HashSet<Vec<u8>>, StoreError> {
    let names = query_all(
        sql,
        "SELECT name FROM trail_blocks WHERE block = ?1",
        &[number(block)],
        |row| Ok(row.blob(0)?.to_owned()),
    )?;
    Ok(names.into_iter().collect())
}

fn number(block: u64) -> Value<'static> {
    Value::Integer(i64::try_from(block).unwrap_or(i64::MAX))
}
