//! What the work trees of one repository share: references, the stash, settings and hooks.
//!
//! Others change it too. So it is only ever put back where an action changed it and nobody did
//! since; branches that another work tree has checked out belong to that one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::files::{self, GitFile, GitNode};
use super::stays;
use crate::StateError;
use crate::git::{Git, GitError, Repository};
use crate::objects::{Reader, Writer};
use crate::path::{self, TreePath};
use crate::scope::Scope;
use crate::snapshot::Note;
use crate::tree::{self, Change, Entry, Node, Subtree, Trees};

/// Where references are packed.
pub(super) const PACKED: &[u8] = b".git/packed-refs";
/// The list of stashes.
const STASH: &[u8] = b".git/logs/refs/stash";
/// References that are others' alone: those of checkpoints, and each work tree's own.
const APART: [&str; 5] = [
    "refs/safepoint/",
    "refs/bisect/",
    "refs/worktree/",
    "refs/rewritten/",
    "refs/stash",
];
/// Where a work tree says which branch it has checked out, also in the middle of a rebase.
const HEADS: [&str; 3] = ["HEAD", "rebase-merge/head-name", "rebase-apply/head-name"];
/// Settings, and what chooses which programs git runs.
const SETTINGS: [&str; 4] = ["config", "config.worktree", "hooks", "info"];

