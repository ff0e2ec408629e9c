//! Regular expressions, a thousand of them at once.
//!
//! One automaton for a thousand expressions is larger than its cache and then
//! slow. So each expression is asked for the texts that every match of it has
//! (see [`super::literal`]); these are looked for in one pass, and only the
//! expressions whose text was found are tried, one by one. Expressions without
//! such a text are tried together, in groups. For a text of ASCII alone, as most
//! are, there are larger groups of smaller expressions. They also do for other
//! texts whose foreign characters no expression of a group can match: those are
//! blotted out.
//!
//! Every expression takes time in proportion to the text: there is no going
//! back, and there are limits for its size.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_syntax::hir::ClassUnicode;
use regex_syntax::hir::print::Printer;

use super::fold::{Case, ascii_length, lowered, plain};
use super::literal;
use super::word::Finder;

/// The largest compiled expression, in bytes.
const MAX_SIZE: usize = 1 << 20;
/// About this size an expression certainly compiles.
const SURELY_FITS: usize = MAX_SIZE / 8;
/// The cache of one expression while it is tried, in bytes.
const MAX_CACHE: usize = 256 << 10;
/// About so many bytes of compiled expressions are kept. What is beyond is
/// compiled again whenever it is tried.
const MAX_KEPT: usize = 256 << 20;
/// About what every compiled expression takes, however small.
const OVERHEAD: usize = 16 << 10;
/// So many expressions without a needed text are tried together.
const GROUP: usize = 64;
/// So many of them on a text of ASCII alone.
const ASCII_GROUP: usize = 256;
/// What stands for a character that no expression of a group can match. Neither can they match it.
const BLOT: char = '\0';

/// All expressions of the rules.
#[derive(Clone, Debug)]
pub(super) struct Expressions {
    list: Vec<Expression>,
    finder: Option<Finder>,
    /// The expressions that need each text of the finder.
    of_text: Vec<Vec<usize>>,
    /// Those that need no text.
    loose: Vec<Bundle>,
}

/// Expressions that are tried on every text.
#[derive(Clone, Debug)]
struct Bundle {
    /// All characters that they can match; `None` when more than that counts.
    alphabet: Option<ClassUnicode>,
    /// For texts of ASCII alone, and those that look so to them.
    ascii: Group,
    /// For all others.
    unicode: Vec<Group>,
}

/// An expression that needs no text.
struct Loose {
    place: usize,
    /// What it is on a text of ASCII alone.
    small: String,
    /// All characters that it can match, unless the blot is one of them.
    alphabet: Option<ClassUnicode>,
}

#[derive(Clone, Debug)]
struct Expression {
    rule: u32,
    source: Source,
    /// Made when it is first tried, where there is room for it.
    kept: Option<OnceLock<Result<Regex, Failed>>>,
}

/// An expression that could not be compiled after all.
#[derive(Clone, Copy, Debug)]
struct Failed;

#[derive(Clone, Debug)]
struct Source {
    pattern: Box<str>,
    case: Case,
}

/// Some of them, tried together. The set is made when it is first tried;
/// `None` when they are too large together: each alone is not.
#[derive(Clone, Debug)]
struct Group {
    patterns: Vec<String>,
    members: Vec<usize>,
    set: OnceLock<Option<RegexSet>>,
}

/// Collects rules.
#[derive(Default)]
pub(super) struct Builder {
    list: Vec<Expression>,
    texts: HashMap<String, Vec<usize>>,
    /// Those that need no text.
    loose: Vec<Loose>,
    kept: usize,
}

impl Builder {
    /// Adds a rule. An error says which pattern is at fault.
    pub(super) fn add(
        &mut self,
        rule: u32,
        patterns: &[String],
        case: Case,
    ) -> Result<(), (usize, String)> {
        for (index, pattern) in patterns.iter().enumerate() {
            self.expression(rule, pattern, case)
                .map_err(|reason| (index, reason))?;
        }
        Ok(())
    }

