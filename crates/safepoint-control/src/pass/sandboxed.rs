//! A line that its client runs in a sandbox of its own, where there is no way to the store.
//!
//! A process outside has the store: it claims the line, makes the checkpoint before it, says
//! which fence belongs around it, and keeps the record ([`Passage::order_line`],
//! [`Passage::conclude_line`]). A process inside does what it is told, and tells how it ended
//! ([`LineOrder::carry_out`]). Nothing is asked on the way: what the fence does not name is
//! refused, and becomes a request afterwards.

use std::os::unix::process::ExitStatusExt;
use std::path::{Component, Path, PathBuf};
use std::process::ExitStatus;
use std::sync::Arc;

use safepoint_fence::{
    Caches, Fence, FenceError, Gate, GuardedNames, HostRule, Listing, NetworkAccess, Observation,
    Refusal, Supervision, Terminals, WriteAccess, Writes,
};
use safepoint_model::{ActionId, SessionId};
use serde::{Deserialize, Serialize};

use super::attend::{Stop, ended_code, wait};
use super::confine::{AllowedPaths, WidenedFence};
use super::documents::Running;
use super::perform::{ClaimedLine, PerformedLine, ShellLine, shell_command};
use super::supervise::{PlacesBeside, SupervisedEnd, written_within};
use super::{Capture, Ended, Passage};
use crate::ControlError;

/// What a process in a client's sandbox is to do with a line.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LineOrder {
    session: SessionId,
    action: ActionId,
    workspace: PathBuf,
    fence: Option<FenceOrder>,
}

/// A fence, as it is told from one process to another.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct FenceOrder {
    writable: Vec<PathBuf>,
    exact: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    lists_everywhere: bool,
    supervision: Option<SupervisionOrder>,
    allowed: AllowedPaths,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct SupervisionOrder {
    hosts: Vec<String>,
    services: Vec<String>,
    registry: PathBuf,
    is_network_closed: bool,
    guarded: Vec<PathBuf>,
    released: Vec<PathBuf>,
}

/// How a line ended in a client's sandbox.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LineReport {
    /// The exit code, as shells tell it.
    pub code: u8,
    is_fenced: bool,
    seen: Option<SeenReport>,
    /// Why it could not be started.
    error: Option<String>,
}

/// What a supervisor saw, as it is told from one process to another.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
struct SeenReport {
    hosts: Vec<String>,
    sockets: Vec<String>,
    refused: Vec<RefusalReport>,
    paths: Vec<String>,
    trees: Vec<String>,
    is_complete: bool,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum RefusalReport {
    Host(String),
    Socket(String),
    Outside(String),
    Call(String),
}

/// A line that a process in a client's sandbox carries out.
#[derive(Debug)]
pub struct OrderedLine {
    running: Running,
    beside: PlacesBeside,
}

impl Passage<'_> {
    /// What the process inside is to do. The checkpoint before the line is made now: nobody asks
    /// for it later, and what the client has laid out for its sandbox since the line was let
    /// through is not the line's work.
    pub fn order_line(
        &self,
        claimed: ClaimedLine,
    ) -> Result<(OrderedLine, LineOrder), ControlError> {
        let mut running = claimed.into_running();
        if let Some(held) = self.hold_running(&running)? {
            held.end();
        }
        self.secure_running(&mut running)?;
        let failed = |error: std::io::Error| ControlError::Start {
            program: running.summary.clone(),
            error,
        };
        let widened = self.fence_around(&running).map_err(failed)?;
        let beside = widened.as_ref().map(PlacesBeside::of).unwrap_or_default();
        let order = LineOrder {
            session: running.session_id.clone(),
            action: running.action_id.clone(),
            workspace: self.workspace.root.clone(),
            fence: widened.map(|widened| self.fence_order(widened, &running)),
        };
        Ok((OrderedLine { running, beside }, order))
    }

    fn fence_order(&self, widened: WidenedFence, running: &Running) -> FenceOrder {
        let WidenedFence { fence, allowed, .. } = widened;
        let names = |rules: &[HostRule]| rules.iter().map(ToString::to_string).collect();
        FenceOrder {
            writable: fence.writable,
            exact: fence.exact,
            hidden: fence.hidden,
            lists_everywhere: fence.listing == Listing::Everywhere,
            supervision: fence.supervision.map(|mut supervision| {
                supervision.hosts.extend(self.default_hosts());
                SupervisionOrder {
                    hosts: names(&supervision.hosts),
                    services: names(&supervision.services),
                    registry: supervision.registry.join(running.session_id.as_str()),
                    is_network_closed: supervision.network == NetworkAccess::Closed,
                    guarded: supervision.guarded.names,
                    released: supervision.guarded.released,
                }
            }),
            allowed,
        }
    }

