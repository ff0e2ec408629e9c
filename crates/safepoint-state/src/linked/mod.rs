//! The git state of a work tree whose git directory lies elsewhere: `HEAD`, the branch that is
//! checked out, the index, and what else git keeps for this work tree alone, such as a merge in
//! progress.
//!
//! A linked work tree shares a repository with others. Of what they share, references, stash,
//! settings and hooks are captured too, so that an action that changed them is seen and taken
//! back (`shared.rs`). Going back to a checkpoint moves nothing there but the branch that is
//! checked out here.

mod damaged;
mod files;
mod place;
mod shared;

use serde::{Deserialize, Serialize};

use damaged::OwnDirectory;

use crate::git::{Git, Head, Repository};
use crate::objects::Reader;
use crate::restore::Goal;
use crate::scope::Scope;
use crate::snapshot::{Note, Record};
use crate::state::{State, Workspace};
use crate::tree::{self, Change, Entry, Moment, Node, Subtree, Trees};
use crate::{ContentId, StateError, path};

/// The longest index that is captured.
const MAX_INDEX_BYTES: u64 = 512 << 20;

/// What git has while it is in the middle of something.
const PROGRESS: [&[u8]; 8] = [
    b".git/MERGE_HEAD",
    b".git/CHERRY_PICK_HEAD",
    b".git/REVERT_HEAD",
    b".git/REBASE_HEAD",
    b".git/BISECT_LOG",
    b".git/rebase-merge",
    b".git/rebase-apply",
    b".git/sequencer",
];

/// The git state of a work tree whose git directory lies elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkedGit {
    /// The branch that is checked out, without `refs/heads/`; none when `HEAD` is detached.
    pub branch: Option<String>,
    /// The commit that is checked out; none before the first.
    pub commit: Option<String>,
    /// The content of the index; none when there is no index.
    pub index: Option<ContentId>,
    /// What else lies in the git directory of this work tree. Earlier records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Subtree>,
    /// What it shares with other work trees, objects and logs excepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Subtree>,
}

impl LinkedGit {
    /// Whether the same commit of the same branch is checked out.
    pub(crate) fn has_same_head(&self, other: &Self) -> bool {
        (&self.branch, &self.commit) == (&other.branch, &other.commit)
    }

    /// Whether git rejected the directory when it was looked at.
    fn is_damaged(&self) -> bool {
        self.branch.is_none() && self.commit.is_none()
    }

    /// Whether it is the same but for what is shared.
    fn is_same_tree(&self, other: &Self) -> bool {
        self.has_same_head(other) && self.index == other.index && self.own == other.own
    }

    fn head(&self) -> String {
        if self.is_damaged() {
            return "nothing that git can read".to_owned();
        }
        let commit = self.commit.as_deref().unwrap_or("no commit");
        match &self.branch {
            Some(branch) => format!("`{branch}` at {commit}"),
            None => commit.to_owned(),
        }
    }

    /// The trees that belong to it.
    pub(crate) fn trees(&self) -> impl Iterator<Item = Subtree> {
        self.own.into_iter().chain(self.shared)
    }
}

/// Whether the same commit is checked out, and the same is in progress.
pub(crate) fn is_same_work(
    trees: &dyn Trees,
    one: &LinkedGit,
    other: &LinkedGit,
) -> Result<bool, StateError> {
    Ok(one.has_same_head(other) && in_progress(trees, one.own, other.own)?.is_empty())
}

/// What differs of what git is in the middle of.
fn in_progress(
    trees: &dyn Trees,
    before: Option<Subtree>,
    after: Option<Subtree>,
) -> Result<Vec<Change>, StateError> {
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(Vec::new()); // one was captured by an earlier release
    };
    let mut changes = tree::changes(trees, Some(&before), Some(&after), &Scope::everything())?;
    let is_progress = |path: &[u8]| PROGRESS.iter().any(|name| path::is_within(path, name));
    changes.retain(|change| is_progress(&change.path));
    Ok(changes)
}

