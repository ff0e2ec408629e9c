//! Makes a database what an image says.
//!
//! The server commits every change of structure at once, so nothing can be tried
//! out in a transaction. Everything is built beside instead, in a database of our
//! own, read back and compared there; then all tables change places in one
//! statement. What a reader of the user's database can see:
//!
//! 1. While tables are built and checked: nothing. (Two rare cases: a database that
//!    was dropped is there again, empty; a sequence that was dropped, and that a
//!    default takes values from, is there again.)
//! 2. When tables have triggers, or tables that stay have foreign keys to those that
//!    change: these tables, under names that begin with `__safepoint_`. All tables
//!    in scope are then locked; the triggers are moved to the tables that come, the
//!    foreign keys point to them, and the locks are released.
//! 3. `RENAME TABLE`: from here on every table has its restored rows, structure and
//!    triggers, all at one moment. Up to here, any failure is undone, and the
//!    database is as it was. Whoever wrote between the locks and this moment wrote
//!    to a table that goes.
//! 4. Views, routines and events that differ are replaced, one by one. Then the
//!    structure is read again and compared. A refusal, or a difference, undoes
//!    everything back to the beginning.
//!
//! On MySQL, tables can be renamed while they are locked: there, steps 2 and 3 are
//! under one lock, and no table is ever under another name.
//!
//! Steps 2 to 4 are written down first, with their way back, in a table beside (see
//! `recover`): when the connection is lost in between, a new one goes on at once,
//! and when this process is gone, the next one that captures, changes or restores
//! this database does.

use std::cell::Cell;

use crate::{Contents, Database, DatabaseError, Image, Restored};

use super::definition;
use super::lex;
use super::load::Building;
use super::outside;
use super::plan::{Journal, Made, Manner, Planning};
use super::read;
use super::recover::{self, Ending};
use super::schema::schema;
use super::scratch::{Locks, Scratch, State};
use super::server::Server;
use super::session::Session;
use super::step::{self, Step};
use super::structure::{PIECE, Structure, TableText};

pub(super) fn restore(
    database: &Database,
    image: &Image,
    contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    let server = Server::reach(database)?;
    let piece = image
        .piece(PIECE)
        .ok_or_else(|| server.unsupported("its image has no structure in it"))?;
    let wanted = Structure::from_bytes(&contents.read(piece)?, &server.address)?;
    let attempt = Attempt {
        scratch: Scratch::fresh(&server.database),
        locks: Locks::of(&server.database),
        wanted: narrow(&server, wanted, database.address.only())?,
        touched: Cell::new(false),
        server,
        image,
        contents,
    };
    let mut session = attempt.server.session()?;
    attempt.lock(&mut session, &attempt.locks.restore)?;
    recover::recover(&attempt.server, &mut session)?;
    match attempt.run(&mut session) {
        Ok(restored) => {
            session.close();
            Ok(restored)
        }
        Err(error) => attempt.give_up(session, error),
    }
}

/// The part of an image that `only` means. All that it names must be in it.
fn narrow(server: &Server, wanted: Structure, only: &[String]) -> Result<Structure, DatabaseError> {
    let views = wanted.views.iter().map(|view| view.name.as_str());
    let known: Vec<&str> = wanted.movable().chain(views).collect();
    match only.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(wanted.narrowed(only)),
        Some(name) => Err(DatabaseError::NotFound {
            what: "captured table",
            name: name.clone(),
            address: server.address.clone(),
        }),
    }
}

struct Attempt<'a> {
    server: Server,
    scratch: Scratch,
    locks: Locks,
    wanted: Structure,
    image: &'a Image,
    contents: &'a dyn Contents,
    /// Whether anything of the user's may have been touched.
    touched: Cell<bool>,
}

