//! Of which directory a history is: projects that were moved, and others in their old places.
//!
//! Rows name a directory by its path, and a path may come to name another directory. The
//! marks in the trail's entries show that; what follows from it is recorded in entries of its
//! own, and rows stay as they are. Such an entry parts what was recorded of a path before it from
//! what comes after, or gives the rows of one path, between two places in the trail, to another
//! path. Whoever asks for the history of a directory gets all that belongs to it, as if it had
//! always been where it is now.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use safepoint_store::{Durability, Flow};
use safepoint_trail::{Kind, Query, Trail};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::identity::Marks;
use crate::scope::unescape;
use crate::snapshot::{self, Source};
use crate::state::{State, stream};
use crate::{StateError, path};

/// The kind of the entries that say which directory a history is of.
const KIND: &str = "directory_identified";

/// The place of an entry that is not written: later than all others.
const NOT_WRITTEN: u64 = u64::MAX;

/// What such an entry says of its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It goes on with what was recorded of `former`.
    Moved,
    /// It is another one than that of which was recorded before.
    Another,
    /// It is not the one that was called `former`.
    NotMoved,
}

/// The body of such an entry.
#[derive(Serialize, Deserialize)]
struct Identified {
    workspace: String,
    verdict: Verdict,
    #[serde(default)]
    former: Option<String>,
    /// The entries about `former` from here on …
    #[serde(default)]
    since: u64,
    /// … and before here; without it, before this one.
    #[serde(default)]
    until: Option<u64>,
    directory: Marks,
}

/// Rows of one path that are the history of another.
#[derive(Clone, Debug)]
struct Move {
    from: PathBuf,
    since: u64,
    until: u64,
    to: PathBuf,
    at: u64,
}

/// Everything that was recorded of directories that are not what their path says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    moves: Vec<Move>,
    breaks: Vec<(PathBuf, u64)>,
    refused: Vec<(PathBuf, PathBuf, String)>,
    marks: Vec<(PathBuf, u64, Marks)>,
}

/// What a directory is to the history of its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Footing {
    /// The one that it was, or the first one of which something is recorded.
    Same,
    /// An empty one in the place of one that was deleted, which may come back in it.
    Anew,
    /// Another one: what is recorded is not of it.
    Another,
    /// One of which something is recorded under another path.
    Moved {
        /// Where it was.
        from: PathBuf,
        /// Whether something else is recorded of where it is now.
        other_here: bool,
    },
}

/// A time in which one directory was called by a path.
struct Tenure {
    path: PathBuf,
    since: u64,
    until: u64,
}

impl Ledger {
    fn is_empty(&self) -> bool {
        self.moves.is_empty() && self.breaks.is_empty()
    }

    fn claim(&self, path: &Path, entry: u64) -> Option<&Move> {
        let has = |it: &&Move| it.from == path && (it.since..it.until).contains(&entry);
        self.moves.iter().rev().find(has)
    }

    /// Where the directory is now that a row is of; nowhere that is known, if another one took
    /// its place.
    pub(crate) fn owner(&self, path: &Path, entry: u64) -> Option<PathBuf> {
        let (mut path, mut entry) = (path, entry);
        // Each claim is later than the one before it.
        for _ in 0..=self.moves.len() {
            match self.claim(path, entry) {
                Some(claim) => (path, entry) = (&claim.to, claim.at),
                None => {
                    let is_former = |it: &(PathBuf, u64)| it.0 == path && entry < it.1;
                    return (!self.breaks.iter().any(is_former)).then(|| path.to_owned());
                }
            }
        }
        None
    }

    /// Where the present directory of a path begins.
    fn beginning(&self, path: &Path) -> u64 {
        let breaks = self.breaks.iter().filter(|it| it.0 == path).map(|it| it.1);
        let claims = self.moves.iter().filter(|it| it.from == path);
        breaks.chain(claims.map(|it| it.until)).max().unwrap_or(0)
    }

    /// The rows that are the history of a directory.
    fn sources(&self, path: &Path) -> Vec<Source> {
        let mut sources = vec![Source {
            path: path.to_owned(),
            since: self.beginning(path),
            until: NOT_WRITTEN,
        }];
        for one in &self.moves {
            if self.owner(&one.from, one.since).as_deref() == Some(path) {
                sources.push(Source {
                    path: one.from.clone(),
                    since: one.since,
                    until: one.until,
                });
            }
        }
        sources
    }

