//! Statements that act on the machine of the server: files there, and its settings.

use crate::beyond::{first_of, refusal};
use crate::{Database, DatabaseError, SqlChange};

/// What stands in such statements and in no others, and what puts statements together.
const WORDS: [&str; 18] = [
    "outfile",
    "dumpfile",
    "infile",
    "load_file",
    "soname",
    "install",
    "prepare",
    "execute",
    "sys_exec",
    "sys_eval",
    "directory",
    "federated",
    "engine=connect",
    "create server",
    "global",
    "persist",
    "change master",
    "change replication",
];

pub(crate) fn refuse_beyond(database: &Database, change: &SqlChange) -> Result<(), DatabaseError> {
    let mut scripts = std::iter::once(&change.statements).chain(&change.check);
    match scripts.find_map(|script| beyond(script)) {
        Some(word) => Err(refusal(database.address().to_string(), word)),
        None => Ok(()),
    }
}

fn beyond(script: &str) -> Option<&'static str> {
    let is_engine = |text: &str| {
        let text: String = text.split_whitespace().collect();
        first_of(&text, &["engine=connect", "engineconnect"]).is_some()
    };
    match first_of(script, &WORDS) {
        None if is_engine(script) => Some("engine=connect"),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_12_statements_that_act_on_the_servers_machine_are_found() {
        for script in [
            "SELECT * FROM t INTO OUTFILE '/tmp/x'",
            "SELECT 1 INTO DUMPFILE '/tmp/x'",
            "LOAD DATA INFILE '/etc/passwd' INTO TABLE t",
            "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE t",
            "/*!50000 SELECT LOAD_FILE('/etc/passwd') */",
            "PREPARE s FROM CONCAT('SELECT 1 INTO OUT', 'FILE ''/tmp/x''')",
            "EXECUTE IMMEDIATE CONCAT('a', 'b')",
            "SET GLOBAL general_log_file = '/tmp/x'",
            "CREATE TABLE t (x INT) ENGINE = CONNECT FILE_NAME='/tmp/x'",
            "CREATE FUNCTION f RETURNS INT SONAME 'x.so'",
        ] {
            assert!(beyond(script).is_some(), "{script}");
        }
        for script in [
            "DELETE FROM t WHERE a = 1",
            "ALTER TABLE connections ADD b INT",
            "INSERT INTO t VALUES ('file')",
        ] {
            assert_eq!(beyond(script), None, "{script}");
        }
    }
}
