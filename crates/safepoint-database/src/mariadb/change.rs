//! Runs the user's statements in a transaction under a savepoint, and commits or
//! rolls back as it is told.
//!
//! The server commits on its own before it changes a structure, and when a
//! statement asks for it. The savepoint tells: it is gone then. Tables without
//! transactions cannot be rolled back at all, which the server says only after the
//! attempt. In all these cases the caller is told that the change is in the
//! database, and restores from an image.
//!
//! The client splits nothing: statements are cut here, and sent one at a time. A
//! statement that fails is the last.

use crate::{Changed, Database, DatabaseError, Row, SqlChange, Trial, Verdict};

use super::lex::{Backslash, Script, Tokens};
use super::pipe::random;
use super::recover;
use super::server::Server;
use super::session::Session;
use super::trouble::{LOCKED, NO_SQL, NOT_ROLLED_BACK, Trouble};

pub(super) fn change(
    database: &Database,
    change: &SqlChange,
    judge: &mut dyn FnMut(&Trial) -> Verdict,
) -> Result<Changed, DatabaseError> {
    let server = Server::reach(database)?;
    recover::recover_if_free(&server)?;
    let mut transaction = Transaction::begin(&server)?;
    let result = transaction.attempt(change);
    let trial = match result {
        Ok(trial) => trial,
        Err(Trouble::Other(error)) => return Err(transaction.lost(error)),
        Err(trouble) => {
            transaction.roll_back()?;
            let committed = transaction.committed;
            let error = trouble.into();
            return Err(match committed {
                true => partly(error),
                false => error,
            });
        }
    };
    let verdict = judge(&trial);
    let mut changed = Changed { trial, kept: true };
    match verdict {
        Verdict::Keep => {
            transaction.session.run("COMMIT")?;
        }
        Verdict::Drop => {
            transaction.roll_back()?;
            changed.trial.committed = transaction.committed;
            changed.kept = transaction.committed;
        }
    }
    transaction.session.close();
    Ok(changed)
}

/// The error of a statement behind others that are committed.
fn partly(error: DatabaseError) -> DatabaseError {
    DatabaseError::PartlyKept {
        message: error.to_string(),
    }
}

struct Transaction {
    session: Session,
    savepoint: String,
    /// How it is seen whether the transaction has ended.
    is_mariadb: bool,
    committed: bool,
}

impl Transaction {
    fn begin(server: &Server) -> Result<Self, DatabaseError> {
        let mut session = server.plain_session()?;
        let savepoint = format!("safepoint_{}", random());
        session.run("START TRANSACTION")?;
        session.run(format!("SAVEPOINT {savepoint}"))?;
        Ok(Self {
            session,
            savepoint,
            is_mariadb: server.version.is_mariadb,
            committed: false,
        })
    }

    fn attempt(&mut self, change: &SqlChange) -> Result<Trial, Trouble> {
        let mut rows = 0;
        let mut script = Script::new(&change.statements);
        while let Some(statement) = self.next(&mut script)? {
            let done = self.session.run(statement);
            match &done {
                Err(Trouble::Other(_)) => {}
                // After a deadlock, the server has rolled back, and the savepoint is gone too.
                Err(trouble) if trouble.is_one_of(&LOCKED) => {}
                // What is no SQL is not carried out at all.
                Err(trouble) if trouble.is_one_of(&NO_SQL) => {}
                _ => self.look(statement)?,
            }
            rows += u64::try_from(done?.touched).unwrap_or(0);
        }
        let check = match &change.check {
            Some(query) => Some(self.check(query)?),
            None => None,
        };
        Ok(Trial {
            rows: Some(rows),
            check,
            committed: self.committed,
        })
    }

