//! Text by lines: how two contents differ, and how two changes of one content
//! go together. Pure functions on bytes, and exact ones: line ends, a missing
//! last line end and invalid UTF-8 come out as they went in.

mod align;
mod diff;
mod lines;
mod merge;
#[cfg(test)]
mod tests;

pub use diff::{Comparison, Hunk, Line, Side, compare, totals, unified};
pub use merge::{Apart, Conflict, Labels, Merge, apart, marked, merge};
