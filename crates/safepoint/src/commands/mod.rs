//! One file a command: each reads its arguments, asks the crates below, and prints.

pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod init;
pub(crate) mod man;
pub(crate) mod schema;
pub(crate) mod status;
pub(crate) mod trail;
