//! Mode, owner, times and attributes.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use super::*;

/// Every way to change metadata, with the path in `p`.
const CHANGES: [&str; 11] = [
    "os.chmod(p, 0o600)",
    "os.chmod(os.path.basename(p), 0o600, dir_fd=os.open(os.path.dirname(p), os.O_RDONLY))",
    "os.fchmod(os.open(p, os.O_RDONLY), 0o600)",
    "os.chown(p, os.getuid(), os.getgid())",
    "os.lchown(p, os.getuid(), os.getgid())",
    "os.fchown(os.open(p, os.O_RDONLY), os.getuid(), os.getgid())",
    "os.utime(p, (1, 2))",
    "os.utime(os.open(p, os.O_RDONLY), ns=(1000000007, 2000000009))",
    "os.utime(p, (1, 2), follow_symlinks=False)",
    "ctypes.CDLL(None, use_errno=True).utimes(p.encode(), None) == 0 or fail()",
    "ctypes.CDLL(None, use_errno=True).chmod(p.encode(), 0o600) == 0 or fail()",
];

fn script(change: &str, path: &str) -> String {
    format!(
        "import ctypes, os
def fail():
    raise OSError(ctypes.get_errno(), 'refused')
p = {path}
{change}"
    )
}

#[test]
fn fe_14_metadata_outside_cannot_be_changed_and_inside_it_can() {
    let room = Room::new();
    for change in CHANGES {
        let outside = room.path("outside/file");
        let before = fs::metadata(&outside).unwrap();
        let ran = room
            .python(&script(change, &format!("{outside:?}")))
            .failed();
        let after = fs::metadata(&outside).unwrap();
        let state = |it: &fs::Metadata| (it.mode(), it.mtime(), it.ctime(), it.ctime_nsec());
        assert_eq!(state(&before), state(&after), "{change}");
        let refused = Refusal::Outside(outside);
        assert!(
            ran.seen.refused.contains(&refused),
            "{change}: {:?}",
            ran.seen
        );

        let inside = room.path("work/file");
        let ran = room
            .python(&script(change, &format!("{inside:?}")))
            .succeeded();
        assert!(ran.seen.written.paths.contains(&inside), "{change}");
        assert!(ran.seen.refused.is_empty(), "{change}");
    }
}

#[test]
fn fe_14_what_is_changed_inside_is_what_was_asked_for() {
    let room = Room::new();
    let file = room.path("work/file");
    room.shell("chmod 750 file && touch -d @1000000000.5 file && ln -s file link")
        .succeeded();
    let found = fs::metadata(&file).unwrap();
    assert_eq!(found.permissions().mode() & 0o7777, 0o750);
    assert_eq!(
        (found.mtime(), found.mtime_nsec()),
        (1_000_000_000, 500_000_000)
    );
    // A link is followed, or is meant itself.
    room.shell("chmod 700 link && touch -h -d @7 link")
        .succeeded();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o700);
    assert_eq!(
        fs::symlink_metadata(room.path("work/link"))
            .unwrap()
            .mtime(),
        7
    );
    // Only one of the two times.
    room.shell("touch -a -d @5 file").succeeded();
    let found = fs::metadata(&file).unwrap();
    assert_eq!((found.atime(), found.mtime()), (5, 1_000_000_000));
    room.python(
        "import os
os.setxattr('file', 'user.a', b'value')
assert os.getxattr('file', 'user.a') == b'value'
os.removexattr('file', 'user.a')
assert os.listxattr('file') == []
os.setxattr(os.open('file', os.O_RDONLY), 'user.b', b'')
assert os.listxattr('file') == ['user.b']
",
    )
    .succeeded();
}

#[test]
fn fe_14_attributes_outside_cannot_be_changed() {
    let room = Room::new();
    for change in [
        "os.setxattr(p, 'user.a', b'x')",
        "os.setxattr(p, 'user.a', b'x', follow_symlinks=False)",
        "os.setxattr(os.open(p, os.O_RDONLY), 'user.a', b'x')",
    ] {
        let script = |path: &str| format!("import os; p = {path}; {change}");
        room.python(&script("'../outside/file'")).failed();
        let listed = room.free(
            "python3",
            "import os; print(os.listxattr('../outside/file'))",
        );
        assert_eq!(listed.stdout, b"[]\n", "{change}");
        room.python(&script("'file'")).succeeded();
    }
}

#[test]
fn fe_14_a_link_or_a_descriptor_leads_no_metadata_out() {
    let room = Room::new();
    std::os::unix::fs::symlink(room.path("outside"), room.path("work/out")).unwrap();
    let before = fs::metadata(room.path("outside/file"))
        .unwrap()
        .ctime_nsec();
    for script in [
        "chmod 600 out/file",
        "chmod 600 deep/../out/file",
        "touch out/file",
        "exec 7< ../outside/file; chmod 600 /proc/self/fd/7",
        "exec 7< ../outside/file; chmod 600 /dev/fd/7",
        "cd / && chmod 600 $ROOM/work/out/file",
    ] {
        room.shell(script).failed();
        let after = fs::metadata(room.path("outside/file"))
            .unwrap()
            .ctime_nsec();
        assert_eq!(before, after, "{script}");
    }
}

#[test]
fn fe_14_files_without_a_name_are_changed_as_without_a_fence() {
    let room = Room::new();
    room.python(
        "import os
f = os.open('.', os.O_TMPFILE | os.O_RDWR)
os.fchmod(f, 0o640)
g = os.open('gone', os.O_CREAT | os.O_RDWR)
os.unlink('gone')
os.fchmod(g, 0o600)
os.utime(g, (1, 2))
os.fchmod(os.pipe()[0], 0o600)
os.fchmod(os.memfd_create('m'), 0o600)
",
    )
    .succeeded();
}

#[test]
fn fe_14_devices_and_the_supervisors_own_descriptors_stay_as_they_are() {
    let room = Room::new();
    let before = fs::metadata("/dev/null").unwrap().mode();
    room.shell("chmod 600 /dev/null").failed();
    assert_eq!(fs::metadata("/dev/null").unwrap().mode(), before);
    // A link to what a process finds itself by is not followed to places of the supervisor.
    std::os::unix::fs::symlink("/proc/self/fd/4", room.path("work/four")).unwrap();
    room.shell("exec 4< file; chmod 600 four").failed();
}
