//! A change by SQL: in a transaction, under a savepoint, kept or dropped by what a query
//! and a judge say of it.

use super::scope::cells;
use super::session::Session;
use super::statements::split;
use crate::{Changed, Database, DatabaseError, SqlChange, Trial, Verdict};

pub(crate) fn change(
    database: &Database,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    let mut session = Session::open(database)?;
    for script in std::iter::once(&change.statements).chain(&change.check) {
        if let Some(words) = ends_transaction(script) {
            return Err(session.unsupported(format!(
                "`{words}` would end the transaction that the change is tried in; leave it out"
            )));
        }
        if copies_from_us(script) {
            return Err(
                session.unsupported("`COPY` from or to the client is no statement by itself")
            );
        }
    }
    match run(database, &mut session, change, judge) {
        Ok(changed) => Ok(changed),
        Err(error) => {
            session.roll_back();
            Err(error)
        }
    }
}

fn run(
    database: &Database,
    session: &mut Session,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    let milliseconds = database.access.lock_timeout.as_millis().max(1);
    session.run(&format!(
        "BEGIN; SET LOCAL lock_timeout = {milliseconds}; SET LOCAL standard_conforming_strings = on"
    ))?;
    let [number] = cells(session.one("SELECT txid_current()")?);
    session.run("SAVEPOINT safepoint")?;
    session.run(&change.statements)?;
    let committed = has_ended(session, &number)?;
    // A constraint that waits for the commit has its say now, while we can still listen.
    if !committed {
        session.run("SET CONSTRAINTS ALL IMMEDIATE")?;
    }
    let looked = touched(session).and_then(|rows| {
        let check = change.check.as_ref();
        let check = check.map(|check| ask(session, check, committed));
        Ok((rows, check.transpose()?))
    });
    let (rows, check) = looked.map_err(|error| match committed {
        true => DatabaseError::PartlyKept {
            message: error.to_string(),
        },
        false => error,
    })?;
    let trial = Trial {
        rows,
        check,
        committed,
    };
    let verdict = judge(&trial);
    if committed {
        return Ok(Changed { trial, kept: true });
    }
    match verdict {
        Verdict::Keep => session.commit()?,
        Verdict::Drop => {
            // The statements may have released it; the transaction is ours all the same.
            let _ = session.run("ROLLBACK TO SAVEPOINT safepoint");
            session.run("ROLLBACK")?;
        }
    }
    let kept = verdict == Verdict::Keep;
    Ok(Changed { trial, kept })
}

/// Asks the checking query, which can change nothing.
fn ask(
    session: &mut Session,
    check: &str,
    committed: bool,
) -> Result<Vec<crate::Row>, DatabaseError> {
    if committed {
        session.run("BEGIN READ ONLY")?;
        let answer = session.ask(check)?;
        session.run("ROLLBACK")?;
        return Ok(answer);
    }
    session.run("SAVEPOINT safepoint_check; SET LOCAL transaction_read_only = on")?;
    let answer = session.ask(check)?;
    session.run("ROLLBACK TO SAVEPOINT safepoint_check; RELEASE SAVEPOINT safepoint_check")?;
    Ok(answer)
}

/// How many rows were touched, those by triggers and cascades among them.
fn touched(session: &mut Session) -> Result<Option<u64>, DatabaseError> {
    let [counted, rows] = cells(session.one(
        "SELECT pg_catalog.current_setting('track_counts'), (SELECT coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0) \
         FROM pg_catalog.pg_stat_xact_user_tables)",
    )?);
    Ok(match counted.as_str() {
        "on" => rows.parse().ok(),
        _ => None,
    })
}

/// Whether the transaction that we began is over, by whatever we did not see coming, and
/// what it did is committed.
fn has_ended(session: &mut Session, number: &str) -> Result<bool, DatabaseError> {
    let [now, status] = cells(session.one(&format!(
        "SELECT pg_catalog.txid_current_if_assigned(), pg_catalog.txid_status({number})"
    ))?);
    match (now == number, status.as_str()) {
        (true, _) => Ok(false),
        (false, "committed") => Ok(true),
        (false, _) => Err(DatabaseError::Sql {
            message: "the statements rolled back the transaction that they were tried in".into(),
        }),
    }
}

/// The statement in a script that would end the transaction it runs in.
fn ends_transaction(script: &str) -> Option<String> {
    let endings: [&[&str]; 7] = [
        &["COMMIT"],
        &["END"],
        &["ABORT"],
        &["ROLLBACK"],
        &["BEGIN"],
        &["START", "TRANSACTION"],
        &["PREPARE", "TRANSACTION"],
    ];
    let to_savepoint = |words: &[String]| words.iter().any(|word| word == "TO");
    split(script).into_iter().find_map(|statement| {
        let ends = endings.iter().find(|words| statement.begins(words))?;
        let harmless = ends.first() == Some(&"ROLLBACK") && to_savepoint(&statement.words);
        (!harmless).then(|| ends.join(" "))
    })
}

/// Whether a script has rows behind a statement, as only `psql` sends them.
fn copies_from_us(script: &str) -> bool {
    let client = |word: &String| word == "STDIN" || word == "STDOUT";
    split(script)
        .iter()
        .any(|statement| statement.begins(&["COPY"]) && statement.words.iter().any(client))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_16_statements_that_end_the_transaction_are_found() {
        for script in [
            "COMMIT",
            "update t set a = 1; commit;",
            "SELECT 1; /* x */ END WORK",
            "ROLLBACK",
            "ROLLBACK AND CHAIN",
            "abort",
            "BEGIN",
            "start transaction isolation level serializable",
            "PREPARE TRANSACTION 'x'",
            "SELECT ';'; -- '\nCOMMIT",
        ] {
            assert!(ends_transaction(script).is_some(), "{script}");
        }
        for script in [
            "UPDATE t SET note = 'COMMIT; ROLLBACK'",
            "ROLLBACK TO SAVEPOINT mine",
            "ROLLBACK WORK TO mine",
            "DO $$ BEGIN UPDATE t SET a = 1; END $$",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END",
            "PREPARE p AS SELECT 1",
            "-- COMMIT\nSELECT 1",
        ] {
            assert_eq!(ends_transaction(script), None, "{script}");
        }
    }
}
