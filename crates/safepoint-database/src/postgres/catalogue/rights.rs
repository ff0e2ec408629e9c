//! Who owns what, who may do what, and what is said about it in comments.

use super::super::name::shown_sql;
use super::objects::{USER, own, path};

/// The first number of an object that somebody made.
const FIRST: u32 = 16_384;

/// What a query needs to know of a kind of object that has an owner.
struct Owned {
    /// `c.oid` and so on come from here, and `n` is its schema.
    from: String,
    relation: &'static str,
    name: String,
    owner: &'static str,
    rights: &'static str,
    /// As `acldefault` takes it.
    kind: &'static str,
}

fn owned() -> [Owned; 4] {
    let (class, process, kind, schema) = (
        own("pg_class", "c.oid"),
        own("pg_proc", "p.oid"),
        own("pg_type", "t.oid"),
        own("pg_namespace", "n.oid"),
    );
    [
        Owned {
            // A sequence that numbers the rows of a table has the owner of the table.
            from: format!(
                "(SELECT c.*, s.nspname AS home_schema, s.relname AS home FROM pg_class c LEFT JOIN LATERAL ( \
                   SELECT tn.nspname, t.relname FROM pg_depend d JOIN pg_class t ON t.oid = d.refobjid \
                   JOIN pg_namespace tn ON tn.oid = t.relnamespace \
                   WHERE c.relkind = 'S' AND d.classid = 'pg_class'::regclass AND d.objid = c.oid \
                     AND d.refclassid = 'pg_class'::regclass AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')) s ON true) c \
                 JOIN pg_namespace n ON n.oid = c.relnamespace \
                 WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND {class}"
            ),
            relation: "coalesce(c.home, c.relname)",
            name: format!(
                "CASE c.relkind WHEN 'S' THEN 'sequence ' WHEN 'v' THEN 'view ' WHEN 'm' THEN 'materialized view ' \
                 ELSE 'table ' END || {}",
                path(&["n.nspname", "c.relname"])
            ),
            owner: "c.relowner",
            rights: "c.relacl",
            kind: "CASE c.relkind WHEN 'S' THEN 's'::\"char\" ELSE 'r'::\"char\" END",
        },
        Owned {
            from: format!(
                "pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE {process}"
            ),
            relation: "NULL",
            name: format!(
                "'routine ' || {} || '(' || pg_get_function_identity_arguments(p.oid) || ')'",
                path(&["n.nspname", "p.proname"])
            ),
            owner: "p.proowner",
            rights: "p.proacl",
            kind: "'f'::\"char\"",
        },
        Owned {
            from: format!(
                "pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid \
                 WHERE t.typtype IN ('b', 'c', 'd', 'e', 'r') AND (t.typrelid = 0 OR c.relkind = 'c') \
                 AND NOT EXISTS (SELECT FROM pg_type a WHERE a.typarray = t.oid) AND {kind}"
            ),
            relation: "NULL",
            name: format!("'type ' || {}", path(&["n.nspname", "t.typname"])),
            owner: "t.typowner",
            rights: "t.typacl",
            kind: "'T'::\"char\"",
        },
        Owned {
            from: format!("pg_namespace n WHERE {schema}"),
            relation: "NULL",
            name: format!("'schema ' || {}", shown_sql("n.nspname")),
            owner: "n.nspowner",
            rights: "n.nspacl",
            kind: "'n'::\"char\"",
        },
    ]
}

/// Rights in an order that is always the same.
fn sorted(rights: &str) -> String {
    format!(
        "(SELECT coalesce(string_agg(r::text, ' ' ORDER BY r::text COLLATE \"C\"), 'none') FROM unnest({rights}) r)"
    )
}

