//! Strict JSON, for everything that is hashed or comes from outside.
//!
//! Two programs that read the same bytes must see the same value, and two
//! programs that write the same value must write the same bytes; otherwise a
//! digest proves nothing. So [`read`] refuses whatever readers are known to
//! disagree about (duplicate keys, lone surrogates, integers that a double
//! does not hold), and [`canonical`] writes RFC 8785. What one writes, the
//! other accepts: a number that would be written as an integer beyond
//! [`MAX_INTEGER`] is refused by both.
//!
//! Nothing here guesses, repairs or falls back.

mod error;
mod plain;
mod read;
mod serialize;
mod typed;
mod write;

#[cfg(test)]
mod tests;

pub use error::{ReadAsError, ReadError, ReadErrorKind, WriteError};
pub use plain::read_plain;
pub use read::read;
pub use serialize::canonical_of;
pub use typed::read_as;
pub use write::{canonical, write_canonical};

/// The largest integer, positive or negative, that is read or written: 2^53 - 1.
///
/// Beyond it, readers that keep numbers as doubles see another number than is
/// written. Larger ones travel as strings.
pub const MAX_INTEGER: u64 = 9_007_199_254_740_991;

/// How many arrays and objects may lie inside each other, whatever [`Limits`] say.
///
/// The reader and the writer recurse, and so does dropping the value.
pub const MAX_DEPTH: usize = 128;

/// How much is read before giving up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest document, in bytes.
    pub bytes: usize,
    /// The most arrays and objects inside each other; never more than [`MAX_DEPTH`].
    pub depth: usize,
}

impl Default for Limits {
    /// 16 MiB, and [`MAX_DEPTH`] levels.
    fn default() -> Self {
        Self {
            bytes: 16 << 20,
            depth: MAX_DEPTH,
        }
    }
}

/// Whether `number` is an integer beyond [`MAX_INTEGER`] that RFC 8785 spells
/// out in digits; from 10^21 on it has an exponent, and nobody takes it for exact.
pub(crate) fn is_inexact_integer(number: f64) -> bool {
    let size = number.abs();
    size > MAX_INTEGER as f64 && size < 1e21
}

/// Whether `byte` must be escaped in a string.
fn is_special(byte: u8) -> bool {
    matches!(byte, b'"' | b'\\' | 0..0x20)
}
