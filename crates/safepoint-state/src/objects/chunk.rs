//! Cutting large contents where their bytes say so (FastCDC), so that a small
//! edit in a large file costs about its own size.
//!
//! The parameters decide where the cuts fall. Other ones would still be read,
//! but would share nothing with what is stored.

use fastcdc::v2020::FastCDC;

use crate::StateError;

/// Contents beyond this size are stored as chunks.
pub(crate) const LARGE: usize = 1 << 20;
const SMALLEST: usize = 128 << 10;
const AVERAGE: usize = 512 << 10;
const LARGEST: usize = 2 << 20;

/// Collects pieces of any size and hands out chunks.
#[derive(Default)]
pub(super) struct Chunker {
    held: Vec<u8>,
}

type Sink<'a> = dyn FnMut(&[u8]) -> Result<(), StateError> + 'a;

impl Chunker {
    /// Takes the next piece, and hands on every chunk that is now certain.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut Sink<'_>) -> Result<(), StateError> {
        self.held.extend_from_slice(bytes);
        self.cut_while(sink, |left| left >= LARGEST)
    }

    /// Hands on the rest.
    pub(super) fn finish(mut self, sink: &mut Sink<'_>) -> Result<(), StateError> {
        self.cut_while(sink, |left| left > 0)
    }

    fn cut_while(
        &mut self,
        sink: &mut Sink<'_>,
        go_on: impl Fn(usize) -> bool,
    ) -> Result<(), StateError> {
        let mut start = 0;
        let length = self.held.len();
        while go_on(length - start) {
            let cutter = FastCDC::new(&self.held, SMALLEST, AVERAGE, LARGEST);
            let (_, end) = cutter.cut(start, length - start);
            let chunk = self.held.get(start..end).unwrap_or_default();
            sink(chunk)?;
            start = end;
        }
        self.held.drain(..start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ContentId;

    /// Bytes that look random and are the same everywhere.
    fn noise(length: usize) -> Vec<u8> {
        let mut reader = blake3::Hasher::new().update(b"noise").finalize_xof();
        let mut bytes = vec![0; length];
        reader.fill(&mut bytes);
        bytes
    }

    fn chunks(bytes: &[u8], piece: usize) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut chunker = Chunker::default();
        let mut sink = |chunk: &[u8]| {
            found.push(chunk.to_vec());
            Ok(())
        };
        for piece in bytes.chunks(piece) {
            chunker.push(piece, &mut sink).unwrap();
        }
        chunker.finish(&mut sink).unwrap();
        found
    }

    #[test]
    fn st_17_cuts_do_not_depend_on_the_pieces_and_never_move() {
        let bytes = noise(9 << 20);
        let found = chunks(&bytes, 1 << 20);
        assert_eq!(found.concat(), bytes);
        assert_eq!(found, chunks(&bytes, 77_777));
        // Golden: if this changes, nothing new shares chunks with what is stored.
        let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
        assert_eq!(
            ContentId::of(format!("{lengths:?}").as_bytes()).to_string()[..16],
            *GOLDEN,
            "{lengths:?}"
        );
    }

    const GOLDEN: &str = "5c8cb5af182f429a";

    #[test]
    fn st_17_a_small_edit_changes_few_chunks() {
        let bytes = noise(20 << 20);
        let mut edited = bytes.clone();
        edited.splice(9 << 20..9 << 20, *b"inserted");
        let before: std::collections::HashSet<_> = chunks(&bytes, 1 << 20).into_iter().collect();
        let new: usize = chunks(&edited, 1 << 20)
            .iter()
            .filter(|chunk| !before.contains(*chunk))
            .map(Vec::len)
            .sum();
        assert!(new <= 2 * LARGEST, "{new}");
    }
}
