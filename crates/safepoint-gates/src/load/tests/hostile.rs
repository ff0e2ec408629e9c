//! Whatever the bytes: no panic, no contradiction, and places that exist.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ACME, FULL};
use crate::load::check::{never_raised, numbers};
use crate::load::finding::Findings;
use crate::load::tree::Tree;
use crate::load::{Problem, Severity, check, read, schema, shape, typed};

/// The fuzz target: what is promised about every input.
fn promise(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let checked = check(&text);
    let errors = checked
        .problems
        .iter()
        .filter(|it| it.severity == Severity::Error)
        .count();
    assert_eq!(checked.manifest.is_some(), errors == 0);
    match (read(&text), &checked.manifest) {
        (Ok(manifest), Some(same)) => assert_eq!(&manifest, same),
        // A session may begin under a gate that is never raised; whoever checks it hears of that.
        (Ok(manifest), None) => {
            let mut findings = Findings::default();
            never_raised(&manifest, &mut findings);
            let known = findings.located(None);
            let is_known = |it: &Problem| known.iter().any(|known| known.message == it.message);
            let listed = checked.problems.iter();
            let mut all = listed.filter(|it| it.severity == Severity::Error);
            assert!(all.all(is_known), "{:?}", checked.problems);
        }
        (Err(problems), _) => assert_eq!(problems.len(), errors),
    }
    for problem in &checked.problems {
        let drawn = problem.render("a.yaml", &text);
        let plain = |c: char| c == '\n' || !c.is_control();
        assert!(drawn.chars().all(plain), "{drawn:?}");
        if let Some(place) = problem.place {
            assert!(place.line >= 1 && place.column >= 1 && place.length >= 1);
        }
    }
}

/// Every place in a value where something stands.
fn pointers(value: &Value, here: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                pointers(value, shape::below(&here, key), found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(value, format!("{here}/{index}"), found);
            }
        }
        _ => {}
    }
    found.push(here);
}

fn junk() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(-3)),
        Just(json!(7)),
        Just(json!(1.5)),
        Just(json!(4_294_967_296_u64)),
        Just(json!("")),
        Just(json!("high")),
        Just(json!("text")),
        Just(json!("7")),
        Just(json!([])),
        Just(json!(["x"])),
        Just(json!({})),
        Just(json!({"type": "session_start"})),
        Just(json!({"choice": {}})),
        Just(json!({"choice": {}, "text": {}})),
        Just(json!({"text": null})),
        Just(json!({"content": "x"})),
    ]
}

/// How many places the full example has.
fn count() -> usize {
    let value: Value = safepoint_model::yaml::read_as(FULL).unwrap();
    let mut found = Vec::new();
    pointers(&value, String::new(), &mut found);
    found.len()
}

/// The full example with one thing changed.
fn mutate(change: usize, place: usize, junk: Value) -> Value {
    let mut value: Value = safepoint_model::yaml::read_as(FULL).unwrap();
    let mut found = Vec::new();
    pointers(&value, String::new(), &mut found);
    let pointer = found[place % found.len()].clone();
    let (parent, last) = pointer.rsplit_once('/').unwrap_or(("", ""));
    let last = last.replace("~1", "/").replace("~0", "~");
    match change % 4 {
        0 => *value.pointer_mut(&pointer).unwrap() = junk,
        1 => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent) {
                fields.remove(&last);
            }
        }
        2 => {
            if let Some(Value::Object(fields)) = value.pointer_mut(parent)
                && let Some(field) = fields.remove(&last)
            {
                fields.insert(format!("{last}s"), field);
            }
        }
        _ => {
            if let Some(Value::Object(fields)) = value.pointer_mut(&pointer) {
                fields.insert("description".to_owned(), junk);
            }
        }
    }
    value
}

/// Whether a text is an atlas by its types and the bounds of their numbers.
fn fits(text: &str) -> bool {
    typed::read(text).is_ok_and(|atlas| {
        let mut findings = Findings::default();
        numbers(&atlas, &mut findings);
        findings.is_empty()
    })
}

#[test]
fn ga_02_a_list_of_nothing_is_checked_wherever_it_stands() {
    // A gate that names nothing is never raised, which chance finds once in a hundred runs.
    for place in 0..count() {
        promise(mutate(0, place, json!([])).to_string().as_bytes());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn ga_02_any_bytes_are_checked_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        promise(&bytes);
    }

    #[test]
    fn ga_02_any_text_of_yaml_signs_is_checked_without_a_panic(text in "[-a-z:{}\\[\\]\"'&*#|>!%@, \n\t\r0-9]{0,200}") {
        promise(text.as_bytes());
        promise(format!("atlas_version: '1.0'\n{text}").as_bytes());
    }

    #[test]
    fn ga_02_a_damaged_example_is_checked_without_a_panic(
        full in any::<bool>(),
        cuts in proptest::collection::vec((any::<usize>(), 0_usize..40, "[-a-z:{}\\[\\]\"'&*#|\n ]{0,4}"), 1..4),
    ) {
        let mut text = if full { FULL } else { ACME }.to_owned();
        for (at, length, with) in cuts {
            let start = at % (text.len() + 1);
            let end = (start + length).min(text.len());
            if text.is_char_boundary(start) && text.is_char_boundary(end) {
                text.replace_range(start..end, &with);
            }
        }
        promise(text.as_bytes());
    }

    #[test]
    fn ga_03_types_schema_and_list_of_faults_agree(change in 0_usize..4, place in any::<usize>(), junk in junk()) {
        let value = mutate(change, place, junk);
        let by_schema = schema::accepts(&value);
        let text = value.to_string();
        prop_assert_eq!(fits(&text), by_schema, "{}", text);
        // YAML takes `"7"` for a number, so it may accept more, and never less.
        let yaml = fits(&format!("---\n{text}"));
        prop_assert!(yaml || !by_schema, "{}", text);
        let mut findings = Findings::default();
        shape::walk(&Tree::read(&text).unwrap(), true, &mut findings);
        prop_assert_eq!(findings.is_empty(), by_schema, "{:?} {}", findings, text);
        promise(text.as_bytes());
    }
}

/// Serde would read both.
#[test]
fn ga_03_a_list_is_no_structure() {
    let lists = [
        "checkpoints: [{checkpoint_id: g, trigger: [session_start]}]\n",
        "checkpoints: [[g]]\n",
        "steward: [s]\n",
    ];
    for rest in lists {
        let text = super::atlas(rest);
        assert!(read(&text).is_err(), "{rest}");
        let value: Value = safepoint_model::yaml::read_as(&text).unwrap();
        assert!(!schema::accepts(&value));
        assert!(read(&value.to_string()).is_err(), "{rest}");
    }
}

#[test]
fn ga_02_a_text_beyond_the_limit_is_refused() {
    let long = format!(
        "atlas_version: '{}'",
        "x".repeat(safepoint_model::yaml::MAX_BYTES)
    );
    assert!(check(&long).problems[0].message.contains("too large"));
    let json = format!(
        "{{\"atlas_version\": \"{}\"}}",
        "x".repeat(safepoint_model::yaml::MAX_BYTES)
    );
    assert!(check(&json).problems[0].message.contains("too large"));
    promise("[".repeat(100_000).as_bytes());
    promise("{\"a\":".repeat(100_000).as_bytes());
    promise("- ".repeat(100_000).as_bytes());
}
