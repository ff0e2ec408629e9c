//! A fence around a process tree: where it may write, and what it may not read.
//!
//! Landlock restricts a thread, for ever, and every process which that thread
//! starts. So a process is started from a thread of its own, which then ends.
//! The caller is never restricted. What is fenced cannot leave the fence, and
//! nothing here can open it again.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread;

use crate::FenceError;
use crate::caches::{CachePlan, MadeCaches};
use crate::carve::{Hidden, existing};
use crate::kernel::{Abilities, Rules};
use crate::supervisor::{
    Gate, NetworkAccess, Places, Supervision, Supervisor, SupervisorThread, SystemLookup,
};

/// Devices that programs write to although nothing is kept there.
const DEVICES: [&str; 5] = [
    "/dev/full",
    "/dev/null",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

/// Where devices are.
const DEVICE_DIRECTORY: &str = "/dev";

/// The terminal one was started from, whichever it is.
const OWN_TERMINAL: &str = "/dev/tty";
/// All terminals there are, and where new ones are made.
const ALL_TERMINALS: [&str; 3] = ["/dev/ptmx", "/dev/pts", OWN_TERMINAL];

/// What is usually at the top, for when that cannot be listed: inside another
/// fence, for example.
const TOP: [&str; 22] = [
    "/bin", "/boot", "/dev", "/etc", "/gnu", "/home", "/lib", "/lib32", "/lib64", "/media", "/mnt",
    "/nix", "/opt", "/proc", "/root", "/run", "/sbin", "/snap", "/srv", "/sys", "/usr", "/var",
];

/// Memory that processes share under a name.
const SHARED_MEMORY: &str = "/dev/shm";

const NO_LANDLOCK: &str =
    "this kernel has no Landlock (Linux 5.13 has), or it is not among its `lsm=` modules";

const NO_SUPERVISOR: &str = "the network, sockets with a path and metadata outside are open (seccomp notification, Linux 5.0, closes them)";

/// Where a process tree may write, and what it may not even read.
#[derive(Debug, Clone)]
pub struct Fence {
    /// Absolute paths at and beneath which everything may be done. What does not
    /// exist, or cannot be reached, is skipped.
    pub writable: Vec<PathBuf>,
    /// The same for paths with no links in them, as they were decided upon. One that a link leads
    /// to by now is an error.
    pub exact: Vec<PathBuf>,
    /// Absolute paths that can neither be read nor written, and nothing beneath
    /// them. This wins over `writable`. They need not exist yet.
    pub hidden: Vec<PathBuf>,
    /// Which directories can be listed.
    pub listing: Listing,
    /// Which terminals can be opened.
    pub terminals: Terminals,
    /// What the supervisor lets through. `None`: there is none, and the network,
    /// sockets with a path and metadata outside are open.
    pub supervision: Option<Supervision>,
    /// Where tools keep what they can make again.
    pub caches: Caches,
}

/// The caches of what runs inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caches {
    /// None of their own: no variable is set.
    None,
    /// They are made by [`Fence::make_caches`].
    Planned(CachePlan),
    /// They are there and writable, and variables name them.
    Made(MadeCaches),
}

/// A process inside a fence.
#[derive(Debug)]
pub struct FencedChild {
    /// The process.
    pub child: Child,
    /// How much of the fence the kernel holds.
    pub strength: Strength,
    /// Who watches over it, where that was asked for and the kernel can.
    pub supervisor: Option<Supervisor>,
}

/// Which terminals can be opened. What a process inherits it has already, whatever is said here.
///
/// A rule for a terminal that is made later cannot be made now. So whoever makes
/// terminals of its own must be let at all of them, other windows included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Terminals {
    /// None.
    None,
    /// Those that this process has as its standard streams.
    Held,
    /// All, and new ones can be made.
    All,
}

