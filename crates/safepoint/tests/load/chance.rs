//! Choices that are the same for the same seed, for each of many who choose.

use testkit::Seeded;

pub(super) struct Chance(Seeded);

impl Chance {
    pub(super) fn new(seed: u64, name: &str) -> Self {
        let mixed = name.bytes().fold(seed, |mixed, byte| {
            mixed
                .wrapping_mul(0x100_0000_01b3)
                .wrapping_add(byte.into())
        });
        Self(Seeded::new(mixed))
    }

    /// A number below `end`.
    pub(super) fn below(&self, end: u64) -> u64 {
        self.0.next() % end.max(1)
    }
}
