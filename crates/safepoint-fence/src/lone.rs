//! A fence around one program that Safepoint runs for its answer, such as git.
//!
//! The program reads what the user may read, writes only in the places that are named, has no
//! sockets, and starts nothing: at most itself again. So what a configuration tells it to run
//! does not run, whatever the configuration says and whenever it is changed.
//!
//! Landlock lets nothing be executed but the program and the loader that its file names; a
//! filter keeps it from making processes. It never chooses the program or its arguments.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::FenceError;
use crate::carve::{Hidden, existing};
use crate::fence::{FencedChild, start_restricted, strength_of};
use crate::kernel::{Abilities, Rules};
use crate::supervisor::{NetworkAccess, install_plain, lone_program};

/// Where a program writes what nobody keeps.
const NOWHERE: &str = "/dev/null";

/// More of a program's file is not read to find the name of its loader.
const MAX_HEADER_BYTES: u64 = 16 << 10;

/// Whether a program may make processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// No.
    None,
    /// Of itself alone.
    Itself,
}

/// What one program may do.
#[derive(Debug, Clone)]
pub struct LoneFence {
    /// Absolute paths at and beneath which it may write. A path with a link in it is an error,
    /// and one that is not there is skipped.
    pub writable: Vec<PathBuf>,
    /// Whether it may make processes.
    pub children: Children,
}

impl LoneFence {
    /// Starts a program inside the fence. Where the kernel has no Landlock it is started behind
    /// the filter alone, and the answer says [`crate::Strength::None`].
    ///
    /// # Errors
    ///
    /// When a path cannot be used, the kernel does not take the rules, or the program cannot be
    /// started. Nothing runs then.
    pub fn spawn(&self, command: Command) -> Result<FencedChild, FenceError> {
        let abilities = Abilities::get();
        let rules = match abilities {
            Some(abilities) => Some(self.rules(abilities, command.get_program())?),
            None => None,
        };
        let filter = lone_program(self.children == Children::None);
        let restrict = move || {
            if let Some(rules) = rules {
                rules.restrict_this_thread()?;
            }
            install_plain(&filter)
                .map(drop)
                .map_err(FenceError::Supervisor)
        };
        Ok(FencedChild {
            child: start_restricted(command, restrict)?,
            strength: strength_of(abilities),
            supervisor: None,
        })
    }

    fn rules(&self, abilities: &Abilities, program: &OsStr) -> Result<Rules, FenceError> {
        let mut rules = abilities.rules(NetworkAccess::Closed)?;
        let everything = Hidden::new(&[])?;
        let mut allow = |place: &Path, rights| {
            everything.carve(place, &[], &mut |place, kind| {
                rules.allow(place, kind, rights)
            })
        };
        allow(Path::new("/"), abilities.look())?;
        let program = PathBuf::from(program);
        let loader = loader_of(&program);
        for path in [Some(program), loader].into_iter().flatten() {
            if let Some(place) = existing(&path)? {
                allow(&place, abilities.run())?;
            }
        }
        if let Some(place) = existing(Path::new(NOWHERE))? {
            allow(&place, abilities.device())?;
        }
        for place in &self.writable {
            match place.symlink_metadata() {
                Ok(_) => allow(place, abilities.keep())?,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => {
                    let path = place.clone();
                    return Err(FenceError::Path { path, source });
                }
            }
        }
        Ok(rules)
    }
}

/// Whether a file is a program that the kernel loads by itself, and no script.
pub fn is_native(program: &Path) -> bool {
    head(program).is_some_and(|head| head.starts_with(b"\x7fELF"))
}

fn head(program: &Path) -> Option<Vec<u8>> {
    let mut head = Vec::new();
    let file = File::open(program).ok()?;
    file.take(MAX_HEADER_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}

/// The loader that a program's file names: the kernel executes it too.
fn loader_of(program: &Path) -> Option<PathBuf> {
    const LOADER: u64 = 3;
    let head = head(program)?;
    let number = |at: u64, bytes: u64| -> Option<u64> {
        let at = usize::try_from(at).ok()?;
        let found = head.get(at..at.checked_add(usize::try_from(bytes).ok()?)?)?;
        let number = found
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        Some(number)
    };
    // Of 64 bits, the small end first: what the filter knows is nothing else.
    if head.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let entries = (0..count).map_while(|index| table.checked_add(index.checked_mul(size)?));
    for entry in entries {
        if number(entry, 4)? == LOADER {
            let begin = usize::try_from(number(entry.checked_add(8)?, 8)?).ok()?;
            let name = head.get(begin..)?;
            let end = name.iter().position(|&byte| byte == 0)?;
            return Some(PathBuf::from(OsStr::from_bytes(name.get(..end)?)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests start programs")]

    use std::fs;
    use std::process::Stdio;

    use super::*;

    /// Runs a program, and says if it worked and what it wrote.
    fn run(fence: &LoneFence, program: &str, arguments: &[&str]) -> (bool, String) {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let output = fence
            .spawn(command)
            .unwrap()
            .child
            .wait_with_output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.success(), text)
    }

    #[test]
    fn fe_01_a_lone_program_writes_in_its_places_and_runs_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        for name in ["in", "out"] {
            fs::create_dir(place.join(name)).unwrap();
        }
        let file = |name: &str| place.join(name).to_str().unwrap().to_owned();
        let mut fence = LoneFence {
            writable: vec![place.join("in"), place.join("absent")],
            children: Children::Itself,
        };
        let sh = |fence: &LoneFence, script: &str| run(fence, "/bin/sh", &["-c", script]);
        assert!(sh(&fence, &format!("echo x > {}", file("in/a"))).0);
        assert!(!sh(&fence, &format!("echo x > {}", file("out/a"))).0);
        assert!(!place.join("out/a").exists());
        // What it reads it may say, and itself it may start, but nothing else.
        assert_eq!(sh(&fence, "/bin/sh -c 'echo again'; true").1, "again\n");
        assert_eq!(sh(&fence, "/bin/cat /etc/passwd; true").1, "");
        fence.children = Children::None;
        assert_eq!(sh(&fence, "echo here; (echo forked)").1, "here\n");
        // A link in a writable path is no way out.
        std::os::unix::fs::symlink(place.join("out"), place.join("link")).unwrap();
        fence.writable.push(place.join("link/x"));
        fs::create_dir(place.join("out/x")).unwrap();
        let command = Command::new("/bin/sh");
        assert!(matches!(fence.spawn(command), Err(FenceError::Path { .. })));
    }

    #[test]
    fn fe_01_the_loader_of_a_program_is_found() {
        assert!(is_native(Path::new("/proc/self/exe")));
        assert!(!is_native(Path::new("/etc/passwd")));
        let found = loader_of(&Path::new("/bin/sh").canonicalize().unwrap());
        assert!(found.is_none_or(|found| found.is_absolute() && found.exists()));
    }
}
