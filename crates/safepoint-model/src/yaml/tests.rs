//! YAML as people write it, and the ways of reading it held against each other.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Policy {
    name: String,
    strict: bool,
}

fn refused(input: &str) -> String {
    read_as::<Value>(input).unwrap_err().to_string()
}

#[test]
fn yes_and_no_are_texts() {
    let value: Value = read_as("a: yes\nb: no\nc: on\nd: true\ne: NO\n").unwrap();
    let expected = json!({"a": "yes", "b": "no", "c": "on", "d": true, "e": "NO"});
    assert_eq!(value, expected);
    let policy: Policy = read_as("name: no\nstrict: false\n").unwrap();
    assert_eq!(policy.name, "no");
    let error = read_as::<Policy>("name: x\nstrict: yes\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected `true` or `false` at line 2 column 9"
    );
}

#[test]
fn tells_what_is_wrong_and_where() {
    let cases = [
        (
            "a: 1\nb: 2\na: 3\n",
            "key `a` occurs twice at line 3 column 1",
        ),
        (
            "a: [1, 2\nb: 3\n",
            "illegal placement of ':' indicator at line 2 column 2",
        ),
        (
            "a: 1\n---\nb: 2\n",
            "a second document begins here; only one is read at line 3 column 1",
        ),
        (
            "a: 1\n---\n",
            "a second document begins here; only one is read at line 2 column 4",
        ),
        (
            "a: 1\n...\nb: 2\n",
            "a second document begins here; only one is read at line 3 column 1",
        ),
        ("a: 1\n...\n]", "misplaced bracket at line 3 column 1"),
        (
            "a: *x\n",
            "alias has no anchor before it at line 1 column 4",
        ),
        (
            "a: &x [*x]\n",
            "alias stands inside its own anchor at line 1 column 8",
        ),
        (
            "a: &x {b: 1}\nc:\n  <<: *x\n",
            "merge keys (`<<`) are not read; write the fields out at line 3 column 3",
        ),
        (
            "a: !secret x\n",
            "unsupported tag `!secret` at line 1 column 12",
        ),
        (
            "a: .nan\n",
            "value `.nan` is not a finite number at line 1 column 4",
        ),
    ];
    for (input, message) in cases {
        assert_eq!(refused(input), message, "{input}");
    }
    let unknown = read_as::<Policy>("name: x\nstrict: true\nstrickt: true\n").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown field `strickt`, expected one of name, strict at line 3 column 1"
    );
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let alias = format!("*a{}", level - 1);
        let list = [alias.as_str(); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{list}]\n"));
    }
    let error = read_as::<BTreeMap<String, Value>>(&bomb).unwrap_err();
    assert_eq!(
        error.to_string(),
        "aliases repeat too much; write the values out at line 5 column 10"
    );
    let honest = "a: &a [1]\nb: *a\n";
    assert_eq!(
        read_as::<Value>(honest).unwrap(),
        json!({"a": [1], "b": [1]})
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let long = format!("a: {}", "x".repeat(MAX_BYTES));
    assert!(refused(&long).contains("too large"));
    let deep = "[".repeat(10_000);
    assert!(read_as::<Value>(&deep).is_err());
}

#[test]
fn a_message_draws_nothing() {
    let error = read_as::<Policy>("\"\\e[2J\": 1\n")
        .unwrap_err()
        .to_string();
    assert!(!error.contains('\u{1b}'), "{error:?}");
}

