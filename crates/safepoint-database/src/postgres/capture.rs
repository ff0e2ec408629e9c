//! A database as it is at one moment, however many write to it meanwhile.
//!
//! The tables are locked against changes of their structure before the snapshot is
//! taken; readers and writers of rows never notice. `pg_dump` writes the structure from
//! that snapshot while we copy the rows from it.

use std::thread;

use safepoint_model::Digest;

use super::catalogue::{self, Catalogue};
use super::dump::{Dump, Scripts};
use super::leftovers;
use super::manifest::{
    self, Manifest, SequenceManifest, TableManifest, UnitManifest, finish_piece, structure_piece,
};
use super::name::{Name, quote};
use super::scope::{Extent, Relation, Scope, Unit, cells, relations};
use super::script::keep_json;
use super::session::{Session, settings};
use super::surroundings::{extensions, schemas};
use crate::{Database, DatabaseError, Engine, Image, Keep, Piece, TableImage};

/// How often the tables may be others when they are locked at last.
const ATTEMPTS: u32 = 5;
/// How many tables are locked by one statement.
const AT_ONCE: usize = 500;

pub(crate) fn capture(database: &Database, keep: &dyn Keep) -> Result<Image, DatabaseError> {
    let mut session = Session::open(database)?;
    for _ in 0..ATTEMPTS {
        let (_, tables) = resolve(database, &mut session)?;
        session.run(&format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {}",
            settings(session.version, database.access.lock_timeout)
        ))?;
        let locked = lock(&mut session, &tables, "ACCESS SHARE");
        if let Err(error @ DatabaseError::Sql { .. }) = locked {
            session.roll_back();
            match resolve(database, &mut session)?.1 == tables {
                true => return Err(error),
                false => continue, // one was dropped or renamed since we looked
            }
        }
        locked?;
        // Here the snapshot is taken. What came since is not locked.
        let (scope, now) = resolve(database, &mut session)?;
        if now != tables {
            session.roll_back();
            continue;
        }
        let image = read(database, &mut session, &scope, &tables, keep);
        session.roll_back();
        return image;
    }
    Err(DatabaseError::Locked {
        address: database.address.to_string(),
    })
}

/// What the address means, and the tables that are in it.
fn resolve(
    database: &Database,
    session: &mut Session,
) -> Result<(Scope, Vec<Relation>), DatabaseError> {
    let known = relations(session)?;
    let scope = Scope::resolve(&database.address, &known, session)?;
    let tables = scope.select(&known);
    Ok((scope, tables))
}

/// Locks tables, in the order of their names, so that two of us never wait for each other.
pub(super) fn lock(
    session: &mut Session,
    tables: &[Relation],
    mode: &str,
) -> Result<(), DatabaseError> {
    let here: Vec<&Relation> = tables.iter().filter(|table| table.kind != "f").collect();
    for some in here.chunks(AT_ONCE) {
        let names: Vec<String> = some
            .iter()
            .map(|table| format!("ONLY {}", table.name.sql()))
            .collect();
        session.run(&format!("LOCK TABLE {} IN {mode} MODE", names.join(", ")))?;
    }
    Ok(())
}

