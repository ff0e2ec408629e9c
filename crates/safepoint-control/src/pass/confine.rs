//! The fence around what was let through: how an envelope narrows it, and how what was approved,
//! or named by a policy, widens it by exactly that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use safepoint_authority::{Canonical, DenialCode, NamedPath, Preimage};
use safepoint_fence::{Fence, HostRule, Strength, Terminals, Writes, strength};
use serde::{Deserialize, Serialize};

use super::advance::MadeInAdvance;
use super::cover::is_change;
use super::documents::Running;
use super::see::PUSH;
use super::supervise::{Secured, SupervisedChild};
use super::{Capture, Leave, Passage, places};

/// Actions that do nothing useful behind a fence. Where a person approves one, or a policy allows
/// it, it runs without.
const BEYOND: [&str; 3] = ["agent.delegate", "process.kill", "system.change"];

/// The machine itself, by the names that lines use for it.
const LOCAL_HOSTS: [&str; 5] = ["localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"];

/// Whether a person has approved an action, or a steward has allowed all of it by policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Approved {
    /// One of them has.
    Yes,
    /// It was let through for what can be undone.
    No,
}

/// What an action may reach outside the fence: what its form names.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutsideGrant {
    /// Files and directories that may be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) paths: BTreeSet<String>,
    /// Those of them that may be removed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) removals: BTreeSet<String>,
    /// Machines that may be dialled, which only somebody's approval opens: words are no proof of
    /// what is sent there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) hosts: BTreeSet<String>,
    /// Whether somebody approved it, and it only runs commands that are known for what they do.
    #[serde(default)]
    pub(crate) is_approved_and_known: bool,
    /// Whether it runs something whose doings nobody knows.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) runs_anything: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands the field over so"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl OutsideGrant {
    /// What the form of an action names.
    pub(super) fn of(form: &Canonical, approved: Approved) -> Self {
        // What a line puts together when it runs has no path yet, and gets no room.
        let outside = |path: &&NamedPath| {
            !path.inside && is_change(&path.role) && Path::new(&path.path).is_absolute()
        };
        let outside: Vec<&NamedPath> = form.paths.iter().filter(outside).collect();
        let removed = outside.iter().filter(|it| it.role == "delete");
        let removals = removed.map(|it| it.path.clone()).collect();
        let paths = outside.iter().map(|it| it.path.clone());
        let repositories = match approved {
            Approved::Yes => pushed_repositories(form),
            Approved::No => Vec::new(),
        };
        Self {
            is_approved_and_known: approved == Approved::Yes && !form.runs_anything(),
            runs_anything: form.runs_anything(),
            removals,
            paths: paths.chain(repositories).collect(),
            hosts: match approved {
                Approved::Yes => form.hosts.clone(),
                Approved::No => BTreeSet::new(),
            },
        }
    }

    /// Widens a fence by it.
    fn widen(&self, fence: &mut WidenedFence) {
        for path in &self.paths {
            let change = match self.removals.contains(path) {
                true => OutsideChange::Removed,
                false => OutsideChange::Written,
            };
            match self.runs_anything {
                true => fence.allow_exactly(path.as_ref(), change),
                false => fence.allow(path.into(), change),
            }
        }
        let Some(supervision) = &mut fence.fence.supervision else {
            return;
        };
        for host in &self.hosts {
            match host_rule(host) {
                Some((rule, false)) => supervision.hosts.push(rule),
                Some((rule, true)) => supervision.services.push(rule),
                None => {}
            }
        }
    }
}

/// Repositories on this machine that a push sends to.
fn pushed_repositories(form: &Canonical) -> Vec<String> {
    let address = |path: &NamedPath| match &path.preimage {
        Preimage::Link { target, .. } if form.actions.contains(PUSH) => Some(target.clone()),
        _ => None,
    };
    let addresses = form.paths.iter().filter_map(address);
    let plain = addresses.map(|it| it.strip_prefix("file://").map(str::to_owned).unwrap_or(it));
    let repositories = plain.map(|it| Path::new(&form.directory.path).join(it));
    repositories
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.canonicalize().ok()?.to_str()?.to_owned()))
        .filter(|path| !Path::new(path).starts_with(&form.workspace.path))
        .collect()
}

