//! The files that a patch in the `*** Begin Patch` form changes.
//!
//! Only the names are read. A line that one reader takes for a file and another one for
//! text makes the whole patch unreadable: better no patch than a file that nobody saw.

use std::path::PathBuf;

use crate::FileChange;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File: ";
const DELETE: &str = "*** Delete File: ";
const UPDATE: &str = "*** Update File: ";
const MOVE: &str = "*** Move to: ";
const END_OF_FILE: &str = "*** End of File";

/// Where in the patch a line stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Between files.
    Outside,
    /// In the text of a new file.
    Added,
    /// Right behind the name of a file to change, where a new name may come.
    Named,
    /// In the changes of a file.
    Updated,
}

/// The changes, in order. The error says why it is not a patch.
pub(crate) fn files(patch: &str) -> Result<Vec<FileChange>, String> {
    if patch.replace("\r\n", "\n").contains('\r') {
        return Err("it has a carriage return inside a line".to_owned());
    }
    let mut lines = patch.trim().lines();
    if lines.next().map(str::trim) != Some(BEGIN) {
        return Err(format!("it does not begin with `{BEGIN}`"));
    }
    if lines.next_back().map(str::trim) != Some(END) {
        return Err(format!("it does not end with `{END}`"));
    }
    let mut changes = Vec::new();
    let mut place = Place::Outside;
    for (index, line) in lines.enumerate() {
        place = step(line, place, &mut changes)
            .ok_or_else(|| format!("its line {} is not understood", index + 2))?;
    }
    if changes.is_empty() {
        return Err("it names no file".to_owned());
    }
    Ok(changes)
}

fn step(line: &str, place: Place, changes: &mut Vec<FileChange>) -> Option<Place> {
    let inside = match place {
        Place::Outside => false,
        Place::Added => line.starts_with('+'),
        Place::Named | Place::Updated => {
            line.is_empty()
                || line.starts_with([' ', '\t', '+', '-'])
                || line.starts_with("@@")
                || line.trim_end() == END_OF_FILE
        }
    };
    if inside {
        // Some readers trim first and would see a file here.
        let hidden = !line.starts_with(['+', '-', '*']) && line.trim_start().starts_with("*** ");
        let next = if place == Place::Named {
            Place::Updated
        } else {
            place
        };
        return (!hidden).then_some(next);
    }
    let line = line.trim();
    if line.is_empty() {
        return Some(Place::Outside);
    }
    if let Some(name) = line.strip_prefix(ADD) {
        changes.push(FileChange::Write(path(name)?));
        return Some(Place::Added);
    }
    if let Some(name) = line.strip_prefix(DELETE) {
        changes.push(FileChange::Delete(path(name)?));
        return Some(Place::Outside);
    }
    if let Some(name) = line.strip_prefix(UPDATE) {
        changes.push(FileChange::Write(path(name)?));
        return Some(Place::Named);
    }
    let name = line.strip_prefix(MOVE)?;
    if place != Place::Named {
        return None;
    }
    let FileChange::Write(from) = changes.pop()? else {
        return None;
    };
    changes.push(FileChange::Move {
        from,
        to: path(name)?,
    });
    Some(Place::Updated)
}

fn path(name: &str) -> Option<PathBuf> {
    let name = name.trim();
    (!name.is_empty() && !name.contains('\0')).then(|| PathBuf::from(name))
}
