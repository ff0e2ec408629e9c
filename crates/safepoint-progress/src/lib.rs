//! Progress: workspaces, and immutable chains of work product in them.
//!
//! A workspace belongs to one agent; what the agent produces is a linear chain
//! of records that nobody changes. What is here are the values and the rules,
//! as pure functions: nothing reads a clock, a file or a store.

pub mod meter;
pub mod record;
pub mod rejection;
pub mod role;
pub mod signal;
pub mod state;
pub mod task;
pub mod taxonomy;
mod words;

pub use words::UnknownWord;
