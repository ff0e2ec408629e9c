//! One change taken out of a database that others have written to since.
//!
//! What the change wrote is what differs between the captures before and after it, row by row.
//! Those rows go, or come back; every other row stays as it is now. A row that somebody else has
//! changed since is a conflict, and so is a structure that is not the same in all three captures:
//! then nothing is made. The result is a capture, which [`Database::restore`] puts in place.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use safepoint_model::Digest;

use crate::compare::show;
use crate::image::{Object, Schema};
use crate::mariadb::{self, Tally};
use crate::{
    Contents, Database, DatabaseError, Engine, Image, Keep, TableImage, compare, postgres, sqlite,
};

/// The captures of a database around a change, and the one of what is there now.
#[derive(Clone, Copy, Debug)]
pub struct Revisions<'a> {
    /// Right before the change.
    pub before: &'a Image,
    /// Right after it.
    pub after: &'a Image,
    /// What is there now.
    pub now: &'a Image,
}

/// What is left to be done about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverted {
    /// Nothing: what it wrote is gone already.
    AlreadyGone,
    /// What is there now without the change.
    Image(Box<Image>),
    /// It cannot be taken out without the work of others.
    Conflict(Vec<RowConflict>),
}

/// What stands in the way, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowConflict {
    /// The table; none where it is the structure of the database.
    pub table: Option<String>,
    /// What is the matter.
    pub why: String,
}

/// So many rows of a table are named.
const MAX_NAMED: usize = 5;

impl Database {
    /// Takes a change out of what is there now, without touching the database.
    pub fn revert(
        &self,
        revisions: Revisions<'_>,
        contents: &dyn Contents,
        keep: &dyn Keep,
    ) -> Result<Reverted, DatabaseError> {
        let scratch = &self.access.scratch;
        if let Some(conflict) = compare_structure(revisions, contents, scratch)? {
            return Ok(Reverted::Conflict(vec![conflict]));
        }
        let source = |image| Source::new(image, contents, scratch);
        let mut sources = Sources {
            before: source(revisions.before),
            after: source(revisions.after),
            now: source(revisions.now),
        };
        let mut conflicts = Vec::new();
        let mut deltas = Vec::new();
        let (mut is_gone, mut is_there) = (true, false);
        for name in changed_tables(revisions.before, revisions.after) {
            let delta = Delta::of(&mut sources, &name)?;
            is_gone &= delta.is_gone();
            is_there |= !delta.is_empty();
            conflicts.extend(delta.conflict(revisions.now));
            deltas.push(delta);
        }
        if conflicts.is_empty() && (is_gone || !is_there) {
            return Ok(Reverted::AlreadyGone);
        }
        conflicts.extend(linked_tables(revisions, &deltas));
        if !conflicts.is_empty() {
            return Ok(Reverted::Conflict(conflicts));
        }
        match revisions.now.engine {
            Engine::Sqlite => sqlite::revert_rows(self, revisions.now, &deltas, contents, keep),
            Engine::Postgres | Engine::Mariadb => {
                let mut image = revisions.now.clone();
                for delta in &deltas {
                    let table = delta.rewrite(&mut sources.now, keep)?;
                    let tables = image.tables.iter_mut();
                    for known in tables.filter(|known| known.name == table.name) {
                        known.clone_from(&table);
                    }
                }
                Ok(Reverted::Image(Box::new(image)))
            }
        }
    }
}

/// The tables whose rows differ between two captures.
fn changed_tables(before: &Image, after: &Image) -> Vec<String> {
    let differs = |table: &&TableImage| {
        let other = after.tables.iter().find(|other| other.name == table.name);
        other.is_none_or(|other| (other.rows, other.checksum) != (table.rows, table.checksum))
    };
    let changed = before.tables.iter().filter(differs);
    changed.map(|table| table.name.clone()).collect()
}

/// Rows can be told apart only where the structure was the same all the time.
fn compare_structure(
    revisions: Revisions<'_>,
    contents: &dyn Contents,
    scratch: &Path,
) -> Result<Option<RowConflict>, DatabaseError> {
    let engine = revisions.now.engine;
    let [before, after, now] = [revisions.before, revisions.after, revisions.now]
        .map(|image| without_positions(&image.schema, engine));
    let why = match (before == after, after == now) {
        (true, true) => return Ok(None),
        (false, _) => "the change altered the structure, and others have written there since",
        (true, false) => "its structure was altered since",
    };
    let others = compare(revisions.after, revisions.now, contents, scratch, MAX_NAMED)?;
    let others = others.to_text();
    let lines: Vec<&str> = others.lines().map(str::trim).take(MAX_NAMED).collect();
    Ok(Some(RowConflict {
        table: None,
        why: format!("{why} ({})", lines.join("; ")),
    }))
}

