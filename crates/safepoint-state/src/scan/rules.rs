//! What is not captured: rebuildable caches, what the settings exclude, and
//! Safepoint's own directories. Never anything silently: each is reported.

use std::path::Path;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use serde::{Deserialize, Serialize};

use crate::path::as_path;
use crate::{ContentId, StateError, left_out};

/// The directories in a workspace that are Safepoint's own.
pub(crate) const OWN: [&[u8]; 2] = [b".checkpoints", b".audit"];

/// Why something is left out that the settings exclude.
pub(crate) const EXCLUDED: &str = "excluded by the settings";

/// What the settings say about it.
#[derive(Clone, Debug)]
pub struct Rules {
    exclude: GlobSet,
    include: GlobSet,
    fingerprint: ContentId,
    patterns: Patterns,
}

/// The patterns of the settings, as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patterns {
    /// What is left out.
    pub exclude: Vec<String>,
    /// What is kept although it would be left out.
    pub include: Vec<String>,
}

impl Patterns {
    /// Leaves out exactly this path, and what is below it, if it lies in the workspace.
    pub fn leave_out(&mut self, root: &Path, path: &Path) {
        let inside = path.strip_prefix(root).ok().and_then(Path::to_str);
        if let Some(name) = inside.filter(|name| !name.is_empty()) {
            self.exclude.push(format!("/{}", globset::escape(name)));
        }
    }
}

impl Rules {
    /// Rules with these patterns.
    pub fn new(patterns: Patterns) -> Result<Self, StateError> {
        let mut named = Vec::new();
        let sides = [
            ("exclude", &patterns.exclude),
            ("include", &patterns.include),
        ];
        for (side, patterns) in sides {
            for pattern in patterns {
                named.extend_from_slice(format!("{side}\0{pattern}\0").as_bytes());
            }
        }
        // Under which rules a directory `.git` is no file of the workspace.
        named.extend_from_slice(b"every .git directory\0");
        for (name, ..) in left_out::TABLE {
            named.extend_from_slice(name.as_bytes());
            named.push(0);
        }
        Ok(Self {
            exclude: globs(&patterns.exclude)?,
            include: globs(&patterns.include)?,
            fingerprint: ContentId::of(&named),
            patterns,
        })
    }

    /// The patterns they were made from.
    pub fn patterns(&self) -> &Patterns {
        &self.patterns
    }

    /// Changes with the rules, so that what was found under others is not trusted.
    pub(crate) fn fingerprint(&self) -> ContentId {
        self.fingerprint
    }

    /// Why the file or directory at `path` is left out by the settings.
    pub(crate) fn excluded(&self, path: &[u8]) -> Option<&'static str> {
        (!self.exclude.is_empty() && self.exclude.is_match(as_path(path)) && !self.included(path))
            .then_some(EXCLUDED)
    }

    /// Whether the settings want it, whatever it is.
    pub(crate) fn included(&self, path: &[u8]) -> bool {
        !self.include.is_empty() && self.include.is_match(as_path(path))
    }
}

fn globs(patterns: &[String]) -> Result<GlobSet, StateError> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let bad = |error: globset::Error| StateError::BadScope {
            scope: pattern.clone(),
            why: error.kind().to_string(),
        };
        // As in an ignore file: without a slash it fits at any depth, and a
        // directory that fits takes what is in it along.
        let trimmed = pattern.trim_end_matches('/');
        let anchored = match trimmed.strip_prefix('/') {
            Some(rooted) => rooted.to_owned(),
            None if trimmed.contains('/') => trimmed.to_owned(),
            None => format!("**/{trimmed}"),
        };
        for glob in [anchored.clone(), format!("{anchored}/**")] {
            let glob = GlobBuilder::new(&glob).literal_separator(true).build();
            set.add(glob.map_err(bad)?);
        }
    }
    set.build().map_err(|error| StateError::BadScope {
        scope: patterns.join(", "),
        why: error.to_string(),
    })
}
