//! The fence around what was let through: how an envelope narrows it, and how what was approved,
//! or named by a policy, widens it by exactly that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use safepoint_authority::{Canonical, DenialCode, NamedPath, Preimage};
use safepoint_fence::{
    Fence, HostRule, Strength, Terminals, Writes, is_supervision_possible, strength,
};
use serde::{Deserialize, Serialize};

use super::cover::is_change;
use super::documents::Running;
use super::guarded::is_code_of_client;
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

/// What an action may reach outside the fence: what its form names. An action that an earlier
/// version left running says more of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) struct OutsideGrant {
    /// Files and directories that may be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) paths: BTreeSet<String>,
    /// Machines that may be dialled, which only somebody's approval opens: words are no proof of
    /// what is sent there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) hosts: BTreeSet<String>,
    /// Settings of clients in the workspace that may be written.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) settings: BTreeSet<String>,
}

impl OutsideGrant {
    /// What the form of an action names.
    pub(super) fn of(form: &Canonical, approved: Approved) -> Self {
        // What a line puts together when it runs has no path yet, and gets no room.
        let outside = |path: &&NamedPath| {
            !path.inside && is_change(&path.role) && Path::new(&path.path).is_absolute()
        };
        let outside: Vec<&NamedPath> = form.paths.iter().filter(outside).collect();
        let paths = outside.iter().map(|it| it.path.clone());
        let targets = outside.iter().filter_map(|it| link_target(it));
        let repositories = match approved {
            Approved::Yes => pushed_repositories(form),
            Approved::No => Vec::new(),
        };
        Self {
            settings: match approved {
                Approved::Yes => named_settings(form),
                Approved::No => BTreeSet::new(),
            },
            paths: paths.chain(targets).chain(repositories).collect(),
            hosts: match approved {
                Approved::Yes => form.hosts.clone(),
                Approved::No => BTreeSet::new(),
            },
        }
    }

    /// Widens a fence by it.
    fn widen(&self, fence: &mut WidenedFence) {
        for path in &self.paths {
            fence.allow(path.as_ref());
        }
        let Some(supervision) = &mut fence.fence.supervision else {
            return;
        };
        let released = &mut supervision.guarded.released;
        released.extend(self.settings.iter().map(PathBuf::from));
        for host in &self.hosts {
            match host_rule(host) {
                Some((rule, false)) => supervision.hosts.push(rule),
                Some((rule, true)) => supervision.services.push(rule),
                None => {}
            }
        }
    }
}

/// What a link led to when it was looked at: writing through it changes that.
fn link_target(path: &NamedPath) -> Option<String> {
    let Preimage::Link { target, .. } = &path.preimage else {
        return None;
    };
    let directory = Path::new(&path.path).parent()?;
    places::resolve(&directory.join(target))?
        .to_str()
        .map(str::to_owned)
}

