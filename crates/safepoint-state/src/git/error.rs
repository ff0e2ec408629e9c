//! What can go wrong between safepoint and git.
//!
//! Each says what could not be done and why, in words that can be shown.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use safepoint_fence::FenceError;

/// What git could not do, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// Git ran and refused.
    #[error("git {command} failed ({status}): {stderr}")]
    Failed {
        /// What followed `git` on the command line.
        command: String,
        /// How it ended.
        status: ExitStatus,
        /// What it said.
        stderr: String,
    },
    /// Git does not open repositories of other users.
    #[error(
        "git does not trust the repository at {worktree}, which belongs to somebody else: allow it with `git config --global --add safe.directory {worktree}`",
        worktree = worktree.display()
    )]
    Untrusted {
        /// The work tree.
        worktree: PathBuf,
    },
    /// There is a `.git`, but no repository behind it.
    #[error("the git repository of {worktree} is broken: {why}", worktree = worktree.display())]
    Broken {
        /// The work tree.
        worktree: PathBuf,
        /// What is missing or wrong.
        why: String,
    },
    /// The program could not be started, or the connection to it broke.
    #[error("cannot run {program}: {source}", program = program.display())]
    Run {
        /// The git program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program could not be put behind its fence, so it was not started.
    #[error("cannot run {program} behind its fence: {source}", program = program.display())]
    Fence {
        /// The git program.
        program: PathBuf,
        /// What went wrong.
        source: Box<FenceError>,
    },
    /// The repository is not known to be that of the work tree, so nothing is written there.
    #[error(
        "the `.git` of {worktree} leads to {git_dir}, which is not known to be its repository",
        worktree = worktree.display(),
        git_dir = git_dir.display()
    )]
    Foreign {
        /// The work tree.
        worktree: PathBuf,
        /// Where its `.git` leads.
        git_dir: PathBuf,
    },
    /// The program does not know the settings that make it safe to run.
    #[error("{program} is too old: git 2.31 or newer is needed", program = program.display())]
    TooOld {
        /// The git program.
        program: PathBuf,
    },
    /// A file of the work tree or the repository could not be read.
    #[error("cannot read {path}: {source}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A large file became shorter while its content was taken.
    #[error("{path} changed while it was read", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Git answered in a way that we do not understand.
    #[error("git {command} gave an answer that cannot be understood: {answer}")]
    Answer {
        /// What followed `git` on the command line.
        command: String,
        /// The part that is not understood.
        answer: String,
    },
}
