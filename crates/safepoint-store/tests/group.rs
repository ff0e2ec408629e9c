//! Group commit: many writers, one transaction, and each hears its own truth.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests fail loudly")]

#[allow(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex};
use std::thread;

use safepoint_store::{AfterDurable, Durability, Meanwhile, Seal, Sql, Store, StoreError};
use support::{Member, NOTES, add, ids, insert, pile};
use testkit::{Room, Seeded, on_every_store};

const THREADS: u64 = 64;
const WRITES: u64 = 50;

/// An error of the caller's own kind.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("write {0} failed on purpose")]
    Own(i64),
}

/// What a panicking writer panics with.
#[derive(Debug, PartialEq)]
struct Thrown(i64);

/// The refusal of one transaction.
#[derive(Debug, thiserror::Error)]
#[error("transaction {0} is refused")]
struct Refused(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Begun,
    Kept,
    Undone,
    BeforeCommit,
    Committed,
    RolledBack,
    AfterDurable,
}

/// Which step of a transaction a recorder refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refuses {
    Nothing,
    /// `begun` of every transaction whose number divides by this.
    Beginning(u64),
    /// `before_commit`, likewise.
    Commit(u64),
    /// What follows the commit, likewise.
    AfterDurable(u64),
}

/// Writes down how it is called, and adds a row of its own to each commit.
struct Recorder {
    calls: Arc<Mutex<Vec<Call>>>,
    transaction: AtomicU64,
    refuses: Refuses,
}

impl Recorder {
    fn attach(store: &Store, refuses: Refuses) -> Arc<Self> {
        let recorder = Arc::new(Self {
            calls: Arc::default(),
            transaction: AtomicU64::new(0),
            refuses,
        });
        store.seal_with(recorder.clone());
        recorder
    }

    fn note(&self, call: Call) {
        self.calls.lock().unwrap().push(call);
    }

    /// The number of the transaction that is open: only meaningful within a write.
    fn transaction(&self) -> u64 {
        self.transaction.load(Ordering::SeqCst)
    }

    fn count(&self, call: Call) -> usize {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|found| **found == call).count()
    }

    fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap().clone()
    }
}

impl Seal for Recorder {
    fn begun(&self, sql: &mut dyn Sql, _: Meanwhile) -> Result<(), StoreError> {
        self.note(Call::Begun);
        let number = self.transaction.fetch_add(1, Ordering::SeqCst) + 1;
        support::ids_in(sql)?; // the connection is usable here
        match self.refuses {
            Refuses::Beginning(each) if number.is_multiple_of(each) => {
                Err(StoreError::seal(Refused(number)))
            }
            _ => Ok(()),
        }
    }

    fn member_kept(&self) {
        self.note(Call::Kept);
    }

    fn member_undone(&self) {
        self.note(Call::Undone);
    }

    fn before_commit(&self, sql: &mut dyn Sql) -> Result<AfterDurable, StoreError> {
        self.note(Call::BeforeCommit);
        let number = self.transaction();
        insert(sql, -i64::try_from(number).unwrap(), "seal")?;
        if let Refuses::Commit(each) = self.refuses
            && number.is_multiple_of(each)
        {
            return Err(StoreError::seal(Refused(number)));
        }
        let refuses = self.refuses;
        let calls = Arc::clone(&self.calls);
        Ok(Box::new(move || {
            calls.lock().unwrap().push(Call::AfterDurable);
            match refuses {
                Refuses::AfterDurable(each) if number.is_multiple_of(each) => {
                    Err(StoreError::seal(Refused(number)))
                }
                _ => Ok(()),
            }
        }))
    }

    fn committed(&self) {
        self.note(Call::Committed);
    }

    fn rolled_back(&self) {
        self.note(Call::RolledBack);
    }
}

/// Panics when it is asked for something, but only once.
#[derive(Clone)]
struct PanicsAt {
    call: Call,
    /// So often it is asked in vain, and passes.
    passes: u64,
    asked: Arc<AtomicU64>,
}

