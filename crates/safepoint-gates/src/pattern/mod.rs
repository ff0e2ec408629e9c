//! Patterns of action names: one matcher for gates, policies and capabilities.
//!
//! A name is made of segments with dots between them. A `*` that is a whole
//! segment stands for one or more segments; inside a segment it stands for any
//! run of characters of that segment, also an empty one. Letters are compared
//! as they are.
//!
//! ```text
//! ticket.*         ticket.get, ticket.comment.add     not ticket
//! *.delete         ticket.delete, ticket.soft.delete  not delete
//! admin.*.delete   admin.user.delete                  not admin.delete
//! file.delete_*    file.delete_all, file.delete_      not file.delete_all.now
//! ```
//!
//! A pattern never matches a name that is empty, has an empty segment or is
//! longer than 4,096 bytes. The cost of one match is at most the product of
//! both lengths: nothing here goes back more than one `*`.

mod set;
#[cfg(test)]
mod tests;

use std::fmt;

use safepoint_model::text;

pub use set::PatternSet;

/// The longest pattern, in characters.
const MAX_LENGTH: usize = 1_000;
/// The most `*` in one pattern.
const MAX_WILDCARDS: usize = 16;
/// The longest name that is looked at, in bytes.
const MAX_ACTION: usize = 4_096;

/// A pattern that cannot be one.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{pattern}` is not a pattern of actions: {reason}")]
pub struct PatternError {
    pattern: String,
    reason: &'static str,
}

/// A name of actions, or many: `ticket.delete`, `ticket.*`, `*.delete`, `admin.*.delete`, `file.delete_*`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    text: String,
}

impl Pattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        match fault(text) {
            None => Ok(Self {
                text: text.to_owned(),
            }),
            Some(reason) => Err(PatternError {
                pattern: text::shorten(&text::line(text).text, 80),
                reason,
            }),
        }
    }

    /// Whether it stands for `action`.
    pub fn matches(&self, action: &str) -> bool {
        if !is_action(action) {
            return false;
        }
        if self.exact().is_some() {
            return self.text == action;
        }
        let wanted: Vec<Segment<'_>> = self.segments().collect();
        let given: Vec<&str> = action.split('.').collect();
        // One or more is one, and then any number.
        let mut parts = Vec::with_capacity(wanted.len() + MAX_WILDCARDS);
        for segment in wanted {
            if matches!(segment, Segment::Star) {
                parts.push(Part::One(Segment::Star));
                parts.push(Part::Any);
            } else {
                parts.push(Part::One(segment));
            }
        }
        wild(&parts, &given, |segment, name| segment.matches(name))
    }

    /// The one action it stands for, if it is just a name.
    pub fn exact(&self) -> Option<&str> {
        (!self.text.contains('*')).then_some(self.text.as_str())
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn segments(&self) -> impl Iterator<Item = Segment<'_>> {
        self.text.split('.').map(|segment| match segment {
            "*" => Segment::Star,
            glob if glob.contains('*') => Segment::Glob(glob),
            name => Segment::Name(name),
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// One segment of a pattern.
#[derive(Clone, Copy, Debug)]
enum Segment<'a> {
    /// One or more segments of any kind.
    Star,
    /// A segment with `*` inside.
    Glob(&'a str),
    /// This segment.
    Name(&'a str),
}

impl Segment<'_> {
    fn matches(self, name: &str) -> bool {
        match self {
            Self::Star => true,
            Self::Glob(glob) => glob_matches(glob, name),
            Self::Name(wanted) => wanted == name,
        }
    }
}

/// A place in a pattern for [`wild`].
#[derive(Clone, Copy)]
enum Part<T> {
    /// Takes one unit.
    One(T),
    /// Takes any number of units.
    Any,
}

/// Whether `parts` take all of `units`. When something does not fit, only the
/// last `Any` takes one more: earlier ones have no reason to, as every other
/// part takes exactly one unit.
fn wild<T: Copy, U: Copy>(parts: &[Part<T>], units: &[U], fits: impl Fn(T, U) -> bool) -> bool {
    let (mut part, mut unit) = (0, 0);
    let mut resume: Option<(usize, usize)> = None;
    while let Some(here) = units.get(unit) {
        match parts.get(part) {
            Some(Part::One(wanted)) if fits(*wanted, *here) => {
                part += 1;
                unit += 1;
            }
            Some(Part::Any) => {
                part += 1;
                resume = Some((part, unit));
            }
            _ => {
                let Some((after, taken)) = resume else {
                    return false;
                };
                resume = Some((after, taken + 1));
                part = after;
                unit = taken + 1;
            }
        }
    }
    parts
        .get(part..)
        .is_some_and(|rest| rest.iter().all(|part| matches!(part, Part::Any)))
}

/// Whether `glob`, in which `*` is any run of characters, stands for all of `text`.
///
/// Piece by piece: the first is at the start, the last at the end, and each of
/// the others as early as it can be.
pub(crate) fn glob_matches(glob: &str, text: &str) -> bool {
    let Some((first, rest)) = glob.split_once('*') else {
        return glob == text;
    };
    let Some(mut left) = text.strip_prefix(first) else {
        return false;
    };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    match left.strip_suffix(last) {
        Some(inner) => left = inner,
        None => return false,
    }
    for piece in middle.split('*').filter(|piece| !piece.is_empty()) {
        match left.split_once(piece) {
            Some((_, after)) => left = after,
            None => return false,
        }
    }
    true
}

/// Why `text` is no pattern, if it is none.
fn fault(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty; write `*` for every action");
    }
    if text.chars().nth(MAX_LENGTH).is_some() {
        return Some("it is longer than 1,000 characters");
    }
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("it has white space or control characters, which no action has");
    }
    if text.split('.').any(str::is_empty) {
        return Some("it has an empty segment; write something between the dots");
    }
    // Elsewhere `**` means more than `*`. Here it would mean less than a steward expects.
    if text.contains("**") {
        return Some("`**` has no meaning; a `*` between dots already stands for many segments");
    }
    if text.matches('*').count() > MAX_WILDCARDS {
        return Some("it has more than 16 wildcards");
    }
    None
}

/// Whether `action` can be the name of an action at all.
fn is_action(action: &str) -> bool {
    !action.is_empty() && action.len() <= MAX_ACTION && !action.split('.').any(str::is_empty)
}
