//! YAML with the place of every value.
//!
//! A parser that knows all of YAML says what there is and where; the marks
//! between the values, which it does not report, are then found in the gaps.
//! What refers to other places, or means more than is written, is read and
//! left alone: a change that would have to touch it is refused.

mod block;
mod build;
mod gaps;
mod read;
mod render;
mod scalar;
mod write;

pub(super) use read::read;
pub(super) use write::write;
