//! Atlases as files: text, modules beside it, and a signature.
//!
//! What is read once is what counts: text and modules are pinned by their
//! digest, and kept in the store for as long as a session needs them.

mod shelf;
mod signature;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use safepoint_gates::{AtlasManifest, Engine, Loaded, Runner, load};
use safepoint_model::{Digest, Frame};
use safepoint_store::regular;

pub use signature::{Signature, sign};

pub(crate) use shelf::{fetch, keep, known_steward, trust_steward};

use crate::ControlError;

/// The longest text of an atlas, and the largest module beside it. What an agent puts in the
/// place of one is not read without end.
const LARGEST_TEXT: u64 = 8 << 20;
const LARGEST_MODULE: u64 = 64 << 20;

/// What agents may do where a project says nothing.
const BUILT_IN: &str = include_str!("../../atlases/built-in.yaml");

/// An atlas that was read from a file.
#[derive(Clone, Debug)]
pub struct AtlasFile {
    /// Where it was read from, absolute.
    pub path: PathBuf,
    /// What it says, word for word.
    pub text: String,
    /// What it says.
    pub manifest: AtlasManifest,
    /// The WebAssembly modules it names, by path.
    pub modules: BTreeMap<String, Vec<u8>>,
    /// The digest of all of it.
    pub digest: Digest,
    /// Who signed it.
    pub signature: Signature,
}

impl AtlasFile {
    /// Reads an atlas, its modules and its signature. Anything wrong is an error.
    pub fn read(path: &Path) -> Result<Self, ControlError> {
        let mut atlas = Self::read_unsigned(path)?;
        atlas.signature = signature::check(&atlas.path, &atlas.manifest, atlas.digest)?;
        Ok(atlas)
    }

    /// The atlas that applies where a project names none.
    pub fn built_in() -> Result<Self, ControlError> {
        // No file has this name, so none can be exchanged for it.
        Self::alone("safepoint:built-in", BUILT_IN.to_owned())
    }

    /// An atlas that somebody hands in, to be tried out. Nothing lies beside it.
    pub fn given(text: String) -> Result<Self, ControlError> {
        let atlas = Self::alone("safepoint:given", text)?;
        let first = named_modules(&atlas.manifest).next();
        match first {
            None => Ok(atlas),
            Some(name) => Err(ControlError::Module {
                path: name.into(),
                reason: "a module lies beside the file of its atlas".to_owned(),
            }),
        }
    }

    fn alone(name: &str, text: String) -> Result<Self, ControlError> {
        let path = PathBuf::from(name);
        let manifest = load::read(&text).map_err(|problems| ControlError::Atlas {
            path: path.clone(),
            text: text.clone(),
            problems,
        })?;
        let modules = BTreeMap::new();
        Ok(Self {
            digest: digest(&text, &modules),
            path,
            text,
            manifest,
            modules,
            signature: Signature::None,
        })
    }

    /// Reads an atlas and its modules, whoever signed it.
    fn read_unsigned(path: &Path) -> Result<Self, ControlError> {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (text, manifest) = read_manifest_and_text(&path)?;
        let modules = read_modules(&path, &manifest)?;
        Ok(Self {
            digest: digest(&text, &modules),
            path,
            text,
            manifest,
            modules,
            signature: Signature::None,
        })
    }

    /// The digest of what is at `path` now; `None` when nothing is there any more.
    pub(crate) fn digest_now(path: &Path, pinned: &Loaded) -> Result<Option<Digest>, ControlError> {
        let text = match regular::read(path, LARGEST_TEXT) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                let path = path.to_owned();
                return Err(ControlError::File { path, error });
            }
        };
        let Ok(text) = String::from_utf8(text) else {
            return Ok(Some(Digest::from_bytes([0; 32])));
        };
        let mut modules = BTreeMap::new();
        for name in pinned.modules.keys() {
            let bytes = regular::read(&beside(path, name), LARGEST_MODULE).unwrap_or_default();
            modules.insert(name.clone(), bytes);
        }
        Ok(Some(digest(&text, &modules)))
    }

    /// What is wrong with the code in it that only shows when it is compiled.
    pub fn check_code(&self) -> Result<(), ControlError> {
        self.engine()?
            .check_code()
            .map_err(|(name, reason)| ControlError::Module {
                path: name.into(),
                reason,
            })
    }

    /// Makes this one atlas ready.
    pub fn engine(&self) -> Result<Engine, ControlError> {
        crate::session::engine(vec![self.loaded()])
    }

    pub(crate) fn loaded(&self) -> Loaded {
        Loaded {
            manifest: self.manifest.clone(),
            digest: self.digest,
            modules: self.modules.clone(),
        }
    }
}

