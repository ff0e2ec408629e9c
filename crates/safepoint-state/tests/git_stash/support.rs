//! A work tree to stash, and plain git to look at what came of it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use safepoint_state::git::stash::{self, Stash};
use safepoint_state::git::{Git, GitError, Repository};
use tempfile::TempDir;

pub(crate) const LABEL: &str = "checkpoint:01J:before the refactoring";

/// Everything about one file that could change.
type State = (u32, Option<(i64, i64)>, Vec<u8>);

pub(crate) struct Bench {
    directory: TempDir,
    pub(crate) top: PathBuf,
}

impl Bench {
    /// A repository with one commit of a few files.
    pub(crate) fn new() -> Self {
        let bench = Self::empty(&[]);
        bench.write("kept", "kept\n");
        bench.write("changed", "before\n");
        bench.write("staged", "before\n");
        bench.write("removed", "before\n");
        bench.write("dir/deep", "before\n");
        bench.commit("first");
        bench
    }

    /// A repository without a commit.
    pub(crate) fn empty(options: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("home")).unwrap();
        let top = root.join("tree");
        fs::create_dir(&top).unwrap();
        let bench = Self { directory, top };
        let mut arguments = vec!["init", "--quiet", "--initial-branch=main"];
        arguments.extend(options);
        bench.git(&arguments);
        bench
    }

    /// A path beside the work tree.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.directory.path()).unwrap().join(name)
    }

    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        vec![
            ("PATH".into(), path()),
            ("HOME".into(), self.beside("home").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ]
    }

    /// The runner under test, with variables that would lead it astray.
    pub(crate) fn runner(&self) -> Git {
        let mut environment = self.environment();
        for name in [
            "GIT_DIR",
            "GIT_INDEX_FILE",
            "GIT_WORK_TREE",
            "GIT_OBJECT_DIRECTORY",
        ] {
            environment.push((name.into(), "/nonexistent".into()));
        }
        Git::find(Some(&path()), environment).unwrap()
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::open(&self.runner(), &self.top)
            .unwrap()
            .unwrap()
    }

    pub(crate) fn stash(&self) -> Stash {
        self.stash_choosing(LABEL, &|_| false, &|_| true).unwrap()
    }

    pub(crate) fn stash_choosing(
        &self,
        label: &str,
        skip: &stash::Choice<'_>,
        scope: &stash::Choice<'_>,
    ) -> Result<Stash, GitError> {
        stash::create(&self.runner(), &self.open(), label, skip, scope)
    }

    /// The commit of the entry that must have been made.
    pub(crate) fn stashed(&self) -> String {
        match self.stash() {
            Stash::Made { commit } => commit,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.top.join(Path::new(name.as_ref()));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        fs::set_permissions(self.top.join(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Plain git, as the user would run it; it must succeed.
    pub(crate) fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let output = self.try_git(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        output.stdout
    }

    pub(crate) fn try_git(&self, arguments: &[&str]) -> Output {
        Command::new("git")
            .env_clear()
            .envs(self.environment())
            .current_dir(&self.top)
            .args(["-c", "protocol.file.allow=always"])
            .args(arguments)
            .output()
            .unwrap()
    }

    pub(crate) fn git_line(&self, arguments: &[&str]) -> String {
        String::from_utf8(self.git(arguments))
            .unwrap()
            .trim()
            .to_owned()
    }

    pub(crate) fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&[
            "-c",
            "user.name=User",
            "-c",
            "user.email=user@localhost",
            "commit",
            "--quiet",
            "--no-verify",
            "--no-gpg-sign",
            "-m",
            message,
        ]);
    }

    /// A stash of the user's own.
    pub(crate) fn user_stash(&self, message: &str) {
        let identity = ["-c", "user.name=User", "-c", "user.email=user@localhost"];
        self.git(&[&identity[..], &["stash", "push", "--quiet", "-m", message]].concat());
    }

    pub(crate) fn entries(&self) -> Vec<String> {
        let list = String::from_utf8(self.git(&["stash", "list", "--format=%gd %gs"])).unwrap();
        list.lines().map(str::to_owned).collect()
    }

    /// The names in a tree.
    pub(crate) fn names(&self, tree: &str) -> Vec<Vec<u8>> {
        let answer = self.git(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", tree]);
        let names = answer
            .split(|&byte| byte == 0)
            .filter(|name| !name.is_empty());
        names.map(<[u8]>::to_vec).collect()
    }

    /// The content of all objects there are.
    pub(crate) fn objects(&self) -> Vec<u8> {
        self.git(&["cat-file", "--batch-all-objects", "--batch"])
    }

    /// Every file in the work tree and the repository, apart from what a new
    /// entry may add to.
    pub(crate) fn listing(&self) -> BTreeMap<PathBuf, State> {
        let mut listing = BTreeMap::new();
        collect(&self.top, &self.top, &mut listing);
        listing
    }

    /// The work tree alone, without times: what `git stash apply` can restore.
    pub(crate) fn files(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let listing = self.listing().into_iter();
        let files = listing.filter(|(path, (mode, ..))| {
            !path.starts_with(".git") && mode & 0o170_000 != 0o040_000
        });
        files
            .map(|(path, (mode, _, content))| (path, (mode, content)))
            .collect()
    }
}

pub(crate) fn path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

pub(crate) fn contains(bytes: &[u8], part: &str) -> bool {
    bytes
        .windows(part.len())
        .any(|window| window == part.as_bytes())
}

fn collect(top: &Path, directory: &Path, listing: &mut BTreeMap<PathBuf, State>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.strip_prefix(top).unwrap().to_path_buf();
        let text = name.to_string_lossy().into_owned();
        if text.starts_with(".git/objects") || text.ends_with("refs/stash") {
            continue;
        }
        let found = fs::symlink_metadata(&path).unwrap();
        let in_repository = text.starts_with(".git");
        // Directories of the repository get and lose lock files.
        let times =
            (!found.is_dir() || !in_repository).then(|| (found.mtime(), found.mtime_nsec()));
        let content = if found.is_symlink() {
            fs::read_link(&path)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec()
        } else if found.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        // An empty directory of logs or references is nothing that git sees.
        if !(found.is_dir() && in_repository) {
            listing.insert(name, (found.mode(), times, content));
        }
        if found.is_dir() {
            collect(top, &path, listing);
        }
    }
}
