//! A fenced shell, on the kernel that runs the tests. Each refusal has its
//! counterpart: the same script does its work outside the fence.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests start shells, make the files that those must not reach, and stop where they fail"
)]

mod hiding;
mod processes;
mod writing;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use safepoint_fence::{Caches, Fence, FenceError, Listing, Strength, Terminals, strength};
use tempfile::TempDir;

/// Renames, where `mv` would copy what cannot be renamed.
const RENAME: &str = "perl -e 'rename($ARGV[0], $ARGV[1]) or die \"$!\\n\"'";

/// A workspace, a folder for temporary files, a place outside, and a secret one
/// two levels down.
struct Room {
    directory: TempDir,
    listing: Listing,
    terminals: Terminals,
}

impl Room {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let room = Self {
            directory,
            listing: Listing::NotOnTheWay,
            terminals: Terminals::Held,
        };
        for folder in [
            "work/deep",
            "temporary",
            "outside/deep",
            "home/data/secret/in",
            "home/notes",
        ] {
            fs::create_dir_all(room.path(folder)).unwrap();
        }
        for file in [
            "work/file",
            "outside/file",
            "home/data/secret/key",
            "home/notes/file",
        ] {
            fs::write(room.path(file), "before\n").unwrap();
        }
        fs::write(room.path("home/data/beside"), "beside\n").unwrap();
        room
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn fence(&self) -> Fence {
        Fence {
            writable: vec![
                self.path("work"),
                self.path("temporary"),
                self.path("absent"),
                self.path("work/file/beneath-a-file"),
            ],
            exact: Vec::new(),
            hidden: vec![self.path("home/data/secret")],
            listing: self.listing,
            terminals: self.terminals,
            supervision: None,
            caches: Caches::None,
        }
    }

    fn shell(&self, script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", script])
            .current_dir(self.path("work"))
            .env("ROOM", self.directory.path().canonicalize().unwrap())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn start(&self, script: &str) -> Child {
        let fenced = self.fence().spawn(self.shell(script)).unwrap();
        let found = fenced.strength;
        assert_eq!(found, strength());
        assert!(
            !matches!(found, Strength::None(_)),
            "these tests need Landlock"
        );
        fenced.child
    }

    fn fenced(&self, script: &str) -> Output {
        self.start(script).wait_with_output().unwrap()
    }

    fn free(&self, script: &str) -> Output {
        self.shell(script).output().unwrap()
    }

    /// Works inside the fence.
    #[track_caller]
    fn allowed(&self, script: &str) {
        let output = self.fenced(script);
        assert!(output.status.success(), "{script}: {}", talk(&output));
    }

    /// Is refused inside the fence for want of permission, and works outside.
    #[track_caller]
    fn denied(&self, script: &str) {
        let output = self.fenced(script);
        assert!(!output.status.success(), "{script} was not refused");
        let talk = talk(&output);
        let refused = [
            "Permission denied",
            "cross-device",
            "Operation not permitted",
        ];
        assert!(
            refused.iter().any(|why| talk.contains(why)),
            "{script}: {talk}"
        );
        let output = self.free(script);
        assert!(output.status.success(), "{script}: {}", self::talk(&output));
    }
}

fn talk(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
