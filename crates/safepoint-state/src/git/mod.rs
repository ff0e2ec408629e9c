//! What safepoint asks of git, always through the real `git` program.
//!
//! One hardened runner starts it, [`Repository`] knows where things lie and
//! where `HEAD` is, and [`stash`] puts the state of a work tree beside the
//! work, as an ordinary stash entry that plain git can list and apply.
//!
//! Nothing here moves a file, writes the index, or changes `HEAD`, a branch, or
//! a stash of the user's. Nothing here runs a program named by a
//! configuration: no hook, filter, file system monitor, pager or signer. The fence around
//! each run holds that, whatever a configuration says.

mod config;
mod content;
mod error;
mod import;
pub(crate) mod index;
mod layout;
mod remotes;
mod repository;
mod runner;
mod settings;
pub mod stash;
mod status;

pub use error::GitError;
pub(crate) use layout::is_bare;
pub use layout::linked_places;
pub(crate) use layout::{Bond, Tie, tidied, tie};
pub use remotes::remote_hosts;
pub use repository::{Head, Repository};
pub use runner::Git;
