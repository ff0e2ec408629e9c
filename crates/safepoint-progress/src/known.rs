//! What the next record of a workspace is judged by: remembered from the one before it, or read.
//!
//! Whatever changes about a workspace is told in its stream. So what was found when its last
//! record was made still holds while that record is the last thing told there and nobody else
//! has written to the store, which a [`Mark`] says; then nothing is read. Where others write
//! too, and on a database that cannot say whether they do, everything is read each time.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use safepoint_model::{Digest, RecordId, WorkspaceId};
use safepoint_trail::{Mark, Stream, Writing};

use crate::ProgressError;
use crate::account::Account;
use crate::progress::Progress;
use crate::state::State;
use crate::table::{self, Made, StoredRecord};
use crate::taxonomy::Taxonomy;

/// How many workspaces to remember before starting over.
const MOST: usize = 1_024;

/// What was found of a workspace that is active and has a record.
pub(crate) struct Known {
    pub(crate) made: Arc<Made>,
    pub(crate) agent: Option<Digest>,
    pub(crate) has_directory: bool,
    pub(crate) taxonomy: Arc<Taxonomy>,
    pub(crate) account: Account,
    pub(crate) head: RecordId,
    pub(crate) number: i64,
}

/// The workspaces that are known, each as of a mark of its stream.
pub(crate) type KnownWorkspaces = Arc<Mutex<HashMap<WorkspaceId, (Mark, Arc<Known>)>>>;

/// The end of a chain.
pub(crate) enum End {
    None,
    Known(RecordId, i64),
    Read(StoredRecord),
}

impl End {
    /// The number that the next record has.
    pub(crate) fn next_number(&self) -> i64 {
        match self {
            Self::None => 1,
            Self::Known(_, number) => number + 1,
            Self::Read(row) => row.number + 1,
        }
    }
}

impl Progress {
    /// What is known of a workspace, if it still holds.
    pub(crate) fn known(
        &self,
        writing: &mut Writing<'_>,
        id: &WorkspaceId,
    ) -> Result<Option<Arc<Known>>, ProgressError> {
        let Some(mark) = writing.mark(&Stream::from(id)) else {
            return Ok(None);
        };
        let known = {
            let all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let found = all.get(id).filter(|(then, _)| *then == mark);
            found.map(|(_, known)| Arc::clone(known))
        };
        if cfg!(debug_assertions)
            && let Some(known) = &known
        {
            self.compare_known(writing, known)?;
        }
        Ok(known)
    }

    /// Remembers what a workspace is after its newest record, the last thing in its stream.
    pub(crate) fn remember(&self, writing: &Writing<'_>, known: Known) {
        let id = known.made.id.clone();
        let Some(mark) = writing.mark(&Stream::from(&id)) else {
            return;
        };
        let mut all = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert(id, (mark, Arc::new(known)));
    }

    /// Where a workspace stands, what it took and the end of its chain, as they are kept.
    pub(crate) fn as_kept(
        &self,
        writing: &mut Writing<'_>,
        id: &WorkspaceId,
    ) -> Result<(State, Account, End), ProgressError> {
        let (standing, _) = self.proved_standing(writing.sql(), id)?;
        let head = self.proved_head(writing.sql(), id)?;
        let account = table::account_with(writing.sql(), id, head.as_ref().map(Into::into))?;
        let end = head.map_or(End::None, End::Read);
        Ok((standing.state, account, end))
    }

    /// Finds what is remembered and no longer so, in every test.
    fn compare_known(&self, writing: &mut Writing<'_>, known: &Known) -> Result<(), ProgressError> {
        let id = &known.made.id;
        let (state, account, end) = self.as_kept(writing, id)?;
        debug_assert_eq!((state, account), (State::Active, known.account), "{id}");
        debug_assert!(
            matches!(&end, End::Read(row) if row.id == known.head.as_str() && row.number == known.number),
            "{id}"
        );
        debug_assert_eq!(self.proved_binding(writing.sql(), id)?, known.agent, "{id}");
        let place = table::place(writing.sql(), id)?;
        debug_assert_eq!(place.is_some(), known.has_directory, "{id}");
        Ok(())
    }
}
