//! All workspaces and tasks at once: the trail is read from its beginning to its end, and each
//! entry is compared with what is kept of its owner. Only after the trail itself was verified.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use safepoint_model::{TaskId, WorkspaceId};
use safepoint_store::Sql;
use safepoint_trail::{Brief, each_brief};

use super::compare::{Compare, MISSING};
use super::task::CompareTask;
use super::{Compared, Fault, Subject, fault_in};
use crate::{Progress, ProgressError, table};

/// How many entries are read at a time.
const AT_ONCE: u64 = 2_048;

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
}

/// How far the comparison of one of them is.
enum Comparing<'a> {
    Workspace(Box<Compare<'a>>),
    Task(Box<CompareTask<'a>>),
}

/// An entry that is to be compared, and whose it is.
struct Told {
    owner: usize,
    seq: u64,
    id: String,
    actor: String,
    kind: String,
    body: String,
}

impl Progress {
    /// Compares all entries with what is kept of these, on all cores.
    pub(crate) fn compare_all(
        &self,
        workspaces: &[WorkspaceId],
        tasks: &[TaskId],
    ) -> Result<AllCompared, ProgressError> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let owners: Vec<Owner<'_>> = workspaces
            .iter()
            .map(Owner::Workspace)
            .chain(tasks.iter().map(Owner::Task))
            .collect();
        let places: HashMap<&str, usize> = owners
            .iter()
            .enumerate()
            .map(|(place, owner)| (owner.stream(), place))
            .collect();
        let found = Mutex::new(AllCompared::default());
        let (owners, places, found_by) = (&owners, &places, &found);
        let work = |part: usize| -> Result<(), ProgressError> {
            let part = Part {
                progress: self,
                owners,
                places,
                part,
                parts: threads,
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
}

/// What one thread compares: every so manyeth owner.
struct Part<'a> {
    progress: &'a Progress,
    owners: &'a [Owner<'a>],
    places: &'a HashMap<&'a str, usize>,
    part: usize,
    parts: usize,
}

impl Part<'_> {
    fn compare(&self) -> Result<AllCompared, ProgressError> {
        let trail = &self.progress.trail;
        let own: Vec<&Owner<'_>> = self.own().collect();
        let most = u32::try_from(ROWS / own.len().max(1)).unwrap_or(u32::MAX);
        let most = most.clamp(4, 256);
        trail.store().read(|sql| {
            let mut compares: Vec<(Comparing<'_>, Option<Fault>)> = Vec::with_capacity(own.len());
            for owner in &own {
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
            let mut unknown = Vec::new();
            // To the end as it is by now: what came since the trail was verified has rows, too.
            let mut from = 0;
            loop {
                let (told, rows) = self.read(sql, from, &mut unknown)?;
                for told in told {
                    let Some((compare, fault @ None)) = compares.get_mut(told.owner) else {
                        continue; // one fault is enough
                    };
                    *fault = compare.entry(sql, &told)?;
                }
                if rows < AT_ONCE {
                    break;
                }
                from += AT_ONCE;
            }
            for (compare, fault) in &mut compares {
                if fault.is_none() {
                    *fault = compare.end(sql)?;
                }
            }
            let mut all = lost(sql, &unknown)?;
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

    fn own(&self) -> impl Iterator<Item = &Owner<'_>> {
        self.owners.iter().skip(self.part).step_by(self.parts)
    }

    /// The entries from a place on that are told of our own, and how many were looked at.
    /// Beginnings of what nobody compares are noted by the first part.
    fn read(
        &self,
        sql: &mut dyn Sql,
        from: u64,
        unknown: &mut Vec<String>,
    ) -> Result<(Vec<Told>, u64), ProgressError> {
        let (mut found, mut rows) = (Vec::new(), 0);
        each_brief(sql, from, from + AT_ONCE, &mut |entry| {
            rows += 1;
            match self.places.get(entry.stream) {
                Some(place) if place % self.parts == self.part => found.push(Told {
                    owner: place / self.parts,
                    seq: entry.seq,
                    id: entry.id.to_owned(),
                    actor: entry.actor.to_owned(),
                    kind: entry.kind.to_owned(),
                    body: entry.body.to_owned(),
                }),
                None if self.part == 0
                    && matches!(entry.kind, "workspace_created" | "task_created") =>
                {
                    unknown.push(entry.stream.to_owned());
                }
                _ => {}
            }
        })?;
        Ok((found, rows))
    }
}

impl Comparing<'_> {
    fn entry(&mut self, sql: &mut dyn Sql, told: &Told) -> Result<Option<Fault>, ProgressError> {
        let entry = Brief {
            seq: told.seq,
            id: &told.id,
            stream: "",
            actor: &told.actor,
            kind: &told.kind,
            body: &told.body,
        };
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

    fn end(&mut self, sql: &mut dyn Sql) -> Result<Option<Fault>, ProgressError> {
        match self {
            Self::Workspace(compare) => {
                let ended = compare.end(sql);
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
