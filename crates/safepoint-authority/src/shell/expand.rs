//! From words as they are written to words as a program gets them.
//!
//! What is not known before the line runs becomes dynamic; braces and patterns
//! become what they stand for. Substitutions are followed elsewhere: here they
//! are only unknown text.

use crate::deed::Surroundings;

use super::brace::braces;
use super::draft::Draft;
use super::home;
use super::state::{Argument, State, Value};
use super::syntax::{Operation, Parameter, Piece, Word};
use super::tilde::TildeContext;

/// More words than this from one are not followed.
pub(super) const WORDS: usize = 64;

/// A part of a word, with its value.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    /// An unquoted letter.
    Letter(char),
    /// Text that is taken as it is.
    Text(String),
    /// Text of unquoted origin, whose patterns count.
    Loose(String),
    /// Some number.
    Number,
    /// One of several.
    One(Vec<Argument>),
    /// Anything.
    Unknown { splits: bool },
}

/// A command that can turn out in more ways than this is not followed in each.
const WAYS: usize = 32;

/// What expansion needs to know.
pub(super) struct Expander<'a> {
    pub(super) state: &'a State,
    pub(super) around: &'a Surroundings<'a>,
}

impl Expander<'_> {
    /// The words that a word becomes: each way it can turn out.
    pub(super) fn words(&self, word: &Word, context: TildeContext) -> Vec<Vec<Argument>> {
        if let [Piece::Plain(text)] = word.pieces.as_slice()
            && (!text.contains(['{', '*', '?', '[', '~']) || text == "[" || text == "{}")
        {
            return vec![vec![Argument::Known(text.clone())]];
        }
        if let [Piece::Parameter(parameter)] | [Piece::Quoted(_), Piece::Parameter(parameter)] =
            word.pieces.as_slice()
            && let Some(ways) = self.all(parameter)
        {
            return ways;
        }
        let mut units = Vec::new();
        self.units(&word.pieces, &mut units);
        let Some(several) = braces(&units) else {
            return vec![vec![unknown(word)]];
        };
        // What braces have made is no assignment any more.
        let is_whole = matches!(several.as_slice(), [only] if only.len() == units.len());
        let context = match is_whole {
            true => context,
            false => TildeContext::Other,
        };
        let mut ways: Vec<Vec<Argument>> = vec![Vec::new()];
        for units in several {
            let units = self.tildes(units, context);
            let made = self.assemble(&units, &word.raw);
            let several = made
                .into_iter()
                .map(|argument| argument.into_iter().collect());
            if !multiply(&mut ways, several) {
                return vec![vec![unknown(word)]];
            }
        }
        ways
    }

    /// The words of a command: each way they can turn out, or one in which what differs is
    /// unknown.
    pub(super) fn command(&self, words: &[Word]) -> Vec<Vec<Argument>> {
        let mut ways: Vec<Vec<Argument>> = vec![Vec::new()];
        for word in words {
            let mut several = self.words(word, TildeContext::Command);
            if several.len() * ways.len() > WAYS {
                several = vec![vec![unknown(word)]];
            }
            if let [only] = several.as_slice() {
                for way in &mut ways {
                    way.extend(only.iter().cloned());
                }
            } else {
                multiply(&mut ways, several.into_iter());
            }
        }
        ways
    }

    /// A word that is not split: of an assignment, a redirection, a test.
    pub(super) fn single(&self, word: &Word, context: TildeContext) -> Vec<Argument> {
        let mut units = Vec::new();
        self.units(&word.pieces, &mut units);
        let mut units = self.tildes(units, context);
        for unit in &mut units {
            match unit {
                Unit::Unknown { splits } => *splits = false,
                Unit::Letter(letter) => *unit = Unit::Loose(letter.to_string()),
                _ => {}
            }
        }
        self.assemble(&units, &word.raw)
            .into_iter()
            .map(|argument| argument.unwrap_or_else(|| Argument::Known(String::new())))
            .collect()
    }

    /// `"$@"`, `"${files[@]}"`, or an unquoted variable that alone is several words.
    fn all(&self, parameter: &Parameter) -> Option<Vec<Vec<Argument>>> {
        let value = match (&parameter.operation, parameter.name.as_str()) {
            (Operation::Value, "@" | "*") => {
                return self.state.arguments.clone().map(|all| vec![all]);
            }
            (Operation::Value | Operation::Element(_), name) => self.state.variables.get(name)?,
            _ => return None,
        };
        match (value, &parameter.operation) {
            (Value::All(all), Operation::Element(index)) => match index.as_slice() {
                [Piece::Quoted(every)] if every == "@" || every == "*" => Some(vec![all.clone()]),
                _ => Some(all.iter().map(|one| vec![one.clone()]).collect()),
            },
            // The first in some shells, all in others.
            (Value::All(all), _) => Some(vec![
                all.first().cloned().into_iter().collect(),
                all.clone(),
            ]),
            (Value::One(list), Operation::Value) if !parameter.quoted => Some(
                list.iter()
                    .map(|value| match value {
                        Argument::Known(text) => text.split_ascii_whitespace().map(loose).collect(),
                        other => vec![other.clone()],
                    })
                    .collect(),
            ),
            _ => None,
        }
    }

    fn units(&self, pieces: &[Piece], units: &mut Vec<Unit>) {
        for piece in pieces {
            match piece {
                Piece::Plain(text) => units.extend(text.chars().map(Unit::Letter)),
                Piece::Quoted(text) => units.push(Unit::Text(text.clone())),
                Piece::Tilde(account) => units.push(self.tilde(account)),
                Piece::Parameter(parameter) => units.push(self.parameter(parameter)),
                Piece::Substitution { list, quoted } => {
                    units.push(match super::walk::prints(list) {
                        Some("pwd") => self.directory(*quoted),
                        Some("date" | "nproc" | "id") => Unit::Number,
                        Some("mktemp") => Unit::One(vec![Argument::Pattern {
                            directory: "/tmp".to_owned(),
                            text: "/tmp/*".to_owned(),
                        }]),
                        _ => Unit::Unknown { splits: !quoted },
                    });
                }
                Piece::Process { .. } => units.push(Unit::Text("/dev/fd/63".to_owned())),
                Piece::Arithmetic(_) => units.push(Unit::Number),
            }
        }
    }

    pub(super) fn directory(&self, quoted: bool) -> Unit {
        match self.state.directories.as_deref() {
            Some([only]) => Unit::Text(only.display().to_string()),
            Some(several) => Unit::One(
                several
                    .iter()
                    .map(|directory| Argument::Known(directory.display().to_string()))
                    .collect(),
            ),
            None => Unit::Unknown { splits: !quoted },
        }
    }

    fn parameter(&self, parameter: &Parameter) -> Unit {
        let unknown = Unit::Unknown {
            splits: !parameter.quoted,
        };
        let name = parameter.name.as_str();
        match (&parameter.operation, name) {
            (Operation::Length, _) | (Operation::Value, "?" | "#" | "$" | "!") => {
                return Unit::Number;
            }
            (Operation::Value, "PWD") if !self.state.variables.contains_key("PWD") => {
                return self.directory(parameter.quoted);
            }
            (Operation::Value, "HOME") if !self.state.variables.contains_key("HOME") => {
                return home::of_variable(self.around, parameter.quoted);
            }
            (
                Operation::Value,
                "RANDOM" | "SECONDS" | "LINENO" | "UID" | "EUID" | "PPID" | "BASHPID"
                | "EPOCHSECONDS",
            ) if !self.state.variables.contains_key(name) => return Unit::Number,
            _ => {}
        }
        let positional = name.parse::<usize>().ok().and_then(|number| {
            let arguments = self.state.arguments.as_ref()?;
            let argument = arguments.get(number.checked_sub(1)?)?;
            Some(Value::One(vec![argument.clone()]))
        });
        let Some(value) = positional
            .as_ref()
            .or_else(|| self.state.variables.get(name))
        else {
            return unknown;
        };
        let (Value::One(list) | Value::All(list)) = value else {
            return unknown;
        };
        match &parameter.operation {
            Operation::Value | Operation::Element(_) => match list.as_slice() {
                [Argument::Known(text)] if parameter.quoted => Unit::Text(text.clone()),
                [Argument::Known(text)] if text.contains([' ', '\t', '\n']) => unknown,
                [Argument::Known(text)] => Unit::Loose(text.clone()),
                _ => Unit::One(list.clone()),
            },
            // A name without its ending, or without its directory, is a name beside the first.
            Operation::Cut { suffix, pattern } => {
                let [Piece::Plain(pattern)] = pattern.as_slice() else {
                    return unknown;
                };
                if *suffix && pattern.starts_with('.') && !pattern.contains('/') {
                    Unit::One(list.iter().map(beside).collect())
                } else if !suffix && pattern == "*/" {
                    Unit::Loose("*".to_owned())
                } else {
                    unknown
                }
            }
            _ => unknown,
        }
    }

    /// The word that these make, each way it can turn out.
    fn assemble(&self, units: &[Unit], written: &str) -> Vec<Option<Argument>> {
        let mut drafts = vec![Draft::default()];
        for unit in units {
            match unit {
                Unit::Letter(letter) => {
                    for draft in &mut drafts {
                        draft.letter(*letter);
                    }
                }
                Unit::Text(text) => {
                    for draft in &mut drafts {
                        draft.any = true;
                        draft.text.push_str(text);
                    }
                }
                Unit::Loose(text) => {
                    for draft in &mut drafts {
                        for letter in text.chars() {
                            draft.letter(letter);
                        }
                    }
                }
                Unit::Number => {
                    for draft in &mut drafts {
                        draft.glob();
                        draft.text.push('*');
                    }
                }
                Unit::Unknown { splits } => {
                    for draft in &mut drafts {
                        draft.unknown(*splits);
                    }
                }
                Unit::One(list) => {
                    let mut next = Vec::new();
                    for draft in &drafts {
                        for value in list {
                            let mut draft = draft.clone();
                            draft.value(value);
                            next.push(draft);
                        }
                    }
                    if next.len() > WORDS {
                        next.truncate(1);
                        for draft in &mut next {
                            draft.unknown(true);
                        }
                    }
                    drafts = next;
                }
            }
        }
        drafts
            .into_iter()
            .map(|draft| draft.finish(written))
            .collect()
    }
}