/// What a move of the git state of a linked work tree looks like in a list of changes.
pub(crate) fn changes(
    trees: &dyn Trees,
    before: Option<&LinkedGit>,
    after: Option<&LinkedGit>,
) -> Result<Vec<Change>, StateError> {
    let (Some(before), Some(after)) = (before, after) else {
        return Ok(Vec::new());
    };
    let mut changes = in_progress(trees, before.own, after.own)?;
    // Of a directory, that it comes or goes.
    changes.retain(|change| path::split(&change.path).0 == b".git");
    // An earlier release captured neither.
    if before.own.is_some() && after.own.is_some() {
        changes.extend(shared::told(trees, before.shared, after.shared)?);
    }
    if !before.has_same_head(after) {
        changes.push(head_change(before, after));
    }
    if before.index.is_some() != after.index.is_some() {
        changes.push(index_change(before, after));
    }
    changes.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(changes)
}

fn head_change(before: &LinkedGit, after: &LinkedGit) -> Change {
    let entry = |state: &LinkedGit| {
        let text = state.head();
        Some(files::entry(b"HEAD", 0o644, text.as_bytes()))
    };
    Change {
        path: b".git/HEAD".to_vec(),
        from: entry(before),
        to: entry(after),
        relinked: false,
    }
}

/// That an index came or went. What is staged in one is git's own to tell.
fn index_change(before: &LinkedGit, after: &LinkedGit) -> Change {
    let entry = |state: &LinkedGit| state.index.map(|_| files::entry(b"index", 0o644, b"index"));
    Change {
        path: b".git/index".to_vec(),
        from: entry(before),
        to: entry(after),
        relinked: false,
    }
}

/// That something stays as it is.
fn stays(path: &str, why: String) -> Note {
    Note {
        path: path.to_owned(),
        why,
    }
}

/// That there is no repository to put anything into.
pub(crate) fn is_gone() -> Note {
    tree_stays(damaged::GONE)
}

fn tree_stays(why: &str) -> Note {
    stays(
        ".git",
        format!("`HEAD`, branch and index stay as they are: {why}"),
    )
}

impl State {
    /// The repository of a work tree whose git directory lies elsewhere: a linked one, that of a
    /// submodule, or one that was made apart.
    fn linked_repository(&self, workspace: &Workspace) -> Option<(&Git, Repository)> {
        let git = self.around.git.as_ref()?;
        let repository = self.repository(workspace)?;
        let is_elsewhere = !repository.git_dir().starts_with(&workspace.root);
        is_elsewhere.then_some((git, repository))
    }

    /// The git directory of a linked work tree that git rejects, though its repository is there.
    fn damaged(&self, workspace: &Workspace) -> Option<(&Git, OwnDirectory)> {
        let git = self.around.git.as_ref()?;
        if self.repository(workspace).is_some() {
            return None;
        }
        Some((git, self.own_directory(workspace).ok()?))
    }

