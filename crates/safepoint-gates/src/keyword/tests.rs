//! Keywords in every mode, against the words as a person would look for them.

use proptest::prelude::*;

use super::fold::{Case, plain};
use super::{KeywordError, KeywordRule, KeywordSet};
use crate::atlas::MatchMode;

const MODES: [MatchMode; 4] = [
    MatchMode::Any,
    MatchMode::All,
    MatchMode::Phrase,
    MatchMode::Regex,
];

fn strings(patterns: &[&str]) -> Vec<String> {
    patterns.iter().map(|text| (*text).to_owned()).collect()
}

fn set(
    patterns: &[&str],
    match_mode: MatchMode,
    case_sensitive: bool,
) -> Result<KeywordSet, KeywordError> {
    KeywordSet::new(&[KeywordRule {
        patterns: &strings(patterns),
        match_mode,
        case_sensitive,
    }])
}

fn fits(patterns: &[&str], mode: MatchMode, text: &str) -> bool {
    found(&set(patterns, mode, false).unwrap(), text) == [0]
}

fn found(set: &KeywordSet, text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    set.matching(text, &mut found);
    found
}

#[test]
fn ga_13_whole_words_and_wildcards() {
    for (pattern, text, expected) in [
        ("refund", "I want a refund.", true),
        ("refund", "REFUND", true),
        ("refund", "I was refunded", false),
        ("refund", "prerefund", false),
        ("refund", "refund_all", false),
        ("refund", "(refund)", true),
        ("refund*", "I was refunded", true),
        ("refund*", "refund", true),
        ("refund*", "prerefund", false),
        ("*fund", "a refund", true),
        ("*fund", "funds", false),
        ("*fund*", "he refunded me", true),
        ("re*d", "refund", true),
        ("re*d", "re d", false),
        ("re*d", "red", true),
        ("re*d", "reads", false),
        ("a*a", "a", false),
        ("a*a", "a aa", true),
        ("credit card", "my credit card", true),
        ("credit card", "my credit -\n card", true),
        ("credit card", "credit-card", true),
        ("credit card", "credit my card", false),
        ("credit card", "creditcard", false),
        ("credit-card", "credit card", true),
        ("cred* card*", "two credit cards", true),
        ("cred* card*", "two credit big cards", false),
        ("big cred* card", "a big credit card", true),
        (
            "big cred* card",
            "a small credit card, a big credit card",
            true,
        ),
        ("big cred* card", "a small credit card", false),
        ("geometry|index", "the index", true),
        ("geometry|index", "the indexes", false),
        ("geometry|index*", "the indexes", true),
        ("delete|remove all", "remove all", true),
        ("delete|remove all", "remove", false),
        ("don't", "I don’t", true),
        ("退款", "我要退款!", true),
        ("退款", "我要退還款", false),
        ("42", "42%", true),
    ] {
        assert_eq!(
            fits(&[pattern], MatchMode::Any, text),
            expected,
            "{pattern} in {text}"
        );
        // Alone, a pattern means the same in each of these modes.
        assert_eq!(
            fits(&[pattern], MatchMode::All, text),
            expected,
            "{pattern} in {text}"
        );
        assert_eq!(
            fits(&[pattern], MatchMode::Phrase, text),
            expected,
            "{pattern} in {text}"
        );
    }
}

#[test]
fn ga_13_any_all_and_phrase() {
    let two = ["credit|debit", "card*"];
    for (text, any, all, phrase) in [
        ("a credit card", true, true, true),
        ("debit, cards", true, true, true),
        ("a card for credit", true, true, false),
        ("credit my card", true, true, false),
        ("credit", true, false, false),
        ("neither", false, false, false),
        ("card credit card", true, true, true),
    ] {
        assert_eq!(fits(&two, MatchMode::Any, text), any, "{text}");
        assert_eq!(fits(&two, MatchMode::All, text), all, "{text}");
        assert_eq!(fits(&two, MatchMode::Phrase, text), phrase, "{text}");
    }
    assert!(fits(
        &["drop", "all", "tables"],
        MatchMode::Phrase,
        "DROP all -- tables;"
    ));
    assert!(!fits(
        &["drop", "all", "tables"],
        MatchMode::Phrase,
        "drop tables all"
    ));
    assert!(fits(&["a|a b", "b|c", "d"], MatchMode::Phrase, "a b c d"));
    assert!(!fits(&["a|a b", "c", "c"], MatchMode::Phrase, "a b c d"));
    for mode in MODES {
        assert!(!fits(&[], mode, "anything"), "no patterns, {mode:?}");
    }
}

