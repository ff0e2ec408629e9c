//! Whole words and parts of words, looked for in one pass.
//!
//! The text becomes its words with a space on both sides of each
//! (` my credit card `), and so does every keyword. Then ` card ` is found only
//! where it is a whole word. A keyword with `*` is found by its longest piece
//! and looked at there, once per word.
//!
//! Hits are noted for a *slot*: a thing that has to occur for a rule. A rule in
//! mode `any` has one slot, otherwise it has one per pattern.

use std::collections::HashMap;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::fold::{Case, wild_words, words};
use crate::atlas::MatchMode;
use crate::pattern::glob_matches;

/// The most bytes of all keywords together.
const MAX_TOTAL: usize = 32 << 20;
/// Up to so many bytes the fastest automaton is built; it is large.
const MAX_FAST: usize = 128 << 10;
/// The most `*` in one keyword.
const MAX_WILDCARDS: usize = 16;

/// All words of the rules with one letter case.
#[derive(Clone, Debug)]
pub(super) struct Words {
    case: Case,
    finder: Finder,
    /// What each piece of the finder stands for.
    targets: Vec<Vec<Target>>,
    wild: Vec<Wild>,
    slots: Vec<Slot>,
}

/// Texts that are looked for at once. The automaton is made when it is first
/// used: most processes judge actions and never see an input.
#[derive(Clone, Debug)]
pub(super) struct Finder {
    texts: Vec<String>,
    automaton: OnceLock<Option<AhoCorasick>>,
}

impl Finder {
    pub(super) fn new(texts: Vec<String>) -> Self {
        Self {
            texts,
            automaton: OnceLock::new(),
        }
    }

    /// The automaton; `None` when there is none for so many texts. That cannot
    /// be below the limits that there are, and would then count as all found.
    pub(super) fn automaton(&self) -> Option<&AhoCorasick> {
        self.automaton
            .get_or_init(|| {
                let size: usize = self.texts.iter().map(String::len).sum();
                let kind = if size <= MAX_FAST {
                    AhoCorasickKind::DFA
                } else {
                    AhoCorasickKind::ContiguousNFA
                };
                AhoCorasick::builder()
                    .kind(Some(kind))
                    .prefilter(false)
                    .build(&self.texts)
                    .ok()
            })
            .as_ref()
    }
}

/// What a found piece means.
#[derive(Clone, Copy, Debug)]
struct Target {
    slot: usize,
    /// The keyword with `*` that must fit here, too.
    wild: Option<usize>,
}

/// A keyword with `*`.
#[derive(Clone, Debug)]
struct Wild {
    words: Vec<Box<str>>,
    /// The word that has the piece.
    anchor: usize,
}

/// Something that has to occur.
#[derive(Clone, Copy, Debug)]
struct Slot {
    rule: u32,
    kind: Kind,
}

/// What else the rule of a slot wants.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// Nothing.
    Alone,
    /// So many slots from this one on, anywhere.
    All(usize),
    /// So many slots from this one on, behind each other.
    Phrase(usize),
    /// It is a later one of those.
    Later { phrase: bool },
}

/// Where something was found: from the space before it to the space behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    slot: usize,
    start: usize,
    end: usize,
}

/// Collects rules.
pub(super) struct Builder {
    case: Case,
    pieces: HashMap<String, usize>,
    targets: Vec<Vec<Target>>,
    wild: Vec<Wild>,
    slots: Vec<Slot>,
    total: usize,
}

impl Builder {
    pub(super) fn new(case: Case) -> Self {
        Self {
            case,
            pieces: HashMap::new(),
            targets: Vec::new(),
            wild: Vec::new(),
            slots: Vec::new(),
            total: 0,
        }
    }

