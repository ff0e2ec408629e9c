//! MariaDB, on a server that is started for the tests.

#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail loudly and do what the product may not"
)]

mod change;
mod cut;
mod exact;
mod failure;
mod moment;
mod revert;
mod scope;
mod support;
