//! Which part of a database is meant: all of it, schemas, or tables.
//!
//! A scope consists of units. Each is captured by itself and brought back by itself, so
//! that a table that has not changed its structure need not be made anew because another
//! one has.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::name::{Name, shown};
use super::session::Session;
use crate::address::covers_name;
use crate::{Address, DatabaseError};

/// What is brought back together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Extent {
    /// Everything.
    Database,
    /// A schema and all that lies in it.
    Schema(String),
    /// A table, with its partitions when it has some.
    Table(Name),
}

/// One unit.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) extent: Extent,
    /// The tables of a unit that is a table.
    pub(super) tables: BTreeSet<Name>,
}

/// All units.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    pub(super) units: Vec<Unit>,
}

/// A table that is in the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Relation {
    pub(super) name: Name,
    /// `r` for a table, `p` for one that has partitions, `f` for one that is elsewhere.
    pub(super) kind: String,
    /// Whether it belongs to an extension.
    extension: bool,
    /// The tables that it is a partition of, near and far.
    ancestors: Vec<Name>,
}

impl Scope {
    /// What `address` means among these tables.
    pub(super) fn resolve(
        address: &Address,
        relations: &[Relation],
        session: &mut Session,
    ) -> Result<Self, DatabaseError> {
        let mut units = Vec::new();
        if address.only().is_empty() {
            units.push(Unit {
                extent: Extent::Database,
                tables: BTreeSet::new(),
            });
        }
        // Schemas first: a table in one of them needs no unit of its own.
        let (schemas, tables): (Vec<_>, Vec<_>) =
            address.only().iter().partition(|name| name.ends_with(".*"));
        for given in schemas {
            let names = session.column(
                "SELECT nspname FROM pg_catalog.pg_namespace \
                 WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'",
            )?;
            let wanted = given.strip_suffix(".*").unwrap_or(given);
            let found = names.into_iter().find(|name| shown(name) == wanted);
            let schema = found.ok_or_else(|| not_found("schema", given, address))?;
            units.push(Unit {
                extent: Extent::Schema(schema),
                tables: BTreeSet::new(),
            });
        }
        let mut named = Vec::new();
        for given in tables {
            let found = relations
                .iter()
                .find(|relation| covers_name(given, &relation.name.to_string()));
            let found = found.ok_or_else(|| not_found("table", given, address))?;
            if found.extension {
                return Err(session.unsupported(format!("table `{given}` belongs to an extension")));
            }
            named.push(found);
        }
        for found in &named {
            // A partition whose table is named too comes with that one.
            let above = |other: &&Relation| found.ancestors.contains(&other.name);
            let covered = named.iter().any(above)
                || units.iter().any(|unit: &Unit| unit.has_table(&found.name));
            if !covered {
                units.push(Unit {
                    extent: Extent::Table(found.name.clone()),
                    tables: family(&found.name, relations).collect(),
                });
            }
        }
        Ok(Self { units })
    }

    /// The unit that something is in, by its schema and the table it belongs to.
    pub(super) fn unit_of(&self, schema: Option<&str>, relation: Option<&str>) -> Option<usize> {
        self.units.iter().position(|unit| match &unit.extent {
            Extent::Database => true,
            Extent::Schema(known) => schema == Some(known.as_str()),
            Extent::Table(_) => match (schema, relation) {
                (Some(schema), Some(relation)) => {
                    unit.tables.contains(&Name::new(schema, relation))
                }
                _ => false,
            },
        })
    }

    /// The unit that a table is in.
    pub(super) fn unit_of_table(&self, table: &Name) -> Option<usize> {
        self.unit_of(Some(&table.schema), Some(&table.name))
    }

    /// The tables in scope, but not those of extensions.
    pub(super) fn select(&self, relations: &[Relation]) -> Vec<Relation> {
        let own = relations.iter().filter(|relation| !relation.extension);
        own.filter(|relation| self.unit_of_table(&relation.name).is_some())
            .cloned()
            .collect()
    }

    /// Whether it is the whole database.
    pub(super) fn is_whole(&self) -> bool {
        self.units
            .iter()
            .any(|unit| unit.extent == Extent::Database)
    }
}

impl Unit {
    /// How an address gives it, with its schema; nothing for the whole database.
    pub(super) fn given(&self) -> Option<String> {
        match &self.extent {
            Extent::Database => None,
            Extent::Schema(schema) => Some(format!("{}.*", shown(schema))),
            Extent::Table(table) => Some(table.to_string()),
        }
    }

    fn has_table(&self, table: &Name) -> bool {
        match &self.extent {
            Extent::Database => true,
            Extent::Schema(schema) => *schema == table.schema,
            Extent::Table(_) => self.tables.contains(table),
        }
    }
}

/// A table and its partitions.
pub(super) fn family<'a>(
    table: &'a Name,
    relations: &'a [Relation],
) -> impl Iterator<Item = Name> + 'a {
    let partitions = relations
        .iter()
        .filter(move |relation| relation.ancestors.contains(table));
    let partitions = partitions.map(|relation| relation.name.clone());
    partitions.chain(std::iter::once(table.clone()))
}

/// All tables that are not the server's own, sorted by name.
pub(super) fn relations(session: &mut Session) -> Result<Vec<Relation>, DatabaseError> {
    let rows = session.ask(
        "SELECT n.nspname, c.relname, c.relkind, \
           EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.classid = 'pg_catalog.pg_class'::pg_catalog.regclass \
             AND e.objid = c.oid AND e.deptype = 'e'), \
           a.nspname, a.relname \
         FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
         LEFT JOIN LATERAL (SELECT s.nspname, p.relname FROM pg_catalog.pg_partition_ancestors(c.oid) x \
           JOIN pg_catalog.pg_class p ON p.oid = x AND p.oid <> c.oid \
           JOIN pg_catalog.pg_namespace s ON s.oid = p.relnamespace) a ON c.relispartition \
         WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'",
    )?;
    let mut relations: Vec<Relation> = Vec::new();
    for row in rows {
        let [schema, name, kind, extension, above_schema, above] = cells(row);
        let ancestors = match (above_schema.is_empty(), above.is_empty()) {
            (false, false) => vec![Name::new(above_schema, above)],
            _ => Vec::new(),
        };
        relations.push(Relation {
            name: Name::new(schema, name),
            kind,
            extension: extension == "t",
            ancestors,
        });
    }
    relations.sort();
    // One row came for each table above.
    relations.dedup_by(|next, first| {
        let same = next.name == first.name;
        if same {
            first.ancestors.append(&mut next.ancestors);
        }
        same
    });
    Ok(relations)
}

/// The cells of a row, NULL as an empty text.
pub(super) fn cells<const COUNT: usize>(row: crate::Row) -> [String; COUNT] {
    let mut row = row.into_iter();
    std::array::from_fn(|_| row.next().flatten().unwrap_or_default())
}

fn not_found(what: &'static str, name: &str, address: &Address) -> DatabaseError {
    DatabaseError::NotFound {
        what,
        name: name.to_owned(),
        address: address.whole().to_string(),
    }
}
