//! Group commit: the last one in commits for all.
//!
//! A writer takes the connection, opens a transaction if none is open, makes
//! its changes, and looks back. If somebody is waiting for the connection, the
//! transaction stays open and the next in line takes over the duty to commit.
//! If nobody is, but an earlier commit is still on its way to disk, the
//! transaction goes on gathering members until that has arrived, for its own
//! way begins no sooner: then one of its members commits. Else the writer
//! commits at once. So a lone writer pays one sync, and sixty-four writers
//! share one, without a thread of their own, a timer or a tuning knob. Whoever
//! joined a transaction returns only when it is committed and, if anyone in it
//! asked for that, on disk.
//!
//! A member that fails is rolled back alone, to its savepoint. A member that
//! panics is treated the same, and the panic goes on afterwards.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Sql, StoreError, fault};

mod outcome;
use outcome::{Disk, Heard, Outcome, Told};

/// When a write may be acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// When it survives the process. A power cut may take the last ones.
    Async,
    /// When it is on disk.
    Sync,
}

/// What must be done once a commit is on disk, outside the transaction.
pub type AfterDurable = Box<dyn FnOnce() -> Result<(), StoreError> + Send>;

/// Somebody who takes part in every transaction: the trail, which signs what
/// the transaction adds before it is committed.
pub trait Seal: Send + Sync {
    /// A transaction has begun.
    fn begun(&self, sql: &mut dyn Sql) -> Result<(), StoreError>;
    /// The changes of one member are kept.
    fn member_kept(&self);
    /// The changes of one member were undone.
    fn member_undone(&self);
    /// How safe the transaction must be, even if nobody in it asked for more. Asked before
    /// [`Seal::before_commit`].
    fn least_durability(&self) -> Durability {
        Durability::Async
    }
    /// The transaction is about to be committed.
    fn before_commit(&self, sql: &mut dyn Sql) -> Result<AfterDurable, StoreError>;
    /// The transaction was committed.
    fn committed(&self);
    /// The whole transaction came to nothing.
    fn rolled_back(&self);
}

/// A connection that can hold the write lock of its store.
pub(crate) trait WriteConnection: Sql + Send {
    /// Opens a transaction and keeps every other writer out.
    fn begin(&mut self) -> Result<(), StoreError>;
    /// Commits it, and returns what still has to happen for it to be on disk.
    fn commit(&mut self, durability: Durability) -> Result<Flush, StoreError>;
    /// Undoes the whole transaction.
    fn roll_back(&mut self);
    /// The last error since the transaction began.
    fn last_error(&self) -> Option<StoreError>;
    /// Whether a transaction is open: some failures end it on their own.
    fn is_open(&self) -> bool;
}

/// The rest of a commit, which needs no lock.
pub(crate) enum Flush {
    /// Nothing is left to do.
    Done,
    /// Sync this file: the write-ahead log of SQLite.
    File(Arc<std::fs::File>, std::path::PathBuf),
}

impl Flush {
    fn run(self) -> Result<(), StoreError> {
        match self {
            Self::Done => Ok(()),
            Self::File(file, path) => file
                .sync_data()
                .map_err(|error| StoreError::file("sync", path, error)),
        }
    }
}

/// The one writing connection of a process, and the line of those who wait for it.
pub(crate) struct Group {
    turn: Mutex<Turn>,
    waiting: AtomicUsize,
    disk: Disk,
    seal: std::sync::OnceLock<Arc<dyn Seal>>,
}

struct Turn {
    connection: Box<dyn WriteConnection>,
    open: Option<Open>,
}

/// The transaction that is gathering members.
struct Open {
    outcome: Arc<Outcome>,
    durability: Durability,
    /// How many have joined it.
    members: usize,
}

/// Nobody waits for more than so many others, even if failing members come back at once.
const MOST_MEMBERS: usize = 1_000;

