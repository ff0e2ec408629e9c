//! Which file system a path lies on, so that people know which one is full.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where the file system of a path is mounted; of a path that is not there, that of the nearest
/// directory above it. None where nothing of it can be looked at.
pub fn mount_point(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    let mut place = absolute
        .ancestors()
        .find_map(|above| above.canonicalize().ok())?;
    let device = place.metadata().ok()?.dev();
    while let Some(above) = place.parent()
        && above.metadata().ok()?.dev() == device
    {
        place = above.to_owned();
    }
    Some(place)
}

/// The same in words.
pub fn name_of(path: &Path) -> String {
    match mount_point(path) {
        Some(place) => format!("the file system at `{}`", place.display()),
        None => "its file system".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn st_40_the_file_system_of_a_path_is_named() {
        let root = Path::new("/");
        assert_eq!(mount_point(root).as_deref(), Some(root));
        let proc = mount_point(Path::new("/proc/self/is/not/there"));
        assert_eq!(proc.as_deref(), Some(Path::new("/proc")));
        assert_eq!(
            name_of(Path::new("/proc/version")),
            "the file system at `/proc`"
        );
    }
}
