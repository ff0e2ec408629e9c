//! What a push would send and where to, as git itself would find it: the address of the
//! remote, the commits that its names stand for, and the hooks that would run.
//!
//! Git is only asked. The questions are such that it neither talks to anybody nor runs
//! anything of the repository's own.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use safepoint_authority::{NamedPath, Preimage, Role, Touch, Where};
use safepoint_fence::{Children, LoneFence};
use safepoint_model::{Digest, Frame};
use safepoint_trail::Trail;
use serde_json::Value;

use super::push_words::{Sends, Words, candidates};
use super::{named, text};
use crate::ControlError;

/// The settings that decide how a push goes; others may change meanwhile.
const DECIDING: [&str; 14] = [
    "branch.",
    "core.",
    "credential.",
    "extensions.",
    "gpg.",
    "http.",
    "lfs.",
    "protocol.",
    "push.",
    "remote.",
    "ssh.",
    "submodule.",
    "transfer.",
    "url.",
];

/// Hooks that a push runs.
const PRE_PUSH: &str = "pre-push";
const EACH_REFERENCE: &str = "reference-transaction";

/// What a push names without saying so.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    pub(crate) paths: Vec<NamedPath>,
    pub(crate) hosts: BTreeSet<String>,
}

/// Where git is asked, and with what.
pub(crate) struct Asking<'a> {
    pub(crate) git: Option<&'a safepoint_state::git::Git>,
    pub(crate) directory: &'a Path,
    pub(crate) workspace: &'a Path,
    pub(crate) variables: &'a [(OsString, OsString)],
    pub(crate) trail: &'a Trail,
}

impl Asking<'_> {
    /// Everything that the pushes among these commands stand for. Where a line goes elsewhere
    /// first, the repositories on its way are looked at too.
    pub(crate) fn pushed(&self, commands: &[Vec<Option<String>>]) -> Result<Pushed, ControlError> {
        let mut all = Pushed::default();
        let Some(program) = self.git.and_then(|git| git.native().ok()) else {
            return Ok(all);
        };
        let words = Words::of(commands);
        let mut seen = BTreeSet::new();
        for directory in candidates(commands, self.directory) {
            let git = Git {
                program,
                directory: &directory,
                asking: self,
            };
            let Some(place) = git.ask(&["rev-parse", "--absolute-git-dir"]) else {
                continue; // no repository: there is nothing to be pushed from here
            };
            if seen.insert(place.clone()) {
                for push in &words {
                    git.look(Path::new(&place), push, &mut all)?;
                }
            }
        }
        all.paths.sort();
        all.paths.dedup();
        Ok(all)
    }

    fn named(&self, path: &Path, preimage: Preimage) -> Result<NamedPath, ControlError> {
        Ok(NamedPath {
            inside: path.starts_with(self.workspace),
            path: text(path)?,
            role: "read".to_owned(),
            preimage,
        })
    }

    /// Text without its secrets; each leaves a keyed mark, so that another one is noticed.
    fn without_secrets(&self, text: &str) -> String {
        let mut value = Value::from(text);
        self.trail.redact(&mut value);
        value.as_str().unwrap_or_default().to_owned()
    }
}

/// One repository.
struct Git<'a> {
    program: &'a Path,
    directory: &'a Path,
    asking: &'a Asking<'a>,
}