/// What may be done to a path outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutsideChange {
    /// It may be made or written.
    Written,
    /// It may be removed, too.
    Removed,
}

/// A fence that was widened by single paths. Landlock gives rights to whole directories, and
/// making or removing a name is a right to its directory: so the supervisor refuses what else
/// lies there.
#[derive(Clone, Debug)]
pub(super) struct WidenedFence {
    pub(super) fence: Fence,
    pub(super) limits: WriteLimits,
    /// Where every command may write besides the workspace: temporary folders, and the caches of
    /// build tools. Nobody keeps work there.
    pub(super) beside: Vec<PathBuf>,
    /// The sockets at which it calls us. To reach them is no effect outside.
    pub(super) own_sockets: Vec<PathBuf>,
    /// What was made in advance.
    pub(super) made: Vec<MadeInAdvance>,
}

/// What may be written in directories that a fence had to be widened by.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WriteLimits {
    /// What is writable in any case.
    open: Vec<PathBuf>,
    /// The directories.
    directories: Vec<PathBuf>,
    /// What was allowed, with all that lies beneath it.
    allowed: Vec<PathBuf>,
    /// Names that are removed on behalf of the command.
    removable: Vec<PathBuf>,
}

impl WidenedFence {
    /// A fence that was not widened yet.
    pub(super) fn of(fence: Fence) -> Self {
        let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
        Self {
            limits: WriteLimits {
                open: fence.writable.iter().filter_map(real).collect(),
                ..WriteLimits::default()
            },
            beside: fence.writable.iter().filter_map(real).collect(),
            own_sockets: Vec::new(),
            made: Vec::new(),
            fence,
        }
    }

    /// Lets exactly one path be changed, and no other name in its directory, whatever a program
    /// does. What is not there is made in advance.
    pub(super) fn allow_exactly(&mut self, path: &Path, change: OutsideChange) {
        let is_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let directory = path.parent().and_then(|it| std::fs::canonicalize(it).ok());
        let Some(name) = directory
            .zip(path.file_name())
            .map(|(it, name)| it.join(name))
        else {
            return;
        };
        if name.symlink_metadata().is_err() {
            self.made.extend(MadeInAdvance::make(&name, is_directory));
        }
        if change == OutsideChange::Removed {
            self.limits.removable.push(name.clone());
        }
        // A link is followed, as it was when it was looked at.
        self.limits.allowed.extend(std::fs::canonicalize(&name));
        self.limits.allowed.push(name.clone());
        self.fence.writable.push(name);
    }

    /// Lets one path be changed.
    pub(super) fn allow(&mut self, path: PathBuf, change: OutsideChange) {
        let is_there = path.symlink_metadata().is_ok();
        let directory = path.parent().map(Path::to_owned);
        if let Some(directory) = directory
            && (!is_there || change == OutsideChange::Removed)
        {
            let real = std::fs::canonicalize(&directory);
            let real = real.unwrap_or_else(|_| directory.clone());
            let name = path.file_name().map(|name| real.join(name));
            self.limits.allowed.extend(name);
            self.limits.directories.push(real);
            self.fence.writable.push(directory);
        }
        if is_there {
            self.limits.allowed.extend(std::fs::canonicalize(&path));
            self.fence.writable.push(path);
        }
    }
}

impl WidenedFence {
    /// Whether the kernel takes no rule for something that was allowed: a directory with
    /// something hidden beneath it, such as a home, takes no new names and loses none.
    fn is_without_room(&self) -> std::io::Result<bool> {
        let narrowed = self.fence.narrowed().map_err(std::io::Error::other)?;
        let directories = &self.limits.directories;
        Ok(directories.iter().any(|it| narrowed.contains(it)))
    }
}

impl WriteLimits {
    /// What was let through by its name.
    pub(super) fn granted(&self) -> &[PathBuf] {
        &self.allowed
    }

    /// Whether a name is removed on behalf of the command.
    pub(super) fn removes(&self, path: &Path) -> bool {
        self.removable.iter().any(|it| it == path)
    }

