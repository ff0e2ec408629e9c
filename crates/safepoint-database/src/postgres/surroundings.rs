//! What objects lie in, by itself: schemas, with whose they are; and extensions.

use super::manifest::{ExtensionManifest, Grant, SchemaManifest};
use super::scope::{Scope, cells};
use super::session::Session;
use crate::DatabaseError;

/// The schemas in scope that are meant as a whole.
pub(super) fn schemas(
    session: &mut Session,
    scope: &Scope,
) -> Result<Vec<SchemaManifest>, DatabaseError> {
    let rows = session.ask(
        "SELECT n.nspname, pg_get_userbyid(n.nspowner), obj_description(n.oid, 'pg_namespace') FROM pg_namespace n \
         WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND NOT EXISTS (SELECT FROM pg_depend e \
           WHERE e.classid = 'pg_namespace'::regclass AND e.objid = n.oid AND e.deptype = 'e') ORDER BY n.oid",
    )?;
    let grants = session.ask(
        "SELECT n.nspname, pg_get_userbyid(g.grantor), CASE WHEN g.grantee = 0 THEN '' ELSE pg_get_userbyid(g.grantee) END, \
           g.privilege_type, g.is_grantable \
         FROM pg_namespace n, LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) g \
         ORDER BY n.oid, g.grantor <> n.nspowner, 2, 3, 4",
    )?;
    let mut schemas = Vec::new();
    for mut row in rows {
        let comment = row.pop().flatten();
        let [name, owner] = cells(row);
        if scope.unit_of(Some(&name), None).is_some() {
            schemas.push(SchemaManifest {
                name,
                owner,
                grants: Vec::new(),
                comment,
            });
        }
    }
    for row in grants {
        let [schema, grantor, grantee, privilege, grantable] = cells(row);
        if let Some(known) = schemas.iter_mut().find(|known| known.name == schema) {
            known.grants.push(Grant {
                grantor,
                grantee,
                privilege,
                grantable: grantable == "t",
            });
        }
    }
    Ok(schemas)
}

/// All extensions, in the order in which they were made.
pub(super) fn extensions(session: &mut Session) -> Result<Vec<ExtensionManifest>, DatabaseError> {
    let rows = session.ask(
        "SELECT x.extname, n.nspname, x.extversion FROM pg_extension x \
         JOIN pg_namespace n ON n.oid = x.extnamespace ORDER BY x.oid",
    )?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let [name, schema, version] = cells(row);
            ExtensionManifest {
                name,
                schema,
                version,
            }
        })
        .collect())
}
