//! PostgreSQL, on a real server. `pg_dump` has the last word on what is identical.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "tests reach around what they test"
)]

mod change;
mod credentials;
mod everything;
mod failures;
mod revert;
mod roles;
mod scopes;
mod support;
mod whole;