    /// Whether a path, as it really is, may be written as far as these limits say.
    pub(super) fn permit(&self, path: &Path) -> bool {
        let within = |places: &[PathBuf]| places.iter().any(|place| path.starts_with(place));
        !within(&self.directories) || within(&self.open) || within(&self.allowed)
    }
}

/// A machine as a line names it, as a rule, and whether it is this machine.
fn host_rule(host: &str) -> Option<(HostRule, bool)> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() && !name.ends_with(':') => (name, port),
        _ => (host, "*"),
    };
    let bracketed = match name.contains(':') && !name.starts_with('[') {
        true => format!("[{name}]"),
        false => name.to_owned(),
    };
    let rule = format!("{bracketed}:{port}").parse().ok()?;
    Some((rule, LOCAL_HOSTS.contains(&name)))
}

/// Whether an action runs without a fence: it was approved, and no fence lets it happen.
pub(super) fn runs_unfenced(form: &Canonical, approved: Approved) -> bool {
    approved == Approved::Yes && form.actions.iter().any(|action| is_beyond(action))
}

/// Whether no fence lets an action of this kind happen.
pub(super) fn is_beyond(action: &str) -> bool {
    BEYOND.contains(&action)
}

impl Running {
    /// The same, with what its form lets it reach outside.
    pub(super) fn with_grant(self, form: &Canonical, approved: Approved) -> Self {
        Self {
            is_unfenced: self.is_unfenced
                || (self.within.is_none() && runs_unfenced(form, approved)),
            grant: OutsideGrant::of(form, approved),
            ..self
        }
    }
}

impl Running {
    /// Whether it may run without a fence where none can be made that lets it happen: known
    /// commands only, whose words a person has seen, or that no shell takes apart.
    fn may_need_no_fence(&self) -> bool {
        let is_sure = self.permit_id.is_some() || self.line.is_none();
        self.grant.is_approved_and_known && self.within.is_none() && is_sure
    }
}

impl Passage<'_> {
    /// A fence that lets write in these paths in the place of the workspace, and of what the
    /// workspace lies in, such as a temporary folder. They lie in the workspace, or an operator has
    /// named them; where a link is on the way to one by now, it leads to something else.
    pub(super) fn narrow(
        &self,
        fence: &mut Fence,
        paths: &BTreeSet<String>,
    ) -> std::io::Result<()> {
        let paths: BTreeSet<String> = paths
            .iter()
            .map(|path| places::unlinked(path))
            .collect::<Result<_, _>>()
            .map_err(|path| {
                let meaning = DenialCode::PathIdentityChanged.meaning();
                std::io::Error::other(format!("{meaning}: `{path}`"))
            })?;
        let root = &self.workspace.root;
        fence.writable.retain(|path| !root.starts_with(path));
        fence.writable.extend(paths.iter().map(PathBuf::from));
        Ok(())
    }

    /// An envelope's paths hold a program by the fence alone.
    fn refuse_unfenced(&self) -> std::io::Result<()> {
        let fenced = self.fence.is_some() && !matches!(strength(), Strength::None(_));
        match fenced {
            true => Ok(()),
            false => Err(std::io::Error::other(
                "it was let through for the paths of an envelope, and there is no fence to keep it to them",
            )),
        }
    }

    /// The fence around an action that has leave: as wide as that, and no wider. None where it
    /// runs without one.
    pub(super) fn fence_around(&self, running: &Running) -> std::io::Result<Option<WidenedFence>> {
        if running.within.is_some() {
            self.refuse_unfenced()?;
        }
        let Some(mut fence) = self.fence.clone().filter(|_| !running.is_unfenced) else {
            return Ok(None);
        };
        if let Some(paths) = &running.within {
            self.narrow(&mut fence, paths)?;
        }
        fence.make_caches();
        let mut fence = WidenedFence::of(fence);
        if let Some(paths) = &running.within {
            // An operator has named them: they are no temporary folders.
            fence
                .beside
                .retain(|place| !paths.iter().any(|path| Path::new(path) == place));
        }
        running.grant.widen(&mut fence);
        let outside = self
            .outside_of_session(&running.session_id)
            .map_err(std::io::Error::other)?;
        for path in outside {
            fence.allow_exactly(&path, OutsideChange::Written);
        }
        match running.may_need_no_fence() && fence.is_without_room()? {
            true => Ok(None),
            false => Ok(Some(fence)),
        }
    }

    /// Starts what has leave, behind its fence.
    pub(super) fn spawn(
        &self,
        mut command: Command,
        leave: &Leave,
        running: &Running,
        secured: Secured,
        capture: Capture,
    ) -> std::io::Result<SupervisedChild> {
        let session = &running.session_id;
        let narrowed = Running {
            within: leave.fenced_within().cloned(),
            ..running.clone()
        };
        let Some(mut widened) = self.fence_around(&narrowed)? else {
            return SupervisedChild::start_unfenced(command, session);
        };
        // Whoever calls us from inside is told why that does not work.
        command.env("SAFEPOINT_FENCED", "1");
        // Its streams are pipes: no terminal is any of its business.
        if capture == Capture::Keep {
            widened.fence.terminals = Terminals::None;
        }
        let widened = self.with_journal(widened, running);
        self.start_supervised(widened, command, session, secured)
    }

    /// Keeps what is written, for whoever looks at the workspace meanwhile, and in case this
    /// process is killed.
    pub(super) fn with_journal(
        &self,
        mut widened: WidenedFence,
        running: &Running,
    ) -> WidenedFence {
        if let Some(supervision) = &mut widened.fence.supervision {
            let journal = self.state.write_journal(&running.action_id);
            if running.before.is_some() {
                // Without one, nobody takes it to be known what it writes.
                let _ = Writes::begin_journal(&journal);
            }
            supervision.journal = Some(journal);
        }
        widened
    }
}

