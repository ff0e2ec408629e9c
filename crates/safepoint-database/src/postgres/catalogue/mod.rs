//! The structure of a database, read from its catalogue.
//!
//! Everything that a restore brings back is listed here, in words that are the same for
//! the same state: the capture stores them, a restore compares them before it commits,
//! and people see their differences. What belongs to an extension is the extension's.

mod objects;
mod relations;
mod rights;

pub(super) use relations::set_value;

use std::collections::BTreeMap;

use super::name::Name;
use super::scope::{Scope, cells};
use super::session::Session;
use crate::image::{Object, Schema, Table};
use crate::{DatabaseError, Row};

/// Who owns something, and who may do what with it.
const RIGHTS: [&str; 3] = ["owner", "privileges", "default privileges"];

/// What is in a database, in scope or not.
#[derive(Debug, Default)]
pub(super) struct Catalogue {
    tables: Vec<(Name, Table)>,
    entries: Vec<Entry>,
    pub(super) sequences: Vec<Sequence>,
}

/// Something that is no table.
#[derive(Debug)]
struct Entry {
    /// The schema it lies in.
    schema: Option<String>,
    /// The table or view that it belongs to.
    relation: Option<String>,
    object: Object,
}

/// A sequence.
#[derive(Debug)]
pub(super) struct Sequence {
    pub(super) name: Name,
    /// The table that it numbers the rows of.
    relation: Option<Name>,
    definition: String,
    /// Where it stands, and whether that number was handed out.
    pub(super) value: Option<(i64, bool)>,
}

impl Catalogue {
    /// Reads all of it. Sequences are read without where they stand.
    pub(super) fn read(session: &mut Session) -> Result<Self, DatabaseError> {
        let mut entries = Vec::new();
        let version = session.version;
        for query in objects::queries(version)
            .into_iter()
            .chain(rights::queries())
        {
            for row in session.ask(&query)? {
                entries.push(entry(row));
            }
        }
        Ok(Self {
            tables: relations::tables(session)?,
            entries,
            sequences: relations::sequences(session)?,
        })
    }

    /// The same, with where the sequences in scope stand.
    pub(super) fn read_with_values(
        session: &mut Session,
        scope: &Scope,
    ) -> Result<Self, DatabaseError> {
        let mut catalogue = Self::read(session)?;
        let wanted: Vec<&mut Sequence> = catalogue
            .sequences
            .iter_mut()
            .filter(|sequence| sequence.unit(scope).is_some())
            .collect();
        relations::read_values(session, wanted)?;
        Ok(catalogue)
    }

    /// The structure of what is in scope.
    pub(super) fn inside(&self, scope: &Scope) -> Schema {
        self.select(&|schema, relation| scope.unit_of(schema, relation).is_some())
    }

    /// The structure of what is not. Sequences are without their numbers: others may use
    /// them at any moment.
    pub(super) fn outside(&self, scope: &Scope) -> Schema {
        self.select(&|schema, relation| scope.unit_of(schema, relation).is_none())
    }

    /// A digest of the structure of one unit, and one of the rights on it.
    pub(super) fn fingerprints(&self, scope: &Scope, unit: usize) -> (String, String) {
        let mut schema =
            self.select(&|schema, relation| scope.unit_of(schema, relation) == Some(unit));
        let numbers: BTreeMap<String, &String> = self
            .sequences
            .iter()
            .map(|sequence| (sequence.name.to_string(), &sequence.definition))
            .collect();
        // Where a sequence stands is no change of structure.
        for object in &mut schema.objects {
            if let ("sequence", Some(definition)) =
                (object.kind.as_str(), numbers.get(&object.name))
            {
                object.definition = (*definition).clone();
            }
        }
        let (rights, objects) = schema.objects.into_iter().partition(is_right);
        let digest = |tables: Vec<Table>, objects: Vec<Object>| {
            let text = serde_json::to_vec(&(tables, objects)).unwrap_or_default();
            blake3::hash(&text).to_hex().to_string()
        };
        (digest(schema.tables, objects), digest(Vec::new(), rights))
    }

    fn select(&self, wanted: &dyn Fn(Option<&str>, Option<&str>) -> bool) -> Schema {
        let tables = self
            .tables
            .iter()
            .filter(|(name, _)| wanted(Some(&name.schema), Some(&name.name)));
        let entries = self
            .entries
            .iter()
            .filter(|entry| wanted(entry.schema.as_deref(), entry.relation.as_deref()));
        let sequences = self.sequences.iter().filter(|sequence| {
            let home = sequence.home();
            wanted(Some(&home.schema), Some(&home.name))
        });
        let mut schema = Schema {
            tables: tables.map(|(_, table)| table.clone()).collect(),
            objects: entries
                .map(|entry| entry.object.clone())
                .chain(sequences.map(Sequence::object))
                .collect(),
        };
        schema.tables.sort_by(|a, b| a.name.cmp(&b.name));
        let key = |object: &Object| {
            let Object {
                kind,
                name,
                definition,
            } = object.clone();
            (kind, name, definition)
        };
        schema.objects.sort_by_cached_key(key);
        schema
    }
}

impl Sequence {
    /// The table that it belongs to, or itself.
    fn home(&self) -> &Name {
        self.relation.as_ref().unwrap_or(&self.name)
    }

