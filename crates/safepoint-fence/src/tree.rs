//! Who belongs to a process tree, as `/proc` tells.
//!
//! Numbers of processes are given away again, so a process is its number and the
//! moment it began. What is read while processes come and go is read again until
//! it stands still; what never does is not guessed.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

use crate::FenceError;

/// How often a chain of processes that changes is read again.
const ATTEMPTS: usize = 32;
/// No chain of processes is longer.
const LONGEST: usize = 4096;

/// A process, as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it began, in clock ticks since the machine did.
    pub started: u64,
    /// The number of its parent; 0 where it has none that can be seen.
    pub parent: u32,
    /// What it calls itself. It chooses this freely.
    pub name: OsString,
    ended: bool,
}

impl Process {
    /// Looks at a process. `None` where there is none.
    pub fn look(pid: u32) -> Option<Self> {
        parse(&fs::read(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Is this the same process, whatever has become of it?
    pub fn is_same(&self, other: &Self) -> bool {
        self.pid == other.pid && self.started == other.started
    }

    /// Has it ended, and waits only for its parent to notice?
    pub fn has_ended(&self) -> bool {
        self.ended
    }
}

/// Does a process belong to a tree?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Membership {
    /// It is the root, or descends from it.
    Within,
    /// It does not.
    Outside,
    /// It is gone, or its ancestors cannot be seen or did not stand still.
    Unknown,
}

/// A process and those it descends from, nearest first, up to the one whose
/// parent cannot be seen. Empty where there is no such process, or the chain did
/// not stand still.
pub fn ancestors(pid: u32) -> Vec<Process> {
    let mut chain = climb(pid);
    for _ in 0..ATTEMPTS {
        if chain.is_empty() {
            break;
        }
        // A parent that ended in between hands its children on, and its number
        // may be given away: only what reads the same twice was so at one time.
        let again = climb(pid);
        let same =
            |one: &Process, other: &Process| one.is_same(other) && one.parent == other.parent;
        let stands = chain.len() == again.len()
            && chain
                .iter()
                .zip(&again)
                .all(|(one, other)| same(one, other));
        if stands {
            return again;
        }
        chain = again;
    }
    Vec::new()
}

/// Does `pid` belong to the tree of `root`?
pub fn membership(root: &Process, pid: u32) -> Membership {
    let chain = ancestors(pid);
    let is_whole = chain.last().is_some_and(|one| one.parent == 0);
    if chain.iter().any(|one| one.is_same(root)) {
        Membership::Within
    } else if is_whole {
        Membership::Outside
    } else {
        Membership::Unknown
    }
}

/// Is it proven that `pid` belongs to the tree of `root`? Who wants to know that
/// it does not asks for [`membership`]: not proven is not the opposite.
pub fn is_within(root: &Process, pid: u32) -> bool {
    membership(root, pid) == Membership::Within
}

/// The processes that descend from this one and have not ended, as far as they can be seen.
/// Those that come and go meanwhile may be missing.
pub fn descendants() -> Vec<Process> {
    let mut found: Vec<Process> = Vec::new();
    let mut left = vec![std::process::id()];
    while let Some(parent) = left.pop() {
        let new = children(parent).into_iter().filter(|one| {
            let is_known = found.iter().any(|known| known.pid == *one);
            !is_known && left.len() < LONGEST
        });
        let new: Vec<Process> = new.filter_map(Process::look).collect();
        left.extend(new.iter().map(|one| one.pid));
        found.extend(new);
    }
    found.retain(|one| !one.has_ended());
    found
}

/// The children of a process, by number.
fn children(parent: u32) -> Vec<u32> {
    // Not every kernel keeps this list; where one does not, everybody is asked.
    let kept = fs::metadata("/proc/thread-self/children").is_ok();
    if !kept {
        let all = numbers("/proc").into_iter().filter_map(Process::look);
        return all
            .filter(|it| it.parent == parent)
            .map(|it| it.pid)
            .collect();
    }
    let place = format!("/proc/{parent}/task");
    let threads = numbers(&place).into_iter();
    let lists = threads.filter_map(|it| fs::read_to_string(format!("{place}/{it}/children")).ok());
    let mut all = Vec::new();
    for list in lists {
        all.extend(
            list.split_ascii_whitespace()
                .filter_map(|it| it.parse::<u32>().ok()),
        );
    }
    all
}

/// The entries of a directory that are numbers.
fn numbers(place: &str) -> Vec<u32> {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// From now on orphans among the descendants of this process become its own
/// children, so a daemon cannot leave the tree. This process has to reap them:
/// see [`reap_orphans`].
///
/// # Errors
///
/// When the kernel does not know this.
pub fn become_subreaper() -> Result<(), FenceError> {
    set_child_subreaper(Some(getpid())).map_err(|error| FenceError::Subreaper(error.into()))
}

/// Reaps children that have ended, and returns how many. `is_ours` names those
/// that this process started itself and waits for elsewhere: they are left alone.
pub fn reap_orphans(is_ours: impl Fn(u32) -> bool) -> usize {
    let me = std::process::id();
    let others = children(me).into_iter().filter(|pid| !is_ours(*pid));
    let ended = others
        .filter(|pid| Process::look(*pid).is_some_and(|one| one.parent == me && one.has_ended()));
    ended.filter(|pid| reap(*pid)).count()
}

fn reap(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_))))
}

/// A process and its ancestors, read once, as far as they can be seen.
fn climb(pid: u32) -> Vec<Process> {
    let mut chain: Vec<Process> = Vec::new();
    let mut next = pid;
    while next != 0 && chain.len() < LONGEST {
        let Some(process) = Process::look(next) else {
            break;
        };
        next = process.parent;
        chain.push(process);
    }
    chain
}

/// Reads `/proc/PID/stat`: `pid (name) state ppid …`, of which the 22nd field is
/// the start. The name may hold anything, parentheses and spaces too; nothing
/// after it can.
fn parse(stat: &[u8]) -> Option<Process> {
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(stat.get(..open)?)
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let name = stat.get(open + 1..close)?.to_vec();
    let mut rest = std::str::from_utf8(stat.get(close + 1..)?)
        .ok()?
        .split_ascii_whitespace();
    let state = rest.next()?;
    let parent = rest.next()?.parse().ok()?;
    // The state is the third field, and the parent the fourth.
    let started = rest.nth(22 - 5)?.parse().ok()?;
    Some(Process {
        pid,
        started,
        parent,
        name: OsString::from_vec(name),
        ended: matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(name: &str) -> String {
        let middle = (5..22)
            .map(|field| field.to_string())
            .collect::<Vec<_>>()
            .join(" ");
        format!("41 ({name}) S 7 {middle} 123456 23 24\n")
    }

    #[test]
    fn names_with_spaces_and_parentheses_change_nothing() {
        for name in ["sh", "a b", "a) S 1 (b", "(((", ")))", "", "x\n) Z 1 1"] {
            let process = parse(stat(name).as_bytes()).unwrap();
            assert_eq!((process.pid, process.parent), (41, 7), "{name}");
            assert_eq!(process.started, 123_456, "{name}");
            assert_eq!(process.name, OsString::from(name));
            assert!(!process.has_ended());
        }
    }

    #[test]
    fn what_is_cut_short_is_no_process() {
        let whole = stat("sh");
        let end = whole.find(" 123456").unwrap();
        for cut in 0..=end {
            assert_eq!(parse(&whole.as_bytes()[..cut]), None, "{cut}");
        }
    }
}
