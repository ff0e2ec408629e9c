//! Yes, no, and understood: which words count.
//!
//! Letter case, white space and punctuation do not matter, but a question mark
//! does: who asks does not answer.
//!
//! **Yes or no** is one of the lists below, and nothing else.
//!
//! **An acknowledgment** is one of these:
//!
//! - the statement itself, repeated (unless it is a question);
//! - `understood`, `acknowledged`, `confirmed`, `agreed` or `accepted`, or
//!   `I understand`, `I acknowledge`, `I confirm`, `I agree` or `I accept`. In
//!   front may be `yes` or `ok`; in between a word such as `hereby` or `fully`.
//!   What follows may be the statement or a part of it, or other words without
//!   a negation or a reservation (`not`, `never`, `refuse`, `but`, `unless`, …).
//!
//! `yes`, `ok` and `true` alone do not count as text, nor does any other text.
//! This reads words, not minds: `understood, I will ignore it` counts.

use serde_json::Value;

use crate::keyword::fold::{Case, look, plain};

/// What counts as yes.
const YES: &[&str] = &[
    "yes",
    "y",
    "true",
    "agree",
    "agreed",
    "i agree",
    "yes i agree",
    "i do",
    "yes i do",
    "confirm",
    "confirmed",
    "i confirm",
    "yes i confirm",
    "accept",
    "accepted",
    "i accept",
    "yes i accept",
];

/// What counts as no.
const NO: &[&str] = &[
    "no",
    "n",
    "false",
    "disagree",
    "i disagree",
    "i do not",
    "i dont",
    "no i do not",
    "no i dont",
    "i do not agree",
    "i dont agree",
    "no i do not agree",
    "no i dont agree",
    "decline",
    "declined",
    "i decline",
    "refuse",
    "i refuse",
    "i do not accept",
    "i dont accept",
    "i do not confirm",
    "i dont confirm",
    "no i disagree",
    "no i decline",
    "no i refuse",
];

/// Acknowledgments of one word.
const DONE: &[&str] = &[
    "understood",
    "acknowledged",
    "confirmed",
    "agreed",
    "accepted",
];
/// Acknowledgments behind `I` or `we`.
const DO: &[&str] = &["understand", "acknowledge", "confirm", "agree", "accept"];
/// What may be in front.
const LEADS: &[&str] = &["yes", "ok", "okay", "sure"];
/// What may be between `I` and the verb.
const BETWEEN: &[&str] = &[
    "do",
    "fully",
    "hereby",
    "completely",
    "clearly",
    "have",
    "read",
    "and",
];

/// Words that take an acknowledgment back, or part of it.
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "nope",
    "nah",
    "never",
    "none",
    "nothing",
    "nobody",
    "neither",
    "nor",
    "cannot",
    "cant",
    "dont",
    "doesnt",
    "didnt",
    "wont",
    "wouldnt",
    "shouldnt",
    "couldnt",
    "isnt",
    "arent",
    "wasnt",
    "werent",
    "havent",
    "hasnt",
    "hadnt",
    "aint",
    "without",
    "unable",
    "unwilling",
    "refuse",
    "refuses",
    "refused",
    "decline",
    "declined",
    "deny",
    "denied",
    "disagree",
    "disagreed",
    "reject",
    "rejected",
    "false",
    "wrong",
    "misunderstood",
    "hardly",
    "barely",
    "scarcely",
    "nt",
    "but",
    "however",
    "except",
    "unless",
    "although",
    "though",
    "until",
    "if",
    "yet",
    "maybe",
    "perhaps",
    "only",
    "partly",
    "partially",
    "joking",
    "kidding",
];

/// Yes or no, if `answer` says so.
pub(super) fn boolean(answer: &Value) -> Option<bool> {
    match answer {
        Value::Bool(said) => Some(*said),
        Value::String(said) => {
            let said = words(said)?.join(" ");
            if YES.contains(&said.as_str()) {
                Some(true)
            } else if NO.contains(&said.as_str()) {
                Some(false)
            } else {
                None
            }
        }
        _ => None,
    }
}

/// A statement that is to be acknowledged.
#[derive(Debug)]
pub(super) struct Statement {
    /// Its words, if it can be repeated.
    words: Option<Vec<String>>,
}

impl Statement {
    pub(super) fn new(statement: &str) -> Self {
        Self {
            words: words(statement).filter(|words| !words.is_empty()),
        }
    }

    /// Whether `said` is an explicit acknowledgment.
    pub(super) fn acknowledged_by(&self, said: &str) -> bool {
        let Some(said) = words(said) else {
            return false;
        };
        if self.words.as_ref() == Some(&said) {
            return true;
        }
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let Some(rest) = behind_acknowledgment(&said) else {
            return false;
        };
        self.has(rest) || !rest.iter().any(|word| is_negation(word))
    }

    /// Whether `rest` is a part of the statement that makes sense alone: all from some place to its end.
    fn has(&self, rest: &[&str]) -> bool {
        let rest = match rest {
            ["that" | "the" | "this", rest @ ..] => rest,
            rest => rest,
        };
        let ends = |rest: &[&str]| {
            self.words.as_ref().is_some_and(|words| {
                words.len() >= rest.len()
                    && words
                        .iter()
                        .rev()
                        .zip(rest.iter().rev())
                        .all(|(own, said)| own == said)
            })
        };
        rest.len() >= 3 && ends(rest)
    }
}

/// What follows an acknowledgment at the start of `said`.
fn behind_acknowledgment<'a, 'b>(said: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let said = match said {
        [lead, rest @ ..] if LEADS.contains(lead) => rest,
        said => said,
    };
    match said {
        [done, rest @ ..] if DONE.contains(done) => Some(rest),
        ["i" | "we", rest @ ..] => {
            let verb = rest.iter().position(|word| !BETWEEN.contains(word))?;
            let (verb, rest) = rest.get(verb..)?.split_first()?;
            (DO.contains(verb) || DONE.contains(verb)).then_some(rest)
        }
        _ => None,
    }
}

/// Whether a word takes something back, also in look-alike letters.
fn is_negation(word: &str) -> bool {
    NEGATIONS.contains(&word) || {
        let looks = look(word);
        NEGATIONS.iter().any(|negation| look(negation) == looks)
    }
}

/// The words of a text in one form, without punctuation; `don't` becomes `dont`.
/// `None` if it asks something.
fn words(text: &str) -> Option<Vec<String>> {
    let text = plain(text, Case::Folded);
    if text.contains(['?', '\u{61f}', '\u{37e}', '⁇']) {
        return None;
    }
    let mut out = vec![String::new()];
    for c in text.chars() {
        if c.is_alphanumeric() {
            if let Some(word) = out.last_mut() {
                word.push(c);
            }
        } else if !matches!(c, '\'' | '’' | '‘' | 'ʼ' | '`' | '´') {
            out.push(String::new());
        }
    }
    out.retain(|word| !word.is_empty());
    Some(out)
}
