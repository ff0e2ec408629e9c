//! The operator's terminal on a screen in memory: how it looks, what it takes to decide,
//! and that no text from outside draws on it.

#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests: a panic is how they fail"
)]

mod decides;
mod holds;
mod hostile;
mod looks;
mod support;
