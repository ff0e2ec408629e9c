//! What `pg_dump` writes, made fit to be run inside a transaction of ours.
//!
//! Statements that set something for the session set it for the transaction. Schemas and
//! extensions are left out: a restore keeps those that are still there. Foreign servers
//! are left out because passwords hang on them, and none may reach the store.

use serde::{Deserialize, Serialize};

use super::statements::{Statement, split};
use crate::{DatabaseError, Keep, Piece};

/// One step of a restore.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Step {
    pub(super) kind: StepKind,
    pub(super) sql: String,
}

/// What a step is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum StepKind {
    /// Something is made, and nothing works without it.
    Structure,
    /// Something is given to its owner.
    Owner,
    /// Somebody may do something.
    Privilege,
    /// Something acts on changes of structure. Last: it must not act on ours.
    Watch,
}

/// The steps that a script of `pg_dump` consists of.
pub(super) fn steps(script: &str) -> Vec<Step> {
    split(script).into_iter().filter_map(step).collect()
}

fn step(statement: Statement) -> Option<Step> {
    let kind = match () {
        () if is_left_out(&statement) => return None,
        () if is_watch(&statement) => StepKind::Watch,
        () if is_privilege(&statement) => StepKind::Privilege,
        () if is_owner(&statement) => StepKind::Owner,
        () => StepKind::Structure,
    };
    let sql = match statement.begins(&["SET"]) {
        true => statement.text.replacen("SET ", "SET LOCAL ", 1),
        false => statement.text,
    };
    Some(Step { kind, sql })
}

fn is_left_out(statement: &Statement) -> bool {
    let kept = [
        "DEFAULT_TABLESPACE",
        "DEFAULT_TABLE_ACCESS_METHOD",
        "SESSION",
    ];
    let setting = statement.begins(&["SET"])
        && !statement
            .words
            .get(1)
            .is_some_and(|name| kept.contains(&name.as_str()));
    let beginnings: [&[&str]; 13] = [
        &["SELECT", "PG_CATALOG", "SET_CONFIG"],
        &["CREATE", "SCHEMA"],
        &["ALTER", "SCHEMA"],
        &["COMMENT", "ON", "SCHEMA"],
        &["CREATE", "EXTENSION"],
        &["CREATE", "FOREIGN", "DATA"],
        &["ALTER", "FOREIGN", "DATA"],
        &["COMMENT", "ON", "FOREIGN", "DATA"],
        &["CREATE", "SERVER"],
        &["ALTER", "SERVER"],
        &["COMMENT", "ON", "SERVER"],
        &["CREATE", "USER", "MAPPING"],
        &["ALTER", "USER", "MAPPING"],
    ];
    setting
        || beginnings.iter().any(|words| statement.begins(words))
        || grants_on(statement, "SCHEMA")
        || grants_on(statement, "FOREIGN")
}

fn is_watch(statement: &Statement) -> bool {
    statement.begins(&["CREATE", "EVENT", "TRIGGER"])
        || statement.begins(&["ALTER", "EVENT", "TRIGGER"])
        || statement.begins(&["COMMENT", "ON", "EVENT", "TRIGGER"])
}

fn is_privilege(statement: &Statement) -> bool {
    let beginnings: [&[&str]; 6] = [
        &["GRANT"],
        &["REVOKE"],
        &["ALTER", "DEFAULT", "PRIVILEGES"],
        &["SET", "SESSION", "AUTHORIZATION"],
        &["RESET", "SESSION", "AUTHORIZATION"],
        // Only the owner of an extension may, and it is there already.
        &["COMMENT", "ON", "EXTENSION"],
    ];
    beginnings.iter().any(|words| statement.begins(words))
}

/// Whether it ends with `OWNER TO somebody`.
fn is_owner(statement: &Statement) -> bool {
    let mut from_behind = statement.words.iter().rev().skip(1).map(String::as_str);
    statement.begins(&["ALTER"])
        && from_behind.next() == Some("TO")
        && from_behind.next() == Some("OWNER")
}

/// Whether it grants or revokes something on a kind of object.
fn grants_on(statement: &Statement, kind: &str) -> bool {
    if !statement.begins(&["GRANT"]) && !statement.begins(&["REVOKE"]) {
        return false;
    }
    let mut words = statement.words.iter().skip_while(|word| *word != "ON");
    words.nth(1).is_some_and(|word| word == kind)
}

/// One script of several statements. A comment behind one of them does not reach the next.
pub(super) fn join<'a>(statements: impl IntoIterator<Item = &'a str>) -> String {
    let statements: Vec<&str> = statements.into_iter().collect();
    statements.join("\n;\n")
}

/// Keeps something as JSON.
pub(super) fn keep_json<T: Serialize>(thing: &T, keep: &dyn Keep) -> Result<Piece, DatabaseError> {
    let bytes = serde_json::to_vec(thing)
        .map_err(|error| DatabaseError::Kept(std::sync::Arc::new(error)))?;
    keep.bytes(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dump_becomes_steps_of_one_transaction() {
        let script = r#"
\restrict x
SET lock_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
SET default_tablespace = '';
CREATE SCHEMA audit;
ALTER SCHEMA audit OWNER TO me;
CREATE TABLE public.t (id integer);
ALTER TABLE public.t OWNER TO "some one";
COMMENT ON TABLE public.t IS 'x';
GRANT USAGE ON SCHEMA audit TO you;
CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION public.f();
GRANT SELECT(id) ON TABLE public.t TO you;
\unrestrict x
"#;
        let found: Vec<_> = steps(script)
            .into_iter()
            .map(|step| (step.kind, step.sql))
            .collect();
        let expected = [
            (StepKind::Structure, "SET LOCAL default_tablespace = ''"),
            (StepKind::Structure, "CREATE TABLE public.t (id integer)"),
            (
                StepKind::Owner,
                "ALTER TABLE public.t OWNER TO \"some one\"",
            ),
            (StepKind::Structure, "COMMENT ON TABLE public.t IS 'x'"),
            (
                StepKind::Watch,
                "CREATE EVENT TRIGGER e ON sql_drop EXECUTE FUNCTION public.f()",
            ),
            (
                StepKind::Privilege,
                "GRANT SELECT(id) ON TABLE public.t TO you",
            ),
        ];
        assert_eq!(found, expected.map(|(kind, sql)| (kind, sql.to_owned())));
    }

    #[test]
    fn st_16_passwords_of_foreign_servers_are_not_kept() {
        let script = "CREATE SERVER s FOREIGN DATA WRAPPER w OPTIONS (password 'hunter2');\n\
             CREATE USER MAPPING FOR me SERVER s OPTIONS (\"user\" 'a', password 'hunter2');\n\
             GRANT ALL ON FOREIGN SERVER s TO me;\nCREATE FOREIGN TABLE public.f (a integer) SERVER s;";
        let steps = steps(script);
        assert_eq!(steps.len(), 1);
        assert!(steps[0].sql.starts_with("CREATE FOREIGN TABLE"));
    }
}
