//! The depot: the object store that several machines share.
//!
//! Everything in it has a name that is used once: packs and blobs are named by
//! their digests, heads by their sizes. It is created under the condition that
//! nothing is there, so nothing is ever changed, and two machines that write
//! the same thing do not meet. What comes out is believed by nobody: whoever
//! reads compares it with the digest that he knows.
//!
//! A depot belongs to one store. The first to use it leaves a mark with the
//! store's name; whoever finds another name touches nothing.

mod address;
mod http;
mod s3;

use std::future::Future;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectStore, PutMode, PutOptions, PutPayload};
use safepoint_model::text;

pub use address::{DepotAddress, DepotAddressError};
pub use s3::Variables;

use crate::error::Said;
use crate::{StoreError, durable};

/// Whose depot it is.
const MARK: &str = "safepoint-depot";
/// Written to see whether the server heeds the condition.
const PROBE: &str = "safepoint-probe";
/// What a mark begins with: the number is the version of the layout.
const FORMAT: &str = "safepoint depot 1";

/// What became of something that was to be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It is there now.
    Now,
    /// It was there before.
    Before,
}

/// An object store that several machines share.
pub struct Depot {
    place: String,
    client: Arc<dyn ObjectStore>,
    prefix: Path,
    owner: OnceLock<String>,
    /// Whether its mark was seen.
    ready: Mutex<bool>,
}

impl Depot {
    /// The depot at `address`. Nobody is asked before something is read or written.
    pub fn open(address: &DepotAddress, variables: Variables<'_>) -> Result<Self, StoreError> {
        let place = address.to_string();
        let (client, prefix): (Arc<dyn ObjectStore>, _) = match address {
            DepotAddress::S3 { bucket, prefix } => (
                s3::client(&place, bucket, variables)?,
                Path::from(prefix.as_str()),
            ),
            DepotAddress::Directory(path) => {
                durable::create_directory(path)?;
                let local = LocalFileSystem::new_with_prefix(path)
                    .map_err(|error| failed(&place, error))?;
                let local = local.with_fsync(true);
                (Arc::new(local), Path::default())
            }
        };
        Ok(Self {
            place,
            client,
            prefix,
            owner: OnceLock::new(),
            ready: Mutex::default(),
        })
    }

    /// Says whose depot this must be, by a name that no other store has. The first one stays.
    pub fn claim(&self, owner: &str) {
        let _ = self.owner.set(owner.to_owned());
    }

    /// Its address, as it is shown.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Creates `name`, unless it is there. Durable when this returns.
    pub fn create(&self, name: &str, bytes: Vec<u8>) -> Result<Created, StoreError> {
        self.check_owner()?;
        self.put(name, bytes)
    }

