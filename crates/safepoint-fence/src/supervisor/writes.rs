//! Calls that write: they are recorded, and the kernel goes on with them. Landlock holds them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, openat2, statat, unlinkat};
use rustix::io::Errno;

use super::Refusal;
use super::caller::{Caller, Follow};
use super::listener::Answer;
use super::places::{DirectoryCache, Places, is_kept, is_own, real_path};
use super::watch::Watch;

/// A name in a call: the descriptor it starts from, and where its text lies.
#[derive(Clone, Copy)]
pub(super) struct NameArgument {
    directory: Option<usize>,
    text: usize,
    follow: Follow,
}

impl NameArgument {
    const fn at(directory: usize, text: usize, follow: Follow) -> Self {
        Self {
            directory: Some(directory),
            text,
            follow,
        }
    }

    const fn plain(text: usize, follow: Follow) -> Self {
        Self {
            directory: None,
            text,
            follow,
        }
    }
}

/// The names that a call writes. `None` for one that is no such call.
pub(super) fn names(caller: &Caller<'_>) -> Option<Vec<NameArgument>> {
    let flags = |index: usize| caller.int(index);
    let opened = |flags: i32| {
        let is_made = flags & (libc::O_EXCL | libc::O_CREAT) == libc::O_EXCL | libc::O_CREAT;
        match is_made || flags & libc::O_NOFOLLOW != 0 {
            true => Follow::No,
            false => Follow::Yes,
        }
    };
    Some(match caller.notification.call() {
        libc::SYS_openat => vec![NameArgument::at(0, 1, opened(flags(2)))],
        libc::SYS_truncate => vec![NameArgument::plain(0, Follow::Yes)],
        libc::SYS_renameat | libc::SYS_renameat2 => vec![
            NameArgument::at(0, 1, Follow::No),
            NameArgument::at(2, 3, Follow::No),
        ],
        // The new name; the other one is not written, but counts one name more.
        libc::SYS_linkat => vec![NameArgument::at(2, 3, Follow::No)],
        libc::SYS_symlinkat => vec![NameArgument::at(1, 2, Follow::No)],
        libc::SYS_mkdirat | libc::SYS_unlinkat | libc::SYS_mknodat => {
            vec![NameArgument::at(0, 1, Follow::No)]
        }
        other => return old_names(other, opened(flags(1))),
    })
}

#[cfg(target_arch = "x86_64")]
fn old_names(call: i64, opened: Follow) -> Option<Vec<NameArgument>> {
    Some(match call {
        libc::SYS_open => vec![NameArgument::plain(0, opened)],
        libc::SYS_creat => vec![NameArgument::plain(0, Follow::Yes)],
        libc::SYS_rename => vec![
            NameArgument::plain(0, Follow::No),
            NameArgument::plain(1, Follow::No),
        ],
        libc::SYS_link | libc::SYS_symlink => vec![NameArgument::plain(1, Follow::No)],
        libc::SYS_mkdir | libc::SYS_rmdir | libc::SYS_unlink | libc::SYS_mknod => {
            vec![NameArgument::plain(0, Follow::No)]
        }
        _ => return None,
    })
}

#[cfg(not(target_arch = "x86_64"))]
fn old_names(_: i64, _: Follow) -> Option<Vec<NameArgument>> {
    None
}

/// Whether a call may change what the path of another file means.
fn changes_directories(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(
        call,
        libc::SYS_rename | libc::SYS_rmdir | libc::SYS_symlink | libc::SYS_link
    ) {
        return true;
    }
    matches!(
        call,
        libc::SYS_renameat
            | libc::SYS_renameat2
            | libc::SYS_unlinkat
            | libc::SYS_symlinkat
            | libc::SYS_linkat
    )
}

/// Whether a call may make a path lead elsewhere than before, other than to nothing.
pub(super) fn leads_elsewhere(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if matches!(call, libc::SYS_rename | libc::SYS_symlink | libc::SYS_link) {
        return true;
    }
    matches!(
        call,
        libc::SYS_renameat | libc::SYS_renameat2 | libc::SYS_symlinkat | libc::SYS_linkat
    )
}

/// Whether a call may move or remove a directory with all that is beneath it.
fn moves_trees(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_rename {
        return true;
    }
    matches!(call, libc::SYS_renameat | libc::SYS_renameat2)
}

/// Whether a call puts each of two names in the place of the other.
fn exchanges(caller: &Caller<'_>) -> bool {
    let flags = libc::RENAME_EXCHANGE.cast_signed();
    caller.notification.call() == libc::SYS_renameat2 && caller.int(4) & flags != 0
}