    /// The times of a path that nobody has claimed.
    fn tenures(&self, path: &Path) -> Vec<Tenure> {
        let mut ends: Vec<u64> = self
            .breaks
            .iter()
            .filter(|it| it.0 == path)
            .map(|it| it.1)
            .chain(
                self.moves
                    .iter()
                    .filter(|it| it.from == path)
                    .map(|it| it.until),
            )
            .chain([NOT_WRITTEN])
            .collect();
        ends.sort_unstable();
        ends.dedup();
        let mut since = 0;
        let mut tenures = Vec::new();
        for until in ends {
            if self.claim(path, since).is_none() {
                tenures.push(Tenure {
                    path: path.to_owned(),
                    since,
                    until,
                });
            }
            since = until;
        }
        tenures
    }

    fn refuses(&self, to: &Path, from: &Path, marks: &Marks) -> bool {
        let same =
            |it: &(PathBuf, PathBuf, String)| it.0 == to && it.1 == from && it.2 == marks.root;
        self.refused.iter().any(same)
    }

    fn add(&mut self, said: Identified, place: PathBuf, at: u64) {
        let former = said.former.map(|former| as_path(&former));
        match (said.verdict, former) {
            (Verdict::Moved, Some(from)) => self.moves.push(Move {
                from,
                since: said.since,
                until: said.until.unwrap_or(at).min(at),
                to: place.clone(),
                at,
            }),
            (Verdict::Another, _) => self.breaks.push((place.clone(), at)),
            (Verdict::NotMoved, Some(from)) => {
                self.refused.push((place, from, said.directory.root));
                return;
            }
            (_, None) => return,
        }
        self.marks.push((place, at, said.directory));
    }
}

impl State {
    /// What is recorded of directories, as the trail tells it.
    pub(crate) fn ledger(&self) -> Result<&Ledger, StateError> {
        if let Some(ledger) = self.ledger.get() {
            return Ok(ledger);
        }
        let query = Query {
            kind: Some(KIND.to_owned()),
            ..Query::default()
        };
        let mut entries = Vec::new();
        self.trail.entries(&query, |entry| {
            entries.push(entry);
            Ok::<_, StateError>(Flow::More)
        })?;
        let mut ledger = Ledger::default();
        for entry in entries {
            let body = self.trail.whole_body(&entry.body)?;
            let Ok(said) = serde_json::from_str::<Identified>(&body) else {
                continue;
            };
            let place = as_path(&said.workspace);
            if entry.stream == stream(&place) && self.trail.is_genuine(&entry)? {
                ledger.add(said, place, entry.seq);
            }
        }
        Ok(self.ledger.get_or_init(|| ledger))
    }

    /// The rows that are the history of a directory.
    pub(crate) fn sources(&self, workspace: &Path) -> Result<Vec<Source>, StateError> {
        Ok(self.ledger()?.sources(workspace))
    }

    /// The streams of the trail that tell of a directory, wherever it was.
    pub fn streams(&self, workspace: &Path) -> Result<Vec<safepoint_trail::Stream>, StateError> {
        let mut streams = vec![stream(workspace)];
        for source in self.sources(workspace)? {
            let one = stream(&source.path);
            if !streams.contains(&one) {
                streams.push(one);
            }
        }
        Ok(streams)
    }

    /// Where the directory is now that a row is of.
    pub(crate) fn place_of_row(
        &self,
        workspace: &mut PathBuf,
        entry: u64,
    ) -> Result<(), StateError> {
        let ledger = self.ledger()?;
        if !ledger.is_empty()
            && let Some(owner) = ledger.owner(workspace, entry)
        {
            *workspace = owner;
        }
        Ok(())
    }

    /// Refuses a row that is of another directory than the one that is at `root` now.
    pub(crate) fn refuse_former(
        &self,
        root: &Path,
        recorded: &Path,
        entry: u64,
    ) -> Result<(), StateError> {
        let ledger = self.ledger()?;
        let is_former = recorded == root && ledger.owner(recorded, entry).is_none();
        if is_former || self.is_another(root)? {
            return Err(StateError::OtherDirectory {
                workspace: root.to_owned(),
            });
        }
        Ok(())
    }

    /// Whether another directory is at `root` than the one of which something is recorded.
    fn is_another(&self, root: &Path) -> Result<bool, StateError> {
        let Some(now) = Marks::of(root) else {
            return Ok(false);
        };
        let recorded = self.recorded_marks(root)?;
        Ok(recorded.is_some_and(|then| !then.is_same(&now)) && !is_bare(root))
    }

    /// The marks of the directory of which something was recorded last.
    fn recorded_marks(&self, root: &Path) -> Result<Option<Marks>, StateError> {
        let ledger = self.ledger()?;
        let told = ledger.marks.iter().rev().find(|it| it.0 == root);
        let latest = self.newest(&ledger.sources(root))?;
        Ok(match (latest, told) {
            (Some((entry, marks)), Some((_, at, told))) => match entry < *at {
                true => Some(told.clone()),
                false => marks,
            },
            (Some((_, marks)), None) => marks,
            (None, Some((_, _, told))) => Some(told.clone()),
            (None, None) => None,
        })
    }

