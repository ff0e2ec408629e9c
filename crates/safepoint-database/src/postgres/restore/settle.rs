//! Schemas and extensions, which are kept where they still are; and views that are filled
//! from a query.

use super::super::manifest::Manifest;
use super::super::name::{literal, quote};
use super::super::session::Session;
use super::super::surroundings;
use super::Plan;
use crate::DatabaseError;

/// Makes the schemas that are gone. Whose they are is settled at the end.
pub(super) fn schemas(session: &mut Session, manifest: &Manifest) -> Result<(), DatabaseError> {
    let present = session.column("SELECT nspname FROM pg_namespace")?;
    for schema in &manifest.schemas {
        if !present.contains(&schema.name) {
            session.run(&format!("CREATE SCHEMA {}", quote(&schema.name)))?;
        }
    }
    Ok(())
}

/// Makes the extensions that are gone, in the version that they had.
pub(super) fn extensions(
    session: &mut Session,
    plan: &Plan,
    manifest: &Manifest,
) -> Result<(), DatabaseError> {
    if !plan.scope.is_whole() {
        return Ok(());
    }
    let present = surroundings::extensions(session)?;
    for extension in &manifest.extensions {
        if !present.contains(extension) {
            session.run(&format!(
                "CREATE EXTENSION {} WITH SCHEMA {} VERSION {}",
                quote(&extension.name),
                quote(&extension.schema),
                literal(&extension.version)
            ))?;
        }
    }
    Ok(())
}

/// Fills materialised views again. Nothing can be copied into them, so they hold what
/// their query finds in the restored rows; one that was out of date is not any more.
pub(super) fn fill_views(session: &mut Session, manifest: &Manifest) -> Result<(), DatabaseError> {
    if manifest.filled.is_empty() {
        return Ok(());
    }
    session.run("SET LOCAL search_path TO DEFAULT")?;
    for view in &manifest.filled {
        session.run(&format!("REFRESH MATERIALIZED VIEW {}", view.sql()))?;
    }
    session.run("SET LOCAL search_path TO ''")
}
