//! Putting something in the place of something else without ever losing a third thing.
//!
//! Whoever else writes to the tree does not wait for us. So what is replaced or deleted
//! is looked at just before, changes places with what lies ready, and is looked at again
//! when nobody reaches it under its name any more. If it is not what the plan saw, it goes
//! back. Nothing here deletes what it did not look at.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use rustix::fs::{
    AtFlags, FileType, Mode, RenameFlags, mkdirat, readlinkat, renameat, renameat_with, statat,
    unlinkat,
};
use rustix::io::Errno;
use safepoint_store::fault;

use super::apply::copy_across;
use crate::scan::read_back;
use crate::scan::stat::Found;
use crate::tree::{Change, Entry, Node};

/// Where things are put that had to go, beside those that lie ready.
pub(super) const GONE: &str = "gone";

/// So many of them are put in one directory.
const SHELF: usize = 128;

/// What became of a step.
pub(super) enum Step<'c> {
    /// It is done, and this lies beside the tree now.
    Done(Option<Displaced<'c>>),
    /// Somebody else was there meanwhile: nothing was done.
    Changed,
}

/// Something that was in the tree, and now lies beside it.
pub(super) struct Displaced<'c> {
    pub(super) change: &'c Change,
    /// Its name beside the tree.
    name: String,
    /// How it looked when it was taken out.
    found: Found,
}

/// Two places: one beside the tree, and the one in it.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    pub(super) beside: BorrowedFd<'a>,
    pub(super) name: &'a str,
    pub(super) parent: BorrowedFd<'a>,
    pub(super) target: &'a [u8],
}

/// The name of the `number`th thing that has to go.
pub(super) fn gone(number: usize) -> String {
    format!("{GONE}/{:x}/{:x}", number / SHELF, number % SHELF)
}

/// What is known of something that is about to be touched.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    /// What the plan saw.
    pub(super) entry: &'a Entry,
    /// How it looked when that was last made sure of.
    pub(super) seen: Option<&'a Found>,
    /// The modes that files got from us under another name, by their numbers.
    pub(super) modes: &'a HashMap<u64, u32>,
}

impl Known<'_> {
    /// Whether what stands under a name is still that. If nothing moved since it was
    /// looked at, nothing is read.
    pub(super) fn is_still(&self, directory: BorrowedFd<'_>, name: &[u8], found: &Found) -> bool {
        if self.seen.is_some_and(|seen| seen.same_state(found)) {
            return true;
        }
        let mode = self.modes.get(&found.inode).copied();
        found.is_same_kind(self.entry)
            && (found.mode == self.entry.mode || Some(found.mode) == mode)
            && holds(directory, name, self.entry)
    }
}

/// Whether something of the right sort holds what an entry says.
fn holds(directory: BorrowedFd<'_>, name: &[u8], entry: &Entry) -> bool {
    match &entry.node {
        Node::File { content, .. } => {
            let read = read_back(directory, name, name, &mut Vec::new());
            matches!(read, Ok(Some((now, ..))) if now == *content)
        }
        Node::Symlink { target } => readlinkat(directory, name, Vec::new())
            .is_ok_and(|now| now.as_bytes() == target.as_slice()),
        Node::Directory(_) | Node::Special { .. } => true,
    }
}

