//! Why a content was not changed: what is wrong, where, and what to do next.

use std::fmt;

use super::Format;

/// So many lines or hunks are named in a message.
pub(super) const MOST_NUMBERS: usize = 10;

/// How a text differs from the one that was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// In nothing but line ends: LF here, CRLF there, or none at the end.
    LineEnds,
    /// In nothing but white space.
    WhiteSpace,
    /// In more than that.
    Words,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LineEnds => "differs only in its line ends",
            Self::WhiteSpace => "differs only in white space",
            Self::Words => "is the most similar",
        })
    }
}

/// The line that comes closest to a text that was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// Its number, from 1.
    pub line: usize,
    /// The line, made harmless and short.
    pub text: String,
    /// How the text there differs.
    pub difference: Difference,
}

/// Where a hunk and the file do not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HunkDifference {
    /// The line of the file, from 1.
    pub line: usize,
    /// What the hunk has there.
    pub expected: String,
    /// What the file has there; nothing behind its end.
    pub found: Option<String>,
    /// How they differ.
    pub difference: Difference,
}

/// Where in a structured document, and by which operation of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The operation, from 1, when there are several.
    pub operation: Option<usize>,
    /// The JSON pointer.
    pub pointer: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(operation) = self.operation {
            write!(f, "operation {operation}: ")?;
        }
        match self.pointer.as_str() {
            "" => f.write_str("the whole document"),
            pointer => write!(f, "`{pointer}`"),
        }
    }
}