impl PanicsAt {
    fn attach(store: &Store, call: Call, passes: u64) {
        store.seal_with(Arc::new(Self {
            call,
            passes,
            asked: Arc::default(),
        }));
    }

    fn pass(&self, call: Call) {
        if self.call == call && self.asked.fetch_add(1, Ordering::SeqCst) == self.passes {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

impl Seal for PanicsAt {
    fn begun(&self, _: &mut dyn Sql, _: Meanwhile) -> Result<(), StoreError> {
        self.pass(Call::Begun);
        Ok(())
    }

    fn member_kept(&self) {
        self.pass(Call::Kept);
    }

    fn member_undone(&self) {}

    fn before_commit(&self, _: &mut dyn Sql) -> Result<AfterDurable, StoreError> {
        self.pass(Call::BeforeCommit);
        let seal = self.clone();
        Ok(Box::new(move || {
            seal.pass(Call::AfterDurable);
            Ok(())
        }))
    }

    fn committed(&self) {
        self.pass(Call::Committed);
    }

    fn rolled_back(&self) {}
}

/// Keeps the first commit on its way to disk until so many others have made their changes.
struct Slow {
    others: u64,
    changed: Arc<(Mutex<u64>, Condvar)>,
    commits: AtomicU64,
}

impl Slow {
    /// One more has made its change.
    fn changed(&self) {
        *self.changed.0.lock().unwrap() += 1;
        self.changed.1.notify_all();
    }
}

impl Seal for Slow {
    fn begun(&self, _: &mut dyn Sql, _: Meanwhile) -> Result<(), StoreError> {
        Ok(())
    }

    fn member_kept(&self) {}

    fn member_undone(&self) {}

    fn before_commit(&self, _: &mut dyn Sql) -> Result<AfterDurable, StoreError> {
        let first = self.commits.fetch_add(1, Ordering::SeqCst) == 0;
        let others = if first { self.others } else { 0 };
        let changed = Arc::clone(&self.changed);
        Ok(Box::new(move || {
            let count = changed.0.lock().unwrap();
            drop(
                changed
                    .1
                    .wait_while(count, |count| *count < others)
                    .unwrap(),
            );
            Ok(())
        }))
    }

    fn committed(&self) {}

    fn rolled_back(&self) {}
}

/// Checks the calls against the language
/// `(begun (rolled_back | kept (kept | undone)* (rolled_back | before_commit (committed | rolled_back))))*`,
/// with one `after_durable` at most for each commit, and never before it.
fn assert_legal(calls: &[Call]) {
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum State {
        Idle,
        Empty,
        Gathering,
        Committing,
    }
    let (mut state, mut durable_to_come) = (State::Idle, 0);
    for (index, call) in calls.iter().enumerate() {
        state = match (state, call) {
            (State::Idle, Call::Begun) => State::Empty,
            (State::Empty | State::Gathering, Call::Kept) | (State::Gathering, Call::Undone) => {
                State::Gathering
            }
            (State::Gathering, Call::BeforeCommit) => State::Committing,
            (State::Committing, Call::Committed) => {
                durable_to_come += 1;
                State::Idle
            }
            (State::Empty | State::Gathering | State::Committing, Call::RolledBack) => State::Idle,
            (state, Call::AfterDurable) if durable_to_come > 0 => {
                durable_to_come -= 1;
                state
            }
            (state, call) => panic!("call {index} is {call:?} in {state:?}"),
        };
    }
    assert_eq!(state, State::Idle, "a transaction was left open");
}

/// What one write of the crowd was told to do, and what its caller heard.
#[derive(Debug)]
struct Heard {
    /// The transaction it was in; none when it never began.
    transaction: Option<u64>,
    plan: Plan,
    result: Result<Result<(), Failure>, Thrown>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Plan {
    Succeed,
    Fail,
    BreakRule,
    Panic,
}

fn with_notes(room: &Room) -> Arc<Store> {
    let store = room.store();
    store.migrate(&NOTES).unwrap();
    store
}

/// Lets 64 threads make 50 writes each, some of which fail or panic, and some of which are left
/// to others.
fn crowd(store: &Store, recorder: &Arc<Recorder>) -> BTreeMap<i64, Heard> {
    let (heard, barrier) = (Mutex::new(BTreeMap::new()), Barrier::new(THREADS as usize));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (heard, barrier) = (&heard, &barrier);
            scope.spawn(move || {
                let random = Seeded::new(thread);
                barrier.wait();
                for write in 0..WRITES {
                    let id = i64::try_from(1 + thread * WRITES + write).unwrap();
                    let plan = match random.next() % 10 {
                        0 => Plan::Fail,
                        1 => Plan::BreakRule,
                        2 => Plan::Panic,
                        _ => Plan::Succeed,
                    };
                    let durability = match random.next() % 2 {
                        0 => Durability::Sync,
                        _ => Durability::Async,
                    };
                    let (recorder, began_in) = (Arc::clone(recorder), Arc::new(Mutex::new(None)));
                    let began = Arc::clone(&began_in);
                    let change = move |sql: &mut dyn Sql| {
                        *began.lock().unwrap() = Some(recorder.transaction());
                        insert(sql, id, "crowd")?;
                        match plan {
                            Plan::Succeed => Ok(()),
                            Plan::Fail => Err(Failure::Own(id)),
                            Plan::BreakRule => Ok(insert(sql, id, "again")?),
                            Plan::Panic => resume_unwind(Box::new(Thrown(id))),
                        }
                    };
                    let is_shared = random.next().is_multiple_of(2);
                    let result = catch_unwind(AssertUnwindSafe(|| match is_shared {
                        true => store.write_shared(durability, change),
                        false => store.write(durability, change),
                    }))
                    .map_err(|panic| *panic.downcast::<Thrown>().unwrap());
                    let answer = Heard {
                        transaction: *began_in.lock().unwrap(),
                        plan,
                        result,
                    };
                    heard.lock().unwrap().insert(id, answer);
                }
            });
        }
    });
    heard.into_inner().unwrap()
}

/// Whether the error is the refusal of this transaction.
fn refused(error: &StoreError, transaction: u64) -> bool {
    matches!(error, StoreError::Seal(cause)
        if cause.downcast_ref::<Refused>().is_some_and(|refused| refused.0 == transaction))
}

/// Checks that every caller heard what became of its own write, and that what
/// is stored is exactly what was acknowledged.
fn assert_truthful(store: &Store, recorder: &Recorder, crowd: &BTreeMap<i64, Heard>) {
    assert_eq!(crowd.len() as u64, THREADS * WRITES);
    let each = match recorder.refuses {
        Refuses::Commit(each) => each,
        _ => u64::MAX,
    };
    let (mut kept, mut sealed) = (BTreeSet::new(), BTreeSet::new());
    for (&id, heard) in crowd {
        let transaction = heard.transaction.unwrap();
        match (heard.plan, &heard.result) {
            (Plan::Fail, Ok(Err(Failure::Own(own)))) => assert_eq!(*own, id),
            (Plan::BreakRule, Ok(Err(Failure::Store(StoreError::Statement { .. })))) => {}
            (Plan::Panic, Err(thrown)) => assert_eq!(*thrown, Thrown(id)),
            (Plan::Succeed, Ok(Ok(()))) => {
                assert_ne!(transaction % each, 0, "{id} was acknowledged");
                kept.insert(id);
                sealed.insert(-i64::try_from(transaction).unwrap());
            }
            (Plan::Succeed, Ok(Err(Failure::Store(error)))) => {
                assert_eq!(transaction % each, 0, "{id}: {error:?}");
                assert!(refused(error, transaction), "{id}: {error:?}");
            }
            _ => panic!("{id}: {heard:?}"),
        }
    }
    let stored: BTreeSet<i64> = ids(store).unwrap().into_iter().collect();
    let expected: BTreeSet<i64> = kept.union(&sealed).copied().collect();
    assert!(
        stored == expected,
        "stored and acknowledged differ by {:?}",
        stored.symmetric_difference(&expected).collect::<Vec<_>>()
    );
    assert_eq!(recorder.count(Call::Committed), sealed.len());
    assert_legal(&recorder.calls());
}

/// A member that adds one note.
fn adds<'a>(id: i64) -> Member<'a, StoreError> {
    Box::new(move |sql| insert(sql, id, "pile"))
}

on_every_store! {
    fn tr_10_a_crowd_keeps_exactly_what_succeeded(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        let heard = crowd(&store, &recorder);
        assert_truthful(&store, &recorder, &heard);
        assert!(heard.values().any(|heard| heard.plan == Plan::Panic));
    }

    fn tr_10_a_refused_commit_is_heard_by_every_member_and_keeps_nothing(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Commit(3));
        let heard = crowd(&store, &recorder);
        assert_truthful(&store, &recorder, &heard);
        let refused = heard.values().filter(|heard| {
            heard.plan == Plan::Succeed && matches!(heard.result, Ok(Err(_)))
        });
        assert!(refused.count() > 0);
    }

