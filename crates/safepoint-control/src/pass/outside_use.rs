//! What commands of a workspace reached and were refused outside the fence, counted.

use std::collections::BTreeMap;

use safepoint_authority::{OutsideKind, OutsideTarget};
use safepoint_model::Timestamp;

use super::documents::Running;
use crate::kept::Kept;
use crate::{Control, ControlError, kept};

/// So many actions are read at once.
const PAGE: u32 = 500;

/// One target outside, and how many actions reached it and were refused it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideUse {
    /// The target.
    pub target: OutsideTarget,
    /// So many actions reached it.
    pub reached: u64,
    /// So many were refused it.
    pub refused: u64,
}

impl Control {
    /// What actions of a workspace reached and were refused since a moment, the most used first.
    pub fn outside_uses(
        &self,
        workspace: &str,
        since: Timestamp,
    ) -> Result<Vec<OutsideUse>, ControlError> {
        let mut counts: BTreeMap<OutsideTarget, (u64, u64)> = BTreeMap::new();
        let store = self.trail.store();
        let mut page: Vec<Running> = store.read(|sql| kept::newest(sql, PAGE))?;
        while let Some(last) = page.last().cloned() {
            let recent = page.iter().filter(|it| it.time() >= since);
            for running in recent.filter(|it| it.workspace == workspace && it.is_here()) {
                for target in running.reach.reached.targets() {
                    counts.entry(target).or_default().0 += 1;
                }
                for refused in &running.reach.refused {
                    let kinds = [OutsideKind::Host, OutsideKind::Socket, OutsideKind::File];
                    let kind = kinds.into_iter().find(|it| it.action() == refused.action);
                    let Some(kind) = kind else { continue };
                    let name = refused.target.clone();
                    counts.entry(OutsideTarget { kind, name }).or_default().1 += 1;
                }
            }
            if last.time() < since {
                break;
            }
            page = store.read(|sql| kept::newest_after(sql, &last, PAGE))?;
        }
        let uses = counts.into_iter();
        let mut uses: Vec<OutsideUse> = uses
            .map(|(target, (reached, refused))| OutsideUse {
                target,
                reached,
                refused,
            })
            .collect();
        uses.sort_by_key(|it| std::cmp::Reverse(it.reached + it.refused));
        Ok(uses)
    }
}
