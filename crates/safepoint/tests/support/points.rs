//! The fault points that only a change under a checkpoint passes.

/// In the order in which they are passed. A step outside the files passes `mutate.outside` and
/// the two after it (the second for a database or state), one on files the two before it.
pub(crate) const MUTATION: &[&str] = &[
    "mutate.begun",
    "mutate.touching",
    "mutate.applied",
    "mutate.outside",
    "mutate.stepped",
    "mutate.looked",
    "mutate.acted",
    "mutate.checked",
    "mutate.recorded",
];