impl Terminals {
    fn paths(self) -> Vec<PathBuf> {
        match self {
            Self::None => Vec::new(),
            Self::All => ALL_TERMINALS.iter().map(PathBuf::from).collect(),
            Self::Held => {
                let streams = [
                    (0, std::io::stdin().is_terminal()),
                    (1, std::io::stdout().is_terminal()),
                    (2, std::io::stderr().is_terminal()),
                ];
                let held = streams.into_iter().filter(|(_, is_terminal)| *is_terminal);
                let mut paths: Vec<PathBuf> = held
                    .filter_map(|(number, _)| {
                        std::fs::read_link(format!("/proc/self/fd/{number}")).ok()
                    })
                    .filter(|path| path.starts_with("/dev"))
                    .collect();
                if !paths.is_empty() {
                    paths.push(OWN_TERMINAL.into());
                }
                paths
            }
        }
    }
}

/// Which directories can be listed, where something is hidden.
///
/// The right to list a directory reaches everything beneath it. So either the
/// names of what is hidden can be seen, or the directories on the way down to
/// it, such as `/` and the home directory, cannot be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// All: `ls ~` works, and shows the names (never the content) of what is
    /// hidden.
    Everywhere,
    /// Not what is hidden, and not the directories on the way down to it.
    NotOnTheWay,
}

/// How much of a fence the kernel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strength {
    /// All of it.
    Full,
    /// All but this.
    Partial(String),
    /// Nothing, and why.
    None(String),
}

/// What this kernel could hold. Nothing is restricted by asking.
pub fn strength() -> Strength {
    strength_of(Abilities::get())
}

/// Whether this kernel lets a fence close the network, sockets with a path and metadata outside.
/// Without that, a program inside has effects that nobody sees.
pub fn is_supervision_possible() -> bool {
    Supervisor::is_possible()
}

pub(crate) fn strength_of(abilities: Option<&Abilities>) -> Strength {
    let Some(abilities) = abilities else {
        return Strength::None(NO_LANDLOCK.to_owned());
    };
    let mut missing = abilities.missing.clone();
    if !Supervisor::is_possible() {
        missing.push(NO_SUPERVISOR);
    }
    match missing.is_empty() {
        true => Strength::Full,
        false => Strength::Partial(missing.join("; ")),
    }
}

impl Fence {
    /// Makes the caches that are planned, and lets them be written. Where that fails there are
    /// none, and tools find the user's own, which they can only read.
    pub fn make_caches(&mut self) {
        if let Caches::Planned(plan) = &self.caches {
            self.caches = match plan.make() {
                Some(made) => {
                    self.writable.push(made.private().to_owned());
                    Caches::Made(made)
                }
                None => Caches::None,
            };
        }
    }

    /// Starts a process inside the fence. Where the kernel has no Landlock it is
    /// started all the same, and the answer says [`Strength::None`]: a caller
    /// that does not want this asks [`strength`] first.
    ///
    /// # Errors
    ///
    /// When a path cannot be resolved, the kernel does not take the rules, or
    /// the program cannot be started. Nothing runs then.
    pub fn spawn(&self, command: Command) -> Result<FencedChild, FenceError> {
        self.spawn_with(command, Abilities::get(), None)
    }

    /// The same, with somebody who is asked about what no rule names.
    ///
    /// # Errors
    ///
    /// As [`Self::spawn`].
    pub fn spawn_asking(
        &self,
        command: Command,
        gate: Arc<dyn Gate>,
    ) -> Result<FencedChild, FenceError> {
        self.spawn_with(command, Abilities::get(), Some(gate))
    }