/// What the short way reads, the long way reads in the same way.
fn agree(input: &str) {
    let shortest: Option<Value> = quick::read_lines(input);
    if let Some(shortest) = shortest {
        assert_eq!(quick::read_events(input), Some(shortest), "{input:?}");
    }
    let short: Option<Value> = quick::read(input);
    if let Some(short) = short {
        assert_eq!(read_strictly::<Value>(input), Ok(short), "{input:?}");
    }
    let short: Option<BTreeMap<String, String>> = quick::read(input);
    if let Some(short) = short {
        assert_eq!(
            read_strictly::<BTreeMap<String, String>>(input),
            Ok(short),
            "{input:?}"
        );
    }
    let short: Option<BTreeMap<String, Option<bool>>> = quick::read(input);
    if let Some(short) = short {
        let long = read_strictly::<BTreeMap<String, Option<bool>>>(input);
        assert_eq!(long, Ok(short), "{input:?}");
    }
    let short: Option<BTreeMap<String, i16>> = quick::read(input);
    if let Some(short) = short {
        let long = read_strictly::<BTreeMap<String, i16>>(input);
        assert_eq!(long, Ok(short), "{input:?}");
    }
    let short: Option<BTreeMap<String, f64>> = quick::read(input);
    if let Some(short) = short {
        let long = read_strictly::<BTreeMap<String, f64>>(input);
        assert_eq!(long, Ok(short), "{input:?}");
    }
}

#[test]
fn plain_documents_take_the_short_way() {
    let plain = "a: 1\nb: [x, \"y\", 'z']\nc: {d: true, e: ~}\nf: |\n  g\n  h\n";
    let expected = json!({
        "a": 1, "b": ["x", "y", "z"], "c": {"d": true, "e": null}, "f": "g\nh\n"
    });
    assert_eq!(quick::read::<Value>(plain), Some(expected));
    let by_lines = "# head\na: 1\nb: [x, \"y\", 'z']\nc: {d: true, e: ~}\nf:\n- g: h i\n  j:\n\n  # k\n- l\nm: \"a \\\\d \\\"\" # n\n";
    let expected = json!({
        "a": 1, "b": ["x", "y", "z"], "c": {"d": true, "e": null},
        "f": [{"g": "h i", "j": null}, "l"], "m": "a \\d \""
    });
    assert_eq!(quick::read_lines::<Value>(by_lines), Some(expected.clone()));
    assert_eq!(quick::read_events::<Value>(by_lines), Some(expected));
    for other in [
        "a: &x 1\nb: *x\n",
        "a: !!str 1\n",
        "a: 1\na: 2\n",
        "a: 1\n\"a\": 2\n",
        "<<: {a: 1}\n",
        "a: 0x10\n",
        "a: .nan\n",
        "a: 1\n---\nb: 2\n",
        "a: 1\n...\n]",
        "? [a]\n: b\n",
        "",
    ] {
        assert_eq!(quick::read::<Value>(other), None, "{other}");
    }
}

#[test]
fn many_keys_are_told_apart() {
    let mut text = String::new();
    for number in 0..40 {
        text.push_str(&format!("key{number}: {number}\n"));
    }
    assert!(quick::read::<Value>(&text).is_some());
    for number in [0, 15, 16, 17, 39] {
        let twice = format!("{text}key{number}: again\n");
        assert_eq!(quick::read::<Value>(&twice), None, "{number}");
    }
}

