//! How many rows a table has, and a digest of them.
//!
//! The digest is BLAKE3 over `safepoint sqlite rows 1`, a newline, and what
//! [`walk`] hands out: the rows in the order of their keys, each as SQLite
//! writes it. Every row begins with its length, so none can be taken for another.

use std::io;

use safepoint_model::Digest;

use super::btree::{Part, walk};
use super::view::View;

/// Small rows are gathered: BLAKE3 is several times faster on many bytes at once.
const GATHERED: usize = 64 * 1024;

/// Counts and digests the rows of the table whose tree begins at page `root`.
pub(super) fn digest(view: &View<'_>, root: u32) -> io::Result<(u64, Digest)> {
    let mut hasher = blake3::Hasher::new();
    let mut rows = 0;
    let mut gathered = Vec::with_capacity(GATHERED);
    gathered.extend_from_slice(b"safepoint sqlite rows 1\n");
    walk(view, root, |part| {
        let mut bytes = match part {
            Part::Row(bytes) => {
                rows += 1;
                bytes
            }
            Part::More(bytes) => bytes,
        };
        // Whole blocks only: BLAKE3 works on powers of two.
        while let Some((now, later)) = bytes.split_at_checked(GATHERED - gathered.len()) {
            gathered.extend_from_slice(now);
            hasher.update(&gathered);
            gathered.clear();
            bytes = later;
        }
        gathered.extend_from_slice(bytes);
    })?;
    hasher.update(&gathered);
    Ok((rows, Digest::from_bytes(*hasher.finalize().as_bytes())))
}
