//! A workspace with a store of its own, and a recording of what is in it that
//! owes nothing to the product.

#![allow(
    dead_code,
    reason = "every test file uses another part of what they share"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, XattrFlags};
use rustix::io::Errno;
use safepoint_model::Expiry;
use safepoint_state::git::Git;
use safepoint_state::scope::Scope;
use safepoint_state::seal::{Identity, Recipient};
use safepoint_state::{
    Goal, Made, Origin, Patterns, Progress, Restored, Rules, Snapshot, State, StateError,
    Surroundings, Wanted, Workspace,
};
use safepoint_store::{Blobs, Location, Options, Store};
use safepoint_trail::{LostStore, Trail};
use testkit::{RealClock, Seeded};

/// A directory with a store in it, and room for workspaces beside the store.
pub(crate) struct Bench {
    directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) state: State,
    /// Whether files have extended attributes there.
    pub(crate) attributes: bool,
}

impl Bench {
    /// A new store, in memory where that can be had.
    pub(crate) fn new(seed: u64) -> Self {
        let builder = tempfile::Builder::new();
        let directory = builder
            .tempdir_in("/dev/shm")
            .or_else(|_| builder.tempdir())
            .unwrap();
        Self::in_directory(directory, seed)
    }

    /// The same on the disk that temporary files are on.
    pub(crate) fn on_disk(seed: u64) -> Self {
        Self::in_directory(tempfile::tempdir().unwrap(), seed)
    }

    fn in_directory(directory: tempfile::TempDir, seed: u64) -> Self {
        let root = fs::canonicalize(directory.path()).unwrap();
        fs::create_dir(root.join("home")).unwrap();
        let location = Location::Sqlite(root.join("store.db"));
        let lock_timeout = Duration::from_secs(60);
        let store = Store::open(&location, Options { lock_timeout }).unwrap();
        let clock = Arc::new(RealClock);
        let entropy = Arc::new(Seeded::new(seed));
        let trail = Trail::open(
            Arc::new(store),
            &safepoint_trail::Surroundings {
                keys: root.join("keys"),
                witnesses: root.join("witness"),
                blobs: Blobs::new(root.join("blobs")),
                clock: clock.clone(),
                entropy: entropy.clone(),
                lost_store: LostStore::Refuse,
            },
        )
        .unwrap();
        let around = Surroundings {
            data: root.join("data"),
            runtime: root.join("runtime"),
            state: root.join("state"),
            clock,
            entropy,
            git: Git::find(Some(&search_path()), environment(&root)),
            lock_timeout,
            cap: None,
            actor: "user:test".parse().unwrap(),
            variables: Vec::new(),
            program_path: None,
        };
        let state = State::open(trail, around).unwrap();
        let attributes = fs::write(root.join("probe"), "").is_ok()
            && set_attribute(&root.join("probe"), "user.probe", b"x").is_ok();
        Self {
            directory,
            root,
            state,
            attributes,
        }
    }

    /// A new empty workspace.
    pub(crate) fn place(&self, name: &str) -> Place<'_> {
        let top = self.root.join(name);
        fs::create_dir(&top).unwrap();
        self.open(top)
    }

    pub(crate) fn open(&self, top: PathBuf) -> Place<'_> {
        let rules = Rules::new(Patterns::default()).unwrap();
        Place {
            bench: self,
            workspace: Workspace {
                root: top.clone(),
                rules,
                providers: Default::default(),
            },
            top,
        }
    }
}

/// One workspace.
pub(crate) struct Place<'a> {
    pub(crate) bench: &'a Bench,
    pub(crate) workspace: Workspace,
    pub(crate) top: PathBuf,
}

