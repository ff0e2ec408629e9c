//! Which gates are raised when: by moment, so that a step looks only at those
//! it can raise, however many there are.

use std::collections::HashMap;

use crate::atlas::RiskTier;
use crate::keyword::KeywordSet;
use crate::pattern::PatternSet;

/// Gates and contexts, by the moment that calls for them.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    pub(crate) start: Vec<u32>,
    pub(crate) explicit: Vec<u32>,
    pub(crate) error: Vec<u32>,
    pub(crate) end: Vec<u32>,
    pub(crate) custom: Vec<u32>,
    /// Seconds, and the gate.
    pub(crate) times: Vec<(u64, u32)>,
    /// How many actions, and the gate.
    pub(crate) counts: Vec<(u64, u32)>,
    /// The lowest risk, and the gate; in this order.
    pub(crate) risks: Vec<(RiskTier, u32)>,
    /// Gates by capability.
    pub(crate) capabilities: HashMap<u32, Vec<u32>>,
    pub(crate) before: PatternSet,
    pub(crate) after: PatternSet,
    pub(crate) words: KeywordSet,
    /// The gate of each rule of `words`.
    pub(crate) word_gates: Vec<u32>,

    pub(crate) context_start: Vec<u32>,
    pub(crate) context_words: KeywordSet,
    /// The context of each rule of `context_words`.
    pub(crate) word_contexts: Vec<u32>,
    pub(crate) context_actions: PatternSet,
    pub(crate) context_risks: Vec<(RiskTier, u32)>,
}
