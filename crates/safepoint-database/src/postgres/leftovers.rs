//! What `pg_dump` leaves out when only a part of a database is named, although it goes
//! away with a table of that part: statistics on several columns, and publications that
//! have the table in them.

use super::dump::Scripts;
use super::name::Name;
use super::scope::{Scope, cells};
use super::script::{Step, StepKind};
use super::session::Session;
use crate::DatabaseError;

/// Adds them to the scripts of the units that their tables are in.
pub(super) fn add(
    session: &mut Session,
    scope: &Scope,
    scripts: &mut [Scripts],
) -> Result<(), DatabaseError> {
    if scope.is_whole() {
        return Ok(());
    }
    for query in [statistics(), publications(session.version)] {
        for row in session.ask(&query)? {
            let [schema, table, beginning, made, said, owned] = cells(row);
            let unit = scope.unit_of_table(&Name::new(schema, table));
            let Some(unit) = unit else {
                continue;
            };
            let Some(scripts) = scripts.get_mut(unit) else {
                continue;
            };
            let known = scripts
                .finish
                .iter()
                .any(|step| step.sql.starts_with(&beginning));
            if known {
                continue; // this `pg_dump` does not leave it out
            }
            for (kind, sql) in [
                (StepKind::Structure, made),
                (StepKind::Structure, said),
                (StepKind::Owner, owned),
            ] {
                if !sql.is_empty() {
                    scripts.finish.push(Step { kind, sql });
                }
            }
        }
    }
    Ok(())
}

/// For each: its table, how the statement that makes it begins, that statement, its
/// comment, and its owner.
fn statistics() -> String {
    "SELECT cn.nspname, c.relname, format('CREATE STATISTICS %I.%I ', n.nspname, s.stxname), \
       pg_get_statisticsobjdef(s.oid), \
       CASE WHEN d.said IS NOT NULL THEN format('COMMENT ON STATISTICS %I.%I IS %L', n.nspname, s.stxname, d.said) END, \
       format('ALTER STATISTICS %I.%I OWNER TO %I', n.nspname, s.stxname, pg_get_userbyid(s.stxowner)) \
     FROM pg_statistic_ext s JOIN pg_namespace n ON n.oid = s.stxnamespace \
     JOIN pg_class c ON c.oid = s.stxrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace \
     CROSS JOIN LATERAL obj_description(s.oid, 'pg_statistic_ext') d (said) ORDER BY s.oid"
        .to_owned()
}

fn publications(version: u32) -> String {
    // Newer servers publish columns and rows of a table too.
    let narrowed = match version >= 150_000 {
        true => {
            "coalesce((SELECT ' (' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) || ')' \
               FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)), '') \
             || coalesce(' WHERE (' || pg_get_expr(r.prqual, r.prrelid) || ')', '')"
        }
        false => "''",
    };
    format!(
        "SELECT n.nspname, c.relname, t.beginning, t.beginning || {narrowed}, NULL, NULL \
         FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid \
         JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         CROSS JOIN LATERAL format('ALTER PUBLICATION %I ADD TABLE ONLY %I.%I', p.pubname, n.nspname, c.relname) \
           t (beginning) ORDER BY r.oid"
    )
}