    /// Where the newest of these rows is told of, and of which directory it is.
    fn newest(&self, sources: &[Source]) -> Result<Option<(u64, Option<Marks>)>, StateError> {
        self.trail.store().read(|sql| {
            let newest = snapshot::list_placed(sql, Some(sources), Some(1))?;
            let Some((newest, entry)) = newest.into_iter().next() else {
                return Ok(None);
            };
            match snapshot::find_said(&self.trail, sql, newest.id.as_str()) {
                Ok((_, said)) => Ok(Some((entry, said.directory))),
                // It says nothing of any directory.
                Err(StateError::Tampered { .. }) => Ok(Some((entry, None))),
                Err(error) => Err(error),
            }
        })
    }

    /// The marks of the directory that was called so then, as far as they are known; `None` where
    /// nothing is recorded of it.
    fn marks_in(&self, tenure: &Tenure) -> Result<Option<Option<Marks>>, StateError> {
        let ledger = self.ledger()?;
        let is_in = |path: &Path, at: u64| {
            path == tenure.path && (tenure.since..tenure.until).contains(&at)
        };
        let told = ledger.marks.iter().rev().find(|it| is_in(&it.0, it.1));
        let came = ledger.moves.iter().any(|it| is_in(&it.to, it.at));
        Ok(match (self.newest(&[tenure.source()])?, told) {
            (Some((entry, _)), Some((_, at, told))) if entry < *at => Some(Some(told.clone())),
            (Some((_, marks)), _) => Some(marks),
            (None, Some((_, _, told))) if came => Some(Some(told.clone())),
            (None, _) => None,
        })
    }

    /// What the directory at `root` is to the history of its path.
    pub fn footing(&self, root: &Path) -> Result<Footing, StateError> {
        let Some(now) = Marks::of(root) else {
            return Ok(Footing::Same);
        };
        let recorded = self.recorded_marks(root)?;
        let is_other = recorded.as_ref().is_some_and(|then| !then.is_same(&now));
        if is_other && is_bare(root) {
            return Ok(Footing::Anew);
        }
        let is_known = recorded.is_some() && !is_other;
        match self.former_tenure(root, &now, is_known)? {
            Some(tenure) => Ok(Footing::Moved {
                from: tenure.path,
                other_here: is_other,
            }),
            None if is_other => Ok(Footing::Another),
            None => Ok(Footing::Same),
        }
    }

    /// The time in which the directory at `root` was called otherwise. Of one that is known
    /// already only paths where nothing is any more are looked at.
    fn former_tenure(
        &self,
        root: &Path,
        now: &Marks,
        is_known: bool,
    ) -> Result<Option<Tenure>, StateError> {
        let ledger = self.ledger()?;
        let mut places = self.trail.store().read(|sql| snapshot::workspaces(sql))?;
        for one in &ledger.moves {
            if !places.contains(&one.to) {
                places.push(one.to.clone());
            }
        }
        for path in places {
            if is_known && path.symlink_metadata().is_ok() {
                continue;
            }
            if path != root && Marks::of(&path).is_some_and(|it| it.is_same(now)) {
                continue; // it is there by both names
            }
            if ledger.refuses(root, &path, now) {
                continue;
            }
            for tenure in ledger.tenures(&path).into_iter().rev() {
                if path == root && tenure.until == NOT_WRITTEN {
                    continue;
                }
                let then = self.marks_in(&tenure)?;
                if then.is_some_and(|then| then.is_some_and(|then| then.was_moved(now))) {
                    return Ok(Some(tenure));
                }
            }
        }
        Ok(None)
    }

    /// Records that the directory at `root` goes on with the history of `from`, because
    /// somebody says so. `from` may be `root`, for one that was deleted and made anew.
    pub fn adopt(&mut self, from: &Path, root: &Path) -> Result<(), StateError> {
        let Some(now) = Marks::of(root) else {
            return Err(StateError::NotFound {
                what: "directory",
                name: root.display().to_string(),
            });
        };
        let there = Marks::of(from).filter(|_| from != root);
        let still_there = match (&there, self.recorded_marks(from)?) {
            (Some(there), Some(recorded)) => there.is_same(&recorded),
            (Some(_), None) | (None, _) => false,
        };
        let tenures = self.ledger()?.tenures(from);
        let mut chosen = None;
        for tenure in tenures.into_iter().rev() {
            let Some(then) = self.marks_in(&tenure)? else {
                continue;
            };
            let fits = then.is_some_and(|then| then.is_same(&now));
            let is_present = tenure.until == NOT_WRITTEN && (still_there || from == root && fits);
            if !is_present && (fits || chosen.is_none()) {
                chosen = Some(tenure);
                if fits {
                    break;
                }
            }
        }
        let Some(tenure) = chosen else {
            return Err(match still_there {
                true => StateError::NotMoved {
                    from: from.to_owned(),
                },
                false => StateError::NotFound {
                    what: "history of a directory",
                    name: from.display().to_string(),
                },
            });
        };
        if from != root && self.is_another(root)? {
            self.part_from_former(root)?;
        }
        let until = (tenure.until != NOT_WRITTEN).then_some(tenure.until);
        let former = Some((from, tenure.since, until));
        self.identify_as(root, Verdict::Moved, former, now.clone())?;
        match from == root {
            true => Ok(()),
            false => self.move_journals(from, root, &now),
        }
    }

