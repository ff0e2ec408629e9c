//! Why a checkpoint is not made: what its scope names is not there, or cannot be captured.

use crate::StateError;
use crate::capture::Capture;
use crate::checkpoint::Wanted;
use crate::listing::all_files;
use crate::scope::Scope;
use crate::state::Workspace;
use crate::tree::{self, Trees};

/// Who asks for a checkpoint is told of a file that may not be read, and decides about it. What
/// is made around an action leaves such a file out: it must not stop the way back.
pub(crate) fn refuse_unreadable(
    workspace: &Workspace,
    capture: &Capture,
) -> Result<(), StateError> {
    let mut left_out = capture.scan.left_out.iter();
    match left_out.find(|one| one.why == crate::left_out::UNREADABLE) {
        Some(one) => Err(StateError::file(
            "read",
            workspace.root.join(crate::path::as_path(&one.path)),
            std::io::ErrorKind::PermissionDenied,
        )),
        None => Ok(()),
    }
}

/// What a scope names must be there, before anything is looked at.
pub(crate) fn refuse_missing(workspace: &Workspace, scope: &Scope) -> Result<(), StateError> {
    for path in scope.paths() {
        let full = workspace.root.join(crate::path::as_path(path));
        if full.symlink_metadata().is_err() {
            return Err(StateError::EmptyScope {
                scope: crate::path::display(path),
            });
        }
    }
    Ok(())
}

/// A scope that names something must find it, each thing it names. What is there and is not
/// captured is a warning where something else is captured.
pub(crate) fn refuse_empty(
    trees: &dyn Trees,
    wanted: &Wanted<'_>,
    capture: &Capture,
) -> Result<Vec<String>, StateError> {
    let scope = wanted.scope;
    let mut warnings = Vec::new();
    if scope.is_everything() {
        return Ok(warnings);
    }
    let is_hollow =
        capture.files.files == 0 && capture.scan.git.is_empty() && wanted.parts.is_empty();
    let mut tell = |refusal: StateError| match is_hollow {
        true => Err(refusal),
        false => {
            warnings.push(format!("not captured: {refusal}"));
            Ok(())
        }
    };
    let scan = &capture.scan;
    for path in scope.paths() {
        let shown = crate::path::display(path);
        let because = |why: String| StateError::BadScope {
            scope: shown.clone(),
            why,
        };
        if let Some((_, reason)) = scan.sensitive.iter().find(|(known, _)| known == path) {
            if wanted.seal_to.is_empty() {
                let reason = reason.as_str();
                tell(because(format!(
                    "it is sensitive ({reason}): add `--seal-sensitive`"
                )))?;
            }
            continue;
        }
        if let Some(omitted) = scan.left_out.iter().find(|one| one.path == *path) {
            let why = &omitted.why;
            tell(because(format!(
                "it is left out ({why}): name it under `include` in safepoint.yaml"
            )))?;
            continue;
        }
        let is_git = scan.git.iter().any(|(known, _)| known == path);
        if !is_git && tree::find(trees, Some(&capture.files), path)?.is_none() {
            return Err(StateError::EmptyScope { scope: shown });
        }
    }
    let mut found = all_files(trees, &capture.files)?;
    // Beside something that is captured, a pattern may find only what is not. What that is, the
    // warnings about sensitive files and those left out say.
    if !is_hollow {
        found.extend(scan.sensitive.iter().map(|(path, _)| path.clone()));
        found.extend(scan.left_out.iter().map(|one| one.path.clone()));
    }
    match scope.unmatched_pattern(&found) {
        Some(pattern) => Err(StateError::EmptyScope { scope: pattern }),
        None => Ok(warnings),
    }
}
