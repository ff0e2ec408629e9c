//! What a directory apart lacks of the one that it was made from, so that it can be named.
//!
//! Secrets, caches and what is excluded are in no checkpoint. Repositories inside the
//! directory come as files: their git state would be a second one, from which nothing
//! that is committed there would find its way back.

use std::path::Path;

use crate::capture::Capture;
use crate::path::{self, TreePath};
use crate::snapshot::Note;

/// What was not put into a directory apart.
pub(crate) struct LeftBehind {
    /// What no checkpoint holds, and why.
    omitted: Vec<(TreePath, Note)>,
    /// The git directories, and the files that lead to one.
    repositories: Vec<TreePath>,
}

impl LeftBehind {
    /// That of what was captured; `pointers` are files in the place of git directories.
    pub(crate) fn of(capture: &Capture, pointers: Vec<TreePath>) -> Self {
        let scan = &capture.scan;
        let left_out = scan.left_out.iter().map(|one| one.path.clone());
        let secrets = scan.sensitive.iter().map(|(path, _)| path.clone());
        let directories = scan.git.iter().map(|(path, _)| path.clone());
        Self {
            omitted: left_out
                .zip(capture.left_out())
                .chain(secrets.zip(capture.sensitive()))
                .collect(),
            repositories: directories.chain(pointers).collect(),
        }
    }

    /// The paths of what no checkpoint holds.
    pub(crate) fn omitted(&self) -> Vec<TreePath> {
        self.omitted.iter().map(|(path, _)| path.clone()).collect()
    }

    /// What is not in `root`, now that all is there that will be.
    pub(crate) fn missing(self, root: &Path) -> Vec<Note> {
        let at = |path: &[u8]| root.join(path::as_path(path));
        let is_missing = |path: &[u8]| at(path).symlink_metadata().is_err();
        let omitted = self.omitted.into_iter();
        let omitted = omitted.filter(|(path, _)| is_missing(path));
        // One that is not there at all, because git ignores it, is not there as files either.
        let repositories = self.repositories.into_iter();
        let repositories = repositories
            .filter(|path| is_missing(path) && at(path::split(path).0).is_dir())
            .map(|path| Note {
                path: match path::split(&path).0 {
                    b"" => ".".to_owned(),
                    directory => path::display(directory),
                },
                why: "a repository of its own: its files are here, its git state is not".to_owned(),
            });
        let mut notes: Vec<Note> = omitted.map(|(_, note)| note).chain(repositories).collect();
        notes.sort_by(|a, b| a.path.cmp(&b.path));
        notes
    }
}
