//! Recovery: what was cut off is brought to its end by whoever comes next.
//!
//! A transaction is there as a whole or not at all, so little can be cut off:
//! deliveries, and moves that a signal asked for. [`Progress::resume`] is for
//! the beginning of every command and costs a look at the lines of waiting
//! signals. [`Progress::recover`] believes nothing: it verifies the trail,
//! builds the states anew from it and compares them with the tables. Timers
//! are computed from what is kept, and times are later than the newest entry
//! by construction: neither has anything to be recovered.
//!
//! Each step can be done again. Whoever is killed in the middle of a recovery
//! leaves less to do, and nothing else.

use std::collections::BTreeMap;

use safepoint_model::{Span, TaskId, Timestamp, WorkspaceId};
use safepoint_store::{Durability, Flow, Sql, fault};
use safepoint_trail::{Draft, FieldFilter, Kind, Query, Stream, TrailError, Writing, newest_time};
use serde::Serialize;

use crate::ProgressError;
use crate::agent::actor;
use crate::deliver::put_in_line;
use crate::presence::Presence;
use crate::progress::Progress;
use crate::table;
use crate::tell::protocol;
use crate::verify::{Asked, Fault, Subject};
use crate::violation::{ActionTaken, Violation, Wrong};

/// What a recovery found and did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recovered {
    /// How long nothing had been recorded before it.
    pub downtime: Span,
    /// How many workspaces are as the trail tells.
    pub workspaces_recovered: u64,
    /// How many are not.
    pub workspaces_failed: u64,
    /// How many signals were put into line anew, or were still in it and could be delivered.
    pub signals_requeued: u64,
    /// How many moves were made that a signal had asked for.
    pub transitions_made: u64,
    /// How many entries of the trail were read.
    pub trail_entries_examined: u64,
    /// How many entries could not be believed: with one there is no recovery.
    pub quarantined_entries: u64,
    /// What is not as the trail tells. The trail has it as `integrity_violation`.
    #[serde(skip)]
    pub faults: Vec<(WorkspaceId, Fault)>,
    /// The same of tasks.
    #[serde(skip)]
    pub task_faults: Vec<(TaskId, Fault)>,
}

impl Recovered {
    fn after(downtime: Span) -> Self {
        Self {
            downtime,
            workspaces_recovered: 0,
            workspaces_failed: 0,
            signals_requeued: 0,
            transitions_made: 0,
            trail_entries_examined: 0,
            quarantined_entries: 0,
            faults: Vec::new(),
            task_faults: Vec::new(),
        }
    }
}

impl Progress {
    /// Brings to its end what others left undone. For the beginning of every command.
    ///
    /// What waits is delivered; that needs no recovery to be told of, since it may be the work
    /// of somebody who is about to do it. Only if a process is found to have been cut off, it
    /// is recorded.
    pub fn resume(&self, presence: &Presence) -> Result<Option<Recovered>, ProgressError> {
        let since = self.silence()?;
        let delivered = self.deliver()?;
        if !presence.found_cut_off() {
            return Ok(None);
        }
        let mut recovered = Recovered::after(since);
        recovered.signals_requeued = delivered as u64;
        recovered.workspaces_recovered = self.trail.store().read(table::count_made)?;
        self.tell_recovered(&recovered)?;
        presence.settle()?;
        Ok(Some(recovered))
    }

    /// Recovers everything: the trail verified, the states compared, what was cut off done.
    ///
    /// A trail that does not verify stops it, with the first bad entry in the error. A last
    /// write that a crash has torn is not there at all, and no tampering.
    pub fn recover(&self) -> Result<Recovered, ProgressError> {
        let downtime = self.silence()?;
        let verification = self.trail.verify(|_| {})?;
        if let Some(bad) = verification.first_bad {
            return Err(TrailError::Tampered(bad).into());
        }
        fault::point("progress.recover.verified");
        let mut recovered = Recovered::after(downtime);
        recovered.trail_entries_examined = verification.checked;
        let (workspaces, tasks) = self.trail.store().read(|sql| {
            let tasks = table::all_tasks(sql)?;
            Ok::<_, ProgressError>((table::all_workspaces(sql)?, tasks))
        })?;
        let compared = self.compare_all(&workspaces, &tasks)?;
        recovered.faults = compared.lost;
        recovered.task_faults = compared.tasks;
        let mut left: BTreeMap<WorkspaceId, u64> = BTreeMap::new();
        let mut told = Vec::new();
        let mut asked = Vec::new();
        for (id, compared) in compared.workspaces {
            told.push(compared.told_by);
            match compared.verified.first_bad {
                // It is told of, and nothing else is done with it.
                Some(fault) => recovered.faults.push((id, fault)),
                None => {
                    left.insert(id.clone(), compared.emitted);
                    asked.extend(compared.asked.map(|asked| (id, asked)));
                }
            }
        }
        for (source, count) in told.into_iter().flatten() {
            if let Some(left) = left.get_mut(&source) {
                *left = left.saturating_sub(count);
            }
        }
        recovered.workspaces_failed = recovered.faults.len() as u64;
        fault::point("progress.recover.compared");
        for (id, fault) in &recovered.faults {
            self.tell_fault(id.as_str(), fault)?;
        }
        for (id, fault) in &recovered.task_faults {
            self.tell_fault(id.as_str(), fault)?;
        }
        for (id, asked) in asked {
            recovered.transitions_made += u64::from(self.make_up(&id, &asked)?);
            fault::point("progress.recover.moved");
        }
        left.retain(|_, left| *left > 0);
        self.line_up(left.keys())?;
        fault::point("progress.recover.lined_up");
        recovered.signals_requeued = self.deliver()? as u64;
        fault::point("progress.recover.delivered");
        let all = self.trail.store().read(table::count_made)?;
        recovered.workspaces_recovered = all.saturating_sub(recovered.workspaces_failed);
        self.tell_recovered(&recovered)?;
        fault::point("progress.recover.told");
        Ok(recovered)
    }

