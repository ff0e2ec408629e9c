//! The programs that Safepoint runs for itself: git, and the clients of databases.
//!
//! They run outside the fence of the agent, so none is taken from a place in which an agent can
//! write: a workspace, a temporary folder, a cache. An activated `.venv/bin`, or
//! `node_modules/.bin`, is such a place, and is on many a `PATH`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::git::Git;
use crate::snapshot;
use crate::{State, StateError};

const GIT: &str = "git";

impl State {
    /// The same, with the programs on the path of `search_path` that no agent can have written.
    /// Agents write in `agent_places`, and in every directory of which there are checkpoints.
    pub fn with_programs(
        mut self,
        search_path: &OsStr,
        mut agent_places: Vec<PathBuf>,
    ) -> Result<Self, StateError> {
        agent_places.extend(self.trail.store().read(snapshot::workspaces)?);
        let trusted = trusted_path(search_path, &agent_places);
        self.around.git = Git::find(Some(&trusted), self.around.variables.clone());
        self.around.program_path = Some(trusted);
        Ok(self)
    }

    /// The git that is run, if there is one.
    pub fn git(&self) -> Option<&Git> {
        self.around.git.as_ref()
    }
}

/// The entries of a search path in which no agent can change a program that is run for us.
fn trusted_path(search_path: &OsStr, agent_places: &[PathBuf]) -> OsString {
    let places: Vec<PathBuf> = agent_places
        .iter()
        .map(|place| std::fs::canonicalize(place).unwrap_or_else(|_| place.clone()))
        .collect();
    let is_agents = |path: &Path| places.iter().any(|place| path.starts_with(place));
    let is_trusted = |entry: &PathBuf| {
        // Relative entries would let a work tree bring its own programs.
        let Some(entry) = std::fs::canonicalize(entry)
            .ok()
            .filter(|_| entry.is_absolute())
        else {
            return false;
        };
        // A name there may be a link to such a place.
        let mut names = safepoint_database::PROGRAMS.iter().chain([&GIT]);
        !is_agents(&entry)
            && names.all(|name| {
                std::fs::canonicalize(entry.join(name)).map_or(true, |program| !is_agents(&program))
            })
    };
    let entries = std::env::split_paths(search_path).filter(is_trusted);
    // What was an entry of a search path is one again.
    std::env::join_paths(entries).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![expect(
        clippy::disallowed_methods,
        reason = "the directories of a search path"
    )]

    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn fe_04_no_program_of_ours_comes_from_where_an_agent_writes() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let place = |name: &str| {
            let path = top.join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let (project, user) = (place("project"), place("user/bin"));
        let (inside, linked) = (place("project/.venv/bin"), place("linked/bin"));
        fs::write(inside.join("git"), "").unwrap();
        fs::write(user.join("git"), "").unwrap();
        symlink(inside.join("git"), linked.join("git")).unwrap();
        symlink(&inside, top.join("other-name")).unwrap();
        let entries = [
            inside.clone(),
            top.join("other-name"),
            linked.clone(),
            PathBuf::from("relative"),
            user.clone(),
        ];
        let path = std::env::join_paths(entries).unwrap();
        assert_eq!(trusted_path(&path, &[project]), user.as_os_str());
        // Control: where nobody writes, each of them counts.
        let all = std::env::join_paths([&inside, &inside, &linked, &user]).unwrap();
        let found = trusted_path(&path, &[]);
        assert_eq!(
            std::env::split_paths(&found).count(),
            std::env::split_paths(&all).count()
        );
    }
}
