//! Calls that write, made on behalf of the caller.
//!
//! The kernel reads a path again when it goes on with a call, and by then another thread of the
//! caller may have written something else there. So where one path is allowed and its neighbours
//! are not, the call is made here, by the path that was looked at, over no link. A file that is
//! opened is handed to the caller as a descriptor.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fchmod, fcntl_setfl, fstat,
    ftruncate, mkdirat, openat, openat2, renameat_with, stat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::caller::Caller;
use super::listener::Answer;
use super::places::Places;

/// Flags of `open` that mean the same for us as for the caller.
const KEPT_FLAGS: i32 = libc::O_ACCMODE
    | libc::O_APPEND
    | libc::O_TRUNC
    | libc::O_NONBLOCK
    | libc::O_DSYNC
    | libc::O_SYNC
    | libc::O_DIRECT
    | libc::O_NOATIME;

/// A file is made, or opened because it is there, so often before somebody keeps changing that.
const MAX_ATTEMPTS: usize = 8;

/// A call that can be made here.
enum Write {
    Open { flags: i32, mode: u32 },
    Truncate { length: u64 },
    Remove(AtFlags),
    MakeDirectory { mode: u32 },
    Link { target: OsString },
    Rename(RenameFlags),
}

/// Makes a call on these paths, which have no links in them, in the order in which it names them.
/// `None` for a call that is not made here.
pub(super) fn write(caller: &Caller<'_>, paths: &[&Path]) -> Option<Answer> {
    let wanted = match wanted(caller)? {
        Ok(wanted) => wanted,
        Err(error) => return Some(Answer::Fail(error)),
    };
    let done = perform(caller, &wanted, paths);
    Some(done.unwrap_or_else(Answer::Fail))
}

