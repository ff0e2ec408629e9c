//! What a supervised tree has written so far, kept in a file: the supervisor may be killed, and then
//! nobody else knows it.
//!
//! The file begins with [`WriteJournal::HEADER`]. Each path follows with one byte before it, that
//! says whether all beneath it is meant, or that the record has a gap, and a zero byte after it. It
//! is not synced: it has to outlast the process, not the machine. Whoever looks at the workspace
//! meanwhile tells by it what the tree wrote from what others did. A line that only reads makes no
//! file.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::Writes;

/// More of such a file is not read.
const MAX_FILE_BYTES: u64 = 128 << 20;

/// Whether a path alone is written, or all beneath it too, or nobody knows where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    Path,
    Tree,
    Gap,
}

impl Written {
    const fn byte(self) -> u8 {
        match self {
            Self::Path => b'p',
            Self::Tree => b't',
            Self::Gap => b'g',
        }
    }
}

/// A file in which the paths are kept.
#[derive(Debug)]
pub(super) struct WriteJournal {
    file: PathBuf,
    is_begun: bool,
}

impl WriteJournal {
    /// Names the format and its version.
    const HEADER: &[u8] = b"safepoint-writes 1\0";

    pub(super) fn new(file: PathBuf) -> Self {
        Self {
            file,
            is_begun: false,
        }
    }

    /// Adds a path. The file is opened each time, since the threads that write here have
    /// descriptors of their own. A path that cannot be kept counts as nobody's after a kill.
    pub(super) fn add(&mut self, what: Written, path: &Path) {
        let mut bytes = vec![what.byte()];
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
        let opened = match self.is_begun {
            true => open(&self.file),
            false => begin(&self.file),
        };
        let written = opened.and_then(|mut file| file.write_all(&bytes));
        self.is_begun |= written.is_ok();
    }
}

fn begin(path: &Path) -> std::io::Result<File> {
    if let Some(directory) = path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)?;
    }
    let mut file = open(path)?;
    // Programs of one action may have a supervisor each.
    if file.metadata()?.len() == 0 {
        file.write_all(WriteJournal::HEADER)?;
    }
    Ok(file)
}

fn open(path: &Path) -> std::io::Result<File> {
    #[expect(
        clippy::disallowed_methods,
        reason = "outlasts this process, and not the machine"
    )]
    let options = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path);
    options
}

impl Writes {
    /// Begins a journal before anything is written: then its absence says that nobody keeps one.
    pub fn begin_journal(file: &Path) -> std::io::Result<()> {
        begin(file).map(drop)
    }

    /// What a supervisor has kept so far, or until it was killed. What cannot be read is not in
    /// it, and then it is not complete.
    pub fn read_journal(file: &Path) -> Self {
        let mut bytes = Vec::new();
        let read = File::open(file).and_then(|it| it.take(MAX_FILE_BYTES).read_to_end(&mut bytes));
        let entries = match (read, bytes.strip_prefix(WriteJournal::HEADER)) {
            (Ok(_), Some(entries)) => Some(entries),
            _ => None,
        };
        let mut written = Self {
            paths: BTreeSet::new(),
            trees: BTreeSet::new(),
            is_complete: entries.is_some() && (bytes.len() as u64) < MAX_FILE_BYTES,
        };
        let entries = entries.unwrap_or_default();
        let mut entries = entries.split(|byte| *byte == 0);
        // After the last zero byte comes what was cut off in the middle.
        entries.next_back();
        for entry in entries {
            let Some((kind, path)) = entry.split_first() else {
                continue;
            };
            let path = PathBuf::from(std::ffi::OsStr::from_bytes(path));
            if *kind == Written::Tree.byte() {
                written.trees.insert(path);
            } else if *kind == Written::Path.byte() {
                written.paths.insert(path);
            } else {
                written.is_complete = false;
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use super::*;

    #[test]
    fn fe_33_what_was_written_outlasts_the_supervisor() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("below/act_1");
        let read = || Writes::read_journal(&file);
        let is_empty = |it: &Writes| it.paths.is_empty() && it.trees.is_empty();
        assert!(is_empty(&read()) && !read().is_complete);

        let mut journal = WriteJournal::new(file.clone());
        journal.add(Written::Path, Path::new("/p/a\nb"));
        let mut journal = WriteJournal::new(file.clone());
        journal.add(Written::Tree, Path::new("/p/t"));
        assert_eq!(read().paths, BTreeSet::from(["/p/a\nb".into()]));
        assert_eq!(read().trees, BTreeSet::from(["/p/t".into()]));
        assert!(read().is_complete);

        // A path that was cut off is none; a shorter one would be somebody else's.
        let whole = std::fs::read(&file).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&file, &whole[..length]).unwrap();
            let seen = read();
            assert!(seen.trees.is_empty(), "{length}");
            assert!(
                seen.paths.iter().all(|it| it == Path::new("/p/a\nb")),
                "{length}"
            );
        }
        std::fs::write(&file, b"safepoint-writes 2\0p/p/a\0").unwrap();
        assert!(is_empty(&read()));
    }
}