/// A structure without the numbers that counters have reached: those are never taken back.
fn without_positions(schema: &Schema, engine: Engine) -> Schema {
    let mut schema = schema.clone();
    let is_counter = |object: &Object| {
        object.kind == "sequence"
            && match engine {
                Engine::Sqlite => true,
                Engine::Mariadb => object.name.ends_with(".AUTO_INCREMENT"),
                Engine::Postgres => false,
            }
    };
    schema.objects.retain(|object| !is_counter(object));
    for object in &mut schema.objects {
        if object.kind == "sequence" {
            let ends = [", last number ", ", next number ", " AT ("];
            let end = ends.iter().filter_map(|end| object.definition.rfind(end));
            if let Some(end) = end.max() {
                object.definition.truncate(end);
            }
        }
    }
    schema
}

/// The rows of the three captures.
struct Sources<'a> {
    before: Source<'a>,
    after: Source<'a>,
    now: Source<'a>,
}

/// The rows of one capture.
struct Source<'a> {
    image: &'a Image,
    contents: &'a dyn Contents,
    scratch: &'a Path,
    stored: sqlite::Rows,
}

/// A row as its engine writes it.
struct Row<'a> {
    bytes: &'a [u8],
    /// What tells it from all others of the table; none where nothing does.
    key: Option<&'a [u8]>,
}

impl<'a> Source<'a> {
    fn new(image: &'a Image, contents: &'a dyn Contents, scratch: &'a Path) -> Self {
        Self {
            image,
            contents,
            scratch,
            stored: sqlite::Rows::default(),
        }
    }

    fn visit(
        &mut self,
        table: &str,
        visit: &mut dyn FnMut(Row<'_>) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let image = self.image;
        if !image.tables.iter().any(|known| known.name == table) {
            return Ok(());
        }
        let mut tables = image.schema.tables.iter();
        let known = tables.find(|known| known.name == table);
        let key: &[String] = known.map(|known| known.key.as_slice()).unwrap_or_default();
        let columns = known.map(|known| known.columns.as_slice());
        let kept = columns.unwrap_or_default().iter();
        let kept = kept.filter(|it| image.engine != Engine::Postgres || postgres::is_kept(it));
        let names: Vec<&str> = kept.map(|column| column.name.as_str()).collect();
        let place = |name: &String| names.iter().position(|known| known == name);
        let places: Option<Vec<usize>> = key.iter().map(place).collect();
        let places = places.filter(|places| !places.is_empty());
        let keyed = |row: &[u8], values: Vec<&[u8]>| {
            let places = places.as_ref()?;
            let mut key = Vec::with_capacity(row.len());
            for place in places {
                key.extend_from_slice(values.get(*place)?);
                key.push(0);
            }
            Some(key)
        };
        match image.engine {
            Engine::Sqlite => {
                let (contents, scratch) = (self.contents, self.scratch);
                let stored = self.stored.of(image, contents, scratch)?;
                sqlite::visit_keyed(stored, table, key, &mut |key, bytes| {
                    visit(Row { bytes, key })
                })
            }
            Engine::Postgres => postgres::rows(image, table, self.contents, &mut |bytes| {
                let key = keyed(bytes, bytes.split(|byte| *byte == b'\t').collect());
                let key = key.as_deref();
                visit(Row { bytes, key })
            }),
            Engine::Mariadb => mariadb::rows(image, table, self.contents, &mut |bytes| {
                let key = keyed(bytes, mariadb::values(bytes));
                let key = key.as_deref();
                visit(Row { bytes, key })
            }),
        }
    }
}

/// A row for people.
fn show_row(image: &Image, table: &str, row: &[u8]) -> String {
    match image.engine {
        Engine::Sqlite => {
            let mut tables = image.schema.tables.iter();
            let known = tables.find(|known| known.name == table);
            let columns = known.map(|known| known.columns.as_slice());
            let columns = columns.unwrap_or_default().iter();
            let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
            sqlite::show_keyed_row(&names, row)
        }
        Engine::Postgres | Engine::Mariadb => show(image, table, row),
    }
}

/// What a change did to the rows of one table, and what has become of them.
pub(crate) struct Delta {
    pub(crate) table: String,
    rows: HashMap<Vec<u8>, Count>,
    /// The keys of the rows that are to come back, each with the row.
    keys: HashMap<Vec<u8>, Vec<u8>>,
    /// The keys that rows of others have now.
    taken: HashSet<Vec<u8>>,
}

/// How often a row is there.
#[derive(Clone, Debug, Default)]
struct Count {
    before: u64,
    after: u64,
    now: u64,
    key: Option<Vec<u8>>,
}

impl Count {
    fn is_added(&self) -> bool {
        self.after > self.before
    }

