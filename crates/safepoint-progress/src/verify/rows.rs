//! The rows of one workspace in one table, in order, a page at a time.

use std::collections::VecDeque;

use safepoint_model::WorkspaceId;
use safepoint_store::{Sql, StoreError};

use crate::table::{self, StoredBinding, StoredDelivery, StoredMove, StoredRecord, StoredSignal};

/// A row that has a number and an entry.
pub(super) trait Numbered: Sized {
    fn number(&self) -> i64;
    fn entry(&self) -> i64;
    fn id(&self) -> Option<String>;
    fn after(
        sql: &mut dyn Sql,
        id: &WorkspaceId,
        number: i64,
        most: u32,
    ) -> Result<Vec<Self>, StoreError>;
}

macro_rules! numbered {
    ($($row:ident, $after:ident, |$this:ident| $id:expr;)*) => {$(
        impl Numbered for $row {
            fn number(&self) -> i64 {
                self.number
            }
            fn entry(&self) -> i64 {
                self.entry
            }
            fn id(&self) -> Option<String> {
                let $this = self;
                $id
            }
            fn after(
                sql: &mut dyn Sql,
                id: &WorkspaceId,
                number: i64,
                most: u32,
            ) -> Result<Vec<Self>, StoreError> {
                table::$after(sql, id, number, most)
            }
        }
    )*};
}

numbered! {
    StoredMove, moves_after, |_row| None;
    StoredBinding, bindings_after, |_row| None;
    StoredRecord, records_after, |row| Some(row.id.clone());
    StoredSignal, signals_after, |row| Some(row.id.clone());
    StoredDelivery, deliveries_after, |row| Some(row.signal.clone());
}

/// Rows that are read once, from the first to the last.
pub(super) struct Rows<T> {
    page: VecDeque<T>,
    /// Behind which row the next page begins; `None` when there is none.
    next: Option<i64>,
    /// How many are read at a time.
    most: u32,
}

impl<T: Numbered> Rows<T> {
    pub(super) fn new(most: u32) -> Self {
        Self {
            page: VecDeque::new(),
            next: Some(i64::MIN),
            most,
        }
    }

    pub(super) fn next(
        &mut self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
    ) -> Result<Option<T>, StoreError> {
        if let (true, Some(behind)) = (self.page.is_empty(), self.next) {
            self.page = T::after(sql, id, behind, self.most)?.into();
            let whole = self.page.len() >= self.most as usize;
            self.next = self.page.back().filter(|_| whole).map(T::number);
        }
        Ok(self.page.pop_front())
    }
}
