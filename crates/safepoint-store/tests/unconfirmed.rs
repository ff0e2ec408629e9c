//! A commit whose answer is lost: the change is there, and nobody is told that it is not.

#![expect(clippy::disallowed_methods, reason = "tests")]

use std::time::Duration;

use postgres::{Client, NoTls};
use safepoint_store::{Durability, Location, Options, Store, StoreError};
use testkit::Cluster;

#[test]
fn tr_10_a_commit_whose_answer_is_lost_is_not_called_a_failure() {
    let cluster = Cluster::start();
    let location = Location::Postgres(cluster.address().to_owned());
    let store = Store::open(&location, Options::default()).unwrap();
    store
        .write(Durability::Sync, |sql| {
            sql.execute("CREATE TABLE kept (number BIGINT)", &[])
        })
        .unwrap();
    // From now on a commit is kept here, and then waits for a standby that never answers.
    let mut server = Client::connect(cluster.address(), NoTls).unwrap();
    for statement in [
        "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
        "SELECT pg_reload_conf()",
    ] {
        server.simple_query(statement).unwrap();
    }
    // When "now" is, the server says to nobody: it is written until one is cut off.
    let mut acknowledged = 0;
    let error = std::thread::scope(|scope| {
        let writing = scope.spawn(|| {
            loop {
                let written = store.write(Durability::Sync, |sql| {
                    sql.execute("INSERT INTO kept VALUES (1)", &[]).map(drop)
                });
                match written {
                    Ok(()) => acknowledged += 1,
                    Err(error) => break error,
                }
            }
        });
        let waits =
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        while server.query(waits, &[]).unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        writing.join().unwrap()
    });
    assert!(matches!(error, StoreError::Unconfirmed { .. }), "{error:?}");
    let found = server.query("SELECT number FROM safepoint.kept", &[]);
    assert_eq!(found.unwrap().len(), acknowledged + 1);
}
