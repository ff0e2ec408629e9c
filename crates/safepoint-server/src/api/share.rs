//! How much of something one may have at the same time, so that there is some for others.
//!
//! Shares of which nothing is taken are forgotten, so that nobody can fill the memory with
//! addresses.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

/// How many shares there are before unused ones are looked for.
const MANY: usize = 4_096;

/// Shares of whoever is told apart by a `K`.
pub(super) struct Shares<K> {
    /// How much each may have.
    most: usize,
    shares: Mutex<HashMap<K, Arc<Semaphore>>>,
}

impl<K: Eq + Hash> Shares<K> {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            shares: Mutex::new(HashMap::new()),
        }
    }

    /// The share of one of them.
    pub(super) fn of(&self, key: K) -> Arc<Semaphore> {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if shares.len() >= MANY {
            // What was taken of one, and whoever waits for it, has it too.
            shares.retain(|_, share| Arc::strong_count(share) > 1);
        }
        let share = shares.entry(key);
        let share = share.or_insert_with(|| Arc::new(Semaphore::new(self.most)));
        Arc::clone(share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_everybody_has_a_share_of_their_own() {
        let shares = Shares::new(2);
        let one = shares.of("a").try_acquire_owned().unwrap();
        let _two = shares.of("a").try_acquire_owned().unwrap();
        assert!(shares.of("a").try_acquire_owned().is_err());
        assert!(shares.of("b").try_acquire_owned().is_ok());
        drop(one);
        assert!(shares.of("a").try_acquire_owned().is_ok());
        // What is used is remembered, however many come.
        let shares = Shares::new(1);
        let used = shares.of(0).try_acquire_owned().unwrap();
        for number in 1..=MANY {
            shares.of(number);
        }
        assert!(shares.of(0).try_acquire_owned().is_err());
        assert!(shares.shares.lock().unwrap().len() < MANY);
        drop(used);
    }
}
