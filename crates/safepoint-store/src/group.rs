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
//! A change that borrows nothing need not wait for the connection: it is left
//! with whoever has it, who makes it before looking back. So when many write
//! at once the connection stays with one thread, and nobody has to be woken to
//! take it over. Those who were told together come back together, so that one
//! lets others go first for a moment while there are fewer than last time. What
//! is left when somebody lets go of the connection is for its owner to see to.
//!
//! A member that fails is rolled back alone, to its savepoint. A member that
//! panics is treated the same, and the panic goes on afterwards, with its owner.
//! A panic of the seal is an error of everybody who was in the transaction.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use crate::error::Said;
use crate::{Sql, StoreError, fault};

mod committed;
mod outcome;

use committed::Committed;
pub(crate) use committed::Flush;
use outcome::{Disk, Heard, Members, Outcome};

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

/// What others did to the store between two transactions of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meanwhile {
    /// Nobody wrote anything: everything is as the last transaction here left it.
    Untouched,
    /// Somebody wrote, or nobody can tell.
    Unknown,
}

/// Somebody who takes part in every transaction: the trail, which signs what
/// the transaction adds before it is committed.
pub trait Seal: Send + Sync {
    /// A transaction has begun.
    fn begun(&self, sql: &mut dyn Sql, meanwhile: Meanwhile) -> Result<(), StoreError>;
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
    fn begin(&mut self) -> Result<Meanwhile, StoreError>;
    /// Commits it, and returns what still has to happen for it to be on disk.
    fn commit(&mut self, durability: Durability) -> Result<Flush, StoreError>;
    /// Undoes the whole transaction.
    fn roll_back(&mut self);
    /// The last error since the transaction began.
    fn last_error(&self) -> Option<StoreError>;
    /// Whether a transaction is open: some failures end it on their own.
    fn is_open(&self) -> bool;
}

/// The one writing connection of a process, and the line of those who wait for it.
pub(crate) struct Group {
    turn: Mutex<Turn>,
    waiting: AtomicUsize,
    left: Mutex<VecDeque<Left>>,
    disk: Disk,
    seal: std::sync::OnceLock<Arc<dyn Seal>>,
}

struct Turn {
    connection: Box<dyn WriteConnection>,
    open: Option<Open>,
    /// How many were in the last transaction.
    lately: usize,
}

/// The transaction that is gathering members.
struct Open {
    members: Vec<Arc<Outcome>>,
    durability: Durability,
    /// How many have come, whether they stayed or not.
    comers: usize,
}

impl Turn {
    /// Whether those who are in the open transaction have waited for enough others.
    fn is_crowded(&self) -> bool {
        let open = self.open.as_ref();
        open.is_some_and(|open| open.comers >= MOST_COMERS)
    }
}

/// Whether a member stays in its transaction.
enum Stay {
    In,
    Out,
}

/// A change that was left with whoever has the connection.
struct Left {
    durability: Durability,
    outcome: Arc<Outcome>,
    make: Make,
}

/// Makes a change, keeps what came of it for its owner, and says whether it is to be kept.
type Make = Box<dyn FnOnce(&mut dyn Sql) -> bool + Send>;

/// Nobody waits for more than so many others, even if those that fail come back at once.
const MOST_COMERS: usize = 1_000;

/// How often in a row to let others go first who may be about to come. Each time is over at once
/// where nobody else is ready to run.
const PATIENCE: usize = 20;

/// What panics is caught, and what it was about is undone, so a poisoned lock is still good.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What follows a commit whose seal has panicked since.
fn failing() -> AfterDurable {
    Box::new(|| Err(panicked()))
}

/// What those hear whose transaction ended so.
fn panicked() -> StoreError {
    StoreError::seal(Said("it panicked".into()))
}

