//! TOML with the place of every value.
//!
//! `toml_edit` reads it and says where everything stands. It could change the
//! document, too, but then line ends and the comments around what is removed
//! would not stay as they are; so the text itself is changed.

mod check;
mod read;
mod render;
mod tables;
mod write;

pub(super) use read::read;
pub(super) use write::write;
