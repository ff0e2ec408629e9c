//! Captures a database as it is at one moment.
//!
//! The rows come from one transaction with a consistent snapshot. The structure is
//! no part of a snapshot, so it is read before and after the snapshot is taken, and
//! when the two differ, all begins anew. In between, the transaction touches every
//! table, and so holds it against being changed in form until all rows are read;
//! writers are not held up. What restores here swaps tables only under a lock that
//! a capture has while it does this.
//!
//! Tables of an engine without transactions (MyISAM, Aria, MEMORY …) are not in the
//! snapshot. They are locked for reading before it is taken and until they are read:
//! writers to those wait.

use crate::{Database, DatabaseError, Engine, Image, Keep, Piece, TableImage};

use super::lex;
use super::read;
use super::recover;
use super::row::{self, Tally};
use super::schema::schema;
use super::scratch::Locks;
use super::server::Server;
use super::session::Session;
use super::structure::{PIECE, Structure, TableText};
use super::trouble::{GONE, LOCKED, Trouble};

/// How often to begin anew when the structure changes meanwhile.
const ATTEMPTS: u32 = 10;
/// How many bytes of rows are handed on at once.
const RUN: usize = 256 << 10;

pub(super) fn capture(database: &Database, keep: &dyn Keep) -> Result<Image, DatabaseError> {
    let server = Server::reach(database)?;
    recover::recover_if_free(&server)?;
    let (mut changed, mut locked) = (0, 0);
    loop {
        let trouble = match attempt(&server, database.address.only(), keep) {
            Ok(Some(image)) => return Ok(image),
            Ok(None) => None,
            Err(trouble) => Some(trouble),
        };
        match trouble {
            Some(trouble) if trouble.is_one_of(&LOCKED) && locked + 1 < server.patience => {
                locked += 1;
            }
            Some(trouble) if !trouble.is_one_of(&GONE) => return Err(trouble.into()),
            _ if changed < ATTEMPTS => changed += 1,
            trouble => {
                let last = trouble.map(|one| format!(" ({})", DatabaseError::from(one)));
                let why = "its structure changed again and again while it was captured";
                return Err(server.unsupported(format!("{why}{}", last.unwrap_or_default())));
            }
        }
    }
}

/// One attempt; `None` when the structure changed meanwhile.
fn attempt(server: &Server, only: &[String], keep: &dyn Keep) -> Result<Option<Image>, Trouble> {
    let mut session = server.session()?;
    let locks = Locks::of(&server.database);
    if !server.lock(&mut session, &locks.swap, server.patience)? {
        return Err(server.locked().into());
    }
    // Whoever holds up one session of ours may itself wait for the other: so none waits long,
    // but both let go and begin anew.
    session.run("SET SESSION lock_wait_timeout = 1")?;
    let before = read::structure(server, &mut session, &server.database, only)?;
    check_names(server, &before, only)?;
    let (transactional, other): (Vec<_>, Vec<_>) =
        before.tables.iter().partition(|table| table.transactional);
    let holder = hold(server, &other)?;
    session.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
    let sequences = before.sequences.iter().map(|one| &one.name);
    for name in transactional
        .iter()
        .map(|table| &table.name)
        .chain(sequences)
    {
        let name = lex::full_name(&server.database, name);
        session.run(format!("SELECT 1 FROM {name} LIMIT 0"))?;
    }
    let after = read::structure(server, &mut session, &server.database, only)?;
    if before.at_rest() != after.at_rest() {
        return Ok(None);
    }
    session.run(format!("DO RELEASE_LOCK('{}')", locks.swap))?;
    let mut tables = Vec::new();
    if let Some(mut holder) = holder {
        // Not by the first session: it would wait behind writers that wait for this one.
        for table in other {
            tables.push(keep_rows(&mut holder, table, &server.database, keep)?);
        }
        holder.close();
    }
    for table in transactional {
        tables.push(keep_rows(&mut session, table, &server.database, keep)?);
    }
    session.run("COMMIT")?;
    let mut image = image(server, &after, tables, keep)?;
    let blind = read::blind_spots(&mut session, &server.database)?;
    image.not_covered.extend(blind);
    session.close();
    Ok(Some(image))
}

/// Every name that was given must mean something.
fn check_names(
    server: &Server,
    structure: &Structure,
    only: &[String],
) -> Result<(), DatabaseError> {
    for name in only {
        if let Some((_, why)) = structure.left_out.iter().find(|(known, _)| known == name) {
            return Err(server.unsupported(format!("`{name}` cannot be captured: {why}")));
        }
        let mut views = structure.views.iter().map(|view| view.name.as_str());
        if !structure.movable().any(|known| known == name) && !views.any(|known| known == name) {
            return Err(DatabaseError::NotFound {
                what: "table",
                name: name.clone(),
                address: server.address.clone(),
            });
        }
    }
    Ok(())
}

/// A second session that locks the tables that are in no snapshot. The first one cannot:
/// beginning a transaction would release them.
fn hold(server: &Server, tables: &[&TableText]) -> Result<Option<Session>, Trouble> {
    if tables.is_empty() {
        return Ok(None);
    }
    let lock = |table: &&TableText| lex::full_name(&server.database, &table.name) + " READ";
    let locks: Vec<String> = tables.iter().map(lock).collect();
    let mut session = server.session()?;
    session.run("SET SESSION lock_wait_timeout = 1")?;
    session.run(format!("LOCK TABLES {}", locks.join(", ")))?;
    Ok(Some(session))
}

fn keep_rows(
    session: &mut Session,
    table: &TableText,
    database: &str,
    keep: &dyn Keep,
) -> Result<TableImage, Trouble> {
    let mut sink = keep.begin();
    let mut run = Vec::with_capacity(RUN);
    let tally = each_row(session, table, database, &mut |row| {
        run.extend_from_slice(row);
        if run.len() >= RUN {
            sink.push(&run)?;
            run.clear();
        }
        Ok(())
    })?;
    sink.push(&run)?;
    Ok(TableImage {
        name: table.name.clone(),
        rows: tally.rows,
        checksum: tally.checksum(),
        data: Some(sink.finish()?),
    })
}

/// Hands out the rows of a table as they are written down, and counts them.
pub(super) fn each_row(
    session: &mut Session,
    table: &TableText,
    database: &str,
    visit: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
) -> Result<Tally, Trouble> {
    let mut tally = Tally::default();
    let mut row = Vec::new();
    let query = row::select(table, database);
    session.stream(&[query.as_bytes()], &mut |line| {
        row.clear();
        row::write(table, line, &mut row);
        tally.add(&row);
        visit(&row)
    })?;
    Ok(tally)
}

fn image(
    server: &Server,
    structure: &Structure,
    mut tables: Vec<TableImage>,
    keep: &dyn Keep,
) -> Result<Image, DatabaseError> {
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Image {
        format: Image::FORMAT,
        engine: Engine::Mariadb,
        server: server.version.text.clone(),
        schema: schema(structure),
        tables,
        pieces: vec![(PIECE.to_owned(), keep_structure(structure, keep)?)],
        not_covered: structure
            .left_out
            .iter()
            .map(|(name, why)| format!("table `{name}`: {why}"))
            .collect(),
    })
}

fn keep_structure(structure: &Structure, keep: &dyn Keep) -> Result<Piece, DatabaseError> {
    let bytes = serde_json::to_vec(structure)
        .map_err(|error| DatabaseError::Kept(std::sync::Arc::new(error)))?;
    keep.bytes(&bytes)
}
