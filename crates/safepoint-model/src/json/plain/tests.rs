use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::super::{canonical, read, read_as};
use super::*;

/// What the short way reads, the long way reads in the same way.
fn agree(input: &str) {
    let limits = Limits::default();
    if let Some(short) = read_plain::<Value>(input.as_bytes(), limits) {
        assert_eq!(read(input.as_bytes(), limits).ok(), Some(short), "{input}");
    }
    type Numbers = BTreeMap<String, i16>;
    if let Some(short) = read_plain::<Numbers>(input.as_bytes(), limits) {
        let long = read_as::<Numbers>(input.as_bytes(), limits).unwrap();
        assert_eq!(long, short, "{input}");
    }
}

fn short(input: &str) -> Option<Value> {
    read_plain(input.as_bytes(), Limits::default())
}

#[derive(Debug, Deserialize, PartialEq)]
struct Rule {
    name: Option<String>,
    #[serde(default)]
    word: Option<Word>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Word {
    Yes,
}

#[test]
fn a_plain_document_takes_the_short_way() {
    let plain = r#" {"a": [1, -2, 0, 0.5, true, null], "b": {"c": "d\n\u00e9\"", "": []}} "#;
    assert_eq!(short(plain), read(plain.as_bytes(), Limits::default()).ok());
    assert!(short(plain).is_some());
    for odd in [
        "",
        "{",
        "[1,]",
        "[,1]",
        "{,}",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{a:1}",
        "[1 2]",
        "[1]]",
        "01",
        "-",
        "-01",
        "1.",
        ".5",
        "1e400",
        "9007199254740993",
        "99999999999999999999999",
        "9007199254740993.0",
        "\"\\ud800\"",
        "\"\\u12\"",
        "\"\\u+123\"",
        "\"\\x\"",
        "\"a\nb\"",
        "\"a",
        "\u{feff}1",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "nul",
        "nullx",
        "tru",
    ] {
        assert_eq!(short(odd), None, "{odd}");
    }
}

#[test]
fn a_structure_is_a_mapping_and_a_word_is_a_text() {
    let rule = |input: &str| read_plain::<Rule>(input.as_bytes(), Limits::default());
    let (name, word) = (Some(String::from("x")), Some(Word::Yes));
    assert_eq!(
        rule(r#"{"name":"x","word":"yes"}"#),
        Some(Rule { name, word })
    );
    assert_eq!(rule(r#"["x","yes"]"#), None);
    assert_eq!(rule(r#"{"word":{"yes":null}}"#), None);
}

#[test]
fn many_keys_are_told_apart() {
    let keys: Vec<String> = (0..40).map(|number| format!("\"k{number}\":1")).collect();
    let keys = keys.join(",");
    assert!(short(&format!("{{{keys}}}")).is_some());
    for number in [0, 15, 16, 17, 39] {
        assert_eq!(short(&format!("{{{keys},\"k{number}\":2}}")), None);
    }
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [MAX_DEPTH, MAX_DEPTH + 1, 100_000] {
        let long = read(deep(levels).as_bytes(), Limits::default());
        assert_eq!(short(&deep(levels)), long.ok());
    }
    let limits = Limits {
        bytes: 3,
        ..Limits::default()
    };
    assert!(read_plain::<Value>(b"123", limits).is_some());
    assert!(read_plain::<Value>(b"1234", limits).is_none());
}

fn any_json() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6..1e6_f64).prop_map(Value::from),
        ".{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest::proptest! {
    #[test]
    fn both_ways_agree_on_what_is_written(value in any_json()) {
        let text = serde_json::to_string_pretty(&value).unwrap();
        let read_back = short(&text).unwrap();
        assert_eq!(canonical(&read_back).ok(), canonical(&value).ok());
        agree(&text);
    }

    #[test]
    fn both_ways_agree_on_nonsense(
        text in "[\\[\\]{}\":,0-9.eE+ \\n\\\\untrfalse-]{0,12}",
    ) {
        agree(&text);
        agree(&format!("[{text}]"));
        agree(&format!("{{\"a\":{text}}}"));
    }

    #[test]
    fn both_ways_agree_on_numbers(text in "-?[0-9]{0,20}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{1,3})?") {
        agree(&text);
        agree(&format!("{{\"a\":{text}}}"));
    }
}
