//! Reading a chain: its head, its newest final record, all of it. Whatever state the workspace is in.

use safepoint_model::{RecordId, WorkspaceId, json as strict};
use serde::Serialize;

use crate::record::{self, Confidence, Record, Status};
use crate::state::State;
use crate::table::{self, StoredRecord};
use crate::{Progress, ProgressError};

/// How one workspace is doing, for whoever looks at all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Which workspace.
    pub workspace_id: WorkspaceId,
    /// Where it stands.
    pub state: State,
    /// How long its chain is.
    pub length: u64,
    /// The end of its chain.
    pub head: Option<RecordId>,
    /// Whether the agent considers that done.
    pub status: Option<Status>,
    /// How sure the agent is of it.
    pub confidence: Option<Confidence>,
    /// Whether the end of its chain or the state it is in is not what was written. Nothing
    /// more is said of such a chain.
    pub tampered: bool,
}

/// A chain as it was found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// The records that are what was written, the first one first.
    pub records: Vec<Record>,
    /// The ids of those that are not.
    pub tampered: Vec<String>,
}

/// The record in a row, if the row is what was written.
pub(crate) fn opened(
    workspace: &WorkspaceId,
    stored: &StoredRecord,
) -> Result<Record, ProgressError> {
    let tampered = || ProgressError::Tampered {
        what: "checkpoint",
        id: stored.id.clone(),
    };
    let found: Record =
        strict::read_as(&stored.body, strict::Limits::default()).map_err(|_| tampered())?;
    let holds = record::proof(&found.id, &stored.body).as_bytes().as_slice() == stored.proof
        && found.id.as_str() == stored.id
        && found.workspace == *workspace
        && found.parent.as_ref().map(RecordId::as_str) == stored.parent.as_deref()
        && found.status.as_str() == stored.status
        && found.confidence.as_str() == stored.confidence
        && found.timestamp.as_micros() == stored.time;
    if holds { Ok(found) } else { Err(tampered()) }
}

impl Progress {
    /// The end of the chain.
    pub fn head(&self, id: &WorkspaceId) -> Result<Option<Record>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            table::head(sql, id)?
                .map(|stored| opened(id, &stored))
                .transpose()
        })
    }

    /// The most recent final record: the deliverable, which need not be the head.
    pub fn newest_final(&self, id: &WorkspaceId) -> Result<Option<Record>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            table::newest_final(sql, id)?
                .map(|stored| opened(id, &stored))
                .transpose()
        })
    }

    /// The whole chain, for whoever looks: what is not what was written is only named.
    pub fn found(&self, id: &WorkspaceId) -> Result<Found, ProgressError> {
        let chain = self.trail.store().read(|sql| {
            table::made(sql, id)?;
            Ok::<_, ProgressError>(table::chain(sql, id)?)
        })?;
        let mut found = Found::default();
        for stored in chain {
            match opened(id, &stored) {
                Ok(record) => found.records.push(record),
                Err(_) => found.tampered.push(stored.id),
            }
        }
        Ok(found)
    }

    /// One record of a chain.
    pub fn record_of(
        &self,
        workspace: &WorkspaceId,
        id: &RecordId,
    ) -> Result<Option<Record>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, workspace)?;
            table::record(sql, workspace, id)?
                .map(|stored| opened(workspace, &stored))
                .transpose()
        })
    }

    /// The whole chain, the first record first.
    pub fn log(&self, id: &WorkspaceId) -> Result<Vec<Record>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            let chain = table::chain(sql, id)?;
            chain.iter().map(|stored| opened(id, stored)).collect()
        })
    }

    /// How all workspaces are doing: states, heads and how sure their agents are.
    pub fn overview(&self) -> Result<Vec<Link>, ProgressError> {
        self.trail.store().read(|sql| {
            let mut links = Vec::new();
            for made in table::all_made(sql)? {
                let (standing, _) = table::standing(sql, &made.id)?;
                let stored = table::head(sql, &made.id)?;
                // One that was tampered with must not hide all the others.
                let head = stored.as_ref().map(|stored| opened(&made.id, stored));
                let moved = self.proved_standing(sql, &made.id);
                let tampered = matches!(head, Some(Err(_))) || moved.is_err();
                let head = head.and_then(Result::ok);
                links.push(Link {
                    workspace_id: made.id,
                    state: standing.state,
                    length: stored.map_or(0, |stored| u64::try_from(stored.number).unwrap_or(0)),
                    status: head.as_ref().map(|head| head.status),
                    confidence: head.as_ref().map(|head| head.confidence),
                    head: head.map(|head| head.id),
                    tampered,
                });
            }
            Ok(links)
        })
    }
}
