//! A tree as it is seen without any code of the product.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Place;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Everything under a directory, by path.
pub type Tree = BTreeMap<PathBuf, Seen>;

/// What stands under one path.
#[derive(Clone, PartialEq, Eq)]
pub struct Seen {
    /// Kind and permission bits, as `stat` has them.
    pub mode: u32,
    /// When it was last changed, in nanoseconds.
    pub modified: i128,
    /// The bytes of a file, or the target of a link.
    pub content: Vec<u8>,
    /// The first path of the same file, when it has several.
    pub same_as: Option<PathBuf>,
    /// Extended attributes.
    pub attributes: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl fmt::Debug for Seen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start: Vec<u8> = self.content.iter().take(60).copied().collect();
        write!(
            formatter,
            "{:o} {} {} bytes {:?} {:?} {:?}",
            self.mode,
            self.modified,
            self.content.len(),
            String::from_utf8_lossy(&start),
            self.same_as,
            self.attributes,
        )
    }
}

/// Looks at everything in `root` but what is Safepoint's own, and git directories at any depth.
pub fn look(root: &Path) -> Tree {
    let mut tree = Tree::new();
    let mut first = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(directory) = waiting.pop() {
        let mut names: Vec<_> = std::fs::read_dir(root.join(&directory))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        for name in names {
            let own = [".checkpoints", ".audit"];
            if directory.as_os_str().is_empty() && own.iter().any(|it| name == *it) {
                continue;
            }
            let path = directory.join(&name);
            if name == ".git" && root.join(&path).is_dir() {
                continue; // git is asked about it
            }
            tree.insert(path.clone(), one(root, &path, &mut first));
            if root.join(&path).symlink_metadata().unwrap().is_dir() {
                waiting.push(path);
            }
        }
    }
    // Which name of a group came first depends on the walk: take the smallest.
    let mut groups: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
    for (path, seen) in &tree {
        if let Some(group) = &seen.same_as {
            groups.entry(group.clone()).or_insert_with(|| path.clone());
        }
    }
    for seen in tree.values_mut() {
        seen.same_as = seen.same_as.as_ref().map(|group| groups[group].clone());
    }
    tree
}

fn one(root: &Path, path: &Path, first: &mut BTreeMap<(u64, u64), PathBuf>) -> Seen {
    let full = root.join(path);
    let found = full.symlink_metadata().unwrap();
    let kind = found.file_type();
    let content = if kind.is_file() {
        std::fs::read(&full).unwrap()
    } else if kind.is_symlink() {
        let target = std::fs::read_link(&full).unwrap();
        target.as_os_str().as_bytes().to_vec()
    } else {
        Vec::new()
    };
    let shared = kind.is_file() && found.nlink() > 1;
    let same_as = shared.then(|| match first.entry((found.dev(), found.ino())) {
        Place::Occupied(known) => known.get().clone(),
        Place::Vacant(new) => new.insert(path.to_owned()).clone(),
    });
    Seen {
        mode: found.mode(),
        modified: i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec()),
        content,
        same_as,
        attributes: attributes(&full),
    }
}

/// The extended attributes that a user can set; none where the file system has none.
fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 64 << 10];
    let length = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    names.truncate(length);
    let mut found = BTreeMap::new();
    for name in names.split(|byte| *byte == 0) {
        if !name.starts_with(b"user.") {
            continue;
        }
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value.truncate(length);
        found.insert(name.to_vec(), value);
    }
    found
}

/// Fails, and names what differs, unless both are the same.
#[track_caller]
pub fn assert_same(expected: &Tree, found: &Tree) {
    let mut paths: Vec<&PathBuf> = expected.keys().chain(found.keys()).collect();
    paths.sort();
    paths.dedup();
    let differing: Vec<String> = paths
        .into_iter()
        .filter(|path| expected.get(*path) != found.get(*path))
        .map(|path| {
            format!(
                "{path:?}\n  expected {:?}\n  found    {:?}",
                expected.get(path),
                found.get(path)
            )
        })
        .collect();
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

/// Runs git with an identity and without the settings of the machine, and gives back what it printed.
#[track_caller]
pub fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = git_command(directory, arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The git command with these arguments, not yet started.
pub fn git_command(directory: &Path, arguments: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("git");
    command
        .args(["-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_EDITOR", "true")
        .env("GIT_AUTHOR_NAME", "A")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "C")
        .env("GIT_COMMITTER_EMAIL", "c@example.org")
        .stdin(std::process::Stdio::null());
    command
}
