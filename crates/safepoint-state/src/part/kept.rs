//! The object store as the database crate sees it: a place to keep pieces, and
//! to read them from.

use std::sync::Arc;

use safepoint_database::{Contents, DatabaseError, Image, Keep, Piece, Sink};
use safepoint_model::Digest;

use crate::objects::{LARGE, LargeWriter, Reader, Writer};
use crate::{ContentId, StateError};

/// Keeps pieces in the object store.
pub(crate) struct Keeping<'a>(pub(crate) &'a Writer<'a>);

impl Keep for Keeping<'_> {
    fn begin(&self) -> Box<dyn Sink + '_> {
        Box::new(Growing {
            writer: self.0,
            held: Vec::new(),
            large: None,
            size: 0,
        })
    }
}

/// A piece that is being written: in memory while it is small, then in chunks.
struct Growing<'a> {
    writer: &'a Writer<'a>,
    held: Vec<u8>,
    large: Option<LargeWriter<'a, 'a>>,
    size: u64,
}

impl Sink for Growing<'_> {
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.size += bytes.len() as u64;
        if let Some(large) = &mut self.large {
            return large.push(bytes).map_err(outward);
        }
        self.held.extend_from_slice(bytes);
        if self.held.len() > LARGE {
            let mut large = LargeWriter::new(self.writer);
            large
                .push(&std::mem::take(&mut self.held))
                .map_err(outward)?;
            self.large = Some(large);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError> {
        let content = match self.large {
            Some(large) => large.finish().map_err(outward)?,
            None => {
                let content = ContentId::of(&self.held);
                self.writer.add(content, self.held).map_err(outward)?;
                content
            }
        };
        Ok(Piece {
            content: Digest::from_bytes(*content.as_bytes()),
            size: self.size,
        })
    }
}

/// Reads pieces from the object store.
pub(crate) struct Reading<'a>(pub(crate) &'a Reader<'a>);

impl Contents for Reading<'_> {
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError> {
        let content = content_of(piece);
        let found = self.0.find(content).map_err(outward)?;
        found
            .copy(&mut |bytes| take(bytes).map_err(StateError::from))
            .map_err(outward)
    }
}

/// The name that a piece has in the object store.
pub(crate) fn content_of(piece: &Piece) -> ContentId {
    // Both are 32 bytes.
    ContentId::from_slice(piece.content.as_bytes()).unwrap_or_else(|| ContentId::of(b""))
}

/// Reads the description of a database back.
pub(crate) fn image_of(reader: &Reader<'_>, image: ContentId) -> Result<Image, StateError> {
    let found: Image = serde_json::from_slice(&reader.read(image)?).map_err(|error| {
        StateError::Unsupported(format!("the capture {image} cannot be read: {error}"))
    })?;
    if found.format > Image::FORMAT {
        return Err(StateError::Unsupported(format!(
            "the capture {image} was made by a newer version"
        )));
    }
    Ok(found)
}

/// An error of ours on its way through the database crate.
fn outward(error: StateError) -> DatabaseError {
    match error {
        StateError::Database(error) => Arc::unwrap_or_clone(error),
        other => DatabaseError::Kept(Arc::new(other)),
    }
}

impl From<DatabaseError> for StateError {
    fn from(error: DatabaseError) -> Self {
        if let DatabaseError::Kept(inner) = &error
            && let Some(ours) = inner.downcast_ref::<Self>()
        {
            return ours.clone();
        }
        Self::Database(Arc::new(error))
    }
}
