//! A place outside the fence, wherever the repository was cloned to.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// What the fence lets everybody write to.
const FREE: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];

/// A directory in which a command behind the fence may not write: in `target`, which is
/// `env!("CARGO_TARGET_TMPDIR")`, unless the repository itself lies in a temporary folder.
pub fn outside(target: &str) -> TempDir {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let named = [variable("XDG_RUNTIME_DIR"), variable("HOME")];
    let system = ["/run", "/srv", "/opt", "/mnt"].map(PathBuf::from);
    let candidates = [PathBuf::from(target)]
        .into_iter()
        .chain(named.into_iter().flatten())
        .chain(system);
    candidates
        .filter(|place| !is_free(place))
        .find_map(|place| tempfile::tempdir_in(place).ok())
        .expect("a directory that can be written and is no temporary folder: set HOME to one")
}

fn is_free(place: &Path) -> bool {
    // What is not there is nobody's.
    let Ok(place) = place.canonicalize() else {
        return true;
    };
    FREE.iter().any(|free| place.starts_with(free)) || place.parent().is_none()
}