/// All of them, as those in [`super::objects`].
pub(super) fn queries() -> Vec<String> {
    let mut queries = Vec::new();
    for Owned {
        from,
        relation,
        name,
        owner,
        rights,
        kind,
    } in owned()
    {
        let schema = match relation {
            "NULL" => "n.nspname",
            _ => "coalesce(c.home_schema, n.nspname)",
        };
        // Rights that are written down although they are the usual ones say nothing.
        let present = sorted(rights);
        let usual = sorted(&format!("acldefault({kind}, {owner})"));
        queries.push(format!(
            "SELECT {schema}, {relation}, 'owner', {name}, pg_get_userbyid({owner}) FROM {from} AND {USER}"
        ));
        queries.push(format!(
            "SELECT {schema}, {relation}, 'privileges', {name}, {present} FROM {from} AND {USER} \
             AND {rights} IS NOT NULL AND {present} <> {usual}"
        ));
    }
    let column = path(&["n.nspname", "c.relname", "a.attname"]);
    let (present, own) = (sorted("a.attacl"), own("pg_class", "c.oid"));
    queries.push(format!(
        "SELECT n.nspname, c.relname, 'privileges', 'column ' || {column}, {present} FROM pg_attribute a \
         JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE cardinality(a.attacl) > 0 AND NOT a.attisdropped AND {USER} AND {own}"
    ));
    let present = sorted("d.defaclacl");
    queries.push(format!(
        "SELECT n.nspname, NULL, 'default privileges', format('of %s on %s in %s', pg_get_userbyid(d.defaclrole), \
           d.defaclobjtype, coalesce(n.nspname, 'all schemas')), {present} \
         FROM pg_default_acl d LEFT JOIN pg_namespace n ON n.oid = d.defaclnamespace"
    ));
    queries.push(comments());
    queries
}

/// What comments say, with what they say it of.
fn comments() -> String {
    // What a comment on something that has no schema of its own belongs to.
    format!(
        "SELECT coalesce(rn.nspname, q.nspname, n.nspname), r.relname, 'comment', i.type || ' ' || i.identity, d.description \
         FROM pg_description d \
         CROSS JOIN LATERAL pg_identify_object(d.classoid, d.objoid, d.objsubid) i \
         LEFT JOIN pg_namespace q ON quote_ident(q.nspname) = i.schema \
         LEFT JOIN pg_class k ON d.classoid = 'pg_class'::regclass AND k.oid = d.objoid \
         LEFT JOIN pg_index x ON x.indexrelid = k.oid \
         LEFT JOIN pg_depend s ON k.relkind = 'S' AND s.classid = 'pg_class'::regclass AND s.objid = k.oid \
           AND s.refclassid = 'pg_class'::regclass AND s.refobjsubid > 0 AND s.deptype IN ('a', 'i') \
         LEFT JOIN pg_constraint c ON d.classoid = 'pg_constraint'::regclass AND c.oid = d.objoid \
         LEFT JOIN pg_type y ON y.oid = c.contypid \
         LEFT JOIN pg_trigger t ON d.classoid = 'pg_trigger'::regclass AND t.oid = d.objoid \
         LEFT JOIN pg_rewrite w ON d.classoid = 'pg_rewrite'::regclass AND w.oid = d.objoid \
         LEFT JOIN pg_policy p ON d.classoid = 'pg_policy'::regclass AND p.oid = d.objoid \
         LEFT JOIN pg_statistic_ext e ON d.classoid = 'pg_statistic_ext'::regclass AND e.oid = d.objoid \
         LEFT JOIN pg_class r ON r.oid = coalesce(x.indrelid, s.refobjid, CASE WHEN k.relkind <> 'c' THEN k.oid END, \
           nullif(c.conrelid, 0), t.tgrelid, w.ev_class, p.polrelid, e.stxrelid) \
         LEFT JOIN pg_namespace rn ON rn.oid = r.relnamespace \
         LEFT JOIN pg_namespace n ON (d.classoid = 'pg_namespace'::regclass AND n.oid = d.objoid) OR n.oid = y.typnamespace \
         WHERE (d.objoid >= {FIRST} OR (d.classoid = 'pg_namespace'::regclass AND n.nspname = 'public')) \
           AND d.classoid <> 'pg_largeobject'::regclass \
           AND coalesce(rn.nspname, q.nspname, n.nspname, '') !~ '^pg_' \
           AND NOT EXISTS (SELECT FROM pg_depend m WHERE m.deptype = 'e' AND m.classid = coalesce(r.tableoid, d.classoid) \
             AND m.objid = coalesce(r.oid, d.objoid))"
    )
}
