//! Lengths, words and patterns that an answer must fulfil.
//!
//! - `min_length`, `max_length`: characters of the text without white space at
//!   its ends, composed (NFC). What cannot be seen does not help to reach the
//!   minimum, and counts against the maximum.
//! - `must_contain`: the text occurs, in either letter case and any compatible
//!   form, with any white space where it has white space. A look-alike does not
//!   count: what is asked for must really be there.
//! - `must_not_contain`: the text does not occur, nor anything that looks like
//!   it: letters of other scripts, marks on letters, zero-width characters,
//!   fullwidth letters, `1` for `l` and `0` for `o`. Single letters with
//!   something between them are read as a word: `h-a-c-k`, `h a c k`, `h.a.c.k`.
//!   Not caught: other parts with something between them (`ha-ck`), letters
//!   swapped for digits in other ways (`h4ck`), other words for the same. As
//!   things that look alike are one, `modem` is also found in `modern`.
//! - `pattern`: a regular expression that matches somewhere in the answer as it
//!   was written. It takes time in proportion to the answer; its size is limited.
//!
//! Both kinds of words are found inside of longer words, too.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use safepoint_model::text;
use unicode_normalization::UnicodeNormalization;

use super::{Fault, QuestionError};
use crate::atlas::AnswerValidation;
use crate::keyword::fold::{Case, look, plain, seen};

/// The longest pattern, in characters.
const MAX_PATTERN: usize = 1_000;
/// The largest compiled pattern, and its cache, in bytes.
const MAX_COMPILED: usize = 1 << 20;
/// About this size an expression certainly compiles.
const SURELY_FITS: usize = MAX_COMPILED / 8;

/// What an answer must fulfil, ready for use.
#[derive(Debug, Default)]
pub(super) struct Checks {
    min_length: Option<usize>,
    max_length: Option<usize>,
    wanted: Vec<Word>,
    forbidden: Vec<Word>,
    pattern: Option<Expression>,
}

/// A regular expression, compiled when it is first tried: that takes long, and most never are.
#[derive(Debug)]
struct Expression {
    written: String,
    compiled: OnceLock<Option<Regex>>,
}

impl Expression {
    /// Whether it matches. One that cannot be compiled after all matches nothing.
    fn is_match(&self, answer: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.written).ok());
        compiled
            .as_ref()
            .is_some_and(|regex| regex.is_match(answer))
    }
}

/// A text, as it was written and as it is looked for.
#[derive(Debug)]
struct Word {
    written: String,
    form: String,
}

impl Checks {
    pub(super) fn compile(validation: &AnswerValidation) -> Result<Self, QuestionError> {
        let (min_length, max_length) = (validation.min_length, validation.max_length);
        if let (Some(min), Some(max)) = (min_length, max_length)
            && min > max
        {
            let message = format!("no answer has at least {min} and at most {max} characters");
            return Err(QuestionError::new("/validation/min_length", message));
        }
        let wanted = words(&validation.must_contain, "must_contain", folded)?;
        let forbidden = words(&validation.must_not_contain, "must_not_contain", looked)?;
        for (index, word) in wanted.iter().enumerate() {
            let looks = looked(&word.written);
            if let Some(other) = forbidden.iter().find(|other| looks.contains(&other.form)) {
                let message = format!(
                    "an answer with `{}` has `{}` in it, which `must_not_contain` forbids",
                    text::line(&word.written).text,
                    text::line(&other.written).text
                );
                let pointer = format!("/validation/must_contain/{index}");
                return Err(QuestionError::new(pointer, message));
            }
        }
        Ok(Self {
            min_length,
            max_length,
            wanted,
            forbidden,
            pattern: validation.pattern.as_deref().map(pattern).transpose()?,
        })
    }

