//! Actions and capabilities: who has what.

use std::sync::Arc;

use super::Engine;
use crate::atlas::RiskTier;

/// One capability.
#[derive(Debug)]
pub(crate) struct Capability {
    /// Its place among all capabilities.
    pub(crate) number: u32,
    /// Which atlas it is in.
    pub(crate) atlas: usize,
    /// Its name in its atlas.
    pub(crate) id: String,
    /// Its name among all atlases, as sessions remember it.
    pub(crate) name: Arc<str>,
    /// Its name as people see it.
    pub(crate) label: Arc<str>,
    /// The first gate that unlocks it. With one, it is locked until then.
    pub(crate) key: Option<Arc<str>>,
}

/// An action with a name of its own.
#[derive(Debug)]
pub(crate) struct KnownAction {
    pub(crate) id: Arc<str>,
    pub(crate) profile: Profile,
    /// A gate that asks before it.
    pub(crate) asks: Option<Arc<str>>,
}

/// What the atlases say about one action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// The atlases that know it.
    pub(crate) known: Vec<u32>,
    /// The capabilities that have it.
    pub(crate) capabilities: Vec<u32>,
    /// The policies about it.
    pub(crate) policies: Vec<u32>,
    /// The patterns about it that gates allow or deny.
    pub(crate) grants: Vec<u32>,
    /// The highest risk that an atlas gives it.
    pub(crate) risk: RiskTier,
}

impl Engine {
    /// What the atlases say about `action`.
    pub(crate) fn profile(&self, action: &str) -> Profile {
        let mut profile = Profile::default();
        self.known_patterns.matching(action, &mut profile.known);
        self.capability_patterns
            .matching(action, &mut profile.capabilities);
        self.policy_patterns.matching(action, &mut profile.policies);
        self.grant_patterns.matching(action, &mut profile.grants);
        profile.risk = self
            .atlases
            .iter()
            .filter_map(|atlas| atlas.actions.get(action))
            .map(|action| action.risk)
            .max()
            .unwrap_or_default();
        profile
    }
}