#[test]
fn ga_13_letter_case() {
    for mode in MODES {
        let folded = set(&["Straße"], mode, false).unwrap();
        let kept = set(&["Straße"], mode, true).unwrap();
        assert_eq!(found(&folded, "straße"), [0], "{mode:?}");
        assert_eq!(found(&kept, "straße"), [] as [u32; 0], "{mode:?}");
        assert_eq!(found(&kept, "die Straße"), [0], "{mode:?}");
    }
    assert!(fits(&["strasse"], MatchMode::Any, "STRAẞE"));
    assert!(fits(&["ὀδυσσεύς"], MatchMode::Any, "ὈΔΥΣΣΕΎΣ"));
}

#[test]
fn ga_13_disguises() {
    for text in [
        "re\u{ad}fund",
        "re\u{200b}f\u{200d}und",
        "ｒｅｆｕｎｄ",
        "𝐫𝐞𝐟𝐮𝐧𝐝",
        "\u{feff}refund",
        "refund\u{2028}",
        "r\u{e0020}efund",
    ] {
        assert!(fits(&["refund"], MatchMode::Any, text), "{text:?}");
        assert!(fits(&[r"\brefund\b"], MatchMode::Regex, text), "{text:?}");
    }
    assert!(fits(&["file"], MatchMode::Any, "a ﬁle"));
    assert!(fits(&["ﬁle"], MatchMode::Any, "a file"));
    assert!(fits(&["café"], MatchMode::Any, "cafe\u{301}"));
}

#[test]
fn ga_13_regular_expressions() {
    for (pattern, text, expected) in [
        (r"refund(ed|s)? of \$\d+", "a REFUND of $20", true),
        (r"refund(ed|s)? of \$\d+", "a refund of 20", false),
        (r"\d{3}-\d{4}", "call 555-1234", true),
        (r"a|b", "xxbxx", true),
        (r"^start", "start here", true),
        (r"^start", "not start", false),
        (r"[Ab&&a]x", "AX", true),
        // Without a text that every match has; on ASCII and on other texts.
        (r"\b[a-c]{3}\b", "x ABC y", true),
        (r"\b[a-c]{3}\b", "é ABC y", true),
        (r"\b[a-c]{3}\b", "xABC", false),
        (r"\b[a-c]{3}\b", "éABC", false),
        (r"\B[a-c]\B", "xax", true),
        (r"\B[a-c]\B", "x a x", false),
        (r"\w{4}\W", "äöüß!", true),
        (r"(?x) [0-9]{2} # two digits", "a 42", true),
        (r"(?m)^[0-9]$", "a\n7\nb", true),
        (r"^[0-9]$", "a\n7\nb", false),
        (r"[é-ë]", "abc", false),
        (r"(?s).", "\n", true),
        (r".", "\n", false),
        (r"\w+@example\.com", "mail me@EXAMPLE.com", true),
    ] {
        assert_eq!(
            fits(&[pattern], MatchMode::Regex, text),
            expected,
            "{pattern} in {text}"
        );
    }
}

#[test]
fn ga_13_what_cannot_be_looked_for() {
    let long = "a".repeat(1_001);
    for (pattern, mode, why) in [
        ("", MatchMode::Any, "no letter"),
        ("a||b", MatchMode::Any, "no letter"),
        ("!!", MatchMode::All, "no letter"),
        ("*", MatchMode::Phrase, "stands for every word"),
        ("a * b", MatchMode::Any, "stands for every word"),
        (long.as_str(), MatchMode::Any, "1000 characters"),
        (long.as_str(), MatchMode::Regex, "1000 characters"),
        ("", MatchMode::Regex, "empty"),
        ("(", MatchMode::Regex, "unclosed group"),
        (r"(a)\1", MatchMode::Regex, "backreferences"),
        (r"(?=a)", MatchMode::Regex, "look-around"),
        (r"(\w{100}){100}", MatchMode::Regex, "larger than"),
    ] {
        let error = set(&["fine", pattern], mode, false).unwrap_err();
        assert_eq!((error.rule, error.index), (0, 1), "{pattern}");
        assert!(error.to_string().contains(why), "{error}");
    }
    let stars = format!("a{}", "*b".repeat(17));
    let error = set(&[&stars], MatchMode::Any, false).unwrap_err();
    assert!(error.to_string().contains("16 wildcards"), "{error}");
}