/// Text whose patterns count, as an argument.
fn loose(text: &str) -> Argument {
    let mut draft = Draft::default();
    for letter in text.chars() {
        draft.letter(letter);
    }
    draft
        .finish(text)
        .unwrap_or_else(|| Argument::Known(text.to_owned()))
}

/// Some name in the same directory.
fn beside(argument: &Argument) -> Argument {
    match argument {
        Argument::Known(text) => {
            let directory = text
                .rfind('/')
                .map_or("", |end| text.get(..end).unwrap_or_default());
            Argument::Pattern {
                directory: directory.to_owned(),
                text: if directory.is_empty() {
                    "*".to_owned()
                } else {
                    format!("{directory}/*")
                },
            }
        }
        other => other.clone(),
    }
}

fn unknown(word: &Word) -> Argument {
    Argument::Dynamic {
        start: String::new(),
        written: word.raw.clone(),
        splits: true,
    }
}

/// Each way, followed by each of these. False when there are too many.
fn multiply(
    ways: &mut Vec<Vec<Argument>>,
    several: impl ExactSizeIterator<Item = Vec<Argument>>,
) -> bool {
    if ways.len() * several.len() > WORDS {
        return false;
    }
    let before = std::mem::take(ways);
    let several: Vec<Vec<Argument>> = several.collect();
    for way in &before {
        for next in &several {
            let mut longer = way.clone();
            longer.extend(next.iter().cloned());
            ways.push(longer);
        }
    }
    true
}
