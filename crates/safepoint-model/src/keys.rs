//! The keys of one mapping, told apart while it is read.
//!
//! Most mappings have a few: those are compared one by one, and cost no memory
//! of their own. It never says which key came twice: that is told elsewhere.

use std::borrow::Cow;
use std::collections::HashSet;

/// So many keys are compared one by one.
const FEW: usize = 16;

/// The keys of a mapping so far.
#[derive(Default)]
pub(crate) struct Keys<'t> {
    few: [Cow<'t, str>; FEW],
    count: usize,
    many: HashSet<Cow<'t, str>>,
}

impl<'t> Keys<'t> {
    /// Whether a key is the first of its name.
    pub(crate) fn is_new(&mut self, key: Cow<'t, str>) -> bool {
        if self.few.iter().take(self.count).any(|other| *other == key) {
            return false;
        }
        match self.few.get_mut(self.count) {
            Some(free) => {
                *free = key;
                self.count += 1;
                true
            }
            None => self.many.insert(key),
        }
    }
}
