//! From words to places on disk, by their letters alone: no link is followed.

use std::path::{Component, Path, PathBuf};

use crate::deed::Where;

use super::state::{Argument, tidy};

/// Where an argument points, from each directory a command may run in.
pub(super) fn places(argument: &Argument, directories: Option<&[PathBuf]>) -> Vec<Where> {
    let (text, pattern) = match argument {
        Argument::Known(text) => (text.as_str(), false),
        Argument::Pattern { directory, .. } => (directory.as_str(), true),
        Argument::Dynamic { written, .. } => return vec![Where::Unknown(written.clone())],
    };
    if text.is_empty() && !pattern {
        return Vec::new();
    }
    // Where `link/..` leads, its letters do not tell: perhaps where they say.
    if turns_back(text) {
        let mut places = by_letters(argument, text, pattern, directories);
        places.push(Where::Unknown(argument.shown().to_owned()));
        return places;
    }
    by_letters(argument, text, pattern, directories)
}

fn by_letters(
    argument: &Argument,
    text: &str,
    pattern: bool,
    directories: Option<&[PathBuf]>,
) -> Vec<Where> {
    let made = |path: PathBuf| {
        let path = tidy(&path);
        if pattern {
            Where::Below(path)
        } else {
            Where::Exact(path)
        }
    };
    let path = Path::new(text);
    if path.is_absolute() {
        return vec![made(path.to_owned())];
    }
    match directories {
        None => vec![Where::Unknown(argument.shown().to_owned())],
        Some(directories) => directories
            .iter()
            .map(|directory| {
                let joined = tidy(&directory.join(path));
                match spread(directory, &joined) {
                    Some(above) => Where::Below(above),
                    None => made(joined),
                }
            })
            .collect(),
    }
}

/// Whether a path goes back up from a directory that it names.
fn turns_back(text: &str) -> bool {
    let mut named = false;
    for part in Path::new(text).components() {
        match part {
            Component::ParentDir if named => return true,
            Component::Normal(_) => named = true,
            _ => {}
        }
    }
    false
}

/// A directory that a pattern stands for is written with the pattern in it. What lies in one
/// such is somewhere below the directory before the pattern.
fn spread(directory: &Path, joined: &Path) -> Option<PathBuf> {
    let is_pattern = |part: &std::path::Component<'_>| {
        part.as_os_str()
            .to_str()
            .is_some_and(|part| part.contains(['*', '?', '[']))
    };
    if !directory.components().any(|part| is_pattern(&part)) {
        return None;
    }
    let mut above = PathBuf::new();
    for part in joined.components() {
        if is_pattern(&part) {
            return Some(above);
        }
        above.push(part);
    }
    None
}

/// Whether this is a device that swallows or shows text, and nothing else.
pub(super) fn is_stream(path: &Path) -> bool {
    path.to_str().is_some_and(|path| {
        matches!(
            path,
            "/dev/null"
                | "/dev/stdout"
                | "/dev/stderr"
                | "/dev/stdin"
                | "/dev/tty"
                | "/dev/full"
                | "/dev/zero"
                | "/dev/urandom"
                | "/dev/random"
        ) || path.starts_with("/dev/fd/")
    })
}

/// Whether writing here changes the machine and not a file.
pub(super) fn is_machine(path: &Path) -> bool {
    // Files there are memory that programs share under a name, and no devices.
    !path.starts_with("/dev/shm")
        && ["/dev", "/proc", "/sys"]
            .into_iter()
            .any(|root| path.starts_with(root))
}
