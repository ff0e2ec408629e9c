//! Who owns what, and who may do what. This comes last: until then, everything that was
//! made anew is ours.
//!
//! Giving something to another role needs to be that role, or more. A step that we are
//! not allowed, or whose role is gone, is a warning and no failure: the rows are worth
//! more than the rights on them. What a step would have given is not given to anybody.

use super::super::manifest::{Grant, Manifest, SchemaManifest};
use super::super::name::{literal, quote};
use super::super::scope::cells;
use super::super::script::{Step, StepKind, join};
use super::super::session::Session;
use super::super::surroundings;
use super::Plan;
use crate::DatabaseError;

/// Sets owners and rights as they were. Steps that we are not allowed become warnings.
pub(super) fn set(
    session: &mut Session,
    plan: &Plan,
    manifest: &Manifest,
    last: &[Step],
    warnings: &mut Vec<String>,
) -> Result<(), DatabaseError> {
    let mut steps = reset(session, plan)?;
    // Schemas first: without a right on one, there is none on what lies in it.
    let present = surroundings::schemas(session, &plan.scope)?;
    for schema in &manifest.schemas {
        if let Some(now) = present.iter().find(|now| now.name == schema.name) {
            steps.extend(settle(schema, now));
        }
    }
    for kind in [StepKind::Owner, StepKind::Privilege] {
        let some = last.iter().filter(|step| step.kind == kind);
        steps.extend(some.map(|step| step.sql.clone()));
    }
    if steps.is_empty() {
        return Ok(());
    }
    let mark = "SAVEPOINT safepoint_rights";
    let release = "RELEASE SAVEPOINT safepoint_rights";
    let back = "ROLLBACK TO SAVEPOINT safepoint_rights";
    let all = format!(
        "{mark}; {}\n; {release}",
        join(steps.iter().map(String::as_str))
    );
    match session.run(&all) {
        Err(DatabaseError::Sql { .. }) => session.run(&format!("{back}; {release}"))?,
        other => return other,
    }
    // One by one, to find those that can be done.
    for step in steps {
        match session.run(&format!("{mark}; {step}\n; {release}")) {
            Err(DatabaseError::Sql { message }) => {
                session.run(&format!("{back}; {release}"))?;
                let step: Vec<&str> = step.split_whitespace().collect();
                warnings.push(format!("`{}` was not done: {message}", step.join(" ")));
            }
            other => other?,
        }
    }
    Ok(())
}

/// Takes back all rights beyond the usual ones, so that those that were there can be given
/// on top: rights given since, and those that the server gives to everything new.
fn reset(session: &mut Session, plan: &Plan) -> Result<Vec<String>, DatabaseError> {
    let role =
        "CASE WHEN x.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(x.grantee)) END";
    let rows = session.ask(&format!(
        "SELECT n.nspname, c.relname, CASE c.relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, \
           format('%I.%I', n.nspname, c.relname), quote_ident(pg_get_userbyid(c.relowner)), {role}, 'false' \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN LATERAL ( \
           SELECT g.grantee FROM aclexplode(c.relacl) g UNION \
           SELECT g.grantee FROM pg_attribute a, LATERAL aclexplode(a.attacl) g WHERE a.attrelid = c.oid) x ON true \
         WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND (c.relacl IS NOT NULL OR x.grantee IS NOT NULL) \
         UNION SELECT n.nspname, NULL, 'ROUTINE', p.oid::regprocedure::text, quote_ident(pg_get_userbyid(p.proowner)), \
           {role}, 'true' FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
           LEFT JOIN LATERAL aclexplode(p.proacl) x ON true WHERE p.proacl IS NOT NULL \
         UNION SELECT n.nspname, NULL, 'TYPE', format_type(t.oid, NULL), quote_ident(pg_get_userbyid(t.typowner)), \
           {role}, 'true' FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
           LEFT JOIN LATERAL aclexplode(t.typacl) x ON true WHERE t.typacl IS NOT NULL"
    ))?;
    let mut steps = Vec::new();
    for row in rows {
        let relation = row.get(1).cloned().flatten();
        let [schema, _, kind, identity, owner, role, public] = cells(row);
        let system = schema.starts_with("pg_") || schema == "information_schema";
        let unit = plan.scope.unit_of(Some(&schema), relation.as_deref());
        if system || !unit.is_some_and(|unit| plan.sets_rights(unit)) {
            continue;
        }
        if !role.is_empty() && role != owner {
            steps.push(format!(
                "REVOKE ALL ON {kind} {identity} FROM {role} CASCADE"
            ));
        }
        steps.push(format!("GRANT ALL ON {kind} {identity} TO {owner}"));
        if public == "true" {
            steps.push(format!("GRANT ALL ON {kind} {identity} TO PUBLIC"));
        }
    }
    steps.extend(reset_defaults(session, plan)?);
    Ok(steps)
}