    /// Where the git directory of a linked work tree lies or lay, in the repository that it had
    /// when it was first seen: anybody who works there can write which one its `.git` names.
    fn own_directory(&self, workspace: &Workspace) -> Result<OwnDirectory, &'static str> {
        let found = OwnDirectory::of(&workspace.root)?;
        match self.had_repository(&workspace.root, found.common_dir()) {
            true => Ok(found),
            false => Err(damaged::FOREIGN),
        }
    }

    /// Captures the git state of a linked work tree. The caller has the object store open, so
    /// that nobody collects what is stored here.
    pub(crate) fn capture_linked(
        &self,
        workspace: &Workspace,
        scope: &Scope,
    ) -> Result<Option<LinkedGit>, StateError> {
        if !scope.is_everything() {
            return Ok(None);
        }
        let objects = self.objects()?;
        let writer = objects.writer();
        let Some((git, repository)) = self.linked_repository(workspace) else {
            let Some((git, directory)) = self.damaged(workspace) else {
                return Ok(None);
            };
            let found = directory.capture(git, &writer)?;
            writer.finish()?;
            return Ok(Some(found));
        };
        let place = place::GitPlace::open(repository.git_dir())?;
        let index = match place.read(b"index", MAX_INDEX_BYTES)? {
            Some((_, bytes)) => {
                let id = ContentId::of(&bytes);
                writer.add(id, bytes)?;
                Some(id)
            }
            None => None,
        };
        let (branch, commit) = match repository.head() {
            Head::Branch { name, commit } => (Some(name.clone()), commit.clone()),
            Head::Detached { commit } => (None, Some(commit.clone())),
        };
        let own = files::capture(files::own(&repository)?, &writer)?;
        let shared = shared::capture(git, &repository, &writer)?;
        writer.finish()?;
        Ok(Some(LinkedGit {
            branch,
            commit,
            index,
            own: Some(own),
            shared,
        }))
    }

    /// What a going back makes of a linked work tree's git state, and what of it stays as it is.
    pub(crate) fn linked_after(
        &self,
        goal: &Goal<'_>,
        scope: &Scope,
        now: Option<&LinkedGit>,
    ) -> Result<(Option<LinkedGit>, Vec<Note>), StateError> {
        let nothing = Vec::new();
        match (goal, now) {
            (Goal::Snapshot { snapshot, .. }, _) if scope.is_everything() => {
                Ok(match (&snapshot.record.linked, now) {
                    (None, Some(_)) => {
                        let why = "the checkpoint has no git state of this work tree";
                        (now.cloned(), vec![tree_stays(why)])
                    }
                    (Some(wanted), Some(now)) if wanted.is_damaged() => {
                        let why = "git could not read it when the checkpoint was made";
                        let stays = (!now.is_damaged()).then(|| tree_stays(why));
                        (Some(now.clone()), stays.into_iter().collect())
                    }
                    // What is shared stays: it is that of others, too.
                    (Some(wanted), Some(now)) => {
                        let wanted = LinkedGit {
                            own: wanted.own.or(now.own),
                            shared: now.shared,
                            ..wanted.clone()
                        };
                        (Some(wanted), nothing)
                    }
                    // It is seen when it is put back whether there is a repository.
                    (wanted, None) => (wanted.clone(), nothing),
                })
            }
            (Goal::Without { action, .. }, _) => {
                let before = self.find(action.before.as_str())?.record;
                let after = self.find(action.after.as_str())?.record;
                self.linked_without(&before, &after, now)
            }
            (Goal::Snapshot { .. } | Goal::Brought(_), _) => Ok((now.cloned(), nothing)),
        }
    }

    /// The same, for taking out what happened between two states.
    pub(crate) fn linked_without(
        &self,
        before: &Record,
        after: &Record,
        now: Option<&LinkedGit>,
    ) -> Result<(Option<LinkedGit>, Vec<Note>), StateError> {
        let (before, after, now) = match (&before.linked, &after.linked, now) {
            (Some(before), Some(_), Some(now)) if before.is_damaged() => {
                return Ok((Some(now.clone()), Vec::new()));
            }
            (Some(before), Some(after), Some(now)) => (before, after, now),
            (Some(before), None, None) => return Ok((Some(before.clone()), Vec::new())),
            // Earlier releases saw nothing there.
            (Some(before), None, Some(now)) if now.is_damaged() => {
                let before = LinkedGit {
                    shared: now.shared,
                    ..before.clone()
                };
                return Ok((Some(before), Vec::new()));
            }
            _ => return Ok((now.cloned(), Vec::new())),
        };
        let objects = self.objects()?;
        let reader = objects.reader();
        let mut notes = Vec::new();
        let mut wanted = now.clone();
        let mut take_back = || {
            (wanted.branch, wanted.commit) = (before.branch.clone(), before.commit.clone());
            (wanted.index, wanted.own) = (before.index, before.own.or(now.own));
        };
        if !is_same_work(&reader, before, after)? {
            if is_same_work(&reader, now, after)? {
                take_back();
            } else if !is_same_work(&reader, now, before)? {
                notes.push(tree_stays("the repository has moved on since"));
            }
        } else if !before.is_same_tree(after) && now.is_same_tree(after) {
            take_back();
        }
        if before.shared.is_some() && now.shared.is_none() {
            let why = "git cannot read the references of the repository";
            notes.push(stays(&path::display(shared::PACKED), why.to_owned()));
        }
        if let (Some(before), Some(after), Some(now)) = (before.shared, after.shared, now.shared) {
            let writer = objects.writer();
            let (shared, left) = shared::without(&reader, (&before, &after, &now), &writer)?;
            writer.finish()?;
            wanted.shared = Some(shared);
            notes.extend(left);
        }
        Ok((Some(wanted), notes))
    }

    /// Puts the git state of a linked work tree back, and says what could not be.
    pub(crate) fn put_linked(
        &self,
        workspace: &Workspace,
        wanted: Option<&LinkedGit>,
        reader: &Reader<'_>,
    ) -> Result<Vec<Note>, StateError> {
        let Some(wanted) = wanted else {
            return Ok(Vec::new());
        };
        if wanted.is_damaged() {
            return Ok(Vec::new());
        }
        let everything = Scope::everything();
        match (self.own_directory(workspace), self.repository(workspace)) {
            // Git would take it for this one's.
            (Err(damaged::TAKEN), _) => return Ok(vec![tree_stays(damaged::TAKEN)]),
            (Ok(directory), None) => {
                directory.mend(wanted)?;
                self.keep_made_anew(&workspace.root)?;
            }
            (Err(why), None) => return Ok(vec![tree_stays(why)]),
            (_, Some(_)) => {}
        }
        let Some((git, repository)) = self.linked_repository(workspace) else {
            return Ok(vec![tree_stays("git cannot read its repository")]);
        };
        let Some(now) = self.capture_linked(workspace, &everything)? else {
            return Ok(vec![is_gone()]);
        };
        // What has just been looked at may not have been stored when the reader was made.
        let objects = self.objects()?;
        let trees = objects.reader();
        let mut notes = shared::put(git, &repository, &trees, (now.shared, wanted.shared))?;
        if !now.is_same_tree(wanted)
            && let Some(why) = put_tree(git, &repository, &now, wanted, (&trees, reader))?
        {
            notes.push(tree_stays(&why));
            return Ok(notes);
        }
        let found = self.capture_linked(workspace, &everything)?;
        if !found.is_some_and(|found| found.is_same_tree(wanted)) {
            notes.push(tree_stays(
                "it is not as it should be after it was put back",
            ));
        }
        Ok(notes)
    }
}

