//! A part without what one change wrote to it: of a database row by row, of anything else only as
//! long as nobody else has changed it since.

use safepoint_database::{Image, Reverted, Revisions};

use super::{Held, Keeping, Part, Reading, Subject, image_of, part_of_image};
use crate::StateError;
use crate::objects::Objects;
use crate::state::State;

/// What a part becomes when a change is taken out of it.
#[derive(Debug)]
pub(crate) enum Remainder {
    /// What it is already.
    Unchanged,
    /// This.
    Part(Box<Part>),
    /// It cannot be taken out without the work of others: what stands in the way.
    Conflict(String),
}

impl State {
    /// What `now` becomes without the change that led from `before` to `after`. All three have to
    /// be stored.
    pub(crate) fn part_without(
        &self,
        objects: &Objects,
        (before, after): (&Part, &Part),
        now: &Part,
    ) -> Result<Remainder, StateError> {
        if now.is_same(before) {
            return Ok(Remainder::Unchanged);
        }
        if now.is_same(after) {
            return Ok(Remainder::Part(Box::new(before.clone())));
        }
        let Subject::Database { address, variable } = &now.subject else {
            return Ok(Remainder::Conflict("it was changed since".to_owned()));
        };
        let reader = objects.reader();
        let image = |part: &Part| -> Result<Option<Image>, StateError> {
            match part.held {
                Held::Image { image, .. } => image_of(&reader, image).map(Some),
                Held::Bytes { .. } | Held::Absent => Ok(None),
            }
        };
        let (Some(old), Some(new), Some(found)) = (image(before)?, image(after)?, image(now)?)
        else {
            return Ok(Remainder::Conflict("it was changed since".to_owned()));
        };
        let revisions = Revisions {
            before: &old,
            after: &new,
            now: &found,
        };
        let database = self.database(address, variable.as_deref())?;
        let writer = objects.writer();
        let reverted = database.revert(revisions, &Reading(&reader), &Keeping(&writer))?;
        let remainder = match reverted {
            Reverted::AlreadyGone => Remainder::Unchanged,
            Reverted::Image(image) => {
                Remainder::Part(Box::new(part_of_image(&now.subject, &image, &writer)?))
            }
            Reverted::Conflict(conflicts) => {
                let one = |conflict: &safepoint_database::RowConflict| match &conflict.table {
                    Some(table) => format!("`{table}`: {}", conflict.why),
                    None => conflict.why.clone(),
                };
                let all: Vec<String> = conflicts.iter().map(one).collect();
                Remainder::Conflict(all.join("; "))
            }
        };
        writer.finish()?;
        Ok(remainder)
    }
}
