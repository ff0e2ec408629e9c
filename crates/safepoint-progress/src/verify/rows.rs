//! The rows of one workspace in one table, in order, a page at a time.

use std::collections::VecDeque;

use safepoint_model::WorkspaceId;
use safepoint_store::{Sql, StoreError};

use crate::table::{self, StoredBinding, StoredMove, StoredRecord};

/// A row that has its place among those of a workspace.
pub(super) trait Placed: Sized {
    /// What the rows are in the order of.
    type Place;

    fn place(&self) -> Self::Place;
    /// The rows behind a place, from the first one on where there is none.
    fn after(
        sql: &mut dyn Sql,
        id: &WorkspaceId,
        place: Option<&Self::Place>,
        most: u32,
    ) -> Result<Vec<Self>, StoreError>;
}

/// A row that has a number and an entry.
pub(super) trait Numbered: Placed {
    fn number(&self) -> i64;
    fn entry(&self) -> i64;
    fn id(&self) -> Option<String>;
}

impl Placed for StoredRecord {
    /// Its parent: that of the first is the empty text.
    type Place = String;

    fn place(&self) -> String {
        self.parent.clone().unwrap_or_default()
    }

    fn after(
        sql: &mut dyn Sql,
        id: &WorkspaceId,
        place: Option<&String>,
        most: u32,
    ) -> Result<Vec<Self>, StoreError> {
        table::records_after(sql, id, place.map(String::as_str), most)
    }
}

macro_rules! by_number {
    ($($row:ident, $after:ident;)*) => {$(
        impl Placed for $row {
            type Place = i64;

            fn place(&self) -> i64 {
                self.number
            }

            fn after(
                sql: &mut dyn Sql,
                id: &WorkspaceId,
                place: Option<&i64>,
                most: u32,
            ) -> Result<Vec<Self>, StoreError> {
                table::$after(sql, id, place.copied().unwrap_or(i64::MIN), most)
            }
        }
    )*};
}

by_number! {
    StoredMove, moves_after;
    StoredBinding, bindings_after;
}

macro_rules! numbered {
    ($($row:ident, |$this:ident| $id:expr;)*) => {$(
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
        }
    )*};
}

numbered! {
    StoredMove, |_row| None;
    StoredBinding, |_row| None;
    StoredRecord, |row| Some(row.id.clone());
}

/// Rows that are read once, from the first to the last.
pub(super) struct Rows<T: Placed> {
    page: VecDeque<T>,
    /// Behind which row the next page begins.
    behind: Option<T::Place>,
    /// Whether all pages were read.
    is_read: bool,
    /// How many are read at a time.
    most: u32,
}

impl<T: Placed> Rows<T> {
    pub(super) fn new(most: u32) -> Self {
        Self {
            page: VecDeque::new(),
            behind: None,
            is_read: false,
            most,
        }
    }

    pub(super) fn next(
        &mut self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
    ) -> Result<Option<T>, StoreError> {
        if self.page.is_empty() && !self.is_read {
            self.page = T::after(sql, id, self.behind.as_ref(), self.most)?.into();
            self.is_read = self.page.len() < self.most as usize;
            self.behind = self.page.back().map(T::place);
        }
        Ok(self.page.pop_front())
    }
}
