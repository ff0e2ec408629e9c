//! What of an action could be taken back: from the checkpoint that was actually made.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use safepoint_authority::{Coverage, Deed, NamedPath, Reversibility, SideEffect, Undo};
use safepoint_gates::Condition;
use safepoint_state::mutate::Covering;
use safepoint_state::scope::{Cover as Reach, Scope};
use safepoint_state::{Foreseen, Note, Snapshot};

use super::effect::MeasuredEffect;
use super::scratch::SCRATCH;

/// Whether what is started can write outside the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fenced {
    /// It cannot: the kernel keeps it in.
    Yes,
    /// It can.
    No,
}

/// Where a fence lets a program write besides the workspace. It is told, and changes nothing
/// in how an action is judged: nobody keeps work there.
const BESIDE: &str = "what it writes in temporary folders and in the caches of build tools";

/// How much of one deed could be taken back.
#[derive(Clone, Debug)]
pub(crate) struct Cover {
    pub(crate) reversibility: Reversibility,
    /// What could not.
    pub(crate) remainder: BTreeSet<String>,
}

impl Cover {
    /// Adds what else it does.
    pub(super) fn add(&mut self, effect: &MeasuredEffect) {
        self.reversibility = self.reversibility.max(effect.reversibility);
        self.remainder.extend(effect.remainder.iter().cloned());
    }
}

