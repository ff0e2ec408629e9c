//! Entries of one action, brought together while the trail is read once.
//!
//! However long the trail is, only so much is held: when the limit is reached, the action
//! that nothing was heard of for longest is handed over as it is. Should more of it
//! come, that is a group of its own, which says that it continues another.

use std::collections::{BTreeSet, HashMap};

use safepoint_model::{ActionId, Timestamp};

use super::story::{Body, Part, part};
use crate::{Entry, Stream};

/// How many entries of one group are held. Of more, the last one is, and the number of the rest.
const MOST_ENTRIES: usize = 128;

/// What the entries of a group have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// An action.
    Action(ActionId),
    /// What has no action, in one stream.
    Stream(Stream),
}

impl Key {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Action(action) => action.as_str(),
            Self::Stream(stream) => stream.as_str(),
        }
    }
}

/// What belongs together.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) key: Key,
    entries: Vec<Entry>,
    last: Option<Entry>,
    /// How many entries are not here.
    pub(crate) omitted: u32,
    /// Whether a part of it was handed over before.
    pub(crate) continues: bool,
    /// When something was last heard of it.
    pub(crate) until: Timestamp,
    /// The place of that.
    age: u64,
    bytes: usize,
}

impl Group {
    /// The entries, oldest first.
    pub(crate) fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.entries.iter().chain(&self.last)
    }

    /// The first entry, if there is one: there always is.
    pub(crate) fn first(&self) -> Option<&Entry> {
        self.entries.first()
    }

    fn add(&mut self, entry: Entry) {
        if self.entries.len() < MOST_ENTRIES {
            self.bytes += weight(&entry);
            self.entries.push(entry);
            return;
        }
        self.bytes += weight(&entry);
        if let Some(before) = self.last.replace(entry) {
            self.bytes -= weight(&before);
            self.omitted += 1;
        }
    }
}

/// How much of the trail may be held at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) groups: usize,
    pub(crate) bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            groups: 4096,
            bytes: 32 << 20,
        }
    }
}

/// The groups that are being put together.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    limits: Limits,
    open: HashMap<Key, Group>,
    /// The groups by the place at which something was last heard of them.
    by_age: BTreeSet<(u64, Key)>,
    bytes: usize,
    /// Whether any group was handed over before the end.
    spilled: bool,
}

impl Groups {
    #[cfg(test)]
    pub(crate) fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Adds an entry. What has to make way for it goes to `ready`.
    pub(crate) fn add(&mut self, key: Key, entry: Entry, ready: &mut Vec<Group>) {
        let (seq, time) = (entry.seq, entry.time);
        let spilled = self.spilled;
        let group = self.open.entry(key.clone()).or_insert_with(|| Group {
            key: key.clone(),
            continues: spilled && !is_beginning(&entry),
            entries: Vec::new(),
            last: None,
            omitted: 0,
            until: time,
            age: seq,
            bytes: 0,
        });
        let before = group.bytes;
        group.add(entry);
        self.bytes = self.bytes + group.bytes - before;
        self.touch(&key, seq, time);
        while self.open.len() > self.limits.groups
            || (self.bytes > self.limits.bytes && self.open.len() > 1)
        {
            let Some((_, oldest)) = self.by_age.pop_first() else {
                return;
            };
            if let Some(group) = self.open.remove(&oldest) {
                self.bytes -= group.bytes;
                self.spilled = true;
                ready.push(group);
            }
        }
    }

    /// Notes that something was heard of a group, if it is open, although nothing is added.
    pub(crate) fn touch(&mut self, key: &Key, seq: u64, time: Timestamp) {
        if let Some(group) = self.open.get_mut(key) {
            self.by_age.remove(&(group.age, key.clone()));
            (group.age, group.until) = (seq, time);
            self.by_age.insert((seq, key.clone()));
        }
    }