    /// Adds a rule. An error says which pattern is at fault.
    pub(super) fn add(
        &mut self,
        rule: u32,
        patterns: &[String],
        mode: MatchMode,
    ) -> Result<(), (usize, String)> {
        let mut parsed = Vec::with_capacity(patterns.len());
        for (index, pattern) in patterns.iter().enumerate() {
            parsed.push(
                self.alternatives(pattern)
                    .map_err(|reason| (index, reason))?,
            );
        }
        if mode == MatchMode::Phrase && parsed.iter().all(|slot| slot.len() == 1) {
            // Without alternatives a phrase is a keyword of several words.
            let whole = parsed
                .into_iter()
                .flatten()
                .fold(String::from(" "), |whole, next| {
                    whole.trim_end().to_owned() + &next
                });
            parsed = vec![vec![whole]];
            if parsed
                .iter()
                .flatten()
                .all(|keyword| keyword.trim().is_empty())
            {
                return Ok(());
            }
        }
        let count = parsed.len();
        let alone = mode == MatchMode::Any || count == 1;
        for (index, alternatives) in parsed.into_iter().enumerate() {
            let kind = match mode {
                _ if alone => Kind::Alone,
                MatchMode::Phrase if index == 0 => Kind::Phrase(count),
                _ if index == 0 => Kind::All(count),
                _ => Kind::Later {
                    phrase: mode == MatchMode::Phrase,
                },
            };
            if index == 0 || !alone {
                self.slots.push(Slot { rule, kind });
            }
            let slot = self.slots.len().saturating_sub(1);
            for keyword in alternatives {
                self.keyword(slot, keyword)
                    .map_err(|reason| (index, reason))?;
            }
        }
        Ok(())
    }

    /// The keywords of `pattern`, as words between spaces.
    fn alternatives(&self, pattern: &str) -> Result<Vec<String>, String> {
        pattern
            .split('|')
            .map(|alternative| {
                let keyword = wild_words(alternative, self.case);
                if keyword.trim().is_empty() {
                    return Err(String::from(
                        "there is no letter or digit in it, or in one of its alternatives",
                    ));
                }
                if keyword
                    .split(' ')
                    .any(|word| !word.is_empty() && word.bytes().all(|b| b == b'*'))
                {
                    return Err(String::from(
                        "a `*` alone stands for every word; write it at a part of a word",
                    ));
                }
                if keyword.matches('*').count() > MAX_WILDCARDS {
                    return Err(format!("it has more than {MAX_WILDCARDS} wildcards"));
                }
                Ok(keyword)
            })
            .collect()
    }

    fn keyword(&mut self, slot: usize, keyword: String) -> Result<(), String> {
        self.total += keyword.len();
        if self.total > MAX_TOTAL {
            return Err(String::from("all keywords together are longer than 32 MiB"));
        }
        if !keyword.contains('*') {
            self.target(keyword, Target { slot, wild: None });
            return Ok(());
        }
        let words: Vec<Box<str>> = keyword.split_whitespace().map(Into::into).collect();
        let mut best = (0, String::new());
        for (anchor, word) in words.iter().enumerate() {
            for piece in format!(" {word} ").split('*') {
                if piece.len() > best.1.len() && piece != " " {
                    best = (anchor, piece.to_owned());
                }
            }
        }
        let (anchor, piece) = best;
        self.wild.push(Wild { words, anchor });
        let wild = Some(self.wild.len() - 1);
        self.target(piece, Target { slot, wild });
        Ok(())
    }

    fn target(&mut self, piece: String, target: Target) {
        let fresh = self.targets.len();
        let index = *self.pieces.entry(piece).or_insert(fresh);
        if index == fresh {
            self.targets.push(Vec::with_capacity(1));
        }
        if let Some(targets) = self.targets.get_mut(index) {
            targets.push(target);
        }
    }

    /// Ready for use, or `None` if there is nothing to look for.
    pub(super) fn build(self) -> Option<Words> {
        if self.pieces.is_empty() {
            return None;
        }
        let mut pieces: Vec<(String, usize)> = self.pieces.into_iter().collect();
        pieces.sort_unstable_by_key(|(_, index)| *index);
        Some(Words {
            case: self.case,
            finder: Finder::new(pieces.into_iter().map(|(piece, _)| piece).collect()),
            targets: self.targets,
            wild: self.wild,
            slots: self.slots,
        })
    }
}

