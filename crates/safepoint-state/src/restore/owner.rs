//! To whom restored things belong.
//!
//! Only a superuser gives files away. For anybody else they stay their own, and so does
//! their group unless it is one of theirs. That is told, and is no failure.

use std::sync::LazyLock;

use rustix::fs::{Gid, Uid};
use rustix::io::Errno;

use crate::tree::Entry;

/// As whom this process makes files.
struct Me {
    user: u32,
    /// All groups that it may give files to.
    groups: Vec<u32>,
}

static ME: LazyLock<Me> = LazyLock::new(|| {
    let others = rustix::process::getgroups().unwrap_or_default();
    let groups = others.into_iter().chain([rustix::process::getegid()]);
    Me {
        user: rustix::process::geteuid().as_raw(),
        groups: groups.map(Gid::as_raw).collect(),
    }
});

/// Gives something to whom it belonged, as far as this process may.
pub(super) fn give(
    (owner, group): (u32, u32),
    change: impl Fn(Option<Uid>, Option<Gid>) -> Result<(), Errno>,
) -> Result<(), Errno> {
    let (owner, group) = (Uid::from_raw(owner), Gid::from_raw(group));
    match change(Some(owner), Some(group)) {
        // Its group alone may be another matter.
        Err(Errno::PERM) => match change(None, Some(group)) {
            Err(Errno::PERM) => Ok(()),
            other => other,
        },
        other => other,
    }
}

/// How somebody owns what should be another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owned {
    /// As it should be.
    Right,
    /// By this process, which may not give it away.
    Ours,
    /// By somebody else.
    Wrong,
}

/// Whether what should be `entry` has the owner and group that it can have.
pub(super) fn of(entry: &Entry, owner: u32, group: u32) -> Owned {
    judge(entry, (owner, group), &ME)
}

fn judge(entry: &Entry, (owner, group): (u32, u32), me: &Me) -> Owned {
    if (entry.owner, entry.group) == (owner, group) {
        return Owned::Right;
    }
    let group_fits = group == entry.group || !me.groups.contains(&entry.group);
    match me.user != 0 && owner == me.user && group_fits {
        true => Owned::Ours,
        false => Owned::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::{Me, Owned, judge};
    use crate::tree::{Entry, Moment, Node};

    fn owned(owner: u32, group: u32) -> Entry {
        Entry {
            name: b"a".to_vec(),
            node: Node::Symlink {
                target: b"b".to_vec(),
            },
            mode: 0o777,
            owner,
            group,
            modified: Moment {
                seconds: 0,
                nanos: 0,
            },
            attributes: Vec::new(),
        }
    }

    #[test]
    fn st_30_only_what_cannot_be_given_is_spared() {
        let me = |user| Me {
            user,
            groups: vec![7, 8],
        };
        // Somebody else's, and a group that is not ours.
        assert_eq!(judge(&owned(0, 0), (5, 7), &me(5)), Owned::Ours);
        assert_eq!(judge(&owned(5, 0), (5, 7), &me(5)), Owned::Ours);
        assert_eq!(judge(&owned(0, 8), (5, 8), &me(5)), Owned::Ours);
        assert_eq!(judge(&owned(5, 7), (5, 7), &me(5)), Owned::Right);
        // A group of ours could have been given.
        assert_eq!(judge(&owned(5, 8), (5, 7), &me(5)), Owned::Wrong);
        assert_eq!(judge(&owned(0, 8), (5, 7), &me(5)), Owned::Wrong);
        // It belongs to a third one; and a superuser can give everything.
        assert_eq!(judge(&owned(0, 0), (6, 7), &me(5)), Owned::Wrong);
        assert_eq!(judge(&owned(5, 7), (0, 0), &me(0)), Owned::Wrong);
    }
}