/// Why a content was not changed. There is no output then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The content is not text.
    #[error("the file is binary: {why} at byte {offset}")]
    Binary {
        /// What shows it.
        why: &'static str,
        /// Where, from 0.
        offset: usize,
    },
    /// There is too much of something.
    #[error("{what} has {size} {unit}, and {most} is the most")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// How much.
        size: usize,
        /// How much may be.
        most: usize,
        /// What is counted: bytes, lines, values.
        unit: &'static str,
    },

    /// There is nothing to look for.
    #[error("change {change}: `old` is empty, and the file is not")]
    EmptyOld {
        /// Which change, from 1.
        change: usize,
    },
    /// The file does not have this line.
    #[error("change {change}: there is no line {line}, the file has {lines}")]
    LineOutOfRange {
        /// Which change, from 1.
        change: usize,
        /// The line that was asked for.
        line: usize,
        /// How many there are.
        lines: usize,
    },
    /// `old` is not there.
    #[error(
        "change {change}: `old` does not occur{}{}",
        in_line(*line),
        told(nearest.as_ref(), elsewhere)
    )]
    NotFound {
        /// Which change, from 1.
        change: usize,
        /// The line in which it should begin.
        line: Option<usize>,
        /// What comes closest.
        nearest: Option<Nearest>,
        /// Other lines in which it does begin, the first few.
        elsewhere: Vec<usize>,
    },
    /// `old` is there more than once.
    #[error(
        "change {change}: `old` occurs {count} times{}",
        in_lines(*line, lines, *count)
    )]
    Several {
        /// Which change, from 1.
        change: usize,
        /// The line that was asked for.
        line: Option<usize>,
        /// The lines in which it begins, the first few.
        lines: Vec<usize>,
        /// How often it occurs.
        count: usize,
    },
    /// Two changes touch the same text.
    #[error("changes {first} and {second} overlap in line {line}")]
    Overlap {
        /// One, from 1.
        first: usize,
        /// The other.
        second: usize,
        /// Where, in the original.
        line: usize,
    },

    /// The text is not a unified diff.
    #[error("the patch cannot be read at its line {line}: {why}")]
    NotAPatch {
        /// The line of the patch, from 1.
        line: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// The patch is for a binary file.
    #[error("the patch changes the binary file `{name}`, at its line {line}")]
    BinaryPatch {
        /// The line of the patch, from 1.
        line: usize,
        /// Which file, as far as the patch says so.
        name: String,
    },
    /// Hunks that do not follow one another.
    #[error("hunk {hunk} begins at line {line}, before the hunk in front of it ends")]
    HunkOrder {
        /// Which, from 1.
        hunk: usize,
        /// Where it says it begins.
        line: usize,
    },
    /// A hunk contradicts itself.
    #[error("hunk {hunk} cannot be used: {why}")]
    BadHunk {
        /// Which, from 1.
        hunk: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What a hunk expects is nowhere in the file.
    #[error(
        "hunk {hunk} does not apply at line {line} nor anywhere else{}",
        clash(difference.as_ref())
    )]
    HunkNotFound {
        /// Which, from 1.
        hunk: usize,
        /// Where it should be.
        line: usize,
        /// The first line that does not agree.
        difference: Option<HunkDifference>,
    },
    /// What a hunk expects is not where it should be, and elsewhere more than once.
    #[error(
        "hunk {hunk} does not apply at line {line}, and elsewhere in several places: {}",
        numbered("line", lines)
    )]
    HunkSeveral {
        /// Which, from 1.
        hunk: usize,
        /// Where it should be.
        line: usize,
        /// Where it could be, the first few.
        lines: Vec<usize>,
    },
    /// Everything that the patch does is done.
    #[error("the patch is applied already")]
    AlreadyApplied,
    /// Some of what the patch does is done.
    #[error(
        "the patch is applied in part: {} already, {} not",
        numbered("hunk", applied),
        numbered("hunk", missing)
    )]
    PartlyApplied {
        /// The hunks that are, from 1.
        applied: Vec<usize>,
        /// Those that are not.
        missing: Vec<usize>,
    },
    /// The patch changes a file that is not there.
    #[error("the patch changes a file that does not exist")]
    NoFile,
    /// The patch creates a file that is there.
    #[error("the patch creates a file that exists already, with another content")]
    FileExists,
    /// The patch deletes a file of which something would be left.
    #[error("the patch deletes the file, but does not have all of its lines")]
    NotAllDeleted,

    /// The document is not of its format.
    #[error("the file is not valid {format}: {why} at line {line} column {column}")]
    Syntax {
        /// Which format.
        format: Format,
        /// What is wrong.
        why: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
    },
    /// A key stands twice in one mapping.
    #[error("key `{key}` occurs twice in one {format} mapping, in lines {first} and {line}")]
    DuplicateKey {
        /// Which format.
        format: Format,
        /// The key.
        key: String,
        /// The line of the first.
        first: usize,
        /// The line of the second.
        line: usize,
    },
    /// Nested too deep.
    #[error("{what} is nested deeper than {most} levels")]
    TooDeep {
        /// What is.
        what: &'static str,
        /// How deep it may be.
        most: usize,
    },
    /// The change itself cannot be understood.
    #[error("{}{why}", by_operation(*operation))]
    BadChange {
        /// Which operation, from 1.
        operation: Option<usize>,
        /// What is wrong with it.
        why: String,
    },
    /// A pointer leads nowhere.
    #[error("{place} does not exist: {why}")]
    Missing {
        /// Where.
        place: Place,
        /// How far it goes, and what is there.
        why: String,
    },
    /// A `test` did not hold.
    #[error("{place} is {found}, and the test wants {wanted}")]
    TestFailed {
        /// Where.
        place: Place,
        /// What is there.
        found: String,
        /// What should be.
        wanted: String,
    },
    /// Something that the format allows stands in the way of an exact edit.
    #[error("{place} cannot be changed exactly: {why} (line {line})")]
    Obstacle {
        /// Where.
        place: Place,
        /// What stands there.
        why: &'static str,
        /// The line, from 1.
        line: usize,
    },
    /// The format has no way to write this.
    #[error("`{pointer}` cannot be written as {format}: {why}")]
    Unwritable {
        /// Which format.
        format: Format,
        /// Where it should go.
        pointer: String,
        /// Why not.
        why: &'static str,
    },
    /// What was written does not read back as what was asked for.
    #[error("the {format} document cannot be changed exactly: {why}")]
    NotExact {
        /// Which format.
        format: Format,
        /// What went wrong.
        why: &'static str,
    },
}

impl EditError {
    /// What to do next.
    pub fn suggestion(&self) -> String {
        let text = match self {
            Self::Binary { .. } => "write the whole file instead",
            Self::TooLarge { .. } => "change it in smaller pieces, or write it with a program",
            Self::EmptyOld { .. } => {
                "give the text that stands before or behind the place as `old`, and again in `new`"
            }
            Self::LineOutOfRange { .. } => "read the file again, or leave `line` out",
            Self::NotFound {
                elsewhere, nearest, ..
            } => return not_found(elsewhere, nearest.as_ref()),
            Self::Several { line: None, .. } => {
                "make `old` longer until it is unique, give its `line`, or ask for all of them"
            }
            Self::Several { .. } => "make `old` longer until it is unique, or ask for all of them",
            Self::Overlap { .. } => "make one change of the two",
            Self::NotAPatch { .. } | Self::BadHunk { .. } => {
                "give a unified diff as `git diff` or `diff -u` writes it"
            }
            Self::BinaryPatch { .. } => "leave that file out of the patch and write it whole",
            Self::HunkOrder { .. } => "put the hunks in the order of their lines, without overlap",
            Self::HunkNotFound { .. } => {
                "read the file again and make the patch from what is there now"
            }
            Self::HunkSeveral { .. } => {
                "correct the line number of the hunk, or give it more context"
            }
            Self::AlreadyApplied => "nothing is left to do",
            Self::PartlyApplied { .. } => "make a patch of the missing hunks alone",
            Self::NoFile => "check the name, or make a patch from `/dev/null`",
            Self::FileExists => "make a patch from what is there now",
            Self::NotAllDeleted => "look at what is in the file now, then delete it itself",
            Self::Syntax { .. } | Self::DuplicateKey { .. } => {
                "correct the file first, with an edit of its text"
            }
            Self::TooDeep { .. } => "edit the text instead",
            Self::BadChange { .. } => {
                "give a JSON Patch (RFC 6902) as a list of operations, or a JSON Merge Patch (RFC 7386)"
            }
            Self::Missing { .. } => "read the file again and correct the pointer",
            Self::TestFailed { .. } => "read the file again: it is not what the patch was made for",
            Self::Obstacle { .. } | Self::NotExact { .. } => "edit the text instead",
            Self::Unwritable { .. } => "choose a value that the format has",
        };
        text.to_owned()
    }
}