    /// Adds what is wrong with an answer to `faults`.
    pub(super) fn judge(&self, answer: &str, faults: &mut Vec<Fault>) {
        self.length(answer, faults);
        if !self.wanted.is_empty() {
            let form = folded(answer);
            for word in self.wanted.iter().filter(|word| !form.contains(&word.form)) {
                let message = format!("the answer must contain `{}`", shown(&word.written));
                faults.push(("must_contain", message));
            }
        }
        if !self.forbidden.is_empty() {
            let form = looked(answer);
            let spelt = spelt(&form);
            for word in &self.forbidden {
                if form.contains(&word.form) || spelt.contains(&word.form) {
                    let message = format!("the answer must not contain `{}`", shown(&word.written));
                    faults.push(("must_not_contain", message));
                }
            }
        }
        if let Some(pattern) = &self.pattern
            && !pattern.is_match(answer)
        {
            let message = format!(
                "the answer must match the pattern `{}`",
                shown(&pattern.written)
            );
            faults.push(("pattern", message));
        }
    }

    fn length(&self, answer: &str, faults: &mut Vec<Fault>) {
        if let Some(min) = self.min_length {
            let visible: String = seen(answer).collect();
            let length = visible.trim().nfc().count();
            if length < min {
                let message =
                    format!("the answer has {length} characters, and must have at least {min}");
                faults.push(("min_length", message));
            }
        }
        if let Some(max) = self.max_length {
            let length = answer.trim().nfc().count();
            if length > max {
                let message =
                    format!("the answer has {length} characters, and must have at most {max}");
                faults.push(("max_length", message));
            }
        }
    }
}

fn words(
    written: &[String],
    name: &str,
    form: fn(&str) -> String,
) -> Result<Vec<Word>, QuestionError> {
    let word = |(index, written): (usize, &String)| {
        let form = form(written);
        if form.is_empty() {
            let pointer = format!("/validation/{name}/{index}");
            let message = format!("`{name}` has a text with nothing to see in it; remove it");
            return Err(QuestionError::new(pointer, message));
        }
        Ok(Word {
            written: written.clone(),
            form,
        })
    };
    written.iter().enumerate().map(word).collect()
}

fn pattern(pattern: &str) -> Result<Expression, QuestionError> {
    let wrong = |reason: String| {
        let message = format!(
            "`{}` is not a pattern for answers: {reason}",
            shown(pattern)
        );
        QuestionError::new("/validation/pattern", message)
    };
    if pattern.chars().nth(MAX_PATTERN).is_some() {
        return Err(wrong(format!("it is longer than {MAX_PATTERN} characters")));
    }
    let size = crate::keyword::size_of_expression(pattern).map_err(wrong)?;
    let compiled = OnceLock::new();
    // What is large may be too large: only compiling it tells.
    if size > SURELY_FITS {
        let regex = compile(pattern).map_err(|error| {
            wrong(match error {
                regex::Error::CompiledTooBig(_) => {
                    format!("it is larger than {MAX_COMPILED} bytes when compiled; repeat less")
                }
                other => text::line(&other.to_string()).text,
            })
        })?;
        let _ = compiled.set(Some(regex));
    }
    Ok(Expression {
        written: pattern.to_owned(),
        compiled,
    })
}

fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern)
        .size_limit(MAX_COMPILED)
        .dfa_size_limit(MAX_COMPILED)
        .build()
}

/// In one form, and with one space for each run of white space.
fn folded(text: &str) -> String {
    spaced(&plain(text, Case::Folded))
}

/// As it looks, and with one space for each run of white space.
fn looked(text: &str) -> String {
    spaced(&look(text))
}

fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words that are spelt letter by letter, such as `h-a-c-k`, with a space
/// between them. `rn` counts as a letter: it may have been an `m`.
fn spelt(looked: &str) -> String {
    let mut out = String::new();
    for word in looked.split(|c: char| !c.is_alphanumeric()) {
        if word.is_empty() {
            continue;
        }
        if word == "rn" || word.chars().nth(1).is_none() {
            out.push_str(word);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

fn shown(written: &str) -> String {
    text::shorten(&text::line(written).text, 80)
}
