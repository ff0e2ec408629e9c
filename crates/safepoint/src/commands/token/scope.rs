//! What a token is limited to.
//!
//! `workspace:PATH` names a workspace below a root of the server, by the path from there.
//! A scope of another kind is refused when it is given; one that is kept and not understood
//! allows nothing.

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

/// What a token is limited to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A workspace, and what lies in it.
    Workspace(PathBuf),
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "a scope is `workspace:PATH`, the path from a root of the server, without `..`"
                .to_owned()
        };
        let path = text.strip_prefix("workspace:").ok_or_else(wrong)?;
        plain(path).map(Self::Workspace).ok_or_else(wrong)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace(path) if path.as_os_str().is_empty() => f.write_str("workspace:."),
            Self::Workspace(path) => write!(f, "workspace:{}", path.display()),
        }
    }
}

impl Scope {
    /// Whether a workspace, named by its path from the root, lies in it.
    pub(crate) fn covers(&self, workspace: &Path) -> bool {
        match self {
            Self::Workspace(path) => workspace.starts_with(path),
        }
    }
}

/// A path that leads nowhere but down; `.` is the place itself.
pub(crate) fn plain(text: &str) -> Option<PathBuf> {
    if text.is_empty() || text.contains('\0') {
        return None;
    }
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn su_07_a_scope_leads_nowhere_but_down() {
        for bad in [
            "",
            "x",
            "workspace:",
            "workspace:/etc",
            "workspace:a/../..",
            "session:x",
        ] {
            assert!(bad.parse::<Scope>().is_err(), "{bad}");
        }
        let scope: Scope = "workspace:a/b".parse().unwrap();
        assert!(scope.covers(Path::new("a/b")));
        assert!(scope.covers(Path::new("a/b/c")));
        assert!(!scope.covers(Path::new("a/bc")));
        assert!(!scope.covers(Path::new("a")));
        let all: Scope = "workspace:.".parse().unwrap();
        assert!(all.covers(Path::new("")) && all.covers(Path::new("a")));
        // What is kept is read again.
        for scope in [scope, all] {
            assert_eq!(scope.to_string().parse(), Ok(scope));
        }
    }
}
