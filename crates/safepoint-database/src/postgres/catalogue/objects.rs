//! Everything with a definition that is no table, column or sequence.
//!
//! Each query answers with the schema, the table it belongs to, its kind, its name, and
//! how it is defined. The server writes the definitions; the path of names to look in is
//! empty while it does, so that they say which schema each name is from.

use super::super::name::shown_sql;

/// Schemas that are not the server's own.
pub(super) const USER: &str = "n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'";

/// The first number of an object that somebody made.
const FIRST: u32 = 16_384;

/// Whether something belongs to no extension; and, for a function, to no type that the
/// server made it for.
pub(super) fn own(class: &str, oid: &str) -> String {
    let internal = match class {
        "pg_proc" => ", 'i'",
        _ => "",
    };
    format!(
        "NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = '{class}'::regclass \
         AND e.objid = {oid} AND e.deptype IN ('e'{internal}))"
    )
}

/// A name with others in front of it, for people.
pub(super) fn path(parts: &[&str]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| shown_sql(part)).collect();
    parts.join(" || '.' || ")
}

/// All of them.
pub(super) fn queries(version: u32) -> Vec<String> {
    let mut queries = of_tables();
    queries.extend(views());
    queries.extend(types());
    queries.extend(routines());
    queries.extend(others());
    queries.extend(of_the_database(version));
    queries
}

