//! What single paths do not show: directories where the other side has a file, and
//! what was never captured and must not be lost.

use std::collections::BTreeMap;

use super::weigh::is_directory;
use super::{Incoming, Resolution, Weighed};
use crate::StateError;
use crate::git_state;
use crate::path::{self, TreePath};
use crate::restore::renumber;
use crate::scope::{Scope, unescape};
use crate::tree::{self, Entry};
use crate::undo::Undoing;

impl Undoing<'_> {
    /// The work's side of a path, with all that is below it.
    pub(super) fn take_theirs(
        &self,
        incoming: &Incoming<'_>,
        at: &[u8],
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        let everything = Scope::everything();
        let work = Some(&incoming.work.record.files);
        let changes = tree::changes(self.trees, Some(&self.present.files), work, &everything)?;
        for mut change in changes {
            if path::is_within(&change.path, at) && git_state::inside(&change.path).is_none() {
                renumber(&mut change.to);
                let wanted = change
                    .to
                    .map(|entry| self.as_new(entry, change.from.as_ref()));
                let edit = (change.from, wanted, change.relinked);
                weighed.edits.insert(change.path, edit);
            }
        }
        Ok(())
    }

    /// Makes sure that whatever will stand somewhere stands in a directory, and that no
    /// directory goes while something is in it.
    pub(super) fn settle_clashes(
        &self,
        incoming: &Incoming<'_>,
        whole: &BTreeMap<&TreePath, &Resolution>,
        weighed: &mut Weighed,
    ) -> Result<(), StateError> {
        self.files_above(weighed)?;
        let ours = |path: &TreePath| {
            let stays = |(at, resolution): (&TreePath, &Resolution)| {
                let reaches = match whole.contains_key(at) {
                    true => path::is_within(path, at),
                    false => path == at,
                };
                *resolution == Resolution::Ours && reaches
            };
            incoming.resolutions.iter().any(stays)
        };
        weighed.edits.retain(|path, _| !ours(path));
        weighed.conflicts.retain(|path, _| !ours(path));
        self.keep_full_directories(&mut weighed.edits)?;
        self.add_missing_parents(&incoming.work.record, &mut weighed.edits)?;
        let becomes_file =
            |(_, (from, to, _)): &(&TreePath, &(Option<Entry>, Option<Entry>, bool))| {
                from.as_ref().is_some_and(is_directory)
                    && to.as_ref().is_some_and(|to| !is_directory(to))
            };
        let replaced: Vec<TreePath> = weighed
            .edits
            .iter()
            .filter(becomes_file)
            .map(|(path, _)| path.clone())
            .collect();
        for at in replaced {
            let Some(subtree) = tree::find(self.trees, Some(&self.present.files), &at)?
                .and_then(|entry| entry.subtree().copied())
            else {
                continue;
            };
            let stays = self.trees.tree(subtree.tree)?.into_iter().any(|child| {
                let child = path::join(&at, &child.name);
                weighed
                    .edits
                    .get(&child)
                    .is_none_or(|(_, to, _)| to.is_some())
            });
            if stays {
                let why = "it is a directory here with something new in it, and no longer one in the work";
                weighed.conflict(&at, why, Vec::new());
            }
        }
        Ok(())
    }

    /// What the work has in a directory, where there is something else here.
    fn files_above(&self, weighed: &mut Weighed) -> Result<(), StateError> {
        let put: Vec<TreePath> = weighed
            .edits
            .iter()
            .filter(|(_, (_, to, _))| to.is_some())
            .map(|(path, _)| path.clone())
            .collect();
        for path in put {
            let mut above = path::split(&path).0;
            while !above.is_empty() {
                let planned = weighed.edits.get(above).map(|(_, to, _)| to.clone());
                let there = match planned {
                    Some(to) => to,
                    None => tree::find(self.trees, Some(&self.present.files), above)?,
                };
                if there.as_ref().is_some_and(|entry| !is_directory(entry)) {
                    let why = "it is a directory in the work, and something else here";
                    weighed.conflict(above, why, Vec::new());
                }
                above = path::split(above).0;
            }
        }
        Ok(())
    }

    /// What is not captured cannot be brought back, so nothing is put in its place.
    pub(super) fn spare_uncaptured(&self, incoming: &Incoming<'_>, weighed: &mut Weighed) {
        let scan = &self.present.scan;
        let here: Vec<&TreePath> = scan
            .left_out
            .iter()
            .map(|one| &one.path)
            .chain(scan.sensitive.iter().map(|(path, _)| path))
            .collect();
        let (base, work) = (&incoming.base.record, &incoming.work.record);
        let notes = [base, work].into_iter();
        let there: Vec<TreePath> = notes
            .flat_map(|record| record.left_out.iter().chain(&record.sensitive))
            .map(|note| unescape(&note.path))
            .collect();
        let paths: Vec<TreePath> = weighed.edits.keys().cloned().collect();
        for at in paths {
            let within = |path: &TreePath| path::is_within(&at, path);
            let holds = |path: &TreePath| path::is_within(path, &at);
            if here.iter().any(|path| within(path)) {
                let why = "it is not captured here (a secret, or left out), so replacing it could lose it";
                weighed.conflict(&at, why, Vec::new());
            } else if there.iter().any(within) {
                let why = "what the work has there is not captured (a secret, or left out)";
                weighed.conflict(&at, why, Vec::new());
            } else if here.iter().any(|path| holds(path)) {
                match weighed.edits.get(&at) {
                    // It stays, with what is in it.
                    Some((Some(from), None, _)) if is_directory(from) => {
                        weighed.edits.remove(&at);
                    }
                    Some((Some(from), Some(to), _)) if is_directory(from) && !is_directory(to) => {
                        let why = "it holds something that is not captured, which would be lost";
                        weighed.conflict(&at, why, Vec::new());
                    }
                    _ => {}
                }
            }
        }
    }
}
