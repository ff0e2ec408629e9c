//! From text to atlas, and everything that is wrong with it.
//!
//! An atlas without faults goes straight into its types and is checked there;
//! no place in the text is computed. Only when there is something to report is
//! the text read a second time, as a tree of places: to list all mistakes and
//! not only the first, and to say where they stand.
//!
//! Nothing here reads a file, repairs an atlas that is to be used, or decides
//! what an atlas means.

mod check;
mod conflicts;
mod finding;
mod render;
mod schema;
mod shape;
mod strict;
mod suggest;
mod tree;
mod typed;

#[cfg(test)]
mod tests;

use crate::atlas::AtlasManifest;

pub use conflicts::conflicts;
pub use schema::{schema, validator};

use finding::Findings;
use tree::Tree;

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The atlas works, but perhaps not as it was meant.
    Warning,
    /// The atlas cannot be used.
    Error,
}

impl Severity {
    /// The severity as it is written before a message.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    /// How many characters it covers on that line, at least 1.
    pub length: usize,
}

/// Something wrong with an atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Where in the atlas, as a JSON Pointer.
    pub pointer: String,
    /// Where in the text, if that is known.
    pub place: Option<Place>,
}

/// An atlas, and what is wrong with it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The atlas, if it can be used: no problem is an error then.
    pub manifest: Option<AtlasManifest>,
    /// Everything that is wrong: errors first, then by place.
    pub problems: Vec<Problem>,
}

/// Reads an atlas that is to be used. Anything wrong with it is an error.
///
/// Warnings are left out: what they are about works.
pub fn read(text: &str) -> Result<AtlasManifest, Vec<Problem>> {
    if let Ok(manifest) = typed::read(text) {
        let mut findings = Findings::errors_only();
        check::errors(&manifest, &mut findings);
        if findings.is_empty() {
            return Ok(manifest);
        }
    }
    let mut problems = check(text).problems;
    problems.retain(|problem| problem.severity == Severity::Error);
    Err(problems)
}

/// Reads an atlas and lists everything that is wrong with it, with places.
pub fn check(text: &str) -> Checked {
    match typed::read(text) {
        Ok(manifest) => {
            let mut findings = Findings::default();
            check::errors(&manifest, &mut findings);
            check::warnings(&manifest, &mut findings);
            if findings.is_empty() {
                return Checked {
                    manifest: Some(manifest),
                    problems: Vec::new(),
                };
            }
            let tree = Tree::read(text);
            let usable = !findings.has_errors();
            Checked {
                manifest: usable.then_some(manifest),
                problems: findings.located(tree.as_ref()),
            }
        }
        Err(fault) => Checked {
            manifest: None,
            problems: faults(text, fault),
        },
    }
}

/// All that keeps `text` from being an atlas, given the first fault.
fn faults(text: &str, fault: typed::Fault) -> Vec<Problem> {
    let Some(tree) = Tree::read(text) else {
        return vec![fault.problem];
    };
    let mut findings = Findings::default();
    if fault.always {
        findings.push(fault.problem.clone());
    }
    let repaired = shape::walk(&tree, typed::is_json(text), &mut findings);
    if findings.is_empty() {
        return vec![fault.problem];
    }
    // Where nothing but names and words is misspelled, the rest is checked too.
    if let Some(manifest) = repaired.and_then(|value| serde_json::from_value(value).ok()) {
        check::errors(&manifest, &mut findings);
        check::warnings(&manifest, &mut findings);
    }
    findings.located(Some(&tree))
}