#[test]
fn ga_13_many_rules_keep_their_places() {
    let patterns: Vec<Vec<String>> = (0..2_000)
        .map(|number| match number % 4 {
            3 => vec![format!(r"word{number}\s+\d+")],
            1 => vec![format!("word{number}"), "both".to_owned()],
            0 => vec![format!("word{number}|other{number}")],
            _ => vec![format!("word{number}"), "next".to_owned()],
        })
        .collect();
    let rules: Vec<KeywordRule<'_>> = patterns
        .iter()
        .enumerate()
        .map(|(number, patterns)| KeywordRule {
            patterns,
            match_mode: MODES[number % 4],
            case_sensitive: number % 8 >= 4,
        })
        .collect();
    let set = KeywordSet::new(&rules).unwrap();
    let text =
        "other8 word4 word1999 7 word17 both word10 next word14 not next Word12 WORD16 word1991 x";
    assert_eq!(found(&set, text), [4, 8, 10, 16, 17, 1999]);
    assert_eq!(found(&set, ""), [] as [u32; 0]);
}

#[test]
fn ga_13_hundred_thousand_patterns() {
    let patterns: Vec<Vec<String>> = (0..100_000)
        .map(|number| vec![format!("word{number}"), format!("part{number}*")])
        .collect();
    let rules: Vec<KeywordRule<'_>> = patterns
        .iter()
        .map(|patterns| KeywordRule {
            patterns,
            match_mode: MatchMode::Any,
            case_sensitive: false,
        })
        .collect();
    let set = KeywordSet::new(&rules).unwrap();
    assert_eq!(found(&set, "Word99999 xword5 part7x"), [7, 99_999]);
}

#[test]
fn ga_13_hostile_texts_stay_bounded() {
    let patterns = ["*a*", "*a*a*a*a*a*b", "a|aa|aaa", "a*", "a a a a a b"];
    for mode in [MatchMode::Any, MatchMode::All, MatchMode::Phrase] {
        let set = set(&patterns, mode, false).unwrap();
        for text in [
            "a".repeat(1 << 18),
            "a ".repeat(1 << 17),
            "a\u{301}".repeat(1 << 16),
        ] {
            found(&set, &text);
        }
    }
    let set = set(
        &["(a+)+$", "(a|aa)*b", r"(\w+\s?)*!"],
        MatchMode::Regex,
        false,
    )
    .unwrap();
    found(&set, &"a".repeat(1 << 16));
}

/// The meaning of one keyword, written as plainly as it can be.
fn naive(keyword: &str, words: &[&str]) -> Vec<(usize, usize)> {
    let wanted: Vec<&str> = keyword.split(' ').collect();
    (0..words.len())
        .filter(|start| {
            let given = words.get(*start..start + wanted.len());
            given.is_some_and(|given| {
                wanted.iter().zip(given).all(|(wanted, given)| {
                    regex::Regex::new(&format!("^{}$", wanted.replace('*', ".*")))
                        .unwrap()
                        .is_match(given)
                })
            })
        })
        .map(|start| (start, start + wanted.len()))
        .collect()
}

fn naive_rule(patterns: &[String], mode: MatchMode, words: &[&str]) -> bool {
    let slots: Vec<Vec<(usize, usize)>> = patterns
        .iter()
        .map(|pattern| {
            pattern
                .split('|')
                .flat_map(|keyword| naive(keyword, words))
                .collect()
        })
        .collect();
    match mode {
        MatchMode::Any => slots.iter().any(|slot| !slot.is_empty()),
        MatchMode::All => slots.iter().all(|slot| !slot.is_empty()),
        _ => (0..=words.len()).any(|start| chained(start, &slots)),
    }
}

fn chained(start: usize, slots: &[Vec<(usize, usize)>]) -> bool {
    slots.split_first().is_none_or(|(first, rest)| {
        first
            .iter()
            .any(|(from, to)| *from == start && chained(*to, rest))
    })
}

fn keyword() -> impl Strategy<Value = String> {
    let word =
        prop_oneof![3 => "[ab]{1,2}", 1 => "[ab]{1,2}\\*", 1 => "\\*[ab]", 1 => "[ab]\\*[ab]"];
    proptest::collection::vec(word, 1..3).prop_map(|words| words.join(" "))
}