    /// Records how a line ended in the sandbox.
    pub fn conclude_line(
        &self,
        line: OrderedLine,
        report: LineReport,
    ) -> Result<PerformedLine, ControlError> {
        let OrderedLine { running, beside } = line;
        let end = match report.error {
            Some(error) => Err(std::io::Error::other(error)),
            None => {
                let observation = report.seen.map(SeenReport::into_observation);
                let record = match &observation {
                    Some(seen) => self.reach_record(
                        &running.session_id,
                        seen,
                        &beside,
                        &mut std::collections::BTreeMap::new(),
                    ),
                    None => super::ReachRecord::default(),
                };
                let shared = safepoint_state::git::linked_places(&self.workspace.root, &[]);
                let wrote_shared = match &observation {
                    Some(seen) => written_within(&shared, seen),
                    None => Vec::new(),
                };
                Ok(SupervisedEnd {
                    wrote_shared,
                    ended: Ended::ByItself,
                    status: ExitStatus::from_raw(i32::from(report.code) << 8),
                    is_fenced: report.is_fenced,
                    observation,
                    record,
                    supervisor: None,
                })
            }
        };
        self.end_line(running, end, Path::new("bash"))
    }

    /// Records that nobody told how a line ended in the sandbox.
    pub fn lose_line(&self, line: OrderedLine) -> Result<(), ControlError> {
        self.record_unknown(line.running)
    }
}

impl LineReport {
    /// Why it could not be started, if it could not.
    pub fn why(&self) -> Option<&str> {
        self.error.as_deref()
    }
}

impl LineOrder {
    /// Runs the line as it was ordered.
    pub fn carry_out(self, line: &ShellLine<'_>) -> LineReport {
        let report = self.try_carry_out(line);
        report.unwrap_or_else(|error| LineReport {
            code: 126,
            is_fenced: false,
            seen: None,
            error: Some(error.to_string()),
        })
    }

    fn try_carry_out(self, line: &ShellLine<'_>) -> std::io::Result<LineReport> {
        let mut command = shell_command(line, &self.session, Some(&self.action), None);
        let stop = Stop::listen()?;
        let Some(order) = self.fence else {
            let (_, status) = wait(&mut command.spawn()?, Capture::Inherit, None, &stop)?;
            return Ok(LineReport {
                code: ended_code(status),
                is_fenced: false,
                seen: None,
                error: None,
            });
        };
        let gate = OrderedGate {
            allowed: order.allowed.clone(),
        };
        let fence = order.into_fence()?;
        let mut started = match fence.spawn_asking(command, Arc::new(gate)) {
            Ok(started) => started,
            Err(FenceError::Start { source, .. }) => return Err(source),
            Err(error) => return Err(std::io::Error::other(error)),
        };
        let (_, status) = wait(&mut started.child, Capture::Inherit, None, &stop)?;
        let seen = started.supervisor.as_ref().map(|it| it.observe());
        Ok(LineReport {
            code: ended_code(status),
            is_fenced: true,
            seen: seen.map(|seen| SeenReport::of(&seen)),
            error: None,
        })
    }
}

impl FenceOrder {
    fn into_fence(self) -> std::io::Result<Fence> {
        // Without Landlock nothing would hold it.
        if let safepoint_fence::Strength::None(why) = safepoint_fence::strength() {
            return Err(std::io::Error::other(why));
        }
        let rules = |names: Vec<String>| -> std::io::Result<Vec<HostRule>> {
            let rules = names.iter().map(|name| name.parse());
            let rules: Result<Vec<HostRule>, _> = rules.collect();
            rules.map_err(std::io::Error::other)
        };
        let supervision = match self.supervision {
            None => None,
            Some(order) => Some(Supervision {
                hosts: rules(order.hosts)?,
                services: rules(order.services)?,
                sockets: Vec::new(),
                registry: order.registry,
                freezer: None,
                journal: None,
                guarded: GuardedNames {
                    names: order.guarded,
                    released: order.released,
                },
                network: match order.is_network_closed {
                    true => NetworkAccess::Closed,
                    false => NetworkAccess::Open,
                },
            }),
        };
        Ok(Fence {
            writable: self.writable,
            exact: self.exact,
            hidden: self.hidden,
            listing: match self.lists_everywhere {
                true => Listing::Everywhere,
                false => Listing::NotOnTheWay,
            },
            terminals: Terminals::Held,
            supervision,
            // The client's sandbox says what may be written there.
            caches: Caches::None,
        })
    }
}

