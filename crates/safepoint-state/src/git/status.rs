//! How a work tree differs from its index, and its index from `HEAD`.
//!
//! One run of `git status` that writes nothing. Git compares as it always does,
//! so a file is changed here exactly when the user's own git says so, apart
//! from filters, which are switched off. It never looks into submodules: their
//! own configuration could name programs to run.

use super::error::GitError;
use super::repository::Repository;
use super::runner::Git;

const COMMAND: [&str; 8] = [
    "status",
    "--porcelain=v2",
    "-z",
    "--branch",
    "--no-ahead-behind",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=dirty",
];

/// A mode and an object, as trees have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) mode: String,
    pub(super) id: String,
}

/// A tracked path that is not the same everywhere.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) path: Vec<u8>,
    /// None: not in `HEAD`.
    pub(super) head: Option<Entry>,
    /// None: not in the index.
    pub(super) index: Option<Entry>,
    /// The mode in the work tree. None: not there.
    pub(super) mode: Option<String>,
    /// Whether the index differs from `HEAD`.
    pub(super) staged: bool,
    /// Whether the work tree differs from the index.
    pub(super) unstaged: bool,
}

/// All that differs.
#[derive(Debug, Default)]
pub(super) struct Status {
    /// The commit of `HEAD`; none before the first.
    pub(super) base: Option<String>,
    /// The branch of `HEAD`; none when detached.
    pub(super) branch: Option<String>,
    pub(super) changes: Vec<Change>,
    pub(super) unmerged: Vec<Vec<u8>>,
    /// Files that are neither tracked nor ignored. Without nested repositories,
    /// which git does not put into a stash either.
    pub(super) untracked: Vec<Vec<u8>>,
}

impl Status {
    pub(super) fn read(git: &Git, repository: &Repository) -> Result<Self, GitError> {
        Self::parse(&repository.run(git, &COMMAND, b"")?)
    }

    fn parse(answer: &[u8]) -> Result<Self, GitError> {
        let mut status = Self::default();
        for line in answer
            .split(|&byte| byte == 0)
            .filter(|line| !line.is_empty())
        {
            status.take(line).ok_or_else(|| GitError::Answer {
                command: COMMAND.join(" "),
                answer: String::from_utf8_lossy(line).into_owned(),
            })?;
        }
        Ok(status)
    }

    /// Takes in one line; none when it is not understood.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        let (kind, rest) = cut(line)?;
        match kind {
            "#" => self.take_header(&String::from_utf8_lossy(rest)),
            "1" => self.changes.push(change(rest)?),
            "u" => self.unmerged.push(fields::<9>(rest)?.1.to_vec()),
            // A nested repository ends with a slash.
            "?" if rest.ends_with(b"/") => {}
            "?" => self.untracked.push(rest.to_vec()),
            _ => return None,
        }
        Some(())
    }

    /// Headers that are not known say nothing of the files.
    fn take_header(&mut self, header: &str) {
        match header.split_once(' ') {
            Some(("branch.oid", "(initial)") | ("branch.head", "(detached)")) => {}
            Some(("branch.oid", commit)) => self.base = Some(commit.to_owned()),
            Some(("branch.head", name)) => self.branch = Some(name.to_owned()),
            _ => {}
        }
    }
}

fn change(line: &[u8]) -> Option<Change> {
    let ([states, _, head_mode, index_mode, mode, head_id, index_id], path) = fields(line)?;
    let mut states = states.chars();
    Some(Change {
        staged: states.next()? != '.',
        unstaged: states.next()? != '.',
        path: path.to_vec(),
        head: entry(head_mode, head_id),
        index: entry(index_mode, index_id),
        mode: there(mode),
    })
}

fn entry(mode: &str, id: &str) -> Option<Entry> {
    there(mode).map(|mode| Entry {
        mode,
        id: id.to_owned(),
    })
}

fn there(mode: &str) -> Option<String> {
    (mode != "000000").then(|| mode.to_owned())
}

/// The first `N` words of a line, and the rest, which is a path of any bytes.
fn fields<const N: usize>(line: &[u8]) -> Option<([&str; N], &[u8])> {
    let mut words = [""; N];
    let mut rest = line;
    for word in &mut words {
        (*word, rest) = cut(rest)?;
    }
    Some((words, rest))
}

fn cut(line: &[u8]) -> Option<(&str, &[u8])> {
    let space = line.iter().position(|&byte| byte == b' ')?;
    let word = std::str::from_utf8(line.get(..space)?).ok()?;
    Some((word, line.get(space + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::Status;

    #[test]
    fn st_13_every_kind_of_line_is_understood() {
        let answer = b"# branch.oid abc\0# branch.head main\0# later 1\0\
            1 MD N... 100644 100755 000000 aaa bbb a b\nc\0\
            u UU N... 100644 100644 100644 100644 a b c x y\0? -new\xff\0? nested/\0";
        let status = Status::parse(answer).unwrap();
        assert_eq!(status.base.as_deref(), Some("abc"));
        assert_eq!(status.branch.as_deref(), Some("main"));
        let change = &status.changes[0];
        assert_eq!(change.path, b"a b\nc");
        assert_eq!(change.index.as_ref().unwrap().id, "bbb");
        assert!(change.staged && change.unstaged && change.mode.is_none());
        assert_eq!(status.unmerged, [b"x y"]);
        assert_eq!(status.untracked, [b"-new\xff"]);
    }

    #[test]
    fn st_13_a_strange_line_is_an_error() {
        assert!(Status::parse(b"2 R. what\0").is_err());
        assert!(Status::parse(b"1 M.\0").is_err());
    }
}
