//! Which files of a git directory are what: rules for comparing and restoring it.
//!
//! A git directory is captured like any other, and is restored with two
//! exceptions. Objects are only ever added: others may need those that were
//! made since. And entries of the stash are never taken away: they are a shelf
//! where people put things.

use crate::path;
use crate::tree::{Change, ChangeKind, Entry, Node, same_content};

/// Where inside its git directory a path lies; `None` outside of one.
pub(crate) fn inside(path: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    for name in path.split(|byte| *byte == b'/') {
        at += name.len() + 1;
        if name == b".git" {
            return Some(path.get(at..).unwrap_or_default());
        }
    }
    None
}

/// The git directory that holds a path.
pub(crate) fn directory(path: &[u8]) -> Option<&[u8]> {
    let rest = inside(path)?;
    let end = path.len() - rest.len();
    let end = if rest.is_empty() { path.len() } else { end - 1 };
    path.get(..end)
}

/// The part of `inside` that follows the directories of submodules, which are alike.
fn innermost(inside: &[u8]) -> &[u8] {
    match inside.strip_prefix(b"modules/") {
        Some(rest) => {
            // `modules/NAME/…`, where NAME may have slashes: what follows is
            // found by the names that git directories have.
            const KNOWN: [&[u8]; 13] = [
                b"reftable",
                b"objects",
                b"refs",
                b"logs",
                b"HEAD",
                b"index",
                b"packed-refs",
                b"modules",
                b"hooks",
                b"info",
                b"config",
                b"config.worktree",
                b"commondir",
            ];
            let mut at = 0;
            for name in rest.split(|byte| *byte == b'/') {
                if KNOWN.contains(&name) && at > 0 {
                    return innermost(rest.get(at..).unwrap_or_default());
                }
                at += name.len() + 1;
            }
            inside
        }
        None => inside,
    }
}

/// Where a repository says in which others git looks for objects.
const ALTERNATES: [&[u8]; 2] = [b"objects/info/alternates", b"objects/info/http-alternates"];

/// Whether a path holds objects, which are only ever added.
pub(crate) fn is_object(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| {
        let inner = innermost(inside);
        path::is_within(inner, b"objects") && !ALTERNATES.contains(&inner)
    })
}

/// The paths of objects that a change of a repository lost or damaged, and of what it knew of
/// other work trees: git itself writes an
/// object once, and removes some only where it has packed them anew. `changes` are a path each,
/// with what was there before and after.
pub(crate) fn lost_objects<'c>(
    changes: impl Iterator<Item = (&'c [u8], Option<&'c Entry>, Option<&'c Entry>)>,
) -> Vec<&'c [u8]> {
    let mut lost = Vec::new();
    let mut lost_trees = Vec::new();
    let mut is_packed = false;
    for (path, before, after) in changes {
        if is_of_other_work_trees(path) && before.is_some() && after.is_none() {
            lost_trees.push(path);
        }
        if !is_object(path) {
            continue;
        }
        let is_pack = path.ends_with(b".pack");
        match (
            before.map(|entry| &entry.node),
            after.map(|entry| &entry.node),
        ) {
            // They were packed, and are in there.
            (None, Some(Node::File { .. })) if is_pack => is_packed = true,
            (Some(before @ Node::File { .. }), after)
                if !is_about_objects(path)
                    && after.is_none_or(|after| !same_content(before, after)) =>
            {
                lost.push(path);
            }
            _ => {}
        }
    }
    if is_packed {
        lost.clear();
    }
    lost_trees.retain(|path| is_essential_to_work_tree(path));
    lost.extend(lost_trees);
    lost
}

/// Whether a path is one without which a repository knows nothing of another work tree.
fn is_essential_to_work_tree(path: &[u8]) -> bool {
    const FILES: [&[u8]; 4] = [b"HEAD", b"commondir", b"gitdir", b"index"];
    let inside = inside(path).map(innermost).unwrap_or_default();
    let mut names = inside.split(|byte| *byte == b'/').skip(1);
    match (names.next(), names.next(), names.next()) {
        (_, None, _) => true,
        (_, Some(file), None) => FILES.contains(&file),
        _ => false,
    }
}