    pub(crate) fn spawn_with(
        &self,
        mut command: Command,
        abilities: Option<&Abilities>,
        gate: Option<Arc<dyn Gate>>,
    ) -> Result<FencedChild, FenceError> {
        let strength = strength_of(abilities);
        let rules = match abilities {
            Some(abilities) => Some(self.rules(abilities)?),
            None => None,
        };
        if let (Some(_), Caches::Made(made)) = (&rules, &self.caches) {
            command.envs(made.environment());
        }
        let is_supervised = rules.is_some() && Supervisor::is_possible();
        let supervision = self.supervision.as_ref().filter(|_| is_supervised);
        let supervisor = match supervision {
            Some(supervision) => {
                let (rules, lookup) = (supervision.clone(), Box::new(SystemLookup));
                let thread = SupervisorThread::start(rules, self.places()?, gate, lookup);
                Some(thread.map_err(FenceError::Supervisor)?)
            }
            None => None,
        };
        let (child, supervisor) = start(command, rules, supervisor)?;
        Ok(FencedChild {
            child,
            strength,
            supervisor,
        })
    }

    /// Where a supervised process may write, as the rules say it too.
    fn places(&self) -> Result<Places, FenceError> {
        let mut writable = self.existing()?;
        let devices = DEVICES.iter().map(PathBuf::from);
        let devices = devices.chain(self.terminals.paths());
        for path in devices.chain([PathBuf::from(SHARED_MEMORY)]) {
            writable.extend(existing(&path)?);
        }
        let hidden = self.hidden.iter();
        let hidden = hidden.map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        Ok(Places {
            writable,
            hidden: hidden.collect(),
        })
    }

    /// The directories of `writable` that take no new names, because something
    /// hidden lies beneath them. What is already in them can be written.
    ///
    /// # Errors
    ///
    /// When a path cannot be resolved.
    pub fn narrowed(&self) -> Result<Vec<PathBuf>, FenceError> {
        let hidden = Hidden::new(&self.hidden)?;
        let writable = self.existing()?;
        let mut narrowed: Vec<PathBuf> = writable.iter().flat_map(|top| hidden.ways(top)).collect();
        narrowed.sort();
        narrowed.dedup();
        Ok(narrowed)
    }

    fn rules(&self, abilities: &Abilities) -> Result<Rules, FenceError> {
        let network = self.supervision.as_ref().map(|it| it.network);
        let mut rules = abilities.rules(network.unwrap_or(NetworkAccess::Open))?;
        let hidden = Hidden::new(&self.hidden)?;
        let writable = self.existing()?;
        let root = Path::new("/");

        let known = TOP
            .iter()
            .map(PathBuf::from)
            .chain(writable.iter().cloned());
        let known: Vec<PathBuf> = known.collect();
        // Reading a device is more than reading a file: a terminal gives away what is typed there.
        let unread = self.hidden.iter().cloned().chain([DEVICE_DIRECTORY.into()]);
        let unread = Hidden::new(&unread.collect::<Vec<_>>())?;
        unread.carve(root, &known, &mut |place, kind| {
            rules.allow(place, kind, abilities.read())
        })?;
        if self.listing == Listing::Everywhere || hidden.is_empty() {
            Hidden::new(&[])?.carve(root, &[], &mut |place, kind| {
                rules.allow(place, kind, abilities.list())
            })?;
        }
        let devices = DEVICES.iter().map(PathBuf::from);
        let devices = devices.chain(self.terminals.paths());
        let devices = devices.map(|path| (path, abilities.device()));
        let memory = [(PathBuf::from(SHARED_MEMORY), abilities.all())];
        for (path, rights) in devices.chain(memory) {
            if let Some(place) = existing(&path)? {
                hidden.carve(&place, &[], &mut |place, kind| {
                    rules.allow(place, kind, rights)
                })?;
            }
        }
        for top in &writable {
            hidden.carve(top, &[], &mut |place, kind| {
                rules.allow(place, kind, abilities.all())
            })?;
        }
        Ok(rules)
    }

