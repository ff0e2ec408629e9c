//! Time and randomness that tests decide.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use safepoint_model::{Clock, Entropy, EntropyError, Timestamp};

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct FixedClock(AtomicI64);

impl FixedClock {
    /// A clock that stands at `time` (RFC 3339).
    pub fn at(time: &str) -> Self {
        Self(AtomicI64::new(Timestamp::parse(time).unwrap().as_micros()))
    }

    /// Moves the clock, forward or back.
    pub fn move_by(&self, micros: i64) {
        self.0.fetch_add(micros, Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(Ordering::SeqCst))
    }
}

/// The machine's clock, for processes of their own and for benches.
#[derive(Debug)]
pub struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp::from_micros(since.unwrap().as_micros() as i64)
    }
}

/// Bytes that are the same in every run (splitmix64).
#[derive(Debug, Default)]
pub struct Seeded(AtomicU64);

impl Seeded {
    /// Another sequence for each seed.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next number of the sequence.
    pub fn next(&self) -> u64 {
        let mut z = self
            .0
            .fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}
