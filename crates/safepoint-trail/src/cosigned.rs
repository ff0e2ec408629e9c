//! The heads that witnesses have cosigned, kept beside the copy of the head.
//!
//! One file for each witness, with the newest head it cosigned. What is read is checked
//! again, and a trail that does not continue such a head has been tampered with.

use std::path::{Path, PathBuf};

use safepoint_model::Digest;
use safepoint_store::StoreError;
use safepoint_store::durable::{self, Access};

use crate::cosign::{self, Cosigned, WitnessKey};
use crate::head::SignedHead;
use crate::note::PublicKey;
use crate::verify::Bad;
use crate::{Trail, TrailError, tree};

const FORMAT: &str = "safepoint/cosigned/v1";

impl Trail {
    /// What is sent to a witness that last saw `old` entries, and the head that it is about.
    pub fn witness_request(&self, old: u64) -> Result<(String, SignedHead), TrailError> {
        let consistency = self.consistency(old)?;
        let request = cosign::request(old, &consistency.path, &consistency.head);
        let request = request.ok_or_else(|| {
            StoreError::corrupted("the trail", "a proof has more hashes than a tree can have")
        })?;
        Ok((request, consistency.head))
    }

    /// Keeps a cosigned head, in place of an older one of the same witness.
    pub fn keep_cosigned(&self, cosigned: &Cosigned) -> Result<(), TrailError> {
        let directory = self.cosigned_directory();
        durable::create_directory(&directory)?;
        let key = cosigned.witness.to_string();
        let text = format!("{FORMAT}\n{key}\n{}", cosigned.note());
        let name = Digest::of_parts(&[key.as_bytes()]).to_string();
        durable::write(&directory.join(name), text.as_bytes(), Access::Private)?;
        Ok(())
    }

    /// The heads that witnesses have cosigned, the newest first.
    pub fn cosigned(&self) -> Result<Vec<Cosigned>, TrailError> {
        let directory = self.cosigned_directory();
        let names = match std::fs::read_dir(&directory) {
            Ok(names) => names,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::file("read", directory, error).into()),
        };
        let mut found = Vec::new();
        for name in names {
            let path = name
                .map_err(|error| StoreError::file("read", &directory, error))?
                .path();
            // What was cut off by a crash has a name that begins with a dot.
            let hidden = |path: &Path| {
                let name = path.file_name().map(|name| name.to_string_lossy());
                name.is_none_or(|name| name.starts_with('.'))
            };
            if !hidden(&path) {
                let text = std::fs::read_to_string(&path)
                    .map_err(|error| StoreError::file("read", &path, error))?;
                let damaged = || {
                    StoreError::corrupted(
                        path.display().to_string(),
                        "not a head with a cosignature",
                    )
                };
                found.push(read(&text, self.key()).ok_or_else(damaged)?);
            }
        }
        found.sort_by_key(|cosigned| std::cmp::Reverse((cosigned.head.size(), cosigned.time)));
        Ok(found)
    }

    /// The newest cosigned head that the trail does not continue, if there is one.
    pub(crate) fn contradicted(&self) -> Result<Option<Bad>, TrailError> {
        let covered = self.witnessed()?;
        for Cosigned { head, witness, .. } in self.cosigned()? {
            let name = witness.name();
            if head.size() > covered {
                let reason = format!("the witness `{name}` has cosigned {} entries", head.size());
                return Ok(Some(Bad::at(covered, reason)));
            }
            if tree::frontier(self.witness(), head.size())?.root() != head.root() {
                let reason = format!("the trail does not continue what `{name}` has cosigned");
                return Ok(Some(Bad::at(head.size().saturating_sub(1), reason)));
            }
        }
        Ok(None)
    }

    fn cosigned_directory(&self) -> PathBuf {
        self.witness().directory().join("cosigned")
    }
}

/// Reads a file, and checks both signatures in it.
fn read(text: &str, key: &PublicKey) -> Option<Cosigned> {
    let (format, rest) = text.split_once('\n')?;
    let (witness, note) = rest.split_once('\n')?;
    if format != FORMAT {
        return None;
    }
    let witness: WitnessKey = witness.parse().ok()?;
    let head = SignedHead::open(note, key).ok()?;
    let cosigned = witness.cosignature(note, &head).ok()?;
    Some(cosigned)
}