    fn expression(&mut self, rule: u32, pattern: &str, case: Case) -> Result<(), String> {
        if pattern.is_empty() {
            return Err(String::from("it is empty, and would match every text"));
        }
        let hir = regex_syntax::ParserBuilder::new()
            .case_insensitive(case == Case::Folded)
            .build()
            .parse(pattern)
            .map_err(|error| explain(&error))?;
        let source = Source {
            pattern: pattern.into(),
            case,
        };
        let size = literal::size(&hir);
        let compiled = OnceLock::new();
        // What is large may be too large: only compiling it tells.
        if size > SURELY_FITS {
            let regex = source.compile().map_err(|error| match error {
                regex::Error::CompiledTooBig(_) => {
                    format!("it is larger than {MAX_SIZE} bytes when compiled; repeat less")
                }
                other => other.to_string(),
            })?;
            let _ = compiled.set(Ok(regex));
        }
        self.kept = self.kept.saturating_add(size.saturating_add(OVERHEAD));
        let place = self.list.len();
        self.list.push(Expression {
            rule,
            source,
            kept: (self.kept <= MAX_KEPT).then_some(compiled),
        });
        match literal::needed(&hir) {
            Some(texts) if texts.iter().all(|text| is_rare(text)) => {
                for text in texts {
                    self.texts.entry(text).or_default().push(place);
                }
            }
            _ => {
                let mut small = String::new();
                // What cannot be written this way stays as it is: the flag is all it lacks.
                if Printer::new()
                    .print(&literal::ascii(&hir), &mut small)
                    .is_err()
                {
                    small = flagged(pattern, case);
                }
                self.loose.push(Loose {
                    place,
                    small,
                    alphabet: literal::alphabet(&hir).filter(|class| !has(class, BLOT)),
                });
            }
        }
        Ok(())
    }

    /// Ready for use, or `None` if there is nothing to look for.
    pub(super) fn build(self) -> Option<Expressions> {
        if self.list.is_empty() {
            return None;
        }
        let (narrow, wide): (Vec<Loose>, Vec<Loose>) = self
            .loose
            .into_iter()
            .partition(|loose| loose.alphabet.is_some());
        let chunks = narrow.chunks(ASCII_GROUP).chain(wide.chunks(ASCII_GROUP));
        let loose = chunks
            .map(|members| Bundle::new(members, &self.list))
            .collect();
        let (texts, of_text): (Vec<String>, Vec<Vec<usize>>) = self.texts.into_iter().unzip();
        Some(Expressions {
            list: self.list,
            finder: (!texts.is_empty()).then(|| Finder::new(texts)),
            of_text,
            loose,
        })
    }
}

impl Bundle {
    fn new(members: &[Loose], list: &[Expression]) -> Self {
        let source = |member: &Loose| {
            let source = list.get(member.place).map(|expression| &expression.source);
            source.map_or_else(String::new, |source| flagged(&source.pattern, source.case))
        };
        let mut alphabet = Some(ClassUnicode::empty());
        for member in members {
            match (&mut alphabet, &member.alphabet) {
                (Some(all), Some(own)) => all.union(own),
                _ => alphabet = None,
            }
        }
        Self {
            alphabet,
            ascii: Group::new(members, |member| member.small.clone()),
            unicode: members
                .chunks(GROUP)
                .map(|members| Group::new(members, source))
                .collect(),
        }
    }

    /// Whether none of these characters can be in a match, nor beside it matter.
    fn is_blind_to(&self, foreign: &[char]) -> bool {
        self.alphabet
            .as_ref()
            .is_some_and(|all| !foreign.iter().any(|c| has(all, *c)))
    }
}

impl Group {
    fn new(members: &[Loose], pattern: impl Fn(&Loose) -> String) -> Self {
        Self {
            patterns: members.iter().map(pattern).collect(),
            members: members.iter().map(|member| member.place).collect(),
            set: OnceLock::new(),
        }
    }

    fn set(&self) -> Option<&RegexSet> {
        self.set
            .get_or_init(|| {
                RegexSetBuilder::new(&self.patterns)
                    .size_limit(8 * MAX_SIZE)
                    .dfa_size_limit(8 * MAX_SIZE)
                    .build()
                    .ok()
            })
            .as_ref()
    }
}

/// The text with every character outside of ASCII blotted out, and those characters, each once.
fn blot(text: &str) -> (Cow<'_, str>, Vec<char>) {
    if text.is_ascii() {
        return (Cow::Borrowed(text), Vec::new());
    }
    let mut foreign = Vec::new();
    let mut blotted = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (ascii, other) = rest
            .split_at_checked(ascii_length(rest))
            .unwrap_or((rest, ""));
        blotted.push_str(ascii);
        let mut characters = other.chars();
        if let Some(c) = characters.next() {
            blotted.push(BLOT);
            foreign.push(c);
        }
        rest = characters.as_str();
    }
    foreign.sort_unstable();
    foreign.dedup();
    (Cow::Owned(blotted), foreign)
}