/// The same for rights on what is made later.
fn reset_defaults(session: &mut Session, plan: &Plan) -> Result<Vec<String>, DatabaseError> {
    let rows = session.ask(
        "SELECT n.nspname, format('ALTER DEFAULT PRIVILEGES FOR ROLE %I', pg_get_userbyid(d.defaclrole)) \
             || coalesce(' IN SCHEMA ' || quote_ident(n.nspname), ''), \
           CASE d.defaclobjtype WHEN 'r' THEN 'TABLES' WHEN 'S' THEN 'SEQUENCES' WHEN 'f' THEN 'ROUTINES' \
             WHEN 'T' THEN 'TYPES' WHEN 'n' THEN 'SCHEMAS' ELSE 'LARGE OBJECTS' END, \
           CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(g.grantee)) END, \
           quote_ident(pg_get_userbyid(d.defaclrole)) \
         FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace \
         LEFT JOIN LATERAL (SELECT DISTINCT grantee FROM aclexplode(d.defaclacl)) g ON true",
    )?;
    let mut steps = Vec::new();
    for row in rows {
        let schema = row.first().cloned().flatten();
        let [_, alter, objects, role, owner] = cells(row);
        let unit = plan.scope.unit_of(schema.as_deref(), None);
        if !unit.is_some_and(|unit| plan.sets_rights(unit)) {
            continue;
        }
        if !role.is_empty() {
            steps.push(format!("{alter} REVOKE ALL ON {objects} FROM {role}"));
        }
        if schema.is_none() {
            // Without a schema, they stand in place of what the server gives by itself.
            steps.push(format!("{alter} GRANT ALL ON {objects} TO {owner}"));
            if ["ROUTINES", "TYPES"].contains(&objects.as_str()) {
                steps.push(format!("{alter} GRANT ALL ON {objects} TO PUBLIC"));
            }
        }
    }
    Ok(steps)
}

/// What makes a schema that of the capture.
fn settle(schema: &SchemaManifest, now: &SchemaManifest) -> Vec<String> {
    let mut steps = Vec::new();
    let name = quote(&schema.name);
    if schema.comment != now.comment {
        let comment = schema.comment.as_deref().map_or("NULL".to_owned(), literal);
        steps.push(format!("COMMENT ON SCHEMA {name} IS {comment}"));
    }
    if schema.owner != now.owner {
        let owner = quote(&schema.owner);
        steps.push(format!("ALTER SCHEMA {name} OWNER TO {owner}"));
    } else if schema.grants == now.grants {
        return steps;
    }
    let role = |name: &str| match name.is_empty() {
        true => "PUBLIC".to_owned(),
        false => quote(name),
    };
    let mut revoked: Vec<&str> = now
        .grants
        .iter()
        .map(|grant| grant.grantee.as_str())
        .collect();
    revoked.push(&schema.owner);
    revoked.sort_unstable();
    revoked.dedup();
    for grantee in revoked {
        let grantee = role(grantee);
        steps.push(format!(
            "REVOKE ALL ON SCHEMA {name} FROM {grantee} CASCADE"
        ));
    }
    for Grant {
        grantor,
        grantee,
        privilege,
        grantable,
    } in &schema.grants
    {
        let option = match grantable {
            true => " WITH GRANT OPTION",
            false => "",
        };
        let grant = format!(
            "GRANT {privilege} ON SCHEMA {name} TO {}{option}",
            role(grantee)
        );
        steps.push(match *grantor == schema.owner {
            true => grant,
            false => format!(
                "SET LOCAL ROLE {}; {grant}; SET LOCAL ROLE NONE",
                quote(grantor)
            ),
        });
    }
    steps
}
