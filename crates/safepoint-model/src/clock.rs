//! Where time and randomness come in. Libraries take these as arguments; only
//! the binary implements them with the real clock and the real generator.

use crate::Timestamp;

/// The wall clock, as seen by one process. It may stand still or go back.
pub trait Clock: Send + Sync {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// A source of unpredictable bytes.
pub trait Entropy: Send + Sync {
    /// Fills `bytes`, or says why it could not.
    fn fill(&self, bytes: &mut [u8]) -> Result<(), EntropyError>;
}

/// The generator of the operating system gave nothing.
#[derive(Debug, thiserror::Error)]
#[error("no random bytes from the operating system: {0}")]
pub struct EntropyError(pub String);

/// The time to give to what comes after `last`: the present, or one microsecond
/// after `last` when the wall clock stands still or has gone back.
///
/// Whoever calls this keeps `last` in the store, so order survives restarts.
pub fn next_after(last: Option<Timestamp>, clock: &dyn Clock) -> Timestamp {
    let now = clock.now();
    match last {
        Some(last) => now.max(last.next()),
        None => now,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Frozen(i64);
    impl Clock for Frozen {
        fn now(&self) -> Timestamp {
            Timestamp::from_micros(self.0)
        }
    }

    #[test]
    fn tr_01_time_never_goes_back() {
        let clock = Frozen(1_000);
        let at = |micros| Some(Timestamp::from_micros(micros));
        assert_eq!(next_after(None, &clock).as_micros(), 1_000);
        assert_eq!(next_after(at(999), &clock).as_micros(), 1_000);
        assert_eq!(next_after(at(1_000), &clock).as_micros(), 1_001);
        assert_eq!(next_after(at(5_000), &clock).as_micros(), 5_001);
    }
}