    /// The unit that it is in.
    pub(super) fn unit(&self, scope: &Scope) -> Option<usize> {
        scope.unit_of_table(self.home())
    }

    fn object(&self) -> Object {
        let stands = match self.value {
            Some((value, true)) => format!(", last number {value}"),
            Some((value, false)) => format!(", next number {value}"),
            None => String::new(),
        };
        Object {
            kind: "sequence".to_owned(),
            name: self.name.to_string(),
            definition: format!("{}{stands}", self.definition),
        }
    }
}

/// Whether an object says who owns something, or who may do what.
pub(super) fn is_right(object: &Object) -> bool {
    RIGHTS.contains(&object.kind.as_str())
}

/// What is in `after` and not in `before`, or the other way round, in a few words.
pub(super) fn first_differences(before: &Schema, after: &Schema) -> Vec<String> {
    let listed = |schema: &Schema| {
        let mut listed = BTreeMap::new();
        for table in &schema.tables {
            let columns = serde_json::to_string(table).unwrap_or_default();
            listed.insert(("table".to_owned(), table.name.clone()), columns);
        }
        for object in &schema.objects {
            let key = (object.kind.clone(), object.name.clone());
            listed.insert(key, object.definition.clone());
        }
        listed
    };
    let (mut before, after) = (listed(before), listed(after));
    let mut found = Vec::new();
    for ((kind, name), definition) in after {
        match before.remove(&(kind.clone(), name.clone())) {
            Some(same) if same == definition => {}
            Some(_) => found.push(format!("{kind} `{name}` differs")),
            None => found.push(format!("{kind} `{name}` is new")),
        }
    }
    let gone = before.into_keys();
    found.extend(gone.map(|(kind, name)| format!("{kind} `{name}` is missing")));
    found
}

fn entry(row: Row) -> Entry {
    let mut row = row.into_iter();
    let mut cell = || row.next().flatten();
    let (schema, relation) = (cell(), cell());
    let object = Object {
        kind: cell().unwrap_or_default(),
        name: cell().unwrap_or_default(),
        definition: cell().unwrap_or_default(),
    };
    Entry {
        schema,
        relation,
        object,
    }
}

/// What a capture does not hold, in the words that the user reads. Only for a whole database.
pub(super) fn not_covered(session: &mut Session) -> Result<Vec<String>, DatabaseError> {
    session.column(
        "SELECT format('foreign server `%s` and its user mappings', srvname) FROM pg_foreign_server \
         UNION ALL SELECT format('subscription `%s`', subname) FROM pg_subscription s \
           JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = current_database() \
         UNION ALL SELECT format('large objects (%s)', count(*)) FROM pg_largeobject_metadata HAVING count(*) > 0 \
         UNION ALL SELECT format('the rows in tables of extension `%s`', extname) FROM pg_extension \
           WHERE extconfig IS NOT NULL \
         UNION ALL SELECT 'settings by ALTER DATABASE' WHERE EXISTS (SELECT FROM pg_db_role_setting s \
           JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database()) \
         ORDER BY 1",
    )
}

/// The rows of views that are filled from a query are not kept: a restore fills them again.
pub(super) fn filled_views(session: &mut Session) -> Result<Vec<Name>, DatabaseError> {
    // A view is behind all views that it reads, however many lie between.
    let rows = session.ask(
        "WITH RECURSIVE reads (view, source) AS ( \
           SELECT DISTINCT r.ev_class, d.refobjid FROM pg_rewrite r \
             JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid \
               AND d.refclassid = 'pg_class'::regclass AND d.refobjid <> r.ev_class \
             JOIN pg_class s ON s.oid = d.refobjid AND s.relkind IN ('v', 'm') \
         ), depths (view, depth) AS ( \
           SELECT oid, 0 FROM pg_class WHERE relkind IN ('v', 'm') \
           UNION SELECT reads.view, depths.depth + 1 FROM depths JOIN reads ON reads.source = depths.view \
             WHERE depths.depth < 1000 \
         ) SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
           JOIN depths ON depths.view = c.oid WHERE c.relkind = 'm' AND c.relispopulated \
             AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.classid = 'pg_class'::regclass \
               AND e.objid = c.oid AND e.deptype = 'e') \
           GROUP BY n.nspname, c.relname, c.oid ORDER BY max(depths.depth), n.nspname, c.relname",
    )?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let [schema, name] = cells(row);
            Name::new(schema, name)
        })
        .collect())
}

/// The kept columns of a table: those that are not computed from others.
pub(super) fn kept_columns(
    session: &mut Session,
) -> Result<BTreeMap<Name, Vec<String>>, DatabaseError> {
    let rows = session.ask(
        "SELECT n.nspname, c.relname, a.attname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped \
           AND a.attgenerated = '' \
         WHERE c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' \
         ORDER BY c.oid, a.attnum",
    )?;
    let mut columns: BTreeMap<Name, Vec<String>> = BTreeMap::new();
    for row in rows {
        let named = row.get(2).is_some_and(Option::is_some);
        let [schema, table, column] = cells(row);
        let known = columns.entry(Name::new(schema, table)).or_default();
        if named {
            known.push(column);
        }
    }
    Ok(columns)
}