    fn tr_10_writers_that_queue_up_share_one_commit(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        let heard = pile(&store, adds(1), (2..=32).map(adds).collect());
        for result in heard {
            result.unwrap().unwrap();
        }
        assert_eq!(recorder.count(Call::BeforeCommit), 1);
        assert_eq!(recorder.count(Call::Kept), 32);
        assert_eq!(ids(&store).unwrap(), (1..=32).fold(vec![-1], |mut all, id| { all.push(id); all }));
        assert_legal(&recorder.calls());
    }

    fn tr_10_writers_gather_while_a_commit_is_on_its_way_to_disk(room: Room) {
        let store = with_notes(&room);
        let slow = Arc::new(Slow {
            others: 5,
            changed: Arc::default(),
            commits: AtomicU64::new(0),
        });
        store.seal_with(slow.clone());
        thread::scope(|scope| {
            scope.spawn(|| add(&store, 0).unwrap());
            while slow.commits.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            // One after the other, so that nobody ever stands in line behind one of them.
            for id in 1..=5 {
                let (store, seal) = (&store, &slow);
                let (told, heard) = std::sync::mpsc::channel();
                scope.spawn(move || {
                    let added = store.write(Durability::Sync, |sql| {
                        told.send(()).unwrap();
                        insert(sql, id, "gathers")?;
                        seal.changed();
                        Ok::<_, StoreError>(())
                    });
                    added.unwrap();
                });
                heard.recv().unwrap();
            }
        });
        assert_eq!(slow.commits.load(Ordering::SeqCst), 2);
        assert_eq!(ids(&store).unwrap(), [0, 1, 2, 3, 4, 5]);
    }