    /// All bytes under `name`; `None` when there are none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_owner()?;
        self.get(name, None)
    }

    /// Some of the bytes under `name`; fewer where it has no more.
    pub fn read_range(&self, name: &str, range: Range<u64>) -> Result<Option<Vec<u8>>, StoreError> {
        self.check_owner()?;
        match self.get(name, Some(GetRange::Bounded(range.clone()))) {
            // It may be shorter than that, which servers tell in ways of their own.
            Err(StoreError::Unreachable { .. }) => {}
            other => return other,
        }
        let whole = self.get(name, None)?;
        let start = usize::try_from(range.start).unwrap_or(usize::MAX);
        let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        Ok(whole.map(|bytes| bytes.into_iter().skip(start).take(length).collect()))
    }

    /// The names directly below `under`, without it, in order.
    pub fn list(&self, under: &str) -> Result<Vec<String>, StoreError> {
        self.check_owner()?;
        let path = self.path(under);
        let found = wait(&self.place, self.client.list_with_delimiter(Some(&path)))?
            .map_err(|error| failed(&self.place, error))?;
        let mut names: Vec<String> = found
            .objects
            .iter()
            .filter_map(|object| object.location.filename().map(str::to_owned))
            .collect();
        names.sort();
        Ok(names)
    }

    fn path(&self, name: &str) -> Path {
        let parts = name.split('/').filter(|part| !part.is_empty());
        parts.fold(self.prefix.clone(), |path, part| path.join(part))
    }

    fn put(&self, name: &str, bytes: Vec<u8>) -> Result<Created, StoreError> {
        let options = PutOptions {
            mode: PutMode::Create,
            ..PutOptions::default()
        };
        let path = self.path(name);
        let payload = PutPayload::from(bytes);
        match wait(&self.place, self.client.put_opts(&path, payload, options))? {
            Ok(_) => Ok(Created::Now),
            Err(Error::AlreadyExists { .. }) => Ok(Created::Before),
            Err(error) => Err(failed(&self.place, error)),
        }
    }

    fn get(&self, name: &str, range: Option<GetRange>) -> Result<Option<Vec<u8>>, StoreError> {
        let options = GetOptions {
            range,
            ..GetOptions::default()
        };
        let path = self.path(name);
        let read = async {
            let found = self.client.get_opts(&path, options).await?;
            found.bytes().await
        };
        match wait(&self.place, read)? {
            Ok(bytes) => Ok(Some(bytes.into())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(failed(&self.place, error)),
        }
    }

    /// Sees once that this depot is ours, and makes it so where it is nobody's.
    fn check_owner(&self) -> Result<(), StoreError> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if *ready {
            return Ok(());
        }
        let owner = self.owner.get().ok_or_else(|| {
            StoreError::corrupted(&*self.place, "nobody has said whose objects these are")
        })?;
        let ours = format!("{FORMAT}\n{owner}\n");
        let found = match self.get(MARK, None)? {
            Some(found) => found,
            None => {
                self.check_condition()?;
                self.put(MARK, ours.clone().into_bytes())?;
                // Not what was written: another may have been faster.
                self.get(MARK, None)?
                    .ok_or_else(|| self.unsafe_because("what was written cannot be read"))?
            }
        };
        if found != ours.as_bytes() {
            return Err(self.foreign(&found));
        }
        *ready = true;
        Ok(())
    }

    /// Sees that what is there is not written over: everything here depends on it.
    fn check_condition(&self) -> Result<(), StoreError> {
        self.put(PROBE, FORMAT.into())?;
        match self.put(PROBE, FORMAT.into())? {
            Created::Before => Ok(()),
            Created::Now => Err(self.unsafe_because(
                "it writes over what is there, although it is told not to (`If-None-Match`)",
            )),
        }
    }

    fn unsafe_because(&self, why: &str) -> StoreError {
        StoreError::DepotUnsafe {
            place: self.place.clone(),
            cause: Arc::new(Said(why.to_owned())),
        }
    }

    fn foreign(&self, mark: &[u8]) -> StoreError {
        let mark = String::from_utf8_lossy(mark);
        let mut lines = mark.lines();
        let known = lines.next() == Some(FORMAT);
        let owner = match lines.next() {
            Some(owner) if known => owner,
            _ => "something else",
        };
        StoreError::DepotForeign {
            place: self.place.clone(),
            owner: text::line(owner).text.chars().take(100).collect(),
        }
    }
}

impl std::fmt::Debug for Depot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Depot({})", self.place)
    }
}

/// Waits for what the client does. It needs nothing of a runtime but its clock.
fn wait<F: Future>(place: &str, work: F) -> Result<F::Output, StoreError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let runtime = runtime.map_err(|error| StoreError::Unreachable {
        place: place.to_owned(),
        cause: Arc::new(error),
    })?;
    Ok(runtime.block_on(work))
}

/// Tells the errors apart by what can be done about them.
fn failed(place: &str, error: Error) -> StoreError {
    let place = place.to_owned();
    let refused = matches!(
        error,
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. }
    );
    let cause = Arc::new(error);
    match refused {
        true => StoreError::DepotRefused { place, cause },
        false => StoreError::Unreachable { place, cause },
    }
}
