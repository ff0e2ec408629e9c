//! Goes on where a restore was cut off: by a lost connection, or because its
//! process is gone.
//!
//! The journal is a table in the scratch database. It is renamed in the very
//! statement in which the user's tables change places, so its name tells on which
//! side of that moment things stand. Before it, everything is undone; after it,
//! the rest is done, or, when that is refused, everything is undone.

use crate::DatabaseError;

use super::lex;
use super::plan::{Journal, Made};
use super::read;
use super::scratch::{Locks, Scratch, State};
use super::server::Server;
use super::session::Session;
use super::step;

/// How many seconds to wait for locks, at least.
const PATIENCE: u64 = 60;

/// How a restore that was cut off has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// The database is as it was before.
    Undone,
    /// The database is what it was to become.
    Finished,
}

/// Writes the journal, or writes it anew.
pub(super) fn write(
    session: &mut Session,
    scratch: &Scratch,
    journal: &Journal,
) -> Result<(), DatabaseError> {
    let text = serde_json::to_vec(journal)
        .map_err(|error| DatabaseError::Kept(std::sync::Arc::new(error)))?;
    let name = scratch.journal(State::Pending);
    session.run(format!(
        "CREATE TABLE IF NOT EXISTS {name} (id INT PRIMARY KEY, plan LONGTEXT) \
         ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    ))?;
    let mut statement = format!("REPLACE INTO {name} VALUES (1, ").into_bytes();
    lex::push_text(&mut statement, &text);
    statement.push(b')');
    session.run(statement)?;
    Ok(())
}

/// Takes the journal away: nothing is left to be done. Then drops what was built.
pub(super) fn clean_up(session: &mut Session, scratch: &Scratch) -> Result<(), DatabaseError> {
    for state in [State::Pending, State::Done, State::Reverting] {
        let name = scratch.journal(state);
        session.run(format!("DROP TABLE IF EXISTS {name}"))?;
    }
    scratch.drop(session)
}

/// Ends whatever restores have left behind, unless one is at it.
pub(super) fn recover_if_free(server: &Server) -> Result<(), DatabaseError> {
    let mut session = server.session()?;
    let locks = Locks::of(&server.database);
    if !Scratch::left(&mut session, &server.database)?.is_empty()
        && server.lock(&mut session, &locks.restore, 0)?
    {
        recover(server, &mut session)?;
    }
    session.close();
    Ok(())
}

/// The same, for whoever has the lock of a restore.
pub(super) fn recover(server: &Server, session: &mut Session) -> Result<(), DatabaseError> {
    let left = Scratch::left(session, &server.database)?;
    if left.is_empty() {
        return Ok(());
    }
    let locks = Locks::of(&server.database);
    if !server.lock(session, &locks.swap, server.patience)? {
        return Err(server.locked());
    }
    for scratch in left {
        end(server, session, &scratch)?;
    }
    session.run(format!("DO RELEASE_LOCK('{}')", locks.swap))?;
    Ok(())
}

/// Ends one restore that was cut off.
pub(super) fn end(
    server: &Server,
    session: &mut Session,
    scratch: &Scratch,
) -> Result<Ending, DatabaseError> {
    session.run("UNLOCK TABLES")?;
    session.run("ROLLBACK")?;
    // To leave things as they are would be worse than to wait.
    let patience = server.patience.max(PATIENCE);
    session.run(format!("SET SESSION lock_wait_timeout = {patience}"))?;
    let ending = if let Some(journal) = read_journal(server, session, scratch, State::Done)? {
        enter(server, session)?;
        let crowned = step::run_in_order(session, &journal.crown);
        match crowned.and_then(|()| step::run_in_any_order(session, &journal.finish)) {
            Ok(()) => Ending::Finished,
            Err(error @ DatabaseError::Lost { .. }) => return Err(error),
            Err(_) => {
                revert(server, session, scratch, &journal)?;
                Ending::Undone
            }
        }
    } else {
        if let Some(journal) = read_journal(server, session, scratch, State::Reverting)? {
            enter(server, session)?;
            go_back(server, session, &journal)?;
        }
        if let Some(journal) = read_journal(server, session, scratch, State::Pending)? {
            enter(server, session)?;
            step::run_in_order(session, &journal.undo)?;
            unmake(server, session, &journal.made)?;
        }
        Ending::Undone
    };
    clean_up(session, scratch)?;
    Ok(ending)
}

/// Undoes everything, after tables have changed places.
pub(super) fn revert(
    server: &Server,
    session: &mut Session,
    scratch: &Scratch,
    journal: &Journal,
) -> Result<(), DatabaseError> {
    enter(server, session)?;
    step::run_in_any_order(session, &journal.unfinish)?;
    let mut moves = step::back(&journal.moves);
    moves.push(scratch.journal_move(State::Done, State::Reverting));
    step::rename(session, &moves)?;
    go_back(server, session, journal)
}

/// The rest of that, once they have changed back.
fn go_back(server: &Server, session: &mut Session, journal: &Journal) -> Result<(), DatabaseError> {
    step::run_in_order(session, &journal.undo)?;
    step::run_in_any_order(session, &journal.refinish)?;
    unmake(server, session, &journal.made)
}

/// Drops what was made to begin with, where nobody has used it.
fn unmake(server: &Server, session: &mut Session, made: &Made) -> Result<(), DatabaseError> {
    let live = read::structure(server, session, &server.database, &[]);
    let live = match live.map_err(DatabaseError::from) {
        Err(DatabaseError::NotFound { .. }) => return Ok(()),
        live => live?,
    };
    let mut left = live.movable().count() + live.views.len() + live.left_out.len();
    for sequence in live
        .sequences
        .iter()
        .filter(|s| made.sequences.contains(&s.name))
    {
        if sequence.row.starts_with("1,") {
            let name = lex::full_name(&server.database, &sequence.name);
            session.run(format!("DROP SEQUENCE IF EXISTS {name}"))?;
            left -= 1;
        }
    }
    if made.database && left + live.routines.len() + live.events.len() == 0 {
        session.run(format!("DROP DATABASE {}", lex::name(&server.database)))?;
    }
    Ok(())
}

/// The user's database may be gone, with nothing left in it to be undone.
fn enter(server: &Server, session: &mut Session) -> Result<(), DatabaseError> {
    match server.enter(session, &server.database) {
        Err(DatabaseError::NotFound { .. }) => Ok(()),
        result => result,
    }
}

fn read_journal(
    server: &Server,
    session: &mut Session,
    scratch: &Scratch,
    state: State,
) -> Result<Option<Journal>, DatabaseError> {
    let name = scratch.journal_table(state);
    let listed = session.texts(&format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {}",
        String::from_utf8_lossy(&lex::text(scratch.old.as_bytes()))
    ))?;
    if !listed.into_iter().flatten().any(|known| known == name) {
        return Ok(None);
    }
    let name = scratch.journal(state);
    let rows = session.query(format!("SELECT plan FROM {name}"))?;
    let Some(text) = rows.first().and_then(|row| row.first()) else {
        return Ok(None); // it was made, and nothing was begun
    };
    let journal = serde_json::from_slice(text).map_err(|error| {
        server.unsupported(format!("the journal {name} is unreadable: {error}"))
    })?;
    Ok(Some(journal))
}
