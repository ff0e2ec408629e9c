//! The state of a work tree as an entry of `git stash`, made beside the work.
//!
//! The entry has the shape of git's own: a commit of the work tree whose
//! parents are `HEAD`, a commit of the index, and, when there are any, a commit
//! of the untracked files. `git stash apply --index` brings all of it back.
//!
//! The same commit can be kept under a reference of its own instead, where no
//! `git stash pop` takes it.
//!
//! It never touches a file of the work tree, the index, `HEAD`, a branch, or
//! another entry, and never puts the content of a sensitive path anywhere.

use std::collections::HashSet;

use super::error::GitError;
use super::import::{self, Item, Plan, Source};
use super::repository::Repository;
use super::runner::Git;
use super::status::{Change, Status};

/// What became of the wish for a stash entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stash {
    /// There is an entry, and it holds changes.
    Made {
        /// Its commit, by which [`find`] finds the entry.
        commit: String,
    },
    /// There is an entry, and it holds what `HEAD` holds.
    Clean {
        /// Its commit, by which [`find`] finds the entry.
        commit: String,
    },
    /// There can be no entry now.
    Impossible {
        /// For people, in lower case.
        why: String,
    },
}

/// Where the commit is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf<'a> {
    /// In the list that `git stash list` shows.
    List,
    /// Under this reference, and in no list.
    Reference(&'a str),
}

/// Which paths, relative to the work tree, are meant.
pub type Choice<'a> = dyn Fn(&[u8]) -> bool + 'a;

/// Puts the state of the work tree into a new entry with the message `label`.
///
/// Paths that `skip` names stay as `HEAD` has them; that one was removed from
/// the index is kept, since a removal has no content. Of paths outside `scope`
/// only what is in the index is taken, and none that are untracked.
///
/// White space in `label` is changed as git changes it: see [`message`].
pub fn create(
    git: &Git,
    repository: &Repository,
    label: &str,
    skip: &Choice<'_>,
    scope: &Choice<'_>,
) -> Result<Stash, GitError> {
    create_on(git, repository, Shelf::List, label, skip, scope)
}

/// The same, kept where `shelf` says.
pub fn create_on(
    git: &Git,
    repository: &Repository,
    shelf: Shelf<'_>,
    label: &str,
    skip: &Choice<'_>,
    scope: &Choice<'_>,
) -> Result<Stash, GitError> {
    let status = Status::read(git, repository)?;
    let Some(base) = status.base.clone() else {
        return Ok(impossible(
            "there is no commit yet that a stash could be based on",
        ));
    };
    if let Some(path) = status.unmerged.first() {
        let (path, count) = (String::from_utf8_lossy(path), status.unmerged.len());
        return Ok(impossible(&format!(
            "the index has {count} unmerged paths, {path:?} for one: git cannot stash a conflict"
        )));
    }
    let label = message(label);
    let plan = plan(status, base, skip, scope);
    let made = import::make(git, repository, &plan, &label)?;
    match shelf {
        Shelf::List => store(git, repository, &label, &made.commit)?,
        Shelf::Reference(name) => {
            repository.change(git, &["update-ref", name, &made.commit], b"")?;
        }
    }
    let commit = made.commit;
    Ok(if made.is_clean {
        Stash::Clean { commit }
    } else {
        Stash::Made { commit }
    })
}

/// Removes the newest entry with the message `label`, and says whether there
/// was one.
pub fn drop_labelled(git: &Git, repository: &Repository, label: &str) -> Result<bool, GitError> {
    let label = message(label);
    let entries = list(git, repository)?;
    let Some(number) = entries.iter().position(|entry| entry.message == label) else {
        return Ok(false);
    };
    let name = format!("stash@{{{number}}}");
    let answer = repository.change(git, &["stash", "drop", &name], b"")?;
    put_back_other(git, repository, &entries, number, &answer)?;
    Ok(true)
}

/// Deletes the reference `name`, and says whether there was one.
pub fn delete_reference(git: &Git, repository: &Repository, name: &str) -> Result<bool, GitError> {
    let pattern = ["for-each-ref", "--format=%(refname)", name];
    let found = repository.run(git, &pattern, b"")?;
    let is_there = found
        .split(|&byte| byte == b'\n')
        .any(|line| line == name.as_bytes());
    if is_there {
        repository.change(git, &["update-ref", "-d", name], b"")?;
    }
    Ok(is_there)
}