/// Reads what an atlas says, whatever lies beside it.
pub fn read_manifest(path: &Path) -> Result<AtlasManifest, ControlError> {
    read_manifest_and_text(path).map(|(_, manifest)| manifest)
}

fn read_manifest_and_text(path: &Path) -> Result<(String, AtlasManifest), ControlError> {
    let text = read_text(path)?;
    match load::read(&text) {
        Ok(manifest) => Ok((text, manifest)),
        Err(problems) => Err(ControlError::Atlas {
            path: path.to_owned(),
            text,
            problems,
        }),
    }
}

/// The digest of an atlas: its text, and each module with its path.
pub(crate) fn digest(text: &str, modules: &BTreeMap<String, Vec<u8>>) -> Digest {
    let mut frame = Frame::new("safepoint/atlas/v1");
    frame.field(text.as_bytes());
    for (path, content) in modules {
        frame.field(path.as_bytes()).field(content);
    }
    frame.digest()
}

fn read_text(path: &Path) -> Result<String, ControlError> {
    let failed = |error| ControlError::File {
        path: path.to_owned(),
        error,
    };
    regular::read_text(path, LARGEST_TEXT).map_err(failed)
}

/// The modules that an atlas names.
fn named_modules(manifest: &AtlasManifest) -> impl Iterator<Item = String> {
    let named = manifest
        .extensions
        .iter()
        .filter_map(|extension| extension.runner());
    let inline = manifest
        .checkpoints
        .iter()
        .flat_map(|gate| &gate.questions)
        .filter_map(|question| question.validation.as_ref()?.custom_validator.as_deref())
        .filter_map(Runner::inline);
    named.chain(inline).filter_map(|runner| match runner {
        Runner::Wasm(name) => Some(name),
        _ => None,
    })
}

fn read_modules(
    path: &Path,
    manifest: &AtlasManifest,
) -> Result<BTreeMap<String, Vec<u8>>, ControlError> {
    let mut modules = BTreeMap::new();
    for name in named_modules(manifest) {
        let plain = |part| matches!(part, std::path::Component::Normal(_));
        if !Path::new(&name).components().all(plain) {
            return Err(ControlError::Module {
                path: name.into(),
                reason: "a module lies beside its atlas, or below it".to_owned(),
            });
        }
        let place = beside(path, &name);
        let content =
            regular::read(&place, LARGEST_MODULE).map_err(|error| ControlError::File {
                path: place.clone(),
                error,
            })?;
        modules.insert(name, content);
    }
    Ok(modules)
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.parent().unwrap_or(Path::new(".")).join(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{AtlasFile, digest};

    #[test]
    fn au_03_the_built_in_atlas_asks_rarely_and_keeps_its_own_examples() {
        let atlas = AtlasFile::built_in().unwrap();
        let engine = atlas.engine().unwrap();
        assert_eq!(atlas.manifest.tests.len(), 3);
        for case in &atlas.manifest.tests {
            assert_eq!(engine.try_case(case), [], "{}", case.name);
        }
    }

    #[test]
    fn ga_05_the_digest_of_an_atlas_is_the_published_one() {
        let modules = BTreeMap::from([("check.wasm".to_owned(), b"\0asm".to_vec())]);
        assert_eq!(
            digest("atlas_version: \"1.0\"\n", &modules).to_string(),
            "f8cfaaa2d18a0ec90d167da048c6fbf84491d1494dc450733f1ac889ad5269af"
        );
    }
}