    /// Whether it is as it was before the change, or further from what that made of it.
    fn is_gone(&self) -> bool {
        match self.is_added() {
            true => self.now <= self.before,
            false => self.now >= self.before,
        }
    }
}

impl Delta {
    fn of(sources: &mut Sources<'_>, table: &str) -> Result<Self, DatabaseError> {
        let mut rows: HashMap<Vec<u8>, Count> = HashMap::new();
        sources.before.visit(table, &mut |row| {
            let count = rows.entry(row.bytes.to_vec()).or_default();
            count.before += 1;
            count.key = row.key.map(<[u8]>::to_vec);
            Ok(())
        })?;
        sources.after.visit(table, &mut |row| {
            let count = rows.entry(row.bytes.to_vec()).or_default();
            count.after += 1;
            count.key = row.key.map(<[u8]>::to_vec);
            Ok(())
        })?;
        rows.retain(|_, count| count.before != count.after);
        let back = rows.iter().filter(|(_, count)| !count.is_added());
        let keys = back.filter_map(|(row, count)| Some((count.key.clone()?, row.clone())));
        let keys: HashMap<Vec<u8>, Vec<u8>> = keys.collect();
        let out = rows.values().filter(|count| count.is_added());
        let wanted: HashSet<&Vec<u8>> = out.filter_map(|count| count.key.as_ref()).collect();
        let mut taken = HashSet::new();
        let mut found: HashMap<Vec<u8>, u64> = HashMap::new();
        sources.now.visit(table, &mut |row| {
            if rows.contains_key(row.bytes) {
                *found.entry(row.bytes.to_vec()).or_default() += 1;
            } else if let Some(key) = row.key
                && (keys.contains_key(key) || wanted.contains(&key.to_vec()))
            {
                taken.insert(key.to_vec());
            }
            Ok(())
        })?;
        for (row, number) in found {
            if let Some(count) = rows.get_mut(&row) {
                count.now = number;
            }
        }
        Ok(Self {
            table: table.to_owned(),
            rows,
            keys,
            taken,
        })
    }

    fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn is_gone(&self) -> bool {
        self.rows.values().all(Count::is_gone)
    }

    /// Why a row cannot be taken out, or brought back.
    fn obstacle(&self, count: &Count) -> Option<&'static str> {
        let is_taken = |key: &Vec<u8>| self.taken.contains(key);
        if !count.is_added() {
            let is_taken = count.key.as_ref().is_some_and(is_taken);
            return (!count.is_gone() && is_taken).then_some("changed or made anew since");
        }
        if count.now >= count.after {
            return None;
        }
        let Some(key) = count.key.as_ref() else {
            // Without a key, a row that is gone may have become any other.
            return (!self.is_back()).then_some("changed or deleted since");
        };
        let replaced = self.keys.get(key).and_then(|row| self.rows.get(row));
        match (is_taken(key), replaced) {
            (true, _) => Some("changed since"),
            (false, Some(replaced)) if !replaced.is_gone() => Some("deleted since"),
            // What the change made of it is gone, and nothing, or what was there before, is in
            // its place.
            (false, _) => None,
        }
    }

    /// Whether somebody has brought back what the change replaced or removed.
    fn is_back(&self) -> bool {
        self.is_gone() && self.rows.values().any(|count| !count.is_added())
    }