/// What the caller wants done.
fn wanted(caller: &Caller<'_>) -> Option<Result<Write, Errno>> {
    let int = |index| caller.int(index);
    let unsigned = |index| caller.notification.unsigned(index);
    let open = |flags, mode| Write::Open { flags, mode };
    let truncated = || Write::Truncate {
        length: caller.argument(1),
    };
    let link = |text| {
        let target = caller.path(caller.argument(text));
        target.map(|target| Write::Link { target })
    };
    let rename = |flags| match flags {
        0 => Some(Write::Rename(RenameFlags::empty())),
        libc::RENAME_NOREPLACE => Some(Write::Rename(RenameFlags::NOREPLACE)),
        _ => None,
    };
    let write = match caller.notification.call() {
        libc::SYS_openat => open(int(2), unsigned(3)),
        libc::SYS_truncate => truncated(),
        libc::SYS_unlinkat => Write::Remove(match int(2) & libc::AT_REMOVEDIR {
            0 => AtFlags::empty(),
            _ => AtFlags::REMOVEDIR,
        }),
        libc::SYS_mkdirat => Write::MakeDirectory { mode: unsigned(2) },
        libc::SYS_symlinkat => return Some(link(0)),
        libc::SYS_renameat => Write::Rename(RenameFlags::empty()),
        libc::SYS_renameat2 => rename(unsigned(4))?,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_open => open(int(1), unsigned(2)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_creat => open(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC, unsigned(1)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_unlink => Write::Remove(AtFlags::empty()),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rmdir => Write::Remove(AtFlags::REMOVEDIR),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_mkdir => Write::MakeDirectory { mode: unsigned(1) },
        #[cfg(target_arch = "x86_64")]
        libc::SYS_symlink => return Some(link(0)),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => Write::Rename(RenameFlags::empty()),
        _ => return None,
    };
    match &write {
        // Neither has a name that could be looked at.
        Write::Open { flags, .. }
            if flags & (libc::O_PATH | libc::O_DIRECTORY | libc::O_TMPFILE) != 0 =>
        {
            None
        }
        _ => Some(Ok(write)),
    }
}

fn perform(caller: &Caller<'_>, wanted: &Write, paths: &[&Path]) -> Result<Answer, Errno> {
    // What was read belonged to the caller, and who has given up rights does not get ours.
    caller.confirm()?;
    if !caller.has_our_rights() {
        return Err(Errno::ACCESS);
    }
    let done = |(): ()| Answer::Return(0);
    match (wanted, paths) {
        (Write::Open { flags, mode }, [path]) => open(caller, path, *flags, *mode),
        (Write::Truncate { length }, [path]) => {
            let (directory, name) = parent(path)?;
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&directory, name, flags, Mode::empty())?;
            refuse_special(&file, path)?;
            ftruncate(&file, *length).map(done)
        }
        (Write::Remove(flags), [path]) => {
            let (directory, name) = parent(path)?;
            unlinkat(&directory, name, *flags).map(done)
        }
        (Write::MakeDirectory { mode }, [path]) => {
            let (directory, name) = parent(path)?;
            let mode = mode & !caller.mask()? & 0o7777;
            mkdirat(&directory, name, Mode::from_raw_mode(mode)).map(done)
        }
        (Write::Link { target }, [path]) => {
            let (directory, name) = parent(path)?;
            symlinkat(target.as_os_str(), &directory, name).map(done)
        }
        (Write::Rename(flags), [from, to]) => {
            let (old, new) = (parent(from)?, parent(to)?);
            renameat_with(&old.0, old.1, &new.0, new.1, *flags).map(done)
        }
        _ => Err(Errno::ACCESS),
    }
}

/// Opens the terminal of the caller's session, where the fence lets it be opened. `None` for a
/// call that does not open, and for a terminal that has another kind of name.
pub(super) fn open_terminal(caller: &Caller<'_>, places: &Places) -> Option<Answer> {
    let Some(Ok(Write::Open { flags, .. })) = wanted(caller) else {
        return None;
    };
    let opened = match caller.terminal().and_then(|number| name_of(number, places)) {
        Ok(Some(name)) => caller.confirm().and_then(|()| {
            let opening = OFlags::from_bits_retain((flags & KEPT_FLAGS).cast_unsigned());
            openat(
                CWD,
                name,
                opening | OFlags::NOCTTY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )
        }),
        Ok(None) => return None,
        Err(error) => Err(error),
    };
    Some(match opened {
        Ok(file) => Answer::Descriptor {
            file,
            close_on_exec: flags & libc::O_CLOEXEC != 0,
        },
        Err(error) => Answer::Fail(error),
    })
}

/// The name of a terminal by its device number.
fn name_of(terminal: u64, places: &Places) -> Result<Option<PathBuf>, Errno> {
    let (major, minor) = (rustix::fs::major(terminal), rustix::fs::minor(terminal));
    if terminal == 0 {
        return Err(Errno::NXIO);
    }
    if !PSEUDO_TERMINALS.contains(&major) {
        return Ok(None);
    }
    let number = (major - PSEUDO_TERMINALS.start()) * 256 + minor;
    let name = PathBuf::from(format!("/dev/pts/{number}"));
    match places.include(&name) && stat(&name)?.st_rdev == terminal {
        true => Ok(Some(name)),
        false => Err(Errno::ACCESS),
    }
}

/// Opens a file for the caller, or makes it.
fn open(caller: &Caller<'_>, path: &Path, flags: i32, mode: u32) -> Result<Answer, Errno> {
    let (directory, name) = parent(path)?;
    let is_made = flags & libc::O_CREAT != 0;
    let mode = match is_made {
        true => Mode::from_raw_mode(mode & !caller.mask()? & 0o7777),
        false => Mode::empty(),
    };
    // Nobody waits here for the other end of a pipe.
    let opening = OFlags::from_bits_retain((flags & KEPT_FLAGS).cast_unsigned())
        | OFlags::NONBLOCK
        | OFlags::NOFOLLOW
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let existing = || openat(&directory, name, opening, Mode::empty());
    let file = match is_made {
        false => existing()?,
        true => {
            let making = opening | OFlags::CREATE | OFlags::EXCL;
            let mut attempts = 0;
            loop {
                match openat(&directory, name, making, mode) {
                    Ok(file) => {
                        // Our own mask was taken off, too.
                        if Mode::from_raw_mode(fstat(&file)?.st_mode & 0o7777) != mode {
                            fchmod(&file, mode)?;
                        }
                        break file;
                    }
                    Err(Errno::EXIST) if flags & libc::O_EXCL == 0 => {}
                    Err(error) => return Err(error),
                }
                attempts += 1;
                match existing() {
                    Err(Errno::NOENT) if attempts < MAX_ATTEMPTS => {}
                    opened => break opened?,
                }
            }
        }
    };
    refuse_special(&file, path)?;
    if flags & libc::O_NONBLOCK == 0 {
        fcntl_setfl(&file, opening & !OFlags::NONBLOCK)?;
    }
    Ok(Answer::Descriptor {
        file,
        close_on_exec: flags & libc::O_CLOEXEC != 0,
    })
}

/// The directory of a path, which is reached over no link, and the name in it.
fn parent(path: &Path) -> Result<(OwnedFd, &OsStr), Errno> {
    let (directory, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let directory = openat2(CWD, directory, flags, Mode::empty(), resolve)?;
    Ok((directory, name))
}

/// Pipes, sockets and devices are other things than files, whatever they are called.
fn refuse_special(file: &OwnedFd, path: &Path) -> Result<(), Errno> {
    let kind = FileType::from_raw_mode(fstat(file)?.st_mode);
    match kind == FileType::RegularFile || path == Path::new(NOWHERE) {
        true => Ok(()),
        false => Err(Errno::ACCESS),
    }
}

/// The terminal of whoever opens it.
pub(super) const TERMINAL: &str = "/dev/tty";

/// The major device numbers of pseudo terminals.
const PSEUDO_TERMINALS: std::ops::RangeInclusive<u32> = 136..=143;

/// The file that is written more than all others together.
pub(super) const NOWHERE: &str = "/dev/null";
