//! Errors of the store, explained.

use safepoint_model::Code;
use safepoint_store::StoreError;

use super::Explanation;

pub(super) fn explain(error: &StoreError) -> Explanation {
    if let StoreError::Full { place, disk, .. } = error {
        return (Code::StoreFull, Some(place.clone()), Some(make_room(disk)));
    }
    let (code, suggestion) = match error {
        StoreError::Location(_) => (
            Code::InvalidInput,
            "for example `--store sqlite:/path/to/store.db`",
        ),
        StoreError::Locked { .. } => (
            Code::StoreLocked,
            "wait for the other process to end, then try again",
        ),
        StoreError::ReadOnly { .. } => (
            Code::StoreReadOnly,
            "make it writable, or choose another store with `--store`",
        ),
        StoreError::Full { .. } => (Code::StoreFull, "make room on that disk, then try again"),
        StoreError::Corrupted { .. } => (
            Code::StoreCorrupted,
            "restore the store from a backup; `safepoint trail verify` then tells whether it is whole",
        ),
        StoreError::Foreign { .. } => (
            Code::StoreForeign,
            "choose another file or database with `--store`",
        ),
        StoreError::Newer { .. } => (Code::StoreNewer, "use the newer Safepoint for this store"),
        StoreError::Unreachable { .. } => (
            Code::StoreUnreachable,
            "check the address, and that the server runs",
        ),
        StoreError::Unconfirmed { .. } => (
            Code::StoreUnconfirmed,
            "look whether it is there before you do it again: `safepoint trail list --last 20`",
        ),
        StoreError::File { .. } | StoreError::Statement { .. } | StoreError::Column { .. } => {
            (Code::StoreFailed, "the cause above says what failed")
        }
        StoreError::DepotRefused { .. } => (
            Code::DepotRefused,
            "nothing was changed: check the credentials in `AWS_ACCESS_KEY_ID` and `AWS_SECRET_ACCESS_KEY`, and what they may do",
        ),
        StoreError::DepotForeign { .. } => (
            Code::DepotForeign,
            "nothing was changed: give each store a bucket or a prefix of its own in `SAFEPOINT_OBJECTS`",
        ),
        StoreError::DepotUnsafe { .. } => (
            Code::DepotUnsafe,
            "nothing was changed: use a server that heeds `If-None-Match` when an object is put",
        ),
        StoreError::LeaseLost { .. } => (
            Code::StoreLocked,
            "nothing is lost: the other process goes on with it",
        ),
        StoreError::AfterCommit(_) => (
            Code::StoreUnconfirmed,
            "it is in the trail all the same; mend the cause above, and the next write catches up",
        ),
        StoreError::Seal(_) => (
            Code::TrailTampered,
            "`safepoint trail verify` names the first bad entry",
        ),
    };
    let location = match error {
        StoreError::Locked { place, .. }
        | StoreError::ReadOnly { place, .. }
        | StoreError::Full { place, .. }
        | StoreError::Corrupted { place, .. }
        | StoreError::Foreign { place }
        | StoreError::Newer { place, .. }
        | StoreError::Unreachable { place, .. }
        | StoreError::Unconfirmed { place, .. }
        | StoreError::DepotRefused { place, .. }
        | StoreError::DepotForeign { place, .. }
        | StoreError::DepotUnsafe { place, .. }
        | StoreError::Statement { place, .. } => Some(place.clone()),
        StoreError::File { path, .. } => Some(path.display().to_string()),
        StoreError::Location(_)
        | StoreError::Column { .. }
        | StoreError::LeaseLost { .. }
        | StoreError::AfterCommit(_)
        | StoreError::Seal(_) => None,
    };
    (code, location, Some(suggestion.to_owned()))
}

/// What to do about a file system that is full.
pub(super) fn make_room(disk: &str) -> String {
    format!("make room on {disk}, then try again: nothing was half-written")
}