/// Answers the supervisor of an ordered line: nothing is opened that the order does not name.
#[derive(Debug)]
struct OrderedGate {
    allowed: AllowedPaths,
}

impl Gate for OrderedGate {
    fn admit(&self, _: &Refusal) -> bool {
        false
    }

    fn write_access(&self, path: &Path) -> WriteAccess {
        match self.allowed.include(path) {
            true => WriteAccess::Supervisor,
            false => WriteAccess::Kernel,
        }
    }
}

impl SeenReport {
    fn of(seen: &Observation) -> Self {
        let mut is_complete = seen.written.is_complete;
        let mut named = |paths: &std::collections::BTreeSet<PathBuf>| -> Vec<String> {
            let names: Vec<String> = paths
                .iter()
                .filter_map(|path| path.to_str().map(str::to_owned))
                .collect();
            is_complete &= names.len() == paths.len();
            names
        };
        let (paths, trees) = (named(&seen.written.paths), named(&seen.written.trees));
        let text = |path: &PathBuf| path.display().to_string();
        let refused = seen.refused.iter().map(|refusal| match refusal {
            Refusal::Host(host) => RefusalReport::Host(host.clone()),
            Refusal::Socket(path) => RefusalReport::Socket(text(path)),
            Refusal::Outside(path) => RefusalReport::Outside(text(path)),
            Refusal::Call(name) => RefusalReport::Call(name.clone()),
        });
        Self {
            hosts: seen.hosts.iter().cloned().collect(),
            sockets: seen.sockets.iter().map(text).collect(),
            refused: refused.collect(),
            paths,
            trees,
            is_complete,
        }
    }

    /// What was told is believed in as far as it has a form that a supervisor tells.
    fn into_observation(self) -> Observation {
        let mut is_complete = self.is_complete;
        let mut plain = |names: Vec<String>| {
            let count = names.len();
            let paths = names.into_iter().map(PathBuf::from);
            let paths: std::collections::BTreeSet<PathBuf> =
                paths.filter(|path| is_plain(path)).collect();
            is_complete &= paths.len() == count;
            paths
        };
        let (paths, trees) = (plain(self.paths), plain(self.trees));
        let refused = self.refused.into_iter().filter_map(|refusal| {
            let path = |name: String| Some(PathBuf::from(name)).filter(|path| is_plain(path));
            Some(match refusal {
                RefusalReport::Host(host) => Refusal::Host(host),
                RefusalReport::Socket(name) => Refusal::Socket(name.into()),
                RefusalReport::Outside(name) => Refusal::Outside(path(name)?),
                RefusalReport::Call(name) => Refusal::Call(name),
            })
        });
        Observation {
            refused: refused.collect(),
            hosts: self.hosts.into_iter().collect(),
            sockets: self.sockets.into_iter().map(PathBuf::from).collect(),
            written: Writes {
                paths,
                trees,
                is_complete,
            },
        }
    }
}

/// Whether a path is absolute and goes nowhere but down.
fn is_plain(path: &Path) -> bool {
    let mut parts = path.components();
    parts.next() == Some(Component::RootDir)
        && parts.all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fe_06_what_a_sandbox_tells_is_told_back_or_incomplete() {
        let seen = Observation {
            hosts: ["example.org:443".to_owned()].into(),
            sockets: ["/run/x".into()].into(),
            refused: [
                Refusal::Outside("/etc/x".into()),
                Refusal::Host("a:1".into()),
            ]
            .into(),
            written: Writes {
                paths: ["/w/a".into(), "/w/b c".into()].into(),
                trees: ["/w/t".into()].into(),
                is_complete: true,
            },
        };
        assert_eq!(SeenReport::of(&seen).into_observation(), seen);
        for path in ["/w/../etc/passwd", "relative", "", "/"] {
            let report = SeenReport {
                paths: vec![path.to_owned()],
                refused: vec![RefusalReport::Outside(path.to_owned())],
                is_complete: true,
                ..SeenReport::default()
            };
            let seen = report.into_observation();
            let is_root = path == "/";
            assert_eq!(seen.written.is_complete, is_root, "{path}");
            assert_eq!(seen.refused.is_empty(), !is_root, "{path}");
        }
    }
}
