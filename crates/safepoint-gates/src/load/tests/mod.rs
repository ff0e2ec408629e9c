//! Everything that can be wrong with an atlas, and how it is told.

mod conflicts;
mod hostile;
mod meaning;
mod seam;
mod seed;
mod shape;
mod warnings;

use super::{Severity, check};

/// The head of an atlas that has nothing wrong with it.
const HEAD: &str = "atlas_version: \"1.0\"\natlas_id: a.b\nversion: 1.0.0\nname: Test\n";

/// An atlas that uses every field there is.
const FULL: &str = include_str!("../../../tests/atlases/full.yaml");

/// The complete example of the specification.
const ACME: &str = include_str!("../../../tests/atlases/acme.yaml");

/// The atlas with this after its head.
fn atlas(rest: &str) -> String {
    format!("{HEAD}{rest}")
}

/// What is wrong with an atlas, one line each: severity, place, message.
fn problems(text: &str) -> Vec<String> {
    let told = check(text).problems.into_iter().map(|problem| {
        let place = problem.place.map_or("-".to_owned(), |place| {
            format!("{}:{}", place.line, place.column)
        });
        format!("{} {place} {}", problem.severity.as_str(), problem.message)
    });
    told.collect()
}

/// The errors of an atlas with this after its head: pointer and message.
fn errors(rest: &str) -> Vec<String> {
    told(rest, Severity::Error)
}

/// The warnings of an atlas with this after its head: pointer and message.
fn warnings(rest: &str) -> Vec<String> {
    told(rest, Severity::Warning)
}

fn told(rest: &str, severity: Severity) -> Vec<String> {
    let problems = check(&atlas(rest)).problems;
    let wanted = problems.into_iter().filter(|it| it.severity == severity);
    wanted
        .map(|it| format!("{}: {}", it.pointer, it.message))
        .collect()
}
