//! Calls that change metadata. Landlock does not hold them, so they are done here, on what the
//! caller's path or descriptor led to when it was looked at.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, chmodat,
    chownat, fchmod, fchown, fcntl_getfl, fstat, futimens, removexattr, setxattr, utimensat,
};
use rustix::io::Errno;

use super::WriteAccess;
use super::caller::{Caller, Follow};
use super::listener::Answer;
use super::places::{Places, is_kept, path_of};
use super::watch::Watch;
use super::writes::note;

/// The longest name, and the largest value, of an attribute.
const MAX_ATTRIBUTE_NAME: usize = 256;
const MAX_ATTRIBUTE_VALUE: u64 = 65536;

const NOW: i64 = 0x3fff_ffff;

/// What is changed, and whose metadata.
enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Timestamps),
    SetAttribute {
        name: Vec<u8>,
        value: Vec<u8>,
        flags: XattrFlags,
    },
    RemoveAttribute(Vec<u8>),
}

/// Something whose metadata is changed.
struct Target {
    file: OwnedFd,
    /// Whether the caller has it open, so that it needs no name.
    by: By,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Name,
    Descriptor,
}

/// Does a call on behalf of the caller. `None` for one that changes no metadata.
pub(super) fn change(
    caller: &Caller<'_>,
    places: &Places,
    own_streams: &[(u64, u64)],
    watch: &Watch,
) -> Option<Answer> {
    if let Some(done) = change_written(caller, own_streams) {
        return Some(done.map(|()| 0).into());
    }
    let done = match wanted(caller)? {
        Ok((target, change)) => apply(caller, &target, &change, places, watch),
        Err(error) => Err(error),
    };
    Some(done.map(|()| 0).into())
}

/// The common case: a file that the caller has open for writing. Landlock has let it be opened, and
/// it was recorded then, so only what was open from the start is looked at more closely.
fn change_written(caller: &Caller<'_>, own_streams: &[(u64, u64)]) -> Option<Result<(), Errno>> {
    let call = caller.notification.call();
    let is_open = matches!(call, libc::SYS_fchmod | libc::SYS_fchown)
        || call == libc::SYS_utimensat && caller.argument(1) == 0;
    if !is_open {
        return None;
    }
    let file = caller.take(caller.int(0)).ok()?;
    let flags = fcntl_getfl(&file).ok()?;
    let is_written =
        flags.intersects(OFlags::WRONLY | OFlags::RDWR) && !flags.contains(OFlags::PATH);
    let status = fstat(&file).ok()?;
    if !is_written
        || own_streams.contains(&(status.st_dev, status.st_ino))
        || FileType::from_raw_mode(status.st_mode) != FileType::RegularFile
        || !caller.has_our_rights()
    {
        return None;
    }
    let change = match call {
        libc::SYS_fchmod => fchmod(
            &file,
            Mode::from_raw_mode(caller.notification.unsigned(1) & 0o7777),
        ),
        libc::SYS_fchown => {
            let id = |index| caller.notification.unsigned(index);
            let user = (id(1) != u32::MAX).then(|| Uid::from_raw(id(1)));
            let group = (id(2) != u32::MAX).then(|| Gid::from_raw(id(2)));
            fchown(&file, user, group)
        }
        _ => times(caller).and_then(|times| {
            caller.confirm()?;
            futimens(&file, &times)
        }),
    };
    file.close_file();
    Some(change)
}

type Wanted = Result<(Target, Change), Errno>;

fn wanted(caller: &Caller<'_>) -> Option<Wanted> {
    let int = |index| caller.int(index);
    let mode = |index| Change::Mode(caller.notification.unsigned(index) & 0o7777);
    let owner = |index| {
        let id = |index| caller.notification.unsigned(index);
        Change::Owner(id(index), id(index + 1))
    };
    let here = libc::AT_FDCWD;
    Some(match caller.notification.call() {
        libc::SYS_fchmod => opened(caller, int(0)).map(|it| (it, mode(1))),
        libc::SYS_fchmodat => named(caller, int(0), 1, Follow::Yes).map(|it| (it, mode(2))),
        libc::SYS_fchmodat2 => at(caller, int(0), 1, int(3)).map(|it| (it, mode(2))),
        libc::SYS_fchown => opened(caller, int(0)).map(|it| (it, owner(1))),
        libc::SYS_fchownat => at(caller, int(0), 1, int(4)).map(|it| (it, owner(2))),
        libc::SYS_utimensat => times_at(caller),
        libc::SYS_setxattr => attribute(caller, named(caller, here, 0, Follow::Yes)),
        libc::SYS_lsetxattr => attribute(caller, named(caller, here, 0, Follow::No)),
        libc::SYS_fsetxattr => attribute(caller, opened(caller, int(0))),
        libc::SYS_removexattr => less_attribute(caller, named(caller, here, 0, Follow::Yes)),
        libc::SYS_lremovexattr => less_attribute(caller, named(caller, here, 0, Follow::No)),
        libc::SYS_fremovexattr => less_attribute(caller, opened(caller, int(0))),
        other => return old(caller, other),
    })
}