impl Leave {
    /// The paths that a program which may write anywhere is kept to. What known commands write
    /// was compared with the envelope by name.
    fn fenced_within(&self) -> Option<&BTreeSet<String>> {
        let within = self.within.as_ref().filter(|_| self.permit.is_none());
        within.filter(|_| self.canonical.runs_anything())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use super::*;

    #[test]
    fn fe_01_hosts_of_lines_become_rules_and_this_machine_is_told_apart() {
        let rule = |host: &str| host_rule(host).map(|(rule, local)| (rule.to_string(), local));
        let is = |rule: &str, local| Some((rule.to_owned(), local));
        assert_eq!(rule("example.org"), is("example.org:*", false));
        assert_eq!(rule("example.org:8080"), is("example.org:8080", false));
        assert_eq!(rule("localhost:9200"), is("localhost:9200", true));
        assert_eq!(rule("127.0.0.1"), is("127.0.0.1:*", true));
        assert_eq!(rule("::1"), is("[::1]:*", true));
        assert_eq!(rule("a proxy"), None);
    }
    #[test]
    fn fe_01_what_was_approved_widens_the_fence_by_exactly_that() {
        let place = tempfile::tempdir().unwrap();
        let place = place.path().canonicalize().unwrap();
        let (there, removed) = (place.join("there/a"), place.join("removed/b"));
        let (absent, open) = (place.join("absent/c"), place.join("absent/open"));
        for path in [&there, &removed, &open.join("d")] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let mut widened = WidenedFence::of(Fence {
            writable: vec![open.clone()],
            hidden: Vec::new(),
            listing: safepoint_fence::Listing::Everywhere,
            terminals: Terminals::None,
            supervision: None,
            caches: safepoint_fence::Caches::None,
        });
        widened.allow(there.clone(), OutsideChange::Written);
        widened.allow(removed.clone(), OutsideChange::Removed);
        widened.allow(absent.clone(), OutsideChange::Written);
        let directory = |path: &PathBuf| path.parent().unwrap().to_owned();
        let writable = vec![
            open.clone(),
            there.clone(),
            directory(&removed),
            removed.clone(),
            directory(&absent),
        ];
        assert_eq!(widened.fence.writable, writable);
        let limits = widened.limits;
        for path in [
            there,
            removed.clone(),
            absent.clone(),
            absent.join("new"),
            open.join("d"),
        ] {
            assert!(limits.permit(&path), "{}", path.display());
        }
        for path in [
            removed.with_file_name("other"),
            absent.with_file_name("other"),
        ] {
            assert!(!limits.permit(&path), "{}", path.display());
        }
    }
}
