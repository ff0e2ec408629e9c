//! What a command line would do, in the words that atlases use.
//!
//! A line does as many things as it does: each is a deed. What cannot be
//! understood is a deed too (`shell.opaque`), so that nothing is left out by
//! not being understood.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::{Risk, SideEffect};

/// One thing that a command would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The built-in action, such as `file.delete`.
    pub action: String,
    /// The kinds of effect it has.
    pub effects: BTreeSet<SideEffect>,
    /// How much is at stake.
    pub risk: Risk,
    /// What would take it back.
    pub undo: Undo,
    /// What it touches, as far as the line tells.
    pub touches: Vec<Touch>,
    /// The machines it talks to.
    pub hosts: BTreeSet<String>,
    /// Why it is thought so, in a few words: `rm` removes files.
    pub because: String,
}

/// What would take a deed back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// It changes nothing.
    NotNeeded,
    /// A checkpoint of everything it touches.
    Touched,
    /// A checkpoint of the whole workspace: what it touches is not told by the line.
    Workspace,
    /// A checkpoint of the whole workspace takes back all but this.
    Partly(String),
    /// Nothing, and why.
    Never(String),
    /// Nobody knows.
    Unknown,
}

/// Something on disk that a deed touches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Where.
    pub place: Where,
    /// How.
    pub role: Role,
}

/// A place, as far as a line tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Where {
    /// This path: absolute, without `.` and `..`. Links are not resolved here.
    Exact(PathBuf),
    /// Something below this directory, by a pattern or a search.
    Below(PathBuf),
    /// It depends on what happens. The words as they are written.
    Unknown(String),
}

/// How a place is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Its content or its names are read.
    Read,
    /// It is written or made.
    Write,
    /// It is removed or emptied.
    Delete,
    /// Its mode, owner or times change.
    Metadata,
    /// It is run.
    Execute,
}

/// Everything a line would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Understanding {
    /// Every program it would run, as words; what is not known before it runs is `None`.
    pub commands: Vec<Vec<Option<String>>>,
    /// What they would do, the first first.
    pub deeds: Vec<Deed>,
    /// The variables that it gives a value.
    pub assigned: BTreeSet<String>,
}

/// A program, by what it is and not by what it is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// It lies where only the system's owner writes: it is what its name says.
    System(PathBuf),
    /// It lies elsewhere: whoever wrote it chose what it does.
    Other(PathBuf),
    /// There is none of this name.
    Missing,
}

/// Finds programs and home directories.
pub trait Programs {
    /// The program that `name` means when it is started in `directory`.
    fn find(&self, name: &str, directory: &Path) -> Program;

    /// Whether this file is the very program that judges the line, wherever it lies.
    fn is_own(&self, _path: &Path) -> bool {
        false
    }

    /// `HOME` in the environment that the line gets, which the shell takes for `~`. Empty is a
    /// value; without one, `~` is the home directory of the account.
    fn home_variable(&self) -> Option<OsString> {
        None
    }

    /// The home directory of an account in the user database, for `~NAME`.
    fn home_of(&self, _account: &str) -> Option<PathBuf> {
        None
    }
}

/// Where a line would run.
pub struct Surroundings<'a> {
    /// The programs there are.
    pub programs: &'a dyn Programs,
    /// The directory it runs in, absolute and without links.
    pub directory: &'a Path,
    /// The home directory of the account in the user database. The shell uses it where `HOME`
    /// is not set.
    pub home: Option<&'a Path>,
    /// Where Safepoint keeps its own things: nobody but operators touches them.
    pub own: &'a [PathBuf],
}
