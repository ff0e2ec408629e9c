//! Many agents at once, on several servers with one PostgreSQL, on one, and on SQLite: nothing
//! that was acknowledged is lost, nothing is done twice, nothing forks, the trail verifies.
//! Servers and the database are killed on the way. `scripts/load-campaign` does the same large.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod load;

use load::{Plan, Where, carry_out};

#[test]
fn su_09_replicas_that_are_killed_under_load_lose_nothing_and_do_nothing_twice() {
    carry_out(
        &Plan::new(
            "three replicas on one PostgreSQL, killed at random",
            Where::Postgres,
            3,
            8,
        )
        .killing(),
    );
}

#[test]
fn su_09_one_replica_under_load_does_what_it_says() {
    carry_out(&Plan::new(
        "one replica on PostgreSQL",
        Where::Postgres,
        1,
        3,
    ));
}

#[test]
fn su_07_a_server_on_sqlite_under_load_does_what_it_says() {
    carry_out(&Plan::new("one server on SQLite", Where::Sqlite, 1, 3));
}
