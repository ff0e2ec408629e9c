//! Patterns against a matcher that simply tries everything.

use proptest::prelude::*;

use super::{Pattern, PatternSet};

/// The meaning of a pattern, written as plainly as it can be.
fn naive(pattern: &[&str], name: &[&str]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((&"*", later)), Some((_, rest))) => naive(later, rest) || naive(pattern, rest),
        (Some((segment, later)), Some((first, rest))) => {
            naive_glob(segment.as_bytes(), first.as_bytes()) && naive(later, rest)
        }
        _ => false,
    }
}

fn naive_glob(glob: &[u8], text: &[u8]) -> bool {
    match (glob.split_first(), text.split_first()) {
        (None, None) => true,
        (Some((b'*', later)), None) => naive_glob(later, text),
        (Some((b'*', later)), Some((_, rest))) => naive_glob(later, text) || naive_glob(glob, rest),
        (Some((wanted, later)), Some((given, rest))) => wanted == given && naive_glob(later, rest),
        _ => false,
    }
}

fn expected(pattern: &str, name: &str) -> bool {
    !name.split('.').any(str::is_empty)
        && naive(
            &pattern.split('.').collect::<Vec<_>>(),
            &name.split('.').collect::<Vec<_>>(),
        )
}

fn matches(pattern: &str, name: &str) -> bool {
    Pattern::parse(pattern).unwrap().matches(name)
}

fn set(patterns: &[&str]) -> PatternSet {
    PatternSet::new(
        patterns
            .iter()
            .enumerate()
            .map(|(number, text)| (Pattern::parse(text).unwrap(), number as u32)),
    )
}

fn found(set: &PatternSet, name: &str) -> Vec<u32> {
    let mut found = Vec::new();
    set.matching(name, &mut found);
    found
}

#[test]
fn ga_12_forms_of_patterns() {
    for (pattern, name, fits) in [
        ("ticket.delete", "ticket.delete", true),
        ("ticket.delete", "ticket.Delete", false),
        ("ticket.delete", "ticket.delete.now", false),
        ("ticket.*", "ticket.get", true),
        ("ticket.*", "ticket.comment.add", true),
        ("ticket.*", "ticket", false),
        ("ticket.*", "tickets.get", false),
        ("mcp.*", "mcp.github.create_issue", true),
        ("*.delete", "ticket.delete", true),
        ("*.delete", "ticket.soft.delete", true),
        ("*.delete", "delete", false),
        ("admin.*.delete", "admin.user.delete", true),
        ("admin.*.delete", "admin.user.role.delete", true),
        ("admin.*.delete", "admin.delete", false),
        ("admin.*.delete", "admin.delete.delete.x", false),
        ("delete_*", "delete_all", true),
        ("delete_*", "delete_", true),
        ("delete_*", "delete_all.now", false),
        ("file.*_all", "file.delete_all", true),
        ("file.a*b*c", "file.a1b2c", true),
        ("file.a*a", "file.a", false),
        ("*", "anything", true),
        ("*", "any.thing", true),
        ("*.*", "one", false),
        ("*.*", "one.two.three", true),
        ("*.b.*.b", "b.b.b.b", true),
        ("größe.*", "größe.ändern", true),
    ] {
        assert_eq!(matches(pattern, name), fits, "{pattern} on {name}");
        assert_eq!(
            found(&set(&[pattern]), name),
            if fits { vec![0] } else { vec![] },
            "{pattern} on {name}, as a set"
        );
    }
}

#[test]
fn ga_12_what_is_no_pattern() {
    let long = "a".repeat(1_001);
    let stars = vec!["*"; 17].join(".");
    for (text, why) in [
        ("", "empty"),
        ("a..b", "empty segment"),
        (".a", "empty segment"),
        ("a.", "empty segment"),
        ("a b", "white space"),
        ("a\u{a0}b", "white space"),
        ("a\u{1b}b", "control"),
        ("a.**", "`**`"),
        (&long, "1,000"),
        (&stars, "16 wildcards"),
    ] {
        let message = Pattern::parse(text).unwrap_err().to_string();
        assert!(message.contains(why), "{message}");
    }
    let hostile = Pattern::parse("a\u{1b}[2J b").unwrap_err().to_string();
    assert!(!hostile.contains('\u{1b}'), "{hostile}");
    assert!(Pattern::parse(&"a".repeat(1_000)).is_ok());
    assert!(Pattern::parse(&vec!["*"; 16].join(".")).is_ok());
}

