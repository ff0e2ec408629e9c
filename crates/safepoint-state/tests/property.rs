//! Random trees, random changes, checkpoints at random moments: whatever
//! happened, going back gives exactly what was there.
//!
//! What was there is recorded by the tests themselves (`support::record`).
//! `SAFEPOINT_CASES` says how many histories are tried; a failure names its
//! seed, and `SAFEPOINT_SEED=… SAFEPOINT_CASES=1` tries that one alone.

#![expect(
    clippy::disallowed_methods,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests"
)]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use safepoint_state::{Origin, Snapshot};
use support::{
    Bench, Kind, Place, Recording, Repositories, differences, leftovers, make_pipe, record,
    set_attribute, set_time, shown, time_of,
};
use testkit::Seeded;

/// So many histories, unless `SAFEPOINT_CASES` says otherwise.
const CASES: u64 = 120;
/// Most of the time of a case is waiting until files have been quiet.
const WORKERS: usize = 6;
/// A store is shared by so many cases, so that they meet each other's objects.
const CASES_PER_STORE: u64 = 40;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

/// Tries many histories, several at a time, and tells of the first that fails.
fn try_all(cases: u64, one: fn(&mut History<'_>) -> Result<(), String>) {
    let first = setting("SAFEPOINT_SEED", 20_261_115);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS.min(cases as usize) {
            scope.spawn(|| {
                let mut bench = None;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= cases || !failed.lock().unwrap().is_empty() {
                        return;
                    }
                    let seed = first + number;
                    if number % CASES_PER_STORE < WORKERS as u64 {
                        bench = None;
                    }
                    let bench = bench.get_or_insert_with(|| Bench::new(seed));
                    let place = bench.place(&format!("workspace-{seed}"));
                    let mut history = History {
                        random: Random(Seeded::new(seed)),
                        log: Vec::new(),
                        points: Vec::new(),
                        for_git: false,
                        place,
                    };
                    if let Err(why) = one(&mut history) {
                        let log = history.log.join("\n  ");
                        let told = format!("seed {seed}\n  {log}\n  {why}");
                        failed.lock().unwrap().push(told);
                    }
                    let top = history.place.top.clone();
                    open_up(&top);
                    fs::remove_dir_all(top).unwrap();
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

/// Makes everything deletable.
fn open_up(directory: &Path) {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            open_up(&entry.path());
        }
    }
}

struct Random(Seeded);

impl Random {
    /// A number below `limit`.
    fn below(&self, limit: u64) -> u64 {
        self.0.next() % limit
    }

    fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len().max(1) as u64) as usize)
    }

    /// True once in so many times.
    fn once_in(&self, times: u64) -> bool {
        self.below(times) == 0
    }

    fn bytes(&self, length: u64) -> Vec<u8> {
        // Some repeat, so that the same content stands in several places.
        let words: &[&[u8]] = &[
            b"one ",
            b"two\n",
            b"three\r\n",
            b"\0\0",
            b"\xff\xfe",
            b"six",
        ];
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < length {
            if length > 10_000 {
                bytes.extend(self.0.next().to_le_bytes());
            } else {
                bytes.extend_from_slice(self.pick(words).unwrap());
            }
        }
        bytes.truncate(length as usize);
        bytes
    }

    fn content(&self) -> Vec<u8> {
        match self.below(200) {
            0 => self.bytes((1 << 20) + self.below(2 << 20)),
            1 => self.bytes((1 << 20) - 1 + self.below(3)),
            2..=9 => self.bytes(self.below(100_000)),
            10..=40 => Vec::new(),
            41..=90 => self.bytes(self.below(12)),
            _ => self.bytes(self.below(3_000)),
        }
    }

    fn time(&self) -> (i64, i64) {
        let seconds = match self.below(6) {
            0 => 0,
            1 => -(self.below(1_000_000) as i64),
            2 => 4_000_000_000 + self.below(1_000_000) as i64,
            _ => 1_500_000_000 + self.below(300_000_000) as i64,
        };
        let nanos = self.pick(&[0, 1, 999_999_999, 123_456_789]).unwrap();
        (seconds, *nanos)
    }

    /// Not `.gitignore`: git itself hangs where that is a pipe.
    fn name(&self) -> OsString {
        const NAMES: &[&[u8]] = &[
            b"a",
            b"b",
            b"c",
            b"a.",
            b"a-b",
            b"a!",
            b"a0",
            b"A",
            b"file.txt",
            b"src",
            b"lib",
            b"with space",
            b" ",
            b"trailing ",
            b"-rf",
            b"--",
            b"new\nline",
            b"\r",
            b"tab\t",
            b"\xff\xfe not text",
            b"caf\xe9",
            "café".as_bytes(),
            "日本語".as_bytes(),
            "🦀".as_bytes(),
            b"back\\slash",
            b"\\n",
            b"\\xff",
            b"quote\"'",
            b"*",
            b"[a]",
            b"$HOME",
            b"..x",
            b".hidden",
            b".gitkeep",
            b"~",
            b"x.lock",
            b"#",
        ];
        if self.once_in(40) {
            return OsString::from_vec(vec![b'n'; 255]);
        }
        OsString::from_vec(self.pick(NAMES).unwrap().to_vec())
    }
}

