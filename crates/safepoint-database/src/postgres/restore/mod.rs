//! A database made what a capture says, in place and in one transaction.
//!
//! Either all of it is committed, after it was compared with the capture, or nothing is:
//! whatever fails, up to the death of either side, leaves the database as it was.
//!
//! ```text
//! lock what is in scope
//!   ├ a unit whose structure has not changed is kept: emptied and filled again
//!   └ any other is cleared away and made anew
//! rows ── constraints, indexes, triggers ── owners and rights ── views ── event triggers
//! compare ── commit
//! ```

mod clear;
mod keys;
mod rights;
mod settle;
mod verify;

use std::collections::BTreeSet;

use super::capture::{lock, look_at, source};
use super::catalogue::{Catalogue, set_value};
use super::manifest::{Manifest, TableManifest, finish_piece, read_json, structure_piece};
use super::name::Name;
use super::scope::{Extent, Relation, Scope, Unit, family, relations};
use super::script::{Step, StepKind, join};
use super::session::{Session, settings};
use crate::address::covers_name;
use crate::image::Schema;
use crate::{Contents, Database, DatabaseError, Engine, Image, Restored, TableImage};

/// The key of the lock that keeps two restores of one database apart: "SafR".
const LOCK: i64 = 0x5361_6652;

pub(crate) fn restore(
    database: &Database,
    image: &Image,
    contents: &dyn Contents,
) -> Result<Restored, DatabaseError> {
    let address = database.address.to_string();
    let unsupported = |why: &str| DatabaseError::Unsupported {
        address: address.clone(),
        why: why.to_owned(),
    };
    if image.engine != Engine::Postgres {
        return Err(unsupported("the capture is of another kind of database"));
    }
    let manifest = Manifest::read(image, contents, &address)?;
    let asked = database.address.only();
    let covered = manifest
        .only
        .iter()
        .all(|given| asked.iter().any(|known| covers_name(known, given)));
    if !asked.is_empty() && (manifest.only.is_empty() || !covered) {
        return Err(unsupported(
            "the capture holds more than is to be restored; restore all that it holds",
        ));
    }
    let mut session = Session::open(database)?;
    let mut work = Work {
        database,
        image,
        manifest: &manifest,
        contents,
        warnings: Vec::new(),
    };
    match work.run(&mut session) {
        Ok(()) => Ok(Restored {
            warnings: work.warnings,
        }),
        Err(error) => {
            session.roll_back();
            Err(error)
        }
    }
}

/// One restore.
struct Work<'a> {
    database: &'a Database,
    image: &'a Image,
    manifest: &'a Manifest,
    contents: &'a dyn Contents,
    warnings: Vec<String>,
}

/// What is to become of the units.
struct Plan {
    scope: Scope,
    /// By number: which are made anew.
    anew: BTreeSet<usize>,
    /// By number: which are kept, and only their rights are set again.
    rights: BTreeSet<usize>,
    /// The tables that are in scope now.
    present: Vec<Relation>,
    /// What is not in scope, and must not change.
    outside: Schema,
}

impl Plan {
    fn is_anew(&self, table: &Name) -> bool {
        let unit = self.scope.unit_of_table(table);
        unit.is_some_and(|unit| self.anew.contains(&unit))
    }

    fn is_kept(&self, table: &Name) -> bool {
        let unit = self.scope.unit_of_table(table);
        unit.is_some_and(|unit| !self.anew.contains(&unit))
    }

    /// Whether the rights on a unit are set again.
    fn sets_rights(&self, unit: usize) -> bool {
        self.anew.contains(&unit) || self.rights.contains(&unit)
    }
}