impl Group {
    pub(crate) fn new(connection: Box<dyn WriteConnection>) -> Self {
        Self {
            turn: Mutex::new(Turn {
                connection,
                open: None,
                lately: 0,
            }),
            waiting: AtomicUsize::new(0),
            left: Mutex::default(),
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
        let outcome = Arc::default();
        let mut made = None;
        self.join(&mut turn, durability, &outcome, |sql| {
            let result = catch_unwind(AssertUnwindSafe(|| change(sql)));
            let kept = matches!(result, Ok(Ok(_)));
            made = Some(result);
            kept
        });
        self.drive(Some(turn));
        self.end(&outcome, || made)
    }

    /// The same for a change that borrows nothing: whoever has the connection makes it.
    pub(crate) fn write_shared<T: Send + 'static, E: From<StoreError> + Send + 'static>(
        &self,
        durability: Durability,
        change: impl FnOnce(&mut dyn Sql) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let outcome = Arc::default();
        let made = Arc::new(Mutex::new(None));
        let kept_for_us = Arc::clone(&made);
        lock(&self.left).push_back(Left {
            durability,
            outcome: Arc::clone(&outcome),
            make: Box::new(move |sql| {
                let result = catch_unwind(AssertUnwindSafe(|| change(sql)));
                let kept = matches!(result, Ok(Ok(_)));
                *lock(&kept_for_us) = Some(result);
                kept
            }),
        });
        self.drive(None);
        self.end(&outcome, || lock(&made).take())
    }

    /// What came of a change, when its transaction is over.
    fn end<T, E: From<StoreError>>(
        &self,
        outcome: &Arc<Outcome>,
        made: impl FnOnce() -> Option<std::thread::Result<Result<T, E>>>,
    ) -> Result<T, E> {
        let known = self.wait(outcome);
        match made() {
            Some(Ok(value)) => {
                let value = value?;
                known?;
                Ok(value)
            }
            Some(Err(panic)) => resume_unwind(panic),
            // The transaction could not even be begun.
            None => Err(known.err().unwrap_or_else(panicked).into()),
        }
    }

    /// Makes one change as a member of the open transaction, or of a new one. Its outcome is told
    /// at once if it does not stay in it.
    fn join(
        &self,
        turn: &mut Turn,
        durability: Durability,
        outcome: &Arc<Outcome>,
        make: impl FnOnce(&mut dyn Sql) -> bool,
    ) {
        let joined = catch_unwind(AssertUnwindSafe(|| {
            self.try_join(turn, durability, outcome, make)
        }));
        match joined {
            Ok(Ok(Stay::In)) => {}
            Ok(Ok(Stay::Out)) => outcome.tell(Ok(())),
            Ok(Err(error)) => outcome.tell(Err(error)),
            Err(_) => {
                self.abandon(turn, Err(panicked()));
                outcome.tell(Err(panicked()));
            }
        }
    }

    fn try_join(
        &self,
        turn: &mut Turn,
        durability: Durability,
        outcome: &Arc<Outcome>,
        make: impl FnOnce(&mut dyn Sql) -> bool,
    ) -> Result<Stay, StoreError> {
        let joined = turn.open.is_some();
        if !joined {
            self.open(turn)?;
        } else if let Err(error) = turn.connection.execute("SAVEPOINT member", &[]) {
            self.abandon(turn, Err(error.clone()));
            return Err(error);
        }
        let kept = make(&mut *turn.connection);
        let settled = self.settle_member(turn, joined, kept);
        fault::point("write.changed");
        settled?;
        let Some(open) = &mut turn.open else {
            return Ok(Stay::Out);
        };
        open.comers += 1;
        if !kept {
            return Ok(Stay::Out);
        }
        open.durability = open.durability.max(durability);
        open.members.push(Arc::clone(outcome));
        Ok(Stay::In)
    }

    /// Does what falls to whoever has the turn, or finds that nobody has it, and then brings to
    /// disk what it has committed.
    fn drive<'a>(&'a self, turn: Option<MutexGuard<'a, Turn>>) {
        let turn = turn.or_else(|| match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
            Err(TryLockError::WouldBlock) => None, // whoever has it sees to what is left
        });
        let Some(turn) = turn else { return };
        let committed = self.look_back(turn);
        // Whoever left something while we had the turn could not take it.
        if let Some(next) = lock(&self.left).front() {
            next.outcome.give_turn();
        }
        if let Some(committed) = committed {
            committed.bring_to_disk();
        }
    }

    /// Makes what was left meanwhile, and commits, unless that falls to somebody else.
    fn look_back(&self, mut turn: MutexGuard<'_, Turn>) -> Option<Committed<'_>> {
        let mut patience = PATIENCE;
        while !turn.is_crowded() {
            if let Some(left) = self.next_left() {
                self.join(&mut turn, left.durability, &left.outcome, left.make);
                if turn.open.is_none() {
                    break; // nothing holds us here; it may have failed for long, as the next would
                }
                patience = PATIENCE;
            } else if patience > 0 && self.may_expect_more(&turn) {
                patience -= 1;
                std::thread::yield_now();
            } else {
                break;
            }
        }
        match turn.is_crowded() || self.commits_now(&turn) {
            true => self.commit(turn),
            false => None, // somebody else does, or it is our turn later
        }
    }

    /// Whether those who were told together last time have not all come back, and nobody else
    /// would wait for them.
    fn may_expect_more(&self, turn: &Turn) -> bool {
        let members = turn.open.as_ref().map_or(0, |open| open.members.len());
        let is_free = || self.waiting.load(Ordering::SeqCst) == 0 && !self.disk.is_busy();
        members > 0 && members < turn.lately && is_free()
    }

    #[cfg(feature = "fault-points")]
    pub(crate) fn left(&self) -> usize {
        lock(&self.left).len()
    }

    fn next_left(&self) -> Option<Left> {
        lock(&self.left).pop_front()
    }

    /// Whether the one who has the turn has to commit, and not the next in line or a later one.
    fn commits_now(&self, turn: &Turn) -> bool {
        let next_in_line = self.waiting.load(Ordering::SeqCst) > 0;
        let gathers = || {
            turn.open.as_ref().is_some_and(|open| {
                open.durability == Durability::Sync
                    && open
                        .members
                        .last()
                        .is_some_and(|last| self.disk.leave(last))
            })
        };
        !next_in_line && !gathers()
    }

    /// Waits until a transaction is over, and commits it if that falls to this member.
    fn wait(&self, outcome: &Arc<Outcome>) -> Result<(), StoreError> {
        loop {
            match outcome.wait() {
                Heard::Known(result) => return result,
                Heard::Turn => self.drive(Some(lock(&self.turn))),
            }
        }
    }

    fn open(&self, turn: &mut Turn) -> Result<(), StoreError> {
        let meanwhile = turn.connection.begin()?;
        fault::point("write.begun");
        if let Some(seal) = self.seal.get()
            && let Err(error) = seal.begun(&mut *turn.connection, meanwhile)
        {
            turn.connection.roll_back();
            seal.rolled_back();
            return Err(error);
        }
        turn.open = Some(Open {
            members: Vec::new(),
            durability: Durability::Async,
            comers: 0,
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
        let members = Members(turn.open.take().map_or_else(Vec::new, |open| open.members));
        turn.connection.roll_back();
        if let Some(seal) = self.seal.get() {
            // One that panics here has panicked before: everybody hears of that.
            let _ = catch_unwind(AssertUnwindSafe(|| seal.rolled_back()));
        }
        members.tell(&result);
    }

    /// Commits what has gathered, and lets the next in line begin. It still has to be brought to
    /// disk.
    fn commit(&self, mut turn: MutexGuard<'_, Turn>) -> Option<Committed<'_>> {
        let open = turn.open.take()?;
        turn.lately = open.members.len();
        let members = Members(open.members);
        let committed = catch_unwind(AssertUnwindSafe(|| {
            let least = self.seal.get().map(|seal| seal.least_durability());
            let durability = least.map_or(open.durability, |least| least.max(open.durability));
            let (flush, after) = self.commit_open(&mut turn, durability)?;
            Ok((durability == Durability::Sync).then_some((flush, after)))
        }));
        let result = committed.unwrap_or_else(|_| {
            self.abandon(&mut turn, Err(panicked()));
            Err(panicked())
        });
        Some(Committed {
            on_the_way: self.disk.set_out(),
            result,
            members,
        })
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
            (Ok(_), Some(seal)) => {
                // It is committed, whatever the seal makes of that.
                if catch_unwind(AssertUnwindSafe(|| seal.committed())).is_err() {
                    return committed.map(|(flush, _)| (flush, Some(failing())));
                }
            }
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
