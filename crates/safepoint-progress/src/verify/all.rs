//! All workspaces and tasks at once: the trail is read from its beginning to its end, and each
//! entry is compared with what is kept of its owner. Only after the trail itself was verified.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use safepoint_model::{TaskId, WorkspaceId};
use safepoint_store::{Sql, StoreError};
use safepoint_trail::Brief;

use super::compare::{Compare, MISSING};
use super::page::{Page, Place};
use super::task::CompareTask;
use super::{Compared, Fault, Subject, fault_in};
use crate::table::NotEmitted;
use crate::{Progress, ProgressError, table};

/// How many rows of each table are held at a time, of all owners together.
const ROWS: usize = 4_096;

/// What was found.
#[derive(Default)]
pub(crate) struct AllCompared {
    pub(crate) workspaces: Vec<(WorkspaceId, Compared)>,
    /// Workspaces that the trail tells of, and of which there is no row.
    pub(crate) lost: Vec<(WorkspaceId, Fault)>,
    /// What is wrong with tasks.
    pub(crate) tasks: Vec<(TaskId, Fault)>,
}

/// Whose entries are compared.
#[derive(Clone, Copy)]
enum Owner<'a> {
    Workspace(&'a WorkspaceId),
    Task(&'a TaskId),
}

impl Owner<'_> {
    fn stream(&self) -> &str {
        match self {
            Self::Workspace(id) => id.as_str(),
            Self::Task(id) => id.as_str(),
        }
    }

    /// How much there is to compare of it, about.
    fn weight(&self, sql: &mut dyn Sql) -> Result<i64, StoreError> {
        match self {
            Self::Workspace(id) => table::weight(sql, id),
            Self::Task(id) => table::task_weight(sql, id),
        }
    }
}

/// How far the comparison of one of them is.
enum Comparing<'a> {
    Workspace(Box<Compare<'a>>),
    Task(Box<CompareTask<'a>>),
}

impl Progress {
    /// Compares all entries with what is kept of these, on all cores.
    pub(crate) fn compare_all(
        &self,
        workspaces: &[WorkspaceId],
        tasks: &[TaskId],
    ) -> Result<AllCompared, ProgressError> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let owners = workspaces.iter().map(Owner::Workspace);
        let parts = self.parts(owners.chain(tasks.iter().map(Owner::Task)), threads)?;
        let mut places = HashMap::with_capacity(workspaces.len() + tasks.len());
        for (part, owners) in parts.iter().enumerate() {
            for (own, owner) in owners.iter().enumerate() {
                places.insert(owner.stream(), Place { part, own });
            }
        }
        let found = Mutex::new(AllCompared::default());
        let (parts, places, found_by) = (&parts, &places, &found);
        let work = |part: usize| -> Result<(), ProgressError> {
            let part = Part {
                progress: self,
                own: parts.get(part).map_or(&[], Vec::as_slice),
                places,
                part,
            };
            let own = part.compare()?;
            let mut all = found_by.lock().unwrap_or_else(PoisonError::into_inner);
            all.workspaces.extend(own.workspaces);
            all.lost.extend(own.lost);
            all.tasks.extend(own.tasks);
            Ok(())
        };
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .map(|part| scope.spawn(move || work(part)))
                .collect();
            let own = work(0);
            others
                .into_iter()
                .map(|other| match other.join() {
                    Ok(done) => done,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .fold(own, Result::and)
        })?;
        let mut all = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.workspaces
            .sort_by(|(one, _), (other, _)| one.cmp(other));
        all.tasks.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    /// The owners in so many parts that take about as long.
    fn parts<'a>(
        &self,
        owners: impl Iterator<Item = Owner<'a>>,
        count: usize,
    ) -> Result<Vec<Vec<Owner<'a>>>, ProgressError> {
        let mut weighed = self.trail.store().read(|sql| {
            owners
                .map(|owner| Ok((owner.weight(sql)?, owner)))
                .collect::<Result<Vec<_>, ProgressError>>()
        })?;
        weighed.sort_by_key(|(weight, _)| Reverse(*weight));
        let mut parts = vec![(0_i64, Vec::new()); count];
        for (weight, owner) in weighed {
            if let Some((sum, part)) = parts.iter_mut().min_by_key(|(sum, _)| *sum) {
                *sum = sum.saturating_add(weight).saturating_add(1);
                part.push(owner);
            }
        }
        Ok(parts.into_iter().map(|(_, part)| part).collect())
    }
}