/// Records a call that writes.
pub(super) fn record(
    caller: &Caller<'_>,
    names: &[NameArgument],
    places: &Places,
    known: &DirectoryCache,
    watch: &Watch,
) -> Answer {
    let call = caller.notification.call();
    let mut paths = Vec::new();
    for name in names {
        let directory = name.directory.map_or(libc::AT_FDCWD, |it| caller.int(it));
        let path = match caller.path(caller.argument(name.text)) {
            Ok(path) if is_nothing(&path) => continue,
            Ok(path) => path,
            // What we cannot read the kernel might, so it does not get it.
            Err(error) => return Answer::Fail(error),
        };
        match real_path(caller, known, directory, &path, name.follow) {
            Ok(path) => paths.push(path),
            Err(error) if fails_alike(error) => {}
            // It was killed meanwhile, and makes no call any more.
            Err(_) if caller.confirm().is_err() => {}
            Err(_) => watch.lose_track(),
        }
    }
    // What is moved as a whole is written as a whole, where it was and where it will be.
    if changes_directories(call) {
        known.clear();
    }
    let is_tree = moves_trees(call) && paths.iter().any(|it| is_directory(it));
    let single = match paths.as_slice() {
        [path] => Some(path.clone()),
        _ => None,
    };
    let makes_directory = makes_directory(call);
    let ends = paths.clone();
    for path in paths {
        // A directory that is wanted outside is asked for as one.
        let path = match makes_directory {
            true => path.join(""),
            false => path,
        };
        if !note(path, is_tree, places, watch) {
            return Answer::Fail(Errno::ACCESS);
        }
    }
    if let (true, [from, to]) = (is_tree, ends.as_slice()) {
        watch.move_tree(from, to);
        if exchanges(caller) {
            watch.move_tree(to, from);
        }
    }
    match single {
        Some(path) => done_for(caller, &path, watch).unwrap_or(Answer::Continue),
        None => Answer::Continue,
    }
}

fn makes_directory(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_mkdir {
        return true;
    }
    call == libc::SYS_mkdirat
}

/// How a call removes a name, if it does.
fn removal(caller: &Caller<'_>) -> Option<AtFlags> {
    let call = caller.notification.call();
    #[cfg(target_arch = "x86_64")]
    match call {
        libc::SYS_unlink => return Some(AtFlags::empty()),
        libc::SYS_rmdir => return Some(AtFlags::REMOVEDIR),
        _ => {}
    }
    let is_directory = caller.int(2) & libc::AT_REMOVEDIR != 0;
    (call == libc::SYS_unlinkat).then_some(match is_directory {
        true => AtFlags::REMOVEDIR,
        false => AtFlags::empty(),
    })
}

/// Does a call that was allowed for one name in a directory that the fence gives no right to.
fn done_for(caller: &Caller<'_>, path: &Path, watch: &Watch) -> Option<Answer> {
    if makes_directory(caller.notification.call()) {
        return watch.has_made(path).then_some(Answer::Return(0));
    }
    let flags = removal(caller)?;
    if !watch.removes(path) {
        return None;
    }
    let remove = || {
        caller.confirm()?;
        // Who has given up rights does not get ours.
        if !caller.has_our_rights() {
            return Err(Errno::ACCESS);
        }
        let (directory, name) = path.parent().zip(path.file_name()).ok_or(Errno::INVAL)?;
        let opening = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(CWD, directory, opening, Mode::empty(), resolve)?;
        unlinkat(&directory, name, flags).map(|()| 0)
    };
    Some(remove().into())
}

/// Whether the call itself will fail for the same reason, so that nothing is written.
fn fails_alike(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::BADF | Errno::ACCESS
    )
}

/// The file that is written more than all others together.
fn is_nothing(path: &OsStr) -> bool {
    path == "/dev/null"
}

/// Records one path. `false` where it may not be written now.
pub(super) fn note(path: PathBuf, is_tree: bool, places: &Places, watch: &Watch) -> bool {
    if !is_kept(&path) {
        return true;
    }
    if !places.include(&path) {
        // Landlock refuses it. Where the user could not write either, no fence is the reason.
        if is_own(&path) {
            watch.refuse(Refusal::Outside(path));
        }
        return true;
    }
    if !watch.may_write(&path) {
        return false;
    }
    match is_tree {
        true => watch.write_tree(path),
        false => watch.write_path(path),
    }
    true
}

fn is_directory(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}