/// Settings of clients in the workspace that an action changes by their names.
fn named_settings(form: &Canonical) -> BTreeSet<String> {
    let changed = form.paths.iter().filter(|path| is_change(&path.role));
    let settings = changed.filter(|path| path.inside && is_code_of_client(&path.path));
    settings.map(|path| path.path.clone()).collect()
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

/// A fence that was widened by single paths. Landlock gives rights to whole directories, for what
/// is there when the fence is made. So it is not asked: the supervisor makes the calls that write
/// these paths, and no others.
#[derive(Clone, Debug)]
pub(super) struct WidenedFence {
    pub(super) fence: Fence,
    /// What the supervisor writes.
    pub(super) allowed: AllowedPaths,
    /// All that was let through by its name: it is work of somebody's, wherever it lies.
    pub(super) named: AllowedPaths,
    /// Where every command may write besides the workspace: temporary folders, and the caches of
    /// build tools. Nobody keeps work there.
    pub(super) beside: Vec<PathBuf>,
    /// The sockets at which it calls us. To reach them is no effect outside.
    pub(super) own_sockets: Vec<PathBuf>,
}

/// What was let through to be written outside, with all that lies beneath it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(super) struct AllowedPaths(Vec<PathBuf>);

impl WidenedFence {
    /// A fence that was not widened yet.
    pub(super) fn of(fence: Fence) -> Self {
        let real = |path: &PathBuf| std::fs::canonicalize(path).ok();
        Self {
            beside: fence.writable.iter().filter_map(real).collect(),
            allowed: AllowedPaths::default(),
            named: AllowedPaths::default(),
            own_sockets: Vec::new(),
            fence,
        }
    }

    /// Lets a path be written, and what lies beneath it. Links in it were resolved when it was
    /// judged; where there is one by now, nothing is written.
    pub(super) fn allow(&mut self, path: &Path) {
        self.named.0.push(path.to_owned());
        if let Some(supervision) = &mut self.fence.supervision {
            supervision.guarded.released.push(path.to_owned());
        }
        // What can be written anyway needs no leave, and what lies there may be a link by now.
        if self.is_writable(path) {
            return;
        }
        // Without a supervisor there is Landlock alone, and what is there can have a rule.
        let is_supervised = self.fence.supervision.is_some() && is_supervision_possible();
        if !is_supervised && path.symlink_metadata().is_ok_and(|it| !it.is_symlink()) {
            self.fence.exact.push(path.to_owned());
        }
        self.allowed.0.push(path.to_owned());
    }
}

impl WidenedFence {
    /// Whether the fence lets it be written already. A directory with something hidden beneath it
    /// takes no new names.
    fn is_writable(&self, path: &Path) -> bool {
        let directory = path.parent().unwrap_or(path);
        let narrowed = self.fence.narrowed().unwrap_or_default();
        self.beside.iter().any(|place| path.starts_with(place))
            && !narrowed.iter().any(|it| it == directory)
    }
}

impl AllowedPaths {
    /// Whether it was let through by its name, or something that it lies in.
    pub(super) fn include(&self, path: &Path) -> bool {
        self.0.iter().any(|allowed| path.starts_with(allowed))
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
        fence.exact.extend(paths.iter().map(PathBuf::from));
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
            fence.allow(&path);
        }
        Ok(Some(fence))
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
        let fence = |supervision| Fence {
            writable: vec![open.clone()],
            exact: Vec::new(),
            hidden: Vec::new(),
            listing: safepoint_fence::Listing::Everywhere,
            terminals: Terminals::None,
            supervision,
            caches: safepoint_fence::Caches::None,
        };
        let supervision = safepoint_fence::Supervision {
            hosts: Vec::new(),
            services: Vec::new(),
            sockets: Vec::new(),
            registry: place.join("registry"),
            journal: None,
            freezer: None,
            guarded: safepoint_fence::GuardedNames::default(),
            network: safepoint_fence::NetworkAccess::Closed,
        };
        let inside = open.join("d");
        let mut widened = WidenedFence::of(fence(Some(supervision)));
        for path in [&there, &removed, &absent, &inside] {
            widened.allow(path);
        }
        // The supervisor makes these calls, and Landlock lets nothing more be written.
        assert_eq!(widened.fence.writable, vec![open.clone()]);
        assert_eq!(widened.fence.exact, Vec::<PathBuf>::new());
        for path in [&there, &removed, &absent, &absent.join("new")] {
            assert!(widened.allowed.include(path), "{}", path.display());
        }
        for path in [
            removed.with_file_name("other"),
            absent.with_file_name("other"),
            inside,
        ] {
            assert!(!widened.allowed.include(&path), "{}", path.display());
        }
        // Without a supervisor there is a rule for what is there, and for nothing beside it.
        let mut alone = WidenedFence::of(fence(None));
        alone.allow(&there);
        alone.allow(&absent);
        assert_eq!(alone.fence.exact, vec![there]);
    }
}