    fn tr_10_a_lone_writer_commits_at_once(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        add(&store, 1).unwrap();
        assert_eq!(recorder.calls(), [
            Call::Begun, Call::Kept, Call::BeforeCommit, Call::Committed, Call::AfterDurable,
        ]);
    }

    fn tr_10_what_is_left_with_one_who_writes_is_made_in_the_same_transaction(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        thread::scope(|scope| {
            let (begun, has_begun) = std::sync::mpsc::channel();
            let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
            let holder = scope.spawn(|| {
                let holding = store.write(Durability::Sync, move |sql| {
                    begun.send(()).unwrap();
                    may_go_on.recv().unwrap();
                    insert(sql, 1, "holds")
                });
                holding.unwrap();
            });
            has_begun.recv().unwrap();
            let holder = holder.thread().id();
            let others: Vec<_> = (2..=5)
                .map(|id| {
                    let store = &store;
                    scope.spawn(move || {
                        store.write_shared(Durability::Sync, move |sql| {
                            insert(sql, id, "left")?;
                            Ok::<_, StoreError>(thread::current().id())
                        })
                    })
                })
                .collect();
            while store.left() < 4 {
                thread::yield_now();
            }
            go_on.send(()).unwrap();
            for other in others {
                assert_eq!(other.join().unwrap().unwrap(), holder);
            }
        });
        assert_eq!(recorder.count(Call::BeforeCommit), 1);
        assert_eq!(ids(&store).unwrap(), [-1, 1, 2, 3, 4, 5]);
    }

