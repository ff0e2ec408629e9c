//! Reading one hunk: as many lines as its header counts.

use super::parse::Reader;
use crate::edit::EditError;
use crate::text::{Hunk, Line, Side};

/// The header of a hunk: `@@ -1,2 +3,4 @@`.
struct Header {
    old: (usize, usize),
    new: (usize, usize),
}

/// Reads the hunk whose header comes next.
pub(super) fn read_hunk(reader: &mut Reader<'_>) -> Result<Hunk, EditError> {
    let header = reader.peek(0).and_then(header);
    let Some(Header { old, new }) = header else {
        return Err(reader.refuse("a hunk begins like `@@ -1,2 +3,4 @@`"));
    };
    if (old.0 == 0 && old.1 > 0) || (new.0 == 0 && new.1 > 0) {
        return Err(reader.refuse("lines are counted from 1"));
    }
    reader.skip();

    let mut lines: Vec<Line> = Vec::new();
    let (mut old_left, mut new_left) = (old.1, new.1);
    // Which sides have had a line without an end, behind which none may come.
    let (mut old_ended, mut new_ended) = (false, false);
    loop {
        let line = reader.peek(0);
        if let (Some([b'\\', ..]), Some(last)) = (line, lines.last_mut()) {
            if last.text.pop() != Some(b'\n') {
                return Err(reader.refuse("a line end is taken away twice"));
            }
            old_ended |= last.side != Side::Added;
            new_ended |= last.side != Side::Removed;
            reader.skip();
            continue;
        }
        if old_left == 0 && new_left == 0 {
            break;
        }
        let (side, text): (Side, &[u8]) = match line {
            Some([b' ', text @ ..]) => (Side::Context, text),
            Some([b'-', text @ ..]) => (Side::Removed, text),
            Some([b'+', text @ ..]) => (Side::Added, text),
            // Editors and mailers cut the blank of an empty line of context.
            Some(text @ (b"" | b"\r")) => (Side::Context, text),
            Some(_) => {
                return Err(reader.refuse("a line of a hunk begins with ` `, `-`, `+` or `\\`"));
            }
            None => return Err(reader.refuse("the patch ends in the middle of a hunk")),
        };
        let (in_old, in_new) = (side != Side::Added, side != Side::Removed);
        if (in_old && old_left == 0) || (in_new && new_left == 0) {
            return Err(reader.refuse("the hunk has more lines than its header says"));
        }
        if (in_old && old_ended) || (in_new && new_ended) {
            return Err(reader.refuse("a line follows one that has no line end"));
        }
        old_left -= usize::from(in_old);
        new_left -= usize::from(in_new);
        lines.push(Line {
            side,
            text: [text, b"\n"].concat(),
        });
        reader.skip();
    }
    Ok(Hunk {
        old_start: old.0,
        old_lines: old.1,
        new_start: new.0,
        new_lines: new.1,
        lines,
    })
}

fn header(line: &[u8]) -> Option<Header> {
    let line = line.strip_prefix(b"@@ -")?;
    // Behind the second mark git shows a line of the file, which may be anything.
    let end = line.windows(3).position(|part| part == b" @@")?;
    let ranges = std::str::from_utf8(line.get(..end)?).ok()?;
    let (old, new) = ranges.split_once(" +")?;
    Some(Header {
        old: range(old)?,
        new: range(new)?,
    })
}

/// `12` or `12,3`.
fn range(text: &str) -> Option<(usize, usize)> {
    let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
    Some((number(start)?, number(lines)?))
}

fn number(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    // Twice of it still has to fit.
    let number = text.parse().ok().filter(|number| *number < usize::MAX / 4);
    number.filter(|_| digits)
}