    /// How long ago the newest entry was made.
    fn silence(&self) -> Result<Span, ProgressError> {
        let newest = self.trail.store().read(newest_time)?;
        let newest = newest.map_or(0, Timestamp::as_micros);
        let silence = self.clock.now().as_micros().saturating_sub(newest);
        // A clock that was set back says nothing of how long it was.
        Ok(Span::from_micros(u64::try_from(silence).unwrap_or(0)))
    }

    /// Makes the move that a recorded signal asked for, if it is still missing.
    fn make_up(&self, id: &WorkspaceId, asked: &Asked) -> Result<bool, ProgressError> {
        self.trail.write(Durability::Sync, |writing| {
            let made = &table::made(writing.sql(), id)?;
            let (standing, _) = table::standing(writing.sql(), id)?;
            let since = table::last_move(writing.sql(), id)?;
            let missing = u64::try_from(since).is_ok_and(|since| since < asked.seq) || since < 0;
            if !missing || standing.moved_to(asked.to).is_err() {
                return Ok(false); // somebody else was faster
            }
            let reason = asked.reason.as_deref();
            self.transition(writing, made, asked.to, reason, actor(&made.role))?
                .map_err(ProgressError::from)?;
            Ok(true)
        })
    }

    /// Puts into line what these emitted, what was not delivered, and stands in none.
    fn line_up<'a>(
        &self,
        sources: impl Iterator<Item = &'a WorkspaceId>,
    ) -> Result<(), ProgressError> {
        for source in sources {
            let forgotten = |sql: &mut dyn Sql| -> Result<_, ProgressError> {
                let Some(parent) = table::parent_of(sql, source)? else {
                    return Ok(None); // there is nobody to tell
                };
                let (standing, _) = table::standing(sql, &parent)?;
                let forgotten = match standing.state.is_terminal() {
                    true => Vec::new(),
                    false => self.forgotten(sql, source, &parent)?,
                };
                Ok(Some((parent, forgotten)).filter(|(_, forgotten)| !forgotten.is_empty()))
            };
            if self.trail.store().read(forgotten)?.is_none() {
                continue;
            }
            self.trail.write(Durability::Sync, |writing| {
                if let Some((parent, forgotten)) = forgotten(writing.sql())? {
                    for emission in forgotten {
                        put_in_line(writing, &parent, emission)?;
                    }
                }
                Ok::<_, ProgressError>(())
            })?;
        }
        Ok(())
    }

    /// Records that a workspace is not as the trail tells, unless that is known.
    fn tell_fault(&self, id: &str, fault: &Fault) -> Result<(), ProgressError> {
        let subject = fault.id.as_deref().unwrap_or(id);
        let is_known = Query {
            streams: vec![Stream::store()],
            kind: Some("integrity_violation".to_owned()),
            fields: [("subject_id", subject), ("actual", fault.reason)]
                .map(|(name, value)| FieldFilter {
                    path: vec![name.to_owned()],
                    value: value.to_owned(),
                })
                .to_vec(),
            ..Query::default()
        };
        let mut known = false;
        self.trail.entries(&is_known, |_| {
            known = true;
            Ok::<_, ProgressError>(Flow::Enough)
        })?;
        if known {
            return Ok(());
        }
        let violation = fault.violation(id, ActionTaken::Flagged);
        self.trail.write(Durability::Sync, |writing| {
            self.record_violation(writing, &violation).map(drop)
        })
    }

    fn tell_recovered(&self, recovered: &Recovered) -> Result<(), ProgressError> {
        let body = serde_json::to_value(recovered).unwrap_or_default();
        self.trail
            .write(Durability::Sync, |writing: &mut Writing<'_>| {
                writing.append(Draft {
                    stream: Stream::store(),
                    actor: protocol(),
                    kind: Kind::fixed("recovery_completed").into(),
                    action_id: None,
                    body,
                })?;
                Ok(())
            })
    }
}

impl Fault {
    /// The same, as the trail has it.
    pub(crate) fn violation(&self, owner: &str, action_taken: ActionTaken) -> Violation {
        Violation {
            subject_type: self.subject,
            subject_id: self.id.clone().unwrap_or_else(|| owner.to_owned()),
            violation: match self.subject {
                Subject::Checkpoint => Wrong::HashMismatch,
                _ => Wrong::ChainBroken,
            },
            expected: None,
            actual: Some(self.reason.to_owned()),
            action_taken,
        }
    }
}
