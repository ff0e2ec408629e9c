//! Reading a patch: what `git diff`, `git format-patch`, `diff -u` and
//! [`crate::text::unified`] write.
//!
//! Text around the patches, as in a mail, is passed over. What belongs to a
//! patch and cannot be understood is refused.

use std::borrow::Cow;

use super::FilePatch;
use super::header::{Names, git_names, mode, name, plain_names};
use super::hunks::read_hunk;
use crate::edit::EditError;
use crate::edit::lines::{LineEnds, check_size, shown};

/// The lines of a patch, and how far it has been read.
pub(super) struct Reader<'a> {
    lines: Vec<&'a [u8]>,
    next: usize,
}

impl<'a> Reader<'a> {
    /// The line `ahead` of the next one, without its line end.
    pub(super) fn peek(&self, ahead: usize) -> Option<&'a [u8]> {
        self.lines.get(self.next + ahead).copied()
    }

    pub(super) fn skip(&mut self) {
        self.next += 1;
    }

    /// Refuses the next line, or the one before when it has just been read.
    pub(super) fn refuse(&self, why: &'static str) -> EditError {
        EditError::NotAPatch {
            line: self.next + 1,
            why,
        }
    }
}

/// The files that a patch changes, in its order.
pub fn parse(patch: &[u8]) -> Result<Vec<FilePatch>, EditError> {
    check_size("the patch", patch)?;
    // Nobody writes headers with CRLF: such a patch was converted on its way.
    // What the file has for line ends is decided when it is applied.
    let patch = match LineEnds::of(patch) {
        LineEnds::CrLf => Cow::Owned(without_returns(patch)),
        _ => Cow::Borrowed(patch),
    };
    let lines: Vec<&[u8]> = patch
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .collect();
    let mut reader = Reader { lines, next: 0 };
    let mut files = Vec::new();
    while let Some(line) = reader.peek(0) {
        if line.starts_with(b"diff --git ") {
            files.push(git_file(&mut reader)?);
        } else if has_header(&reader) {
            files.push(plain_file(&mut reader)?);
        } else if line.starts_with(b"@@@ -") {
            return Err(reader.refuse("a diff of a merge, with several old sides, is not applied"));
        } else if line.starts_with(b"@@ -") {
            // Hunks without a header: the caller knows the file.
            let mut file = FilePatch::default();
            read_hunks(&mut reader, &mut file)?;
            files.push(file);
        } else {
            refuse_binary(&reader, &FilePatch::default())?;
            reader.skip();
        }
    }
    if files.is_empty() {
        return Err(EditError::NotAPatch {
            line: 1,
            why: "it has neither a file header (`---`, `+++`) nor a hunk (`@@`)",
        });
    }
    Ok(files)
}

fn without_returns(patch: &[u8]) -> Vec<u8> {
    let lines = patch.split_inclusive(|byte| *byte == b'\n');
    let mut output = Vec::with_capacity(patch.len());
    for line in lines {
        match line.strip_suffix(b"\r\n") {
            Some(line) => {
                output.extend_from_slice(line);
                output.push(b'\n');
            }
            None => output.extend_from_slice(line),
        }
    }
    output
}

/// Whether the two lines that name a file come next, with a hunk behind them.
fn has_header(reader: &Reader<'_>) -> bool {
    let begins = |ahead, with: &[u8]| {
        let line = reader.peek(ahead);
        line.is_some_and(|line| line.starts_with(with))
    };
    begins(0, b"--- ") && begins(1, b"+++ ") && begins(2, b"@@ -")
}

fn plain_file(reader: &mut Reader<'_>) -> Result<FilePatch, EditError> {
    let (old, new) = header_names(reader)?;
    let (old, new) = plain_names(old, new);
    let mut file = FilePatch {
        old,
        new,
        ..FilePatch::default()
    };
    read_hunks(reader, &mut file)?;
    Ok(file)
}

/// The names of the `---` and the `+++` line, as they stand there.
fn header_names(reader: &mut Reader<'_>) -> Result<Names, EditError> {
    let mut next = |mark: &[u8]| {
        let line = reader.peek(0).unwrap_or_default();
        let found = line.strip_prefix(mark).and_then(name);
        let found = found.ok_or_else(|| reader.refuse("the name of the file cannot be read"))?;
        reader.skip();
        Ok(found)
    };
    Ok((next(b"--- ")?, next(b"+++ ")?))
}

