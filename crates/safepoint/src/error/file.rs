//! Errors of files, explained.

use std::io::ErrorKind;

use safepoint_model::Code;

use super::{Explanation, store};

pub(super) fn explain(path: &std::path::Path, error: &std::io::Error) -> Explanation {
    let (code, hint) = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            let disk = safepoint_store::disk::name_of(path);
            let location = Some(path.display().to_string());
            return (Code::StoreFull, location, Some(store::make_room(&disk)));
        }
        ErrorKind::ReadOnlyFilesystem => (
            Code::StoreReadOnly,
            "make it writable, or work on a copy that is",
        ),
        ErrorKind::PermissionDenied => (
            Code::FileFailed,
            "check who may read and write it, or leave it out with `exclude` in safepoint.yaml",
        ),
        _ => (Code::FileFailed, "the cause above says what failed"),
    };
    (
        code,
        Some(path.display().to_string()),
        Some(hint.to_owned()),
    )
}
