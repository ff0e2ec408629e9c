//! The list of stashes of a repository, from which going back takes nothing away.
//!
//! It is a log whose last line names the newest entry, and a reference to that
//! one. The reference may be in `packed-refs` instead, which is restored like
//! any file: so both are looked at whenever one of the three changes.

use std::collections::BTreeSet;

use super::plan::ContentOf;
use crate::scan::Sink;
use crate::tree::{self, Change, Entry, Node, Subtree, Trees};
use crate::{ContentId, StateError, git_state, path};

/// Makes the changes keep every entry of every list, those of now and those of then.
pub(super) fn keep(
    mut changes: Vec<Change>,
    trees: &dyn Trees,
    present: &Subtree,
    content: &ContentOf<'_>,
    sink: &Sink<'_>,
) -> Result<Vec<Change>, StateError> {
    let shelves: BTreeSet<Vec<u8>> = changes
        .iter()
        .filter_map(|change| git_state::shelf(&change.path))
        .map(<[u8]>::to_vec)
        .collect();
    for shelf in shelves {
        let log = [&shelf, &b"logs/refs/stash"[..]].concat();
        let reference = [&shelf, &b"refs/stash"[..]].concat();
        let read = |path: &[u8], entry: &Option<Entry>| match entry {
            Some(entry) => content(path, entry),
            None => Ok(Vec::new()),
        };
        let present_log = tree::find(trees, Some(present), &log)?;
        let wanted_log = match changes.iter().find(|change| change.path == log) {
            Some(change) => change.to.clone(),
            None => present_log.clone(),
        };
        let now = read(&log, &present_log)?;
        let then = read(&log, &wanted_log)?;
        let list = if now.starts_with(&then) {
            now.clone()
        } else {
            merged(&now, &then)
        };
        let Some(template) = wanted_log.as_ref().or(present_log.as_ref()).cloned() else {
            continue; // there is no list
        };
        if list.is_empty() {
            continue;
        }
        let tip = newest(&list);
        // The directories that hold the list stay too.
        changes.retain(|change| {
            let goes = change.to.is_none() && path::is_within(&log, &change.path);
            change.path != log && change.path != reference && !goes
        });
        let mut put = |path: Vec<u8>, from: Option<Entry>, like: &Entry, bytes: Vec<u8>| {
            let to = file(like, &bytes);
            if let Node::File { content, .. } = &to.node {
                sink.content(*content, bytes)?;
            }
            changes.push(Change {
                path,
                from,
                to: Some(to),
                relinked: false,
            });
            Ok::<_, StateError>(())
        };
        if list != now {
            put(log, present_log, &template, list)?;
        }
        let present_reference = tree::find(trees, Some(present), &reference)?;
        if read(&reference, &present_reference)? != tip {
            let like = present_reference.clone().unwrap_or(template);
            put(reference, present_reference, &like, tip)?;
        }
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(changes)
}

/// What a list has to have for the entries that one change took from it to be on it again:
/// those, and of the others only what is there now. `None` when none is missing.
pub(crate) fn with_what_was_taken(before: &[u8], after: &[u8], now: &[u8]) -> Option<Vec<u8>> {
    let lines = |log| <[u8]>::split_inclusive(log, |byte| *byte == b'\n');
    let left: BTreeSet<&[u8]> = lines(after).map(commit).collect();
    let there: BTreeSet<&[u8]> = lines(now).map(commit).collect();
    let taken = |line: &&[u8]| !left.contains(commit(line));
    if lines(before)
        .filter(taken)
        .all(|line| there.contains(commit(line)))
    {
        return None;
    }
    let wanted = lines(before).filter(|line| taken(line) || there.contains(commit(line)));
    Some(wanted.flatten().copied().collect())
}

/// A list, or the reference to its newest entry, with these bytes.
pub(crate) fn file(like: &Entry, bytes: &[u8]) -> Entry {
    Entry {
        name: b"stash".to_vec(),
        node: Node::File {
            size: bytes.len() as u64,
            content: ContentId::of(bytes),
            sparse: false,
            link: None,
        },
        ..like.clone()
    }
}

/// The entries of then, with the numbers they had then; and before them what only the present has.
fn merged(now: &[u8], then: &[u8]) -> Vec<u8> {
    let lines = |log| <[u8]>::split_inclusive(log, |byte| *byte == b'\n');
    let known: BTreeSet<&[u8]> = lines(then).map(commit).collect();
    let mut list = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    let more = lines(now).filter(|line| !known.contains(commit(line)));
    for line in more.chain(lines(then)) {
        // Each line begins with the commit of the one before.
        let width = commit(line).len();
        if last.is_empty() {
            last = vec![b'0'; width];
        }
        list.extend_from_slice(&last);
        list.extend_from_slice(line.get(width..).unwrap_or_default());
        last = commit(line).to_vec();
    }
    list
}

/// What the reference to the newest entry of a list holds.
pub(crate) fn newest(list: &[u8]) -> Vec<u8> {
    let line = list.split_inclusive(|byte| *byte == b'\n').next_back();
    [commit(line.unwrap_or_default()), b"\n"].concat()
}

/// The commit that a line of the log names.
fn commit(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b' ').nth(1).unwrap_or_default()
}