impl Place<'_> {
    pub(crate) fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.top.join(Path::new(name.as_ref()))
    }

    /// Writes a file, in place, and makes the directories above it.
    pub(crate) fn write(&self, name: impl AsRef<OsStr>, content: impl AsRef<[u8]>) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: impl AsRef<OsStr>) -> Vec<u8> {
        let path = self.at(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn chmod(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A checkpoint of everything that nobody asked for, so that it makes no stash entry.
    pub(crate) fn checkpoint(&self) -> Result<Made, StateError> {
        self.checkpoint_as(Origin::Automatic, &[])
    }

    pub(crate) fn checkpoint_as(
        &self,
        origin: Origin,
        seal_to: &[Recipient],
    ) -> Result<Made, StateError> {
        let scope = Scope::everything();
        let wanted = Wanted {
            scope: &scope,
            parts: Vec::new(),
            reason: Some("a test".to_owned()),
            kind: None,
            expiry: Expiry::Never,
            origin,
            seal_to,
        };
        let state = &self.bench.state;
        state.checkpoint(&self.workspace, &wanted, &Progress::default())
    }

    pub(crate) fn roll_back(&self, snapshot: &Snapshot) -> Result<Restored, StateError> {
        self.roll_back_with(snapshot, &[])
    }

    pub(crate) fn roll_back_with(
        &self,
        snapshot: &Snapshot,
        identities: &[Identity],
    ) -> Result<Restored, StateError> {
        let goal = Goal::Snapshot {
            snapshot,
            scope: Scope::everything(),
            parts: snapshot.record.parts.clone(),
        };
        let state = &self.bench.state;
        state.restore(&self.workspace, &goal, identities, &Progress::default())
    }

    /// Takes one action out again.
    pub(crate) fn without(&self, action: &str, verb: &'static str) -> Result<Restored, StateError> {
        let state = &self.bench.state;
        let action = state.find_action(action)?;
        let goal = Goal::Without {
            action: &action,
            verb,
        };
        state.restore(&self.workspace, &goal, &[], &Progress::default())
    }

    /// Everything that is there now, with the insides of repositories or without.
    pub(crate) fn record(&self, git: Repositories) -> Recording {
        record(&self.top, git)
    }

    /// Plain git, as a user would run it; it must succeed.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = self.try_git(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn try_git(&self, arguments: &[&str]) -> Output {
        Command::new("git")
            .env_clear()
            .envs(environment(&self.bench.root))
            .current_dir(&self.top)
            .args(["-c", "protocol.file.allow=always", "-c", "gc.auto=0"])
            .args(arguments)
            .output()
            .unwrap()
    }

    /// What git says of itself, without changing anything.
    pub(crate) fn git_recording(&self) -> Vec<(String, String)> {
        [
            &["status", "--porcelain=v2", "--branch", "-z", "-uall"][..],
            &["rev-parse", "HEAD"],
            &["symbolic-ref", "HEAD"],
            &["diff", "--cached", "--no-ext-diff"],
            &["ls-files", "--stage", "-z"],
            &["for-each-ref", "refs/heads", "refs/tags"],
            &["rev-parse", "-q", "--verify", "MERGE_HEAD"],
            &["reflog", "show", "--format=%H %gs", "HEAD"],
        ]
        .into_iter()
        .map(|command| {
            let output = self.try_git(&[&["--no-optional-locks"], command].concat());
            let code = output.status.code();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            (command.join(" "), format!("exit {code:?}\n{said}"))
        })
        .collect()
    }
}

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap()
}

fn environment(root: &Path) -> Vec<(OsString, OsString)> {
    let home = root.join("home");
    [
        ("PATH", search_path()),
        ("HOME", home.into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("GIT_AUTHOR_NAME", "User".into()),
        ("GIT_AUTHOR_EMAIL", "user@localhost".into()),
        ("GIT_COMMITTER_NAME", "User".into()),
        ("GIT_COMMITTER_EMAIL", "user@localhost".into()),
        ("GIT_EDITOR", "true".into()),
    ]
    .map(|(name, value)| (name.into(), value))
    .into()
}

/// Whether the insides of `.git` directories are looked at.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repositories {
    /// Like all else.
    Included,
    /// Git is asked about them instead.
    Apart,
}

/// Everything about one name that must come back.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Thing {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) owner: (u32, u32),
    pub(crate) modified: (i64, i64),
    pub(crate) attributes: BTreeMap<Vec<u8>, Vec<u8>>,
    /// All names of the same file, this one among them.
    pub(crate) names: BTreeSet<Vec<u8>>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    File(Vec<u8>),
    Directory,
    Link(Vec<u8>),
    Pipe,
    Other,
}

impl std::fmt::Debug for Thing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::File(bytes) if bytes.len() > 60 => {
                let start = bytes.get(..40).unwrap_or_default();
                write!(formatter, "file of {}: {}…", bytes.len(), shown(start))?;
            }
            Kind::File(bytes) => write!(formatter, "file {}", shown(bytes))?,
            Kind::Directory => formatter.write_str("directory")?,
            Kind::Link(target) => write!(formatter, "link to {}", shown(target))?,
            Kind::Pipe => formatter.write_str("pipe")?,
            Kind::Other => formatter.write_str("something else")?,
        }
        let (seconds, nanos) = self.modified;
        write!(formatter, " {:o} {seconds}.{nanos:09}", self.mode)?;
        for (name, value) in &self.attributes {
            write!(formatter, " {}={}", shown(name), shown(value))?;
        }
        if self.names.len() > 1 {
            let names: Vec<_> = self.names.iter().map(|name| shown(name)).collect();
            write!(formatter, " linked {names:?}")?;
        }
        Ok(())
    }
}

/// Bytes, readable.
pub(crate) fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

pub(crate) type Recording = BTreeMap<Vec<u8>, Thing>;

