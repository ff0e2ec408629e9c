//! One file a command: each reads its arguments, asks the crates below, and prints.

pub(crate) mod atlas;
pub(crate) mod audit;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod du;
pub(crate) mod gc;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod mutate;
pub(crate) mod outside;
pub(crate) mod pin;
pub(crate) mod redo;
pub(crate) mod restoring;
pub(crate) mod rollback;
pub(crate) mod schema;
pub(crate) mod session;
pub(crate) mod show;
pub(crate) mod state;
pub(crate) mod status;
pub(crate) mod trail;
pub(crate) mod undo;
pub(crate) mod verdict;
pub(crate) mod verify;
pub(crate) mod watch;

pub(crate) use undo::{conflict_document, show_conflict};