impl Attempt<'_> {
    fn lock(&self, session: &mut Session, name: &str) -> Result<(), DatabaseError> {
        match self.server.lock(session, name, self.server.patience)? {
            true => Ok(()),
            false => Err(self.server.locked()),
        }
    }

    fn run(&self, session: &mut Session) -> Result<Restored, DatabaseError> {
        self.scratch.create(session)?;
        let made = self.make_way(session)?;
        let building = Building {
            server: &self.server,
            wanted: &self.wanted,
            image: self.image,
            contents: self.contents,
            place: &self.scratch.build,
        };
        building.build(session)?;
        let mut warnings = building.check(session)?;
        self.lock(session, &self.locks.swap)?;
        let journal = self.swap(session, made)?;
        step::run_in_any_order(session, &journal.finish)?;
        if let Err(error) = self.check(session, &mut warnings) {
            recover::revert(&self.server, session, &self.scratch, &journal)?;
            return Err(error);
        }
        warnings.extend(outside::orphans(&self.server, session, &self.wanted)?);
        self.say_goodbye(session, &mut warnings);
        Ok(Restored { warnings })
    }

    /// Sees to it that there is a database, and that there are the sequences without which
    /// tables cannot be made.
    fn make_way(&self, session: &mut Session) -> Result<Made, DatabaseError> {
        let name = &self.server.database;
        let mut steps = Vec::new();
        let mut made = Made::default();
        let live = read::structure(&self.server, session, name, &[]);
        let live = match live.map_err(DatabaseError::from) {
            Ok(live) => live,
            Err(DatabaseError::NotFound { .. }) if self.wanted.only.is_empty() => {
                let (name, options) = (lex::name(name), &self.wanted.database);
                steps.push(Step::plain(format!("CREATE DATABASE {name} {options}")));
                made.database = true;
                Structure::default()
            }
            Err(error) => return Err(error),
        };
        for sequence in &self.wanted.sequences {
            let used = |table: &TableText| {
                definition::sequences_used(&table.create, name).contains(&sequence.name)
            };
            let missing = !live.sequences.iter().any(|one| one.name == sequence.name);
            if missing && self.wanted.tables.iter().any(used) {
                let create = lex::full_name(name, &sequence.name);
                steps.push(Step::plain(format!("CREATE SEQUENCE {create}")));
                made.sequences.push(sequence.name.clone());
            }
        }
        if made != Made::default() {
            let journal = Journal {
                made: made.clone(),
                ..Journal::default()
            };
            recover::write(session, &self.scratch, &journal)?;
            self.touched.set(true);
            step::run_in_order(session, &steps)?;
        }
        Ok(made)
    }

    /// Puts what was built in its place.
    fn swap(&self, session: &mut Session, made: Made) -> Result<Journal, DatabaseError> {
        let (server, name) = (&self.server, &self.server.database);
        let live = read::structure(server, session, name, &self.wanted.only)?;
        let outside = outside::outside(server, session, &live, &self.wanted)?;
        let mut plan = Planning {
            database: name,
            scratch: &self.scratch,
            live: &live,
            wanted: &self.wanted,
            outside: &outside,
            manner: Manner::of(&server.version),
        }
        .plan();
        plan.journal.made = made;
        recover::write(session, &self.scratch, &plan.journal)?;
        self.touched.set(true);
        if !plan.stage.is_empty() {
            step::rename(session, &plan.stage)?;
        }
        let manner = Manner::of(&server.version);
        if manner == Manner::Locked {
            step::run_in_order(session, &plan.clear)?;
        }
        let is_locked = !plan.prepare.is_empty() || !plan.journal.crown.is_empty();
        if is_locked {
            let locks: Vec<String> = plan.lock.iter().map(|t| format!("{t} WRITE")).collect();
            session.run(format!("LOCK TABLES {}", locks.join(", ")))?;
            step::run_in_order(session, &plan.prepare)?;
        }
        if manner == Manner::Staged {
            session.run("UNLOCK TABLES")?;
            step::run_in_order(session, &plan.clear)?;
        }
        let mut moves = plan.journal.moves.clone();
        moves.push(self.scratch.journal_move(State::Pending, State::Done));
        step::rename(session, &moves)?;
        step::run_in_order(session, &plan.journal.crown)?;
        session.run("UNLOCK TABLES")?;
        Ok(plan.journal)
    }

    /// Reads the structure again, and compares it with the image. Rows were compared before
    /// they were put in their place; by now others may write to them.
    fn check(
        &self,
        session: &mut Session,
        warnings: &mut Vec<String>,
    ) -> Result<(), DatabaseError> {
        let (server, only) = (&self.server, &self.wanted.only);
        let found = read::structure(server, session, &server.database, only)?;
        let (found, mut wanted) = (found.at_rest(), self.wanted.at_rest());
        wanted.views.retain(|view| {
            let lost = view.broken && !found.views.iter().any(|one| one.name == view.name);
            if lost {
                let name = &view.name;
                warnings.push(format!(
                    "view `{name}` was broken, and is not there any more"
                ));
            }
            !lost
        });
        wanted.events.retain(|event| {
            let once = event.create.shown().contains(" ON SCHEDULE AT ");
            let lost = once && !found.events.iter().any(|one| one.name == event.name);
            if lost {
                let name = &event.name;
                warnings.push(format!(
                    "the time of event `{name}` is over: it is not there"
                ));
            }
            !lost
        });
        let (found, wanted) = (schema(&found), schema(&wanted));
        if found == wanted {
            return Ok(());
        }
        let object = wanted
            .objects
            .iter()
            .find(|one| !found.objects.contains(one));
        let object = object.or_else(|| found.objects.iter().find(|o| !wanted.objects.contains(o)));
        let table = wanted.tables.iter().find(|one| !found.tables.contains(one));
        let table = table.or_else(|| found.tables.iter().find(|t| !wanted.tables.contains(t)));
        let why = match (table, object) {
            (Some(table), _) => format!("table `{}`", table.name),
            (None, Some(object)) => format!("{} `{}`", object.kind, object.name),
            (None, None) => "its structure".to_owned(),
        };
        Err(DatabaseError::NotIdentical {
            address: server.address.clone(),
            why,
        })
    }

    /// Drops what was replaced. When that fails, the next one does it.
    fn say_goodbye(&self, session: &mut Session, warnings: &mut Vec<String>) {
        let cleaned = recover::clean_up(session, &self.scratch).and_then(|()| {
            for lock in [&self.locks.swap, &self.locks.restore] {
                session.run(format!("DO RELEASE_LOCK('{lock}')"))?;
            }
            Ok(())
        });
        if let Err(error) = cleaned {
            warnings.push(format!(
                "`{}` is left over, and is dropped next time: {error}",
                self.scratch.old
            ));
        }
    }

    /// Ends what was begun, over a new connection when the old one is lost. Most often it is
    /// undone then; a restore that was as good as done is finished.
    fn give_up(&self, session: Session, error: DatabaseError) -> Result<Restored, DatabaseError> {
        match self.end(session) {
            Ok(Ending::Undone) => Err(error),
            Ok(Ending::Finished) => Ok(Restored {
                warnings: vec![format!("{error}; it was finished over a new one")],
            }),
            Err(_) if !self.touched.get() => Err(error),
            Err(second) => Err(DatabaseError::NotIdentical {
                address: self.server.address.clone(),
                why: format!(
                    "{error}; then {second}; the next command that reaches it ends what was begun"
                ),
            }),
        }
    }

    fn end(&self, mut session: Session) -> Result<Ending, DatabaseError> {
        if session.is_over() {
            session = self.server.session()?;
            self.lock(&mut session, &self.locks.restore)?;
            self.lock(&mut session, &self.locks.swap)?;
        }
        let ending = recover::end(&self.server, &mut session, &self.scratch)?;
        if ending == Ending::Finished {
            self.check(&mut session, &mut Vec::new())?;
        }
        session.close();
        Ok(ending)
    }
}
