//! What would act on rows while they are exchanged, in tables that are kept: foreign keys
//! and triggers. They are taken away before, and given back as they were.
//!
//! Foreign keys of tables outside that point at a table in scope are among them. Given
//! back, they are checked; a row outside that points at nothing fails the whole restore.

use std::collections::{BTreeMap, BTreeSet};

use super::super::name::{Name, quote};
use super::super::scope::cells;
use super::super::session::Session;
use super::Plan;
use crate::DatabaseError;

/// What was taken away.
pub(super) struct Keys {
    keys: Vec<ForeignKey>,
    /// Statements that set triggers as they were.
    triggers: Vec<String>,
}

/// A foreign key; for partitions, that of the table they belong to.
struct ForeignKey {
    table: Name,
    name: String,
    definition: String,
    comment: Option<String>,
}

/// Takes them away.
pub(super) fn take(session: &mut Session, plan: &Plan) -> Result<Keys, DatabaseError> {
    let keys = foreign_keys(session, plan)?;
    let mut script = String::new();
    for key in &keys {
        script.push_str(&format!(
            "ALTER TABLE {} DROP CONSTRAINT {}; ",
            key.table.sql(),
            quote(&key.name)
        ));
    }
    let mut triggers = Vec::new();
    for (table, name, state) in enabled_triggers(session, plan)? {
        let alter = format!("ALTER TABLE ONLY {}", table.sql());
        let name = quote(&name);
        script.push_str(&format!("{alter} DISABLE TRIGGER {name}; "));
        triggers.push(format!("{alter} {state} TRIGGER {name}"));
    }
    session.run(&script)?;
    Ok(Keys { keys, triggers })
}

impl Keys {
    /// The names of the foreign keys, as the catalogue shows them.
    pub(super) fn shown(&self) -> BTreeSet<String> {
        let shown = super::super::name::shown;
        let names = self.keys.iter();
        names
            .map(|key| format!("{}.{}", key.table, shown(&key.name)))
            .collect()
    }

    /// Gives all back.
    pub(super) fn give_back(&self, session: &mut Session) -> Result<(), DatabaseError> {
        for key in &self.keys {
            let (table, name) = (key.table.sql(), quote(&key.name));
            let mut script = format!(
                "ALTER TABLE {table} ADD CONSTRAINT {name} {}",
                key.definition
            );
            if let Some(comment) = &key.comment {
                let comment = super::super::name::literal(comment);
                script.push_str(&format!(
                    "; COMMENT ON CONSTRAINT {name} ON {table} IS {comment}"
                ));
            }
            session
                .attempt(&script)
                .map_err(|(error, code)| match code.as_deref() {
                    Some("23503") => session.unsupported(format!(
                        "foreign key `{}` of `{}` would not hold any more: {error}",
                        key.name, key.table
                    )),
                    _ => error,
                })?;
        }
        session.run(&self.triggers.join("; "))
    }
}

/// The foreign keys that stand in the way. Those of tables that are made anew come back
/// with them.
fn foreign_keys(session: &mut Session, plan: &Plan) -> Result<Vec<ForeignKey>, DatabaseError> {
    if plan.scope.is_whole() {
        return Ok(Vec::new());
    }
    let rows = session.ask(
        "WITH RECURSIVE up (oid, root, above) AS ( \
           SELECT oid, oid, conparentid FROM pg_constraint WHERE contype = 'f' \
           UNION ALL SELECT up.oid, p.oid, p.conparentid FROM up JOIN pg_constraint p ON p.oid = up.above \
         ) SELECT fn.nspname, f.relname, tn.nspname, t.relname, rn.nspname, r.relname, k.conname, \
             pg_get_constraintdef(k.oid), obj_description(k.oid, 'pg_constraint') \
           FROM up JOIN pg_constraint k ON k.oid = up.root JOIN pg_constraint o ON o.oid = up.oid \
           JOIN pg_class f ON f.oid = o.conrelid JOIN pg_namespace fn ON fn.oid = f.relnamespace \
           JOIN pg_class t ON t.oid = o.confrelid JOIN pg_namespace tn ON tn.oid = t.relnamespace \
           JOIN pg_class r ON r.oid = k.conrelid JOIN pg_namespace rn ON rn.oid = r.relnamespace \
           WHERE up.above = 0 ORDER BY k.oid",
    )?;
    let mut found = BTreeMap::new();
    for mut row in rows {
        let comment = row.pop().flatten();
        let [
            from_schema,
            from,
            to_schema,
            to,
            schema,
            table,
            name,
            definition,
        ] = cells(row);
        let (from, to) = (Name::new(from_schema, from), Name::new(to_schema, to));
        let table = Name::new(schema, table);
        let touched = plan.is_kept(&from) || plan.is_kept(&to) || plan.is_anew(&to);
        if touched && !plan.is_anew(&table) {
            let key = ForeignKey {
                table: table.clone(),
                name: name.clone(),
                definition,
                comment,
            };
            found.insert((table, name), key);
        }
    }
    Ok(found.into_values().collect())
}

/// The triggers of tables that are kept: table, name, and how to set it as it is.
fn enabled_triggers(
    session: &mut Session,
    plan: &Plan,
) -> Result<Vec<(Name, String, &'static str)>, DatabaseError> {
    if plan.scope.is_whole() {
        return Ok(Vec::new());
    }
    // Before version 15, those that a partition has from its table are called internal.
    let rows = session.ask(
        "SELECT n.nspname, c.relname, t.tgname, t.tgenabled FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN pg_constraint k ON k.oid = t.tgconstraint \
         WHERE (NOT t.tgisinternal OR t.tgconstraint = 0 OR k.contype = 't') \
           AND t.tgenabled <> 'D' AND c.relkind = 'r' ORDER BY t.oid",
    )?;
    let mut triggers = Vec::new();
    for row in rows {
        let [schema, table, name, state] = cells(row);
        let table = Name::new(schema, table);
        let state = match state.as_str() {
            "R" => "ENABLE REPLICA",
            "A" => "ENABLE ALWAYS",
            _ => "ENABLE",
        };
        if plan.is_kept(&table) {
            triggers.push((table, name, state));
        }
    }
    Ok(triggers)
}
