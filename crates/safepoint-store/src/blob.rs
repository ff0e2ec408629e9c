//! Blobs on disk: bytes kept under their own SHA-256 digest.
//!
//! Where there is a depot, the directory is a cache of it: a blob is in the
//! depot before anybody is told its digest, and one that is missing here, or
//! damaged, is fetched from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safepoint_model::Digest;

use crate::durable::{self, Access};
use crate::{Depot, StoreError, error::Said};

/// A directory of blobs. Each lies in a file named by its digest, in one of
/// 256 directories, and is never changed.
#[derive(Clone, Debug)]
pub struct Blobs {
    directory: PathBuf,
    depot: Option<Arc<Depot>>,
}

impl Blobs {
    /// The blobs in `directory`, which is made with the first of them.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            depot: None,
        }
    }

    /// The same, shared with other machines.
    pub fn shared(self, depot: Arc<Depot>) -> Self {
        Self {
            depot: Some(depot),
            ..self
        }
    }

    /// Where they are shared, if they are.
    pub fn depot(&self) -> Option<&Arc<Depot>> {
        self.depot.as_ref()
    }

    /// Keeps `bytes` and tells under which digest. Durable when it returns.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of_parts(&[bytes]);
        if let Some(depot) = &self.depot {
            // Even if it is here already: it may be from a time without a depot.
            depot.create(&shared_name(&digest), bytes.to_vec())?;
        }
        // Present is not enough: a damaged blob is written anew.
        if self.get_local(&digest).is_ok_and(|found| found.is_some()) {
            return Ok(digest);
        }
        self.keep(&digest, bytes)?;
        Ok(digest)
    }

    /// The bytes under `digest`, checked against it; `None` when there are none.
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let local = self.get_local(digest);
        let Some(depot) = &self.depot else {
            return local;
        };
        if let Ok(Some(bytes)) = local {
            return Ok(Some(bytes));
        }
        let name = shared_name(digest);
        let Some(bytes) = depot.read(&name)? else {
            return local; // why it is not to be had here
        };
        if Digest::of_parts(&[&bytes]) != *digest {
            return Err(damaged(format!("{}/{name}", depot.place())));
        }
        self.keep(digest, &bytes)?;
        Ok(Some(bytes))
    }

    fn get_local(&self, digest: &Digest) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.path(digest);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::file("read", path, error)),
        };
        if Digest::of_parts(&[&bytes]) == *digest {
            Ok(Some(bytes))
        } else {
            Err(damaged(path.display().to_string()))
        }
    }

    fn keep(&self, digest: &Digest, bytes: &[u8]) -> Result<(), StoreError> {
        let path = self.path(digest);
        durable::create_directory(path.parent().unwrap_or(Path::new(".")))?;
        durable::write(&path, bytes, Access::Private)
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        let name = digest.to_string();
        let (first, rest) = name.split_at(2);
        self.directory.join(first).join(rest)
    }
}

fn shared_name(digest: &Digest) -> String {
    format!("blobs/{digest}")
}

fn damaged(place: String) -> StoreError {
    StoreError::Corrupted {
        place,
        cause: Arc::new(Said("its content does not match its name".into())),
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