/// Whether a class has a character.
fn has(class: &ClassUnicode, wanted: char) -> bool {
    let ranges = class.ranges();
    let after = ranges.partition_point(|range| range.end() < wanted);
    ranges
        .get(after)
        .is_some_and(|range| range.start() <= wanted)
}

/// The pattern with what the builder would be told in front of it.
fn flagged(pattern: &str, case: Case) -> String {
    match case {
        Case::Folded => format!("(?i){pattern}"),
        Case::Kept => pattern.to_owned(),
    }
}

impl Expressions {
    /// Adds the rules that fit `text` to `found`, in no order.
    pub(super) fn matching(&self, text: &str, found: &mut Vec<u32>) {
        let text = plain(text, Case::Kept);
        let mut candidates: Vec<usize> = Vec::new();
        if let Some(finder) = &self.finder {
            match finder.automaton() {
                None => candidates.extend(self.of_text.iter().flatten()),
                Some(automaton) => {
                    let mut seen = vec![false; self.of_text.len()];
                    for hit in automaton.find_overlapping_iter(lowered(&text).as_ref()) {
                        let index = hit.pattern().as_usize();
                        if let Some(seen) = seen.get_mut(index)
                            && !std::mem::replace(seen, true)
                        {
                            candidates.extend(self.of_text.get(index).into_iter().flatten());
                        }
                    }
                }
            }
        }
        let (blotted, foreign) = blot(&text);
        for bundle in &self.loose {
            let (groups, text) = match bundle.is_blind_to(&foreign) || foreign.is_empty() {
                true => (std::slice::from_ref(&bundle.ascii), blotted.as_ref()),
                false => (bundle.unicode.as_slice(), text.as_ref()),
            };
            for group in groups {
                match group.set() {
                    None => candidates.extend(&group.members),
                    Some(set) => found.extend(
                        set.matches(text)
                            .into_iter()
                            .filter_map(|member| group.members.get(member))
                            .filter_map(|place| self.list.get(*place))
                            .map(|expression| expression.rule),
                    ),
                }
            }
        }
        candidates.sort_unstable();
        candidates.dedup();
        // Expressions of one rule are beside each other: after the first that matches, the rest need not.
        let mut last = None;
        for expression in candidates.iter().filter_map(|place| self.list.get(*place)) {
            if last != Some(expression.rule) && expression.is_match(&text) {
                found.push(expression.rule);
                last = Some(expression.rule);
            }
        }
    }
}

impl Expression {
    fn is_match(&self, text: &str) -> bool {
        let compile = || self.source.compile().map_err(|_| Failed);
        // That it fails now cannot be. It would then count as found: a gate too many.
        match &self.kept {
            Some(kept) => kept
                .get_or_init(compile)
                .as_ref()
                .map_or(true, |regex| regex.is_match(text)),
            None => compile().map_or(true, |regex| regex.is_match(text)),
        }
    }
}

impl Source {
    fn compile(&self) -> Result<Regex, regex::Error> {
        RegexBuilder::new(&self.pattern)
            .case_insensitive(self.case == Case::Folded)
            .size_limit(MAX_SIZE)
            .dfa_size_limit(MAX_CACHE)
            .build()
    }
}

/// Whether most texts do not have `text`. A single letter, digit or space is everywhere.
fn is_rare(text: &str) -> bool {
    let common = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '.' | ',' | '\n');
    text.len() > 1 || !text.chars().all(common)
}

/// What is wrong with an expression, in one line.
pub(super) fn explain(error: &regex_syntax::Error) -> String {
    match error {
        regex_syntax::Error::Parse(error) => format!(
            "it is not a regular expression: {} (at character {})",
            error.kind(),
            error.span().start.column
        ),
        regex_syntax::Error::Translate(error) => format!(
            "it is not a regular expression: {} (at character {})",
            error.kind(),
            error.span().start.column
        ),
        _ => String::from("it is not a regular expression"),
    }
}