/// Puts back what belongs to one work tree alone, and says why not where it cannot be.
fn put_tree(
    git: &Git,
    repository: &Repository,
    now: &LinkedGit,
    wanted: &LinkedGit,
    (trees, reader): (&Reader<'_>, &Reader<'_>),
) -> Result<Option<String>, StateError> {
    if repository.git_dir().join("index.lock").exists() {
        return Ok(Some("git is at work there (`index.lock`)".to_owned()));
    }
    if let Some(branch) = &wanted.branch
        && shared::used_elsewhere(repository).contains(branch)
    {
        return Ok(Some(format!(
            "another work tree has the branch `{branch}` checked out"
        )));
    }
    if !now.has_same_head(wanted)
        && let Err(error) = put_head(git, repository, wanted)
    {
        return Ok(Some(error.to_string()));
    }
    let place = place::GitPlace::open(repository.git_dir())?;
    match wanted.index {
        Some(content) if now.index != wanted.index => {
            place.write(b"index", &reader.read(content)?, None)?;
        }
        Some(_) => {}
        None => place.remove(b"index")?,
    }
    if let (Some(now), Some(wanted)) = (now.own, wanted.own) {
        let changes = tree::changes(trees, Some(&now), Some(&wanted), &Scope::everything())?;
        files::put(repository.git_dir(), &changes, trees)?;
    }
    Ok(None)
}

/// Moves the branch and `HEAD`, as git itself does it.
fn put_head(
    git: &Git,
    repository: &Repository,
    wanted: &LinkedGit,
) -> Result<(), crate::git::GitError> {
    let reason = "safepoint: going back";
    match (&wanted.branch, &wanted.commit) {
        (Some(branch), commit) => {
            let name = format!("refs/heads/{branch}");
            match commit {
                Some(commit) => {
                    repository.change(git, &["update-ref", "-m", reason, &name, commit], b"")?;
                }
                None => {
                    repository.change(git, &["update-ref", "-d", &name], b"")?;
                }
            }
            repository.change(git, &["symbolic-ref", "-m", reason, "HEAD", &name], b"")?;
        }
        (None, Some(commit)) => {
            let detach = ["update-ref", "--no-deref", "-m", reason, "HEAD", commit];
            repository.change(git, &detach, b"")?;
        }
        (None, None) => {}
    }
    Ok(())
}
