//! Atlases that are loaded together.

use super::atlas;
use crate::atlas::AtlasManifest;
use crate::load::{Severity, conflicts, read};

fn named(id: &str, rest: &str) -> AtlasManifest {
    let mut atlas = read(&atlas(rest)).unwrap();
    atlas.atlas_id = id.to_owned();
    atlas
}

fn told(atlases: &[&AtlasManifest]) -> Vec<String> {
    let problems = conflicts(atlases).into_iter();
    problems
        .map(|it| format!("{} {}", it.severity.as_str(), it.message))
        .collect()
}

#[test]
fn ga_04_two_atlases_of_one_name_are_an_error_unless_they_are_the_same() {
    let one = named("one", "");
    let other = named("one", "description: another\n");
    assert_eq!(told(&[&one, &one]), Vec::<String>::new());
    assert_eq!(
        told(&[&one, &other]),
        ["error two different atlases are called `one`"]
    );
}

#[test]
fn ga_04_actions_that_are_defined_differently_are_warnings() {
    let one = named(
        "one",
        "actions: [{action_id: a.b, risk_tier: low}, {action_id: c.d}]\n",
    );
    let two = named(
        "two",
        "actions: [{action_id: a.b, risk_tier: high, parameters_schema: {type: object}}, {action_id: c.d}]\n",
    );
    assert_eq!(
        told(&[&one, &two]),
        [
            "warning action `a.b` is of risk `high` in `two` and `low` in `one`",
            "warning action `a.b` has other parameters in `two` than in `one`",
        ]
    );
}

#[test]
fn ga_04_what_one_allows_and_another_denies_is_a_warning() {
    let one = named(
        "one",
        "policies: [{policy_id: p, type: allow, actions: [a.b, a.c]}]\n",
    );
    let two = named(
        "two",
        "checkpoints: [{checkpoint_id: g, trigger: {type: session_start}, deny_actions: [a.b]}]\n",
    );
    assert_eq!(
        told(&[&one, &two]),
        ["warning `one` allows action `a.b`, and `two` denies it"]
    );
    // Within one atlas that is how rules and exceptions are written.
    let both = named(
        "both",
        "policies: [{policy_id: p, type: allow, actions: [a.b]}, {policy_id: q, type: deny, actions: [a.b]}]\n",
    );
    assert_eq!(told(&[&both]), Vec::<String>::new());
    assert!(
        conflicts(&[&one, &two])
            .iter()
            .all(|it| it.severity == Severity::Warning)
    );
}