/// What one thread compares.
struct Part<'a> {
    progress: &'a Progress,
    own: &'a [Owner<'a>],
    places: &'a HashMap<&'a str, Place>,
    part: usize,
}

impl Part<'_> {
    fn compare(&self) -> Result<AllCompared, ProgressError> {
        let (trail, own) = (&self.progress.trail, self.own);
        if own.is_empty() && self.part > 0 {
            return Ok(AllCompared::default());
        }
        let most = u32::try_from(ROWS / own.len().max(1)).unwrap_or(u32::MAX);
        let most = most.clamp(4, 256);
        trail.store().read(|sql| {
            let mut compares: Vec<(Comparing<'_>, Option<Fault>)> = Vec::with_capacity(own.len());
            for owner in own {
                compares.push(match owner {
                    Owner::Workspace(id) => {
                        let mut compare = Compare::new(trail, id, most);
                        let begun = compare.begin(sql).map(|()| None);
                        let fault = fault_in(|reason| compare.unreadable(reason), begun)?;
                        (Comparing::Workspace(Box::new(compare)), fault)
                    }
                    Owner::Task(id) => {
                        let compare = CompareTask::new(trail, id, most);
                        (Comparing::Task(Box::new(compare)), None)
                    }
                });
            }
            // To the end as it is by now: what came since the trail was verified has rows, too.
            let mut page = Page::default();
            loop {
                let is_more = page.read(sql, self.places, self.part)?;
                for (own, entry) in page.entries() {
                    let Some((compare, fault @ None)) = compares.get_mut(own) else {
                        continue; // one fault is enough
                    };
                    *fault = compare.entry(sql, entry)?;
                }
                if !is_more {
                    break;
                }
            }
            let not_emitted = NotEmitted::read(sql)?;
            for (compare, fault) in &mut compares {
                if fault.is_none() {
                    *fault = compare.end(sql, &not_emitted)?;
                }
            }
            let mut all = lost(sql, &page.unknown)?;
            for (owner, (compare, fault)) in own.iter().zip(compares) {
                match (owner, compare) {
                    (Owner::Workspace(id), Comparing::Workspace(compare)) => {
                        let compared = compare.into_compared(fault);
                        all.workspaces.push(((*id).clone(), compared));
                    }
                    (Owner::Task(id), _) => {
                        all.tasks.extend(fault.map(|fault| ((*id).clone(), fault)));
                    }
                    _ => {}
                }
            }
            Ok(all)
        })
    }
}

impl Comparing<'_> {
    fn entry(
        &mut self,
        sql: &mut dyn Sql,
        entry: Brief<'_>,
    ) -> Result<Option<Fault>, ProgressError> {
        match self {
            Self::Workspace(compare) => {
                let held = compare.entry(sql, entry).map(Result::err);
                fault_in(|reason| compare.unreadable(reason), held)
            }
            Self::Task(compare) => {
                let held = compare.entry(sql, entry).map(Result::err);
                fault_in(|reason| compare.fault(reason), held)
            }
        }
    }

    fn end(
        &mut self,
        sql: &mut dyn Sql,
        not_emitted: &NotEmitted,
    ) -> Result<Option<Fault>, ProgressError> {
        match self {
            Self::Workspace(compare) => {
                let ended = compare.end(sql, not_emitted);
                fault_in(|reason| compare.unreadable(reason), ended)
            }
            Self::Task(compare) => {
                let ended = compare.end(sql).map(Result::err);
                fault_in(|reason| compare.fault(reason), ended)
            }
        }
    }
}

/// What began and is not there. What began since the owners were listed is.
fn lost(sql: &mut dyn Sql, unknown: &[String]) -> Result<AllCompared, ProgressError> {
    let mut all = AllCompared::default();
    for stream in unknown {
        let fault = |subject| Fault {
            subject,
            number: 1,
            id: Some(stream.clone()),
            reason: MISSING,
        };
        if let Ok(id) = stream.parse::<WorkspaceId>() {
            if matches!(table::made(sql, &id), Err(ProgressError::NotFound { .. })) {
                all.lost.push((id, fault(Subject::Workspace)));
            }
        } else if let Ok(id) = stream.parse::<TaskId>()
            && table::tasks(sql, Some(&id))?.is_empty()
        {
            all.tasks.push((id, fault(Subject::Task)));
        }
    }
    Ok(all)
}