    /// Records that `root` is not the directory that was called `from`.
    pub fn refuse_move(&mut self, from: &Path, root: &Path) -> Result<(), StateError> {
        match Marks::of(root) {
            Some(now) => self.identify_as(root, Verdict::NotMoved, Some((from, 0, None)), now),
            None => Ok(()),
        }
    }

    /// Records that another directory is at `root` than before: its history begins here.
    pub fn part_from_former(&mut self, root: &Path) -> Result<(), StateError> {
        match Marks::of(root) {
            Some(now) => self.identify_as(root, Verdict::Another, None, now),
            None => Ok(()),
        }
    }

    fn identify_as(
        &mut self,
        root: &Path,
        verdict: Verdict,
        former: Option<(&Path, u64, Option<u64>)>,
        directory: Marks,
    ) -> Result<(), StateError> {
        let (from, since, until) = match former {
            Some((from, since, until)) => (Some(from), since, until),
            None => (None, 0, None),
        };
        let body = json!({
            "verdict": verdict,
            "former": from.map(|from| path::display(path_bytes(from))),
            "since": since,
            "until": until,
            "directory": directory,
        });
        self.trail.write(Durability::Sync, |writing| {
            writing.append(self.draft(root, Kind::fixed(KIND), None, body))?;
            if let (Verdict::Moved, Some(from)) = (verdict, from) {
                crate::part::copy_values(writing.sql(), from, root)?;
            }
            Ok::<_, StateError>(())
        })?;
        self.ledger = OnceLock::new();
        Ok(())
    }

    /// Shows the history of `root` as if it had been adopted, or parted from, as its footing
    /// says, and records nothing.
    pub fn suppose(&mut self, root: &Path, footing: &Footing) -> Result<(), StateError> {
        let Some(now) = Marks::of(root) else {
            return Ok(());
        };
        let mut ledger = self.ledger()?.clone();
        let other_here = match footing {
            Footing::Same | Footing::Anew => return Ok(()),
            Footing::Another => true,
            Footing::Moved { other_here, .. } => *other_here,
        };
        if let Footing::Moved { .. } = footing
            && let Some(tenure) = self.former_tenure(root, &now, false)?
        {
            ledger.moves.push(Move {
                from: tenure.path,
                since: tenure.since,
                until: tenure.until,
                to: root.to_owned(),
                at: NOT_WRITTEN,
            });
        }
        if other_here {
            ledger.breaks.push((root.to_owned(), NOT_WRITTEN));
        }
        ledger.marks.push((root.to_owned(), NOT_WRITTEN, now));
        self.ledger = OnceLock::from(ledger);
        Ok(())
    }
}

/// The nearest directory upwards, or this one itself, of which something is recorded.
pub fn nearest_recorded(trail: &Trail, start: &Path) -> Result<Option<PathBuf>, StateError> {
    trail.store().migrate(&snapshot::COMPONENT)?;
    for path in start.ancestors() {
        let source = Source {
            path: path.to_owned(),
            since: 0,
            until: NOT_WRITTEN,
        };
        let found = trail
            .store()
            .read(|sql| snapshot::list_placed(sql, Some(&[source]), Some(1)))?;
        if !found.is_empty() {
            return Ok(Some(path.to_owned()));
        }
    }
    Ok(None)
}

impl Tenure {
    fn source(&self) -> Source {
        Source {
            path: self.path.clone(),
            since: self.since,
            until: self.until,
        }
    }
}

fn as_path(shown: &str) -> PathBuf {
    path::as_path(&unescape(shown)).to_owned()
}

fn path_bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

/// Whether nothing is in a directory but what we put there ourselves.
pub(crate) fn is_bare(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root) else {
        return false;
    };
    entries
        .map(|entry| entry.map(|entry| entry.file_name()))
        .all(|name| name.is_ok_and(|name| name == ".checkpoints" || name == ".audit"))
}
