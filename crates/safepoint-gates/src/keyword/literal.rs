//! Texts without which a regular expression cannot match.
//!
//! Every match of `refund(ed|s)? of \d+` has `refund` in it. If such a text is
//! not there, the expression need not be tried. This module finds, for an
//! expression, a few texts of which every match has at least one. It may find
//! none. It never says more than it knows: a text that it calls needed is in
//! every match, in the form of [`lowered`].

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::fold::lowered;

/// The most texts for one expression.
const MAX_TEXTS: usize = 32;
/// The longest text that is put together, in bytes.
const MAX_BYTES: usize = 64;
/// The most characters of a class that are looked at.
const MAX_CLASS: usize = 64;

/// What is known of the matches of a part of an expression.
#[derive(Debug, Default)]
struct Known {
    /// All texts that it matches, when they are few.
    exact: Option<Vec<String>>,
    /// Each match has one of these.
    needed: Option<Vec<String>>,
}

/// The texts of which every match of `hir` has one.
pub(super) fn needed(hir: &Hir) -> Option<Vec<String>> {
    best(known(hir))
}

fn known(hir: &Hir) -> Known {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => exactly([String::new()]),
        HirKind::Literal(literal) => match str::from_utf8(&literal.0) {
            Ok(text) => exactly([lowered(text).into_owned()]),
            Err(_) => Known::default(),
        },
        HirKind::Class(class) => of_class(class),
        HirKind::Capture(capture) => known(&capture.sub),
        HirKind::Repetition(repetition) => {
            let sub = known(&repetition.sub);
            match (repetition.min, repetition.max) {
                (0, Some(1)) => match sub.exact {
                    Some(texts) => exactly(texts.into_iter().chain([String::new()])),
                    None => Known::default(),
                },
                (0, _) => Known::default(),
                (1, Some(1)) => sub,
                _ => Known {
                    exact: None,
                    needed: best(sub),
                },
            }
        }
        HirKind::Concat(parts) => of_sequence(parts),
        HirKind::Alternation(parts) => of_alternatives(parts),
    }
}

fn exactly(texts: impl IntoIterator<Item = String>) -> Known {
    let mut texts: Vec<String> = texts.into_iter().collect();
    texts.sort_unstable();
    texts.dedup();
    Known {
        exact: (texts.len() <= MAX_TEXTS).then_some(texts),
        needed: None,
    }
}

/// The characters of a small class; `[Rr]` is just one.
fn of_class(class: &Class) -> Known {
    let Class::Unicode(class) = class else {
        return Known::default();
    };
    let size: usize = class.ranges().iter().map(|range| range.len()).sum();
    if size > MAX_CLASS {
        return Known::default();
    }
    exactly(class.ranges().iter().flat_map(|range| {
        (range.start()..=range.end()).map(|c| lowered(c.encode_utf8(&mut [0; 4])).into_owned())
    }))
}

fn of_sequence(parts: &[Hir]) -> Known {
    let mut run = vec![String::new()];
    let mut chosen: Option<Vec<String>> = None;
    let mut whole = true;
    for part in parts {
        let Known { exact, needed } = known(part);
        match exact {
            Some(texts) => match crossed(&run, &texts) {
                Some(longer) => run = longer,
                None => {
                    whole = false;
                    chosen = better(chosen, Some(std::mem::replace(&mut run, texts)));
                }
            },
            None => {
                whole = false;
                chosen = better(
                    chosen,
                    Some(std::mem::replace(&mut run, vec![String::new()])),
                );
                chosen = better(chosen, needed);
            }
        }
    }
    if whole {
        return exactly(run);
    }
    Known {
        exact: None,
        needed: better(chosen, Some(run)),
    }
}

fn of_alternatives(parts: &[Hir]) -> Known {
    let all: Vec<Known> = parts.iter().map(known).collect();
    if all.iter().all(|known| known.exact.is_some()) {
        let texts = exactly(all.iter().filter_map(|known| known.exact.clone()).flatten());
        if texts.exact.is_some() {
            return texts;
        }
    }
    let mut union = Vec::new();
    for known in all {
        match best(known) {
            Some(texts) => union.extend(texts),
            None => return Known::default(),
        }
    }
    union.sort_unstable();
    union.dedup();
    Known {
        exact: None,
        needed: (union.len() <= MAX_TEXTS).then_some(union),
    }
}

/// Each text of `run` with each of `texts` behind it, when that is not too much.
fn crossed(run: &[String], texts: &[String]) -> Option<Vec<String>> {
    let longest = |texts: &[String]| texts.iter().map(String::len).max().unwrap_or(0);
    if run.len() * texts.len() > MAX_TEXTS || longest(run) + longest(texts) > MAX_BYTES {
        // A run that is still empty can take even a long text.
        return (longest(run) == 0).then(|| texts.to_vec());
    }
    Some(
        run.iter()
            .flat_map(|start| texts.iter().map(move |end| format!("{start}{end}")))
            .collect(),
    )
}

