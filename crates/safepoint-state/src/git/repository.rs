//! Where the repository of a work tree lies, and where its `HEAD` is.
//!
//! Read from the files themselves, so that a look costs no process. Git is
//! asked only where the references are not files (`reftable`).
//!
//! It never writes, and never looks above the directory it was given.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::config;
use super::error::GitError;
use super::layout::{
    Bond, Tie, bond, find_common_dir, find_git_dir, in_progress, is_worktree_of, read_text,
    unreadable,
};
use super::runner::{Allowance, Git};
use super::settings::Setting;

/// As deep as git itself follows symbolic references.
const MAX_DEPTH: usize = 5;

/// References that every linked work tree has for itself.
const PRIVATE: [&str; 3] = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];

/// What is checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// A branch.
    Branch {
        /// Its name, without `refs/heads/`.
        name: String,
        /// Its commit; none before the first.
        commit: Option<String>,
    },
    /// A commit and no branch.
    Detached {
        /// The commit.
        commit: String,
    },
}

impl Head {
    /// The commit that is checked out, if there is one yet.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Self::Branch { commit, .. } => commit.as_deref(),
            Self::Detached { commit } => Some(commit),
        }
    }
}

/// The repository of a work tree, as it was when it was opened.
#[derive(Debug)]
pub struct Repository {
    worktree: PathBuf,
    git_dir: PathBuf,
    common_dir: PathBuf,
    head: Head,
    in_progress: Vec<&'static str>,
    bond: Bond,
    /// Whether it is known to be the repository of the work tree, whatever it names.
    is_known: bool,
    /// Found at the first run of git.
    silencers: OnceLock<Vec<Setting>>,
}

impl Repository {
    /// The repository that `worktree` is the top directory of; none when there
    /// is no `.git`, when it is bare, or when its work tree is somewhere else.
    pub fn open(git: &Git, worktree: &Path) -> Result<Option<Self>, GitError> {
        let worktree = fs::canonicalize(worktree).map_err(unreadable(worktree))?;
        let broken = |why: &str| GitError::Broken {
            worktree: worktree.clone(),
            why: why.into(),
        };
        let Some(git_dir) = find_git_dir(&worktree)? else {
            return Ok(None);
        };
        let common_dir = find_common_dir(&git_dir)?;
        if !common_dir.join("objects").is_dir() {
            return Err(broken("it has no directory `objects`"));
        }
        let text = read_text(&common_dir.join("config"))?.unwrap_or_default();
        if !is_worktree_of(&worktree, &git_dir, &common_dir, &text)? {
            return Ok(None);
        }
        let mut repository = Self {
            head: Head::Detached {
                commit: String::new(),
            },
            in_progress: in_progress(&git_dir),
            silencers: OnceLock::new(),
            bond: bond(&worktree, &git_dir, &common_dir),
            is_known: false,
            worktree: worktree.clone(),
            git_dir,
            common_dir,
        };
        let storage = config::value(&text, "extensions", "refstorage");
        if storage.is_some_and(|storage| storage.starts_with("reftable")) {
            repository.ask_git(git)?;
        } else {
            repository.head = repository
                .read_head()?
                .ok_or_else(|| broken("its `HEAD` says neither a branch nor a commit"))?;
        }
        Ok(Some(repository))
    }

    /// The top directory of the work tree, absolute and without symbolic links.
    pub fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// The directory with `HEAD` and the index of this work tree, absolute.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The directory with the objects and branches, absolute: that of the main
    /// work tree when this is a linked one.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Where it lies, and how it and the work tree name each other.
    pub(crate) fn tie(&self) -> Tie {
        Tie {
            git_dir: self.git_dir.clone(),
            common_dir: self.common_dir.clone(),
            bond: self.bond,
        }
    }

    /// The same, of which the caller knows that it is the work tree's.
    #[must_use]
    pub(crate) fn known(self) -> Self {
        Self {
            is_known: true,
            ..self
        }
    }

    /// Whether the repository has no work tree but linked ones.
    pub fn is_bare(&self) -> bool {
        super::layout::is_bare(&self.common_dir)
    }