impl Git<'_> {
    /// What git answers, without the end of the line; `None` when it cannot.
    fn ask(&self, words: &[&str]) -> Option<String> {
        let variables = self.asking.variables;
        #[expect(
            clippy::disallowed_methods,
            reason = "git is asked what a push stands for; it is not an agent's command"
        )]
        let mut command = Command::new(self.program);
        let variables = variables.iter();
        command
            .arg("-C")
            .arg(self.directory)
            .args(words)
            .env_clear()
            .envs(variables.map(|(name, value)| (name, value)))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // It only reads: nothing that a configuration names can start.
        let fence = LoneFence {
            writable: Vec::new(),
            children: Children::None,
        };
        let output = fence.spawn(command).ok()?.child.wait_with_output().ok()?;
        let answer = String::from_utf8(output.stdout).ok()?;
        let answer = answer.strip_suffix('\n').unwrap_or(&answer);
        output.status.success().then(|| answer.to_owned())
    }

    fn look(&self, place: &Path, push: &Words, all: &mut Pushed) -> Result<(), ControlError> {
        let settings = self.settings();
        let branch = self.ask(&["symbolic-ref", "-q", "HEAD"]);
        let remote = push
            .remote
            .clone()
            .or_else(|| usual_remote(&settings, branch.as_deref()))
            .unwrap_or_else(|| "origin".to_owned());
        for address in self.addresses(&remote, &settings) {
            all.hosts.extend(host(&address));
            let link = Preimage::Link {
                target: self.asking.without_secrets(&address),
                digest: Some(self.digest(&settings)),
            };
            // The name that git once kept it under; an address is its own name.
            let name = match remote.contains(['/', ':']) {
                true => place.join("remotes"),
                false => place.join("remotes").join(&remote),
            };
            all.paths.push(self.asking.named(&name, link)?);
        }
        match &push.sends {
            Sends::These(names) => {
                for name in names {
                    self.one(place, name, all)?;
                }
            }
            Sends::Usual if !sends_more(&settings, &remote) => {
                if let Some(branch) = &branch {
                    let link = Preimage::Link {
                        target: branch.clone(),
                        digest: None,
                    };
                    all.paths
                        .push(self.asking.named(&place.join("HEAD"), link)?);
                }
                self.one(place, branch.as_deref().unwrap_or("HEAD"), all)?;
            }
            Sends::Usual | Sends::Everything => self.everything(place, all)?,
        }
        self.hooks(all)
    }

    /// What one name stands for.
    fn one(&self, place: &Path, name: &str, all: &mut Pushed) -> Result<(), ControlError> {
        let full = self.ask(&["rev-parse", "--symbolic-full-name", "--verify", "-q", name]);
        let full = full.filter(|it| !it.is_empty());
        let preimage = match self.ask(&["rev-parse", "--verify", "-q", "--end-of-options", name]) {
            Some(commit) => Preimage::Link {
                target: commit,
                digest: None,
            },
            None => Preimage::Absent {},
        };
        let path = place.join(full.as_deref().unwrap_or(name));
        all.paths.push(self.asking.named(&path, preimage)?);
        Ok(())
    }

    /// All names there are, together.
    fn everything(&self, place: &Path, all: &mut Pushed) -> Result<(), ControlError> {
        let form = "--format=%(objectname) %(refname)";
        let names = self.ask(&["for-each-ref", form]).unwrap_or_default();
        let link = Preimage::Link {
            target: format!("{} names", names.lines().count()),
            digest: Some(Digest::of_parts(&[names.as_bytes()])),
        };
        all.paths
            .push(self.asking.named(&place.join("refs"), link)?);
        Ok(())
    }

    fn hooks(&self, all: &mut Pushed) -> Result<(), ControlError> {
        let Some(place) = self.ask(&["rev-parse", "--git-path", "hooks"]) else {
            return Ok(());
        };
        let place = self.directory.join(place);
        for hook in [PRE_PUSH, EACH_REFERENCE] {
            let path = place.join(hook);
            // That there is none of the usual one is worth telling.
            if hook == PRE_PUSH || path.symlink_metadata().is_ok() {
                let touch = Touch {
                    place: Where::Exact(path),
                    role: Role::Execute,
                };
                all.paths.extend(named(&touch, self.asking.workspace)?);
            }
        }
        Ok(())
    }

    /// Names and values of the settings that decide, in git's order; names in lower case.
    fn settings(&self) -> Vec<(String, String)> {
        let listed = self.ask(&["config", "--list", "-z", "--includes"]);
        let listed = listed.unwrap_or_default();
        let entries = listed.split('\0').filter(|entry| !entry.is_empty());
        entries
            .map(|entry| entry.split_once('\n').unwrap_or((entry, "")))
            .filter(|(name, _)| DECIDING.iter().any(|known| name.starts_with(known)))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn digest(&self, settings: &[(String, String)]) -> Digest {
        let mut frame = Frame::new("safepoint/push-settings/v1");
        for (name, value) in settings {
            frame
                .field(name.as_bytes())
                .field(self.asking.without_secrets(value).as_bytes());
        }
        frame.digest()
    }

    /// Where a remote leads: all the addresses that a push goes to.
    fn addresses(&self, remote: &str, settings: &[(String, String)]) -> Vec<String> {
        let known = self.ask(&["remote", "get-url", "--push", "--all", "--", remote]);
        match known {
            Some(addresses) => addresses.lines().map(str::to_owned).collect(),
            None => vec![rewritten(remote, settings)],
        }
    }
}