    fn conflict(&self, now: &Image) -> Option<RowConflict> {
        let mut named = BTreeSet::new();
        for (row, count) in &self.rows {
            if let Some(why) = self.obstacle(count) {
                named.insert(format!("{} ({why})", show_row(now, &self.table, row)));
            }
        }
        let first: Vec<String> = named.iter().take(MAX_NAMED).cloned().collect();
        let more = match named.len().saturating_sub(MAX_NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        (!named.is_empty()).then(|| RowConflict {
            table: Some(self.table.clone()),
            why: format!("{}{more}", first.join("; ")),
        })
    }

    /// The rows that go, each as often as it does.
    pub(crate) fn rows_to_remove(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let there = |count: &Count| count.is_added() && count.now >= count.after;
        let rows = self.rows.iter().filter(move |(_, count)| there(count));
        rows.map(|(row, count)| (row.as_slice(), count.after - count.before))
    }

    /// The rows that come back, each as often as it does, in an order that is always the same.
    pub(crate) fn rows_to_insert(&self) -> Vec<(&[u8], u64)> {
        let missing = |count: &Count| match count.is_added() || count.is_gone() {
            true => 0,
            false => count.before - count.after,
        };
        let rows = self.rows.iter();
        let rows = rows.map(|(row, count)| (row.as_slice(), missing(count)));
        let mut rows: Vec<(&[u8], u64)> = rows.filter(|(_, number)| *number > 0).collect();
        rows.sort_unstable();
        rows
    }

    /// The rows of the table as they are now without the change, kept.
    fn rewrite(&self, now: &mut Source<'_>, keep: &dyn Keep) -> Result<TableImage, DatabaseError> {
        let mut sink = keep.begin();
        let mut total = Total::new(now.image.engine);
        let mut removed: HashMap<&[u8], u64> = self.rows_to_remove().collect();
        let mut line = Vec::new();
        let mut add = |row: &[u8]| {
            line.clear();
            line.extend_from_slice(row);
            line.push(b'\n');
            total.add(&line);
            sink.push(&line)
        };
        now.visit(&self.table, &mut |row| match removed.get_mut(row.bytes) {
            Some(left) if *left > 0 => {
                *left -= 1;
                Ok(())
            }
            _ => add(row.bytes),
        })?;
        for (row, number) in self.rows_to_insert() {
            for _ in 0..number {
                add(row)?;
            }
        }
        let (rows, checksum) = total.finish();
        Ok(TableImage {
            name: self.table.clone(),
            rows,
            checksum,
            data: Some(sink.finish()?),
        })
    }
}

/// How an engine counts and digests the rows of a table.
enum Total {
    Ordered(u64, Box<blake3::Hasher>),
    Unordered(Tally),
}

impl Total {
    fn new(engine: Engine) -> Self {
        match engine {
            Engine::Mariadb => Self::Unordered(Tally::default()),
            Engine::Postgres | Engine::Sqlite => Self::Ordered(0, Box::default()),
        }
    }

    fn add(&mut self, line: &[u8]) {
        match self {
            Self::Ordered(rows, hasher) => {
                *rows += 1;
                hasher.update(line);
            }
            Self::Unordered(tally) => tally.add(line),
        }
    }

    fn finish(self) -> (u64, Digest) {
        match self {
            Self::Ordered(rows, hasher) => (rows, Digest::from_bytes(hasher.finalize().into())),
            Self::Unordered(tally) => (tally.rows, tally.checksum()),
        }
    }
}

/// Tables that belong together, of which the change wrote to one and others to another: what
/// refers to what is not seen in the rows. PostgreSQL and SQLite check foreign keys themselves.
fn linked_tables(revisions: Revisions<'_>, deltas: &[Delta]) -> Vec<RowConflict> {
    let others = changed_tables(revisions.after, revisions.now);
    let is_mine = |name: &str| {
        let mut mine = deltas.iter().filter(|delta| !delta.is_empty());
        mine.any(|delta| delta.table == name)
    };
    let is_theirs = |name: &str| others.iter().any(|other| other == name);
    let mut conflicts = Vec::new();
    for (child, parent, why) in table_pairs(revisions.now) {
        if is_mine(child) && is_theirs(parent) || is_mine(parent) && is_theirs(child) {
            conflicts.push(RowConflict {
                table: Some(child.to_owned()),
                why: format!("it {why} `{parent}`, and others have written to one of both since"),
            });
        }
    }
    conflicts
}

/// Two tables each whose rows are about each other, and in which way.
fn table_pairs(image: &Image) -> Vec<(&str, &str, &'static str)> {
    let mut pairs = Vec::new();
    for object in &image.schema.objects {
        let all = || image.tables.iter().map(|table| table.name.as_str());
        match (image.engine, object.kind.as_str()) {
            (Engine::Mariadb, "constraint") => {
                let Some((child, _)) = object.name.split_once('.') else {
                    continue;
                };
                for parent in all() {
                    let reference = format!("REFERENCES `{}`", parent.replace('`', "``"));
                    if object.definition.contains(&reference) {
                        pairs.push((child, parent, "refers to"));
                    }
                }
            }
            (Engine::Sqlite, "virtual table") => {
                let prefix = format!("{}_", object.name);
                for one in all().filter(|name| name.starts_with(&prefix)) {
                    for other in all().filter(|name| name.starts_with(&prefix)) {
                        pairs.push((one, other, "is one index with"));
                    }
                }
            }
            _ => {}
        }
    }
    pairs
}
