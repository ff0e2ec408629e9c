//! Where what was let through may write: the fence around it, and how an envelope narrows that.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Child, Command};

use safepoint_authority::DenialCode;
use safepoint_fence::{Fence, FenceError, Strength, Terminals, strength};

use super::{Capture, Leave, Passage, places};

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

    /// What a person approved, or a steward allowed by a policy, runs as it would for them;
    /// everything else inside the fence; and what an envelope let through, inside its paths.
    pub(super) fn spawn(
        &self,
        mut command: Command,
        leave: &Leave,
        capture: Capture,
    ) -> std::io::Result<Child> {
        let within = leave.fenced_within();
        if within.is_some() {
            self.refuse_unfenced()?;
        }
        match &self.fence {
            Some(fence) if leave.permit.is_none() && (!leave.by_policy || within.is_some()) => {
                let mut fence = fence.clone();
                if let Some(paths) = within {
                    self.narrow(&mut fence, paths)?;
                }
                // What an envelope lets it write outside.
                fence.writable.extend(leave.outside());
                // Whoever calls us from inside is told why that does not work.
                command.env("SAFEPOINT_FENCED", "1");
                // Its streams are pipes: no terminal is any of its business.
                if capture == Capture::Keep {
                    fence.terminals = Terminals::None;
                }
                match fence.spawn(command) {
                    Ok(started) => Ok(started.child),
                    Err(FenceError::Start { source, .. }) => Err(source),
                    Err(error) => Err(std::io::Error::other(error)),
                }
            }
            _ => command.spawn(),
        }
    }
}

impl Leave {
    /// The paths that a program which may write anywhere is kept to. What known commands write
    /// was compared with the envelope by name.
    fn fenced_within(&self) -> Option<&BTreeSet<String>> {
        let within = self.within.as_ref().filter(|_| self.permit.is_none());
        within.filter(|_| self.canonical.runs_anything())
    }

    /// Places outside the workspace that it may change.
    fn outside(&self) -> impl Iterator<Item = PathBuf> {
        let paths = self.canonical.paths.iter();
        paths
            .filter(|path| {
                !path.inside && matches!(path.role.as_str(), "write" | "delete" | "metadata")
            })
            .map(|path| PathBuf::from(&path.path))
            // What is not there yet is made in its directory.
            .map(
                |path| match (path.symlink_metadata().is_ok(), path.parent()) {
                    (false, Some(parent)) => parent.to_owned(),
                    _ => path,
                },
            )
    }
}