#[test]
fn ga_12_hostile_names_match_nothing() {
    let everything = set(&["*", "*.*", "a*", "*a*.*"]);
    let huge = "a.".repeat(1 << 20) + "a";
    for name in ["", ".", "..", "a..b", ".a", "a.", &huge] {
        assert_eq!(found(&everything, name), Vec::<u32>::new());
        assert!(!matches("*", name));
    }
}

#[test]
fn ga_12_numbers_come_in_order_and_once() {
    let patterns = ["a.*", "*.b", "a.b", "c.*", "a.b*"];
    let numbers = [7, 3, 7, 1, 0];
    let set = PatternSet::new(
        patterns
            .iter()
            .zip(numbers)
            .map(|(text, number)| (Pattern::parse(text).unwrap(), number)),
    );
    assert_eq!(found(&set, "a.b"), [0, 3, 7]);
    assert!(found(&PatternSet::default(), "a.b").is_empty());
}

#[test]
fn ga_12_many_stars_stay_bounded() {
    // Going back over each star would take longer than anyone waits.
    let pattern = vec!["*"; 15].join(".a.") + ".b";
    let inside = "*a".repeat(16) + "b";
    let name = vec!["a"; 2_000].join(".");
    let long = "a".repeat(4_000);
    assert!(!matches(&pattern, &name));
    assert!(!matches(&inside, &long));
    let many: Vec<String> = (0..200)
        .map(|number| format!("{}.x{number}", vec!["*"; 1 + number % 8].join(".a*.")))
        .collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(found(&set(&many), &name).is_empty());
}

fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[ab]{1,3}",
        2 => Just("*".to_owned()),
        2 => "[ab]{0,2}\\*[ab]{1,2}",
        1 => "[ab]{1,2}\\*",
        1 => "\\*[ab]\\*[ab]?",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn ga_12_set_and_pattern_and_plain_meaning_agree(
        patterns in proptest::collection::vec(
            proptest::collection::vec(segment(), 1..5).prop_map(|parts| parts.join(".")), 1..24),
        names in proptest::collection::vec("[ab]{0,3}(\\.[ab]{0,3}){0,5}", 1..12),
    ) {
        let texts: Vec<&str> = patterns.iter().map(String::as_str).collect();
        let set = set(&texts);
        for name in &names {
            let plain: Vec<u32> = (0_u32..)
                .zip(&texts)
                .filter(|(_, text)| expected(text, name))
                .map(|(number, _)| number)
                .collect();
            let single: Vec<u32> = (0_u32..)
                .zip(&texts)
                .filter(|(_, text)| matches(text, name))
                .map(|(number, _)| number)
                .collect();
            prop_assert_eq!(&single, &plain, "{:?} on {}", texts, name);
            prop_assert_eq!(&found(&set, name), &plain, "{:?} on {}", texts, name);
        }
    }

    #[test]
    fn ga_12_any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        fuzz_pattern(&bytes);
    }

    #[test]
    fn ga_12_any_text_is_survived(text in "[a*.é ]{0,40}\n[a*.é]{0,40}") {
        fuzz_pattern(text.as_bytes());
    }
}

/// The first line is a pattern, the second a name.
fn fuzz_pattern(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (pattern, name) = text.split_once('\n').unwrap_or((&text, &text));
    let Ok(pattern) = Pattern::parse(pattern) else {
        return;
    };
    let fits = pattern.matches(name);
    assert!(pattern.exact().is_none() || fits == (pattern.as_str() == name));
    let set = PatternSet::new([(pattern, 9)]);
    assert_eq!(found(&set, name), if fits { vec![9] } else { vec![] });
}