proptest::proptest! {
    #[test]
    fn both_ways_agree_on_scalars(
        scalar in "[-+.~0-9a-zA-Z_: #'\"!&*<|>%@,\\[\\]{}]{0,8}",
        key in "[-a-c1~<.]{1,2}",
    ) {
        agree(&format!("{key}: {scalar}\nk: x\n"));
        agree(&format!("- {scalar}\n- {{{key}: [{scalar}]}}\n"));
    }

    #[test]
    fn both_ways_agree_on_words(
        scalar in "(true|True|yes|no|null|NULL|inf|nan|infinity|NaN|-?0?[0-9]{1,20}|[0-9]{1,3}\\.[0-9]{0,3}|-?[0-9]e[0-9]|0[xob][0-9a-f]{1,3}|[0-9]_[0-9]|[0-9]{4}-[0-9]{2}-[0-9]{2})",
        quote in "['\"]?",
    ) {
        agree(&format!("a: {quote}{scalar}{quote}\n"));
        agree(&format!("{quote}{scalar}{quote}: 1\n"));
    }

    #[test]
    fn both_ways_agree_on_lines(
        lines in proptest::collection::vec("( {0,4})(- )?([a-d]:|\\.\\.\\.|---|#|%YAML 1.2|\\? a|: b)?( [a-d]| \\||  >| \\[| \\])?", 0..7),
    ) {
        agree(&lines.join("\n"));
    }

    #[test]
    fn both_ways_agree_on_blocks(
        lines in proptest::collection::vec(
            "( {0,5})((- |-  |-){0,3})([a-d]|\"e\"|'f g'|h i|~)?(:|: | :)?([a-d]|\"x: y\"|'z''z'|\\[a, b\\]|\\{a: b\\}|x #y|x# y|-1|- 1|1:2|a: b|)( #.)? ?",
            1..7,
        ),
    ) {
        agree(&lines.join("\n"));
    }

    #[test]
    fn both_ways_agree_on_brackets(
        inner in "[\\[\\]{}:, a-c\"'#1~\\\\n-]{0,14}",
    ) {
        agree(&format!("k: [{inner}]\n"));
        agree(&format!("k: {{{inner}}}\n"));
        agree(&format!("- {inner}\nk: \"{inner}\"\n"));
        agree(&format!("- \"{inner}\"\n- '{inner}'\n"));
    }

    #[test]
    fn both_ways_agree_on_characters(scalar in ".{0,6}") {
        agree(&format!("a: {scalar}\nb: x\n"));
        agree(&format!("- \"{scalar}\"\n- [{scalar}]\n"));
        agree(&format!("x{scalar}: x\n"));
    }

    #[test]
    fn both_ways_agree_on_whole_documents(value in tree()) {
        let mut text = String::new();
        write_block(&value, 0, &mut text);
        let read: Option<Value> = quick::read_lines(&text);
        assert_eq!(read, quick::read_events(&text), "{text}");
        assert!(read.is_some(), "{text}");
    }
}

#[test]
fn tr_02_a_number_is_exact_or_refused() {
    let read = |text: &str| read_value(&format!("id: {text}\n")).map(|it| it["id"].clone());
    for (text, expected) in [
        ("9007199254740991", json!(9_007_199_254_740_991_u64)),
        ("-9007199254740991", json!(-9_007_199_254_740_991_i64)),
        ("017", json!(17)),
        ("-017", json!(-17)),
        ("+5", json!(5)),
        ("0o17", json!(15)),
        ("0xfF", json!(255)),
        ("1.50", json!(1.5)),
        (".5", json!(0.5)),
        ("1e3", json!(1000.0)),
        ("1_000", json!("1_000")),
        ("0x_ff", json!("0x_ff")),
        ("0b11", json!("0b11")),
        ("1_0.5", json!("1_0.5")),
        ("\"017\"", json!("017")),
        (
            "\"123456789012345678901234567890\"",
            json!("123456789012345678901234567890"),
        ),
        ("2026-11-18", json!("2026-11-18")),
        ("12:30", json!("12:30")),
    ] {
        assert_eq!(read(text).as_ref(), Ok(&expected), "{text}");
    }
    for text in [
        "9007199254740992",
        "-9007199254740992",
        "18446744073709551615",
        "18446744073709551616",
        "123456789012345678901234567890",
        "-123456789012345678901234567890",
        "0x20000000000000",
        "9007199254740993.0",
        "1e20",
        "1e400",
        ".inf",
        "!!int 17",
        "!!str 17",
    ] {
        assert!(read(text).is_err(), "{text}");
    }
    let error = read("123456789012345678901234567890")
        .unwrap_err()
        .to_string();
    assert!(error.contains("not exact"), "{error}");
    assert!(error.ends_with("at line 1 column 5"), "{error}");
}

#[test]
fn tr_02_values_beside_numbers_are_read_as_before() {
    let text = "a: &a [017, x, ~]\nb: *a\nc: {d: 1_0, 1: yes}\ne: |\n  f\n";
    assert_eq!(
        read_value(text).unwrap(),
        json!({"a": [17, "x", null], "b": [17, "x", null], "c": {"d": "1_0", "1": "yes"}, "e": "f\n"})
    );
    assert_eq!(read_value("").unwrap(), Value::Null);
    for wrong in [
        "a: 1\na: 2\n",
        "a: 1\n---\nb: 017\n",
        "a: *x\n",
        "? [1.0]\n: x\n",
    ] {
        assert!(read_value(wrong).is_err(), "{wrong}");
    }
}

