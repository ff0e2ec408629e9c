//! Calls that write: they are recorded, and the kernel goes on with them, held by Landlock; or they
//! are made on behalf of the caller, where one path is allowed and what lies beside it is not.

use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;

use super::behalf::{self, NOWHERE, TERMINAL};
use super::caller::{Caller, Follow};
use super::listener::Answer;
use super::places::{DirectoryCache, Places, is_kept, is_own, real_path};
use super::watch::Watch;
use super::{Refusal, WriteAccess};

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

/// Records a call that writes, and says who goes on with it.
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
            Ok(path) if path == NOWHERE => match watch.continues() {
                true => continue,
                false => PathBuf::from(path),
            },
            // Every shell looks once if there is one.
            Ok(path) if path == TERMINAL && !watch.continues() => {
                if let Some(answer) = behalf::open_terminal(caller, places) {
                    return answer;
                }
                PathBuf::from(path)
            }
            Ok(path) => match real_path(caller, known, directory, &path, name.follow) {
                Ok(path) => path,
                // The call fails for the same reason, and nothing is written.
                Err(error) if fails_alike(error) => match watch.continues() {
                    true => continue,
                    false => return Answer::Fail(error),
                },
                // It was killed meanwhile, and makes no call any more.
                Err(_) if caller.confirm().is_err() => continue,
                Err(_) => {
                    watch.lose_track();
                    continue;
                }
            },
            // What we cannot read the kernel might, so it does not get it.
            Err(error) => return Answer::Fail(error),
        };
        paths.push(path);
    }
    // What is moved as a whole is written as a whole, where it was and where it will be.
    if changes_directories(call) {
        known.clear();
    }
    if leads_elsewhere(call) && !paths.iter().all(|it| watch.may_move(it)) {
        return Answer::Fail(Errno::ACCESS);
    }
    let is_tree = moves_trees(call) && paths.iter().any(|it| is_directory(it));
    let mut access = WriteAccess::Kernel;
    for path in &paths {
        // A directory that is wanted outside is asked for as one.
        let path = match makes_directory(call) {
            true => path.join(""),
            false => path.clone(),
        };
        match note(path, is_tree, places, watch) {
            WriteAccess::None => return Answer::Fail(Errno::ACCESS),
            WriteAccess::Supervisor => access = WriteAccess::Supervisor,
            WriteAccess::Kernel => {}
        }
    }
    if let (true, [from, to]) = (is_tree, paths.as_slice()) {
        watch.move_tree(from, to);
        if exchanges(caller) {
            watch.move_tree(to, from);
        }
    }
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    if access == WriteAccess::Supervisor {
        // The other path of a call has to be writable by itself, and in a checkpoint first.
        let is_given = |path: &&&Path| watch.write_access(path) == WriteAccess::Supervisor;
        let mut others = paths.iter().filter(|path| !is_given(path)).peekable();
        let has_others = others.peek().is_some();
        if !others.all(|path| places.include(path)) || has_others && !watch.may_continue() {
            return Answer::Fail(Errno::ACCESS);
        }
        let answer = behalf::write(caller, &paths);
        if changes_directories(call) {
            known.clear();
        }
        match answer {
            Some(answer) => return answer,
            None if paths.iter().all(|path| places.include(path)) => {}
            // Landlock would refuse it, but for a path that it reads again.
            None => return Answer::Fail(Errno::PERM),
        }
    }
    if !watch.may_continue() {
        return Answer::Fail(Errno::ACCESS);
    }
    watch.begin_call(caller.notification.thread(), call, &paths);
    Answer::Continue
}

fn makes_directory(call: i64) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_mkdir {
        return true;
    }
    call == libc::SYS_mkdirat
}

/// Whether the call itself will fail for the same reason, so that nothing is written.
fn fails_alike(error: Errno) -> bool {
    matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::BADF | Errno::ACCESS
    )
}

/// Records one path, and says who may write it.
pub(super) fn note(path: PathBuf, is_tree: bool, places: &Places, watch: &Watch) -> WriteAccess {
    let access = match watch.write_access(&path) {
        // Hidden wins, whatever was allowed: no rule of Landlock stands behind what we do.
        WriteAccess::Supervisor if places.hide(&path) => WriteAccess::None,
        access => access,
    };
    if !is_kept(&path) {
        return access;
    }
    if access == WriteAccess::None {
        return access;
    }
    if access == WriteAccess::Kernel && !places.include(&path) {
        // Landlock refuses it. Where the user could not write either, no fence is the reason.
        if is_own(&path) {
            watch.refuse(Refusal::Outside(path));
        }
        return access;
    }
    if !watch.is_unguarded(&path) {
        return WriteAccess::None;
    }
    match is_tree {
        true => watch.write_tree(path),
        false => watch.write_path(path),
    }
    access
}

fn is_directory(path: &Path) -> bool {
    statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Directory)
}
