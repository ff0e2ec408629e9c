//! Who takes work over, and into which directory: the parent, or, where that has ended, the
//! nearest workspace above that has not.

use std::path::{Path, PathBuf};

use safepoint_store::Sql;

use crate::place::Place;
use crate::table::{self, Made};
use crate::{Progress, ProgressError};

/// The way up from a workspace.
pub(super) struct Taker {
    /// The nearest one above that has not ended; none where all have.
    pub(super) target: Option<Made>,
    /// Where its work is brought: what it was made from, or what that was made from, as far up
    /// as the ones between have ended.
    origin: Option<PathBuf>,
}

pub(super) fn of(sql: &mut dyn Sql, made: &Made) -> Result<Taker, ProgressError> {
    let mut origin = table::place(sql, &made.id)?.map(|place| place.origin);
    let mut above = made.parent.clone();
    while let Some(id) = above {
        let one = table::made(sql, &id)?;
        let (standing, _) = table::standing(sql, &id)?;
        if !standing.state.is_terminal() {
            let target = Some(one);
            return Ok(Taker { target, origin });
        }
        if let Some(place) = table::place(sql, &id)?.filter(|_| origin.is_some()) {
            origin = Some(place.origin);
        }
        above = one.parent;
    }
    Ok(Taker {
        target: None,
        origin,
    })
}

impl Progress {
    /// The directory that the work in `place` is brought to.
    pub fn brought_to(&self, place: &Place) -> Result<PathBuf, ProgressError> {
        self.trail.store().read(|sql| {
            let made = table::made(sql, &place.workspace)?;
            let origin = of(sql, &made)?.origin;
            Ok(origin.unwrap_or_else(|| place.origin.clone()))
        })
    }

    /// The directory that was made from `origin` itself: that in `place`, or one above it.
    pub(super) fn made_from(&self, place: &Place, origin: &Path) -> Result<Place, ProgressError> {
        let mut made = place.clone();
        while made.origin != origin {
            let above = match self.workspace(&made.workspace)?.parent {
                Some(parent) => self.place(&parent)?,
                None => None,
            };
            let Some(above) = above else { break };
            made = above;
        }
        Ok(made)
    }
}
