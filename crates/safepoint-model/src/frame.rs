//! How values are laid out before they are hashed.
//!
//! A frame begins with a tag that names what it is and in which version, and
//! every part, the tag included, is preceded by its length. So no two
//! different lists of fields give the same bytes, and a digest made for one
//! purpose never passes for another. `docs/formats/frame.md` has the same in
//! words, with a published vector.

use crate::Digest;

/// A tagged, length-framed list of fields: `u32` big-endian length, then the
/// bytes, for the tag and for each field in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    /// An empty frame for `tag`, such as `safepoint/entry/v1`.
    pub fn new(tag: &str) -> Self {
        let mut frame = Self {
            bytes: Vec::with_capacity(512),
        };
        frame.restart(tag);
        frame
    }

    /// Empties the frame for another value, keeping its memory.
    pub fn restart(&mut self, tag: &str) {
        self.bytes.clear();
        self.field(tag.as_bytes());
    }

    /// Adds one field.
    pub fn field(&mut self, bytes: &[u8]) -> &mut Self {
        // Longer fields cannot occur: everything framed is bounded far below
        // 4 GiB. Should one ever, the saturated length still differs from any
        // honest frame, so the digest does not collide.
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(bytes);
        self
    }

    /// Adds a whole number as eight big-endian bytes.
    pub fn number(&mut self, number: u64) -> &mut Self {
        self.field(&number.to_be_bytes())
    }

    /// The bytes to be hashed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// SHA-256 over the frame.
    pub fn digest(&self) -> Digest {
        Digest::of_parts(&[&self.bytes])
    }
}

/// Splits a frame back into its tag and fields; `None` when it is not one.
pub fn split_frame(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part);
        bytes = rest;
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_02_the_published_vector() {
        let mut frame = Frame::new("safepoint/example/v1");
        frame.field("é".as_bytes()).field(b"").number(7);
        assert_eq!(
            frame.as_bytes(),
            b"\x00\x00\x00\x14safepoint/example/v1\x00\x00\x00\x02\xc3\xa9\x00\x00\x00\x00\x00\x00\x00\x08\x00\x00\x00\x00\x00\x00\x00\x07"
        );
        assert_eq!(
            frame.digest().to_string(),
            "c1225f9de33c677f33d78ee1e7bf41f259a5f02f7e2ac52f93394e4fddcec944"
        );
    }

    #[test]
    fn tr_02_fields_cannot_run_into_each_other() {
        let frame = |fields: &[&[u8]]| {
            let mut frame = Frame::new("t");
            for field in fields {
                frame.field(field);
            }
            frame.digest()
        };
        assert_ne!(frame(&[b"ab", b"c"]), frame(&[b"a", b"bc"]));
        assert_ne!(frame(&[b"a"]), frame(&[b"a", b""]));
        assert_ne!(frame(&[]), frame(&[b""]));
    }

    #[test]
    fn splits_what_it_framed_and_nothing_else() {
        let mut frame = Frame::new("t");
        frame.field(b"one").field(b"");
        assert_eq!(
            split_frame(frame.as_bytes()),
            Some(vec![&b"t"[..], b"one", b""])
        );
        assert_eq!(split_frame(b"\x00\x00\x00\x09short"), None);
        assert_eq!(split_frame(b"\x00\x00"), None);
    }
}
