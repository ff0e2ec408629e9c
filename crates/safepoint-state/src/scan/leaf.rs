//! What is not a directory: read, kept, flagged as a secret, or gone meanwhile.

use std::os::fd::BorrowedFd;

use rustix::fs::readlinkat;
use rustix::io::Errno;

use super::cache::{Flagged, Record, Stamp};
use super::problem;
use super::read::{self, Outcome, Sniff};
use super::settle::{moment, was_quiet};
use super::stat::Found;
use super::walk::{Captured, Item, Part, Walk, is_forbidden, lock};
use crate::sensitive::Reason;
use crate::tree::{Entry, Node};
use crate::{StateError, left_out, path};

/// Whether something is looked at once more when it was restless.
#[derive(Clone, Copy)]
pub(super) enum Settled {
    Yes,
    No,
}

pub(super) enum Leaf {
    Captured(Captured),
    Flagged(Flagged),
    Gone,
}

impl Walk<'_> {
    /// Captures something that is not a directory and not known to be unchanged.
    pub(super) fn leaf(
        &self,
        handle: BorrowedFd<'_>,
        parent: &[u8],
        part: Part,
        item: &Item,
        known: Option<&Record>,
    ) -> Result<Leaf, StateError> {
        let path = path::join(parent, &item.name);
        let found = &item.found;
        if let Some(kind) = found.special() {
            if part == Part::Files {
                lock(&self.found).special.push((path, kind));
            }
            let device = found.device;
            let entry = found.entry(&item.name, Node::Special { kind, device });
            return Ok(self.captured(entry, found, Settled::No));
        }
        if !found.is_file() {
            let target = match readlinkat(handle, item.name.as_slice(), Vec::new()) {
                Ok(target) => target.into_bytes(),
                Err(Errno::NOENT | Errno::INVAL) => return Ok(Leaf::Gone),
                Err(error) => return Err(problem("read", &path, error)),
            };
            let entry = found.entry(&item.name, Node::Symlink { target });
            return Ok(self.captured(entry, found, Settled::No));
        }
        if let Some(flagged) = known.and_then(|record| record.still_flagged(item))
            && let Some(reason) = Reason::from_code(flagged.reason)
        {
            self.flag(&path, reason);
            return Ok(Leaf::Flagged(flagged.clone()));
        }
        let sniff = match part {
            Part::Files => Sniff::Yes,
            // An address with a password in it may stand in a repository's settings.
            Part::Git if item.name == b"config" => Sniff::Yes,
            Part::Git => Sniff::No,
        };
        let before = self.request.clock.now();
        let outcome = match read::file(handle, &item.name, &path, self.sink, sniff, Some(found)) {
            Err(error) if is_forbidden(&error) => {
                return Ok(self.unreadable(&path, item, known));
            }
            other => other?,
        };
        match outcome {
            Outcome::Gone => Ok(Leaf::Gone),
            Outcome::Secret(reason, found) => Ok(self.flagged(&item.name, &path, reason, &found)),
            Outcome::Kept {
                node,
                attributes,
                found,
            } => {
                self.request.progress.add(0, found.size);
                if let Node::File { content, .. } = &node
                    && !was_quiet(found.changed, before)
                {
                    lock(&self.restless).push((path, *content, found.changed));
                }
                let mut entry = found.entry(&item.name, node);
                entry.attributes = attributes;
                Ok(self.captured(entry, &found, Settled::Yes))
            }
        }
    }

    /// A file that may not be read. Where only its mode was changed, its content is known from
    /// the last look; otherwise it is left out, by name.
    fn unreadable(&self, path: &[u8], item: &Item, known: Option<&Record>) -> Leaf {
        let found = &item.found;
        if let Some((known, stamp)) = item.known_in(known)
            && let Node::File { size, .. } = &known.node
            && (*size, known.modified, stamp.inode) == (found.size, found.modified, found.inode)
        {
            let mut entry = found.entry(&item.name, known.node.clone());
            entry.attributes = known.attributes.clone();
            return self.captured(entry, found, Settled::No);
        }
        self.leave_out(path, left_out::UNREADABLE);
        Leaf::Gone
    }

    /// Something that was kept still while it was read.
    pub(super) fn still(&self, entry: Entry, found: &Found) -> Leaf {
        self.captured(entry, found, Settled::No)
    }

    /// A secret, of which nothing is kept.
    pub(super) fn flagged(&self, name: &[u8], path: &[u8], reason: Reason, found: &Found) -> Leaf {
        self.flag(path, reason);
        Leaf::Flagged(Flagged {
            name: name.to_vec(),
            reason: reason.code(),
            size: found.size,
            modified: found.modified,
            stamp: self.stamp(found, Settled::No),
        })
    }

    fn captured(&self, entry: Entry, found: &Found, settled: Settled) -> Leaf {
        Leaf::Captured(Captured {
            entry,
            stamp: self.stamp(found, settled),
            same: false,
        })
    }

    pub(super) fn stamp(&self, found: &Found, settled: Settled) -> Stamp {
        let now = self.request.clock.now();
        Stamp {
            changed: found.changed,
            inode: found.inode,
            quiet: match settled {
                // A time in the future tells nothing about changes to come.
                Settled::Yes => moment(now) >= found.changed,
                Settled::No => was_quiet(found.changed, now),
            },
        }
    }
}

impl Record {
    /// The secret of this name, if it is still the file that was read then.
    fn still_flagged(&self, item: &Item) -> Option<&Flagged> {
        self.flagged.iter().find(|flagged| {
            flagged.name == item.name
                && flagged.stamp.quiet
                && flagged.stamp.changed == item.found.changed
                && flagged.stamp.inode == item.found.inode
                && flagged.size == item.found.size
                && flagged.modified == item.found.modified
        })
    }
}