/// Panics are caught before they can leave anything half-done, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Group {
    pub(crate) fn new(connection: Box<dyn WriteConnection>) -> Self {
        Self {
            turn: Mutex::new(Turn {
                connection,
                open: None,
            }),
            waiting: AtomicUsize::new(0),
            disk: Disk::default(),
            seal: std::sync::OnceLock::new(),
        }
    }

    /// Makes `seal` take part in every transaction from now on. The first one stays.
    pub(crate) fn seal_with(&self, seal: Arc<dyn Seal>) {
        let _ = self.seal.set(seal);
    }

    /// Runs `change` in a transaction and returns when that is committed.
    pub(crate) fn write<T, E: From<StoreError>>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut dyn Sql) -> Result<T, E>,
    ) -> Result<T, E> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut turn = lock(&self.turn);
        self.waiting.fetch_sub(1, Ordering::SeqCst);

        let joined = turn.open.is_some();
        if !joined {
            self.open(&mut turn)?;
        }
        if joined && let Err(error) = turn.connection.execute("SAVEPOINT member", &[]) {
            self.abandon(&mut turn, Err(error.clone()));
            return Err(error.into());
        }
        let result = catch_unwind(AssertUnwindSafe(|| change(&mut *turn.connection)));
        let kept = matches!(result, Ok(Ok(_)));
        let settled = self.settle_member(&mut turn, joined, kept);
        fault::point("write.changed");

        let outcome = match (&mut turn.open, kept) {
            (Some(open), true) => {
                open.durability = open.durability.max(durability);
                Some(Arc::clone(&open.outcome))
            }
            _ => None,
        };
        let crowded = turn.open.as_mut().is_some_and(|open| {
            open.members += 1;
            open.members >= MOST_MEMBERS
        });
        if crowded || self.commits_now(&turn) {
            self.commit(turn);
        } else {
            drop(turn); // somebody else does, or it is our turn later
        }

        let value = match result {
            Ok(value) => value?,
            Err(panic) => resume_unwind(panic),
        };
        settled?;
        if let Some(outcome) = outcome {
            self.wait(&outcome)?;
        }
        Ok(value)
    }

    /// Whether the one who has the turn has to commit, and not the next in line or a later one.
    fn commits_now(&self, turn: &Turn) -> bool {
        let next_in_line = self.waiting.load(Ordering::SeqCst) > 0;
        let gathers = || {
            turn.open.as_ref().is_some_and(|open| {
                open.durability == Durability::Sync && self.disk.leave(&open.outcome)
            })
        };
        !next_in_line && !gathers()
    }

    /// Waits until a transaction is over, and commits it if that falls to this member.
    fn wait(&self, outcome: &Arc<Outcome>) -> Result<(), StoreError> {
        loop {
            match outcome.wait() {
                Heard::Known(result) => return result,
                Heard::Turn => {
                    let turn = lock(&self.turn);
                    let is_open = |open: &Open| Arc::ptr_eq(&open.outcome, outcome);
                    if turn.open.as_ref().is_some_and(is_open) {
                        self.commit(turn);
                    }
                }
            }
        }
    }

    fn open(&self, turn: &mut Turn) -> Result<(), StoreError> {
        turn.connection.begin()?;
        fault::point("write.begun");
        if let Some(seal) = self.seal.get()
            && let Err(error) = seal.begun(&mut *turn.connection)
        {
            turn.connection.roll_back();
            seal.rolled_back();
            return Err(error);
        }
        turn.open = Some(Open {
            outcome: Arc::default(),
            durability: Durability::Async,
            members: 0,
        });
        Ok(())
    }

    /// Keeps or undoes what one member did, and ends the transaction where nothing of it is left.
    fn settle_member(&self, turn: &mut Turn, joined: bool, kept: bool) -> Result<(), StoreError> {
        let connection = &mut turn.connection;
        let reason = connection.last_error(); // before the savepoint adds one of its own
        let ended = !connection.is_open();
        let settled = match (joined, kept) {
            (false, true) => Ok(()),
            (false, false) => {
                self.abandon(turn, Ok(()));
                return Ok(());
            }
            (true, true) => connection.execute("RELEASE member", &[]).map(drop),
            (true, false) => connection
                .execute("ROLLBACK TO member", &[])
                .and_then(|_| connection.execute("RELEASE member", &[]))
                .map(drop),
        };
        match settled {
            Ok(()) if connection.is_open() => {
                if let Some(seal) = self.seal.get() {
                    if kept {
                        seal.member_kept();
                    } else {
                        seal.member_undone();
                    }
                }
                Ok(())
            }
            // The database has given up the whole transaction: a full disk, a
            // lost connection. Everyone in it must hear of that.
            settled => {
                let error = match (ended, reason, settled.err()) {
                    (true, Some(reason), _) | (_, _, Some(reason)) => reason,
                    _ => StoreError::corrupted("transaction", "it was ended by the database"),
                };
                self.abandon(turn, Err(error.clone()));
                Err(error)
            }
        }
    }

    fn abandon(&self, turn: &mut Turn, result: Result<(), StoreError>) {
        turn.connection.roll_back();
        if let Some(seal) = self.seal.get() {
            seal.rolled_back();
        }
        if let Some(open) = turn.open.take() {
            open.outcome.tell(result);
        }
    }

    /// Commits what has gathered, lets the next in line begin, and only then waits for the disk.
    fn commit(&self, mut turn: MutexGuard<'_, Turn>) {
        let Some(open) = turn.open.take() else {
            return;
        };
        let told = Told(&open.outcome);
        let committed = catch_unwind(AssertUnwindSafe(|| {
            let least = self.seal.get().map(|seal| seal.least_durability());
            let durability = least.map_or(open.durability, |least| least.max(open.durability));
            let (flush, after) = self.commit_open(&mut turn, durability)?;
            Ok((durability, flush, after))
        }));
        let committed = match committed {
            Ok(committed) => committed,
            Err(panic) => {
                turn.connection.roll_back();
                if let Some(seal) = self.seal.get() {
                    seal.rolled_back();
                }
                drop(turn);
                drop(told);
                resume_unwind(panic);
            }
        };
        let on_the_way = self.disk.set_out();
        drop(turn);
        let result = committed.and_then(|(durability, flush, after)| {
            fault::point("write.committed");
            if durability == Durability::Async {
                return Ok(());
            }
            let follow = || {
                flush.run()?;
                fault::point("write.durable");
                after.map_or(Ok(()), |after| after())
            };
            follow().map_err(|error| StoreError::AfterCommit(Arc::new(error)))
        });
        drop(on_the_way); // the next sets out before these members come back
        open.outcome.tell(result);
    }

    fn commit_open(
        &self,
        turn: &mut Turn,
        durability: Durability,
    ) -> Result<(Flush, Option<AfterDurable>), StoreError> {
        let seal = self.seal.get();
        let sealed = seal.map(|seal| seal.before_commit(&mut *turn.connection));
        fault::point("write.sealed");
        let committed = sealed
            .transpose()
            .and_then(|after| Ok((turn.connection.commit(durability)?, after)));
        match (&committed, seal) {
            (Ok(_), Some(seal)) => seal.committed(),
            (Ok(_), None) => {}
            (Err(_), seal) => {
                turn.connection.roll_back();
                if let Some(seal) = seal {
                    seal.rolled_back();
                }
            }
        }
        committed
    }
}