/// Captures what is shared.
pub(super) fn capture(
    git: &Git,
    repository: &Repository,
    writer: &Writer<'_>,
) -> Result<Option<Subtree>, StateError> {
    let mut found = Vec::new();
    let used = used_elsewhere(repository);
    let listed = repository.run(
        git,
        &[
            "for-each-ref",
            "--format=%(objectname) %(symref) %(refname)",
        ],
        b"",
    );
    // What git cannot read tells nothing, least of all that there is no reference.
    let Some(listed) = listed.ok().and_then(|it| String::from_utf8(it).ok()) else {
        return Ok(None);
    };
    for line in listed.lines() {
        let mut words = line.split(' ');
        let (Some(commit), Some(symbolic), Some(name)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let short = name.strip_prefix("refs/heads/");
        let is_apart = APART.iter().any(|apart| name.starts_with(apart));
        if is_apart || !symbolic.is_empty() {
            continue;
        }
        let node = match short.is_some_and(|short| used.contains(short)) {
            true => GitNode::Others,
            false => GitNode::File {
                mode: 0o644,
                bytes: format!("{commit}\n").into_bytes(),
            },
        };
        found.push(GitFile {
            path: format!(".git/{name}").into_bytes(),
            node,
        });
    }
    let common = repository.common_dir();
    let keep = |name: &str| SETTINGS.contains(&name);
    files::collect(common, b".git", &keep, 0, &mut found)?;
    files::collect(
        &common.join("logs/refs"),
        b".git/logs/refs",
        &|name| name == "stash",
        0,
        &mut found,
    )?;
    files::capture(found, writer).map(Some)
}

/// The branches that other work trees of the repository have checked out, the main one too.
pub(super) fn used_elsewhere(repository: &Repository) -> BTreeSet<String> {
    used_beside(repository.common_dir(), repository.git_dir())
}

/// The same beside the work tree with this git directory.
pub(super) fn used_beside(common: &Path, git_dir: &Path) -> BTreeSet<String> {
    let linked = std::fs::read_dir(common.join("worktrees"));
    let others = linked.into_iter().flatten().flatten();
    let directories = others.map(|entry| entry.path());
    // The `HEAD` of a bare repository is no work tree.
    let main = (!crate::git::is_bare(common)).then(|| common.to_owned());
    directories
        .chain(main)
        .filter(|directory| directory != git_dir)
        .flat_map(|directory| HEADS.map(|name| directory.join(name)))
        .filter_map(|head| {
            let head = safepoint_store::regular::read(&head, 4096).ok()?;
            let head = String::from_utf8(head).ok()?;
            let name = head.trim();
            let name = name.strip_prefix("ref: ").unwrap_or(name);
            Some(name.strip_prefix("refs/heads/")?.to_owned())
        })
        .collect()
}

/// Whether one side of a change belongs to another work tree.
fn is_of_others(change: &Change) -> bool {
    let others = |side: &Option<Entry>| {
        side.as_ref()
            .is_some_and(|entry| matches!(entry.node, Node::Symlink { .. }))
    };
    others(&change.from) || others(&change.to)
}

/// What differs between two captures that an action can have done; no directories.
fn differing(trees: &dyn Trees, from: &Subtree, to: &Subtree) -> Result<Vec<Change>, StateError> {
    let mut changes = tree::changes(trees, Some(from), Some(to), &Scope::everything())?;
    let is_directory =
        |side: &Option<Entry>| side.as_ref().is_some_and(|entry| entry.subtree().is_some());
    changes.retain(|change| {
        !is_of_others(change) && !is_directory(&change.from) && !is_directory(&change.to)
    });
    Ok(changes)
}

/// References of others that are gone between two captures: what they were is not known.
fn gone_of_others(
    trees: &dyn Trees,
    from: &Subtree,
    to: &Subtree,
) -> Result<Vec<Change>, StateError> {
    let mut changes = tree::changes(trees, Some(from), Some(to), &Scope::everything())?;
    changes.retain(|change| {
        is_of_others(change) && change.to.is_none() && change.path.starts_with(b".git/refs/")
    });
    Ok(changes)
}

/// What people are told of.
pub(super) fn told(
    trees: &dyn Trees,
    before: Option<Subtree>,
    after: Option<Subtree>,
) -> Result<Vec<Change>, StateError> {
    match (before, after) {
        (Some(before), Some(after)) => {
            let mut changes = differing(trees, &before, &after)?;
            changes.extend(gone_of_others(trees, &before, &after)?);
            Ok(changes)
        }
        (Some(_), None) => Ok(vec![unreadable()]),
        _ => Ok(Vec::new()),
    }
}

/// That the references cannot be read any more.
fn unreadable() -> Change {
    let entry = |text: &str| Some(files::entry(b"packed-refs", 0o644, text.as_bytes()));
    Change {
        path: PACKED.to_vec(),
        from: entry("references that git reads"),
        to: entry("references that git cannot read"),
        relinked: false,
    }
}

/// What is shared once an action is taken out of it, and what of that stays as it is.
pub(super) fn without(
    reader: &Reader<'_>,
    (before, after, now): (&Subtree, &Subtree, &Subtree),
    writer: &Writer<'_>,
) -> Result<(Subtree, Vec<Note>), StateError> {
    let mut edits: BTreeMap<TreePath, Option<Entry>> = BTreeMap::new();
    let mut notes = Vec::new();
    let content = |entry: &Option<Entry>| match entry.as_ref().map(|entry| &entry.node) {
        Some(Node::File { content, .. }) => reader.read(*content),
        _ => Ok(Vec::new()),
    };
    for change in differing(reader, after, before)? {
        let present = tree::find(reader, Some(now), &change.path)?;
        if change.path == STASH {
            let lists = (
                content(&change.to)?,
                content(&change.from)?,
                content(&present)?,
            );
            let wanted = crate::restore::with_what_was_taken(&lists.0, &lists.1, &lists.2);
            if let (Some(wanted), Some(like)) = (wanted, present.as_ref().or(change.to.as_ref())) {
                let entry = files::entry(b"stash", like.mode, &wanted);
                writer.add(crate::ContentId::of(&wanted), wanted)?;
                edits.insert(change.path, Some(entry));
            }
            continue;
        }
        if present == change.from {
            edits.insert(change.path, change.to);
        } else if present != change.to {
            let why = "it was changed since by somebody else";
            notes.push(stays(&path::display(&change.path), why.to_owned()));
        }
    }
    for change in gone_of_others(reader, before, after)? {
        if tree::find(reader, Some(now), &change.path)?.is_none() {
            let why =
                "another work tree had it checked out, and only a checkpoint of that one has it";
            notes.push(stays(&path::display(&change.path), why.to_owned()));
        }
    }
    for path in edits.clone().into_iter().filter(|(_, to)| to.is_some()) {
        let mut above = path::split(&path.0).0.to_vec();
        while !above.is_empty() {
            if tree::find(reader, Some(now), &above)?.is_none() {
                let entry = tree::find(reader, Some(before), &above)?;
                edits.entry(above.clone()).or_insert(entry);
            }
            above = path::split(&above).0.to_vec();
        }
    }
    let shared = tree::edit(reader, Some(now), edits, &mut |id, bytes| {
        writer.add_tree(id, bytes)
    })?;
    Ok((shared, notes))
}

/// Puts back what differs, and says what could not be.
pub(super) fn put(
    git: &Git,
    repository: &Repository,
    reader: &Reader<'_>,
    (now, wanted): (Option<Subtree>, Option<Subtree>),
) -> Result<Vec<Note>, StateError> {
    let (Some(now), Some(wanted)) = (now, wanted) else {
        return Ok(Vec::new());
    };
    let changes = differing(reader, &now, &wanted)?;
    let (references, others): (Vec<Change>, Vec<Change>) = changes
        .into_iter()
        .partition(|change| change.path.starts_with(b".git/refs/"));
    let (stash, settings): (Vec<Change>, Vec<Change>) =
        others.into_iter().partition(|change| change.path == STASH);
    let mut notes = Vec::new();
    files::put(repository.common_dir(), &settings, reader)?;
    let mut failed = |changes: &[Change], error: &GitError| {
        for change in changes {
            notes.push(stays(&path::display(&change.path), error.to_string()));
        }
    };
    if let Err(error) = move_references(git, repository, reader, &references)? {
        failed(&references, &error);
    }
    for change in &stash {
        if let Err(error) = store_stashes(git, repository, reader, change)? {
            failed(&stash, &error);
        }
    }
    Ok(notes)
}

/// Moves all of these references, or none. One that somebody moved meanwhile makes it fail.
fn move_references(
    git: &Git,
    repository: &Repository,
    reader: &Reader<'_>,
    changes: &[Change],
) -> Result<Result<(), GitError>, StateError> {
    let value = |entry: &Option<Entry>| -> Result<Option<String>, StateError> {
        Ok(match entry.as_ref().map(|entry| &entry.node) {
            Some(Node::File { content, .. }) => {
                let bytes = reader.read(*content)?;
                Some(String::from_utf8_lossy(&bytes).trim().to_owned())
            }
            _ => None,
        })
    };
    let mut input = String::new();
    for change in changes {
        let name = path::display(change.path.get(b".git/".len()..).unwrap_or_default());
        let line = match (value(&change.from)?, value(&change.to)?) {
            (Some(old), Some(new)) => format!("update {name} {new} {old}\n"),
            (None, Some(new)) => format!("create {name} {new}\n"),
            (Some(old), None) => format!("delete {name} {old}\n"),
            (None, None) => String::new(),
        };
        input.push_str(&line);
    }
    if input.is_empty() {
        return Ok(Ok(()));
    }
    let words = ["update-ref", "-m", "safepoint: going back", "--stdin"];
    Ok(repository.change(git, &words, input.as_bytes()).map(drop))
}

/// Puts the entries on the list of stashes that it is to have and has not.
fn store_stashes(
    git: &Git,
    repository: &Repository,
    reader: &Reader<'_>,
    change: &Change,
) -> Result<Result<(), GitError>, StateError> {
    let lines = |entry: &Option<Entry>| -> Result<Vec<(String, String)>, StateError> {
        let Some(Node::File { content, .. }) = entry.as_ref().map(|entry| &entry.node) else {
            return Ok(Vec::new());
        };
        let text = String::from_utf8_lossy(&reader.read(*content)?).into_owned();
        let commit = |line: &str| {
            let (head, message) = line.split_once('\t').unwrap_or((line, "stash"));
            Some((head.split(' ').nth(1)?.to_owned(), message.to_owned()))
        };
        Ok(text.lines().filter_map(commit).collect())
    };
    let (there, wanted) = (lines(&change.from)?, lines(&change.to)?);
    for (commit, message) in wanted {
        if there.iter().any(|(known, _)| *known == commit) {
            continue;
        }
        let words = ["stash", "store", "-q", "-m", &message, &commit];
        if let Err(error) = repository.change(git, &words, b"") {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}
