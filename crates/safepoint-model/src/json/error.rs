//! What can be wrong with a document, and where.

use std::fmt;

use crate::text;

/// How much of a key, a number or a path is repeated in a message.
const SHOWN: usize = 120;

/// A document that was refused, with the place where reading stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadError {
    /// What is wrong.
    pub kind: ReadErrorKind,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The bytes before the place.
    pub offset: usize,
    /// JSON Pointer to the innermost value that was being read; empty for the document itself.
    pub path: String,
}

/// What is wrong with a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadErrorKind {
    /// The document is longer than the limit.
    #[error("document of {length} bytes is too large: at most {limit} are read")]
    TooLarge {
        /// The bytes given.
        length: usize,
        /// The bytes allowed.
        limit: usize,
    },
    /// Arrays and objects lie too deep inside each other.
    #[error("value is nested too deeply: at most {limit} levels are read")]
    TooDeep {
        /// The levels allowed.
        limit: usize,
    },
    /// The bytes are not UTF-8.
    #[error("document is not UTF-8")]
    NotUtf8,
    /// The document begins with U+FEFF.
    #[error("document begins with a byte order mark, which JSON does not have")]
    ByteOrderMark,
    /// The document ends too early.
    #[error("document ends where {expected} was expected")]
    End {
        /// What should have come.
        expected: &'static str,
    },
    /// A character that JSON does not have at this place.
    #[error("found `{}` where {expected} was expected", text::line(.found.encode_utf8(&mut [0; 4])).text)]
    Unexpected {
        /// The character.
        found: char,
        /// What should have come.
        expected: &'static str,
    },
    /// A control character stands unescaped in a string.
    #[error("string contains the control character `{}`, which must be escaped", text::line(.found.encode_utf8(&mut [0; 4])).text)]
    Control {
        /// The character.
        found: char,
    },
    /// A backslash is followed by none of the escapes of JSON.
    #[error("string contains an escape that JSON does not have")]
    Escape,
    /// A `\u` escape is one half of a surrogate pair.
    #[error("string contains half of a surrogate pair, which is not a character")]
    LoneSurrogate,
    /// A number begins with a zero that says nothing.
    #[error("number begins with a needless `0`, which some readers take for octal")]
    LeadingZero,
    /// An integer that a double does not hold exactly.
    #[error("`{}` is an integer beyond ±{max}, which not every reader keeps exactly; write it as a string", shown(.number), max = super::MAX_INTEGER)]
    IntegerOutOfRange {
        /// The number as written.
        number: String,
    },
    /// A number beyond the largest double.
    #[error("`{}` is beyond the largest number", shown(.number))]
    NumberOverflow {
        /// The number as written.
        number: String,
    },
    /// An object has the same key twice.
    #[error("key `{}` occurs twice, and readers disagree on which counts", shown(.key))]
    DuplicateKey {
        /// The key, unescaped.
        key: String,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at line {} column {}",
            self.kind, self.line, self.column
        )?;
        write_path(&self.path, f)
    }
}

impl std::error::Error for ReadError {}

/// A document that is not what was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadAsError {
    /// It is not strict JSON.
    Json(ReadError),
    /// It is JSON, but not of the expected type.
    Type {
        /// What was found and what was expected.
        message: String,
        /// JSON Pointer to the value at fault, as far as it is known; empty for the document itself.
        path: String,
    },
}

impl fmt::Display for ReadAsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(error) => error.fmt(f),
            Self::Type { message, path } => {
                f.write_str(&text::line(message).text)?;
                write_path(path, f)
            }
        }
    }
}

impl std::error::Error for ReadAsError {}

/// A value that has no canonical form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// An integer that a double does not hold exactly.
    #[error("`{number}` is an integer beyond ±{max}, which not every reader keeps exactly; make it a string", max = super::MAX_INTEGER)]
    IntegerOutOfRange {
        /// The number.
        number: String,
    },
    /// Infinite, or not a number.
    #[error("JSON has neither infinities nor NaN")]
    NotFinite,
    /// Arrays and objects lie too deep inside each other.
    #[error(
        "value is nested deeper than {} levels, and would not be read back",
        super::MAX_DEPTH
    )]
    TooDeep,
    /// A map has a key that is neither a text nor an integer.
    #[error("a key of a map is neither a text nor an integer")]
    KeyNotText,
    /// Two keys of a map are the same once they are texts.
    #[error("key `{}` occurs twice", shown(.key))]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// The type refused to be written.
    #[error("value cannot be written: {message}")]
    Refused {
        /// Why.
        message: String,
    },
}

impl serde::ser::Error for WriteError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Refused {
            message: message.to_string(),
        }
    }
}

fn write_path(path: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if path.is_empty() {
        return Ok(());
    }
    write!(f, " (in `{}`)", shown(path))
}

fn shown(input: &str) -> String {
    text::shorten(&text::line(input).text, SHOWN)
}
