//! How often somebody may ask: a bucket of tokens each, filled at a steady rate.
//!
//! Buckets that are full again are forgotten, so that nobody can fill the memory with
//! addresses.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// How many buckets there are before full ones are looked for.
const MANY: usize = 4_096;

/// Limits for whoever is told apart by a `K`.
pub(super) struct Limit<K> {
    /// How many a second.
    rate: f64,
    /// How many at once.
    most: f64,
    buckets: Mutex<HashMap<K, Bucket>>,
}

#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl<K: Eq + Hash> Limit<K> {
    pub(super) fn new(rate: u32, most: u32) -> Self {
        Self {
            rate: f64::from(rate.max(1)),
            most: f64::from(most.max(1)),
            buckets: Mutex::new(HashMap::new()),
        }
    }

    /// Takes one, or says how long to wait for it.
    pub(super) fn take(&self, key: K, now: Instant) -> Result<(), Duration> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= MANY {
            buckets.retain(|_, bucket| self.filled(bucket, now) < self.most);
        }
        let full = Bucket {
            left: self.most,
            at: now,
        };
        let bucket = buckets.entry(key).or_insert(full);
        bucket.left = self.filled(bucket, now);
        bucket.at = now;
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        let missing = (1.0 - bucket.left) / self.rate;
        Err(Duration::from_secs_f64(missing))
    }

    fn filled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        (bucket.left + passed * self.rate).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_a_bucket_is_emptied_and_filled_again() {
        let limit = Limit::new(2, 3);
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(limit.take("a", now), Ok(()));
        }
        assert_eq!(limit.take("a", now), Err(Duration::from_millis(500)));
        // Others have their own.
        assert_eq!(limit.take("b", now), Ok(()));
        let later = now + Duration::from_secs(1);
        assert_eq!(limit.take("a", later), Ok(()));
        assert_eq!(limit.take("a", later), Ok(()));
        assert!(limit.take("a", later).is_err());
        // What is full again is forgotten.
        let limit = Limit::new(1, 1);
        for number in 0..MANY {
            assert!(limit.take(number, now).is_ok());
        }
        let later = now + Duration::from_secs(9);
        assert!(limit.take(MANY, later).is_ok());
        assert_eq!(limit.buckets.lock().unwrap().len(), 1);
    }
}
