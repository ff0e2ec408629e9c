//! Where the paths of an envelope lead. An operator's are looked at when the operator names them,
//! a workflow's when it is read, and both again before a program is let through to them: what is
//! behind the same name by then was not what anybody meant.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use safepoint_authority::{Denial, DenialCode, Envelope, Identity};
use safepoint_model::ActionId;
use serde::{Deserialize, Serialize};

use super::Bench;
use super::asked::Wants;
use super::documents::Standing;
use super::see::Form;
use super::settle::denial;

/// Changes with every start of a machine.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// Where a path of an envelope led when an operator said yes to it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvelopePlace {
    /// The path with no links in it.
    resolved: String,
    /// What was there.
    identity: Option<Identity>,
    /// The start of the machine whose numbers those are: they mean nothing on another machine,
    /// nor after the next start.
    boot: String,
}

/// The places of an envelope, by its own paths.
pub(crate) fn of_envelope(envelope: &Envelope) -> BTreeMap<String, EnvelopePlace> {
    let paths = envelope.paths.iter();
    paths.map(|path| (path.clone(), seen(path))).collect()
}

fn seen(path: &str) -> EnvelopePlace {
    let resolved = resolve(Path::new(path)).and_then(|found| found.to_str().map(str::to_owned));
    // What cannot be looked at stays as it is named. Whatever leads elsewhere is refused later.
    let resolved = resolved.unwrap_or_else(|| path.to_owned());
    EnvelopePlace {
        identity: identity(Path::new(&resolved)),
        resolved,
        boot: boot(),
    }
}

/// The places that an operator has approved, as paths with no links in them; or the path that
/// leads to something else now.
pub(super) fn approved(
    envelope: &Envelope,
    known: &BTreeMap<String, EnvelopePlace>,
) -> Result<BTreeSet<String>, String> {
    let boot = boot();
    let one = |path: &String| {
        let Some(then) = known.get(path) else {
            return unlinked(path);
        };
        let now = resolve(Path::new(path));
        let other_place = now.as_deref() != Some(Path::new(&then.resolved));
        let is_there = identity(Path::new(&then.resolved));
        let other_file = match (&then.identity, is_there) {
            (Some(then_there), Some(now_there)) if then.boot == boot => *then_there != now_there,
            _ => false,
        };
        match other_place || other_file {
            true => Err(path.clone()),
            false => Ok(then.resolved.clone()),
        }
    };
    envelope.paths.iter().map(one).collect()
}

/// The paths that a workflow keeps to, as long as they lie in the directory `root` and no link is
/// on the way to them; or the one that leads elsewhere.
pub(super) fn inside(paths: &BTreeSet<String>, root: &str) -> Result<BTreeSet<String>, String> {
    let one = |path: &String| match Path::new(path).starts_with(root) {
        true => unlinked(path),
        false => Err(path.clone()),
    };
    paths.iter().map(one).collect()
}

/// The path, if no link is on the way to it; itself as the error, if one is.
pub(super) fn unlinked(path: &str) -> Result<String, String> {
    match resolve(Path::new(path)).as_deref() == Some(Path::new(path)) {
        true => Ok(path.to_owned()),
        false => Err(path.to_owned()),
    }
}

/// A path with no links in it. What is not there yet is taken as it is named, but for a link that
/// leads nowhere yet.
pub(crate) fn resolve(path: &Path) -> Option<PathBuf> {
    let mut missing: Vec<OsString> = Vec::new();
    let mut present = path;
    loop {
        match std::fs::canonicalize(present) {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Some(found);
            }
            Err(_) if present.symlink_metadata().is_ok() => return None,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                missing.push(present.file_name()?.to_owned());
                present = present.parent()?;
            }
            Err(_) => return None,
        }
    }
}

fn identity(path: &Path) -> Option<Identity> {
    let found = path.symlink_metadata().ok()?;
    Some(Identity {
        device: found.dev(),
        inode: found.ino(),
    })
}

fn boot() -> String {
    let text = std::fs::read_to_string(BOOT_ID).unwrap_or_default();
    text.trim_end().to_owned()
}

impl Bench<'_> {
    /// The paths that a workflow says it keeps to; or the one that leads out of the workspace, or
    /// over a link. What a step writes that runs nothing unknown is compared by name.
    pub(super) fn bounds_of(
        &self,
        wants: &Wants,
        form: &Form,
    ) -> Result<Option<BTreeSet<String>>, String> {
        let Some(bounds) = &wants.bounds else {
            return Ok(None);
        };
        // Another machine looks at its paths itself, before it makes the fence.
        match (form.canonical.runs_anything(), &self.site) {
            (true, None) => inside(&bounds.paths, &self.root).map(Some),
            (true, Some(_)) => {
                let outside = |path: &&String| !Path::new(path).starts_with(&self.root);
                match bounds.paths.iter().find(outside) {
                    None => Ok(Some(bounds.paths.clone())),
                    Some(path) => Err(path.clone()),
                }
            }
            (false, _) => Ok(Some(bounds.paths.clone())),
        }
    }

    /// The places that the envelope of a session names; or the one that leads to something else
    /// than was approved.
    pub(super) fn approved_places(
        &self,
        form: &Form,
        standing: &Standing,
        envelope: &Envelope,
    ) -> Result<BTreeSet<String>, String> {
        match (form.canonical.runs_anything(), &self.site) {
            (true, None) => approved(envelope, &standing.places),
            _ => Ok(envelope.paths.clone()),
        }
    }
}

/// What is denied because a path leads elsewhere by now.
pub(super) fn leads_elsewhere(form: &Form, action: &ActionId, path: &str, whose: &str) -> Denial {
    let code = DenialCode::PathIdentityChanged;
    Denial {
        reason: format!("{}: `{path}`, which {whose} names", code.meaning()),
        next: "nothing was run; ask again, and it will be put before an operator anew".to_owned(),
        ..denial(code, form, action)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make files")]
mod tests {
    use super::*;

    #[test]
    fn au_23_a_place_behind_the_same_name_is_another_one() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        let (src, victim) = (root.join("src"), root.join("victim"));
        std::fs::create_dir(&src).unwrap();
        std::fs::create_dir(&victim).unwrap();
        let path = src.to_str().unwrap().to_owned();
        let envelope = Envelope {
            actions: BTreeSet::from(["file.*".to_owned()]),
            paths: BTreeSet::from([path.clone()]),
            side_effects: BTreeSet::new(),
            hosts: BTreeSet::new(),
            uses: None,
            expires_at: None,
        };
        let known = of_envelope(&envelope);
        let good = Ok(BTreeSet::from([path.clone()]));
        assert_eq!(approved(&envelope, &known), good);
        std::fs::rename(&src, root.join("away")).unwrap();
        assert_eq!(approved(&envelope, &known), good, "it is not there");
        std::os::unix::fs::symlink(&victim, &src).unwrap();
        assert_eq!(approved(&envelope, &known), Err(path.clone()));
        assert_eq!(approved(&envelope, &BTreeMap::new()), Err(path.clone()));
        let text = root.to_str().unwrap();
        assert_eq!(inside(&envelope.paths, text), Err(path.clone()));
        std::fs::remove_file(&src).unwrap();
        assert_eq!(inside(&envelope.paths, text), good);
        std::fs::rename(&victim, &src).unwrap();
        assert_eq!(approved(&envelope, &known), Err(path), "another directory");
        let outside = BTreeSet::from(["/".to_owned()]);
        assert_eq!(inside(&outside, text), Err("/".to_owned()));
    }
}
