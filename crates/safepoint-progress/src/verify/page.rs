//! Entries of all streams, a page at a time, for whoever compares some of them.

use std::collections::HashMap;

use safepoint_store::Sql;
use safepoint_trail::{Brief, each_brief};

use crate::ProgressError;

/// How many entries are read at a time.
const AT_ONCE: u64 = 2_048;

/// Who compares a stream, and as which of its own.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) part: usize,
    pub(super) own: usize,
}

/// An entry that is to be compared, and whose it is. Where each of its texts ends says the page.
struct Told {
    own: usize,
    seq: u64,
    /// Of its id, actor, kind and body.
    ends: [usize; 4],
}

/// Entries that were read together. One buffer has all their texts: there are millions.
#[derive(Default)]
pub(super) struct Page {
    told: Vec<Told>,
    text: String,
    /// How many entries were looked at.
    rows: u64,
    from: u64,
    /// The streams that begin and that nobody compares. The first part looks for them.
    pub(super) unknown: Vec<String>,
}

impl Page {
    /// Reads the next entries, those of one part, and says whether there may be more.
    pub(super) fn read(
        &mut self,
        sql: &mut dyn Sql,
        places: &HashMap<&str, Place>,
        part: usize,
    ) -> Result<bool, ProgressError> {
        self.told.clear();
        self.text.clear();
        self.rows = 0;
        let (from, until) = (self.from, self.from + AT_ONCE);
        let Self {
            told,
            text,
            rows,
            unknown,
            ..
        } = self;
        let mut wanted = |stream: &str, kind: &str| {
            *rows += 1;
            let place = places.get(stream);
            let begins = matches!(kind, "workspace_created" | "task_created");
            if place.is_none() && part == 0 && begins {
                unknown.push(stream.to_owned());
            }
            place.filter(|place| place.part == part).map(|own| own.own)
        };
        each_brief(sql, from, until, &mut wanted, &mut |own, entry| {
            let texts = [entry.id, entry.actor, entry.kind, entry.body];
            let ends = texts.map(|part| {
                text.push_str(part);
                text.len()
            });
            let seq = entry.seq;
            told.push(Told { own, seq, ends });
        })?;
        self.from = until;
        Ok(self.rows >= AT_ONCE)
    }

    /// The entries, in order, and of which of the part's own each is.
    pub(super) fn entries(&self) -> impl Iterator<Item = (usize, Brief<'_>)> {
        let mut begin = 0;
        self.told.iter().map(move |told| {
            let [id, actor, kind, body] = told.ends.map(|end| {
                let text = self.text.get(begin..end).unwrap_or_default();
                begin = end;
                text
            });
            let entry = Brief {
                seq: told.seq,
                id,
                stream: "",
                actor,
                kind,
                body,
            };
            (told.own, entry)
        })
    }
}
