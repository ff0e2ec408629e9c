//! How often words and effects disagreed: our own error rate. Effects win; here it is only counted.

use std::collections::BTreeSet;

use safepoint_authority::{Canonical, Coverage, SideEffect};
use safepoint_model::Timestamp;
use safepoint_store::Durability;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Passage;
use super::cover::is_change;
use super::documents::Running;
use crate::kept::Kept;
use crate::{Control, ControlError, kept};

/// There is one document.
const ID: &str = "all";

/// What the words of an action said that it would do.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ForetoldEffect {
    /// Whether it changes anything.
    changes: bool,
    /// Whether it writes outside the workspace, or talks to another machine.
    reaches_out: bool,
}

impl ForetoldEffect {
    pub(super) fn of(form: &Canonical, coverage: &Coverage) -> Self {
        let is_outside =
            |path: &safepoint_authority::NamedPath| !path.inside && is_change(&path.role);
        Self {
            changes: coverage.checkpoint_id.is_some(),
            reaches_out: form.side_effects.contains(&SideEffect::Network)
                || !form.hosts.is_empty()
                || form.paths.iter().any(is_outside),
        }
    }
}

/// How words and effects can disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Disagreement {
    /// Words said that it only reads, and it changed something.
    ReadButWrote,
    /// Words said that it stays inside, and it reached something outside.
    InsideButReached,
    /// Words said that it stays inside, and it was refused something outside.
    InsideButRefused,
    /// Words said that it writes outside or sends, and nothing of it happened.
    OutsideButNothing,
}

/// How often words and effects disagreed, since they have been counted.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DisagreementCounts {
    /// Words said that it only reads, and it changed something.
    pub read_but_wrote: u64,
    /// Words said that it stays inside, and it reached something outside.
    pub inside_but_reached: u64,
    /// Words said that it stays inside, and it was refused something outside.
    pub inside_but_refused: u64,
    /// Words said that it writes outside or sends, and nothing of it happened.
    pub outside_but_nothing: u64,
    /// In so many actions.
    pub actions: u64,
}

/// The counts, as they are kept.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeptCounts {
    format: u32,
    counts: DisagreementCounts,
    time: Timestamp,
}

impl Kept for KeptCounts {
    const KIND: &'static str = "disagreements";
    const WHAT: &'static str = "counts of disagreements";

    fn id(&self) -> String {
        ID.to_owned()
    }
    fn time(&self) -> Timestamp {
        self.time
    }
    fn is_open(&self) -> bool {
        true
    }
}

impl DisagreementCounts {
    fn add(&mut self, found: &BTreeSet<Disagreement>) {
        for one in found {
            let count = match one {
                Disagreement::ReadButWrote => &mut self.read_but_wrote,
                Disagreement::InsideButReached => &mut self.inside_but_reached,
                Disagreement::InsideButRefused => &mut self.inside_but_refused,
                Disagreement::OutsideButNothing => &mut self.outside_but_nothing,
            };
            *count = count.saturating_add(1);
        }
        self.actions = self.actions.saturating_add(1);
    }
}

/// Where the words of an action and what was seen of it disagree.
fn disagreements(running: &Running, outcome: &str, has_changes: bool) -> BTreeSet<Disagreement> {
    let Some(foretold) = &running.foretold else {
        return BTreeSet::new();
    };
    let has_reached = !running.reach.reached.is_empty();
    let is_refused = !running.reach.refused.is_empty();
    let all = [
        (Disagreement::ReadButWrote, !foretold.changes && has_changes),
        (
            Disagreement::InsideButReached,
            !foretold.reaches_out && has_reached,
        ),
        (
            Disagreement::InsideButRefused,
            !foretold.reaches_out && is_refused,
        ),
        (
            Disagreement::OutsideButNothing,
            // What failed may have wanted to.
            foretold.reaches_out && !has_reached && !is_refused && outcome == "ok",
        ),
    ];
    let found = all.into_iter().filter(|(_, is_so)| *is_so);
    found.map(|(one, _)| one).collect()
}

impl Passage<'_> {
    /// Counts where words and effects disagree. Nothing is written where they agree.
    pub(super) fn count_disagreements(
        &self,
        running: &Running,
        outcome: &str,
        has_changes: bool,
    ) -> Result<(), ControlError> {
        let found = disagreements(running, outcome, has_changes);
        if found.is_empty() {
            return Ok(());
        }
        let now = self.now();
        self.control.trail.write(Durability::Async, |writing| {
            let kept: Option<KeptCounts> = kept::get(writing.sql(), ID)?;
            let mut counts = kept.map(|kept| kept.counts).unwrap_or_default();
            counts.add(&found);
            let kept = KeptCounts {
                format: 1,
                counts,
                time: now,
            };
            kept::put(writing, &kept)
        })
    }
}

impl Control {
    /// How often words and effects disagreed.
    pub fn disagreements(&self) -> Result<DisagreementCounts, ControlError> {
        let store = self.trail.store();
        let kept: Option<KeptCounts> = store.read(|sql| kept::get(sql, ID))?;
        Ok(kept.map(|kept| kept.counts).unwrap_or_default())
    }
}
