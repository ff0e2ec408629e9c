//! Where tools keep what they can make again, outside a workspace.
//!
//! ```text
//! private ── a directory of agents alone, which variables name: for tools that can be told
//! warm ───── downloads of the user, seen from there through links
//! shared ─── the caches of tools that cannot be told: a short list, written by everybody
//! ```
//!
//! No cache holds settings, credentials, or programs that a shell finds. But what lies in one is
//! often code, and the user's own tools run it outside the fence: so a tool that can be told gets
//! another place. What a build leaves in either is not undone.

mod private;
mod shared;
mod warm;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use private::CacheVariable;
pub use shared::is_written_in_passing;

/// The caches of what runs behind a fence. Nothing is made before [`Self::make`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachePlan {
    /// The private directory (absolute). Its parent is made with it.
    private: PathBuf,
    /// What variables name a part of it.
    variables: Vec<CacheVariable>,
    /// Where the user's own tools keep their caches, such as `~/.cache`: only read.
    own: Option<PathBuf>,
    /// The home directory, and the project whose tools are looked for.
    tools: Option<(PathBuf, PathBuf)>,
}

impl CachePlan {
    /// A plan that names no variable yet, and no cache of the user.
    pub fn new(private: &Path) -> Self {
        Self {
            private: private.to_owned(),
            variables: Vec::new(),
            own: None,
            tools: None,
        }
    }

    /// Names the private directory where this environment names no place that is writable behind
    /// the fence. What a variable says opens nothing: whoever asks may have set it.
    #[must_use]
    pub fn with_variables(
        self,
        writable: &[PathBuf],
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Self {
        let variables = private::variables(&self.private, writable, variable);
        Self { variables, ..self }
    }

    /// Shows downloads that lie in the user's own caches.
    #[must_use]
    pub fn with_downloads_of(self, own: &Path) -> Self {
        Self {
            own: Some(own.to_owned()),
            ..self
        }
    }

    /// Makes those shared caches in this home that the tools of a project expect.
    #[must_use]
    pub fn with_tools_of(self, home: &Path, project: &Path) -> Self {
        Self {
            tools: Some((home.to_owned(), project.to_owned())),
            ..self
        }
    }

    /// The private directory.
    pub fn private(&self) -> &Path {
        &self.private
    }

    /// The variables that name it.
    pub fn variables(&self) -> &[CacheVariable] {
        &self.variables
    }

    /// Makes what is missing, and freshens the links. Returns `None` where the private directory
    /// cannot be made: then no variable may name it. A shared cache that cannot be made is
    /// refused later, as one that is not there.
    pub fn make(&self) -> Option<MadeCaches> {
        if let Some((home, project)) = &self.tools {
            shared::make_for(home, project);
        }
        let folder = private::open(&self.private).ok()?;
        for variable in &self.variables {
            private::make_folder(&folder, &variable.folder);
        }
        if let Some(own) = &self.own {
            warm::freshen(&folder, own);
        }
        Some(MadeCaches {
            private: self.private.clone(),
            variables: self.variables.clone(),
        })
    }
}

/// Caches that are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeCaches {
    private: PathBuf,
    variables: Vec<CacheVariable>,
}

impl MadeCaches {
    /// The private directory.
    pub(crate) fn private(&self) -> &Path {
        &self.private
    }

    /// Each variable, with its value.
    pub(crate) fn environment(&self) -> impl Iterator<Item = (&str, PathBuf)> {
        let value = |it: &CacheVariable| it.value_in(&self.private);
        self.variables.iter().map(move |it| (&*it.name, value(it)))
    }
}

/// The caches of tools that cannot be told where to keep them, whether they exist or not: beneath
/// the home directory.
pub fn shared_caches(home: &Path) -> Vec<PathBuf> {
    shared::paths().map(|path| home.join(path)).collect()
}

/// The same, as they are written beneath a home.
pub fn shared_cache_names() -> impl Iterator<Item = &'static str> {
    shared::paths()
}
