//! Contents, trees and commits, made in one run of `git fast-import`.
//!
//! It takes bytes as they are: no filter, no line ending, no name is special to
//! it. Commits are described by what differs from `HEAD`, so neither an index
//! nor a temporary file is needed. Fast-import wants a branch for each commit;
//! the branch is reset again before the end of the input, and `done` keeps an
//! input that breaks off from counting, so no reference is ever written.
//!
//! It never writes an index, a reference or a file of the work tree, and never
//! descends into a nested repository.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::content::{Content, Worktree};
use super::error::GitError;
use super::layout::unreadable;
use super::repository::Repository;
use super::runner::Git;
use super::status::Entry;

const COMMAND: [&str; 6] = [
    "-c",
    // Names that differ in case alone are different names, whatever the disk thinks.
    "core.ignoreCase=false",
    "fast-import",
    "--quiet",
    "--done",
    "--date-format=now",
];

/// Never comes to be: see the head of the module.
const BRANCH: &str = "refs/safepoint/never";

const COMMITTER: &str = "Safepoint <safepoint@localhost> now";

const SYMLINK: &str = "120000";
const GITLINK: &str = "160000";

/// Files up to this size are read whole before they are passed on, so that one
/// which becomes shorter meanwhile does no harm.
const WHOLE: u64 = 8 << 20;

/// What a path is to be in a tree.
#[derive(Debug)]
pub(super) enum Source {
    /// Not there.
    Absent,
    /// An object that git has.
    Object(Entry),
    /// What is in the work tree.
    Work {
        /// The mode that git sees, which may differ from what is on the disk.
        mode: Option<String>,
        /// What the index has, for a submodule that says nothing.
        index: Option<Entry>,
    },
}

/// A path that differs from `HEAD`.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) path: Vec<u8>,
    pub(super) in_head: bool,
    pub(super) source: Source,
}

/// The commits to make.
#[derive(Debug)]
pub(super) struct Plan {
    /// The commit of `HEAD`.
    pub(super) base: String,
    /// What is checked out, for people.
    pub(super) place: String,
    pub(super) index: Vec<Item>,
    pub(super) work: Vec<Item>,
    pub(super) untracked: Vec<Item>,
}

/// What was made.
#[derive(Debug)]
pub(super) struct Made {
    pub(super) commit: String,
    /// Whether nothing differs from `HEAD`.
    pub(super) is_clean: bool,
}

/// Makes the commit of a stash with the message `label`, and its parents.
pub(super) fn make(
    git: &Git,
    repository: &Repository,
    plan: &Plan,
    label: &str,
) -> Result<Made, GitError> {
    let mut is_clean = false;
    let answer = repository.feed(git, &COMMAND, &mut |input| {
        let mut importer = Importer {
            git,
            repository,
            input,
            marks: 0,
            worktree: Worktree::new(repository.worktree()),
        };
        is_clean = importer.write(plan, label)?;
        Ok(())
    })?;
    let commit = String::from_utf8_lossy(&answer).trim().to_owned();
    if commit.is_empty() || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(GitError::Answer {
            command: COMMAND.join(" "),
            answer: commit,
        });
    }
    Ok(Made { commit, is_clean })
}

struct Importer<'a> {
    git: &'a Git,
    repository: &'a Repository,
    input: &'a mut dyn Write,
    marks: u64,
    worktree: Worktree<'a>,
}