fn read(
    database: &Database,
    session: &mut Session,
    scope: &Scope,
    tables: &[Relation],
    keep: &dyn Keep,
) -> Result<Image, DatabaseError> {
    let snapshot = session.one("SELECT pg_export_snapshot()")?;
    let [snapshot] = cells(snapshot);
    let place = session.place().clone();
    let server = session.server.clone();
    let dump = Dump::find(database, &place, &snapshot, (session.version, &server))?;
    let columns = catalogue::kept_columns(session)?;
    let foreign: Vec<String> = tables
        .iter()
        .filter(|table| table.kind == "f")
        .map(|table| format!("the rows of foreign table `{}`", table.name))
        .collect();
    let tables: Vec<TableManifest> = tables
        .iter()
        .filter(|table| table.kind == "r")
        .map(|table| TableManifest {
            name: table.name.clone(),
            columns: columns.get(&table.name).cloned().unwrap_or_default(),
        })
        .collect();
    let (scripts, copied) = thread::scope(|threads| {
        let scripts = threads.spawn(|| -> Result<Vec<Scripts>, DatabaseError> {
            scope.units.iter().map(|unit| dump.scripts(unit)).collect()
        });
        let copied = copy_tables(session, &tables, keep);
        let scripts = scripts.join().unwrap_or_else(|_| {
            Err(DatabaseError::Tool {
                tool: "pg_dump".into(),
                why: "it could not be read".into(),
            })
        });
        (scripts, copied)
    });
    // Ours first: with our transaction, the snapshot of the other is gone too.
    let (mut images, mut scripts) = (copied?, scripts?);
    images.sort_by(|a, b| a.name.cmp(&b.name));
    let catalogue = Catalogue::read_with_values(session, scope)?;
    let mut pieces = Vec::new();
    leftovers::add(session, scope, &mut scripts)?;
    let units = keep_scripts(scope, &catalogue, &scripts, keep, &mut pieces)?;
    let filled = filled_in(scope, session)?;
    let mut not_covered = match scope.is_whole() {
        true => catalogue::not_covered(session)?,
        false => Vec::new(),
    };
    not_covered.extend(foreign);
    not_covered.extend(filled.iter().map(|view| {
        format!("the rows of materialized view `{view}`, which are computed again instead")
    }));
    let sequences = catalogue.sequences.iter().filter_map(|sequence| {
        let (value, called) = sequence.value?;
        Some(SequenceManifest::of(sequence, value, called))
    });
    let manifest = Manifest {
        format: Manifest::FORMAT,
        only: scope.units.iter().filter_map(Unit::given).collect(),
        units,
        tables,
        sequences: sequences.collect(),
        filled,
        schemas: schemas(session, scope)?,
        extensions: match scope.is_whole() {
            true => extensions(session)?,
            false => Vec::new(),
        },
    };
    let manifest = keep_json(&manifest, keep)?;
    pieces.insert(0, (manifest::PIECE.to_owned(), manifest));
    Ok(Image {
        format: Image::FORMAT,
        engine: Engine::Postgres,
        server: session.server.clone(),
        schema: catalogue.inside(scope),
        tables: images,
        pieces,
        not_covered,
    })
}

fn keep_scripts(
    scope: &Scope,
    catalogue: &Catalogue,
    scripts: &[Scripts],
    keep: &dyn Keep,
    pieces: &mut Vec<(String, Piece)>,
) -> Result<Vec<UnitManifest>, DatabaseError> {
    let mut units = Vec::new();
    for (number, (unit, scripts)) in scope.units.iter().zip(scripts).enumerate() {
        let label = label(unit);
        let structure = keep_json(&scripts.structure, keep)?;
        pieces.push((structure_piece(&label), structure));
        pieces.push((finish_piece(&label), keep_json(&scripts.finish, keep)?));
        let (structure, privileges) = catalogue.fingerprints(scope, number);
        units.push(UnitManifest {
            extent: unit.extent.clone(),
            label,
            tables: unit.tables.iter().cloned().collect(),
            structure,
            privileges,
        });
    }
    Ok(units)
}

fn label(unit: &Unit) -> String {
    match &unit.extent {
        Extent::Database => "database".to_owned(),
        Extent::Schema(schema) => format!("schema {schema}"),
        Extent::Table(name) => format!("table {name}"),
    }
}

/// The rows of all tables, each a piece of its own.
fn copy_tables(
    session: &mut Session,
    tables: &[TableManifest],
    keep: &dyn Keep,
) -> Result<Vec<TableImage>, DatabaseError> {
    let mut images = Vec::new();
    for table in tables {
        let mut sink = keep.begin();
        let mut hasher = blake3::Hasher::new();
        let rows = session.copy_out(&source(table), &mut |run| {
            hasher.update(run);
            sink.push(run)
        })?;
        images.push(TableImage {
            name: table.name.to_string(),
            rows,
            // In the order in which the table has them: a restore puts them in the same.
            checksum: Digest::from_bytes(hasher.finalize().into()),
            data: Some(sink.finish()?),
        });
    }
    Ok(images)
}

/// What `COPY` takes for a table and its kept columns.
pub(super) fn source(table: &TableManifest) -> String {
    let columns: Vec<String> = table.columns.iter().map(|name| quote(name)).collect();
    match columns.is_empty() {
        // `()` is no list; there is nothing to leave out anyway.
        true => table.name.sql(),
        false => format!("{} ({})", table.name.sql(), columns.join(", ")),
    }
}

/// The digest and the count of a table's rows as they are now.
pub(super) fn look_at(
    session: &mut Session,
    table: &TableManifest,
) -> Result<(u64, Digest), DatabaseError> {
    let mut hasher = blake3::Hasher::new();
    let rows = session.copy_out(&source(table), &mut |run| {
        hasher.update(run);
        Ok(())
    })?;
    Ok((rows, Digest::from_bytes(hasher.finalize().into())))
}

/// The materialised views in scope that are filled.
fn filled_in(scope: &Scope, session: &mut Session) -> Result<Vec<Name>, DatabaseError> {
    let mut views = catalogue::filled_views(session)?;
    views.retain(|view| scope.unit_of_table(view).is_some());
    Ok(views)
}