impl Words {
    /// Adds the rules that fit `text` to `found`, in no order.
    pub(super) fn matching(&self, text: &str, found: &mut Vec<u32>) {
        let Some(finder) = self.finder.automaton() else {
            found.extend(self.slots.iter().map(|slot| slot.rule));
            return;
        };
        let text = words(text, self.case);
        let mut seen = vec![0_u64; self.slots.len().div_ceil(64)];
        let mut checked = vec![0; self.wild.len()];
        let mut firsts = Vec::new();
        let mut spans = Vec::new();
        let mut done = vec![0_u64; self.targets.len().div_ceil(64)];
        for hit in finder.find_overlapping_iter(text.as_str()) {
            let piece = hit.pattern().as_usize();
            if is_set(&done, piece) {
                continue;
            }
            // Once is enough, unless the place matters.
            let mut again = false;
            for target in self.targets.get(piece).into_iter().flatten() {
                let Some(slot) = self.slots.get(target.slot) else {
                    continue;
                };
                let phrase = matches!(slot.kind, Kind::Phrase(_) | Kind::Later { phrase: true });
                if !phrase && is_set(&seen, target.slot) {
                    continue;
                }
                again |= phrase || target.wild.is_some();
                let span = match target.wild {
                    None => Some((hit.start(), hit.end().saturating_sub(1))),
                    Some(index) => self.verify(index, &text, hit.start(), &mut checked),
                };
                let Some((start, end)) = span else {
                    continue;
                };
                set(&mut seen, target.slot);
                match slot.kind {
                    Kind::Alone => found.push(slot.rule),
                    Kind::All(count) => firsts.push((target.slot, count)),
                    Kind::Phrase(_) | Kind::Later { phrase: true } => spans.push(Span {
                        slot: target.slot,
                        start,
                        end,
                    }),
                    Kind::Later { phrase: false } => {}
                }
            }
            if !again {
                set(&mut done, piece);
            }
        }
        for (first, count) in firsts {
            if (first..first + count).all(|slot| is_set(&seen, slot)) {
                found.extend(self.slots.get(first).map(|slot| slot.rule));
            }
        }
        self.phrases(spans, &seen, found);
    }

    /// Whether the keyword fits around the word that a piece was found in, and
    /// from where to where. Looked at once per word, whatever is found in it.
    fn verify(
        &self,
        index: usize,
        text: &str,
        hit: usize,
        checked: &mut [usize],
    ) -> Option<(usize, usize)> {
        let wild = self.wild.get(index)?;
        let checked = checked.get_mut(index)?;
        let inside = if text.get(hit..)?.starts_with(' ') {
            hit + 1
        } else {
            hit
        };
        if inside < *checked {
            return None;
        }
        let begin = text.get(..inside)?.rfind(' ')? + 1;
        let mut end = begin;
        for (place, word) in wild.words.iter().enumerate().skip(wild.anchor) {
            let rest = text.get(end..)?;
            let length = rest.find(' ')?;
            if place == wild.anchor {
                *checked = begin + length;
            }
            if !glob_matches(word, rest.get(..length)?) {
                return None;
            }
            end += length + 1;
        }
        let mut start = begin;
        for word in wild.words.iter().take(wild.anchor).rev() {
            let before = text.get(..start)?.strip_suffix(' ')?;
            let from = before.rfind(' ')? + 1;
            if !glob_matches(word, before.get(from..)?) {
                return None;
            }
            start = from;
        }
        Some((start.checked_sub(1)?, end.checked_sub(1)?))
    }

    /// Adds the phrases whose slots were found behind each other.
    fn phrases(&self, mut spans: Vec<Span>, seen: &[u64], found: &mut Vec<u32>) {
        spans.sort_unstable();
        let mut rest = spans.as_slice();
        while let Some(first) = rest.first().map(|span| span.slot) {
            let slot = self.slots.get(first);
            let Some((rule, count)) = slot.and_then(|slot| match slot.kind {
                Kind::Phrase(count) => Some((slot.rule, count)),
                _ => None,
            }) else {
                // Its first slot was not found.
                rest = skip(rest, first);
                continue;
            };
            if !(first..first + count).all(|slot| is_set(seen, slot)) {
                rest = skip(rest, first + count - 1);
                continue;
            }
            let mut ends: Option<Vec<usize>> = None;
            for slot in first..first + count {
                let here = rest.partition_point(|span| span.slot <= slot);
                let (these, later) = rest.split_at_checked(here).unwrap_or((rest, &[]));
                let mut reached: Vec<usize> = these
                    .iter()
                    .filter(|span| {
                        ends.as_ref()
                            .is_none_or(|ends| ends.binary_search(&span.start).is_ok())
                    })
                    .map(|span| span.end)
                    .collect();
                reached.sort_unstable();
                reached.dedup();
                ends = Some(reached);
                rest = later;
            }
            if ends.is_some_and(|ends| !ends.is_empty()) {
                found.push(rule);
            }
        }
    }
}

/// What is behind all spans up to `slot`.
fn skip(spans: &[Span], slot: usize) -> &[Span] {
    let here = spans.partition_point(|span| span.slot <= slot);
    spans.get(here..).unwrap_or_default()
}

fn is_set(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64)
        .is_some_and(|word| word & (1 << (index % 64)) != 0)
}

fn set(bits: &mut [u64], index: usize) {
    if let Some(word) = bits.get_mut(index / 64) {
        *word |= 1 << (index % 64);
    }
}