fn not_found(elsewhere: &[usize], nearest: Option<&Nearest>) -> String {
    match (elsewhere, nearest) {
        ([line], _) => format!("give line {line}, or leave `line` out"),
        ([_, ..], _) => "give one of these lines".to_owned(),
        (_, Some(nearest)) if nearest.difference == Difference::LineEnds => format!(
            "give `old` with the line ends that the file has at line {}",
            nearest.line
        ),
        (_, Some(nearest)) => format!(
            "read the file from line {} and give `old` as it stands there, white space included",
            nearest.line
        ),
        (_, None) => "read the file again: nothing in it is similar".to_owned(),
    }
}

fn in_line(line: Option<usize>) -> String {
    line.map_or(String::new(), |line| format!(" in line {line}"))
}

/// The lines in which something occurs `count` times. Of many, only the first are looked for.
fn in_lines(line: Option<usize>, lines: &[usize], count: usize) -> String {
    match line {
        Some(_) => in_line(line),
        None if count > MOST_NUMBERS && lines.len() <= MOST_NUMBERS => {
            format!(", first in {}", numbered("line", lines))
        }
        None => format!(" in {}", numbered("line", lines)),
    }
}

fn by_operation(operation: Option<usize>) -> String {
    operation.map_or(String::new(), |operation| {
        format!("operation {operation}: ")
    })
}

fn told(nearest: Option<&Nearest>, elsewhere: &[usize]) -> String {
    if !elsewhere.is_empty() {
        return format!(", but in {}", numbered("line", elsewhere));
    }
    nearest.map_or(String::new(), |nearest| {
        format!(
            "; line {}, `{}`, {}",
            nearest.line, nearest.text, nearest.difference
        )
    })
}

fn clash(difference: Option<&HunkDifference>) -> String {
    let Some(difference) = difference else {
        return String::new();
    };
    let HunkDifference { line, expected, .. } = difference;
    match (&difference.found, difference.difference) {
        (None, _) => format!(": it wants `{expected}` in line {line}, behind the end of the file"),
        (Some(found), Difference::Words) => {
            format!(": line {line} is `{found}` and not `{expected}`")
        }
        (Some(found), difference) => format!(": line {line}, `{found}`, {difference}"),
    }
}

/// `lines 1, 2 and 40`; a list that is not whole ends with `…`.
fn numbered(what: &str, numbers: &[usize]) -> String {
    let mut output = what.to_owned();
    if numbers.len() != 1 {
        output.push('s');
    }
    for (place, number) in numbers.iter().take(MOST_NUMBERS).enumerate() {
        output.push_str(match place {
            0 => " ",
            place if place + 1 == numbers.len() => " and ",
            _ => ", ",
        });
        output.push_str(&number.to_string());
    }
    if numbers.len() > MOST_NUMBERS {
        output.push_str(", …");
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_23_messages_say_what_and_where() {
        let several = EditError::Several {
            change: 2,
            line: None,
            lines: vec![3, 7, 9],
            count: 3,
        };
        assert_eq!(
            several.to_string(),
            "change 2: `old` occurs 3 times in lines 3, 7 and 9"
        );
        let many = EditError::Several {
            change: 1,
            line: Some(3),
            lines: vec![3],
            count: 5,
        };
        assert_eq!(many.to_string(), "change 1: `old` occurs 5 times in line 3");
        let test = EditError::TestFailed {
            place: Place {
                operation: Some(4),
                pointer: String::new(),
            },
            found: "1".to_owned(),
            wanted: "2".to_owned(),
        };
        assert_eq!(
            test.to_string(),
            "operation 4: the whole document is 1, and the test wants 2"
        );
    }

    #[test]
    fn st_23_errors_stay_small() {
        assert!(size_of::<EditError>() <= 128);
    }
}
