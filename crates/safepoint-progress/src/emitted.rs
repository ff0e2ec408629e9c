//! Signals as the trail tells of them: what was emitted, and whether it was delivered.

use std::collections::BTreeMap;

use safepoint_model::{SignalId, Timestamp, WorkspaceId};
use safepoint_store::Sql;
use safepoint_trail::{Entry, Stream, entry_at, page_of};
use serde::Deserialize;

use crate::ProgressError;
use crate::progress::Progress;
use crate::signal::{Signal, SignalType};
use crate::table;

/// So many entries are read at once.
const PAGE: u32 = 500;

/// A signal, and the place of the entry that tells of its emission.
#[derive(Clone, Debug)]
pub(crate) struct Emission {
    pub(crate) entry: u64,
    pub(crate) signal: Signal,
}

#[derive(Deserialize)]
struct EmissionSaid {
    signal_id: SignalId,
    from: WorkspaceId,
    #[serde(rename = "type")]
    kind: SignalType,
    reason: Option<String>,
    #[serde(rename = "ref")]
    about: Option<String>,
    timestamp: Timestamp,
}

#[derive(Deserialize)]
struct DeliverySaid {
    emission: u64,
}

impl Progress {
    /// The signal whose emission the entry at a place tells of, if it tells of one.
    pub(crate) fn emission(
        &self,
        sql: &mut dyn Sql,
        place: u64,
    ) -> Result<Option<Emission>, ProgressError> {
        match entry_at(sql, place)? {
            Some(entry) => self.emission_in(sql, &entry),
            None => Ok(None),
        }
    }

    fn emission_in(
        &self,
        sql: &mut dyn Sql,
        entry: &Entry,
    ) -> Result<Option<Emission>, ProgressError> {
        if entry.kind.as_str() != "signal_emitted" {
            return Ok(None);
        }
        let body = self.trail.whole_body(&entry.body)?;
        let Ok(said) = serde_json::from_str::<EmissionSaid>(&body) else {
            return Err(ProgressError::Tampered {
                what: "trail entry",
                id: entry.id.to_string(),
            });
        };
        let signal = Signal {
            id: said.signal_id,
            delivered_to: table::parent_of(sql, &said.from)?,
            from: said.from,
            kind: said.kind,
            reason: said.reason,
            about: said.about,
            timestamp: said.timestamp,
            delivered_at: self.delivered_at(sql, entry.seq)?,
        };
        let entry = entry.seq;
        Ok(Some(Emission { entry, signal }))
    }

    /// When a signal was delivered, if it was: by what stands right behind its emission, or by a
    /// row.
    fn delivered_at(
        &self,
        sql: &mut dyn Sql,
        emission: u64,
    ) -> Result<Option<Timestamp>, ProgressError> {
        if let Some(next) = entry_at(sql, emission.saturating_add(1))?
            && self.delivered_in(&next)? == Some(emission)
        {
            return Ok(Some(next.time));
        }
        let Some(place) = table::delivery_of(sql, emission)? else {
            return Ok(None);
        };
        let told = match u64::try_from(place) {
            Ok(place) => entry_at(sql, place)?,
            Err(_) => None,
        };
        match told {
            Some(told) if self.delivered_in(&told)? == Some(emission) => Ok(Some(told.time)),
            _ => Ok(None), // a row that no entry tells of says nothing
        }
    }

    /// What a workspace emitted, what its parent was never told, and what stands in no line.
    pub(crate) fn forgotten(
        &self,
        sql: &mut dyn Sql,
        id: &WorkspaceId,
        parent: &WorkspaceId,
    ) -> Result<Vec<u64>, ProgressError> {
        let mut forgotten = Vec::new();
        for (emission, next) in table::without_row(sql, id, parent)? {
            let told = match next {
                Some(body) => self.delivery_told(&body)?,
                None => None,
            };
            if told != Some(emission) {
                forgotten.push(emission);
            }
        }
        Ok(forgotten)
    }

    /// The place of the emission whose delivery an entry tells of, if it tells of one.
    pub(crate) fn delivered_in(&self, entry: &Entry) -> Result<Option<u64>, ProgressError> {
        if entry.kind.as_str() != "signal_delivered" {
            return Ok(None);
        }
        self.delivery_told(&entry.body)
    }

    fn delivery_told(&self, body: &str) -> Result<Option<u64>, ProgressError> {
        let body = self.trail.whole_body(body)?;
        let said = serde_json::from_str::<DeliverySaid>(&body);
        Ok(said.ok().map(|said| said.emission))
    }

    /// What a workspace emitted, what it was told by its children, and what it is still to be
    /// told: in the order of emission.
    pub fn signals(&self, id: &WorkspaceId) -> Result<Vec<Signal>, ProgressError> {
        self.trail.store().read(|sql| {
            table::made(sql, id)?;
            let stream = Stream::from(id);
            let mut signals: BTreeMap<u64, Option<Signal>> = BTreeMap::new();
            let mut from = 0;
            loop {
                let page = page_of(sql, &stream, from, PAGE)?;
                for entry in &page {
                    if let Some(told) = self.delivered_in(entry)? {
                        signals.insert(told, None);
                    } else if let Some(own) = self.emission_in(sql, entry)? {
                        signals.insert(own.entry, Some(own.signal));
                    }
                }
                match page.last() {
                    Some(last) => from = last.seq + 1,
                    None => break,
                }
            }
            for place in table::in_line(sql, id, u32::MAX)? {
                // A line is only where to look.
                let waiting = self.emission(sql, place)?.map(|emission| emission.signal);
                let waiting = waiting.filter(|signal| signal.delivered_to.as_ref() == Some(id));
                if waiting.is_some() {
                    signals.insert(place, waiting);
                }
            }
            let mut found = Vec::with_capacity(signals.len());
            for (place, signal) in signals {
                found.extend(match signal {
                    Some(signal) => Some(signal),
                    None => self.emission(sql, place)?.map(|emission| emission.signal),
                });
            }
            Ok(found)
        })
    }
}
