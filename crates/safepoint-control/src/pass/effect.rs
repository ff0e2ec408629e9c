//! What an action did, from what was seen of it: whether it can be taken back, and what cannot.
//!
//! One place says so, for what may happen and for what did: the approver, the policy, the log
//! and the exports read what is computed here. Words count only where nothing was seen.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use safepoint_authority::{OutsideKind, OutsideTarget, Reversibility};
use safepoint_fence::{HostRule, Observation};
use safepoint_model::ActionId;
use serde::{Deserialize, Serialize};

use super::cover::{Cover, Holes, shared_objects};
use super::documents::Running;
use super::supervise::ReachRecord;
use crate::{Control, ControlError, kept};

/// Whether something may happen, or did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// It may.
    Before,
    /// It did.
    After,
}

/// Whether an action can be taken back, as it turned out.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredEffect {
    /// Whether it can be taken back.
    pub reversibility: Reversibility,
    /// What cannot.
    pub remainder: BTreeSet<String>,
}

impl MeasuredEffect {
    fn none() -> Self {
        Self {
            reversibility: Reversibility::Reversible,
            remainder: BTreeSet::new(),
        }
    }

    fn add(&mut self, reversibility: Reversibility, remainder: String) {
        self.reversibility = self.reversibility.max(reversibility);
        self.remainder.insert(remainder);
    }

    /// Adds repositories in which something was written that no checkpoint holds all of.
    pub(super) fn add_shared(&mut self, repositories: &[PathBuf]) {
        for repository in repositories {
            self.add(Reversibility::Partly, shared_objects(repository));
        }
    }

    fn join(&mut self, cover: Cover) {
        self.reversibility = self.reversibility.max(cover.reversibility);
        self.remainder.extend(cover.remainder);
    }
}

/// What reaching a target outside the fence means. A machine takes what it is sent; a service of
/// this machine or of a private network, and whatever listens at a socket, may do anything.
pub(super) fn of_target(target: &OutsideTarget, services: &[HostRule], moment: Moment) -> Cover {
    let (reversibility, remainder) = match target.kind {
        OutsideKind::Host => of_host(&target.name, services, moment),
        OutsideKind::Socket => (
            Reversibility::Irreversible,
            match moment {
                Moment::Before => format!("what it asks for through the socket {}", target.name),
                Moment::After => format!("what it asked for through the socket {}", target.name),
            },
        ),
        OutsideKind::File => (
            Reversibility::Irreversible,
            format!("`{}` is outside the workspace", target.name),
        ),
    };
    Cover {
        reversibility,
        remainder: BTreeSet::from([remainder]),
    }
}

fn of_host(name: &str, services: &[HostRule], moment: Moment) -> (Reversibility, String) {
    // What cannot be read as a machine is no machine that anybody has named.
    let rule = name.parse::<HostRule>().ok();
    let is_service = rule.is_none_or(|rule| {
        !rule.is_public() || services.iter().any(|service| service.includes(&rule))
    });
    match (is_service, moment) {
        (false, Moment::Before) => (Reversibility::Partly, format!("may send data to {name}")),
        (false, Moment::After) => (
            Reversibility::Partly,
            format!("may have sent data to {name}"),
        ),
        (true, Moment::Before) => (
            Reversibility::Irreversible,
            format!("what it does to the service at {name}, of which there is no checkpoint"),
        ),
        (true, Moment::After) => (
            Reversibility::Irreversible,
            format!("what it did to the service at {name}, of which there is no checkpoint"),
        ),
    }
}

/// What the fence lets a program reach, all together.
pub(super) fn of_targets<'a>(
    targets: impl IntoIterator<Item = &'a OutsideTarget>,
    services: &[HostRule],
    moment: Moment,
) -> MeasuredEffect {
    let mut all = MeasuredEffect::none();
    for target in targets {
        all.join(of_target(target, services, moment));
    }
    all
}

/// What an action did: what it reached outside, and what it wrote in the workspace that no
/// checkpoint holds.
pub(super) fn measure(
    record: &ReachRecord,
    seen: &Observation,
    services: &[HostRule],
    holes: Option<&Holes>,
    workspace: &Path,
) -> MeasuredEffect {
    let mut effect = of_targets(&record.reached.targets(), services, Moment::After);
    if let more @ 1.. = record.reached.more_outside {
        effect.add(
            Reversibility::Irreversible,
            format!("{more} more files outside the workspace"),
        );
    }
    if let Some(holes) = holes {
        let written = seen.written.paths.iter().map(|path| (path, false));
        let written = written.chain(seen.written.trees.iter().map(|path| (path, true)));
        for (path, below) in written.filter(|(path, _)| path.starts_with(workspace)) {
            let missed = holes.misses(workspace, &path.to_string_lossy(), below);
            if let Some(why) = missed {
                effect.add(Reversibility::Partly, why);
            }
        }
        // Nobody can say what it wrote, so it may have been anything that is left out.
        if !seen.written.is_complete
            && let Some(why) = holes.misses(workspace, &workspace.to_string_lossy(), true)
        {
            effect.add(Reversibility::Partly, why);
        }
    }
    effect
}

/// What is known of an action that came to its end: what it reached, what it was refused, and
/// whether it can be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionEffect {
    /// What it reached outside, and what it was refused.
    pub record: ReachRecord,
    /// Whether it can be taken back. None for actions from before that was kept.
    pub measured: Option<MeasuredEffect>,
}

impl Control {
    /// What is known of the effect of an action, if it passed here.
    pub fn effect_of(&self, action: &ActionId) -> Result<Option<ActionEffect>, ControlError> {
        let store = self.trail.store();
        let running: Option<Running> = store.read(|sql| kept::get(sql, action.as_str()))?;
        Ok(running.map(|running| ActionEffect {
            record: running.reach,
            measured: running.effect,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, services: &[&str]) -> (Reversibility, String) {
        let services: Vec<HostRule> = services.iter().map(|it| it.parse().unwrap()).collect();
        let target = OutsideTarget {
            kind: OutsideKind::Host,
            name: name.to_owned(),
        };
        let cover = of_target(&target, &services, Moment::After);
        (cover.reversibility, cover.remainder.into_iter().collect())
    }

    #[test]
    fn fe_30_hosts_take_data_and_services_may_do_anything() {
        let sent = |name: &str| {
            (
                Reversibility::Partly,
                format!("may have sent data to {name}"),
            )
        };
        assert_eq!(host("example.org:443", &[]), sent("example.org:443"));
        assert_eq!(host("93.184.215.14:80", &[]), sent("93.184.215.14:80"));
        for (name, services) in [
            ("127.0.0.1:5432", &[] as &[&str]),
            ("localhost:5432", &[]),
            ("10.0.0.7:6379", &[]),
            ("db.example.org:5432", &["db.example.org:5432"]),
            ("db.example.org:5432", &["*.example.org:*"]),
        ] {
            assert_eq!(
                host(name, services).0,
                Reversibility::Irreversible,
                "{name}"
            );
        }
    }
}
