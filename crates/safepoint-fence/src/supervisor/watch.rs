//! What is seen of a supervised tree, and who is asked about what no rule names.

use std::collections::{BTreeSet, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::journal::{WriteJournal, Written};
use super::{Gate, GuardedNames, Observation, Refusal, WriteAccess, Writes};

/// More is not recorded of one tree: what is written from then on is not known.
const MAX_PATH_BYTES: usize = 64 << 20;
/// More refusals, hosts or sockets are not recorded.
const MAX_TARGETS: usize = 1000;

/// The record of one supervised tree.
#[derive(Debug)]
pub(super) struct Watch {
    seen: Mutex<Seen>,
    /// How many calls were handed over.
    calls: AtomicU64,
    /// Where all paths are kept until the end of the action is recorded, and those of what it left
    /// running after that.
    journal: Mutex<Option<WriteJournal>>,
    gate: Option<Arc<dyn Gate>>,
    /// What is not written.
    guarded: GuardedNames,
    /// The last call of each thread that the kernel was let go on with, and what it writes.
    calls_under_way: Mutex<HashMap<u32, (i64, Vec<PathBuf>)>>,
}

/// The last calls of more threads are not remembered.
const MAX_CALLS_UNDER_WAY: usize = 1000;

#[derive(Debug, Default)]
struct Seen {
    observation: Observation,
    path_bytes: usize,
}

impl Seen {
    /// Whether there is room for one more path.
    fn takes(&mut self, path: &Path) -> bool {
        self.path_bytes += path.as_os_str().len();
        let has_room = self.path_bytes <= MAX_PATH_BYTES;
        self.observation.written.is_complete &= has_room;
        has_room
    }
}

impl Watch {
    pub(super) fn new(
        gate: Option<Arc<dyn Gate>>,
        journal: Option<PathBuf>,
        guarded: GuardedNames,
    ) -> Self {
        Self {
            seen: Mutex::default(),
            calls: AtomicU64::new(0),
            journal: Mutex::new(journal.map(WriteJournal::new)),
            gate,
            guarded,
            calls_under_way: Mutex::default(),
        }
    }

    /// Begins the record of what is written from now on, in another journal. Files that are open
    /// for writing are part of it: nothing is seen of how they are written.
    pub(super) fn begin_late(&self, file: &Path) -> Writes {
        let mut seen = self.lock();
        let written = std::mem::take(&mut seen.observation.written);
        seen.path_bytes = 0;
        *self.lock_journal() = Some(WriteJournal::new(file.to_owned()));
        let mut late = open_for_writing(&written.paths);
        // What is about to be opened is open nowhere yet.
        late.extend(self.paths_under_way());
        for path in late {
            self.keep(Written::Path, &path);
            seen.observation.written.paths.insert(path);
        }
        written
    }

    /// Remembers a call that the kernel goes on with. Nobody tells when it is over.
    pub(super) fn begin_call(&self, thread: u32, call: i64, paths: &[&Path]) {
        let mut calls = self.lock_calls();
        if calls.len() >= MAX_CALLS_UNDER_WAY {
            calls.retain(|thread, (call, _)| is_under_way(*thread, *call));
        }
        if calls.len() < MAX_CALLS_UNDER_WAY {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            calls.insert(thread, (call, paths));
        }
    }

    /// What is written by calls that may not be over yet.
    fn paths_under_way(&self) -> BTreeSet<PathBuf> {
        let mut calls = self.lock_calls();
        calls.retain(|thread, (call, _)| is_under_way(*thread, *call));
        calls
            .values()
            .flat_map(|(_, paths)| paths.clone())
            .collect()
    }

    fn lock_calls(&self) -> MutexGuard<'_, HashMap<u32, (i64, Vec<PathBuf>)>> {
        self.calls_under_way
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps no more paths for whoever comes after a kill.
    pub(super) fn end_journal(&self) {
        *self.lock_journal() = None;
    }

    fn lock_journal(&self) -> MutexGuard<'_, Option<WriteJournal>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more call was handed over.
    pub(super) fn add_call(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(super) fn seen(&self) -> Observation {
        self.lock().observation.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something that no rule names. What is refused is recorded.
    pub(super) fn admit(&self, wanted: Refusal) -> bool {
        let is_admitted = self.gate.as_ref().is_some_and(|gate| gate.admit(&wanted));
        if !is_admitted {
            self.refuse(wanted);
        }
        is_admitted
    }

    /// Whether a file is none of those that nobody inside writes. What is refused is recorded.
    pub(super) fn is_unguarded(&self, path: &Path) -> bool {
        let is_guarded = self.guarded.include(path);
        if is_guarded {
            self.refuse(Refusal::Outside(path.to_owned()));
        }
        !is_guarded
    }

    /// The same of what a name is given to, or taken from.
    pub(super) fn may_move(&self, path: &Path) -> bool {
        let is_guarded = self.guarded.lie_beneath(path);
        if is_guarded {
            self.refuse(Refusal::Outside(path.to_owned()));
        }
        !is_guarded
    }

    /// Who may write a file now.
    pub(super) fn write_access(&self, path: &Path) -> WriteAccess {
        match &self.gate {
            Some(gate) => gate.write_access(path),
            None => WriteAccess::Kernel,
        }
    }

    /// Whether the kernel may go on with a call that writes, which reads its paths again.
    pub(super) fn may_continue(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.may_continue())
    }

    /// Whether it may without anybody being asked.
    pub(super) fn continues(&self) -> bool {
        self.gate.as_ref().is_none_or(|gate| gate.continues())
    }

    pub(super) fn refuse(&self, refused: Refusal) {
        insert(&mut self.lock().observation.refused, refused);
    }

    pub(super) fn reach_host(&self, host: String) {
        insert(&mut self.lock().observation.hosts, host);
    }

    pub(super) fn reach_socket(&self, path: PathBuf) {
        insert(&mut self.lock().observation.sockets, path);
    }

    pub(super) fn write_path(&self, path: PathBuf) {
        self.add_path(&mut self.lock(), path);
    }

    pub(super) fn write_tree(&self, path: PathBuf) {
        let mut seen = self.lock();
        if !seen.observation.written.trees.contains(&path) && self.has_room(&mut seen, &path) {
            self.keep(Written::Tree, &path);
            seen.observation.written.trees.insert(path);
        }
    }

    /// What was written in a directory has moved with it: others may have written beside that.
    pub(super) fn move_tree(&self, from: &Path, to: &Path) {
        let mut seen = self.lock();
        let written = &seen.observation.written.paths;
        let moved: Vec<PathBuf> = written
            .range(from.to_owned()..)
            .take_while(|path| path.starts_with(from))
            .filter_map(|path| path.strip_prefix(from).ok())
            .filter(|rest| !rest.as_os_str().is_empty())
            .map(|rest| to.join(rest))
            .collect();
        for path in moved {
            self.add_path(&mut seen, path);
        }
    }

    fn add_path(&self, seen: &mut Seen, path: PathBuf) {
        if !seen.observation.written.paths.contains(&path) && self.has_room(seen, &path) {
            self.keep(Written::Path, &path);
            seen.observation.written.paths.insert(path);
        }
    }

    /// Whether there is room for one more path. The first for which there is none makes a gap.
    fn has_room(&self, seen: &mut Seen, path: &Path) -> bool {
        let was_complete = seen.observation.written.is_complete;
        let has_room = seen.takes(path);
        if was_complete && !has_room {
            self.keep(Written::Gap, Path::new(""));
        }
        has_room
    }

    fn keep(&self, what: Written, path: &Path) {
        if let Some(journal) = &mut *self.lock_journal() {
            journal.add(what, path);
        }
    }

    /// Something was written, and nobody knows where.
    pub(super) fn lose_track(&self) {
        let mut seen = self.lock();
        seen.observation.written.is_complete = false;
        self.keep(Written::Gap, Path::new(""));
    }
}

fn insert<T: Ord>(targets: &mut BTreeSet<T>, target: T) {
    if targets.len() < MAX_TARGETS {
        targets.insert(target);
    }
}

/// Whether a thread may still be in the call that it was let go on with: it is in that call, or it
/// runs and does not say where.
fn is_under_way(thread: u32, call: i64) -> bool {
    let place = std::fs::read_to_string(format!("/proc/{thread}/syscall")).unwrap_or_default();
    match place.split_whitespace().next().map(str::parse::<i64>) {
        Some(Ok(number)) => number == call,
        Some(Err(_)) => true,
        None => false,
    }
}

/// Those of these files that some process of this user has open for writing.
fn open_for_writing(paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
    let mut open = BTreeSet::new();
    // All processes are looked at for this.
    if paths.is_empty() {
        return open;
    }
    let entries = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let own = std::process::id().to_string();
    let processes = entries("/proc".into()).map(|it| it.file_name());
    let processes =
        processes.filter(|name| name.as_bytes().iter().all(u8::is_ascii_digit) && *name != *own);
    for process in processes {
        let place = Path::new("/proc").join(process);
        for descriptor in entries(place.join("fd")) {
            let Ok(path) = std::fs::read_link(descriptor.path()) else {
                continue;
            };
            let information = place.join("fdinfo").join(descriptor.file_name());
            if paths.contains(&path) && is_open_for_writing(&information) {
                open.insert(path);
            }
        }
    }
    open
}

fn is_open_for_writing(information: &Path) -> bool {
    let text = std::fs::read_to_string(information).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|it| i32::from_str_radix(it.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_33_what_a_call_under_way_writes_counts_as_written_late() {
        let place = tempfile::tempdir().unwrap();
        let watch = Watch::new(None, None, GuardedNames::default());
        let thread = || -> u32 {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            own.file_name().unwrap().to_str().unwrap().parse().unwrap()
        };
        let (tell, told) = std::sync::mpsc::channel();
        let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let (running_tells, is_running_over) = (tell.clone(), Arc::clone(&is_over));
        let runner = std::thread::spawn(move || {
            running_tells.send(thread()).unwrap();
            while !is_running_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        let running = told.recv().unwrap();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            tell.send(thread()).unwrap();
            let _ = ended.recv();
        });
        let sleeping = told.recv().unwrap();
        // One runs, and the other is in the call that it waits by, once each has come so far.
        let runs = |thread: u32| {
            let place = std::fs::read_to_string(format!("/proc/{thread}/syscall"));
            place.unwrap().starts_with("running")
        };
        while runs(sleeping) || !runs(running) {
            std::thread::yield_now();
        }
        watch.begin_call(running, libc::SYS_openat, &[Path::new("/p/opening")]);
        watch.begin_call(sleeping, libc::SYS_openat, &[Path::new("/p/opened")]);
        watch.begin_late(&place.path().join("late"));
        assert_eq!(
            watch.seen().written.paths,
            BTreeSet::from(["/p/opening".into()])
        );
        drop(end);
        is_over.store(true, Ordering::Relaxed);
        sleeper.join().unwrap();
        runner.join().unwrap();
    }

    #[test]
    fn fe_33_a_record_that_grows_too_large_says_that_it_is_not_complete() {
        let watch = Watch::new(None, None, GuardedNames::default());
        let long = "x".repeat(1 << 20);
        for number in 0..70 {
            watch.write_path(PathBuf::from(format!("/{number}/{long}")));
        }
        let seen = watch.seen();
        assert!(!seen.written.is_complete && seen.written.paths.len() == 63);
        watch.write_path(PathBuf::from("/0"));
        assert_eq!(watch.seen().written.paths.len(), 63);
    }

    #[test]
    fn fe_33_what_was_written_in_a_directory_moves_with_it() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("journal");
        let watch = Watch::new(None, Some(file.clone()), GuardedNames::default());
        for path in ["/p/a/x", "/p/a-b", "/p/a/y/z", "/p/b"] {
            watch.write_path(path.into());
        }
        watch.move_tree(Path::new("/p/a"), Path::new("/p/c"));
        let moved = ["/p/a-b", "/p/a/x", "/p/a/y/z", "/p/b", "/p/c/x", "/p/c/y/z"];
        let moved = BTreeSet::from(moved.map(PathBuf::from));
        assert_eq!(watch.seen().written.paths, moved);
        assert_eq!(Writes::read_journal(&file).paths, moved);

        // What is left running has a journal of its own, and loses nothing of the one before it.
        let late = place.path().join("late");
        assert_eq!(watch.begin_late(&late).paths, moved);
        watch.write_path("/p/d".into());
        watch.write_tree("/p/e".into());
        let written = Writes::read_journal(&late);
        assert!(written.is_complete && written == watch.seen().written);
        assert_eq!(Writes::read_journal(&file).paths, moved);
        watch.lose_track();
        assert!(!Writes::read_journal(&late).is_complete);
    }
}