impl Importer<'_> {
    /// Writes the whole input; gives back whether nothing differs.
    fn write(&mut self, plan: &Plan, label: &str) -> Result<bool, GitError> {
        let index = self.lines(&plan.index)?;
        let work = self.lines(&plan.work)?;
        let untracked = self.lines(&plan.untracked)?;
        let (base, place) = (&plan.base, &plan.place);
        let mut parents = vec![base.clone()];
        parents.push(self.commit(
            &format!("index on {place}: {label}"),
            std::slice::from_ref(base),
            &index,
        ));
        if !untracked.is_empty() {
            let message = format!("untracked files on {place}: {label}");
            parents.push(self.commit(&message, &[], &untracked));
        }
        let commit = self.commit(label, &parents, &work);
        self.put(format!("get-mark {commit}\ndone\n").as_bytes());
        Ok(index.is_empty() && work.is_empty() && untracked.is_empty())
    }

    /// Writes a commit and gives back its mark.
    fn commit(&mut self, message: &str, parents: &[String], lines: &[Vec<u8>]) -> String {
        let mark = self.next_mark();
        let length = message.len();
        self.put(format!("commit {BRANCH}\nmark {mark}\ncommitter {COMMITTER}\n").as_bytes());
        self.put(format!("data {length}\n{message}\n").as_bytes());
        for (position, parent) in parents.iter().enumerate() {
            let word = if position == 0 { "from" } else { "merge" };
            self.put(format!("{word} {parent}\n").as_bytes());
        }
        self.put(&lines.concat());
        self.put(format!("\nreset {BRANCH}\n\n").as_bytes());
        mark
    }

    /// Writes the contents that `items` need and gives back the lines of a
    /// commit. Removals come first: a directory may stand where a file was.
    fn lines(&mut self, items: &[Item]) -> Result<Vec<Vec<u8>>, GitError> {
        let (mut removed, mut set) = (Vec::new(), Vec::new());
        for item in items {
            let path = quoted(&item.path);
            let found = match &item.source {
                Source::Absent => None,
                Source::Object(entry) => Some((entry.mode.clone(), entry.id.clone())),
                Source::Work { mode, index } => {
                    self.take(&item.path, mode.as_deref(), index.as_ref())?
                }
            };
            match found {
                Some((mode, object)) => {
                    set.push(format!("M {mode} {object} {path}\n").into_bytes())
                }
                None if item.in_head => removed.push(format!("D {path}\n").into_bytes()),
                None => {}
            }
        }
        removed.append(&mut set);
        Ok(removed)
    }

    /// Takes what is at `path` of the work tree: its mode and mark or object.
    fn take(
        &mut self,
        path: &[u8],
        mode: Option<&str>,
        index: Option<&Entry>,
    ) -> Result<Option<(String, String)>, GitError> {
        let full = self.repository.worktree().join(OsStr::from_bytes(path));
        Ok(match self.worktree.look(path)? {
            Content::Nothing => None,
            Content::Link(target) => Some((SYMLINK.to_owned(), self.blob(&target))),
            Content::Directory => self.submodule(&full, index)?,
            Content::File { file, executable } => {
                let seen = if executable { "100755" } else { "100644" };
                let mode = mode.filter(|mode| *mode != GITLINK).unwrap_or(seen);
                Some((mode.to_owned(), self.file(file, &full)?))
            }
        })
    }

    /// Writes the content of an open file and gives back its mark.
    fn file(&mut self, mut file: File, path: &Path) -> Result<String, GitError> {
        let length = file.metadata().map_err(unreadable(path))?.len();
        if length <= WHOLE {
            let mut bytes = Vec::new();
            file.take(WHOLE)
                .read_to_end(&mut bytes)
                .map_err(unreadable(path))?;
            return Ok(self.blob(&bytes));
        }
        let mark = self.next_mark();
        self.put(format!("blob\nmark {mark}\ndata {length}\n").as_bytes());
        let mut part = (&mut file).take(length);
        // Writing never fails here, so a failure is one of reading.
        let copied = io::copy(&mut part, self.input).map_err(unreadable(path))?;
        self.put(b"\n");
        if copied == length {
            Ok(mark)
        } else {
            Err(GitError::Changed { path: path.into() })
        }
    }

    fn blob(&mut self, bytes: &[u8]) -> String {
        let mark = self.next_mark();
        self.put(format!("blob\nmark {mark}\ndata {}\n", bytes.len()).as_bytes());
        self.put(bytes);
        self.put(b"\n");
        mark
    }

    /// The commit that a nested repository has checked out. One that says
    /// nothing stays as the index has it.
    fn submodule(
        &self,
        path: &Path,
        index: Option<&Entry>,
    ) -> Result<Option<(String, String)>, GitError> {
        let nested = match Repository::open(self.git, path) {
            Err(GitError::Broken { .. }) => None,
            nested => nested?,
        };
        let commit = nested.and_then(|nested| nested.head().commit().map(str::to_owned));
        let recorded = index
            .filter(|entry| entry.mode == GITLINK)
            .map(|entry| entry.id.clone());
        Ok(commit
            .or(recorded)
            .map(|commit| (GITLINK.to_owned(), commit)))
    }

    fn next_mark(&mut self) -> String {
        self.marks += 1;
        format!(":{}", self.marks)
    }

    fn put(&mut self, bytes: &[u8]) {
        // The runner hears from git itself why it stopped listening.
        let _ = self.input.write_all(bytes);
    }
}

/// A path as fast-import reads it, whatever its bytes.
fn quoted(path: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in path {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\{byte:03o}")),
        }
    }
    text.push('"');
    text
}
