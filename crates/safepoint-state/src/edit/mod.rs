//! Changes to one file's content: text replaced, a unified diff applied, a
//! value of a JSON, YAML or TOML document changed.
//!
//! Pure functions: bytes in, bytes out. Each of them either does exactly what
//! was asked or gives an error and no bytes at all; none guesses. What was not
//! asked to change keeps every byte: line ends, byte order mark, comments,
//! spelling. Content and changes may both be hostile: time stays close to
//! linear, memory is bounded, and nothing recurses deeper than a fixed limit.

mod error;
mod lines;
mod nearest;
pub mod patch;
pub mod replace;
pub mod structured;

pub use error::{Difference, EditError, HunkDifference, Nearest, Place};
pub use patch::{Applied, FilePatch, Moved, apply};
pub use replace::{Replaced, Replacement, replace};
pub use structured::{Change, Changed, Format, change};
