//! Clearing away what is made anew, and what came since.
//!
//! Object by object and not schema by schema: extensions live in schemas too, and those
//! that are as they were stay where they are, with what their tables hold.

use super::super::manifest::Manifest;
use super::super::name::{literal, literals};
use super::super::scope::Extent;
use super::super::session::Session;
use super::Plan;
use crate::DatabaseError;

/// Something that a schema can hold: the catalogue it is in, the column with its schema,
/// and which of its rows are meant.
const CLASSES: [(&str, &str, &str); 13] = [
    (
        "pg_class",
        "relnamespace",
        "o.relkind IN ('r', 'p', 'v', 'm', 'f') OR (o.relkind = 'S' AND NOT EXISTS (SELECT FROM pg_depend d \
         WHERE d.classid = 'pg_class'::regclass AND d.objid = o.oid AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')))",
    ),
    ("pg_proc", "pronamespace", "true"),
    (
        "pg_type",
        "typnamespace",
        "o.typtype IN ('b', 'c', 'd', 'e', 'r') AND NOT EXISTS (SELECT FROM pg_type a WHERE a.typarray = o.oid) \
         AND (o.typrelid = 0 OR EXISTS (SELECT FROM pg_class c WHERE c.oid = o.typrelid AND c.relkind = 'c'))",
    ),
    ("pg_operator", "oprnamespace", "true"),
    ("pg_opclass", "opcnamespace", "true"),
    ("pg_opfamily", "opfnamespace", "true"),
    ("pg_collation", "collnamespace", "true"),
    ("pg_conversion", "connamespace", "true"),
    ("pg_ts_config", "cfgnamespace", "true"),
    ("pg_ts_dict", "dictnamespace", "true"),
    ("pg_ts_template", "tmplnamespace", "true"),
    ("pg_ts_parser", "prsnamespace", "true"),
    ("pg_statistic_ext", "stxnamespace", "true"),
];

/// Clears all units that are made anew.
pub(super) fn clear(
    session: &mut Session,
    plan: &Plan,
    manifest: &Manifest,
) -> Result<(), DatabaseError> {
    for (number, unit) in plan.scope.units.iter().enumerate() {
        if !plan.anew.contains(&number) {
            continue;
        }
        match &unit.extent {
            Extent::Database => clear_database(session, manifest)?,
            Extent::Schema(schema) => clear_schemas(session, &format!("= {}", literal(schema)))?,
            Extent::Table(_) => {
                let tables: Vec<String> = plan
                    .present
                    .iter()
                    .filter(|table| unit.tables.contains(&table.name))
                    .map(|table| match table.kind.as_str() {
                        "f" => format!("DROP FOREIGN TABLE {} CASCADE", table.name.sql()),
                        // Its table may have taken it along.
                        _ => format!("DROP TABLE IF EXISTS {} CASCADE", table.name.sql()),
                    })
                    .collect();
                session.run(&tables.join("; "))?;
            }
        }
    }
    Ok(())
}

fn clear_database(session: &mut Session, manifest: &Manifest) -> Result<(), DatabaseError> {
    // Event triggers first: they would act on everything that follows.
    run_all(
        session,
        "SELECT format('DROP EVENT TRIGGER %I CASCADE', v.evtname) FROM pg_event_trigger v \
         WHERE NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_event_trigger'::regclass \
           AND e.objid = v.oid AND e.deptype = 'e') \
         UNION ALL SELECT format('DROP PUBLICATION %I', pubname) FROM pg_publication",
    )?;
    let extensions = manifest.extensions.iter().map(|known| {
        let parts = [&known.name, &known.schema, &known.version].map(|part| literal(part));
        format!("({})", parts.join(", "))
    });
    let extensions: Vec<String> = std::iter::once("('', '', '')".to_owned())
        .chain(extensions)
        .collect();
    run_all(
        session,
        &format!(
            "SELECT format('DROP EXTENSION IF EXISTS %I CASCADE', x.extname) FROM pg_extension x \
             JOIN pg_namespace n ON n.oid = x.extnamespace \
             WHERE (x.extname::text, n.nspname::text, x.extversion) NOT IN ({}) ORDER BY x.oid DESC",
            extensions.join(", ")
        ),
    )?;
    let schemas = literals(manifest.schemas.iter().map(|schema| schema.name.as_str()));
    let schemas = format!("coalesce(n.nspname IN ({schemas}), false)");
    run_all(
        session,
        &format!(
            "SELECT format('DROP SCHEMA %I CASCADE', n.nspname) FROM pg_namespace n \
             WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT {schemas} \
               AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_namespace'::regclass \
                 AND e.objid = n.oid AND e.deptype = 'e')"
        ),
    )?;
    clear_schemas(session, "NOT IN ('information_schema')")?;
    // Casts between types of the server's own, languages, and the like.
    run_all(
        session,
        "SELECT format('DROP %s IF EXISTS %s CASCADE', i.type, i.identity) FROM ( \
           SELECT 'pg_cast'::regclass AS class, oid FROM pg_cast \
           UNION ALL SELECT 'pg_language'::regclass, oid FROM pg_language \
           UNION ALL SELECT 'pg_am'::regclass, oid FROM pg_am) o, \
           LATERAL pg_identify_object(o.class, o.oid, 0) i \
         WHERE o.oid >= 16384 AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = o.class \
           AND e.objid = o.oid AND e.deptype = 'e')",
    )
}

/// Drops all that lies in schemas, but for what belongs to an extension.
fn clear_schemas(session: &mut Session, which: &str) -> Result<(), DatabaseError> {
    let classes: Vec<String> = CLASSES
        .iter()
        .enumerate()
        .map(|(place, (class, namespace, condition))| {
            format!(
                "SELECT {place}, '{class}'::regclass AS class, o.oid FROM {class} o \
                 JOIN pg_namespace n ON n.oid = o.{namespace} \
                 WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND n.nspname {which} AND ({condition})"
            )
        })
        .collect();
    run_all(
        session,
        &format!(
            "SELECT format('DROP %s IF EXISTS %s CASCADE', CASE WHEN i.type IN ('function', 'procedure', 'aggregate') \
               THEN 'routine' WHEN i.type = 'statistics object' THEN 'statistics' ELSE i.type END, i.identity) \
             FROM ({}) o (place, class, oid), LATERAL pg_identify_object(o.class, o.oid, 0) i \
             WHERE NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = o.class AND e.objid = o.oid \
               AND e.refobjid <> o.oid AND e.deptype IN ('e', 'i')) \
             ORDER BY o.place, o.oid",
            classes.join(" UNION ALL ")
        ),
    )
}

/// Runs what a query answers with.
fn run_all(session: &mut Session, query: &str) -> Result<(), DatabaseError> {
    let statements = session.column(query)?;
    match statements.is_empty() {
        true => Ok(()),
        false => session.run(&statements.join("; ")),
    }
}
