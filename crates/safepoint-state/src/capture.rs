//! What is there now: from asking a watcher and looking to the trees that a snapshot records.

use std::collections::BTreeMap;

use crate::StateError;
use crate::objects::{Objects, Writer};
use crate::omitted::{self, OmittedMark};
use crate::path::{self, TreePath};
use crate::scan::cache::{Cache, Validity};
use crate::scan::{self, Held, Known, Omitted, Progress, Request, Scan, Sink};
use crate::scope::Scope;
use crate::snapshot::Note;
use crate::state::{State, Workspace};
use crate::tree::{Entry, Moment, Node, Subtree, summarise};
use crate::watch::{self, Base};

/// What a workspace holds at one moment.
pub(crate) struct Capture {
    pub(crate) files: Subtree,
    /// `None` when it is not to be captured.
    pub(crate) git: Option<Subtree>,
    pub(crate) scan: Scan,
}

impl Capture {
    /// Makes the trees of a scan.
    pub(crate) fn of(scan: Scan, sink: &Sink<'_>) -> Result<Self, StateError> {
        let files = match scan.root {
            Some(root) => root,
            None => keep(Vec::new(), sink)?,
        };
        // Even when there is none: that is something to go back to as well.
        let git = Some(git_tree(&scan.git, sink)?);
        Ok(Self { files, git, scan })
    }

    /// Whether nothing at all was found, captured or not.
    pub(crate) fn is_hollow(&self) -> bool {
        let scan = &self.scan;
        self.files.hash == crate::tree::tree_hash(&[])
            && scan.git.is_empty()
            && scan.sensitive.is_empty()
            && scan.left_out.is_empty()
    }

    pub(crate) fn left_out(&self) -> Vec<Note> {
        self.scan.left_out.iter().map(note).collect()
    }

    pub(crate) fn sensitive(&self) -> Vec<Note> {
        self.scan
            .sensitive
            .iter()
            .map(|(path, reason)| Note {
                path: path::display(path),
                why: reason.as_str().to_owned(),
            })
            .collect()
    }

    /// Everything that is there and in no checkpoint.
    pub(crate) fn not_covered(&self) -> Vec<Note> {
        let mut notes = self.left_out();
        notes.extend(self.sensitive());
        notes
    }

    /// The marks of what was not captured, as it is now.
    pub(crate) fn marks(&self, root: &std::path::Path) -> Vec<OmittedMark> {
        omitted::marks(root, self.left_out().iter().chain(&self.sensitive()))
    }

    pub(crate) fn special(&self) -> Vec<Note> {
        self.scan
            .special
            .iter()
            .map(|(path, kind)| Note {
                path: path::display(path),
                why: kind.as_str().to_owned(),
            })
            .collect()
    }
}

fn note(omitted: &Omitted) -> Note {
    Note {
        path: path::display(&omitted.path),
        why: omitted.why.clone(),
    }
}

/// The git directories as a tree of their own: it holds nothing but them and
/// the directories that lead to them, which have no metadata here.
fn git_tree(parts: &[(TreePath, Entry)], sink: &Sink<'_>) -> Result<Subtree, StateError> {
    #[derive(Default)]
    struct Level {
        here: Vec<Entry>,
        below: BTreeMap<Vec<u8>, Level>,
    }

    fn build(level: Level, sink: &Sink<'_>) -> Result<Subtree, StateError> {
        let mut entries = level.here;
        for (name, below) in level.below {
            entries.push(Entry {
                name,
                mode: 0o755,
                owner: 0,
                group: 0,
                modified: Moment::default(),
                attributes: Vec::new(),
                node: Node::Directory(build(below, sink)?),
            });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        keep(entries, sink)
    }

    let mut top = Level::default();
    for (path, entry) in parts {
        let mut at = &mut top;
        for name in path::names(path::split(path).0) {
            at = at.below.entry(name.to_vec()).or_default();
        }
        at.here.push(entry.clone());
    }
    build(top, sink)
}

fn keep(entries: Vec<Entry>, sink: &Sink<'_>) -> Result<Subtree, StateError> {
    let (encoded, subtree) = summarise(&entries);
    sink.tree(subtree.tree, encoded)?;
    Ok(subtree)
}

/// Where a capture came from.
pub(crate) struct Source {
    /// The cache that was used, when everything was looked at.
    cache: Option<Cache>,
    /// How far the watcher had heard before.
    cursor: Option<watch::Cursor>,
}

impl State {
    /// What is there now: by asking the watcher, if there is one, and by looking.
    pub(crate) fn capture(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        objects: &Objects,
        writer: &Writer<'_>,
        progress: &Progress,
    ) -> Result<(Capture, Source), StateError> {
        let validity = self.validity(workspace, objects)?;
        let sink = Sink::Store(writer);
        let none = Cache::default();
        let mut request = Request {
            held: Held::default(),
            workspace: &workspace.root,
            scope,
            rules: &workspace.rules,
            cache: &none,
            clock: &*self.around.clock,
            progress,
        };
        let mut cursor = None;
        if scope.is_everything() {
            let socket = watch::socket(&self.around.runtime, &workspace.root);
            let base = Base::load(&self.base_path(&workspace.root), validity);
            let since = base.as_ref().map(|base| base.cursor.clone());
            if let Some(answer) = watch::ask(&socket, since) {
                cursor = Some(answer.cursor);
                // A file with several names is heard of under one of them only.
                let base = base.filter(|base| !base.files.links);
                if let (Some(base), Some(changed)) = (base, answer.changed) {
                    let reader = objects.reader();
                    let known = Known {
                        trees: &reader,
                        files: &base.files,
                        git: &base.git,
                        notes: base.notes(),
                    };
                    if let Some(scan) = scan::rescan(&request, &sink, known, &changed)? {
                        return Ok((
                            Capture::of(scan, &sink)?,
                            Source {
                                cache: None,
                                cursor,
                            },
                        ));
                    }
                }
            }
        }
        let cache = self.cache(workspace, validity);
        request.cache = &cache;
        let capture = Capture::of(scan::scan(&request, &sink)?, &sink)?;
        let cache = Some(cache);
        Ok((capture, Source { cache, cursor }))
    }

    /// Keeps what makes the next checkpoint quick.
    pub(crate) fn remember(
        &self,
        workspace: &Workspace,
        scope: &Scope,
        validity: Validity,
        capture: &Capture,
        source: Source,
    ) -> Result<(), StateError> {
        if let Some(cache) = source.cache {
            let path = self.cache_path(&workspace.root);
            cache.save(&path, validity, &capture.scan.seen, scope.is_everything())?;
        }
        if let Some(cursor) = source.cursor {
            Base::save(&self.base_path(&workspace.root), validity, cursor, capture)?;
        }
        Ok(())
    }
}
