//! What was asked for, and what was said to it. One rule says whether the trail agrees: of
//! each thing there is at least what was acknowledged, and at most that and what nobody knows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

/// What somebody was told about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It is done.
    Done,
    /// It is not, and never will be.
    Refused,
    /// Nobody knows: the server that began it is gone.
    Unknown,
}

/// One thing that can be there: the kind of its entry, and what tells it apart.
pub(super) type Thing = (&'static str, String);

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    done: u32,
    unknown: u32,
}

#[derive(Default)]
pub(super) struct Ledger(Mutex<HashMap<Thing, Count>>);

impl Ledger {
    pub(super) fn note(&self, kind: &'static str, marker: impl Into<String>, told: Told) {
        let mut counts = self.0.lock().unwrap();
        let count = counts.entry((kind, marker.into())).or_default();
        match told {
            Told::Done => count.done += 1,
            Told::Refused => {}
            Told::Unknown => count.unknown += 1,
        }
    }

    /// What is there and should not be, or the other way round.
    pub(super) fn differences(&self, found: &HashMap<Thing, u32>) -> Vec<String> {
        let counts = self.0.lock().unwrap();
        let mut wrong = Vec::new();
        for (thing, count) in counts.iter() {
            let there = found.get(thing).copied().unwrap_or_default();
            if there < count.done || there > count.done + count.unknown {
                wrong.push(format!("{thing:?}: told {count:?}, there {there} times"));
            }
        }
        for (thing, there) in found {
            if !counts.contains_key(thing) {
                wrong.push(format!("{thing:?}: there {there} times, and nobody asked"));
            }
        }
        wrong.sort();
        wrong
    }

    /// How many of each kind were acknowledged, and of how many nobody knows.
    pub(super) fn sums(&self) -> BTreeMap<&'static str, (u32, u32)> {
        let mut sums = BTreeMap::new();
        for ((kind, _), count) in self.0.lock().unwrap().iter() {
            let (done, unknown) = sums.entry(*kind).or_insert((0, 0));
            *done += count.done;
            *unknown += count.unknown;
        }
        sums
    }
}