/// What a checkpoint gives back.
pub(crate) enum Net<'a> {
    /// This one.
    Made(&'a Snapshot),
    /// The one that a change is made under.
    Given(&'a Covering),
    /// One that would be made now.
    Foreseen(&'a Foreseen),
    /// One that nobody has looked at yet.
    Expected,
}

impl<'a> Net<'a> {
    /// The checkpoint that was made, or none that is known of yet.
    pub(crate) fn of(before: Option<&'a Snapshot>, covering: Option<&'a Covering>) -> Self {
        match (before, covering) {
            (Some(before), _) => Self::Made(before),
            (None, Some(covering)) => Self::Given(covering),
            (None, None) => Self::Expected,
        }
    }

    /// The checkpoint, if it was made.
    pub(crate) fn snapshot(&self) -> Option<&'a Snapshot> {
        match self {
            Self::Made(snapshot) => Some(snapshot),
            Self::Given(covering) => Some(&covering.checkpoint),
            Self::Foreseen(_) | Self::Expected => None,
        }
    }

    /// What is not in it.
    pub(crate) fn not_covered(&self) -> Vec<Note> {
        match self {
            // What it holds encrypted it gives back.
            Self::Made(snapshot) => snapshot.record.not_covered(),
            Self::Given(covering) => covering.not_covered.clone(),
            Self::Foreseen(foreseen) => foreseen.not_covered.clone(),
            Self::Expected => Vec::new(),
        }
    }

    fn has_git(&self) -> bool {
        match self {
            Self::Made(snapshot) => snapshot.record.git.is_some(),
            Self::Given(covering) => covering.checkpoint.record.git.is_some(),
            Self::Foreseen(foreseen) => foreseen.has_git,
            Self::Expected => true,
        }
    }
}

/// What no checkpoint gives back.
pub(crate) struct Holes {
    /// What it is of, where that is not everything.
    pub(crate) scope: Option<Scope>,
    /// What is not in it.
    pub(crate) notes: Vec<Note>,
    /// What of that git would overwrite.
    pub(crate) overwritten: Vec<Note>,
    pub(crate) has_git: bool,
}

impl Holes {
    pub(crate) fn of(net: &Net<'_>, overwritten: Vec<Note>) -> Self {
        Self {
            scope: match net {
                Net::Given(covering) => Some(covering.scope.clone()),
                Net::Made(_) | Net::Foreseen(_) | Net::Expected => None,
            },
            notes: net.not_covered(),
            overwritten,
            has_git: net.has_git(),
        }
    }

    /// Why something in the workspace is not in it.
    pub(crate) fn misses(&self, workspace: &Path, path: &str, below: bool) -> Option<String> {
        let relative = Path::new(path).strip_prefix(workspace).ok()?;
        let missed = self.notes.iter().find(|note| {
            let noted = Path::new(&note.path);
            relative.starts_with(noted) || (below && noted.starts_with(relative))
        });
        if let Some(note) = missed {
            return Some(said(note));
        }
        let scope = self.scope.as_ref()?;
        match scope.cover(relative.as_os_str().as_bytes()) {
            Reach::Everything => None,
            Reach::Nothing | Reach::Part => Some(match relative.as_os_str().is_empty() {
                true => "what is not in the scope of the checkpoint".to_owned(),
                false => format!(
                    "`{}` is not in the scope of the checkpoint",
                    relative.display()
                ),
            }),
        }
    }
}

fn said(note: &Note) -> String {
    format!("`{}` is not in the checkpoint: {}", note.path, note.why)
}

/// How much of a deed could be taken back.
pub(crate) fn of(
    deed: &Deed,
    named: &[NamedPath],
    net: &Holes,
    workspace: &Path,
    fenced: Fenced,
) -> Cover {
    let some = |remainder: BTreeSet<String>| Cover {
        reversibility: match remainder.is_empty() {
            true => Reversibility::Reversible,
            false => Reversibility::Partly,
        },
        remainder,
    };
    match &deed.undo {
        Undo::NotNeeded => some(BTreeSet::new()),
        Undo::Touched => touched(named, net, workspace),
        Undo::Workspace => {
            let mut remainder = BTreeSet::new();
            if deed.action.starts_with("git.") {
                if !net.has_git {
                    remainder
                        .insert("the git state, which is kept outside the workspace".to_owned());
                }
            } else {
                let missed = net.misses(workspace, &workspace.to_string_lossy(), true);
                remainder.extend(missed);
                if fenced == Fenced::No {
                    remainder.insert("what it changes outside the workspace".to_owned());
                }
            }
            let outside = touched(named, net, workspace);
            remainder.extend(outside.remainder);
            // What git puts something else in the place of is gone, as if it were removed.
            if deed.action.starts_with("git.") && !net.overwritten.is_empty() {
                remainder.extend(net.overwritten.iter().map(said));
                return Cover {
                    reversibility: Reversibility::Irreversible,
                    remainder,
                };
            }
            some(remainder)
        }
        Undo::Partly(rest) => some(BTreeSet::from([rest.clone()])),
        Undo::Never(why) => Cover {
            reversibility: Reversibility::Irreversible,
            remainder: BTreeSet::from([format!("{}: {why}", deed.action)]),
        },
        Undo::Unknown => Cover {
            reversibility: Reversibility::Unknown,
            remainder: BTreeSet::from([format!("nobody knows what it does: {}", deed.because)]),
        },
    }
}

fn touched(named: &[NamedPath], net: &Holes, workspace: &Path) -> Cover {
    let mut remainder = BTreeSet::new();
    let (mut lost, mut kept) = (0, 0);
    for path in named.iter().filter(|it| is_change(&it.role)) {
        let is_unknown = path.preimage == safepoint_authority::Preimage::Unknown {};
        let why = match (path.inside, is_unknown) {
            (_, true) if path.path.starts_with('/') => Some(format!(
                "`{}` cannot be looked at, and may be anything",
                path.path
            )),
            (_, true) => Some(format!("`{}` may be anything", path.path)),
            (false, _) => Some(format!("`{}` is outside the workspace", path.path)),
            (true, _) => net.misses(workspace, &path.path, true),
        };
        match why {
            Some(why) => {
                lost += 1;
                remainder.insert(why);
            }
            None => kept += 1,
        }
    }
    let reversibility = match (lost, kept) {
        (0, _) => Reversibility::Reversible,
        (_, 0) => Reversibility::Irreversible,
        _ => Reversibility::Partly,
    };
    Cover {
        reversibility,
        remainder,
    }
}

/// Whether something is changed by being touched so.
pub(crate) fn is_change(role: &str) -> bool {
    matches!(role, "write" | "delete" | "metadata")
}

/// All of it together: as bad as the worst.
pub(crate) fn together(covers: &[Cover]) -> Cover {
    let worst = covers.iter().map(|cover| cover.reversibility).max();
    Cover {
        reversibility: worst.unwrap_or(Reversibility::Reversible),
        remainder: covers.iter().flat_map(|it| it.remainder.clone()).collect(),
    }
}

/// The same, for what runs in a linked work tree. The fence lets it write the repository that the
/// work tree shares, whose objects no checkpoint here holds. It is told, and changes nothing in
/// how an action is judged: git needs it for every commit.
pub(crate) fn with_shared_repository(
    mut total: Cover,
    deeds: &[Deed],
    workspace: &Path,
    fenced: Fenced,
) -> Cover {
    if fenced == Fenced::No || !deeds.iter().any(runs_anything) {
        return total;
    }
    for place in safepoint_state::git::linked_places(workspace, &[]) {
        total.reversibility = total.reversibility.max(Reversibility::Partly);
        total.remainder.insert(shared_objects(&place));
    }
    total
}

/// What no checkpoint of a linked work tree holds of the repository at this place.
pub(super) fn shared_objects(repository: &Path) -> String {
    let place = safepoint_state::path::display(repository.as_os_str().as_bytes());
    format!(
        "objects of the repository at `{place}`, which this work tree shares, and what it keeps for other work trees"
    )
}

/// What is known of a deed, for policies.
pub(crate) fn conditions(
    deed: &Deed,
    cover: &Cover,
    trusted: bool,
    fenced: Fenced,
) -> BTreeSet<Condition> {
    let mut known = BTreeSet::new();
    match cover.reversibility {
        Reversibility::Reversible => known.insert(Condition::FullyReversible),
        // Without a fence the remainder is everything outside the workspace: that is no part.
        Reversibility::Partly if fenced == Fenced::Yes || deed.undo == Undo::Touched => {
            known.insert(Condition::PartlyReversible)
        }
        Reversibility::Partly => false,
        Reversibility::Irreversible | Reversibility::Unknown => false,
    };
    let local = |host: &String| {
        let name = host
            .rsplit_once(':')
            .map_or(host.as_str(), |(name, _)| name);
        let name = name.trim_start_matches('[').trim_end_matches(']');
        matches!(name, "localhost" | "127.0.0.1" | "::1" | "0.0.0.0") || host == "::1"
    };
    let talks = deed.effects.contains(&SideEffect::Network);
    if talks && !deed.hosts.is_empty() && deed.hosts.iter().all(local) {
        known.insert(Condition::LocalHosts);
    }
    if trusted {
        known.insert(Condition::Trusted);
    }
    known
}

/// Whether a deed writes wherever the fence lets it.
pub(crate) fn runs_anything(deed: &Deed) -> bool {
    deed.undo == Undo::Workspace && !deed.action.starts_with("git.")
}

/// What an approver is told.
pub(crate) fn told(
    before: Option<&Snapshot>,
    named: &[NamedPath],
    (total, holes): (&Cover, &Holes),
    workspace: &Path,
    deeds: &[Deed],
    fenced: Fenced,
) -> Coverage {
    let covered = named
        .iter()
        .filter(|path| path.inside && is_change(&path.role))
        // What is told as not covered is not told as covered too.
        .filter(|path| holes.misses(workspace, &path.path, true).is_none())
        .map(|path| path.path.clone());
    let is_scratch = named.iter().any(|path| path.role == SCRATCH);
    Coverage {
        checkpoint_id: before.map(|snapshot| snapshot.id.to_string()),
        covered: match before {
            Some(_) => covered.collect(),
            None => Vec::new(),
        },
        not_covered: match is_scratch || fenced == Fenced::Yes && deeds.iter().any(runs_anything) {
            // Without a fence it has been said that all outside is lost.
            true => total
                .remainder
                .iter()
                .cloned()
                .chain([BESIDE.to_owned()])
                .collect(),
            false => total.remainder.iter().cloned().collect(),
        },
    }
}