/// What belongs to a table.
fn of_tables() -> Vec<String> {
    let table = path(&["n.nspname", "c.relname"]);
    let own = own("pg_class", "c.oid");
    let of = |kind: &str, leaf: &str, definition: &str, from: &str, condition: &str| {
        let name = path(&["n.nspname", "c.relname", leaf]);
        format!(
            "SELECT n.nspname, c.relname, '{kind}', {name}, {definition} FROM {from} \
             JOIN pg_namespace n ON n.oid = c.relnamespace WHERE {USER} AND {own} AND {condition}"
        )
    };
    let index = path(&["n.nspname", "i.relname"]);
    vec![
        format!(
            "SELECT * FROM (SELECT n.nspname, c.relname, 'properties', {table}, concat_ws(' ', \
               CASE WHEN c.relpersistence = 'u' THEN 'UNLOGGED' END, \
               CASE WHEN c.relkind = 'p' THEN 'PARTITION BY ' || pg_get_partkeydef(c.oid) END, \
               (SELECT CASE WHEN c.relispartition THEN 'PARTITION OF ' || min(h.inhparent::regclass::text) || ' ' \
                  || pg_get_expr(c.relpartbound, c.oid) \
                  ELSE 'INHERITS (' || string_agg(h.inhparent::regclass::text, ', ' ORDER BY h.inhseqno) || ')' END \
                FROM pg_inherits h WHERE h.inhrelid = c.oid), \
               CASE WHEN c.reloftype <> 0 THEN 'OF ' || format_type(c.reloftype, NULL) END, \
               'WITH (' || array_to_string(c.reloptions, ', ') || ')', \
               (SELECT 'TOAST (' || array_to_string(x.reloptions, ', ') || ')' FROM pg_class x WHERE x.oid = c.reltoastrelid), \
               (SELECT 'TABLESPACE ' || quote_ident(spcname) FROM pg_tablespace s WHERE s.oid = c.reltablespace), \
               (SELECT 'USING ' || quote_ident(amname) FROM pg_am m WHERE m.oid = c.relam AND amname <> 'heap'), \
               CASE c.relreplident WHEN 'n' THEN 'REPLICA IDENTITY NOTHING' WHEN 'f' THEN 'REPLICA IDENTITY FULL' \
                 WHEN 'i' THEN 'REPLICA IDENTITY USING INDEX' END, \
               CASE WHEN c.relrowsecurity THEN 'ROW LEVEL SECURITY' END, \
               CASE WHEN c.relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END, \
               (SELECT 'SERVER ' || quote_ident(srvname) || coalesce(' OPTIONS (' || array_to_string(f.ftoptions, ', ') || ')', '') \
                FROM pg_foreign_table f JOIN pg_foreign_server v ON v.oid = f.ftserver WHERE f.ftrelid = c.oid)) AS words \
             FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'f') AND {USER} AND {own}) found WHERE words <> ''"
        ),
        // An index that could not be built is not dumped either.
        format!(
            "SELECT n.nspname, c.relname, 'index', {index}, pg_get_indexdef(x.indexrelid) \
               || CASE WHEN x.indisclustered THEN ' CLUSTER' ELSE '' END \
               || CASE WHEN x.indisreplident THEN ' REPLICA IDENTITY' ELSE '' END \
               || coalesce((SELECT ' ATTACHED TO ' || h.inhparent::regclass::text FROM pg_inherits h \
                  WHERE h.inhrelid = x.indexrelid), '') \
             FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class c ON c.oid = x.indrelid \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE {USER} AND {own} AND (x.indisvalid OR c.relkind = 'p') AND NOT EXISTS (SELECT FROM pg_constraint k \
               WHERE k.conindid = x.indexrelid AND k.contype IN ('p', 'u', 'x'))"
        ),
        // Those that partitions have from their table get their names from the server.
        of(
            "constraint",
            "k.conname",
            "pg_get_constraintdef(k.oid)",
            "pg_constraint k JOIN pg_class c ON c.oid = k.conrelid",
            "k.contype IN ('p', 'u', 'x', 'c', 'f', 'n') AND (k.contype <> 'f' OR k.conparentid = 0)",
        ),
        of(
            "trigger",
            "t.tgname",
            "pg_get_triggerdef(t.oid) || CASE t.tgenabled WHEN 'O' THEN '' WHEN 'D' THEN ' DISABLED' \
             WHEN 'R' THEN ' ENABLED FOR REPLICAS' ELSE ' ENABLED ALWAYS' END",
            "pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid",
            "NOT t.tgisinternal",
        ),
        of(
            "rule",
            "r.rulename",
            "pg_get_ruledef(r.oid) || CASE r.ev_enabled WHEN 'O' THEN '' ELSE ' STATE ' || r.ev_enabled::text END",
            "pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class",
            "r.rulename <> '_RETURN'",
        ),
        of(
            "policy",
            "p.polname",
            "format('%s FOR %s TO %s', CASE WHEN p.polpermissive THEN 'PERMISSIVE' ELSE 'RESTRICTIVE' END, p.polcmd, \
               (SELECT string_agg(CASE WHEN r = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(r)) END, ', ' \
                  ORDER BY pg_get_userbyid(r)) FROM unnest(p.polroles) r)) \
             || coalesce(' USING (' || pg_get_expr(p.polqual, p.polrelid) || ')', '') \
             || coalesce(' WITH CHECK (' || pg_get_expr(p.polwithcheck, p.polrelid) || ')', '')",
            "pg_policy p JOIN pg_class c ON c.oid = p.polrelid",
            "true",
        ),
        of(
            "statistics",
            "s.stxname",
            "pg_get_statisticsobjdef(s.oid)",
            "pg_statistic_ext s JOIN pg_class c ON c.oid = s.stxrelid",
            "true",
        ),
    ]
}

fn views() -> [String; 1] {
    let name = path(&["n.nspname", "c.relname"]);
    let own = own("pg_class", "c.oid");
    [format!(
        "SELECT n.nspname, c.relname, CASE c.relkind WHEN 'v' THEN 'view' ELSE 'materialized view' END, {name}, \
           btrim(pg_get_viewdef(c.oid)) || coalesce(' WITH (' || array_to_string(c.reloptions, ', ') || ')', '') \
           || coalesce((SELECT string_agg(format(' DEFAULT OF %I %s', a.attname, pg_get_expr(d.adbin, d.adrelid)), '' \
                ORDER BY a.attnum) FROM pg_attrdef d JOIN pg_attribute a ON a.attrelid = d.adrelid AND a.attnum = d.adnum \
              WHERE d.adrelid = c.oid), '') \
           || CASE WHEN c.relkind = 'm' AND NOT c.relispopulated THEN ' WITH NO DATA' ELSE '' END \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind IN ('v', 'm') AND {USER} AND {own}"
    )]
}