    fn tr_10_a_lone_failure_undoes_the_transaction(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        let result = store.write(Durability::Sync, |sql| {
            insert(sql, 1, "one")?;
            Err::<(), _>(Failure::Own(1))
        });
        assert!(matches!(result, Err(Failure::Own(1))), "{result:?}");
        assert_eq!(recorder.calls(), [Call::Begun, Call::RolledBack]);
        assert_eq!(ids(&store).unwrap(), [0; 0]);
    }

    fn tr_10_the_failure_of_the_first_does_not_touch_those_behind_it(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        let first: Member<'_, Failure> = Box::new(|sql| {
            insert(sql, 1, "one")?;
            Err(Failure::Own(1))
        });
        let others = (2..=9)
            .map(|id| -> Member<'_, Failure> { Box::new(move |sql| Ok(insert(sql, id, "pile")?)) })
            .collect();
        let mut heard = pile(&store, first, others);
        let first = heard.remove(0).unwrap();
        assert!(matches!(first, Err(Failure::Own(1))), "{first:?}");
        for result in heard {
            result.unwrap().unwrap();
        }
        assert_eq!(ids(&store).unwrap(), [-2, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_legal(&recorder.calls());
    }

    fn tr_10_members_of_one_transaction_fail_alone(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Nothing);
        let first: Member<'_, Failure> = Box::new(|sql| Ok(insert(sql, 100, "first")?));
        let others = (0..12)
            .map(|id| -> Member<'_, Failure> {
                Box::new(move |sql| {
                    insert(sql, id, "pile")?;
                    match id % 4 {
                        0 => Ok(()),
                        1 => Err(Failure::Own(id)),
                        2 => Ok(insert(sql, id, "again")?),
                        _ => resume_unwind(Box::new(Thrown(id))),
                    }
                })
            })
            .collect();
        let mut heard = pile(&store, first, others);
        heard.remove(0).unwrap().unwrap();
        for (id, result) in (0..).zip(heard) {
            match (id % 4, result) {
                (0, Ok(Ok(()))) | (2, Ok(Err(Failure::Store(StoreError::Statement { .. })))) => {}
                (1, Ok(Err(Failure::Own(own)))) => assert_eq!(own, id),
                (3, Err(panic)) => assert_eq!(panic.downcast_ref(), Some(&Thrown(id))),
                (_, other) => panic!("{id}: {other:?}"),
            }
        }
        assert_eq!(ids(&store).unwrap(), [-1, 0, 4, 8, 100]);
        assert_eq!(recorder.count(Call::Kept), 4);
        assert_eq!(recorder.count(Call::Undone), 9);
        assert_eq!(recorder.count(Call::BeforeCommit), 1);
        assert_legal(&recorder.calls());
    }

    fn tr_10_a_refused_pile_is_refused_as_a_whole(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Commit(1));
        for result in pile(&store, adds(1), (2..=9).map(adds).collect()) {
            let error = result.unwrap().unwrap_err();
            assert!(refused(&error, 1), "{error:?}");
        }
        assert_eq!(ids(&store).unwrap(), [0; 0]);
        assert_eq!(recorder.count(Call::BeforeCommit), 1);
        assert_legal(&recorder.calls());
    }

    fn tr_10_a_refused_beginning_fails_that_write_alone(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::Beginning(2));
        add(&store, 1).unwrap();
        let error = add(&store, 2).unwrap_err();
        assert!(refused(&error, 2), "{error:?}");
        add(&store, 3).unwrap();
        assert_eq!(ids(&store).unwrap(), [-3, -1, 1, 3]);
        assert_legal(&recorder.calls());
    }

    fn tr_10_what_follows_a_commit_is_heard_by_those_in_it(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::AfterDurable(1));
        for result in pile(&store, adds(1), (2..=5).map(adds).collect()) {
            let error = result.unwrap().unwrap_err();
            // Told apart from a refusal: the change is kept.
            let refused = matches!(&error, StoreError::AfterCommit(cause) if refused(cause, 1));
            assert!(refused, "{error:?}");
        }
        assert_eq!(recorder.count(Call::Committed), 1);
        assert_eq!(recorder.count(Call::AfterDurable), 1);
        assert_legal(&recorder.calls());
    }

    fn tr_10_a_write_that_need_not_be_on_disk_waits_for_nothing(room: Room) {
        let store = with_notes(&room);
        let recorder = Recorder::attach(&store, Refuses::AfterDurable(1));
        store.write(Durability::Async, |sql| insert(sql, 1, "one")).unwrap();
        assert_eq!(recorder.calls(), [Call::Begun, Call::Kept, Call::BeforeCommit, Call::Committed]);
        assert_eq!(ids(&store).unwrap(), [-1, 1]);
    }

    fn tr_10_a_panic_of_the_seal_is_an_error_of_those_in_the_transaction(room: Room) {
        for call in [Call::Begun, Call::Kept, Call::BeforeCommit, Call::Committed, Call::AfterDurable] {
            let room = Room::new(room.database());
            let store = with_notes(&room);
            PanicsAt::attach(&store, call, 0);
            let write = |id: i64| match id % 2 {
                0 => store.write_shared(Durability::Sync, move |sql| insert(sql, id, "shared")),
                _ => add(&store, id),
            };
            let heard: Vec<_> = thread::scope(|scope| {
                let writers: Vec<_> = (1..=8).map(|id| scope.spawn(move || write(id))).collect();
                writers.into_iter().map(|writer| writer.join().unwrap()).collect()
            });
            assert!(heard.iter().any(Result::is_err), "{call:?}");
            let is_kept = |heard: &Result<(), StoreError>| matches!(heard, Ok(()) | Err(StoreError::AfterCommit(_)));
            let kept: Vec<i64> = (1..).zip(&heard).filter(|(_, heard)| is_kept(heard)).map(|(id, _)| id).collect();
            assert_eq!(ids(&store).unwrap(), kept, "{call:?}: {heard:?}");
            add(&store, 9).unwrap();
        }
    }

    fn tr_10_a_panic_of_the_seal_is_heard_by_each_of_several_members(room: Room) {
        // Of five in line: how many hear that all came to nothing, and how many that it did not.
        for (call, passes, undone, kept) in [
            (Call::Kept, 2, 3, 0), // the two behind the third begin anew
            (Call::BeforeCommit, 0, 5, 0),
            (Call::Committed, 0, 0, 5),
            (Call::AfterDurable, 0, 0, 5),
        ] {
            let room = Room::new(room.database());
            let store = with_notes(&room);
            PanicsAt::attach(&store, call, passes);
            let heard = pile(&store, adds(1), (2..=5).map(adds).collect());
            let heard: Vec<_> = heard.into_iter().map(Result::unwrap).collect();
            let count = |like: fn(&StoreError) -> bool| {
                heard.iter().filter(|heard| heard.as_ref().is_err_and(like)).count()
            };
            let found = (
                count(|error| matches!(error, StoreError::Seal(_))),
                count(|error| matches!(error, StoreError::AfterCommit(_))),
            );
            assert_eq!(found, (undone, kept), "{call:?}: {heard:?}");
            let stored = (1..).zip(&heard).filter(|(_, heard)| !matches!(heard, Err(StoreError::Seal(_))));
            assert_eq!(ids(&store).unwrap(), stored.map(|(id, _)| id).collect::<Vec<_>>(), "{call:?}");
            add(&store, 6).unwrap();
        }
    }

    fn tr_10_nobody_waits_for_ever_for_others_that_fail(room: Room) {
        let store = with_notes(&room);
        let enough = Arc::new(AtomicU64::new(0));
        thread::scope(|scope| {
            for thread in 0..8 {
                let (store, enough) = (&store, &enough);
                scope.spawn(move || {
                    while enough.load(Ordering::SeqCst) == 0 {
                        let fail = |_: &mut dyn Sql| Err::<(), _>(Failure::Own(0));
                        let failed = match thread % 2 {
                            0 => store.write_shared(Durability::Sync, fail),
                            _ => store.write(Durability::Sync, fail),
                        };
                        assert!(matches!(failed, Err(Failure::Own(0))), "{failed:?}");
                    }
                });
            }
            for id in 1..=20 {
                match id % 2 {
                    0 => store.write_shared(Durability::Sync, move |sql| insert(sql, id, "shared")).unwrap(),
                    _ => add(&store, id).unwrap(),
                }
            }
            enough.store(1, Ordering::SeqCst);
        });
        assert_eq!(ids(&store).unwrap(), (1..=20).collect::<Vec<_>>());
    }

    fn store_a_seal_hears_whether_others_have_written(room: Room) {
        #[derive(Default)]
        struct Listening(Mutex<Vec<Meanwhile>>);
        impl Seal for Listening {
            fn begun(&self, _: &mut dyn Sql, meanwhile: Meanwhile) -> Result<(), StoreError> {
                self.0.lock().unwrap().push(meanwhile);
                Ok(())
            }
            fn member_kept(&self) {}
            fn member_undone(&self) {}
            fn before_commit(&self, _: &mut dyn Sql) -> Result<AfterDurable, StoreError> {
                Ok(Box::new(|| Ok(())))
            }
            fn committed(&self) {}
            fn rolled_back(&self) {}
        }
        let (ours, theirs) = (with_notes(&room), room.store());
        let listening = Arc::new(Listening::default());
        ours.seal_with(listening.clone());
        let heard = |store: &Store, id: i64| {
            add(store, id).unwrap();
            listening.0.lock().unwrap().last().copied().unwrap()
        };
        heard(&ours, 1);
        let untouched = match room.database() {
            testkit::Database::Sqlite => Meanwhile::Untouched,
            testkit::Database::Postgres => Meanwhile::Unknown, // nobody can tell
        };
        assert_eq!(heard(&ours, 2), untouched);
        // A failure and a look change nothing.
        ours.write(Durability::Sync, |_| Err::<(), _>(StoreError::seal(Refused(1)))).unwrap_err();
        ids(&ours).unwrap();
        assert_eq!(heard(&ours, 3), untouched);
        add(&theirs, 4).unwrap();
        assert_eq!(heard(&ours, 5), Meanwhile::Unknown);
        assert_eq!(heard(&ours, 6), untouched);
        // Somebody with a connection of their own, who knows nothing of seals.
        room.tamper("INSERT INTO notes (id, text) VALUES (7, 'x')");
        assert_eq!(heard(&ours, 8), Meanwhile::Unknown);
    }

    fn store_the_first_seal_stays(room: Room) {
        let store = with_notes(&room);
        let first = Recorder::attach(&store, Refuses::Nothing);
        let second = Recorder::attach(&store, Refuses::Nothing);
        add(&store, 1).unwrap();
        assert_eq!((first.count(Call::Committed), second.count(Call::Begun)), (1, 0));
    }

    fn tr_10_handles_of_one_store_take_turns(room: Room) {
        with_notes(&room);
        let barrier = Barrier::new(8);
        thread::scope(|scope| {
            for handle in 0..8 {
                let (room, barrier) = (&room, &barrier);
                scope.spawn(move || {
                    let store = room.store();
                    barrier.wait();
                    for write in 0..25 {
                        add(&store, handle * 25 + write).unwrap();
                    }
                });
            }
        });
        assert_eq!(ids(&room.store()).unwrap(), (0..200).collect::<Vec<_>>());
    }
}
