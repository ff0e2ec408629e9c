//! The shapes that secrets have, and which of them a text may hold.
//!
//! Building an expression takes longer than all else that a short command does,
//! so each is built when a text first needs it. Which ones a text needs, its
//! hints tell: words without which an expression cannot match, looked for all at
//! once. This never decides that something is a secret: the expressions do.

use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::Regex;

/// What a kind of secret looks like.
struct Shape {
    /// The kind.
    name: &'static str,
    /// One of these is in whatever the expression matches, in capitals or not. A space
    /// stands for any white space.
    hints: &'static [&'static str],
    /// Its group `s` (or `d` or `q`, between quotes), or else the whole match, is the secret.
    expression: &'static str,
}

const fn shape(
    name: &'static str,
    hints: &'static [&'static str],
    expression: &'static str,
) -> Shape {
    Shape {
        name,
        hints,
        expression,
    }
}

const COUNT: usize = 20;

/// The kind of the tokens that open a workspace.
pub(crate) const WORKSPACE_TOKEN: &str = "workspace-token";

/// The kind of the tokens that open a server.
pub(crate) const SERVER_TOKEN: &str = "safepoint-token";

const SHAPES: [Shape; COUNT] = [
    shape(
        "private-key",
        &["PRIVATE KEY"],
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----[^\x00]*?(-----END [A-Z0-9 ]*PRIVATE KEY( BLOCK)?-----|$)",
    ),
    shape(
        "age-key",
        &["AGE-SECRET-KEY-1"],
        r"AGE-SECRET-KEY-1[0-9A-Z]{20,}",
    ),
    shape(
        "aws-key",
        &["AKIA", "ASIA", "ABIA", "ACCA"],
        r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    ),
    shape(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})",
    ),
    shape(SERVER_TOKEN, &["spt_"], r"\bspt_[0-9A-Fa-f]{64}"),
    shape("gitlab-token", &["glpat-"], r"\bglpat-[A-Za-z0-9_-]{20,}"),
    shape("slack-token", &["xox"], r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    shape("google-key", &["AIza"], r"\bAIza[0-9A-Za-z_-]{35}"),
    shape(
        "package-token",
        &["npm_", "pypi-", "dckr_pat_"],
        r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{30,}|dckr_pat_[A-Za-z0-9_-]{20,})",
    ),
    shape(
        "payment-key",
        &["k_live_", "k_test_"],
        r"\b[rs]k_(?:live|test)_[0-9A-Za-z]{16,}",
    ),
    shape("api-key", &["sk-"], r"\bsk-[A-Za-z0-9_-]{20,}"),
    shape(
        "jwt",
        &["eyJ"],
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    ),
    // Nothing but hexadecimal digits: no word that means anything can hide in it.
    shape(WORKSPACE_TOKEN, &["wst_"], r"wst_[0-9A-Fa-f]{16,}"),
    shape("address", &["@"], r#"://[^/\s:@"']*:(?P<s>[^\s"']+)@"#),
    shape("address", &["@"], r#"://(?P<s>[^/\s:@"']{12,})@"#),
    shape(
        "authorization",
        &["bearer ", "basic ", "token "],
        r"(?i)\b(?:bearer|basic|token)\s+(?P<s>[A-Za-z0-9._~+/-]{16,}=*)",
    ),
    shape(
        "cookie",
        &["cookie:"],
        r"(?i)\bcookie:\s*(?P<s>[^\r\n'\x22]{6,})",
    ),
    shape(
        "login",
        &["-u", "--user"],
        r"(?:^|\s)-(?:u|-user)[ =]?[^\s:]+:(?P<s>\S{4,})",
    ),
    shape(
        "login",
        &["mysql"],
        r"\bmysql(?:dump|admin)?\s(?:.*\s)?-p(?P<s>\S{4,})",
    ),
    shape(
        "named",
        &[
            "pass",
            "pwd",
            "secret",
            "token",
            "credential",
            "apikey",
            "api_key",
            "api-key",
            "accesskey",
            "access_key",
            "access-key",
            "privatekey",
            "private_key",
            "private-key",
        ],
        r#"(?i)(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|\b(?:[a-z0-9]+_)*(?:pass|pwd))[a-z0-9_.-]*["']?\s*(?:[:=]\s*|\s)(?:"(?P<d>[^"]{4,})"|'(?P<q>[^']{4,})'|(?P<s>[^\s"'&|<>\[]{6,}))"#,
    ),
];

/// The white space of ASCII.
const WHITE: [char; 6] = [' ', '\t', '\n', '\r', '\x0b', '\x0c'];

/// All shapes, each built when it is first needed.
pub(crate) struct Shapes {
    /// Finds hints; without it, every text may hold everything.
    finder: Option<AhoCorasick>,
    /// Whose hint each of them is.
    owners: Vec<usize>,
    built: [OnceLock<Option<Regex>>; COUNT],
}

impl Shapes {
    pub(crate) fn new() -> Self {
        let mut hints = Vec::new();
        let mut owners = Vec::new();
        for (owner, shape) in SHAPES.iter().enumerate() {
            for hint in shape.hints {
                match hint.strip_suffix(' ') {
                    None => hints.push((*hint).to_owned()),
                    Some(word) => hints.extend(WHITE.map(|white| format!("{word}{white}"))),
                }
                owners.resize(hints.len(), owner);
            }
        }
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            // Searched a little slower than the default, and built much faster.
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(hints);
        Self {
            finder: finder.ok(),
            owners,
            built: Default::default(),
        }
    }

    /// The shapes that may be in `text`, in their order: their names and expressions. An
    /// expression that cannot be built is missing.
    pub(crate) fn suspected(
        &self,
        text: &str,
    ) -> impl Iterator<Item = (&'static str, Option<&Regex>)> {
        let hinted = self.hinted(text);
        let each = SHAPES.iter().zip(&self.built).zip(hinted);
        each.filter(|(_, hinted)| *hinted)
            .map(|((shape, built), _)| {
                let build = || Regex::new(shape.expression).ok();
                (shape.name, built.get_or_init(build).as_ref())
            })
    }

    /// For each shape, whether one of its hints is in `text`.
    fn hinted(&self, text: &str) -> [bool; COUNT] {
        let hits = self
            .finder
            .as_ref()
            .filter(|_| text.is_ascii() || !text.chars().any(is_more_than_it_looks))
            .and_then(|finder| finder.try_find_overlapping_iter(text).ok());
        let Some(hits) = hits else {
            return [true; COUNT];
        };
        let mut hinted = [false; COUNT];
        for hit in hits {
            let owner = self.owners.get(hit.pattern().as_usize());
            if let Some(shape) = owner.and_then(|owner| hinted.get_mut(*owner)) {
                *shape = true;
            }
        }
        hinted
    }
}

/// Whether an expression may take this for a letter or for white space of ASCII: the signs
/// for kelvin and for a long s are letters in capitals or not, and Unicode has more spaces.
fn is_more_than_it_looks(c: char) -> bool {
    !c.is_ascii() && (c.is_whitespace() || matches!(c, '\u{212a}' | '\u{17f}'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{BoxedStrategy, Strategy, prop_assert, proptest};
    use proptest::string::string_regex;

    use super::*;

    fn regex(shape: &Shape) -> Regex {
        Regex::new(shape.expression).unwrap()
    }

    /// Texts that an expression matches.
    fn matching(shape: &Shape) -> BoxedStrategy<String> {
        // Places have no length, so that they cannot be drawn.
        let expression = shape
            .expression
            .replace(r"\b", "")
            .replace(r"(?:^|\s)", r"\s")
            .replace("|$)", ")");
        string_regex(&expression).unwrap().boxed()
    }

    proptest! {
        #[test]
        fn tr_09_what_a_shape_matches_has_a_hint(
            texts in SHAPES.iter().map(matching).collect::<Vec<_>>(),
            around in "[ -~]{0,9}",
        ) {
            let shapes = Shapes::new();
            for (shape, (place, text)) in SHAPES.iter().zip(texts.iter().enumerate()) {
                let text = format!("{around} {text} {around}");
                prop_assert!(regex(shape).is_match(&text), "{text:?}");
                prop_assert!(shapes.hinted(&text)[place], "{text:?}");
            }
        }
    }

    #[test]
    fn tr_09_letters_that_are_capitals_of_others_hide_nothing() {
        let shapes = Shapes::new();
        for text in [
            "TO\u{212a}EN=abcdefgh",
            "pa\u{17f}\u{17f}word: abcdefgh",
            "Bearer\u{2003}abcdefghabcdefgh",
        ] {
            let found: Vec<&str> = shapes
                .suspected(text)
                .filter(|(_, shape)| shape.unwrap().is_match(text))
                .map(|(name, _)| name)
                .collect();
            assert_eq!(found.len(), 1, "{text}: {found:?}");
        }
    }

    #[test]
    fn every_expression_can_be_built() {
        let shapes = Shapes::new();
        let all: Vec<_> = shapes.suspected("\u{2003}").collect();
        assert_eq!(all.len(), COUNT);
        assert!(all.iter().all(|(_, shape)| shape.is_some()));
    }

    #[test]
    fn ordinary_text_builds_nothing() {
        let shapes = Shapes::new();
        for text in [
            "capability `basic-support` is unlocked",
            "https://example.com/a:b/c",
            "ünïcödé and 日本語",
        ] {
            assert_eq!(shapes.suspected(text).count(), 0, "{text}");
        }
    }
}
