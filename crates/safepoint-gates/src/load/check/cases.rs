//! The examples in an atlas: whether each step says one thing.

use safepoint_model::Span;

use crate::atlas::{AtlasManifest, Step};
use crate::load::finding::Findings;
use crate::load::suggest::{nearest, one_of, shown};

const DECISIONS: [&str; 4] = ["allow", "deny", "hold", "requires_approval"];
const OUTCOMES: [&str; 2] = ["ok", "error"];

pub(super) fn check(atlas: &AtlasManifest, findings: &mut Findings) {
    for (case_index, case) in atlas.tests.iter().enumerate() {
        if case.name.trim().is_empty() {
            let hint = "say what it shows";
            let pointer = format!("/tests/{case_index}/name");
            findings.error(pointer, "a test has no name".to_owned(), hint);
        }
        for (index, step) in case.steps.iter().enumerate() {
            one(
                step,
                &format!("/tests/{case_index}/steps/{index}"),
                findings,
            );
        }
    }
}

fn one(step: &Step, pointer: &str, findings: &mut Findings) {
    let verbs = [
        (step.input.is_some(), "input"),
        (step.request.is_some(), "request"),
        (step.access.is_some(), "access"),
        (step.ask.is_some(), "ask"),
        (step.raise.is_some(), "raise"),
        (step.answer.is_some(), "answer"),
        (step.report.is_some(), "report"),
        (step.wait.is_some(), "wait"),
        (step.end, "end"),
    ];
    let given = verbs
        .iter()
        .filter(|(given, _)| *given)
        .map(|(_, verb)| *verb);
    match given.clone().count() {
        1 => {}
        // How things stand can be looked at without anything happening.
        0 if step.expect.is_some() => {}
        0 => findings.error(
            pointer.to_owned(),
            "nothing happens in this step".to_owned(),
            format!(
                "name one of {}",
                one_of(verbs.iter().map(|(_, verb)| *verb))
            ),
        ),
        _ => findings.error(
            pointer.to_owned(),
            format!(
                "{} happen in one step",
                given
                    .map(|verb| format!("`{verb}`"))
                    .collect::<Vec<_>>()
                    .join(" and ")
            ),
            "make it several steps",
        ),
    }
    let belongs = [
        (
            step.params.is_some(),
            "params",
            step.request.is_some(),
            "request",
        ),
        (
            step.risk.is_some(),
            "risk",
            step.request.is_some(),
            "request",
        ),
        (
            step.answers.is_some(),
            "answers",
            step.answer.is_some(),
            "answer",
        ),
    ];
    for (given, field, verb_given, verb) in belongs {
        if given && !verb_given {
            findings.key_error(
                format!("{pointer}/{field}"),
                format!("`{field}` says nothing without `{verb}`"),
                None,
            );
        }
    }
    if let Some(wait) = &step.wait
        && let Err(error) = wait.parse::<Span>()
    {
        findings.error(format!("{pointer}/wait"), error.to_string(), None);
    }
    known(
        step.report.as_deref(),
        &OUTCOMES,
        &|| format!("{pointer}/report"),
        findings,
    );
    let decision = step.expect.as_ref().and_then(|it| it.decision.as_deref());
    known(
        decision,
        &DECISIONS,
        &|| format!("{pointer}/expect/decision"),
        findings,
    );
}

fn known(
    word: Option<&str>,
    words: &[&str],
    pointer: &dyn Fn() -> String,
    findings: &mut Findings,
) {
    let Some(word) = word.filter(|word| !words.contains(word)) else {
        return;
    };
    let list = one_of(words.iter().copied());
    let hint = match nearest(word, words.iter().copied()) {
        Some(name) => format!("did you mean `{name}`? It is one of {list}"),
        None => format!("it is one of {list}"),
    };
    findings.error(
        pointer(),
        format!("`{}` is not known here", shown(word)),
        hint,
    );
}