/// The remote that git takes where none is named.
fn usual_remote(settings: &[(String, String)], branch: Option<&str>) -> Option<String> {
    let value = |wanted: &str| {
        let mut found = settings.iter().rev();
        found
            .find(|(name, _)| name == wanted)
            .map(|(_, value)| value.clone())
    };
    let branch = branch.and_then(|it| it.strip_prefix("refs/heads/"));
    let own = |what: &str| branch.and_then(|branch| value(&format!("branch.{branch}.{what}")));
    own("pushremote")
        .or_else(|| value("remote.pushdefault"))
        .or_else(|| own("remote"))
}

/// Whether settings make a plain push send more than the branch one is on.
fn sends_more(settings: &[(String, String)], remote: &str) -> bool {
    let pushes = format!("remote.{remote}.push");
    let mirrors = format!("remote.{remote}.mirror");
    settings.iter().any(|(name, value)| {
        *name == pushes
            || *name == mirrors
            || (name == "push.default" && value == "matching")
            || (name == "push.followtags" && value != "false")
            || (name == "push.recursesubmodules" && value != "no")
    })
}

/// An address as git rewrites it for a push: the longest beginning wins.
fn rewritten(address: &str, settings: &[(String, String)]) -> String {
    let by = |what: &str| {
        let rules = settings.iter().filter_map(|(name, from)| {
            let base = name.strip_prefix("url.")?.strip_suffix(what)?;
            let rest = address.strip_prefix(from.as_str())?;
            Some((from.len(), format!("{base}{rest}")))
        });
        rules.max().map(|(_, to)| to)
    };
    by(".pushinsteadof")
        .or_else(|| by(".insteadof"))
        .unwrap_or_else(|| address.to_owned())
}

/// The machine in an address, with its port; none for a directory.
fn host(address: &str) -> Option<String> {
    let (rest, is_url) = match address.split_once("://") {
        Some(("file", _)) => return None,
        Some((_, rest)) => (rest, true),
        None => (address, false),
    };
    let end = match is_url {
        true => rest.find('/').unwrap_or(rest.len()),
        // `user@machine:path`, and not a path with a colon in it.
        false => rest
            .find(':')
            .filter(|at| !rest.get(..*at).is_some_and(|it| it.contains('/')))?,
    };
    let place = rest.get(..end)?;
    let machine = place.rsplit_once('@').map_or(place, |(_, machine)| machine);
    (!machine.is_empty()).then(|| machine.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn au_25_the_machine_of_an_address() {
        for (address, expected) in [
            (
                "https://user:word@example.org:8443/a.git",
                Some("example.org:8443"),
            ),
            ("ssh://git@example.org/a.git", Some("example.org")),
            ("git@example.org:a/b.git", Some("example.org")),
            ("example.org:b.git", Some("example.org")),
            ("https://example.org", Some("example.org")),
            ("/srv/a.git", None),
            ("../a:b.git", None),
            ("file:///srv/a.git", None),
            ("", None),
        ] {
            assert_eq!(host(address).as_deref(), expected, "{address}");
        }
    }

    #[test]
    fn au_25_an_address_is_rewritten_as_git_does() {
        let settings = [
            ("url.ssh://b/.pushinsteadof", "https://a/"),
            ("url.ssh://c/.pushinsteadof", "https://a/long/"),
            ("url.ssh://d/.insteadof", "short:"),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        for (address, expected) in [
            ("https://a/x", "ssh://b/x"),
            ("https://a/long/x", "ssh://c/x"),
            ("short:x", "ssh://d/x"),
            ("https://e/x", "https://e/x"),
        ] {
            assert_eq!(rewritten(address, &settings), expected);
        }
    }
}