fn best(known: Known) -> Option<Vec<String>> {
    better(known.needed, known.exact)
}

/// The one of two sets that is found less often: what counts is its shortest text.
fn better(one: Option<Vec<String>>, other: Option<Vec<String>>) -> Option<Vec<String>> {
    let shortest = |texts: &Option<Vec<String>>| {
        texts
            .as_ref()
            .and_then(|texts| texts.iter().map(String::len).min())
            .unwrap_or(0)
    };
    let chosen = if shortest(&other) > shortest(&one) {
        other
    } else {
        one
    };
    // The empty text is in every text.
    if shortest(&chosen) == 0 { None } else { chosen }
}

/// The same expression for a text of ASCII alone, which is far smaller when compiled.
pub(super) fn ascii(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.intersect(&ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Look(look) => Hir::look(match look {
            Look::WordUnicode => Look::WordAscii,
            Look::WordUnicodeNegate => Look::WordAsciiNegate,
            Look::WordStartUnicode => Look::WordStartAscii,
            Look::WordEndUnicode => Look::WordEndAscii,
            Look::WordStartHalfUnicode => Look::WordStartHalfAscii,
            Look::WordEndHalfUnicode => Look::WordEndHalfAscii,
            other => *other,
        }),
        // Nobody asks what a group matched.
        HirKind::Capture(capture) => ascii(&capture.sub),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(ascii(&repetition.sub)),
            ..*repetition
        }),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(ascii).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(ascii).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(Class::Bytes(_)) => hir.clone(),
    }
}

/// All characters that a match can have; `None` when what stands beside a match
/// counts, too, or when it can have everything.
pub(super) fn alphabet(hir: &Hir) -> Option<ClassUnicode> {
    let mut class = ClassUnicode::empty();
    let plain = !hir.properties().look_set().contains_word() && collect(hir, &mut class);
    plain.then_some(class)
}

fn collect(hir: &Hir, all: &mut ClassUnicode) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Class(Class::Unicode(class)) => {
            all.union(class);
            true
        }
        HirKind::Class(Class::Bytes(_)) => false,
        HirKind::Literal(literal) => str::from_utf8(&literal.0).is_ok_and(|text| {
            all.union(&ClassUnicode::new(
                text.chars().map(|c| ClassUnicodeRange::new(c, c)),
            ));
            true
        }),
        HirKind::Capture(capture) => collect(&capture.sub, all),
        HirKind::Repetition(repetition) => collect(&repetition.sub, all),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().all(|part| collect(part, all))
        }
    }
}

/// About how many bytes the compiled expression takes.
pub(super) fn size(hir: &Hir) -> usize {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 32,
        HirKind::Literal(literal) => literal.0.len().saturating_mul(32),
        HirKind::Class(Class::Unicode(class)) => class.ranges().len().saturating_mul(128),
        HirKind::Class(Class::Bytes(class)) => class.ranges().len().saturating_mul(32),
        HirKind::Capture(capture) => size(&capture.sub).saturating_add(64),
        HirKind::Repetition(repetition) => {
            let times = repetition
                .max
                .unwrap_or(repetition.min)
                .max(repetition.min)
                .max(1);
            size(&repetition.sub)
                .saturating_add(32)
                .saturating_mul(usize::try_from(times).unwrap_or(usize::MAX))
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(size).fold(32, usize::saturating_add)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pattern: &str) -> Vec<String> {
        let hir = regex_syntax::ParserBuilder::new()
            .case_insensitive(true)
            .build()
            .parse(pattern)
            .unwrap();
        needed(&hir).unwrap_or_default()
    }

    #[test]
    fn ga_13_what_a_match_needs() {
        for (pattern, expected) in [
            ("Refund", vec!["refund"]),
            (
                r"refund(ed|s)? of \d+",
                vec!["refund of ", "refunded of ", "refunds of "],
            ),
            (r"\bdelete\s+(all|every)\b", vec!["delete"]),
            (r"(credit|debit)\s*card", vec!["credit", "debit"]),
            (r"(wire|cash) .*transfer", vec!["transfer"]),
            (r"\w+@example\.com", vec!["@example.com"]),
            // `\d` has the digits of all scripts, which are too many.
            (r"a|\d", vec![]),
            (r"a|[0-2]", vec!["0", "1", "2", "a"]),
            (r"(foo)+", vec!["foo"]),
            (r"(foo)*", vec![]),
            (r"\w+", vec![]),
            (r"", vec![]),
            (r"ſtraße", vec!["strasse"]),
        ] {
            let mut expected: Vec<String> = expected.into_iter().map(String::from).collect();
            expected.sort();
            let mut found = of(pattern);
            found.sort();
            assert_eq!(found, expected, "{pattern}");
        }
    }
}
