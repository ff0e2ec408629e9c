//! Directories that may not be read: left out by name, with what is known of them.

use std::os::fd::BorrowedFd;

use rustix::fs::{Access, AtFlags, accessat};
use rustix::io::Errno;

use super::cache::{Record, Seen};
use super::leaf::Settled;
use super::walk::{Captured, Item, Walk, lock};
use crate::left_out;
use crate::tree::Node;

impl Walk<'_> {
    /// A git directory that may not be read. What is in it is known from the last look.
    pub(super) fn closed_git_directory(&self, path: &[u8], item: &Item) {
        self.leave_out(path, left_out::UNREADABLE);
        if let Some(known) = self.request.cache.get(path) {
            let entry = item.found.entry(b".git", Node::Directory(known.subtree));
            let mut found = lock(&self.found);
            found.git.push((path.to_vec(), entry));
            found.seen.push((path.to_vec(), Seen::Same));
        }
    }

    /// A directory that may not be read is left out, by name. That its mode is another one now
    /// shows; what is in it counts as what the last look found.
    pub(super) fn closed_directory(
        &self,
        path: &[u8],
        item: &Item,
        known: Option<&Record>,
    ) -> Option<Captured> {
        self.leave_out(path, left_out::UNREADABLE);
        let (known, _) = item.known_in(known)?;
        let subtree = known.subtree().copied()?;
        let mut entry = item.found.entry(&item.name, Node::Directory(subtree));
        entry.attributes = known.attributes.clone();
        let same = *known == entry;
        let stamp = self.stamp(&item.found, Settled::No);
        Some(Captured { entry, stamp, same })
    }
}

/// Whether what is in a directory may not be reached, or not be listed.
pub(super) fn is_closed(handle: BorrowedFd<'_>, item: &Item) -> bool {
    let needed = Access::READ_OK | Access::EXEC_OK;
    // Whoever may read and enter it as anybody needs no closer look.
    item.found.mode & 0o555 != 0o555
        && accessat(handle, item.name.as_slice(), needed, AtFlags::empty()) == Err(Errno::ACCESS)
}
