//! The stash entry beside the work, against the real git.
#![expect(clippy::panic, clippy::unwrap_used, reason = "tests")]
#![expect(clippy::disallowed_methods, reason = "tests make files and run git")]

mod apply;
mod contents;
mod entries;
mod hostile;
mod repository;
mod support;
mod untouched;
