//! `docs/conformance.md` says which tests show which requirement. It must be
//! true: every test named there exists, and every test named after a
//! requirement stands there. `SAFEPOINT_UPDATE=1` writes the names in.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use regex::Regex;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for item in std::fs::read_dir(directory).unwrap() {
        let path = item.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Requirement id → names of tests, from the sources.
fn tests() -> BTreeMap<String, BTreeSet<String>> {
    let name =
        Regex::new(r"(?m)^\s*fn ((st|ga|au|pr|tr|su|ho|fe|ag|ti|te|re)_(\d\d)_\w+)\(").unwrap();
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for captures in name.captures_iter(&text) {
            let id = format!("{}-{}", captures[2].to_uppercase(), &captures[3]);
            found.entry(id).or_default().insert(captures[1].to_owned());
        }
    }
    found
}

#[test]
fn the_map_from_requirements_to_tests_is_true() {
    let path = root().join("docs/conformance.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let mut tests = tests();
    let mut fresh = String::new();
    let row = Regex::new(r"^\| ([A-Z]{2}-\d\d) \| ([^|]+) \|").unwrap();
    for line in document.lines() {
        match row.captures(line) {
            None => fresh.push_str(line),
            Some(captures) => {
                let names = tests.remove(&captures[1]).unwrap_or_default();
                assert!(!names.is_empty(), "no test shows {}", &captures[1]);
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let (id, what) = (&captures[1], &captures[2]);
                fresh.push_str(&format!("| {id} | {what} | {} |", names.join("<br>")));
            }
        }
        fresh.push('\n');
    }
    let unlisted: Vec<_> = tests.keys().collect();
    assert!(
        unlisted.is_empty(),
        "docs/conformance.md has no row for {unlisted:?}"
    );
    if std::env::var_os("SAFEPOINT_UPDATE").is_some() {
        std::fs::write(&path, &fresh).unwrap();
    } else {
        assert_eq!(document, fresh, "run the test with SAFEPOINT_UPDATE=1");
    }
}

#[test]
fn every_rule_of_the_protocol_names_tests_that_are_there() {
    let document = std::fs::read_to_string(root().join("docs/conformance.md")).unwrap();
    let known: BTreeSet<String> = tests().into_values().flatten().collect();
    let row = Regex::new(r"(?m)^\| (R\d\d) \| [^|]+ \| ([^|]+) \|$").unwrap();
    let name = Regex::new(r"`(\w+)`").unwrap();
    let mut rules = BTreeSet::new();
    for captures in row.captures_iter(&document) {
        let named: Vec<&str> = name
            .captures_iter(captures.get(2).unwrap().as_str())
            .map(|found| found.get(1).unwrap().as_str())
            .collect();
        assert!(!named.is_empty(), "{} names no test", &captures[1]);
        for name in named {
            assert!(known.contains(name), "{} names `{name}`", &captures[1]);
        }
        rules.insert(captures[1].to_owned());
    }
    let all: BTreeSet<String> = (1..=52).map(|number| format!("R{number:02}")).collect();
    assert_eq!(rules, all);
}
