//! Blobs on disk: bytes kept under their own SHA-256 digest.

use std::fs;
use std::path::{Path, PathBuf};

use safepoint_model::Digest;

use crate::durable::{self, Access};
use crate::{StoreError, error::Said};

/// A directory of blobs. Each lies in a file named by its digest, in one of
/// 256 directories, and is never changed.
#[derive(Clone, Debug)]
pub struct Blobs {
    directory: PathBuf,
}

impl Blobs {
    /// The blobs in `directory`, which is made with the first of them.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
        }
    }

    /// Keeps `bytes` and tells under which digest. Durable when it returns.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_parts(&[bytes]);
        // Present is not enough: a damaged blob is written anew.
        if self.get(&digest).is_ok_and(|found| found.is_some()) {
            return Ok(digest);
        }
        let path = self.path(&digest);
        durable::create_directory(path.parent().unwrap_or(Path::new(".")))?;
        durable::write(&path, bytes, Access::Private)?;
        Ok(digest)
    }

    /// The bytes under `digest`, checked against it; `None` when there are none.
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("read", path, error)),
        };
        if Digest::of_parts(&[&bytes]) == *digest {
            Ok(Some(bytes))
        } else {
            Err(StoreError::Corrupted {
                place: path.display().to_string(),
                cause: std::sync::Arc::new(Said("its content does not match its name".into())),
            })
        }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        self.directory.join(first).join(rest)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "the test damages a file itself")]
mod tests {
    use super::*;

    #[test]
    fn a_blob_comes_back_or_says_that_it_is_damaged() {
        let room = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(room.path().join("blobs"));
        let digest = blobs.put(b"some bytes").unwrap();
        assert_eq!(blobs.put(b"some bytes").unwrap(), digest);
        assert_eq!(blobs.get(&digest).unwrap().unwrap(), b"some bytes");

        let absent = Digest::of_parts(&[b"absent"]);
        assert!(blobs.get(&absent).unwrap().is_none());

        fs::write(blobs.path(&digest), b"some bytez").unwrap();
        let error = blobs.get(&digest).unwrap_err();
        assert!(matches!(error, StoreError::Corrupted { .. }), "{error}");

        blobs.put(b"some bytes").unwrap();
        assert_eq!(blobs.get(&digest).unwrap().unwrap(), b"some bytes");
    }
}
