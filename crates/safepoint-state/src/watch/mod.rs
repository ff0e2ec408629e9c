//! Knowing what changed without looking: a process that listens to the file
//! system, and a checkpoint that asks it.
//!
//! It is a help and no more. A checkpoint that cannot ask, or is told that
//! something may have been missed, looks at everything; and a roll back always
//! does.

mod base;
mod client;
mod listen;
mod protocol;

pub(crate) use base::Base;
pub(crate) use client::ask;
pub use client::{Standing, standing};
pub use listen::serve;
pub(crate) use protocol::Cursor;

use std::path::{Path, PathBuf};

/// Where the listener of a workspace is reached.
pub fn socket(runtime: &Path, workspace: &Path) -> PathBuf {
    runtime
        .join("watch")
        .join(format!("{}.sock", crate::state::key(workspace)))
}