#[cfg(target_arch = "x86_64")]
fn old(caller: &Caller<'_>, call: i64) -> Option<Wanted> {
    let here = libc::AT_FDCWD;
    let owner = || {
        let id = |index| caller.notification.unsigned(index);
        Change::Owner(id(1), id(2))
    };
    Some(match call {
        libc::SYS_chmod => named(caller, here, 0, Follow::Yes)
            .map(|it| (it, Change::Mode(caller.notification.unsigned(1) & 0o7777))),
        libc::SYS_chown => named(caller, here, 0, Follow::Yes).map(|it| (it, owner())),
        libc::SYS_lchown => named(caller, here, 0, Follow::No).map(|it| (it, owner())),
        libc::SYS_utime => seconds(caller)
            .and_then(|times| Ok((named(caller, here, 0, Follow::Yes)?, Change::Times(times)))),
        libc::SYS_utimes => microseconds(caller, caller.argument(1))
            .and_then(|times| Ok((named(caller, here, 0, Follow::Yes)?, Change::Times(times)))),
        libc::SYS_futimesat => microseconds(caller, caller.argument(2)).and_then(|times| {
            let target = match caller.argument(1) {
                0 => opened(caller, caller.int(0)),
                _ => named(caller, caller.int(0), 1, Follow::Yes),
            };
            Ok((target?, Change::Times(times)))
        }),
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn old(_: &Caller<'_>, _: i64) -> Option<Wanted> {
    None
}

/// What a descriptor of the caller leads to.
fn opened(caller: &Caller<'_>, descriptor: i32) -> Result<Target, Errno> {
    if descriptor < 0 {
        return Err(Errno::BADF);
    }
    let place = caller.locate(descriptor, OsStr::new(""));
    let file = match place.open(Follow::Yes) {
        Err(Errno::NOENT) => return Err(Errno::BADF),
        other => other?,
    };
    Ok(Target {
        file,
        by: By::Descriptor,
    })
}

/// What a path leads to.
fn named(
    caller: &Caller<'_>,
    directory: i32,
    text: usize,
    follow: Follow,
) -> Result<Target, Errno> {
    let path = caller.path(caller.argument(text))?;
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    locate(caller, directory, &path, follow)
}

fn locate(
    caller: &Caller<'_>,
    directory: i32,
    path: &OsStr,
    follow: Follow,
) -> Result<Target, Errno> {
    Ok(Target {
        file: caller.locate(directory, path).open(follow)?,
        by: By::Name,
    })
}

/// What a path leads to, by the flags of the newer calls.
fn at(caller: &Caller<'_>, directory: i32, text: usize, flags: i32) -> Result<Target, Errno> {
    let follow = match flags & libc::AT_SYMLINK_NOFOLLOW != 0 {
        true => Follow::No,
        false => Follow::Yes,
    };
    let path = caller.path(caller.argument(text))?;
    match (path.is_empty(), flags & libc::AT_EMPTY_PATH != 0) {
        (false, _) => locate(caller, directory, &path, follow),
        (true, false) => Err(Errno::NOENT),
        (true, true) if directory == libc::AT_FDCWD => {
            locate(caller, directory, OsStr::new("."), Follow::Yes)
        }
        (true, true) => opened(caller, directory),
    }
}

fn times_at(caller: &Caller<'_>) -> Wanted {
    let times = times(caller)?;
    let target = match caller.argument(1) {
        0 => opened(caller, caller.int(0)),
        _ => at(caller, caller.int(0), 1, caller.int(3)),
    };
    Ok((target?, Change::Times(times)))
}

/// The times that `utimensat` is given.
fn times(caller: &Caller<'_>) -> Result<Timestamps, Errno> {
    match caller.argument(2) {
        0 => Ok(now()),
        address => {
            let bytes = caller.bytes(address, 32)?;
            let [a, b, c, d] = numbers(&bytes);
            Ok(timestamps(a, b, c, d))
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn seconds(caller: &Caller<'_>) -> Result<Timestamps, Errno> {
    match caller.argument(1) {
        0 => Ok(now()),
        address => {
            let bytes = caller.bytes(address, 16)?;
            let [access, modification, ..] = numbers(&bytes);
            Ok(timestamps(access, 0, modification, 0))
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn microseconds(caller: &Caller<'_>, address: u64) -> Result<Timestamps, Errno> {
    if address == 0 {
        return Ok(now());
    }
    let bytes = caller.bytes(address, 32)?;
    let [a, b, c, d] = numbers(&bytes);
    if [b, d].iter().any(|part| !(0..1_000_000).contains(part)) {
        return Err(Errno::INVAL);
    }
    Ok(timestamps(a, b * 1000, c, d * 1000))
}

fn now() -> Timestamps {
    timestamps(0, NOW, 0, NOW)
}

fn timestamps(access: i64, part: i64, modification: i64, other_part: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: access,
            tv_nsec: part,
        },
        last_modification: Timespec {
            tv_sec: modification,
            tv_nsec: other_part,
        },
    }
}

/// Four numbers, or as many as there are bytes for.
fn numbers(bytes: &[u8]) -> [i64; 4] {
    let mut numbers = [0; 4];
    for (number, part) in numbers.iter_mut().zip(bytes.as_chunks::<8>().0) {
        *number = i64::from_le_bytes(*part);
    }
    numbers
}

fn attribute(caller: &Caller<'_>, target: Result<Target, Errno>) -> Wanted {
    let name = caller.string(caller.argument(1), MAX_ATTRIBUTE_NAME)?;
    let size = caller.argument(3);
    if size > MAX_ATTRIBUTE_VALUE {
        return Err(Errno::TOOBIG);
    }
    let size = usize::try_from(size).map_err(|_| Errno::TOOBIG)?;
    let value = caller.bytes(caller.argument(2), size)?;
    let flags = XattrFlags::from_bits_retain(caller.notification.unsigned(4));
    Ok((target?, Change::SetAttribute { name, value, flags }))
}

fn less_attribute(caller: &Caller<'_>, target: Result<Target, Errno>) -> Wanted {
    let name = caller.string(caller.argument(1), MAX_ATTRIBUTE_NAME)?;
    Ok((target?, Change::RemoveAttribute(name)))
}

fn apply(
    caller: &Caller<'_>,
    target: &Target,
    change: &Change,
    places: &Places,
    watch: &Watch,
) -> Result<(), Errno> {
    // What was read belonged to the caller, and so did what was opened.
    caller.confirm()?;
    let path = path_of(&target.file)?;
    let status = fstat(&target.file)?;
    // Pipes, sockets and memory have no place, and an open file without a name is nobody else's.
    let is_nameless = !path.as_os_str().as_bytes().starts_with(b"/")
        || target.by == By::Descriptor && status.st_nlink == 0;
    if !is_nameless {
        let access = note(path.clone(), false, places, watch);
        let is_included = places.include(&path) || access == WriteAccess::Supervisor;
        // Devices and terminals may be written, and stay what they are.
        if !is_included || !is_kept(&path) {
            return Err(Errno::PERM);
        }
        // It is done here. But what lies in the workspace has to be in a checkpoint first.
        let may_write = match access {
            WriteAccess::None => false,
            WriteAccess::Supervisor => true,
            WriteAccess::Kernel => watch.may_continue(),
        };
        if !may_write {
            return Err(Errno::ACCESS);
        }
    }
    if !caller.has_our_rights() {
        return Err(Errno::PERM);
    }
    perform(
        &target.file,
        FileType::from_raw_mode(status.st_mode),
        change,
    )
}

fn perform(file: &OwnedFd, kind: FileType, change: &Change) -> Result<(), Errno> {
    // The file itself, whatever has become of its name.
    let place = PathBuf::from(format!("/proc/thread-self/fd/{}", file.as_fd().as_raw_fd()));
    let is_link = kind == FileType::Symlink;
    match change {
        Change::Mode(_) if is_link => Err(Errno::OPNOTSUPP),
        Change::Mode(mode) => chmodat(CWD, &place, Mode::from_raw_mode(*mode), AtFlags::empty()),
        Change::Owner(user, group) => {
            let user = (*user != u32::MAX).then(|| Uid::from_raw(*user));
            let group = (*group != u32::MAX).then(|| Gid::from_raw(*group));
            chownat(file, "", user, group, AtFlags::EMPTY_PATH)
        }
        Change::Times(times) if is_link => utimensat(
            file,
            "",
            times,
            AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW,
        ),
        Change::Times(times) => utimensat(CWD, &place, times, AtFlags::empty()),
        Change::SetAttribute { .. } | Change::RemoveAttribute(_) if is_link => Err(Errno::PERM),
        Change::SetAttribute { name, value, flags } => setxattr(&place, &**name, value, *flags),
        Change::RemoveAttribute(name) => removexattr(&place, &**name),
    }
}
