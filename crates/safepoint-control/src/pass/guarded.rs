//! What no line reaches unseen, however it is called: Safepoint's own things, the rules, and
//! what git would run.
//!
//! Here paths are looked at, with links resolved. Nothing is judged: what is found becomes a
//! deed of its own, and the rules say what follows.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use safepoint_authority::{Deed, NamedPath, Risk, SideEffect, Undo};

use super::Passage;
use super::cover::is_change;

/// The action that is nobody's but an operator's.
pub(super) const CONTROL: &str = "safepoint.control";

/// What Safepoint writes in a workspace: what its checkpoints are, and what was done with them.
const KEPT_HERE: [&str; 2] = [".checkpoints", ".audit"];

/// Files in a git directory, by their last name, that say what git runs.
const CODE_OF_GIT: [&str; 3] = ["config", "config.worktree", "attributes"];

/// Settings of agents' clients that name programs to be run.
const CODE_OF_CLIENTS: [&str; 9] = [
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".mcp.json",
    "opencode.json",
];
/// Folders of theirs in which every file is such a program, or can name hooks.
const PLACES_OF_CLIENTS: [&str; 9] = [
    ".claude-plugin",
    ".claude/agents",
    ".claude/commands",
    ".claude/hooks",
    ".claude/plugins",
    ".claude/skills",
    ".github/hooks",
    ".opencode/plugin",
    ".opencode/plugins",
];

/// The names at the top of a workspace that the clients of agents take orders from: settings, and
/// folders of programs. A client that is started anew reads them before it calls us.
pub fn settings_of_clients(root: &Path) -> Vec<PathBuf> {
    let names = CODE_OF_CLIENTS.iter().chain(&PLACES_OF_CLIENTS);
    names.map(|name| root.join(name)).collect()
}

impl Passage<'_> {
    /// What is done by touching these paths, besides what the line says. Reading counts too:
    /// the keys of operators lie among Safepoint's own things.
    pub(super) fn reaches<'a>(
        &self,
        paths: impl Iterator<Item = &'a NamedPath> + Clone,
    ) -> Vec<Deed> {
        let mut deeds = Vec::new();
        if paths.clone().any(|path| self.is_own(path)) {
            deeds.push(touches_safepoint());
        }
        // What is written there, git runs: at the next harmless look at the repository.
        // By another name it is the same: what is written through a link is what it leads to.
        let changed: Vec<String> = paths
            .filter(|path| is_change(&path.role))
            .flat_map(|path| {
                let real = std::fs::canonicalize(&path.path).ok();
                let real = real.and_then(|real| real.to_str().map(str::to_owned));
                [Some(path.path.clone()), real].into_iter().flatten()
            })
            .collect();
        if changed.iter().any(|path| is_code_of_git(path)) {
            deeds.push(chooses_code("git runs what is written there"));
        }
        // So do the clients of agents, and their hooks are how they ask us.
        if changed.iter().any(|path| is_code_of_client(path)) {
            deeds.push(chooses_code("an agent's client runs what is written there"));
        }
        deeds
    }

    /// Whether a path leads to what Safepoint keeps, or would take it away with it.
    fn is_own(&self, path: &NamedPath) -> bool {
        let place = Path::new(&path.path);
        let real = std::fs::canonicalize(place).unwrap_or_else(|_| place.to_owned());
        self.own.iter().any(|own| {
            let within = place.starts_with(own) || real.starts_with(own);
            within || (path.role == "delete" && own.starts_with(place))
        }) || self.is_another_name(&real)
            || (is_change(&path.role) && self.is_a_rule(place, &real))
            || (is_change(&path.role) && self.is_kept_here(&real))
    }

    /// Whether it is among what Safepoint keeps in the workspace itself.
    fn is_kept_here(&self, real: &Path) -> bool {
        let root = &self.workspace.root;
        let kept = KEPT_HERE
            .iter()
            .any(|name| real.starts_with(root.join(name)));
        kept || real == root.join("safepoint.yaml")
    }

    /// Whether it is one of the atlases that everything here is judged under.
    fn is_a_rule(&self, place: &Path, real: &Path) -> bool {
        let atlases = self
            .atlases
            .iter()
            .filter_map(|atlas| std::fs::canonicalize(&atlas.path).ok());
        atlases
            .into_iter()
            .any(|rule| rule == place || rule == real)
    }

    /// Whether it is another name of a file that Safepoint keeps: a hard link has no way back
    /// to the name that is guarded.
    fn is_another_name(&self, real: &Path) -> bool {
        match real.symlink_metadata() {
            Ok(file) if file.is_file() && file.nlink() > 1 => {
                let identity = (file.dev(), file.ino());
                self.own.iter().any(|own| holds(own, identity))
            }
            _ => false,
        }
    }
}

