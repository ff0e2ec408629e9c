//! Which entries belong to a session: its own; those of its actions, wherever they stand;
//! those that took such an action back; and the checkpoints that any of these name.

use std::collections::{BTreeSet, HashSet};

use safepoint_model::{ActionId, Timestamp};
use safepoint_store::Flow;

use crate::export::{Body, action_of};
use crate::{Entry, Query, Stream, Trail, TrailError};

/// What has been found to belong to a session.
#[derive(Default)]
struct Found {
    places: BTreeSet<u64>,
    actions: HashSet<ActionId>,
    checkpoints: HashSet<String>,
}

impl Found {
    fn take(&mut self, entry: &Entry) {
        let body = Body::of(entry);
        self.places.insert(entry.seq);
        self.actions.extend(action_of(entry));
        for name in ["checkpoint_id", "before", "after", "restored_to"] {
            let id = body.text(name).filter(|id| id.starts_with("chk_"));
            self.checkpoints.extend(id.map(str::to_owned));
        }
    }

    /// Whether an entry outside the session's stream belongs to what was found so far.
    fn concerns(&self, entry: &Entry) -> bool {
        let known = |action: &ActionId| self.actions.contains(action);
        if action_of(entry).as_ref().is_some_and(known) {
            return true;
        }
        if !entry.body.contains("\"undoes\"") {
            return false; // without reading it, which takes longer than all else
        }
        let undone = Body::of(entry)
            .text("undoes")
            .and_then(|id| id.parse().ok());
        undone.as_ref().is_some_and(known)
    }
}

/// The places of the entries that belong to `session`, in a trail of `size` entries.
pub(super) fn places(
    trail: &Trail,
    session: &Stream,
    size: u64,
) -> Result<BTreeSet<u64>, TrailError> {
    let mut found = Found::default();
    let mut first = None;
    let own = Query {
        streams: vec![session.clone()],
        ..Query::default()
    };
    each(trail, &own, size, |entry| {
        first.get_or_insert((entry.seq, entry.time));
        found.take(entry);
    })?;
    let Some((first, began)) = first else {
        return Err(TrailError::NotFound(format!("session `{session}`")));
    };
    let since = Query {
        from: first,
        ..Query::default()
    };
    each(trail, &since, size, |entry| {
        if entry.stream != *session && found.concerns(entry) {
            found.take(entry);
        }
    })?;
    // Checkpoints stand before what names them, and may be older than the session.
    let oldest = found.checkpoints.iter().filter_map(|id| made(id)).min();
    let checkpoints = Query {
        kind: Some("checkpoint_created".to_owned()),
        since: Some(oldest.map_or(began, |oldest| oldest.min(began))),
        ..Query::default()
    };
    each(trail, &checkpoints, size, |entry| {
        let body = Body::of(entry);
        let named = body.text("checkpoint_id");
        if named.is_some_and(|id| found.checkpoints.contains(id)) {
            found.places.insert(entry.seq);
        }
    })?;
    Ok(found.places)
}

fn each(
    trail: &Trail,
    query: &Query,
    size: u64,
    mut take: impl FnMut(&Entry),
) -> Result<(), TrailError> {
    trail.entries(query, |entry| {
        if entry.seq >= size {
            return Ok(Flow::Enough);
        }
        take(&entry);
        Ok(Flow::More)
    })
}

/// A moment before which the checkpoint of this name was not made: `chk_20261116_024615_…`.
fn made(checkpoint: &str) -> Option<Timestamp> {
    let mut parts = checkpoint.split('_').skip(1);
    let (day, time) = (parts.next()?, parts.next()?);
    let text = format!(
        "{}-{}-{}T{}:{}:{}Z",
        day.get(0..4)?,
        day.get(4..6)?,
        day.get(6..8)?,
        time.get(0..2)?,
        time.get(2..4)?,
        time.get(4..6)?
    );
    let second = Timestamp::parse(&text).ok()?;
    // Names are given a little before entries, and the clock may have been set back in between.
    Some(second.saturating_add_micros(-60_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_checkpoint_tells_about_when_it_was_made() {
        let made = made("chk_20261116_024615_aw33r6fx").unwrap();
        assert_eq!(made, Timestamp::parse("2026-11-16T02:45:15Z").unwrap());
        assert_eq!(super::made("chk_"), None);
        assert_eq!(super::made("chk_日本語_日本語_x"), None);
        assert_eq!(super::made("chk_20269999_999999_x"), None);
    }
}