fn types() -> [String; 1] {
    let name = path(&["n.nspname", "t.typname"]);
    let own = own("pg_type", "t.oid");
    // Arrays and the rows of tables come with what they are made of.
    [format!(
        "SELECT n.nspname, NULL, 'type', {name}, CASE t.typtype \
           WHEN 'e' THEN (SELECT 'ENUM (' || coalesce(string_agg(quote_literal(v.enumlabel), ', ' ORDER BY v.enumsortorder), '') \
             || ')' FROM pg_enum v WHERE v.enumtypid = t.oid) \
           WHEN 'd' THEN 'DOMAIN ' || format_type(t.typbasetype, t.typtypmod) \
             || coalesce(' DEFAULT ' || pg_get_expr(t.typdefaultbin, 0), '') \
             || CASE WHEN t.typnotnull THEN ' NOT NULL' ELSE '' END \
             || coalesce((SELECT string_agg(format(' CONSTRAINT %I %s', k.conname, pg_get_constraintdef(k.oid)), '' \
                  ORDER BY k.conname) FROM pg_constraint k WHERE k.contypid = t.oid AND k.contype = 'c'), '') \
           WHEN 'c' THEN (SELECT '(' || coalesce(string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), \
                ', ' ORDER BY a.attnum), '') || ')' FROM pg_attribute a \
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped) \
           WHEN 'r' THEN (SELECT format('RANGE OF %s', format_type(r.rngsubtype, NULL)) FROM pg_range r WHERE r.rngtypid = t.oid) \
           ELSE format('BASE %s %s', t.typinput::oid::regprocedure, t.typoutput::oid::regprocedure) END \
         FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace LEFT JOIN pg_class c ON c.oid = t.typrelid \
         WHERE t.typtype IN ('b', 'c', 'd', 'e', 'r') AND (t.typrelid = 0 OR c.relkind = 'c') \
           AND NOT EXISTS (SELECT FROM pg_type a WHERE a.typarray = t.oid) AND {USER} AND {own}"
    )]
}

fn routines() -> [String; 2] {
    let name = format!(
        "{} || '(' || pg_get_function_identity_arguments(p.oid) || ')'",
        path(&["n.nspname", "p.proname"])
    );
    let own = own("pg_proc", "p.oid");
    let from = "FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace";
    [
        format!(
            "SELECT n.nspname, NULL, CASE p.prokind WHEN 'p' THEN 'procedure' ELSE 'function' END, {name}, \
               btrim(pg_get_functiondef(p.oid), E' \\n') {from} WHERE p.prokind <> 'a' AND {USER} AND {own}"
        ),
        format!(
            "SELECT n.nspname, NULL, 'aggregate', {name}, format('(%s) %s %s %s %s', pg_get_function_arguments(p.oid), \
               a.aggtransfn::oid::regprocedure, a.aggfinalfn::oid::regprocedure, format_type(a.aggtranstype, NULL), a.agginitval) \
             {from} JOIN pg_aggregate a ON a.aggfnoid = p.oid WHERE {USER} AND {own}"
        ),
    ]
}

