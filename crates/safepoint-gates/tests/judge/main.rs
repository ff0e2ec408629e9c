//! What comes of events, by requirement. Each test is a small atlas and a short story.

#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]

mod answers;
mod effects;
mod policies;
mod review;
mod strictest;
mod support;
mod triggers;
