//! How captured bytes leave this crate, and come back.

use safepoint_model::Digest;
use serde::{Deserialize, Serialize};

use crate::DatabaseError;

/// A run of bytes that was kept, by its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    /// BLAKE3 of the bytes.
    pub content: Digest,
    /// How many there are.
    pub size: u64,
}

/// Where what is captured goes.
pub trait Keep: Sync {
    /// Begins a piece.
    fn begin(&self) -> Box<dyn Sink + '_>;

    /// Keeps bytes that are in memory.
    fn bytes(&self, bytes: &[u8]) -> Result<Piece, DatabaseError> {
        let mut sink = self.begin();
        sink.push(bytes)?;
        sink.finish()
    }
}

/// A piece that is being written.
pub trait Sink {
    /// Adds bytes.
    fn push(&mut self, bytes: &[u8]) -> Result<(), DatabaseError>;

    /// Ends the piece.
    fn finish(self: Box<Self>) -> Result<Piece, DatabaseError>;
}

/// Where kept pieces are read.
pub trait Contents: Sync {
    /// Hands out the bytes of a piece, each run checked before it is handed out.
    /// When this fails, what was handed out before must be thrown away.
    fn copy(
        &self,
        piece: &Piece,
        take: &mut dyn FnMut(&[u8]) -> Result<(), DatabaseError>,
    ) -> Result<(), DatabaseError>;

    /// All bytes of a piece that fits in memory.
    fn read(&self, piece: &Piece) -> Result<Vec<u8>, DatabaseError> {
        let mut bytes = Vec::new();
        self.copy(piece, &mut |run| {
            bytes.extend_from_slice(run);
            Ok(())
        })?;
        Ok(bytes)
    }
}