/// What few databases have. Their rows say it all but for the numbers in them.
fn others() -> Vec<String> {
    let simple = |kind: &str, class: &str, short: &str, definition: &str| {
        let name = path(&["n.nspname", &format!("o.{short}name")]);
        let own = own(class, "o.oid");
        format!(
            "SELECT n.nspname, NULL, '{kind}', {name}, {definition} FROM {class} o \
             JOIN pg_namespace n ON n.oid = o.{short}namespace WHERE o.oid >= {FIRST} AND {USER} AND {own}"
        )
    };
    let mut queries = vec![
        simple(
            "operator",
            "pg_operator",
            "opr",
            "format('%s %s', o.oid::regoperator, o.oprcode::oid::regprocedure)",
        ),
        simple(
            "operator class",
            "pg_opclass",
            "opc",
            "format('%s %s', format_type(o.opcintype, NULL), o.opcdefault)",
        ),
        simple(
            "operator family",
            "pg_opfamily",
            "opf",
            "(SELECT string_agg(format('%s %s', a.amopstrategy, a.amopopr::regoperator), ', ' \
               ORDER BY a.amopstrategy, a.amopopr::regoperator::text) FROM pg_amop a WHERE a.amopfamily = o.oid)",
        ),
        simple(
            "collation",
            "pg_collation",
            "coll",
            "(to_jsonb(o) - 'oid' - 'collnamespace' - 'collowner' - 'collversion' - 'collencoding')::text",
        ),
        simple(
            "conversion",
            "pg_conversion",
            "con",
            "o.conproc::oid::regprocedure::text",
        ),
        simple(
            "text search parser",
            "pg_ts_parser",
            "prs",
            "o.prsstart::oid::regprocedure::text",
        ),
        simple(
            "text search template",
            "pg_ts_template",
            "tmpl",
            "o.tmpllexize::oid::regprocedure::text",
        ),
        simple(
            "text search dictionary",
            "pg_ts_dict",
            "dict",
            "format('%s %s', (SELECT tmplname FROM pg_ts_template t WHERE t.oid = o.dicttemplate), o.dictinitoption)",
        ),
        simple(
            "text search configuration",
            "pg_ts_config",
            "cfg",
            "(SELECT string_agg(format('%s %s', m.maptokentype, m.mapdict::regdictionary), ', ' \
               ORDER BY m.maptokentype, m.mapseqno) FROM pg_ts_config_map m WHERE m.mapcfg = o.oid)",
        ),
    ];
    let cast = own("pg_cast", "o.oid");
    queries.push(format!(
        "SELECT NULL, NULL, 'cast', format('%s AS %s', format_type(o.castsource, NULL), format_type(o.casttarget, NULL)), \
           format('%s %s %s', o.castfunc::regprocedure, o.castcontext, o.castmethod) \
         FROM pg_cast o WHERE o.oid >= {FIRST} AND {cast}"
    ));
    queries
}

/// What lies in no schema.
fn of_the_database(version: u32) -> Vec<String> {
    let schema = shown_sql("n.nspname");
    let own_schema = own("pg_namespace", "n.oid");
    let event = own("pg_event_trigger", "v.oid");
    let table = path(&["n.nspname", "c.relname"]);
    // Newer servers publish columns and rows of a table too, and whole schemas.
    let narrowed = match version >= 150_000 {
        true => {
            "concat_ws(' ', (SELECT '(' || string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) || ')' \
               FROM pg_attribute a WHERE a.attrelid = r.prrelid AND a.attnum = ANY (r.prattrs)), \
               'WHERE ' || pg_get_expr(r.prqual, r.prrelid))"
        }
        false => "''",
    };
    let schemas = match version >= 150_000 {
        true => {
            "SELECT NULL, NULL, 'publication', format('%I of schema %I', p.pubname, n.nspname), '' \
             FROM pg_publication_namespace r JOIN pg_publication p ON p.oid = r.pnpubid \
             JOIN pg_namespace n ON n.oid = r.pnnspid"
        }
        false => "SELECT NULL, NULL, NULL, NULL, NULL WHERE false",
    };
    vec![
        format!("SELECT n.nspname, NULL, 'schema', {schema}, '' FROM pg_namespace n WHERE {USER} AND {own_schema}"),
        "SELECT NULL, NULL, 'extension', x.extname, format('VERSION %s SCHEMA %I', x.extversion, n.nspname) \
         FROM pg_extension x JOIN pg_namespace n ON n.oid = x.extnamespace"
            .to_owned(),
        format!(
            "SELECT NULL, NULL, 'event trigger', v.evtname, format('ON %s EXECUTE %s STATE %s TAGS %s', v.evtevent, \
               v.evtfoid::regprocedure, v.evtenabled, v.evttags) FROM pg_event_trigger v WHERE {event}"
        ),
        "SELECT NULL, NULL, 'publication', quote_ident(p.pubname), (to_jsonb(p) - 'oid' - 'pubowner')::text \
         FROM pg_publication p"
            .to_owned(),
        // That a table is published is said of the table.
        format!(
            "SELECT n.nspname, c.relname, 'publication', quote_ident(p.pubname) || ' of ' || {table}, {narrowed} \
             FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid \
             JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace"
        ),
        schemas.to_owned(),
    ]
}
