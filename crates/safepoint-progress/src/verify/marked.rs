//! Rows of one owner, beside the marks that its entries have of them.

use std::collections::{BTreeMap, VecDeque};

use safepoint_model::Digest;
use safepoint_store::{Sql, StoreError};

use super::compare::{EXTRA, Held, MISSING, OTHER};
use super::{Fault, Subject};
use crate::table::{Kept, KeptRow};

/// What an entry says of the rows that were written with it.
pub(crate) type RowsTold = BTreeMap<Subject, Vec<Digest>>;

/// The rows of one owner in several tables.
pub(super) struct Marked {
    owner: String,
    tables: Vec<Reading>,
}

/// The rows in one table, each read once, from the first to the last.
struct Reading {
    kept: &'static Kept,
    page: VecDeque<KeptRow>,
    /// Behind which row the next page begins; `None` when there is none.
    next: Option<i64>,
    /// How many hold.
    count: u64,
}

impl Marked {
    pub(super) fn new(owner: &str, tables: &[&'static Kept]) -> Self {
        let reading = |kept: &&'static Kept| Reading {
            kept,
            page: VecDeque::new(),
            next: Some(i64::MIN),
            count: 0,
        };
        Self {
            owner: owner.to_owned(),
            tables: tables.iter().map(reading).collect(),
        }
    }

    /// Compares the rows of an entry.
    pub(super) fn entry(
        &mut self,
        sql: &mut dyn Sql,
        most: u32,
        seq: u64,
        told: &RowsTold,
    ) -> Result<Held, StoreError> {
        for (subject, marks) in told {
            let of_it = |reading: &&mut Reading| reading.kept.subject == *subject;
            let Some(reading) = self.tables.iter_mut().find(of_it) else {
                return Ok(Err(Fault {
                    subject: *subject,
                    number: 1,
                    id: None,
                    reason: OTHER,
                }));
            };
            for mark in marks {
                let row = reading.next(sql, &self.owner, most)?;
                let Some(row) = row else {
                    return Ok(Err(reading.fault(Some(self.owner.clone()), MISSING)));
                };
                if row.mark != *mark || u64::try_from(row.entry) != Ok(seq) {
                    return Ok(Err(reading.fault(row.name, OTHER)));
                }
                reading.count += 1;
            }
        }
        Ok(Ok(()))
    }

    /// Whether anything is kept that no entry told of.
    pub(super) fn end(&mut self, sql: &mut dyn Sql, most: u32) -> Result<Held, StoreError> {
        for reading in &mut self.tables {
            if let Some(extra) = reading.next(sql, &self.owner, most)? {
                return Ok(Err(reading.fault(extra.name, EXTRA)));
            }
        }
        Ok(Ok(()))
    }
}

impl Reading {
    fn next(
        &mut self,
        sql: &mut dyn Sql,
        owner: &str,
        most: u32,
    ) -> Result<Option<KeptRow>, StoreError> {
        if let (true, Some(behind)) = (self.page.is_empty(), self.next) {
            self.page = self.kept.after(sql, owner, behind, most)?.into();
            let whole = self.page.len() >= most as usize;
            self.next = self.page.back().filter(|_| whole).map(|row| row.order);
        }
        Ok(self.page.pop_front())
    }

    fn fault(&self, id: Option<String>, reason: &'static str) -> Fault {
        Fault {
            subject: self.kept.subject,
            number: self.count + 1,
            id,
            reason,
        }
    }
}
