//! All workspaces at once: the trail is read from its beginning to its end, and each entry is
//! compared in its workspace. Only after the trail itself was verified.

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};

use safepoint_model::WorkspaceId;
use safepoint_store::Sql;
use safepoint_trail::{Brief, each_brief};

use super::compare::Compare;
use super::{Compared, Fault, fault_in};
use crate::{Progress, ProgressError};

/// How many entries are read at a time.
const AT_ONCE: u64 = 2_048;

/// How many rows of each table are held at a time, of all workspaces together.
const ROWS: usize = 4_096;

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
        all: &[WorkspaceId],
    ) -> Result<Vec<(WorkspaceId, Compared)>, ProgressError> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let found = Mutex::new(Vec::new());
        let work = |part: usize| -> Result<(), ProgressError> {
            let own: Vec<&WorkspaceId> = all.iter().skip(part).step_by(threads).collect();
            let compared = self.compare_some(&own)?;
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.extend(own.into_iter().cloned().zip(compared));
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
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(found)
    }

    fn compare_some(&self, own: &[&WorkspaceId]) -> Result<Vec<Compared>, ProgressError> {
        let most = u32::try_from(ROWS / own.len().max(1)).unwrap_or(u32::MAX);
        let most = most.clamp(4, 256);
        let owners: HashMap<&str, usize> = own
            .iter()
            .enumerate()
            .map(|(place, id)| (id.as_str(), place))
            .collect();
        self.trail.store().read(|sql| {
            let mut compares: Vec<(Compare<'_>, Option<Fault>)> = Vec::with_capacity(own.len());
            for id in own {
                let mut compare = Compare::new(&self.trail, id, most);
                let begun = compare.begin(sql).map(|()| None);
                let fault = fault_in(&compare, begun)?;
                compares.push((compare, fault));
            }
            // To the end as it is by now: what came since the trail was verified has rows, too.
            let mut from = 0;
            loop {
                let (told, rows) = read(sql, &owners, from)?;
                for told in told {
                    let Some((compare, fault @ None)) = compares.get_mut(told.owner) else {
                        continue; // one fault is enough
                    };
                    let entry = Brief {
                        seq: told.seq,
                        id: &told.id,
                        stream: "",
                        actor: &told.actor,
                        kind: &told.kind,
                        body: &told.body,
                    };
                    let held = compare.entry(sql, entry).map(Result::err);
                    *fault = fault_in(compare, held)?;
                }
                if rows < AT_ONCE {
                    break;
                }
                from += AT_ONCE;
            }
            for (compare, fault) in &mut compares {
                if fault.is_none() {
                    let ended = compare.end(sql);
                    *fault = fault_in(compare, ended)?;
                }
            }
            let compared = compares.into_iter();
            Ok(compared
                .map(|(compare, fault)| compare.into_compared(fault))
                .collect())
        })
    }
}

/// The entries from a place on that are told of these workspaces, and how many were looked at.
fn read(
    sql: &mut dyn Sql,
    owners: &HashMap<&str, usize>,
    from: u64,
) -> Result<(Vec<Told>, u64), ProgressError> {
    let (mut found, mut rows) = (Vec::new(), 0);
    each_brief(sql, from, from + AT_ONCE, &mut |entry| {
        rows += 1;
        if let Some(owner) = owners.get(entry.stream) {
            found.push(Told {
                owner: *owner,
                seq: entry.seq,
                id: entry.id.to_owned(),
                actor: entry.actor.to_owned(),
                kind: entry.kind.to_owned(),
                body: entry.body.to_owned(),
            });
        }
    })?;
    Ok((found, rows))
}
