//! What gates have granted in a session, ready to be asked about many actions.
//!
//! A session remembers patterns as texts. Those of the atlases are numbered,
//! and every action knows the numbers of the patterns that stand for it; so
//! nothing is parsed or matched here, but for a pattern that no atlas has.

use std::collections::BTreeMap;

use crate::engine::{Engine, Profile};
use crate::pattern::Pattern;
use crate::session::Grant;

/// Grants of one kind, the first of each pattern.
pub(super) struct Grants<'s> {
    all: &'s [Grant],
    /// The places of the grants with the pattern of this number.
    numbered: BTreeMap<u32, Vec<usize>>,
    /// The others.
    foreign: Vec<(Pattern, usize)>,
}

impl<'s> Grants<'s> {
    pub(super) fn new(engine: &Engine, all: &'s [Grant]) -> Self {
        let mut numbered: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let mut foreign = Vec::new();
        for (place, grant) in all.iter().enumerate() {
            match engine.grant_number(&grant.pattern) {
                Some(number) => {
                    numbered.entry(number).or_default().push(place);
                }
                None => foreign.extend(Pattern::parse(&grant.pattern).map(|it| (it, place)).ok()),
            }
        }
        Self {
            all,
            numbered,
            foreign,
        }
    }

    /// The grants that stand for an action, the oldest first.
    pub(super) fn about(
        &self,
        action: &str,
        profile: &Profile,
    ) -> impl Iterator<Item = &'s Grant> + use<'s> {
        let mut places: Vec<usize> = Vec::new();
        if !self.all.is_empty() {
            let numbers = profile.grants.iter();
            let numbered = numbers.filter_map(|number| self.numbered.get(number));
            places.extend(numbered.flatten());
            let foreign = self.foreign.iter();
            let foreign = foreign.filter(|(pattern, _)| pattern.matches(action));
            places.extend(foreign.map(|(_, place)| *place));
            places.sort_unstable();
        }
        let all = self.all;
        places.into_iter().filter_map(move |place| all.get(place))
    }
}
