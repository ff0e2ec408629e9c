//! The workspaces of a server: what lies below its roots, and nothing else.
//!
//! A request names one by its path from a root. No such path leads up, or by a link to
//! somewhere else; what does is not found, like what is not there.

use std::path::{Path, PathBuf};

use safepoint_server::commands::{Caller, Role};

use crate::commands::token::{Scope, plain};
use crate::error::CliError;

/// The roots, as they really are.
pub(super) struct Places {
    roots: Vec<PathBuf>,
    /// Where commands work that have no workspace.
    elsewhere: PathBuf,
}

impl Places {
    pub(super) fn new(roots: &[PathBuf], elsewhere: &Path) -> Result<Self, CliError> {
        let real = |root: &PathBuf| {
            let found = std::fs::canonicalize(elsewhere.join(root));
            let found = found.map_err(|error| CliError::File {
                action: "find",
                path: root.clone(),
                error,
            })?;
            match found.is_dir() {
                true => Ok(found),
                false => Err(CliError::Invalid {
                    message: format!("`{}` is not a directory", root.display()),
                    suggestion: "name the directory below which the workspaces lie",
                }),
            }
        };
        Ok(Self {
            roots: roots.iter().map(real).collect::<Result<_, _>>()?,
            elsewhere: elsewhere.to_owned(),
        })
    }

    /// The directory of commands that have to do with no workspace.
    pub(super) fn none(&self) -> &Path {
        self.roots.first().unwrap_or(&self.elsewhere)
    }

    /// The workspace that somebody names, if it is one and theirs.
    pub(super) fn find(&self, caller: &Caller, named: Option<&str>) -> Result<PathBuf, CliError> {
        let text = named.unwrap_or(".");
        let unknown = || CliError::NotFound {
            what: "workspace",
            name: text.to_owned(),
        };
        let path = plain(text).ok_or_else(unknown)?;
        // The root itself is meant only where there is one.
        if path.as_os_str().is_empty() && self.roots.len() > 1 {
            return Err(CliError::Invalid {
                message: "the server has several roots".to_owned(),
                suggestion: "name the workspace by its path from one of them",
            });
        }
        if !may_use(caller, &path) {
            return Err(unknown());
        }
        let below = |root: &PathBuf| {
            let found = std::fs::canonicalize(root.join(&path)).ok()?;
            // What counts is where it really is: a link may lead to somebody else's.
            let theirs = may_use(caller, found.strip_prefix(root).ok()?);
            (found.is_dir() && theirs).then_some(found)
        };
        let mut found: Vec<PathBuf> = self.roots.iter().filter_map(below).collect();
        found.dedup();
        match (found.pop(), found.pop()) {
            (Some(one), None) => Ok(one),
            (Some(_), Some(_)) => Err(CliError::Invalid {
                message: format!("`{text}` lies below several roots"),
                suggestion: "whoever runs the server gives them other names",
            }),
            (None, _) => Err(unknown()),
        }
    }

    /// A directory that was found before: it is one still, and the caller's.
    pub(super) fn holds(&self, caller: &Caller, directory: &Path) -> Option<PathBuf> {
        let found = std::fs::canonicalize(directory).ok()?;
        let inside = |root: &PathBuf| {
            let path = found.strip_prefix(root).ok();
            path.is_some_and(|path| may_use(caller, path))
        };
        self.roots.iter().any(inside).then_some(found)
    }
}

/// Whether a caller may use a workspace, by its path from the root. An agent may use what
/// its token names; others what theirs is not limited to something else.
fn may_use(caller: &Caller, path: &Path) -> bool {
    let is_agent = caller.roles.contains(&Role::Agent);
    match caller.scopes.is_empty() {
        true => !is_agent,
        // One that is not understood covers nothing.
        false => caller
            .scopes
            .iter()
            .filter_map(|scope| scope.parse::<Scope>().ok())
            .any(|scope| scope.covers(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role, scopes: &[&str]) -> Caller {
        Caller {
            name: "token:x".to_owned(),
            roles: vec![role],
            scopes: scopes.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn su_07_no_path_leads_out_of_the_roots() {
        let directory = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(directory.path()).unwrap();
        for name in ["one/a", "two/b", "two/both", "one/both", "outside"] {
            std::fs::create_dir_all(base.join(name)).unwrap();
        }
        std::os::unix::fs::symlink(base.join("outside"), base.join("one/link")).unwrap();
        std::os::unix::fs::symlink(base.join("one/a"), base.join("one/inside")).unwrap();
        let places = Places::new(&["one".into(), "two".into()], &base).unwrap();
        let operator = caller(Role::Operator, &[]);
        let find = |named: &str| places.find(&operator, Some(named));
        assert_eq!(find("a").unwrap(), base.join("one/a"));
        assert_eq!(find("./a/").unwrap(), base.join("one/a"));
        assert_eq!(find("b").unwrap(), base.join("two/b"));
        assert_eq!(find("inside").unwrap(), base.join("one/a"));
        let root = base.display().to_string();
        let whole = format!("{root}/one/a");
        for bad in [
            "..",
            "../outside",
            "a/../../outside",
            "link",
            "/etc",
            &whole,
            "",
            "a\0b",
            "c",
        ] {
            assert!(
                matches!(find(bad), Err(CliError::NotFound { .. })),
                "{bad:?}"
            );
        }
        assert!(matches!(find("both"), Err(CliError::Invalid { .. })));
        assert!(matches!(find("."), Err(CliError::Invalid { .. })));
        assert!(places.holds(&operator, &base.join("one/a")).is_some());
        assert!(places.holds(&operator, &base.join("one/link")).is_none());
        assert!(places.holds(&operator, &base.join("outside")).is_none());
    }

    #[test]
    fn su_07_an_agent_uses_only_workspaces_that_its_token_names() {
        let directory = tempfile::tempdir().unwrap();
        let base = std::fs::canonicalize(directory.path()).unwrap();
        std::fs::create_dir_all(base.join("a/sub")).unwrap();
        std::fs::create_dir_all(base.join("b")).unwrap();
        std::os::unix::fs::symlink("../b", base.join("a/link")).unwrap();
        let places = Places::new(&[".".into()], &base).unwrap();
        let may = |caller: &Caller, named: &str| places.find(caller, Some(named)).is_ok();
        let bare = caller(Role::Agent, &[]);
        assert!(!may(&bare, "a") && !may(&bare, "."));
        let named = caller(Role::Agent, &["workspace:a"]);
        assert!(may(&named, "a") && may(&named, "a/sub"));
        assert!(!may(&named, "b") && !may(&named, "."));
        assert!(!may(&named, "a/link"));
        let strange = caller(Role::Operator, &["something:else"]);
        assert!(!may(&strange, "a"));
        let limited = caller(Role::Operator, &["workspace:a"]);
        assert!(places.holds(&limited, &base.join("a/sub")).is_some());
        assert!(places.holds(&limited, &base.join("b")).is_none());
        assert!(places.holds(&limited, &base).is_none());
        assert!(may(&caller(Role::Auditor, &[]), "."));
    }
}
