//! What became of a transaction, and who has to commit it.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::{lock, panicked};
use crate::StoreError;

/// What a member of a transaction waits for.
#[derive(Default)]
pub(super) struct Outcome {
    news: Mutex<News>,
    told: Condvar,
}

#[derive(Default)]
enum News {
    #[default]
    None,
    /// The disk is free, or something is left: somebody has to see to it.
    Turn,
    Known(Result<(), StoreError>),
}

/// What a member that waited has heard.
pub(super) enum Heard {
    /// It is for this one to take the turn.
    Turn,
    /// The transaction is over.
    Known(Result<(), StoreError>),
}

impl Outcome {
    pub(super) fn tell(&self, result: Result<(), StoreError>) {
        *lock(&self.news) = News::Known(result);
        self.told.notify_one();
    }

    /// Makes its owner take the turn and see to what there is, unless it is over.
    pub(super) fn give_turn(&self) {
        let mut news = lock(&self.news);
        if matches!(*news, News::None) {
            *news = News::Turn;
            self.told.notify_one();
        }
    }

    pub(super) fn wait(&self) -> Heard {
        let mut news = lock(&self.news);
        loop {
            match &*news {
                News::None => {}
                News::Turn => {
                    *news = News::None;
                    return Heard::Turn;
                }
                News::Known(result) => return Heard::Known(result.clone()),
            }
            let waited = self.told.wait(news);
            news = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The members of a transaction that is ending. If a panic comes in between, they hear of that.
pub(super) struct Members(pub(super) Vec<Arc<Outcome>>);

impl Members {
    pub(super) fn tell(mut self, result: &Result<(), StoreError>) {
        for member in self.0.drain(..) {
            member.tell(result.clone());
        }
    }
}

impl Drop for Members {
    fn drop(&mut self) {
        for member in self.0.drain(..) {
            member.tell(Err(panicked()));
        }
    }
}

/// Whether a commit is on its way to disk, and which transaction waits for that.
#[derive(Default)]
pub(super) struct Disk(Mutex<Way>);

#[derive(Default)]
struct Way {
    commits: usize,
    next: Option<Arc<Outcome>>,
}

impl Disk {
    /// Leaves the commit of a transaction to whoever is on the way to disk; false if nobody is.
    pub(super) fn leave(&self, open: &Arc<Outcome>) -> bool {
        let mut way = lock(&self.0);
        if way.commits > 0 {
            way.next = Some(Arc::clone(open));
        }
        way.commits > 0
    }

    /// Whether a commit is on its way.
    pub(super) fn is_busy(&self) -> bool {
        lock(&self.0).commits > 0
    }

    /// Sets out for the disk with a commit. It has arrived when this is dropped.
    pub(super) fn set_out(&self) -> OnTheWay<'_> {
        lock(&self.0).commits += 1;
        OnTheWay(self)
    }
}

pub(super) struct OnTheWay<'a>(&'a Disk);

impl Drop for OnTheWay<'_> {
    fn drop(&mut self) {
        let mut way = lock(&self.0.0);
        way.commits -= 1;
        let next = way.next.take();
        drop(way);
        if let Some(next) = next {
            next.give_turn();
        }
    }
}