/// Whether a file among the objects is only a list that git makes anew from them.
fn is_about_objects(path: &[u8]) -> bool {
    const ENDS: [&[u8]; 5] = [
        b".bitmap",
        b".rev",
        b".mtimes",
        b".keep",
        b"multi-pack-index",
    ];
    ENDS.iter().any(|end| path.ends_with(end))
        || inside(path).is_some_and(|inside| path::is_within(innermost(inside), b"objects/info"))
}

/// Whether a path is what a repository knows of its other work trees: they are not part of
/// this one, and would be cut off from their repository if it went back without them.
pub(crate) fn is_of_other_work_trees(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| path::is_within(innermost(inside), b"worktrees"))
}

/// Whether a path is a git directory, or holds those of submodules.
pub(crate) fn is_repository(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| {
        let inner = innermost(inside);
        inner.is_empty() || path::is_within(inner, b"modules")
    })
}

/// The git directory, with a slash at its end, whose list of stashes a change there concerns.
pub(crate) fn shelf(path: &[u8]) -> Option<&[u8]> {
    let inner = innermost(inside(path)?);
    let concerns = matches!(inner, b"refs/stash" | b"logs/refs/stash" | b"packed-refs");
    concerns
        .then(|| path.len() - inner.len())
        .and_then(|end| path.get(..end))
}

/// Whether a path is one where a repository keeps its references in tables (`reftable`).
pub(crate) fn is_reference_table(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| path::is_within(innermost(inside), b"reftable"))
}

/// Whether a path is the list of those tables, which changes with every reference. Those of
/// checkpoints are among them, so that it changes is notable only of somebody's doing.
pub(crate) fn is_reference_list(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| innermost(inside) == b"reftable/tables.list")
}

/// Whether a path is the index of a repository.
pub(crate) fn is_index(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| innermost(inside) == b"index")
}

/// Whether a path is the list of stashes, or the reference to the newest of them.
pub(crate) fn is_stash(path: &[u8]) -> bool {
    is_stash_list(path) || inside(path).is_some_and(|inside| innermost(inside) == b"refs/stash")
}

/// Whether a path is the list of stashes. That it grows is no news: checkpoints that somebody
/// asked for are put on it, too.
pub(crate) fn is_stash_list(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| innermost(inside) == b"logs/refs/stash")
}

/// The references to the newest entries of lists of stashes that a change took away while the
/// lists, and what is packed beside them, stayed as they were.
pub(crate) fn lost_stash_references(changes: &[Change]) -> impl Iterator<Item = &Change> {
    let is_alone = |change: &&Change| {
        let mut others = changes.iter().filter(|other| other.path != change.path);
        !others.any(|other| {
            other.kind() != ChangeKind::Time && shelf(&other.path) == shelf(&change.path)
        })
    };
    changes
        .iter()
        .filter(|change| is_stash(&change.path) && !is_stash_list(&change.path))
        .filter(|change| change.from.is_some() && change.kind() != ChangeKind::Time)
        .filter(is_alone)
}

/// Whether a path is a reference of a checkpoint, or holds such references. They are made after
/// the state that they belong to was looked at, and are never taken away by going back to it.
pub(crate) fn is_checkpoint_reference(path: &[u8]) -> bool {
    inside(path).is_some_and(|inside| {
        let inner = innermost(inside);
        path::is_within(inner, b"refs/safepoint") || path::is_within(inner, b"logs/refs/safepoint")
    })
}

/// Whether what is new at a path stays when the repository goes back.
pub(crate) fn is_left(path: &[u8]) -> bool {
    is_object(path) || is_checkpoint_reference(path) || is_of_other_work_trees(path)
}

