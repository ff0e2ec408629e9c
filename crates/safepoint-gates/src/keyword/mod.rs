//! Words in the input of an agent.
//!
//! | mode     | fits when                                                      |
//! |----------|----------------------------------------------------------------|
//! | `any`    | one of the patterns occurs                                     |
//! | `all`    | every pattern occurs, anywhere                                 |
//! | `phrase` | the patterns occur in this order, directly behind each other   |
//! | `regex`  | one of the patterns, as a regular expression, matches          |
//!
//! Words are whole words: `refund` is not in `refunded`. With `*` they are
//! parts of words: `refund*`, `*fund`, `re*d`. `a|b` means one of both, in every
//! mode but `regex`. Words of one pattern, and of a phrase, may have any white
//! space and punctuation between them. In scripts without spaces between words
//! every character counts as one.
//!
//! Text and patterns are brought to one form first (see `fold.rs`): soft hyphens,
//! fullwidth letters and ligatures hide nothing. Letters of other scripts that
//! look alike are other letters here. Regular expressions are not changed; they
//! see the text in that form, with its letter case, and match either case unless
//! `case_sensitive`.
//!
//! All rules are looked for at once, in time that depends on the text and on
//! what is found in it, hardly on the number of rules. Nothing here is ever
//! tried again and again from earlier places in the text.

mod expression;
pub(crate) mod fold;
mod literal;
#[cfg(test)]
mod tests;
mod word;

use safepoint_model::text;

use crate::atlas::MatchMode;
use expression::Expressions;
use fold::Case;
use word::Words;

/// About how many bytes a regular expression takes when it is compiled; in one
/// line why it is none, if it is none.
pub(crate) fn size_of_expression(pattern: &str) -> Result<usize, String> {
    regex_syntax::parse(pattern)
        .map(|hir| literal::size(&hir))
        .map_err(|error| expression::explain(&error))
}

/// The longest pattern, in characters.
const MAX_LENGTH: usize = 1_000;

/// A rule that cannot be one.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{pattern}` cannot be looked for: {reason}")]
pub struct KeywordError {
    /// Which rule.
    pub rule: usize,
    /// Which of its patterns.
    pub index: usize,
    pattern: String,
    reason: String,
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct KeywordRule<'a> {
    /// The words, each perhaps with alternatives (`a|b`).
    pub patterns: &'a [String],
    /// How they are looked for.
    pub match_mode: MatchMode,
    /// Whether `Refund` and `refund` differ.
    pub case_sensitive: bool,
}

impl KeywordRule<'_> {
    fn case(&self) -> Case {
        if self.case_sensitive {
            Case::Kept
        } else {
            Case::Folded
        }
    }
}

/// Many rules, looked for at once.
#[derive(Clone, Debug, Default)]
pub struct KeywordSet {
    folded: Option<Words>,
    kept: Option<Words>,
    expressions: Option<Expressions>,
}

impl KeywordSet {
    /// The set of these rules; each is known by its place.
    ///
    /// A rule without patterns fits nothing.
    pub fn new(rules: &[KeywordRule<'_>]) -> Result<Self, KeywordError> {
        let mut folded = word::Builder::new(Case::Folded);
        let mut kept = word::Builder::new(Case::Kept);
        let mut expressions = expression::Builder::default();
        for (number, (place, rule)) in (0_u32..).zip(rules.iter().enumerate()) {
            let failed = |(index, reason): (usize, String)| KeywordError {
                rule: place,
                index,
                pattern: rule
                    .patterns
                    .get(index)
                    .map(|pattern| text::shorten(&text::line(pattern).text, 80))
                    .unwrap_or_default(),
                reason,
            };
            if let Some(index) = rule
                .patterns
                .iter()
                .position(|pattern| pattern.chars().nth(MAX_LENGTH).is_some())
            {
                let reason = format!("it is longer than {MAX_LENGTH} characters");
                return Err(failed((index, reason)));
            }
            match (rule.match_mode, rule.case()) {
                (MatchMode::Regex, case) => expressions.add(number, rule.patterns, case),
                (mode, Case::Folded) => folded.add(number, rule.patterns, mode),
                (mode, Case::Kept) => kept.add(number, rule.patterns, mode),
            }
            .map_err(failed)?;
        }
        Ok(Self {
            folded: folded.build(),
            kept: kept.build(),
            expressions: expressions.build(),
        })
    }

    /// Adds the places of all rules that fit `text` to `found`: in order, each once.
    pub fn matching(&self, text: &str, found: &mut Vec<u32>) {
        for words in [&self.folded, &self.kept].into_iter().flatten() {
            words.matching(text, found);
        }
        if let Some(expressions) = &self.expressions {
            expressions.matching(text, found);
        }
        found.sort_unstable();
        found.dedup();
    }
}
