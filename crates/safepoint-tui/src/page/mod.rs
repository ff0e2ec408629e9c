//! What is on each of the four pages about a hold. Every value comes from the payload.

mod change;
mod context;
mod detail;
mod form;
mod timeline;

pub(crate) use change::change;
pub(crate) use context::context;
pub(crate) use detail::{detail, envelope};
pub(crate) use timeline::timeline;

/// More lines than this nobody reads on a screen.
const MOST_LINES: usize = 5_000;

/// The pages about a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tab {
    /// All about the hold, the canonical form last.
    Detail,
    /// What would change.
    Change,
    /// What has happened.
    Timeline,
    /// Where it comes from.
    Context,
}

impl Tab {
    /// In order.
    pub(crate) const ALL: [Self; 4] = [Self::Detail, Self::Change, Self::Timeline, Self::Context];

    /// The key and the name.
    pub(crate) const fn name(self) -> (char, &'static str) {
        match self {
            Self::Detail => ('d', "Detail"),
            Self::Change => ('c', "Change"),
            Self::Timeline => ('t', "Timeline"),
            Self::Context => ('i', "Context"),
        }
    }

    /// The one `steps` further, round the corner.
    pub(crate) fn moved(self, steps: usize) -> Self {
        let here = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        let there = (here + steps) % Self::ALL.len();
        Self::ALL.get(there).copied().unwrap_or(self)
    }
}