/// Looks at everything below `top` but Safepoint's own directories.
pub(crate) fn record(top: &Path, git: Repositories) -> Recording {
    let mut recording = Recording::new();
    let mut files: BTreeMap<(u64, u64), BTreeSet<Vec<u8>>> = BTreeMap::new();
    walk(top, b"", git, &mut recording, &mut files);
    for names in files.into_values() {
        for name in &names {
            if let Some(thing) = recording.get_mut(name) {
                thing.names = names.clone();
            }
        }
    }
    recording
}

fn walk(
    directory: &Path,
    above: &[u8],
    git: Repositories,
    recording: &mut Recording,
    files: &mut BTreeMap<(u64, u64), BTreeSet<Vec<u8>>>,
) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().as_bytes();
        if above.is_empty() && [&b".checkpoints"[..], b".audit"].contains(&name) {
            continue;
        }
        let found = fs::symlink_metadata(&path).unwrap();
        if git == Repositories::Apart && name == b".git" && found.is_dir() {
            continue;
        }
        let relative = match above {
            b"" => name.to_vec(),
            above => [above, b"/", name].concat(),
        };
        let kind = if found.is_dir() {
            Kind::Directory
        } else if found.is_symlink() {
            Kind::Link(fs::read_link(&path).unwrap().as_os_str().as_bytes().into())
        } else if found.is_file() {
            Kind::File(fs::read(&path).unwrap())
        } else if found.file_type().is_fifo() {
            Kind::Pipe
        } else {
            Kind::Other
        };
        if found.is_file() {
            let names = files.entry((found.dev(), found.ino())).or_default();
            names.insert(relative.clone());
        }
        let thing = Thing {
            kind,
            mode: found.mode() & 0o7777,
            owner: (found.uid(), found.gid()),
            modified: (found.mtime(), found.mtime_nsec()),
            attributes: attributes(&path),
            names: BTreeSet::new(),
        };
        recording.insert(relative.clone(), thing);
        if found.is_dir() {
            walk(&path, &relative, git, recording, files);
        }
    }
}

fn attributes(path: &Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 4096];
    let length = match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(length) => length,
        Err(Errno::NOTSUP | Errno::PERM) => 0,
        Err(error) => panic!("{}: {error}", path.display()),
    };
    names.truncate(length);
    names
        .split(|byte| *byte == 0)
        .filter(|name| name.starts_with(b"user."))
        .map(|name| {
            let mut value = vec![0; 4096];
            let length = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
            value.truncate(length);
            (name.to_vec(), value)
        })
        .collect()
}

pub(crate) fn set_attribute(path: &Path, name: &str, value: &[u8]) -> Result<(), Errno> {
    rustix::fs::lsetxattr(path, name, value, XattrFlags::empty())
}

/// Sets the time of the last change, of a link itself too.
pub(crate) fn set_time(path: &Path, (seconds, nanos): (i64, i64)) {
    let omit = rustix::fs::UTIME_OMIT;
    let times = Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: omit,
        },
        last_modification: Timespec {
            tv_sec: seconds,
            tv_nsec: nanos,
        },
    };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

pub(crate) fn time_of(path: &Path) -> (i64, i64) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.mtime(), found.mtime_nsec())
}

pub(crate) fn make_pipe(path: &Path, mode: u32) -> Result<(), Errno> {
    let mode = rustix::fs::Mode::from_raw_mode(mode);
    rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, mode, 0)
}

/// Every way in which two recordings differ.
pub(crate) fn differences(wanted: &Recording, found: &Recording) -> Vec<String> {
    let mut differences = Vec::new();
    let names: BTreeSet<_> = wanted.keys().chain(found.keys()).collect();
    for name in names {
        match (wanted.get(name), found.get(name)) {
            (Some(wanted), Some(found)) if wanted == found => {}
            (wanted, found) => differences.push(format!(
                "{}:\n      wanted {wanted:?}\n      found  {found:?}",
                shown(name)
            )),
        }
    }
    differences
}

/// Fails when anything at all differs.
#[track_caller]
pub(crate) fn assert_same(wanted: &Recording, found: &Recording, when: &str) {
    let differences = differences(wanted, found);
    assert!(differences.is_empty(), "{when}: {}", differences.join("\n"));
}

/// Nothing of Safepoint's is left in a workspace but manifests and the log.
pub(crate) fn leftovers(top: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let names = |directory: &Path| -> Vec<String> {
        let listing = fs::read_dir(directory).into_iter().flatten();
        listing
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect()
    };
    let own = top.join(".checkpoints");
    for name in names(&own) {
        if name == ".gitignore" {
            continue;
        }
        let inside = names(&own.join(&name));
        if !name.starts_with("chk_") || inside != ["manifest.json"] {
            found.push(format!(".checkpoints/{name} {inside:?}"));
        }
    }
    for name in names(&top.join(".audit")) {
        if name != ".gitignore" && name != "checkpoint-operations.log" {
            found.push(format!(".audit/{name}"));
        }
    }
    if top.join(".git/index.lock").exists() {
        found.push(".git/index.lock".to_owned());
    }
    found
}