/// Whether a change there is worth telling: where `HEAD` and branches point, what is in progress,
/// what git runs, and what tells git where and how to look.
pub(crate) fn is_notable(path: &[u8]) -> bool {
    let Some(inside) = inside(path) else {
        return false;
    };
    let inside = innermost(inside);
    matches!(
        inside,
        // The git directory itself, and what none can do without.
        b"" | b"objects" | b"refs"
            | b"HEAD"
            | b"packed-refs"
            | b"MERGE_HEAD"
            | b"CHERRY_PICK_HEAD"
            | b"REVERT_HEAD"
            | b"config"
            | b"config.worktree"
            | b"commondir"
            | b"gitdir"
    ) || ALTERNATES.contains(&inside)
        || is_hook(inside)
        // `info/refs` is a list that git makes for others.
        || path::is_within(inside, b"info") && inside != b"info" && inside != b"info/refs"
        || path::is_within(inside, b"refs/heads") && inside != b"refs/heads"
        || path::is_within(inside, b"refs/tags") && inside != b"refs/tags"
        || inside == b"rebase-merge"
        || inside == b"rebase-apply"
}

/// Whether git may run it. The samples that come with every repository it does not.
fn is_hook(inside: &[u8]) -> bool {
    path::is_within(inside, b"hooks") && inside != b"hooks" && !inside.ends_with(b".sample")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_13_paths_of_git_directories_are_told_apart() {
        assert_eq!(inside(b"sub/.git/HEAD"), Some(&b"HEAD"[..]));
        assert_eq!(inside(b".gitignore"), None);
        assert_eq!(
            directory(b"sub/.git/refs/heads/main"),
            Some(&b"sub/.git"[..])
        );
        assert_eq!(directory(b".git"), Some(&b".git"[..]));
        assert!(is_object(b".git/objects/ab/cdef"));
        assert!(is_object(b".git/modules/lib/x/objects/pack/p.pack"));
        assert!(!is_object(b".git/refs/heads/objects"));
        assert!(is_object(b".git/objects/info/packs"));
        assert!(!is_object(b".git/objects/info/alternates"));
        assert!(is_notable(b".git/modules/a/objects/info/alternates"));
        assert_eq!(shelf(b".git/logs/refs/stash"), Some(&b".git/"[..]));
        assert_eq!(
            shelf(b".git/modules/a/refs/stash"),
            Some(&b".git/modules/a/"[..])
        );
        assert_eq!(
            shelf(b".git/modules/a/b/packed-refs"),
            Some(&b".git/modules/a/b/"[..])
        );
        assert_eq!(shelf(b".git/refs/heads/stash"), None);
        assert!(is_stash(b".git/refs/stash") && is_stash(b".git/modules/a/logs/refs/stash"));
        assert!(!is_stash(b".git/logs/refs/heads/stash") && !is_stash_list(b".git/refs/stash"));
        assert!(is_repository(b"a/.git") && is_repository(b".git/modules/a/b"));
        assert!(!is_repository(b".git/logs") && !is_repository(b".git/modules/a/logs"));
        assert!(is_of_other_work_trees(b".git/worktrees/x/HEAD"));
        assert!(!is_of_other_work_trees(b".git/refs/heads/worktrees"));
        assert!(is_checkpoint_reference(
            b".git/refs/safepoint/checkpoints/chk_1"
        ));
        assert!(!is_checkpoint_reference(b".git/refs/heads/safepoint"));
        assert!(is_reference_table(b".git/reftable/1.ref"));
        assert!(is_reference_list(b".git/modules/a/reftable/tables.list"));
        assert!(!is_reference_list(b".git/refs/heads/reftable/tables.list"));
        assert!(is_index(b".git/index") && is_index(b".git/modules/a/index"));
        assert!(!is_index(b".git/refs/heads/index") && !is_index(b"index"));
        assert!(is_notable(b".git/refs/heads/main") && !is_notable(b".git/index"));
        for path in [
            "hooks/post-commit",
            "modules/a/hooks/pre-push",
            "info/attributes",
            "commondir",
            "config.worktree",
        ] {
            assert!(is_notable(format!(".git/{path}").as_bytes()), "{path}");
        }
        for path in ["hooks", "hooks/pre-push.sample", "info", "info/refs"] {
            assert!(!is_notable(format!(".git/{path}").as_bytes()), "{path}");
        }
    }
}
