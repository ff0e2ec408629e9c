//! Looking again, before the commit: what differs then can still be rolled back.

use super::super::catalogue::{Catalogue, first_differences, is_right};
use super::super::name::Name;
use super::super::scope::cells;
use super::super::session::Session;
use super::Plan;
use super::keys::Keys;
use crate::image::Schema;
use crate::{DatabaseError, Image};

/// How many differences a message names.
const NAMED: usize = 5;

/// Whether all that is outside is still there, after the scope was cleared.
pub(super) fn nothing_lost(
    session: &mut Session,
    plan: &Plan,
    keys: &Keys,
) -> Result<(), DatabaseError> {
    // These come back further on.
    let taken = keys.shown();
    let coming = |schema: Schema| Schema {
        objects: schema
            .objects
            .into_iter()
            .filter(|object| match object.kind.as_str() {
                "constraint" => !taken.contains(&object.name),
                "comment" => false,
                _ => true,
            })
            .collect(),
        ..schema
    };
    let now = coming(Catalogue::read(session)?.outside(&plan.scope));
    let lost = lost(&coming(plan.outside.clone()), &now);
    match lost.is_empty() {
        true => Ok(()),
        false => Err(session.unsupported(format!(
            "what lies outside depends on what has to be made anew ({}); \
             restore the whole database, or drop it first and make it again afterwards",
            some(&lost)
        ))),
    }
}

/// Whether the scope is what the capture says, and the rest what it was.
pub(super) fn is_identical(
    session: &mut Session,
    plan: &Plan,
    image: &Image,
    warnings: &[String],
) -> Result<(), DatabaseError> {
    let catalogue = Catalogue::read_with_values(session, &plan.scope)?;
    let without = |mut schema: Schema| {
        schema.objects.retain(|object| !is_right(object));
        schema
    };
    let mut wanted = image.schema.clone();
    let mut found = catalogue.inside(&plan.scope);
    if !warnings.is_empty() {
        // Rights that could not be set are known to differ, and were named.
        (wanted, found) = (without(wanted), without(found));
    }
    let differences = first_differences(&wanted, &found);
    if !differences.is_empty() || wanted != found {
        return Err(not_identical(session, &differences));
    }
    if plan.scope.is_whole() {
        return Ok(());
    }
    let lost = lost(&plan.outside, &catalogue.outside(&plan.scope));
    match lost.is_empty() {
        true => Ok(()),
        false => Err(not_identical(session, &lost)),
    }
}

/// Whether tables were left alone after their rows had come. The rows were looked at then;
/// a trigger on changes of structure may have written to them since.
pub(super) fn nothing_written(
    session: &mut Session,
    plan: &Plan,
    image: &Image,
) -> Result<(), DatabaseError> {
    let [counting] = cells(session.one("SELECT current_setting('track_counts')")?);
    let rows = session.ask(
        "SELECT n.nspname, c.relname, pg_stat_get_xact_tuples_inserted(c.oid), \
           pg_stat_get_xact_tuples_updated(c.oid) + pg_stat_get_xact_tuples_deleted(c.oid) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'",
    )?;
    for row in rows {
        let [schema, table, inserted, others] = cells(row);
        let name = Name::new(schema, table);
        if plan.scope.unit_of_table(&name).is_none() {
            continue;
        }
        let shown = name.to_string();
        let Some(table) = image.tables.iter().find(|table| table.name == shown) else {
            continue; // of an extension
        };
        let written = match counting == "on" {
            true => inserted != table.rows.to_string() || others != "0",
            false => {
                let [count] =
                    cells(session.one(&format!("SELECT count(*) FROM ONLY {}", name.sql()))?);
                count != table.rows.to_string()
            }
        };
        if written {
            let why = format!("table `{shown}` was written to by a trigger on what restoring does");
            return Err(not_identical(session, &[why]));
        }
    }
    Ok(())
}

/// What was outside and is not as it was. Others may make something new there meanwhile.
fn lost(before: &Schema, after: &Schema) -> Vec<String> {
    let mut differences = first_differences(before, after);
    differences.retain(|difference| !difference.ends_with(" is new"));
    differences
}

fn not_identical(session: &Session, differences: &[String]) -> DatabaseError {
    DatabaseError::NotIdentical {
        address: session.place().address.clone(),
        why: some(differences),
    }
}

fn some(differences: &[String]) -> String {
    if differences.is_empty() {
        return "its structure differs".to_owned();
    }
    let named: Vec<&str> = differences.iter().take(NAMED).map(String::as_str).collect();
    let more = differences.len().saturating_sub(NAMED);
    match more {
        0 => named.join(", "),
        _ => format!("{}, and {more} more", named.join(", ")),
    }
}
