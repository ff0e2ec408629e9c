//! Bringing back secrets that were captured encrypted.

use std::path::Path;

use safepoint_store::durable::{self, Access};

use super::Goal;
use crate::StateError;
use crate::objects::Reader;
use crate::seal::{self, Identity, Recipient};

/// To whom the secrets that are there now are encrypted before they are replaced.
pub(super) fn recipients(goal: &Goal<'_>, identities: &[Identity]) -> Vec<Recipient> {
    match goal {
        Goal::Snapshot { snapshot, .. } if !snapshot.record.sealed.is_empty() => {
            identities.iter().map(Identity::recipient).collect()
        }
        _ => Vec::new(),
    }
}

/// Decrypts what the snapshot sealed, where somebody gave the key.
pub(super) fn restore(
    workspace: &Path,
    goal: &Goal<'_>,
    identities: &[Identity],
    reader: &Reader<'_>,
    warnings: &mut Vec<String>,
) -> Result<(), StateError> {
    let Goal::Snapshot { snapshot, .. } = goal else {
        return Ok(());
    };
    for sealed in &snapshot.record.sealed {
        if identities.is_empty() {
            warnings.push(format!(
                "`{}` was captured encrypted, and is not restored without the key",
                sealed.path
            ));
            continue;
        }
        let plain = seal::open(&reader.read(sealed.content)?, identities)?;
        let full = workspace.join(crate::path::as_path(&crate::scope::unescape(&sealed.path)));
        if std::fs::read(&full).is_ok_and(|present| present == **plain) {
            continue;
        }
        durable::write(&full, &plain, Access::Private)?;
        let failed = |error: rustix::io::Errno| StateError::file("change", &full, error);
        let mode = rustix::fs::Mode::from_raw_mode(sealed.mode);
        rustix::fs::chmod(&full, mode).map_err(failed)?;
        let times = super::stage::times(sealed.modified);
        let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
        rustix::fs::utimensat(rustix::fs::CWD, &full, &times, flags).map_err(failed)?;
    }
    Ok(())
}
