//! Who signed an atlas.
//!
//! A signature lies beside its atlas, in a file with `.sig` behind the name: a
//! C2SP signed note over the atlas's id, version and digest. Whoever has the
//! steward's public key can check it without this program.

use std::path::{Path, PathBuf};

use safepoint_gates::AtlasManifest;
use safepoint_model::Digest;
use safepoint_store::durable::{self, Access};
use safepoint_store::regular;
use safepoint_trail::note::{PublicKey, Signer};

use super::AtlasFile;
use crate::ControlError;

/// The longest signature.
const LARGEST_NOTE: u64 = 64 << 10;

/// Who signed an atlas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Signature {
    /// Nobody.
    None,
    /// The holder of this key.
    By(String),
}

/// Signs the atlas at `path`, and writes the signature beside it.
pub fn sign(path: &Path, key: &Path) -> Result<(PathBuf, PublicKey), ControlError> {
    let signer = read_signer(key)?;
    let atlas = AtlasFile::read_unsigned(path)?;
    if let Some(stated) = stated_key(&atlas.manifest)
        && stated != signer.public().to_string()
    {
        return Err(ControlError::Signature {
            path: atlas.path,
            reason: "`steward.public_key` names another key".to_owned(),
        });
    }
    let note = signer.sign(&statement(&atlas.manifest, atlas.digest, signer.public()));
    let place = place(&atlas.path);
    durable::write(&place, note.as_bytes(), Access::Shared)?;
    Ok((place, signer.public().clone()))
}

/// Checks the signature beside an atlas, if there is one.
pub(super) fn check(
    path: &Path,
    manifest: &AtlasManifest,
    digest: Digest,
) -> Result<Signature, ControlError> {
    let refused = |reason: String| ControlError::Signature {
        path: path.to_owned(),
        reason,
    };
    let stated = stated_key(manifest);
    let place = place(path);
    let note = match regular::read_text(&place, LARGEST_NOTE) {
        Ok(note) => note,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return match stated {
                None => Ok(Signature::None),
                Some(_) => Err(refused(
                    "it names a key, and there is no signature beside it".to_owned(),
                )),
            };
        }
        Err(error) => return Err(ControlError::File { path: place, error }),
    };
    // The note names its key, so that it can be checked by itself.
    let text = match stated {
        Some(key) => key.to_owned(),
        None => note
            .lines()
            .find_map(|line| line.strip_prefix("key "))
            .unwrap_or_default()
            .to_owned(),
    };
    let key: PublicKey = text
        .parse()
        .map_err(|error| refused(format!("its key cannot be read: {error}")))?;
    let signed = key
        .open(&note)
        .map_err(|error| refused(error.to_string()))?;
    if signed != statement(manifest, digest, &key) {
        return Err(refused(
            "it is for another text: sign the atlas again".to_owned(),
        ));
    }
    Ok(Signature::By(key.to_string()))
}

fn read_signer(path: &Path) -> Result<Signer, ControlError> {
    let text = std::fs::read_to_string(path).map_err(|error| ControlError::File {
        path: path.to_owned(),
        error,
    })?;
    Signer::parse(text.trim()).map_err(|error| ControlError::Key {
        path: path.to_owned(),
        error,
    })
}

/// What is signed.
fn statement(manifest: &AtlasManifest, digest: Digest, key: &PublicKey) -> String {
    let AtlasManifest {
        atlas_id, version, ..
    } = manifest;
    format!("safepoint atlas v1\natlas {atlas_id}\nversion {version}\ndigest {digest}\nkey {key}\n")
}

fn stated_key(manifest: &AtlasManifest) -> Option<&str> {
    manifest.steward.as_ref()?.public_key.as_deref()
}

fn place(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".sig");
    name.into()
}