/// One file of `git diff`, from its `diff --git` line on.
fn git_file(reader: &mut Reader<'_>) -> Result<FilePatch, EditError> {
    let first = reader.peek(0).unwrap_or_default();
    let named = git_names(first.strip_prefix(b"diff --git ").unwrap_or_default());
    reader.skip();

    let mut file = FilePatch::default();
    let (mut created, mut deleted) = (false, false);
    let (mut from, mut to) = (None, None);
    while let Some(line) = reader.peek(0) {
        if let Some(text) = line.strip_prefix(b"old mode ") {
            file.old_mode = Some(known_mode(reader, text)?);
        } else if let Some(text) = line.strip_prefix(b"new mode ") {
            file.new_mode = Some(known_mode(reader, text)?);
        } else if let Some(text) = line.strip_prefix(b"new file mode ") {
            (file.new_mode, created) = (Some(known_mode(reader, text)?), true);
        } else if let Some(text) = line.strip_prefix(b"deleted file mode ") {
            (file.old_mode, deleted) = (Some(known_mode(reader, text)?), true);
        } else if let Some(text) = strip_either(line, b"rename from ", b"copy from ") {
            from = Some(known_name(reader, text)?);
            file.copied |= line.starts_with(b"copy");
        } else if let Some(text) = strip_either(line, b"rename to ", b"copy to ") {
            to = Some(known_name(reader, text)?);
        } else if !is_remark(line) {
            break;
        }
        reader.skip();
    }

    let named = match has_header(reader) {
        true => Some(header_names(reader)?),
        false => named,
    };
    (file.old, file.new) = match (from, to, named) {
        (Some(from), Some(to), _) => (Some(from), Some(to)),
        (None, None, Some((old, new))) => super::header::without_prefixes(old, new),
        _ => return Err(reader.refuse("the header does not say which file is meant")),
    };
    if created {
        file.old = None;
    }
    if deleted {
        file.new = None;
    }
    refuse_binary(reader, &file)?;
    if reader.peek(0).is_some_and(|line| line.starts_with(b"@@ -")) {
        read_hunks(reader, &mut file)?;
    }
    Ok(file)
}

/// Lines of a git header that say nothing we need.
fn is_remark(line: &[u8]) -> bool {
    let remarks: [&[u8]; 3] = [b"index ", b"similarity index ", b"dissimilarity index "];
    remarks.iter().any(|remark| line.starts_with(remark))
}

fn strip_either<'a>(line: &'a [u8], one: &[u8], other: &[u8]) -> Option<&'a [u8]> {
    line.strip_prefix(one).or_else(|| line.strip_prefix(other))
}

fn known_mode(reader: &Reader<'_>, text: &[u8]) -> Result<u32, EditError> {
    mode(text).ok_or_else(|| reader.refuse("the mode cannot be read"))
}

fn known_name(reader: &Reader<'_>, text: &[u8]) -> Result<Vec<u8>, EditError> {
    name(text)
        .flatten()
        .ok_or_else(|| reader.refuse("the name of the file cannot be read"))
}

/// Reads hunks as long as there are any.
fn read_hunks(reader: &mut Reader<'_>, file: &mut FilePatch) -> Result<(), EditError> {
    while let Some(line) = reader.peek(0) {
        if !line.starts_with(b"@@ -") {
            break;
        }
        file.hunks.push(read_hunk(reader)?);
    }
    // Lines that a header did not count would be lost without a word.
    let more = match reader.peek(0) {
        // How git signs its mails.
        None | Some(b"-- ") => false,
        Some([b' ' | b'+', ..]) => true,
        Some([b'-', ..]) => !has_header(reader),
        Some(_) => false,
    };
    if more {
        return Err(reader.refuse("the hunk has more lines than its header says"));
    }
    Ok(())
}

/// Refuses what only names a binary file, or has it in git's own coding.
fn refuse_binary(reader: &Reader<'_>, file: &FilePatch) -> Result<(), EditError> {
    let line = reader.peek(0).unwrap_or_default();
    let named = line.starts_with(b"Binary files ") && line.ends_with(b" differ");
    if !named && line != b"GIT binary patch" {
        return Ok(());
    }
    let name = file.new.as_ref().or(file.old.as_ref());
    Err(EditError::BinaryPatch {
        line: reader.next + 1,
        name: shown(name.map_or(line, Vec::as_slice)),
    })
}
