//! Statements that act on the machine of the server. The server itself keeps roles from that which
//! have no right to it. For the others, only plain statements are let through.

use super::scope::cells;
use super::session::Session;
use super::statements::{Statement, split};
use crate::beyond::{first_of, refusal};
use crate::{Database, DatabaseError, SqlChange};

/// Whether this session has a role, or can take one, that reaches the server's files or programs.
const REACHES: &str = "SELECT EXISTS (SELECT 1 FROM pg_catalog.pg_roles AS r \
     WHERE (r.rolsuper OR r.rolname IN ('pg_execute_server_program', 'pg_write_server_files', \
     'pg_read_server_files')) AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER'))";

/// How plain statements begin.
const PLAIN: [&str; 16] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "MERGE",
    "WITH",
    "VALUES",
    "TABLE",
    "TRUNCATE",
    "SAVEPOINT",
    "RELEASE",
    "ROLLBACK",
    "LOCK",
    "ANALYZE",
    "REFRESH",
    "COMMENT",
];

/// What is made, changed and dropped by plain statements.
const KINDS: [&str; 9] = [
    "TABLE",
    "INDEX",
    "VIEW",
    "SEQUENCE",
    "TYPE",
    "DOMAIN",
    "SCHEMA",
    "STATISTICS",
    "CONSTRAINTS",
];

/// Words between a verb and what it is about.
const BETWEEN: [&str; 10] = [
    "OR",
    "REPLACE",
    "TEMP",
    "TEMPORARY",
    "UNLOGGED",
    "UNIQUE",
    "MATERIALIZED",
    "LOCAL",
    "GLOBAL",
    "RECURSIVE",
];

/// Functions that reach files, other servers or settings, or that run a text as SQL; and another
/// way to write a name.
const FUNCTIONS: [&str; 20] = [
    "lo_import",
    "lo_export",
    "pg_read_",
    "pg_write",
    "pg_file_",
    "pg_ls_",
    "pg_stat_file",
    "pg_logdir",
    "pg_reload",
    "pg_rotate",
    "dblink",
    "set_config",
    "to_xml",
    "ts_stat",
    "ts_rewrite",
    "crosstab",
    "xpath_table",
    "connectby",
    "cron.",
    "u&",
];

pub(crate) fn refuse_beyond(database: &Database, change: &SqlChange) -> Result<(), DatabaseError> {
    let mut session = Session::open(database)?;
    let [reaches] = cells(session.one(REACHES)?);
    if reaches == "f" {
        return Ok(());
    }
    let mut scripts = std::iter::once(&change.statements).chain(&change.check);
    match scripts.find_map(|script| beyond(script)) {
        Some(what) => Err(refusal(database.address.to_string(), &what)),
        None => Ok(()),
    }
}

/// What in a script may act on the machine of the server.
fn beyond(script: &str) -> Option<String> {
    if let Some(function) = first_of(script, &FUNCTIONS) {
        return Some(function.to_owned());
    }
    // A text between dollars is what functions are written in.
    let mut dollars = script.match_indices('$');
    let opens = |(at, _): (usize, &str)| {
        let next = script.get(at + 1..).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next == '$' || next == '_' || next.is_alphabetic())
    };
    if dollars.any(opens) {
        return Some("$".to_owned());
    }
    let statements = split(script);
    let other = statements.iter().find(|statement| !is_plain(statement))?;
    let words = other.words.iter().take(2).cloned();
    Some(words.collect::<Vec<_>>().join(" "))
}

fn is_plain(statement: &Statement) -> bool {
    let mut words = statement.words.iter().map(String::as_str);
    let Some(first) = words.next() else {
        // `(SELECT …)` has no words outside its parentheses.
        return statement.text.starts_with('(');
    };
    match first {
        "CREATE" | "ALTER" | "DROP" | "SET" => {
            let about = words.find(|word| !BETWEEN.contains(word));
            about.is_some_and(|about| KINDS.contains(&about))
        }
        other => PLAIN.contains(&other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_12_statements_that_act_on_the_servers_machine_are_found() {
        for script in [
            "COPY t TO PROGRAM 'touch /tmp/x'",
            "copy t to '/tmp/x'",
            "COPY t FROM '/etc/passwd'",
            "DELETE FROM t; COPY t TO PROGRAM 'x'",
            "SELECT lo_export(1, '/tmp/x')",
            "SELECT \"lo_export\"(1, '/tmp/x')",
            "SELECT U&\"\\006co_export\"(1, '/tmp/x')",
            "SELECT pg_read_file('/etc/passwd')",
            "DO $$ BEGIN EXECUTE 'CO' || 'PY t TO PROGRAM ''x'''; END $$",
            "DO 'BEGIN EXECUTE x; END'",
            "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
            "CREATE EXTENSION dblink",
            "CREATE FOREIGN TABLE f (x int) SERVER s OPTIONS (program 'x')",
            "ALTER SYSTEM SET archive_command = 'x'",
            "ALTER ROLE u SUPERUSER",
            "SET ROLE postgres",
            "LOAD 'x'",
            "CALL p()",
            "SELECT query_to_xml('SELECT 1', true, true, '')",
        ] {
            assert!(beyond(script).is_some(), "{script}");
        }
        for script in [
            "DELETE FROM t; INSERT INTO t VALUES (666)",
            "UPDATE t SET price = '$5'",
            "WITH gone AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM gone",
            "CREATE UNIQUE INDEX i ON t (x)",
            "CREATE OR REPLACE VIEW v AS SELECT 1",
            "ALTER TABLE t ADD COLUMN program text",
            "SET CONSTRAINTS ALL DEFERRED",
            "(SELECT 1)",
            "SELECT 1 = 1",
        ] {
            assert_eq!(beyond(script), None, "{script}");
        }
    }
}