fn look(directory: BorrowedFd<'_>, name: &[u8]) -> Result<Option<Found>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(Found::of(&stat))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The same file, whatever renaming it did to its times.
fn is_unmoved(before: &Found, after: &Found) -> bool {
    before.kind == after.kind
        && before.inode == after.inode
        && before.size == after.size
        && before.modified == after.modified
        && before.mode == after.mode
}

/// Puts what lies ready where nothing is.
pub(super) fn put_new(at: Places<'_>) -> Result<Step<'static>, Errno> {
    let flags = RenameFlags::NOREPLACE;
    match renameat_with(at.beside, at.name, at.parent, at.target, flags) {
        Ok(()) => Ok(Step::Done(None)),
        Err(Errno::EXIST) => Ok(Step::Changed),
        // Not known to this file system, or another one is mounted there.
        Err(error @ (Errno::INVAL | Errno::NOSYS | Errno::XDEV)) => {
            match look(at.parent, at.target)? {
                Some(_) => Ok(Step::Changed),
                None => put_over(at, error),
            }
        }
        Err(error) => Err(error),
    }
}

fn put_over(at: Places<'_>, error: Errno) -> Result<Step<'static>, Errno> {
    match error {
        Errno::XDEV => copy_across(at.beside, at.name, at.parent, at.target)?,
        _ => renameat(at.beside, at.name, at.parent, at.target)?,
    }
    Ok(Step::Done(None))
}

/// Lets what lies ready and what the plan saw change places.
pub(super) fn exchange<'c>(
    at: Places<'_>,
    change: &'c Change,
    known: Known<'_>,
) -> Result<Step<'c>, Errno> {
    let Some(before) = look(at.parent, at.target)? else {
        return Ok(Step::Changed);
    };
    if !known.is_still(at.parent, at.target, &before) {
        return Ok(Step::Changed);
    }
    let exchange = || {
        renameat_with(
            at.beside,
            at.name,
            at.parent,
            at.target,
            RenameFlags::EXCHANGE,
        )
    };
    fault::point("restore.looked");
    match exchange() {
        Ok(()) => fault::point("restore.taken"),
        Err(Errno::NOENT) => return Ok(Step::Changed),
        Err(error @ (Errno::INVAL | Errno::NOSYS | Errno::XDEV)) => return put_over(at, error),
        Err(error) => return Err(error),
    }
    match came_out(at.beside, at.name, known, &before)? {
        Some(found) => Ok(Step::Done(Some(Displaced {
            change,
            name: at.name.to_owned(),
            found,
        }))),
        None => {
            exchange()?;
            Ok(Step::Changed)
        }
    }
}

/// Takes what the plan saw out of the tree.
pub(super) fn take_out<'c>(
    at: Places<'_>,
    change: &'c Change,
    known: Known<'_>,
) -> Result<Step<'c>, Errno> {
    let Some(before) = look(at.parent, at.target)? else {
        return Ok(Step::Done(None)); // somebody has deleted it already
    };
    if !known.is_still(at.parent, at.target, &before) {
        return Ok(Step::Changed);
    }
    let take = || renameat(at.parent, at.target, at.beside, at.name);
    fault::point("restore.looked");
    let taken = match take() {
        // Either there is no room for it yet, or it has just gone.
        Err(Errno::NOENT) => {
            make_room(at)?;
            take()
        }
        other => other,
    };
    match taken {
        Ok(()) => fault::point("restore.taken"),
        Err(Errno::NOENT) => return Ok(Step::Done(None)),
        Err(Errno::XDEV) => {
            unlinkat(at.parent, at.target, AtFlags::empty())?;
            return Ok(Step::Done(None));
        }
        Err(error) => return Err(error),
    }
    match came_out(at.beside, at.name, known, &before)? {
        Some(found) => Ok(Step::Done(Some(Displaced {
            change,
            name: at.name.to_owned(),
            found,
        }))),
        None => {
            give_back(at)?;
            Ok(Step::Changed)
        }
    }
}

fn make_room(at: Places<'_>) -> Result<(), Errno> {
    let shelf = at.name.rsplit_once('/').map_or("", |(shelf, _)| shelf);
    for directory in [GONE, shelf] {
        match mkdirat(at.beside, directory, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// How what came out looks, if it is what was looked at before.
fn came_out(
    beside: BorrowedFd<'_>,
    name: &str,
    known: Known<'_>,
    before: &Found,
) -> Result<Option<Found>, Errno> {
    let Some(found) = look(beside, name.as_bytes())? else {
        return Ok(None);
    };
    let same = is_unmoved(before, &found) || known.is_still(beside, name.as_bytes(), &found);
    Ok(same.then_some(found))
}

/// Puts what lies beside the tree back where it was. What stands there now, if anything,
/// takes its place beside the tree.
pub(super) fn give_back(at: Places<'_>) -> Result<(), Errno> {
    let with = |flags| renameat_with(at.beside, at.name, at.parent, at.target, flags);
    match with(RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => with(RenameFlags::EXCHANGE),
        Err(Errno::INVAL | Errno::NOSYS) => renameat(at.beside, at.name, at.parent, at.target),
        other => other,
    }
}

impl Displaced<'_> {
    /// Whether somebody who had it open wrote to it after it was taken out.
    pub(super) fn is_written(&self, beside: BorrowedFd<'_>) -> Result<bool, Errno> {
        let Some(found) = look(beside, self.name.as_bytes())? else {
            return Ok(false);
        };
        let entry = self.change.from.as_ref();
        // Its mode and time may have changed with those of another name of it.
        Ok(found.kind == FileType::RegularFile
            && !is_unmoved(&self.found, &found)
            && entry.is_some_and(|entry| !holds(beside, self.name.as_bytes(), entry)))
    }

    /// Its name beside the tree.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}