impl Work<'_> {
    fn run(&mut self, session: &mut Session) -> Result<(), DatabaseError> {
        session.run(&format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; {} SELECT pg_advisory_xact_lock({LOCK})",
            settings(session.version, self.database.access.lock_timeout)
        ))?;
        let plan = self.plan(session)?;
        let keys = keys::take(session, &plan)?;
        clear::clear(session, &plan, self.manifest)?;
        if !plan.scope.is_whole() {
            verify::nothing_lost(session, &plan, &keys)?;
        }
        settle::schemas(session, self.manifest)?;
        settle::extensions(session, &plan, self.manifest)?;
        let mut last = Vec::new();
        self.make(session, &plan, structure_piece, &mut last)?;
        self.fill(session, &plan)?;
        self.make(session, &plan, finish_piece, &mut last)?;
        keys.give_back(session)?;
        rights::set(session, &plan, self.manifest, &last, &mut self.warnings)?;
        settle::fill_views(session, self.manifest)?;
        let watching = last.iter().filter(|step| step.kind == StepKind::Watch);
        session.run(&join(watching.map(|step| step.sql.as_str())))?;
        verify::is_identical(session, &plan, self.image, &self.warnings)?;
        verify::nothing_written(session, &plan, self.image)?;
        session.commit()
    }

    /// Locks what is in scope, and finds out what has to be made anew.
    fn plan(&self, session: &mut Session) -> Result<Plan, DatabaseError> {
        let known = relations(session)?;
        let units = self.manifest.units.iter().map(|unit| {
            let captured = unit.tables.iter().cloned();
            let tables = match &unit.extent {
                // Partitions that came since belong to it too.
                Extent::Table(name) => captured.chain(family(name, &known)).collect(),
                _ => BTreeSet::new(),
            };
            Unit {
                extent: unit.extent.clone(),
                tables,
            }
        });
        let scope = Scope {
            units: units.collect(),
        };
        let present = scope.select(&known);
        lock(session, &present, "ACCESS EXCLUSIVE")?;
        let mut plan = Plan {
            anew: BTreeSet::new(),
            rights: BTreeSet::new(),
            present,
            outside: Schema::default(),
            scope,
        };
        if plan.scope.is_whole() {
            plan.anew.insert(0);
            return Ok(plan);
        }
        let catalogue = Catalogue::read(session)?;
        plan.outside = catalogue.outside(&plan.scope);
        for (number, unit) in self.manifest.units.iter().enumerate() {
            let (structure, privileges) = catalogue.fingerprints(&plan.scope, number);
            if structure != unit.structure {
                plan.anew.insert(number);
            } else if privileges != unit.privileges {
                plan.rights.insert(number);
            }
        }
        Ok(plan)
    }

    /// Runs the scripts of the units that are made anew. Who owns what, and who may do
    /// what, is put off into `last`: until then everything is ours.
    fn make(
        &self,
        session: &mut Session,
        plan: &Plan,
        piece: fn(&str) -> String,
        last: &mut Vec<Step>,
    ) -> Result<(), DatabaseError> {
        let address = self.database.address.to_string();
        for (number, unit) in self.manifest.units.iter().enumerate() {
            if !plan.sets_rights(number) {
                continue;
            }
            let name = piece(&unit.label);
            let steps: Vec<Step> = read_json(self.image, &name, self.contents, &address)?;
            let (structure, rights): (Vec<Step>, Vec<Step>) = steps
                .into_iter()
                .partition(|step| step.kind == StepKind::Structure);
            last.extend(rights);
            if plan.anew.contains(&number) {
                session.run(&join(structure.iter().map(|step| step.sql.as_str())))?;
            }
        }
        Ok(())
    }

    /// The rows of all tables, each looked at again while the server still has it at hand;
    /// and where the sequences stood.
    fn fill(&self, session: &mut Session, plan: &Plan) -> Result<(), DatabaseError> {
        let kept: Vec<String> = self
            .manifest
            .tables
            .iter()
            .filter(|table| plan.is_kept(&table.name))
            .map(|table| format!("ONLY {}", table.name.sql()))
            .collect();
        if !kept.is_empty() {
            session.run(&format!("TRUNCATE {}", kept.join(", ")))?;
        }
        for table in &self.manifest.tables {
            self.fill_table(session, table)?;
        }
        let mut script = String::new();
        for sequence in &self.manifest.sequences {
            // Where a sequence stands is no part of a transaction, but which file it stands
            // in is: with a file of its own, a roll back finds the old number again.
            script.push_str(&format!("ALTER SEQUENCE {} RESTART; ", sequence.name.sql()));
            let set = set_value(&sequence.name, sequence.value, sequence.called);
            script.push_str(&set);
        }
        session.run(&script)
    }

    fn fill_table(
        &self,
        session: &mut Session,
        table: &TableManifest,
    ) -> Result<(), DatabaseError> {
        let name = table.name.to_string();
        let differs = |why: &str| DatabaseError::NotIdentical {
            address: self.database.address.to_string(),
            why: format!("table `{name}` {why}"),
        };
        let wanted = self.image.tables.iter().find(|known| known.name == name);
        let Some(TableImage {
            rows,
            checksum,
            data: Some(data),
            ..
        }) = wanted
        else {
            return Err(differs("was captured without its rows"));
        };
        // What a check or a computed column calls may count on the usual path. Names in rows
        // are written as they were: with the schema in front.
        session.run("SET LOCAL search_path TO DEFAULT")?;
        let taken = session.copy_in(&source(table), &mut |take| self.contents.copy(data, take))?;
        session.run("SET LOCAL search_path TO ''")?;
        if taken != *rows {
            return Err(differs(&format!("took {taken} of {rows} rows")));
        }
        match look_at(session, table)? == (*rows, *checksum) {
            true => Ok(()),
            false => Err(differs("has other rows than were captured")),
        }
    }
}