fn rule() -> impl Strategy<Value = (Vec<String>, MatchMode)> {
    let pattern = proptest::collection::vec(keyword(), 1..3).prop_map(|all| all.join("|"));
    let mode = prop_oneof![
        Just(MatchMode::Any),
        Just(MatchMode::All),
        Just(MatchMode::Phrase)
    ];
    (proptest::collection::vec(pattern, 1..4), mode)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn ga_13_all_at_once_is_each_alone(
        rules in proptest::collection::vec(rule(), 1..8),
        text in "[ab]{0,4}([ ,.-]{1,2}[ab]{1,3}){0,8}",
    ) {
        let words: Vec<&str> = text.split([' ', ',', '.', '-']).filter(|word| !word.is_empty()).collect();
        let expected: Vec<u32> = (0..)
            .zip(&rules)
            .filter(|(_, (patterns, mode))| naive_rule(patterns, *mode, &words))
            .map(|(number, _)| number)
            .collect();
        let rules: Vec<KeywordRule<'_>> = rules
            .iter()
            .map(|(patterns, match_mode)| KeywordRule { patterns, match_mode: *match_mode, case_sensitive: false })
            .collect();
        prop_assert_eq!(found(&KeywordSet::new(&rules).unwrap(), &text), expected, "{:?}", rules);
    }

    #[test]
    fn ga_13_expressions_at_once_are_each_alone(
        patterns in proptest::collection::vec("(\\(?[abK]{1,3}(\\|[ab]{1,2})?\\)?[*+?]?){1,3}|[abk]{2,3}\\[ab\\][ab]?|\\\\d?a\\{2\\}b", 1..30),
        text in "[abkK\u{212a} ]{0,20}",
    ) {
        let patterns: Vec<Vec<String>> = patterns
            .into_iter()
            .filter(|pattern| regex::Regex::new(pattern).is_ok())
            .map(|pattern| vec![pattern])
            .collect();
        let rules: Vec<KeywordRule<'_>> = patterns
            .iter()
            .map(|patterns| KeywordRule { patterns, match_mode: MatchMode::Regex, case_sensitive: false })
            .collect();
        let seen = text.replace('\u{212a}', "K");
        let expected: Vec<u32> = (0..)
            .zip(&patterns)
            .filter(|(_, patterns)| regex::Regex::new(&format!("(?i){}", patterns[0])).unwrap().is_match(&seen))
            .map(|(number, _)| number)
            .collect();
        prop_assert_eq!(found(&KeywordSet::new(&rules).unwrap(), &text), expected, "{:?}", patterns);
    }

    /// What is blotted out for some expressions still counts for those that see it.
    #[test]
    fn ga_13_foreign_characters_hide_nothing(
        pieces in proptest::collection::vec(
            proptest::collection::vec(
                prop::sample::select(vec![
                    "[ab]", "[ab]{2}", "\\d", "\\w", "\\b", "\\B", "^", "$", "(?m:^)", "(?m:$)", ".", "[^a]",
                    "\\s", "[aü]", "[ks]", "\\x00", "[a-z]?", "(?-u:\\b)", "(?s:.)*", "é?",
                ]),
                1..5,
            ),
            1..12,
        ),
        text in "[abks1ü\u{663}ſé \n\u{0}漢]{0,10}",
    ) {
        let patterns: Vec<Vec<String>> = pieces
            .iter()
            .map(|pieces| vec![pieces.concat()])
            .filter(|patterns| regex::Regex::new(&patterns[0]).is_ok())
            .collect();
        let rules: Vec<KeywordRule<'_>> = patterns
            .iter()
            .map(|patterns| KeywordRule { patterns, match_mode: MatchMode::Regex, case_sensitive: true })
            .collect();
        let seen = plain(&text, Case::Kept);
        let expected: Vec<u32> = (0..)
            .zip(&patterns)
            .filter(|(_, patterns)| regex::Regex::new(&patterns[0]).unwrap().is_match(&seen))
            .map(|(number, _)| number)
            .collect();
        prop_assert_eq!(found(&KeywordSet::new(&rules).unwrap(), &text), expected, "{:?}", patterns);
    }

    #[test]
    fn ga_13_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        fuzz_keyword(&bytes);
    }

    #[test]
    fn ga_13_any_text_is_survived(text in "\\PC{0,30}\n\\PC{0,60}") {
        fuzz_keyword(text.as_bytes());
    }
}

/// The first line is a pattern, the rest a text.
fn fuzz_keyword(bytes: &[u8]) {
    let all = String::from_utf8_lossy(bytes);
    let (pattern, text) = all.split_once('\n').unwrap_or((&all, &all));
    for mode in MODES {
        for case_sensitive in [false, true] {
            if let Ok(set) = set(&[pattern], mode, case_sensitive) {
                found(&set, text);
                let alone = !pattern.contains(['*', '|']) && mode != MatchMode::Regex;
                assert!(
                    !alone || found(&set, pattern) == [0],
                    "{pattern:?} in itself"
                );
            }
        }
    }
}