    fn next<'a>(&self, script: &mut Script<'a>) -> Result<Option<&'a [u8]>, Trouble> {
        script
            .next(self.session.backslash)
            .map_err(|broken| self.session.refused(0, broken.to_string()))
    }

    /// Sees whether the transaction has ended.
    fn look(&mut self, statement: &[u8]) -> Result<(), Trouble> {
        if self.committed {
            return Ok(());
        }
        if !self.is_mariadb {
            self.committed = ends_transaction(statement);
            return Ok(());
        }
        let savepoint = &self.savepoint;
        let there = self.session.value(&format!(
            "BEGIN NOT ATOMIC \
             DECLARE EXIT HANDLER FOR 1305 SELECT 0; \
             RELEASE SAVEPOINT {savepoint}; SAVEPOINT {savepoint}; SELECT 1; \
             END"
        ));
        self.committed = match there {
            // A session in Oracle's mode does not understand the question.
            Err(trouble) if trouble.is_one_of(&NO_SQL) => ends_transaction(statement),
            there => there? != "1",
        };
        Ok(())
    }

    fn check(&mut self, query: &str) -> Result<Vec<Row>, Trouble> {
        let mut script = Script::new(query);
        let statement = self.next(&mut script)?;
        let (Some(statement), None) = (statement, self.next(&mut script)?) else {
            let message = "a check is one query".to_owned();
            return Err(self.session.refused(0, message));
        };
        let rows = self.session.query(statement)?;
        self.look(statement)?;
        let value = |field: Vec<u8>| match field.as_slice() {
            b"NULL" => None,
            _ => Some(String::from_utf8_lossy(&field).into_owned()),
        };
        Ok(rows
            .into_iter()
            .map(|row| row.into_iter().map(value).collect())
            .collect())
    }

    fn roll_back(&mut self) -> Result<(), DatabaseError> {
        let warnings = self.session.query_all(&[b"ROLLBACK", b"SHOW WARNINGS"])?;
        let stays = |row: &Vec<Vec<u8>>| {
            row.get(1)
                .is_some_and(|code| code == NOT_ROLLED_BACK.as_bytes())
        };
        self.committed |= warnings.iter().any(stays);
        Ok(())
    }

    /// The error of a connection that was lost: the server rolls back what is not committed.
    fn lost(&self, error: DatabaseError) -> DatabaseError {
        match self.committed {
            true => partly(error),
            false => error,
        }
    }
}

/// Whether MySQL commits before or after such a statement. It has no way to look.
fn ends_transaction(statement: &[u8]) -> bool {
    let mut tokens = Tokens::new(statement, Backslash::Escapes);
    let Some(first) = tokens.next_full() else {
        return false;
    };
    const STAYING: [&str; 25] = [
        "select",
        "insert",
        "update",
        "delete",
        "replace",
        "with",
        "values",
        "table",
        "call",
        "do",
        "show",
        "explain",
        "describe",
        "desc",
        "savepoint",
        "release",
        "execute",
        "prepare",
        "deallocate",
        "signal",
        "get",
        "use",
        "kill",
        "checksum",
        "handler",
    ];
    let second = tokens.clone().next_full();
    let loads = first.is_word("load") && second.is_some_and(|word| !word.is_word("index"));
    let harmless_set = first.is_word("set")
        && !tokens.any(|token| token.is_word("autocommit") || token.is_word("password"));
    let staying = STAYING.iter().any(|word| first.is_word(word)) || first.is(b'(');
    !(staying || loads || harmless_set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_end_a_transaction_are_known() {
        for ending in [
            "ALTER TABLE t ADD x INT",
            "/* x */ truncate t",
            "COMMIT",
            "SET autocommit = 1",
            "BEGIN",
        ] {
            assert!(ends_transaction(ending.as_bytes()), "{ending}");
        }
        for staying in [
            "UPDATE t SET a = 1",
            "(SELECT 1)",
            "set @a = 1",
            "-- x\nDELETE FROM t",
        ] {
            assert!(!ends_transaction(staying.as_bytes()), "{staying}");
        }
    }
}