/// The number n by which `stash@{n}` now names the entry of `commit`.
pub fn find(git: &Git, repository: &Repository, commit: &str) -> Result<Option<usize>, GitError> {
    let entries = list(git, repository)?;
    Ok(entries.iter().position(|entry| entry.commit == commit))
}

/// A label as git keeps it: on one line, each run of white space as one space.
pub fn message(label: &str) -> String {
    let is_space = |character| matches!(character, ' ' | '\t' | '\n' | '\r' | '\0');
    let words: Vec<&str> = label
        .split(is_space)
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

struct Listed {
    commit: String,
    message: String,
}

fn list(git: &Git, repository: &Repository) -> Result<Vec<Listed>, GitError> {
    let answer = repository.run_with_children(git, &["stash", "list", "-z", "--format=%H %gs"])?;
    let lines = answer
        .split(|&byte| byte == 0)
        .filter(|line| !line.is_empty());
    Ok(lines
        .map(|line| {
            let line = String::from_utf8_lossy(line);
            let (commit, message) = line.split_once(' ').unwrap_or((&line, ""));
            Listed {
                commit: commit.to_owned(),
                message: message.to_owned(),
            }
        })
        .collect())
}

/// `git stash store` writes the log of the references even where the user
/// switched such logs off, since the log is what a stash consists of.
fn store(git: &Git, repository: &Repository, label: &str, commit: &str) -> Result<(), GitError> {
    let message = format!("--message={label}");
    repository.change(git, &["stash", "store", "--quiet", &message, commit], b"")?;
    Ok(())
}

/// Git drops entries by number alone. If somebody stashed between our look and
/// the drop, the number was that of another entry, which must not be lost.
fn put_back_other(
    git: &Git,
    repository: &Repository,
    entries: &[Listed],
    number: usize,
    answer: &[u8],
) -> Result<(), GitError> {
    let answer = String::from_utf8_lossy(answer);
    let dropped = answer
        .trim()
        .rsplit_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let meant = entries.get(number).map(|entry| entry.commit.as_str());
    match dropped {
        Some(dropped) if Some(dropped) != meant => {
            let known = entries.iter().find(|entry| entry.commit == dropped);
            let label = known.map_or("put back by safepoint", |entry| entry.message.as_str());
            store(git, repository, label, dropped)
        }
        _ => Ok(()),
    }
}

fn impossible(why: &str) -> Stash {
    Stash::Impossible {
        why: why.to_owned(),
    }
}

fn plan(status: Status, base: String, skip: &Choice<'_>, scope: &Choice<'_>) -> Plan {
    let mut plan = Plan {
        base,
        place: status.branch.unwrap_or_else(|| "(no branch)".to_owned()),
        index: Vec::new(),
        work: Vec::new(),
        untracked: Vec::new(),
    };
    let mut removed = HashSet::new();
    for change in &status.changes {
        if is_removed(change) {
            removed.insert(change.path.clone());
        }
        let is_sensitive = skip(&change.path);
        if change.staged && (!is_sensitive || change.index.is_none()) {
            plan.index.push(item(change, from_index(change)));
        }
        if !is_sensitive {
            plan.work.extend(in_work(change, scope(&change.path)));
        }
    }
    for path in status.untracked {
        // One that was removed from the index alone is in the work tree's
        // commit: in both, git would refuse to apply them.
        if !removed.contains(&path) && scope(&path) && !skip(&path) {
            let source = Source::Work {
                mode: None,
                index: None,
            };
            plan.untracked.push(Item {
                path,
                in_head: false,
                source,
            });
        }
    }
    plan
}

/// How the work tree's commit differs from `HEAD` at this path, if it does.
fn in_work(change: &Change, is_in_scope: bool) -> Option<Item> {
    let source = if !is_in_scope {
        change.staged.then(|| from_index(change))?
    } else if change.unstaged && change.mode.is_none() {
        Source::Absent
    } else if change.unstaged || is_removed(change) {
        Source::Work {
            mode: change.mode.clone(),
            index: change.index.clone(),
        }
    } else {
        from_index(change)
    };
    Some(item(change, source))
}

fn from_index(change: &Change) -> Source {
    change.index.clone().map_or(Source::Absent, Source::Object)
}

fn item(change: &Change, source: Source) -> Item {
    Item {
        path: change.path.clone(),
        in_head: change.head.is_some(),
        source,
    }
}

/// Whether the path is in `HEAD` and no longer in the index. Its file may still
/// be there.
fn is_removed(change: &Change) -> bool {
    change.head.is_some() && change.index.is_none()
}