/// One workspace, what was done to it, and what it was at each checkpoint.
struct History<'a> {
    place: Place<'a>,
    random: Random,
    log: Vec<String>,
    points: Vec<Point>,
    /// Git overlooks an edit that keeps inode, size and the second, and cannot be asked then.
    for_git: bool,
}

struct Point {
    snapshot: Snapshot,
    files: Recording,
    git: Vec<(String, String)>,
}

/// What is there and can be changed.
struct Listing {
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    links: Vec<PathBuf>,
    all: Vec<PathBuf>,
}

impl History<'_> {
    fn listing(&self, below: &str) -> Listing {
        let top = self.place.at(below);
        let mut listing = Listing {
            directories: vec![top.clone()],
            files: Vec::new(),
            links: Vec::new(),
            all: Vec::new(),
        };
        for (name, thing) in record(&top, Repositories::Apart) {
            let path = top.join(OsString::from_vec(name));
            match thing.kind {
                Kind::Directory => listing.directories.push(path.clone()),
                Kind::File(_) => listing.files.push(path.clone()),
                Kind::Link(_) => listing.links.push(path.clone()),
                Kind::Pipe | Kind::Other => {}
            }
            listing.all.push(path);
        }
        listing
    }

    /// A name that nothing has, in some directory.
    fn free(&self, listing: &Listing) -> Option<PathBuf> {
        let directory = self.random.pick(&listing.directories)?;
        if directory.components().count() > self.place.top.components().count() + 5 {
            return None;
        }
        let path = directory.join(self.random.name());
        path.symlink_metadata().is_err().then_some(path)
    }

    /// Changes something below a directory, at random.
    fn change(&mut self, below: &str) -> io::Result<()> {
        let listing = self.listing(below);
        let random = &self.random;
        let file = random.pick(&listing.files).cloned();
        let any = random.pick(&listing.all).cloned();
        let free = self.free(&listing);
        // Few things are there: make some.
        let kind = if listing.all.len() < 4 {
            random.below(6)
        } else {
            random.below(27)
        };
        let told = match (kind, file, any, free) {
            (0..=2, _, _, Some(free)) => {
                fs::write(&free, random.content())?;
                if random.once_in(4) {
                    set_time(&free, random.time());
                }
                format!("create {}", show(&free))
            }
            (3, _, _, Some(free)) => {
                let deep = if random.once_in(2) {
                    free.join(random.name())
                } else {
                    free
                };
                fs::create_dir_all(&deep)?;
                format!("mkdir {}", show(&deep))
            }
            (4, _, _, Some(free)) => {
                let target = self.target(&listing);
                std::os::unix::fs::symlink(&target, &free)?;
                format!("link {} to {}", show(&free), show(&target))
            }
            (5, Some(file), _, Some(free)) => {
                fs::hard_link(&file, &free)?;
                format!("hard link {} {}", show(&file), show(&free))
            }
            (6, Some(file), _, _) => {
                fs::write(&file, random.content())?;
                format!("edit {}", show(&file))
            }
            (7 | 8, Some(file), _, _) if !self.for_git => edit_quietly(&file, random)?,
            (9, Some(file), _, _) => {
                let open = fs::File::options().append(true).open(&file)?;
                let end = open.metadata()?.len();
                open.write_all_at(&random.bytes(1 + random.below(500)), end)?;
                format!("append to {}", show(&file))
            }
            (10, Some(file), _, _) => {
                let open = fs::File::options().write(true).open(&file)?;
                let length = open.metadata()?.len();
                open.set_len(random.below(length + 1))?;
                format!("truncate {}", show(&file))
            }
            (11 | 12, _, Some(any), _) => {
                remove(&any)?;
                format!("remove {}", show(&any))
            }
            (13 | 14, _, Some(any), Some(free)) if !free.starts_with(&any) => {
                fs::rename(&any, &free)?;
                format!("rename {} to {}", show(&any), show(&free))
            }
            (15, Some(file), ..) => {
                let modes = [
                    0o600, 0o644, 0o755, 0o400, 0o444, 0o640, 0o777, 0o4711, 0o2755,
                ];
                let mode = *random.pick(&modes).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(mode))?;
                format!("chmod {mode:o} {}", show(&file))
            }
            (16, ..) => {
                let Some(directory) = random.pick(&listing.directories[1..]) else {
                    return Ok(());
                };
                let mode = *random.pick(&[0o700, 0o755, 0o775, 0o1777, 0o2750]).unwrap();
                fs::set_permissions(directory, fs::Permissions::from_mode(mode))?;
                format!("chmod {mode:o} {}", show(directory))
            }
            (17, ..) => {
                let Some(link) = random.pick(&listing.links) else {
                    return Ok(());
                };
                let time = time_of(link);
                fs::remove_file(link)?;
                let target = self.target(&listing);
                std::os::unix::fs::symlink(&target, link)?;
                if random.once_in(2) {
                    set_time(link, time);
                }
                format!("retarget {} to {}", show(link), show(&target))
            }
            (18, Some(file), ..) => {
                // The same bytes, mode and time in another file: links are broken.
                let time = time_of(&file);
                let copy = file.with_file_name("copy of it");
                fs::copy(&file, &copy)?;
                fs::rename(&copy, &file)?;
                if random.once_in(2) {
                    set_time(&file, time);
                }
                format!("put a copy in place of {}", show(&file))
            }
            (19, _, Some(any), _) => {
                remove(&any)?;
                let what = match random.below(4) {
                    0 => fs::write(&any, random.content()).map(|()| "file"),
                    1 => fs::create_dir(&any)
                        .and_then(|()| fs::write(any.join("inside"), random.content()))
                        .map(|()| "directory"),
                    2 => std::os::unix::fs::symlink(self.target(&listing), &any).map(|()| "link"),
                    _ => make_pipe(&any, 0o644).map(|()| "pipe").map_err(Into::into),
                };
                format!("{} becomes a {}", show(&any), what?)
            }
            (20, _, _, Some(free)) => {
                make_pipe(&free, 0o600)?;
                format!("pipe {}", show(&free))
            }
            (21, _, Some(any), _) if self.place.bench.attributes => {
                let found = any.symlink_metadata()?;
                if !found.is_file() && !found.is_dir() {
                    return Ok(());
                }
                let name = *random.pick(&["user.one", "user.two"]).unwrap();
                if random.once_in(3) {
                    let _ = rustix::fs::lremovexattr(&any, name); // it may have none
                } else {
                    set_attribute(&any, name, &random.bytes(random.below(40)))?;
                }
                format!("attribute {name} of {}", show(&any))
            }
            (22 | 23, _, Some(any), _) => {
                let time = random.time();
                set_time(&any, time);
                format!("time {time:?} of {}", show(&any))
            }
            (24, _, _, Some(free)) => {
                let open = fs::File::create(&free)?;
                open.set_len(random.below(2 << 20))?;
                open.write_all_at(&random.bytes(100), random.below(1 << 20))?;
                format!("sparse {}", show(&free))
            }
            (25, Some(file), _, Some(free)) => {
                fs::copy(&file, &free)?;
                format!("copy {} to {}", show(&file), show(&free))
            }
            (26, Some(file), ..) => {
                // Two files change places, with their times.
                let other = random.pick(&listing.files).unwrap();
                let aside = file.with_file_name("aside");
                fs::rename(&file, &aside)?;
                if *other != file {
                    fs::rename(other, &file)?;
                }
                fs::rename(&aside, other)?;
                format!("swap {} and {}", show(&file), show(other))
            }
            _ => return Ok(()),
        };
        self.log.push(told);
        Ok(())
    }

    /// Somewhere that a link may point, whether anything is there or not.
    fn target(&self, listing: &Listing) -> PathBuf {
        match self.random.below(5) {
            0 => "nowhere/at all".into(),
            1 => "..".into(),
            2 => OsString::from_vec(b"\xff\n".to_vec()).into(),
            3 => self.random.pick(&listing.directories).unwrap().clone(),
            _ => self
                .random
                .pick(&listing.all)
                .cloned()
                .unwrap_or_else(|| ".".into()),
        }
    }

    /// Makes some changes. What an ordinary user may not do is not done.
    fn changes(&mut self, below: &str, count: u64) {
        for _ in 0..count {
            match self.change(below) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {} // names that are too long
                Err(error) => panic!("{:?}: {error}", self.log),
            }
        }
    }

    fn look(&self, git: bool) -> (Recording, Vec<(String, String)>) {
        let repositories = if git {
            Repositories::Apart
        } else {
            Repositories::Included
        };
        let said = if git {
            self.place.git_recording()
        } else {
            Vec::new()
        };
        (self.place.record(repositories), said)
    }

    fn checkpoint(&mut self, origin: Origin, git: bool) -> Result<(), String> {
        let (files, said) = self.look(git);
        let made = self.place.checkpoint_as(origin, &[]).map_err(told)?;
        self.log
            .push(format!("-- checkpoint {}", self.points.len()));
        let (now, now_said) = self.look(git);
        same("the checkpoint changed the tree", &files, &now)?;
        same_git("the checkpoint changed the repository", &said, &now_said)?;
        if let Some(note) = made.snapshot.record.sensitive.first() {
            return Err(format!("taken for a secret: {note:?}"));
        }
        self.points.push(Point {
            snapshot: made.snapshot,
            files,
            git: said,
        });
        Ok(())
    }

    /// Goes back to one of the checkpoints, and sometimes forward again.
    fn roll_back(&mut self, git: bool) -> Result<(), String> {
        let number = self.random.below(self.points.len() as u64) as usize;
        let (before, before_said) = self.look(git);
        self.log.push(format!("-- roll back to {number}"));
        let point = &self.points[number];
        let done = self.place.roll_back(&point.snapshot).map_err(told)?;
        self.compare("after the roll back", &point.files, &point.git, git)?;
        if !done.matches {
            return Err(format!(
                "it is right, and is said not to be: {:?}",
                done.warnings
            ));
        }
        if self.random.below(10) < 4 {
            self.log.push("-- redo".to_owned());
            let action = done.action.to_string();
            let done = self.place.without(&action, "redo").map_err(told)?;
            self.compare("after the redo", &before, &before_said, git)?;
            if !done.matches {
                return Err(format!(
                    "the redo is said to be incomplete: {:?}",
                    done.warnings
                ));
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        when: &str,
        files: &Recording,
        said: &[(String, String)],
        git: bool,
    ) -> Result<(), String> {
        let (now, now_said) = self.look(git);
        same(when, files, &now)?;
        same_git(when, said, &now_said)?;
        let left = leftovers(&self.place.top);
        if !left.is_empty() {
            return Err(format!("{when}: left over: {left:?}"));
        }
        Ok(())
    }
}

fn told(error: safepoint_state::StateError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

fn same(when: &str, wanted: &Recording, found: &Recording) -> Result<(), String> {
    let differences = differences(wanted, found);
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("{when}:\n    {}", differences.join("\n    ")))
}

fn same_git(
    when: &str,
    wanted: &[(String, String)],
    found: &[(String, String)],
) -> Result<(), String> {
    for ((command, wanted), (_, found)) in wanted.iter().zip(found) {
        if wanted != found {
            return Err(format!(
                "{when}: git {command}\n{wanted}\n---- now\n{found}"
            ));
        }
    }
    Ok(())
}

fn show(path: &Path) -> String {
    let text = shown(path.as_os_str().as_bytes());
    match text.split_once("/workspace-") {
        Some((_, rest)) => rest.split_once('/').map_or("", |it| it.1).to_owned(),
        None => text,
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}

/// Another content of the same size, under the same time.
fn edit_quietly(file: &Path, random: &Random) -> io::Result<String> {
    let mut bytes = fs::read(file)?;
    let time = time_of(file);
    let Some(at) = random.below(bytes.len().max(1) as u64).try_into().ok() else {
        return Ok(String::new());
    };
    if let Some(byte) = bytes.get_mut::<usize>(at) {
        *byte = byte.wrapping_add(1);
    }
    if random.once_in(2) {
        fs::write(file, &bytes)?;
    } else {
        let beside = file.with_file_name("beside it");
        fs::write(&beside, &bytes)?;
        fs::set_permissions(&beside, fs::metadata(file)?.permissions())?;
        fs::rename(&beside, file)?;
    }
    set_time(file, time);
    Ok(format!("edit {} without a trace", show(file)))
}

#[test]
fn st_30_any_tree_comes_back_and_goes_forward_again() {
    try_all(setting("SAFEPOINT_CASES", CASES), |history| {
        history.changes("", 6 + history.random.below(16));
        history.checkpoint(Origin::Automatic, false)?;
        for _ in 0..3 + history.random.below(5) {
            match history.random.below(10) {
                0..=5 => history.changes("", 1 + history.random.below(6)),
                6 | 7 => history.checkpoint(Origin::Automatic, false)?,
                _ => history.roll_back(false)?,
            }
        }
        history.changes("", 1 + history.random.below(4));
        history.roll_back(false)?;
        history.roll_back(false)
    });
}

#[test]
fn st_13_any_git_state_comes_back() {
    let cases = setting("SAFEPOINT_CASES", CASES).div_ceil(10);
    try_all(cases, |history| {
        history.for_git = true;
        history
            .place
            .git(&["init", "--quiet", "--initial-branch=main"]);
        if !history.random.once_in(5) {
            history.changes("", 5);
            history.place.write("tracked", "one\ntwo\nthree\n");
            history.git(&["add", "--all"]);
            history.git(&["commit", "--quiet", "--message=first"]);
        }
        history.checkpoint(Origin::Automatic, true)?;
        for _ in 0..6 {
            match history.random.below(10) {
                0..=5 => history.some_git(),
                6 => history.changes("", 1 + history.random.below(3)),
                7 => {
                    let asked = history.random.once_in(3);
                    let origin = if asked {
                        Origin::Asked
                    } else {
                        Origin::Automatic
                    };
                    history.checkpoint(origin, true)?;
                }
                _ => history.roll_back(true)?,
            }
        }
        history.some_git();
        history.roll_back(true)?;
        history.roll_back(true)?;
        // What came back is a repository that git can go on with.
        if !history
            .place
            .try_git(&["rev-parse", "--verify", "HEAD"])
            .status
            .success()
        {
            return Ok(()); // there is no commit to check
        }
        let fsck = history
            .place
            .try_git(&["fsck", "--no-dangling", "--no-progress"]);
        let said = String::from_utf8_lossy(&fsck.stderr).into_owned();
        if !fsck.status.success() {
            return Err(format!("git fsck: {said}"));
        }
        Ok(())
    });
}

impl History<'_> {
    /// Runs git; what it refuses is not done.
    fn git(&mut self, arguments: &[&str]) {
        let output = self.place.try_git(arguments);
        let code = output.status.code();
        self.log
            .push(format!("git {} ({code:?})", arguments.join(" ")));
    }

    fn some_git(&mut self) {
        let number = self.random.below(3);
        let branch = format!("branch-{number}");
        // It may have become a pipe, which must not be opened.
        let _ = remove(&self.place.at("tracked"));
        self.place
            .write("tracked", self.random.bytes(40 + 4 * number));
        match self.random.below(20) {
            0..=2 => self.git(&["add", "--all"]),
            3..=6 => {
                self.changes("", 2);
                self.git(&["add", "--all"]);
                self.git(&["commit", "--quiet", "--message=another"]);
            }
            7 => self.git(&["branch", &branch]),
            8 | 9 => self.git(&["checkout", "--quiet", "-f", "-B", &branch]),
            10 => self.git(&["checkout", "--quiet", "-f", &branch]),
            11 => self.git(&["checkout", "--quiet", "-f", "--detach"]),
            12 => self.git(&["reset", "--quiet", "--hard", "HEAD~1"]),
            13 => self.git(&["reset", "--quiet", "--hard"]),
            14 => self.git(&["stash", "push", "--quiet", "--include-untracked"]),
            15 => self.git(&["stash", "pop", "--quiet"]),
            16 => {
                self.git(&["commit", "--quiet", "--all", "--message=ours"]);
                self.git(&["merge", "--quiet", &branch]);
            }
            17 => self.git(&["commit", "--quiet", "--amend", "--all", "--message=amended"]),
            18 => self.git(&["gc", "--quiet", "--prune=now"]),
            _ => self.git(&["rm", "--quiet", "-f", "tracked"]),
        }
    }
}

#[test]
fn st_35_an_action_is_taken_out_of_the_middle() {
    let cases = setting("SAFEPOINT_CASES", CASES).div_ceil(4);
    try_all(cases, |history| {
        const PARTS: usize = 4;
        let part = |number: usize| format!("part-{number}");
        for number in 0..PARTS {
            history.place.write(format!("{}/x", part(number)), "x\n");
            history
                .place
                .write(format!("together/{number}"), "before\n");
            history.changes(&part(number), 4);
        }
        history.checkpoint(Origin::Automatic, false)?;
        // Each action has a directory of its own, and a file in one that all share.
        for number in 0..PARTS {
            history.log.push(format!("-- action {number}"));
            history.changes(&part(number), 1 + history.random.below(6));
            if history.random.once_in(2) {
                let content = history.random.bytes(50);
                history.place.write(format!("together/{number}"), content);
            }
            history
                .place
                .write(format!("{}/y", part(number)), format!("{number}\n"));
            history.checkpoint(Origin::Automatic, false)?;
        }
        let top = &history.place.top;
        let mut actions = history.place.bench.state.actions(top, 100).map_err(told)?;
        actions.reverse();
        if actions.len() != PARTS {
            return Err(format!("{} actions were observed", actions.len()));
        }
        // Links between the parts would make them depend on each other.
        let mut wanted = history.points[PARTS].files.clone();
        let mut taken = Vec::new();
        for _ in 0..2 {
            let number = history.random.below(PARTS as u64) as usize;
            if taken.contains(&number) {
                continue;
            }
            taken.push(number);
            let before = &history.points[number].files;
            let own = |name: &[u8]| {
                let inside = [part(number).as_bytes(), b"/"].concat();
                name == part(number).as_bytes()
                    || name.starts_with(&inside)
                    || name == format!("together/{number}").as_bytes()
            };
            wanted.retain(|name, _| !own(name));
            let back = before.iter().filter(|(name, _)| own(name));
            wanted.extend(back.map(|(name, thing)| (name.clone(), thing.clone())));
            history.log.push(format!("-- undo of action {number}"));
            let action = actions[number].id.to_string();
            let done = history.place.without(&action, "undo").map_err(told)?;
            let found = history.place.record(Repositories::Included);
            let shared = |recording: &Recording| -> Recording {
                let mut recording: BTreeMap<_, _> = recording.clone();
                // Which time a directory has in which several actions worked is nobody's.
                recording
                    .remove(&b"together"[..])
                    .expect("it was never touched");
                recording
            };
            same("after the undo", &shared(&wanted), &shared(&found))?;
            if !done.matches {
                return Err(format!(
                    "the undo is said to be incomplete: {:?}",
                    done.warnings
                ));
            }
            if history.random.once_in(2) {
                let undo = done.action.to_string();
                let before = found;
                history.place.without(&undo, "undo").map_err(told)?;
                history.place.without(&action, "undo").map_err(told)?;
                let found = history.place.record(Repositories::Included);
                same(
                    "undone, and not, and undone",
                    &shared(&before),
                    &shared(&found),
                )?;
            }
        }
        history.log.push("-- roll back to the end".to_owned());
        let end = &history.points[PARTS];
        history.place.roll_back(&end.snapshot).map_err(told)?;
        let found = history.place.record(Repositories::Included);
        same("after all", &end.files, &found)
    });
}

#[test]
fn st_31_every_roll_back_is_taken_back_exactly() {
    let cases = setting("SAFEPOINT_CASES", CASES).div_ceil(8);
    try_all(cases, |history| {
        history.changes("", 12);
        history.checkpoint(Origin::Automatic, false)?;
        for _ in 0..3 {
            history.changes("", 1 + history.random.below(5));
            let before = history.place.record(Repositories::Included);
            let point = &history.points[0];
            let done = history.place.roll_back(&point.snapshot).map_err(told)?;
            history.compare("after the roll back", &point.files, &point.git, false)?;
            // What was there is a checkpoint of its own, too.
            let state = &history.place.bench.state;
            let kept = state.find(done.before.as_str()).map_err(told)?;
            state.verify(&kept).map_err(told)?;
            if history.random.once_in(2) {
                history.place.roll_back(&kept).map_err(told)?;
            } else {
                let action = done.action.to_string();
                history.place.without(&action, "redo").map_err(told)?;
            }
            history.compare("forward again", &before, &[], false)?;
        }
        Ok(())
    });
}

#[test]
fn st_11_every_kind_of_thing_comes_back_after_everything_is_gone() {
    let cases = setting("SAFEPOINT_CASES", CASES).div_ceil(8);
    try_all(cases, |history| {
        history.changes("", 40);
        history.checkpoint(Origin::Automatic, false)?;
        let point = &history.points[0];
        open_up(&history.place.top);
        fs::remove_dir_all(&history.place.top).unwrap();
        history.place.roll_back(&point.snapshot).map_err(told)?;
        history.compare("after the roll back", &point.files, &point.git, false)
    });
}

/// A directory that is called like a repository and is none is one like any other.
#[test]
fn st_11_a_directory_named_git_that_is_no_repository_comes_back() {
    let bench = Bench::new(1);
    let place = bench.place("workspace");
    place.write("sub/.git/hooks/pre-commit", "#!/bin/sh\n");
    place.chmod("sub/.git", 0o755);
    place.chmod("sub/.git/hooks", 0o750);
    set_time(&place.at("sub/.git"), (1_500_000_000, 5));
    let before = place.record(Repositories::Included);
    let made = place.checkpoint().unwrap();
    fs::remove_dir_all(place.at("sub")).unwrap();
    let done = place.roll_back(&made.snapshot).unwrap();
    let found = place.record(Repositories::Included);
    assert!(
        differences(&before, &found).is_empty(),
        "{:?}",
        differences(&before, &found)
    );
    assert!(done.matches, "{:?}", done.warnings);
}

/// Files with several names, on a disk that gives numbers of files out again.
#[test]
fn st_11_groups_of_names_are_not_confused_when_numbers_come_again() {
    let bench = Bench::on_disk(2);
    let place = bench.place("workspace");
    let make = |name: &str| {
        place.write(name, format!("{name}\n"));
        set_time(&place.at(name), (1_500_000_000, 0));
        fs::hard_link(place.at(name), place.at(format!("{name} too"))).unwrap();
        fs::metadata(place.at(name)).unwrap().ino()
    };
    let gone = |name: &str| {
        fs::remove_file(place.at(name)).unwrap();
        fs::remove_file(place.at(format!("{name} too"))).unwrap();
    };
    let first = make("a");
    make("c");
    let before = place.record(Repositories::Included);
    let made = place.checkpoint().unwrap();
    gone("a");
    gone("c");
    // Until the second has the number of the first; some disks never do that.
    for filler in 0..300 {
        if make("c") == first {
            break;
        }
        fs::rename(place.at("c"), bench.root.join(format!("filler {filler}"))).unwrap();
        fs::remove_file(place.at("c too")).unwrap();
    }
    if place.at("c").symlink_metadata().is_err() {
        make("c");
    }
    make("a");
    set_time(&place.at("a"), (1, 1));
    for round in 0..2 {
        let done = place.roll_back(&made.snapshot).unwrap();
        let found = place.record(Repositories::Included);
        assert_eq!(
            differences(&before, &found),
            Vec::<String>::new(),
            "{round}"
        );
        assert!(done.matches, "{round}: {:?}", done.warnings);
        let redone = place.without(done.action.as_str(), "redo").unwrap();
        assert!(redone.matches, "{round}: {:?}", redone.warnings);
    }
}
