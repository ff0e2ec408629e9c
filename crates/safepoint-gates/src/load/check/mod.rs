//! What the types cannot say: whether an atlas makes sense.
//!
//! Every check is linear in the size of the atlas, and none builds a pointer
//! before it has something to say. Errors keep an atlas from being used,
//! warnings do not. Whether two checks find the same is not their concern.

mod actions;
mod cases;
mod extensions;
mod ids;
mod keywords;
mod numbers;
mod policies;
mod questions;
mod references;
mod unreachable;

use std::collections::HashSet;

use super::finding::Findings;
use super::suggest::nearest;
use crate::atlas::AtlasManifest;

pub(super) use actions::{Role, visit};
#[cfg(test)]
pub(super) use numbers::check as numbers;
#[cfg(test)]
pub(super) use unreachable::warn as never_raised;

/// What is wrong with an atlas.
pub(super) fn errors(atlas: &AtlasManifest, findings: &mut Findings) {
    let names = Names::of(atlas);
    ids::check(atlas, findings);
    numbers::check(atlas, findings);
    references::check(atlas, &names, findings);
    actions::check(atlas, findings);
    keywords::check(atlas, findings);
    questions::check(atlas, &names, findings);
    policies::check(atlas, findings);
    extensions::check(atlas, findings);
    cases::check(atlas, findings);
}

/// What is perhaps not meant.
pub(super) fn warnings(atlas: &AtlasManifest, findings: &mut Findings) {
    let names = Names::of(atlas);
    actions::warn(atlas, findings);
    keywords::warn(atlas, findings);
    questions::warn(atlas, findings);
    policies::warn(atlas, findings);
    extensions::warn(atlas, findings);
    references::warn(atlas, &names, findings);
    unreachable::warn(atlas, findings);
}

/// The names that can be referred to.
struct Names<'a> {
    capabilities: HashSet<&'a str>,
    contexts: HashSet<&'a str>,
    checkpoints: HashSet<&'a str>,
    extensions: HashSet<&'a str>,
}

impl<'a> Names<'a> {
    fn of(atlas: &'a AtlasManifest) -> Self {
        let capabilities = atlas.capabilities.iter();
        let contexts = atlas.context_blocks.iter();
        let checkpoints = atlas.checkpoints.iter();
        let extensions = atlas.extensions.iter();
        Self {
            capabilities: capabilities.map(|it| it.capability_id.as_str()).collect(),
            contexts: contexts.map(|it| it.context_id.as_str()).collect(),
            checkpoints: checkpoints.map(|it| it.checkpoint_id.as_str()).collect(),
            extensions: extensions.map(|it| it.extension_id.as_str()).collect(),
        }
    }
}

/// The one of `known` that may be meant. Comparing each of thousands of
/// mistakes with thousands of names would take for ever, and help nobody.
fn similar<'a>(word: &str, known: &HashSet<&'a str>, findings: &Findings) -> Option<&'a str> {
    if known.len() > 200 || findings.is_full() {
        return None;
    }
    let mut known: Vec<&str> = known.iter().copied().collect();
    // The same atlas always gets the same hints.
    known.sort_unstable();
    nearest(word, known.into_iter())
}