    /// What is checked out.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// What git is in the middle of: `merge`, `rebase`, `am`, `cherry-pick`,
    /// `revert`, `bisect`.
    pub fn in_progress(&self) -> Vec<&'static str> {
        self.in_progress.clone()
    }

    /// Runs git in the work tree with `input`, and gives back its output. It can write nothing,
    /// and start nothing.
    pub fn run(&self, git: &Git, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        self.give(git, &Allowance::reading(), arguments, input)
    }

    /// The same, for a command of git's that starts git again.
    pub(super) fn run_with_children(
        &self,
        git: &Git,
        arguments: &[&str],
    ) -> Result<Vec<u8>, GitError> {
        self.give(git, &Allowance::reading_with_children(), arguments, b"")
    }

    /// The same, for one that changes the repository.
    pub fn change(&self, git: &Git, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, GitError> {
        self.change_with(git, &[], arguments, input)
    }

    /// The same, for one that writes in these places too.
    pub(crate) fn change_with(
        &self,
        git: &Git,
        places: &[&Path],
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        self.give(git, &self.writing(places)?, arguments, input)
    }

    fn give(
        &self,
        git: &Git,
        allowance: &Allowance,
        arguments: &[&str],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        // A child that stops listening tells why when it ends.
        self.feed_within(git, allowance, arguments, &mut |stdin| {
            let _ = stdin.write_all(input);
            Ok(())
        })
    }

    /// The directories of this repository, where git may write, and these.
    fn writing(&self, places: &[&Path]) -> Result<Allowance, GitError> {
        if self.bond == Bond::OneSided && !self.is_known {
            return Err(GitError::Foreign {
                worktree: self.worktree.clone(),
                git_dir: self.git_dir.clone(),
            });
        }
        let own = [self.git_dir.as_path(), self.common_dir.as_path()];
        let places = own.into_iter().chain(places.iter().copied());
        Ok(Allowance::writing(places.map(Path::to_owned).collect()))
    }

    /// Runs git in the work tree to change the repository; `feed` writes its input.
    pub(super) fn feed(
        &self,
        git: &Git,
        arguments: &[&str],
        feed: &mut dyn FnMut(&mut dyn Write) -> Result<(), GitError>,
    ) -> Result<Vec<u8>, GitError> {
        self.feed_within(git, &self.writing(&[])?, arguments, feed)
    }

    fn feed_within(
        &self,
        git: &Git,
        allowance: &Allowance,
        arguments: &[&str],
        feed: &mut dyn FnMut(&mut dyn Write) -> Result<(), GitError>,
    ) -> Result<Vec<u8>, GitError> {
        let settings = match self.silencers.get() {
            Some(settings) => settings,
            None => {
                let found = git.silencers(&self.worktree)?;
                self.silencers.get_or_init(|| found)
            }
        };
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        git.run(&self.worktree, (settings, allowance), &arguments, feed)
    }

    /// What a run of git says in one line; none when it ends with 1, which is
    /// how git says that there is nothing to say.
    fn ask(&self, git: &Git, arguments: &[&str]) -> Result<Option<String>, GitError> {
        match self.run(git, arguments, b"") {
            Ok(answer) => Ok(Some(String::from_utf8_lossy(&answer).trim().to_owned())),
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn ask_git(&mut self, git: &Git) -> Result<(), GitError> {
        let commit = self.ask(git, &["rev-parse", "-q", "--verify", "HEAD^{commit}"])?;
        let branch = self.ask(git, &["symbolic-ref", "-q", "HEAD"])?;
        self.head = match (branch, commit) {
            (Some(name), commit) => Head::Branch {
                name: short(&name),
                commit,
            },
            (None, Some(commit)) => Head::Detached { commit },
            (None, None) => {
                let why = "its `HEAD` says neither a branch nor a commit".into();
                return Err(GitError::Broken {
                    worktree: self.worktree.clone(),
                    why,
                });
            }
        };
        for (reference, what) in [
            ("CHERRY_PICK_HEAD", "cherry-pick"),
            ("REVERT_HEAD", "revert"),
        ] {
            let known = self.in_progress.contains(&what) || self.in_progress.contains(&"rebase");
            if !known
                && self
                    .ask(git, &["rev-parse", "-q", "--verify", reference])?
                    .is_some()
            {
                self.in_progress.push(what);
            }
        }
        Ok(())
    }

    /// Follows `HEAD` through the files; none when they make no sense.
    fn read_head(&self) -> Result<Option<Head>, GitError> {
        let mut name = String::from("HEAD");
        for _ in 0..=MAX_DEPTH {
            let content = match read_text(&self.place(&name).join(&name))? {
                Some(content) => content,
                None => {
                    let commit = self.packed(&name)?;
                    return Ok(self.branch(name, commit));
                }
            };
            let content = content.trim();
            match content.strip_prefix("ref:").map(str::trim) {
                Some(next) if is_reference(next) => next.clone_into(&mut name),
                Some(_) => return Ok(None),
                None if !is_object_id(content) => return Ok(None),
                None if name == "HEAD" => {
                    return Ok(Some(Head::Detached {
                        commit: content.to_owned(),
                    }));
                }
                None => return Ok(self.branch(name, Some(content.to_owned()))),
            }
        }
        Ok(None)
    }

    fn branch(&self, name: String, commit: Option<String>) -> Option<Head> {
        (name != "HEAD").then(|| Head::Branch {
            name: short(&name),
            commit,
        })
    }

    /// The directory that has the file of the reference `name`.
    fn place(&self, name: &str) -> &Path {
        if name == "HEAD" || PRIVATE.iter().any(|prefix| name.starts_with(prefix)) {
            &self.git_dir
        } else {
            &self.common_dir
        }
    }

    fn packed(&self, name: &str) -> Result<Option<String>, GitError> {
        let text = read_text(&self.common_dir.join("packed-refs"))?.unwrap_or_default();
        Ok(text.lines().find_map(|line| match line.split_once(' ') {
            Some((id, found)) if found == name && is_object_id(id) => Some(id.to_owned()),
            _ => None,
        }))
    }
}

fn short(name: &str) -> String {
    name.strip_prefix("refs/heads/").unwrap_or(name).to_owned()
}

/// Whether `name` can be a reference; above all, that it stays below `refs`.
fn is_reference(name: &str) -> bool {
    name.starts_with("refs/") && !name.contains("..") && !name.contains('\0')
}

fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