/// Whether a file is somewhere below a directory, by what it is.
fn holds(top: &Path, identity: (u64, u64)) -> bool {
    let mut left = vec![top.to_owned()];
    while let Some(place) = left.pop() {
        for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(it) if it.is_dir() => left.push(entry.path()),
                Ok(it) if (it.dev(), it.ino()) == identity => return true,
                _ => {}
            }
        }
    }
    false
}

/// Nobody but operators touches Safepoint's own things.
fn touches_safepoint() -> Deed {
    Deed {
        action: CONTROL.to_owned(),
        effects: BTreeSet::new(),
        risk: Risk::Critical,
        undo: Undo::NotNeeded,
        touches: Vec::new(),
        hosts: BTreeSet::new(),
        because: "it reaches what Safepoint keeps".to_owned(),
    }
}

/// Whether git would run what is written at a path. The directory itself counts: it can be
/// put there whole, and a file in its place leads to another one.
fn is_code_of_git(path: &str) -> bool {
    if path.ends_with("/.git") {
        return true;
    }
    let Some((_, inner)) = path.split_once("/.git/") else {
        return false;
    };
    let last = inner.rsplit('/').next().unwrap_or_default();
    CODE_OF_GIT.contains(&last) || inner.split('/').any(|name| name == "hooks")
}

/// Whether an agent's client would run what is written at a path, or stop asking us.
pub(super) fn is_code_of_client(path: &str) -> bool {
    let path = format!("/{path}");
    let is_below = |place: &str| path.contains(&format!("/{place}/"));
    CODE_OF_CLIENTS
        .iter()
        .any(|file| path.ends_with(&format!("/{file}")))
        || PLACES_OF_CLIENTS
            .iter()
            .any(|place| is_below(place) || path.ends_with(&format!("/{place}")))
}

/// Something that chooses what programs will run later.
fn chooses_code(because: &str) -> Deed {
    Deed {
        action: "shell.opaque".to_owned(),
        effects: BTreeSet::from([SideEffect::Exec]),
        risk: Risk::Medium,
        undo: Undo::Unknown,
        touches: Vec::new(),
        hosts: BTreeSet::new(),
        because: because.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_code_of_client, is_code_of_git};

    #[test]
    fn au_04_what_clients_run_is_known_by_its_place() {
        for path in [
            "/p/.claude/settings.json",
            ".claude/settings.local.json",
            "sub/.codex/hooks.json",
            "/p/.github/hooks/x.json",
            "/p/.opencode/plugin",
            ".opencode/plugins/x.ts",
        ] {
            assert!(is_code_of_client(path), "{path}");
        }
        for path in [
            "/p/claude/settings.json",
            ".claude/CLAUDE.md",
            ".github/workflows/x.yml",
            "settings.json",
        ] {
            assert!(!is_code_of_client(path), "{path}");
        }
    }

    #[test]
    fn au_04_what_git_runs_is_known_by_its_place() {
        for path in [
            "/p/.git",
            "/p/.git/config",
            "/p/.git/config.worktree",
            "/p/.git/hooks",
            "/p/.git/hooks/pre-commit",
            "/p/.git/info/attributes",
            "/p/.git/modules/sub/config",
            "/p/.git/modules/sub/hooks/post-checkout",
            "/p/.git/worktrees/other/config.worktree",
        ] {
            assert!(is_code_of_git(path), "{path}");
        }
        for path in [
            "/p/.gitignore",
            "/p/.git/index",
            "/p/.git/refs/heads/main",
            "/p/config",
            "/p/hooks/pre-commit",
            "/p/.github/hooks/x",
        ] {
            assert!(!is_code_of_git(path), "{path}");
        }
    }
}