    /// What is left, in the order in which it began.
    pub(crate) fn finish(&mut self) -> Vec<Group> {
        self.by_age.clear();
        self.bytes = 0;
        let mut left: Vec<Group> = self.open.drain().map(|(_, group)| group).collect();
        left.sort_by_key(|group| group.first().map(|entry| entry.seq));
        left
    }
}

/// Whether an action or a session begins with this entry, so that nothing of it can have come before.
fn is_beginning(entry: &Entry) -> bool {
    match part(entry.kind.as_str()) {
        Part::Proposal => !Body::of(entry).holds("again"),
        Part::Session => entry.kind.as_str() == "SessionStarted",
        _ => false,
    }
}

/// About how much memory an entry takes.
fn weight(entry: &Entry) -> usize {
    entry.body.len() + 512
}

#[cfg(test)]
mod tests {
    use safepoint_model::{Digest, EntryId};

    use super::*;

    fn entry(seq: u64, kind: &str) -> Entry {
        Entry {
            seq,
            id: format!("ent_{seq:026}").parse::<EntryId>().unwrap(),
            time: Timestamp::from_micros(i64::try_from(seq).unwrap()),
            stream: "ses_x".parse().unwrap(),
            actor: "agent:x".parse().unwrap(),
            kind: kind.parse().unwrap(),
            action_id: None,
            body: "{}".to_owned(),
            prev_hash: None,
            hash: Digest::of_parts(&[&seq.to_be_bytes()]),
        }
    }

    fn key(number: usize) -> Key {
        Key::Action(format!("act_{number:016}").parse().unwrap())
    }

    #[test]
    fn tr_07_only_so_much_is_held_and_what_makes_way_says_so() {
        let mut groups = Groups::with_limits(Limits {
            groups: 2,
            bytes: 1 << 20,
        });
        let mut ready = Vec::new();
        for (seq, number) in [(0, 0), (1, 1), (2, 0), (3, 2), (4, 3)] {
            groups.add(key(number), entry(seq, "ActionRequested"), &mut ready);
        }
        // 1 was quiet for longest, then 0.
        let keys: Vec<Key> = ready.iter().map(|group| group.key.clone()).collect();
        assert_eq!(keys, [key(1), key(0)]);
        assert!(ready.iter().all(|group| !group.continues));
        assert_eq!(ready[1].entries().count(), 2);
        ready.clear();
        groups.add(key(1), entry(5, "action_ended"), &mut ready);
        groups.add(key(4), entry(6, "ActionRequested"), &mut ready);
        ready.extend(groups.finish());
        let continued: Vec<bool> = ready.iter().map(|group| group.continues).collect();
        assert_eq!(continued, [false, false, true, false]);
    }

    #[test]
    fn tr_07_an_action_of_many_entries_is_held_by_its_ends() {
        let mut groups = Groups::default();
        let mut ready = Vec::new();
        for seq in 0..1_000 {
            groups.add(key(0), entry(seq, "note"), &mut ready);
        }
        assert!(ready.is_empty());
        let left = groups.finish();
        let places: Vec<u64> = left[0].entries().map(|entry| entry.seq).collect();
        assert_eq!(places.len(), MOST_ENTRIES + 1);
        assert_eq!(places.last(), Some(&999));
        assert_eq!(left[0].omitted as usize + places.len(), 1_000);
    }

    #[test]
    fn tr_07_large_bodies_do_not_pile_up() {
        let limits = Limits {
            groups: 1_000,
            bytes: 100_000,
        };
        let mut groups = Groups::with_limits(limits);
        let mut ready = Vec::new();
        for seq in 0..100_u32 {
            let mut large = entry(u64::from(seq), "note");
            large.body = format!("\"{}\"", "x".repeat(10_000));
            groups.add(key(seq as usize), large, &mut ready);
            assert!(groups.bytes <= limits.bytes, "{}", groups.bytes);
        }
        assert_eq!(ready.len() + groups.finish().len(), 100);
    }
}