proptest::proptest! {
    /// YAML and JSON see the same number, or neither sees one.
    #[test]
    fn tr_02_yaml_reads_the_numbers_of_json_as_json_does(
        number in "-?(0|[1-9][0-9]{0,24})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?",
    ) {
        let by_json = crate::json::read(
            format!("{{\"a\":[{number}]}}").as_bytes(),
            crate::json::Limits::default(),
        );
        let by_yaml = read_value(&format!("a:\n  - {number}\n"));
        match (by_json, by_yaml) {
            (Ok(json), Ok(yaml)) => proptest::prop_assert_eq!(
                crate::json::canonical(&json).unwrap(),
                crate::json::canonical(&yaml).unwrap()
            ),
            (Err(_), Err(_)) => {}
            (json, yaml) => proptest::prop_assert!(false, "{:?} {:?}", json, yaml),
        }
    }

    /// What is written as JSON can be read again, and means the same.
    #[test]
    fn tr_02_no_two_scalars_are_read_as_one_number(
        one in "[-+]?[0-9._xoe]{1,24}",
        other in "[-+]?[0-9]{15,24}",
    ) {
        let read = |text: &str| read_value(&format!("a: {text}\n")).ok();
        if let (Some(one), Some(again)) = (read(&one), read(&other)) {
            for value in [&one, &again] {
                let written = serde_json::to_vec(value).unwrap();
                let read = crate::json::read(&written, crate::json::Limits::default());
                proptest::prop_assert!(read.is_ok(), "{}", value);
            }
            // An integer says exactly what was written.
            if let Some(number) = again["a"].as_i64() {
                let digits = other.trim_start_matches(['+', '-']).trim_start_matches('0');
                let read = number.unsigned_abs().to_string();
                proptest::prop_assert_eq!(read.trim_start_matches('0'), digits);
            }
        }
    }
}

/// A mapping of texts, lists and mappings.
fn tree() -> impl proptest::strategy::Strategy<Value = Value> {
    use proptest::prelude::*;
    let leaf = prop_oneof![
        "[a-z]{1,5}( [a-z0-9]{1,4})?".prop_map(Value::from),
        (-9..99).prop_map(Value::from),
        Just(Value::Null),
        Just(Value::Bool(true)),
    ];
    let map = |inner: BoxedStrategy<Value>| {
        prop::collection::btree_map("[a-z]{1,4}", inner, 1..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    };
    let inner = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            map(inner.boxed()),
        ]
    });
    map(inner.boxed())
}

/// Writes a mapping by indentation; now and then in brackets, and with comments.
fn write_block(value: &Value, indent: usize, out: &mut String) {
    let pad = " ".repeat(indent);
    let entries = value.as_object().into_iter().flatten();
    for (place, (key, value)) in entries.enumerate() {
        match value {
            Value::Object(_) if place % 2 == 0 => {
                out.push_str(&format!("{pad}{key}: # below\n\n"));
                write_block(value, indent + 2, out);
            }
            // A list may stand as far left as its key.
            Value::Array(items) if place % 3 != 2 => {
                out.push_str(&format!("{pad}{key}:\n"));
                let indent = indent + place % 3;
                for item in items {
                    let pad = " ".repeat(indent);
                    match item {
                        Value::Object(_) => {
                            let mut inner = String::new();
                            write_block(item, indent + 2, &mut inner);
                            out.push_str(&format!("{pad}- {}", inner.trim_start()));
                        }
                        other => out.push_str(&format!("{pad}- {}\n", flow(other))),
                    }
                }
            }
            other => out.push_str(&format!("{pad}{key}: {} # end\n", flow(other))),
        }
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| format!("{key}: {}", flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[ {} ]", items.join(" ,"))
        }
        Value::String(text) if text.len() % 2 == 0 => format!("\"{text}\""),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