    /// What is writable and there, with no links on the way.
    fn existing(&self) -> Result<Vec<PathBuf>, FenceError> {
        let found = self.writable.iter().map(|path| existing(path));
        let exact = self.exact.iter().map(|path| match existing(path)? {
            Some(found) if found != *path => Err(FenceError::Linked { path: path.clone() }),
            found => Ok(found),
        });
        let found: Vec<_> = found.chain(exact).collect::<Result<_, _>>()?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// Starts a process from a thread that is restricted first.
fn start(
    command: Command,
    rules: Option<Rules>,
    supervisor: Option<SupervisorThread>,
) -> Result<(Child, Option<Supervisor>), FenceError> {
    let mut watching = None;
    let restrict = || {
        if let Some(rules) = rules {
            rules.restrict_this_thread()?;
        }
        watching = supervisor
            .map(SupervisorThread::supervise_this_thread)
            .transpose()
            .map_err(FenceError::Supervisor)?;
        Ok(())
    };
    let child = start_restricted(command, restrict)?;
    Ok((child, watching))
}

/// Starts a process from a thread of its own, after that has restricted itself.
pub(crate) fn start_restricted(
    mut command: Command,
    restrict: impl FnOnce() -> Result<(), FenceError> + Send,
) -> Result<Child, FenceError> {
    let program = command.get_program().to_owned();
    let failed = |source| FenceError::Thread { program, source };
    let fenced = move || {
        restrict()?;
        command.spawn().map_err(|source| FenceError::Start {
            program: command.get_program().to_owned(),
            source,
        })
    };
    thread::scope(|scope| {
        let name = "fence".to_owned();
        match thread::Builder::new()
            .name(name)
            .spawn_scoped(scope, fenced)
        {
            Ok(thread) => thread.join().map_err(|_| failed(None))?,
            Err(error) => Err(failed(Some(error))),
        }
    })
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "tests start shells and make files for them"
    )]

    use std::fs;

    use landlock::AccessFs;

    use super::*;

    /// Runs a script with abilities as they are said to be, and says if it worked.
    fn run(place: &Path, script: &str, abilities: Option<&Abilities>) -> (bool, Strength) {
        let fence = Fence {
            writable: vec![place.join("work")],
            exact: Vec::new(),
            hidden: Vec::new(),
            listing: Listing::Everywhere,
            terminals: Terminals::Held,
            supervision: None,
            caches: Caches::None,
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).current_dir(place);
        let mut fenced = fence.spawn_with(command, abilities, None).unwrap();
        (fenced.child.wait().unwrap().success(), fenced.strength)
    }

    #[test]
    fn au_42_a_kernel_that_holds_less_says_what_it_does_not_hold() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        fs::create_dir(place.join("work")).unwrap();
        fs::write(place.join("file"), "before").unwrap();
        let full = Abilities::probe().unwrap();
        let older = full.clone().without(AccessFs::Truncate);

        let empty = "perl -e 'truncate(\"file\", 0) or die'";
        let (done, strength) = run(&place, empty, Some(&full));
        assert_eq!((done, strength), (false, Strength::Full));
        assert_eq!(fs::read(place.join("file")).unwrap(), b"before");
        let (done, strength) = run(&place, empty, Some(&older));
        assert!(done);
        assert_eq!(fs::read(place.join("file")).unwrap(), b"");
        assert!(matches!(strength, Strength::Partial(what) if what.contains("emptied")));
        // The rest of the fence stands.
        assert!(!run(&place, "echo x > file", Some(&older)).0);
        assert!(run(&place, "echo x > work/file", Some(&older)).0);

        // Without moving between directories a move is still refused outside.
        let oldest = full.without(AccessFs::Refer);
        assert!(!run(&place, "mv work/file moved", Some(&oldest)).0);
    }

    #[test]
    fn au_42_a_kernel_without_landlock_fences_nothing_and_says_so() {
        let place = tempfile::tempdir().unwrap();
        let (done, strength) = run(place.path(), "echo x > file", None);
        assert!(done);
        assert!(matches!(strength, Strength::None(why) if why.contains("no Landlock")));
    }
}
