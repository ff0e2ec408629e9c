//! The corpus: everyday lines are not held, and no evasion passes.

mod common;

use common::{actions, held, understand, unescape};

const EVERYDAY: &str = include_str!("corpus/everyday.txt");
const EVASIONS: &str = include_str!("corpus/evasions.txt");

/// The lines of a corpus, each with the actions it must have.
fn corpus(text: &str) -> Vec<(Vec<String>, String)> {
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (expected, line) = line.split_once(" | ").unwrap_or(("malformed", line));
            let expected = expected.split(' ').map(str::to_owned).collect();
            (expected, unescape(line))
        })
        .collect()
}

fn differences(text: &str) -> Vec<String> {
    corpus(text)
        .into_iter()
        .filter_map(|(expected, line)| {
            let found: Vec<String> = actions(&understand(&line)).into_iter().collect();
            (found != expected)
                .then(|| format!("{line:?}\n  expected {expected:?}\n  found    {found:?}"))
        })
        .collect()
}

#[test]
fn au_04_everyday_lines_have_exactly_their_actions() {
    let wrong = differences(EVERYDAY);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn au_04_evasions_have_exactly_their_actions() {
    let wrong = differences(EVASIONS);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn au_04_no_evasion_passes() {
    let passed: Vec<String> = corpus(EVASIONS)
        .into_iter()
        .map(|(_, line)| line)
        .filter(|line| held(&understand(line)).is_empty())
        .collect();
    assert!(passed.is_empty(), "{passed:#?}");
}

#[test]
fn au_04_everyday_lines_are_not_held() {
    let lines = corpus(EVERYDAY);
    let stopped: Vec<String> = lines
        .iter()
        .filter_map(|(_, line)| {
            let why = held(&understand(line));
            (!why.is_empty()).then(|| format!("{line:?}: {why:?}"))
        })
        .collect();
    assert!(
        stopped.len() * 100 <= lines.len() * 2,
        "{} of {} are held\n{}",
        stopped.len(),
        lines.len(),
        stopped.join("\n")
    );
}

#[test]
fn au_04_the_corpus_is_large_enough() {
    let everyday = corpus(EVERYDAY).len();
    let evasions = corpus(EVASIONS).len();
    assert!(everyday >= 280, "{everyday} everyday lines");
    assert!(evasions >= 170, "{evasions} evasions");
    let mut all: Vec<String> = corpus(EVERYDAY)
        .into_iter()
        .chain(corpus(EVASIONS))
        .map(|(_, line)| line)
        .collect();
    all.sort();
    let before = all.len();
    all.dedup();
    assert_eq!(all.len(), before, "some lines are there twice");
}

/// Prints what the figures in the documentation are made of.
#[test]
fn au_04_figures() {
    let rate = |text: &str| {
        let lines = corpus(text);
        let stopped = lines
            .iter()
            .filter(|(_, line)| !held(&understand(line)).is_empty())
            .count();
        (stopped, lines.len())
    };
    let (held_everyday, everyday) = rate(EVERYDAY);
    let (held_evasions, evasions) = rate(EVASIONS);
    println!(
        "everyday: {held_everyday} of {everyday} held; evasions: {held_evasions} of {evasions} held"
    );
    assert_eq!(held_evasions, evasions);
}
